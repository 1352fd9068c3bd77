"""Repeats of one allocator after another that were really measured, and campaigns drawn from them.

All samples would be large. Of each run only the slowest events are kept, from which p99.9 of up to ten repeats follows
exactly; all others count as taking no time. `bench/compare/run` makes the file and says how often a gate is wrong.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from synthetic import FREE

from blockyard.analysis import compare, cuts, figures, gate, passes, sections
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import Operation, Part, View
from blockyard.analysis.pairing import Pair, Pairing, Twins
from blockyard.analysis.sections import AllocatorRuns, Run, Section
from blockyard.campaign.document import Journal
from blockyard.campaign.facts import Looking, RunFacts
from blockyard.campaign.run_options import RunOptions

STORED = Path(__file__).parent / "gate-repeats.npz"
OPERATIONS = (Operation.MALLOC, Operation.FREE)
_KEPT = 0.011
"""Of each run's events: of ten runs together those of one alone may be the slowest thousandth."""
_SLOW_OFTEN = 0.4
"""An event whose least over five repeats and more is among the slowest thousandth is slow in this share of all runs."""
_MOST_STEPS = 65_535


JOURNAL = Journal(
    name="cut", path="", sha256="", from_s=None, to_s=None, events=0, measured_events=0, peak_bytes=0, duration_s=0.0
)


@dataclass(frozen=True, eq=False)
class Slowest:
    """Of one allocator and operation, in steps of the clock: each run's slowest events, falling, and how many it had;
    and, event by event, those that are slow in many runs, a row a run."""

    tails: np.ndarray
    samples: np.ndarray
    events: np.ndarray
    all_events: int


@dataclass(frozen=True, eq=False)
class Repeats:
    """Runs in the order in which they were measured; a round is one run of each allocator."""

    step_ns: float
    repeats: int
    slowest: dict[tuple[str, Operation], Slowest]

    @property
    def allocators(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.slowest))

    @property
    def rounds(self) -> int:
        return len(next(iter(self.slowest.values())).samples)

    def compared(
        self, base: Sequence[int], new: Sequence[int], slower: dict[tuple[str, Operation], float] | None = None
    ) -> compare.Measurements:
        """Two campaigns of these rounds; in NEW some allocators' operations are `slower` by a factor."""
        section = Section("cut", "1x", "page", RunOptions(), JOURNAL, Path(), ())
        members = []
        for name in self.allocators:
            factors = tuple((slower or {}).get((name, operation), 1.0) for operation in OPERATIONS)
            unchanged = (1.0,) * len(OPERATIONS)
            sides = _figures(self, name, tuple(base), unchanged), _figures(self, name, tuple(new), factors)
            twins = Twins(sides[0].runs, sides[1].runs, ())
            members.append(compare.Measured(twins, *sides))
        pair = Pair(section, section, tuple(one.twins for one in members), (), ())
        # Of the folders a gate looks at nothing.
        return compare.Measurements(Pairing(None, None, (pair,), ()), (tuple(members),))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Digest:
    """What passes.Digest tells of these rounds."""

    kept: dict[Operation, tuple[Slowest, float]]
    rounds: Sequence[int]

    def distribution(
        self, view: int, metrics: Sequence[int], _classes: Any, run: int, _phase: int
    ) -> tuple[np.ndarray, np.ndarray]:
        operation = Operation.FREE if tuple(metrics) == (passes.FREE_CALL,) else Operation.MALLOC
        slowest, factor = self.kept[operation]
        if view == passes.INHERENT:
            return _counted(slowest.events[list(self.rounds)].min(axis=0), factor, slowest.all_events)
        if run != passes.ALL:
            return _of_round(slowest, self.rounds[run], factor)
        rounds = list(self.rounds)
        return _counted(slowest.tails[rounds].ravel(), factor, int(slowest.samples[rounds].sum()))


