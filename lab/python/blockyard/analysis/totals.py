"""What allocation takes in all: from untimed runs, whose clock is read around bursts of calls, less the same on `null`.

Two clock reads around each call drain the processor's pipeline, so timed calls added up are two to four times what they
take in a program. Every sum comes from here: of a frame, of an audio buffer, of a thread, of a whole replay.

Calls and first touch are told apart by burst: one in which no page was faulted in is calls alone. Calls of the others
take as long as those around them; what such a burst takes beyond is first touch, whoever wrote first, the allocator or
the replay. So the host, which may give a page a hundred times later than another, is in first touch alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from statistics import median

import numpy as np

from blockyard.analysis import noise, samples
from blockyard.analysis.passes import ALL
from blockyard.analysis.samples import FAULT_CALL
from blockyard.analysis.samples_library import fields

BURST = np.dtype(fields(("<u4", "event events frame"), ("<u2", "thread cause"), ("<u8", "start ns"), ("<u4", "away")))
"""A row of bursts.npy."""
CONFIDENCE = 0.95
_TOGETHER = 8
"""Bursts end at other events in each repeat where threads wait for one another: over a few of them that is little."""
_AROUND = 16
"""So many bursts of the thread before and behind one with page faults tell what its calls take."""
HIDDEN_NS = 2.0
"""The replay's own instructions hide so much of each call, and `null` is taken off by that much less. A chain of twelve
cycles (4 ns) in each of its calls lengthens a replay on `null` by nothing. Half of it fitted perf on Python and Perl
better than none or all; no other program has tested it."""


@dataclass(frozen=True)
class Bursts:
    """One untimed run's."""

    rows: np.ndarray

    @classmethod
    def of(cls, folder: Path, *, null: bool = False) -> "Bursts":
        """Those of `null` are less HIDDEN_NS. Raises UserError for a file that no replay wrote."""
        rows = samples.columns(folder / "bursts.npy", BURST, "burst")
        if null:
            rows = np.array(rows)
            rows["ns"] -= np.minimum(rows["ns"], (rows["events"] * HIDDEN_NS).astype(np.uint64))
        return cls(rows)

    @cached_property
    def calls(self) -> np.ndarray:
        """Time of each burst without first touch, in ns."""
        found = self.rows["ns"].astype(float)
        for thread in np.unique(self.rows["thread"]):
            own = np.flatnonzero(self.rows["thread"] == thread)
            faulted = (self.rows["cause"][own] & FAULT_CALL) != 0
            if not faulted.any() or faulted.all():  # in the latter case nothing tells the two apart
                continue
            ns, events = (
                np.concatenate([[0.0], np.cumsum(np.where(faulted, 0, each[own]))])
                for each in (found, self.rows["events"])
            )
            place = np.flatnonzero(faulted)
            low, high = np.maximum(place - _AROUND, 0), np.minimum(place + _AROUND + 1, len(own))
            near = events[high] - events[low]
            rate = np.where(near > 0, (ns[high] - ns[low]) / np.maximum(near, 1), ns[-1] / max(events[-1], 1))
            found[own[place]] = np.minimum(found[own[place]], rate * self.rows["events"][own[place]])
        return found

    def by_thread(self) -> dict[int, float]:
        """Time in ns; the machine's is not in it."""
        sums = np.bincount(self.rows["thread"], self.rows["ns"])
        return {thread: float(sums[thread]) for thread in np.unique(self.rows["thread"]).tolist()}

    def by_frame(self, edges: np.ndarray, thread: int, *, away: bool) -> np.ndarray:
        """The same by frame; frame i has the bursts that end with an event from edges[i] on and below edges[i + 1].
        With `away` what the machine took is in it."""
        place = np.searchsorted(edges, self.rows["event"], side="right") - 1
        chosen = (place >= 0) & (place < len(edges) - 1)
        if thread != ALL:
            chosen &= self.rows["thread"] == thread
        ns = self.rows["ns"][chosen].astype(float)
        if away:
            ns += self.rows["away"][chosen]
        return np.bincount(place[chosen], ns, max(len(edges) - 1, 0))


