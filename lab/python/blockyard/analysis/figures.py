"""The figures of one allocator in one section: its exact distributions, floors and rates."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockyard.analysis import frames, noise, passes, samples
from blockyard.analysis.cuts import Cuts
from blockyard.analysis.distribution import Distribution
from blockyard.analysis.frames import AudioVerdict, FrameSeries, Tails, Verdict
from blockyard.analysis.latency import SIZE_CLASSES, WITH_INTERVAL, Operation, Part, Percentile, View, paid
from blockyard.analysis.sections import AllocatorRuns
from blockyard.errors import UserError
from blockyard.units import Nanoseconds

_METRICS = {
    (Operation.MALLOC, Part.CALL): (passes.MALLOC_CALL, passes.REALLOC_CALL),
    (Operation.MALLOC, Part.TOUCH): (passes.MALLOC_TOUCH, passes.REALLOC_TOUCH),
    (Operation.MALLOC, Part.BOTH): (passes.MALLOC_BOTH, passes.REALLOC_BOTH),
    (Operation.REALLOC, Part.CALL): (passes.REALLOC_CALL,),
    (Operation.REALLOC, Part.TOUCH): (passes.REALLOC_TOUCH,),
    (Operation.REALLOC, Part.BOTH): (passes.REALLOC_BOTH,),
    (Operation.FREE, Part.CALL): (passes.FREE_CALL,),
}
VIEWS = {View.AS_RUN: passes.AS_RUN, View.INHERENT: passes.INHERENT, View.ATTRIBUTED: passes.ATTRIBUTED}
SLOWEST = 20_000
"""So many of an allocator's slowest events can be listed one by one."""

RATE_LIMITS_NS = (1_000, 10_000, 100_000)
_SMALL_TICKS = 2048
"""Below this, bringing repeats to one tick moves no latency to another."""
_ENOUGH_DISTINCT = 16
"""Fewer distinct latencies may share a divisor by chance."""


_Figures = dict[str, noise.Figure]


class Together:
    """Allocators whose repeats were measured in turns: they tell together how much a figure varies from run to run.
    `null`, which does not compete, neither lends nor is lent to."""

    def __init__(self, members: Iterable["AllocatorFigures"]) -> None:
        self.members = [one for one in members if not one.runs.is_null]
        self._spreads: dict[tuple, dict[str, noise.Spread]] = {}

    @property
    def confidence(self) -> float:
        """Of every interval: such that all claims of a verdict together have one chance of 5 % to hold a wrong one."""
        return noise.confidence(MEASURES * (len(self.members) - 1))

    def ends(self, figure: noise.Figure | None) -> tuple[float, float] | None:
        """Of its interval."""
        return figure.interval(self.confidence) if figure else None

    def lent(self, one: "AllocatorFigures", key: tuple, alone: Callable[["AllocatorFigures"], _Figures]) -> _Figures:
        """By label, the figures of `one` with what all lend."""

        def find(each: "AllocatorFigures") -> _Figures:
            return each.once(("alone", *key), lambda: alone(each))

        own = find(one)
        if one.runs.is_null or len(self.members) < 2:
            return own
        if key not in self._spreads:
            everyone = [find(each) for each in self.members]
            labels = dict.fromkeys(label for found in everyone for label in found)
            self._spreads[key] = {
                label: noise.Spread.of([found[label] for found in everyone if label in found]) for label in labels
            }
        spreads = self._spreads[key]
        return one.once(("lent", *key), lambda: {label: spreads[label].lent(figure) for label, figure in own.items()})


MEASURES = 4
"""Those of a verdict: median, tail, worst frame, memory."""