@lru_cache(maxsize=16)  # a pair is compared once as it is and once with each allocator slower
def _figures(repeats: Repeats, name: str, rounds: tuple[int, ...], factors: tuple[float, ...]) -> AllocatorFigures:
    facts = RunFacts("ok", ticks_per_ns=1 / repeats.step_ns, looking=Looking(source="perf"))
    runs = tuple(Run(Path(), place, facts) for place in range(1, len(rounds) + 1))
    allocator = AllocatorRuns(name, name, "defaults", "1.0", runs, (), (), (), False, False, (0.0, 0.0))
    kept = {
        operation: (repeats.slowest[name, operation], factor)
        for operation, factor in zip(OPERATIONS, factors, strict=True)
    }
    digest = _Digest(kept, rounds)
    return AllocatorFigures(allocator, digest, 0, 1, cuts.uncut(), {}, False)  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _of_round(slowest: Slowest, place: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    return _counted(slowest.tails[place], factor, int(slowest.samples[place]))


def _counted(latencies: np.ndarray, factor: float, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Latencies and how many have each; all that were not kept took no time."""
    ticks, counts = np.unique(np.rint(latencies * factor).astype(np.uint32), return_counts=True)
    fast = samples - int(counts.sum())
    if ticks[0] > 0:
        ticks, counts = np.insert(ticks, 0, 0), np.insert(counts, 0, 0)
    counts[0] += fast
    return ticks, counts.astype(np.uint64)


def stored(path: Path = STORED) -> Repeats:
    with np.load(path) as file:
        arrays = dict(file)
    slowest = {}
    for key in (name for name in arrays if name.endswith("/tails")):
        name, operation, _ = key.split("/")
        parts = (arrays[f"{name}/{operation}/{part}"] for part in ("tails", "samples", "events"))
        slowest[name, Operation(operation)] = Slowest(*parts, int(arrays[f"{name}/{operation}/all_events"]))
    return Repeats(float(arrays["step_ns"]), int(arrays["repeats"]), slowest)


def store(path: Path, repeats: Repeats) -> None:
    arrays: dict[str, Any] = {"step_ns": repeats.step_ns, "repeats": repeats.repeats}
    for (name, operation), one in repeats.slowest.items():
        arrays |= {f"{name}/{operation.value}/{part}": value for part, value in dataclasses.asdict(one).items()}
    np.savez_compressed(path, **arrays)


def read(campaigns: Iterable[Path]) -> Repeats:
    """Out of campaigns of one journal, pace and touch, in the order in which they were measured."""
    found: dict[tuple[str, Operation], list[tuple[np.ndarray, int, np.ndarray]]] = {}
    steps, counts = [], []
    for folder in campaigns:
        [section] = sections.read(folder).sections
        for allocator in section.measured:
            one = figures.measure(allocator, cuts.uncut())
            steps.append(one.step_ns)
            counts.append(len(allocator.runs))
            for place, rows in enumerate(figures.open_rows(allocator, gross=False)):
                for operation in OPERATIONS:
                    found.setdefault((allocator.name, operation), []).append(_run(one, place, rows, operation))
    step = max(steps)
    slowest = {key: _slowest(runs, step) for key, runs in found.items()}
    return Repeats(step, min(counts), slowest)


def _run(
    one: AllocatorFigures, place: int, rows: passes.Rows, operation: Operation
) -> tuple[np.ndarray, int, np.ndarray]:
    """Attributed latencies, rising; how many there are; and all latencies by event; in ns."""
    part = Part.CALL if operation is Operation.FREE else Part.BOTH
    attributed = one.distribution(View.ATTRIBUTED, operation, part, repeat=place)
    slow = np.repeat(attributed.ticks, attributed.counts.astype(np.int64))[-round(_KEPT * attributed.samples) :]
    is_free = rows.rows["kind"] == FREE
    call, touch = (
        np.maximum(rows.rows[column].astype(np.int64) - floor, 0)
        for column, floor in (("call", rows.floor_call), ("touch", rows.floor_touch))
    )
    by_event = call[is_free] if operation is Operation.FREE else (call + touch)[~is_free]
    rate = one.runs.ticks_per_ns
    return slow[::-1] / rate, attributed.samples, by_event * rows.scale / rate


def _slowest(runs: list[tuple[np.ndarray, int, np.ndarray]], step: float) -> Slowest:
    length = min(len(slow) for slow, _, _ in runs)
    by_event = np.array([events for _, _, events in runs])
    often = (by_event >= np.quantile(by_event, 1 - _KEPT, axis=1, keepdims=True)).mean(axis=0) >= _SLOW_OFTEN
    return Slowest(
        _steps(np.array([slow[:length] for slow, _, _ in runs]), step),
        np.array([samples for _, samples, _ in runs], np.uint32),
        _steps(by_event[:, often], step),
        by_event.shape[1],
    )


def _steps(nanoseconds: np.ndarray, step: float) -> np.ndarray:
    return np.minimum(np.rint(nanoseconds / step), _MOST_STEPS).astype(np.uint16)


@dataclass(frozen=True)
class Rates:
    """How often gates failed: of builds that changed nothing, and of those with one allocator slower by a factor."""

    false: int
    unchanged: int
    caught: int
    slower: int


def rates(
    repeats: Repeats, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], gates: tuple[gate.Gate, ...], factor: float
) -> Rates:
    """Each pair of campaigns once as it is and once with each allocator slower in NEW."""
    false = caught = slower = 0
    for base, new in pairs:
        false += bool(_failed(repeats.compared(base, new), gates))
        for name in repeats.allocators:
            planted = repeats.compared(base, new, {(name, operation): factor for operation in OPERATIONS})
            caught += name in _failed(planted, gates)
            slower += 1
    return Rates(false, len(pairs), caught, slower)


def _failed(measured: compare.Measurements, gates: tuple[gate.Gate, ...]) -> set[str]:
    return {one.allocator for one in gate.judge(measured, gates) if one.passed is False}


def drawn(repeats: Repeats, count: int, each: int, seed: int = 1) -> list[tuple[list[int], list[int]]]:
    """BASE and NEW of `each` rounds, drawn from all: as where the two are measured in turns."""
    random = np.random.default_rng(seed)
    chosen = (random.permutation(repeats.rounds)[: 2 * each] for _ in range(count))
    return [(one[:each].tolist(), one[each:].tolist()) for one in chosen]


def whole(repeats: Repeats) -> list[tuple[list[int], list[int]]]:
    """Every campaign as BASE and every other as NEW."""
    campaigns = [list(range(first, first + repeats.repeats)) for first in range(0, repeats.rounds, repeats.repeats)]
    return [(base, new) for base in campaigns for new in campaigns if base is not new]
