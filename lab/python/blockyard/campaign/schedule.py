"""The runs of a campaign: their order, and the shares that other machines can run."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from blockyard.errors import UserError


@dataclass(frozen=True)
class Run:
    """One replay of one journal on one allocator. `order` counts from 0 in the order of running.

    A timed run has a clock around each call, an untimed one around each burst of calls: the first tells of a call by
    itself, the second what all of them take together. A traced run finds out which events make which system calls and
    measures nothing; its `repeat` is 0.
    """

    journal: str
    allocator: str
    pace: str
    touch: str
    repeat: int
    order: int
    traced: bool = False
    untimed: bool = False

    @property
    def id(self) -> str:
        """Names the run, and its folder under `runs/`."""
        kind = "-untimed" if self.untimed else ""
        number = "trace" if self.traced else self.repeat
        return f"{self.journal}/{self.allocator}/{self.pace}-{self.touch}{kind}/{number}"

    @property
    def sampled(self) -> bool:
        """Whether it leaves a row for each event."""
        return not self.untimed and not self.traced


NULL = "null"
"""The allocator that does nothing: what an untimed run takes on it is the replay's own."""


def schedule(
    journals: Sequence[str],
    allocators: Sequence[str],
    paces: Sequence[str],
    touches: Sequence[str],
    repeats: int,
    *,
    totals: bool = False,
) -> list[Run]:
    """All runs in order: within one journal, pace and touch the repeats go A B C, C B A, A B C.

    What drifts over minutes (a warming machine, a neighbour on the same host) then hits all allocators equally, and no
    allocator is always the first after a change of journal. Their mean positions are equal over every two repeats.
    With `totals` each repeat is run untimed too, on `null` besides.
    """
    runs: list[Run] = []
    with_null = [*allocators, *([] if NULL in allocators else [NULL])]
    for journal, pace, touch, repeat in itertools.product(journals, paces, touches, range(1, repeats + 1)):
        kinds = [(list(allocators), {})]
        if totals:
            kinds.append((with_null, {"untimed": True}))
        for number, (members, kind) in enumerate(kinds):
            for allocator in members if (repeat + number) % 2 else reversed(members):
                runs.append(Run(journal, allocator, pace, touch, repeat, len(runs), **kind))
    return runs


def traces(
    journals: Sequence[str], allocators: Sequence[str], paces: Sequence[str], touches: Sequence[str], first: int
) -> list[Run]:
    """A traced run of each, in the order of running, which begins with `first`: behind all that are measured."""
    each = itertools.product(journals, paces, touches, allocators)
    return [
        Run(journal, allocator, pace, touch, 0, first + number, traced=True)
        for number, (journal, pace, touch, allocator) in enumerate(each)
    ]


def share(runs: Sequence[Run], number: int, of: int, weight: Callable[[Run], float] = lambda run: 1.0) -> list[Run]:
    """Share `number` (from 1) of `of` shares of a campaign: the same for every caller with the same runs.

    What is compared stays together: whole journals go to one share while there are enough of them, else whole
    pace-and-touch groups of a journal, else whole repeats, each with all its allocators. A repeat is never torn.
    """
    most = rounds(runs)
    if of > most:
        raise UserError(
            f"this campaign has {most} rounds of all its allocators and can't be shared by {of}; "
            f"use at most {most} shares"
        )
    return sorted(shares(runs, of, weight)[number - 1], key=lambda run: run.order)


def shares(runs: Sequence[Run], of: int, weight: Callable[[Run], float] = lambda run: 1.0) -> list[list[Run]]:
    """All of them; no more than there are rounds."""
    return _deal(list(runs), of, _LEVELS, weight)


_LEVELS: tuple[Callable[[Run], object], ...] = (
    lambda run: run.journal,
    lambda run: (run.pace, run.touch),
    lambda run: run.repeat,
)


def rounds(runs: Iterable[Run]) -> int:
    """Into so many shares a campaign can be dealt at most."""
    return _rounds(runs, _LEVELS)


def _deal(
    runs: list[Run], shares: int, levels: Sequence[Callable[[Run], object]], weight: Callable[[Run], float]
) -> list[list[Run]]:
    if shares == 1:
        return [runs]
    grouped: dict[object, list[Run]] = {}
    for run in runs:
        grouped.setdefault(levels[0](run), []).append(run)
    # Heaviest first, to the share with the least so far; ties by order, so that everyone deals in the same way.
    groups = sorted(grouped.values(), key=lambda group: (-_sum(weight, group), group[0].order))
    if shares <= len(groups):
        dealt: list[list[Run]] = [[] for _ in range(shares)]
        loads = [0.0] * shares
        for group in groups:
            lightest = loads.index(min(loads))
            dealt[lightest] += group
            loads[lightest] += _sum(weight, group)
        return dealt
    # More shares than groups: each group gets one, and whichever is heaviest per share the next one it can use.
    parts = [1] * len(groups)
    most = [_rounds(group, levels) for group in groups]
    for _ in range(shares - len(groups)):
        open_groups = [index for index in range(len(groups)) if parts[index] < most[index]]
        parts[max(open_groups, key=lambda index: _sum(weight, groups[index]) / parts[index])] += 1
    return [
        part for group, count in zip(groups, parts, strict=True) for part in _deal(group, count, levels[1:], weight)
    ]


def _sum(weight: Callable[[Run], float], runs: Iterable[Run]) -> float:
    return sum(weight(run) for run in runs)


def _rounds(runs: Iterable[Run], levels: Sequence[Callable[[Run], object]]) -> int:
    return len({tuple(level(run) for level in levels) for run in runs})