@dataclass
class AllocatorFigures:
    """One allocator's repeats in one section, digested."""

    runs: AllocatorRuns
    digest: passes.Digest
    measured_ns: int
    step_ticks: int
    cuts: Cuts
    series: dict[str, FrameSeries]
    """By the name of the cut that it was taken by."""
    gross: bool
    together: "Together" = field(default_factory=lambda: Together(()))
    """Those that it was measured with."""
    found: dict = field(default_factory=dict)

    def once(self, key: tuple, make: Callable[[], Any]) -> Any:
        """What `make` returns, which is computed when it is first asked for."""
        if key not in self.found:
            self.found[key] = make()
        return self.found[key]

    @property
    def name(self) -> str:
        return self.runs.name

    @property
    def looked_into(self) -> bool:
        """Whether causes of slow events are known: without them, attributed would be as-run under another name."""
        return any(run.facts.looked_into for run in self.runs.runs)

    @property
    def frames(self) -> FrameSeries | None:
        """None where the section has no frames."""
        return self.series.get("frames")

    def judged_frames(self, view: View) -> np.ndarray | None:
        """Allocator time by frame, [repeat, frame], of the phase whose frames are judged; None where the section has no
        frames, or the view is not known."""
        return self.frames.of(view, self.cuts.frames_in(self.cuts.judged_phase)) if self.frames else None

    def budget_of_frames(self, view: View, budget_ns: float, phase: str | None) -> tuple[Verdict, Tails] | None:
        """Of one phase's frames, or of all, with the tails of the time that allocation takes of a frame, whatever its
        budget; None where the view is not known."""

        def find(one: "AllocatorFigures") -> np.ndarray | None:
            return one.frames.of(view, one.cuts.frames_in(phase)) if one.frames else None

        found = self.once(("sorted", view, phase), lambda: None if (of := find(self)) is None else np.sort(of, None))
        if found is None:
            return None
        return frames.verdict_of_sorted(found, budget_ns), self._tails(("frames", view, phase), find)

    def _tails(self, key: tuple, find: Callable[["AllocatorFigures"], np.ndarray | None]) -> Tails:
        """Of the times, [repeat, frame], that are found."""

        def alone(one: "AllocatorFigures") -> Tails:
            values = find(one)
            return {} if values is None else frames.tails(values, one.step_ns, len(one.runs.runs))

        return self.together.lent(self, key, alone)

    def budget_of_buffers(self, view: View, samples: int, phase: str | None) -> tuple[AudioVerdict, Tails] | None:
        """The same of audio buffers of so many samples."""

        def find(one: "AllocatorFigures") -> np.ndarray | None:
            stretches = one.audio.of(view, one.cuts.audio_in(phase)) if one.audio else None
            return None if stretches is None else frames.in_buffers(stretches, samples)

        def judge() -> AudioVerdict | None:
            buffers = find(self)
            return None if buffers is None else frames.audio_verdict(buffers, samples)

        key = ("audio", view, samples, phase)
        found = self.once(("judged", *key), judge)
        return None if found is None else (found, self._tails(key, find))

    @property
    def audio(self) -> FrameSeries | None:
        """Stretches of the shortest audio buffer; None where there is no clock to cut them by."""
        return self.series.get("audio")

    @property
    def phases(self) -> FrameSeries:
        """Allocator time of all threads in each phase."""
        return self.series["whole"]

    def distribution(
        self,
        view: View,
        operation: Operation,
        part: Part,
        size_class: int | None = None,
        repeat: int | None = None,
        phase: str | None = None,
    ) -> Distribution:
        """All size classes, repeats (by their place among the runs) and phases unless one is named."""

        def find() -> Distribution:
            found = self.digest.distribution(
                VIEWS[view],
                _METRICS[operation, part],
                range(len(SIZE_CLASSES)) if size_class is None else (size_class,),
                passes.ALL if repeat is None else repeat,
                passes.ALL if phase is None else self.cuts.phases.names.index(phase),
            )
            return Distribution(*found, self.runs.ticks_per_ns, self.step_ticks)

        return self.once((view, operation, part, size_class, repeat, phase), find)

    def known(
        self, view: View, operation: Operation, part: Part, size_class: int | None = None, phase: str | None = None
    ) -> dict[str, noise.Figure]:
        """By the percentile's label, those of WITH_INTERVAL that the samples support, to be compared and with what all
        that were measured together lend it. Minima over repeats have no repeats of their own."""

        def alone(one: "AllocatorFigures") -> dict[str, noise.Figure]:
            pooled = one.distribution(view, operation, part, size_class, phase=phase)
            wanted = [percentile for percentile in WITH_INTERVAL if percentile.supported(pooled.samples)]
            places = range(len(one.runs.runs)) if view is not View.INHERENT and len(one.runs.runs) > 1 else ()
            parts = [one.distribution(view, operation, part, size_class, place, phase) for place in places]
            without = pooled.without_each(parts, wanted) if parts and wanted else np.zeros((len(wanted), 0))
            return {
                percentile.label: noise.Figure.of_all(
                    pooled.percentile(percentile).value, without[place], one.step_ns, len(one.runs.runs)
                )
                for place, percentile in enumerate(wanted)
            }

        return self.together.lent(self, ("known", view, operation, part, size_class, phase), alone)

    @property
    def step_ns(self) -> float:
        return self.step_ticks / self.runs.ticks_per_ns

    def latency(self, ns: float) -> Nanoseconds:
        """One that was not taken from a distribution: less than a step of the clock is said as such."""
        return Nanoseconds(ns if ns >= self.step_ns else 0.0, step=self.step_ns)

    @property
    def touched(self) -> bool:
        return self.distribution(View.AS_RUN, Operation.MALLOC, Part.TOUCH).samples > 0

    def whole(self, view: View, operation: Operation, phase: str | None = None) -> Distribution:
        """What the program pays, in all phases unless one is named."""
        return self.distribution(view, operation, paid(operation), phase=phase)

    def figure(self, view: View, operation: Operation, percentile: Percentile) -> noise.Figure | None:
        """A percentile of what the program pays, to be compared; None where the samples do not support it."""
        return self.known(view, operation, paid(operation)).get(percentile.label)

    def rate_above(self, limit_ns: float, view: View = View.AS_RUN) -> float | None:
        """Events per second that took longer, mallocs with their touch and frees together; of as-run or attributed."""
        if self.measured_ns == 0:
            return None
        slow = sum(self.whole(view, operation).above(limit_ns) for operation in (Operation.MALLOC, Operation.FREE))
        return slow / (self.measured_ns / 1e9)