@dataclass(frozen=True)
class Total:
    """What allocation takes of one thread in a whole replay, or of all, in ns per repeat. `ns` is without first touch,
    which is `touch_ns`, 0 where causes were not looked for. `low_ns` and `high_ns` are the ends of the 95 % interval
    of `ns`: it is also taken without each repeat (the jackknife); fewer than three have none."""

    thread: int
    repeats: int
    ns: float
    low_ns: float | None
    high_ns: float | None
    null_ns: float
    touch_ns: float | None
    figure: noise.Figure
    """Of `ns`, for claims."""

    @property
    def with_touch_ns(self) -> float:
        return self.ns + (self.touch_ns or 0.0)


@dataclass(frozen=True, eq=False)
class Untimed:
    """The untimed runs of one allocator in a section beside those of `null`."""

    own: Sequence[Bursts]
    null: Sequence[Bursts]

    def frames(self, edges: np.ndarray, thread: int, *, away: bool = False) -> np.ndarray:
        """Allocator time with first touch in ns, [repeat, frame]."""
        own = np.array([each.by_frame(edges, thread, away=away) for each in self.own])
        null = np.median([each.by_frame(edges, thread, away=False) for each in self.null], axis=0)
        return np.maximum(own - null, 0.0)

    @cached_property
    def by_thread(self) -> list[Total]:
        """All threads together, then each."""
        return [self._total(thread) for thread in (ALL, *self._threads)]

    @property
    def _threads(self) -> list[int]:
        return sorted(self.own[0].by_thread())

    @property
    def each_ns(self) -> list[float]:
        """All threads together with first touch, by repeat."""
        own, null = ([sum(each.by_thread().values()) for each in runs] for runs in (self.own, self.null))
        return [max(ns - median(null), 0.0) for ns in own]

    @property
    def all(self) -> Total:
        return self.by_thread[0]

    def _cells(self, runs: Sequence[Bursts], thread: int, *, calls: bool) -> np.ndarray:
        """The time of each few bursts of a thread, [repeat, cell]."""
        ends = self.own[0].rows
        edges = ends["event"][ends["thread"] == thread][_TOGETHER - 1 :: _TOGETHER]
        sums = []
        for each in runs:
            chosen = each.rows["thread"] == thread
            ns = (each.calls if calls else each.rows["ns"])[chosen]
            sums.append(np.bincount(np.searchsorted(edges, each.rows["event"][chosen]), ns, len(edges) + 1))
        return np.array(sums)

    def _total(self, thread: int) -> Total:
        threads = self._threads if thread == ALL else [thread]
        own, null, both = (
            np.concatenate([self._cells(runs, each, calls=calls) for each in threads], axis=1)
            for runs, calls in ((self.own, True), (self.null, True), (self.own, False))
        )

        def less_null(one: np.ndarray, other: np.ndarray) -> float:
            return _sum(one) - _sum(other)

        ns = less_null(own, null)
        without = [less_null(_all_but(own, run), _all_but(null, run)) for run in range(len(own))]
        figure = noise.Figure.of_all(max(ns, 0.0), without, 1.0, len(own))
        low, high = _ends(figure, ns, without) or (None, None)
        touch = max(_sum(both) - _sum(own), 0.0)
        return Total(thread, len(own), ns, low, high, _sum(null), touch, figure)


def _ends(figure: noise.Figure, ns: float, without: Sequence[float]) -> tuple[float, float] | None:
    """The interval's. Where a repeat more or less decides whether anything is left beside `null`, a logarithm has no
    ends: they are those of the time itself."""
    if figure.interval(CONFIDENCE) is None or min(ns, *without) > 0:
        return figure.interval(CONFIDENCE)
    half = noise.quantile(CONFIDENCE, figure.freedom) * float(np.std(without, ddof=1)) * (len(without) - 1)
    half /= sqrt(len(without))
    return max(ns - half, 0.0), max(ns + half, 0.0)


def _sum(cells: np.ndarray) -> float:
    """Of the medians over repeats: what struck one repeat alone is in none."""
    return float(np.median(cells, axis=0).sum())


def _all_but(cells: np.ndarray, run: int) -> np.ndarray:
    """Without one repeat, where there are others."""
    return np.delete(cells, run, axis=0) if run < len(cells) > 1 else cells