def open_rows(allocator: AllocatorRuns, gross: bool) -> list[passes.Rows]:
    """The allocator's repeats, mapped, with the floors that are taken off unless the figures are gross."""
    opened = []
    for run in allocator.runs:
        rows = samples.rows(run.folder / "samples.npy")
        rate = run.number("ticks_per_ns")
        floors = (0, 0) if gross else allocator.floor_ticks(run)
        opened.append(passes.Rows(rows, *floors, scale=allocator.ticks_per_ns / rate if rate else 1.0))
    return opened


def measure(allocator: AllocatorRuns, cuts: Cuts, *, gross: bool = False, threads: int = 2) -> AllocatorFigures:
    """Digests all repeats of one allocator in two native passes: latencies by phase, and, where something is cut, sums
    by frame."""
    opened = open_rows(allocator, gross)
    try:
        digest = passes.Digest(opened, threads, SLOWEST, _phase_rows(opened[0].rows, cuts))
    except passes.BadRows as error:
        raise bad_rows(allocator.runs, error) from None
    measured = sum(run.last_start for run in opened)
    wanted = list(cuts.by_name.values())
    looked_into = any(run.facts.looked_into for run in allocator.runs)
    series = (
        frames.per_frame(opened, wanted, allocator.ticks_per_ns, looked_into=looked_into, threads=threads)
        if wanted
        else []
    )
    if allocator.totals is not None:
        series = [one.from_totals(allocator.totals) for one in series]
    return AllocatorFigures(
        allocator,
        digest,
        measured,
        _step_ticks(allocator, digest),
        cuts,
        dict(zip(cuts.by_name, series, strict=True)),
        gross,
    )


def _phase_rows(rows: np.ndarray, cuts: Cuts) -> list[tuple[int, int]]:
    """From which row on each phase goes."""
    names = cuts.phases.names
    found = [(bisect_left(rows["event"], phase.begin_event), names.index(phase.name)) for phase in cuts.phases.phases]
    return [(0, found[0][1]), *found[1:]]


def bad_rows(runs: Sequence, error: passes.BadRows) -> UserError:
    """The sentence for rows that no replay wrote."""
    return UserError(
        f"{runs[error.run].folder / 'samples.npy'} {error}: it was damaged or belongs to another journal; "
        "delete its folder and run 'blockyard replay --resume'"
    )


def _step_ticks(allocator: AllocatorRuns, digest: passes.Digest) -> int:
    """By how many ticks the clock advances at a time: as measured, else as the latencies themselves betray it.

    Some processors count in steps (26 ticks of 10 ns were seen), and then no difference below one is real.
    """
    known = [step for run in allocator.runs if (step := run.facts.clock_step_ticks)]
    if known:
        return int(max(known))
    ticks, _ = digest.distribution(passes.AS_RUN, range(passes.METRICS))
    distinct = ticks[(ticks > 0) & (ticks < _SMALL_TICKS)]
    return int(np.gcd.reduce(distinct)) if len(distinct) >= _ENOUGH_DISTINCT else 1
