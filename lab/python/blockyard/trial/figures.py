"""The figures of a trial and what may be claimed of their differences, by the lab's one model (analysis.noise).

The sample is the run, never the frame: frames of a run depend on each other, whatever their number, and what they share
shows between runs. Each figure is taken of each run and counts by its geometric mean over the runs. All claims of a
trial together have one chance of 5 % that any is wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot, log, sqrt

import numpy as np

from blockyard.analysis import noise
from blockyard.analysis.noise import Difference, Figure, Spread, Verdict
from blockyard.report.table import Unit
from blockyard.trial.run import Run

_BEYOND = 10
"""With fewer frames beyond a percentile there is no figure, as everywhere in the lab."""
_MARK_NS = 1_000.0
"""Of a frame: reading two clocks takes as long where one is a system call."""
_CLOCK_NS = 100_000.0
"""Of a whole run: starting and ending a process is known no better."""
_PAGE = 4096.0
_RATES = (24, 25, 30, 48, 50, 60, 72, 75, 90, 100, 120, 144, 165, 240)
"""Of screens, in frames per second."""
_ON_RATE = 0.005
"""How far a program's rate may be from a screen's, as a share of it."""
_ON_REFRESH = 0.05
"""How far a frame may be from a multiple of a screen's period, as a share of it."""
_ON_OWN = 0.01
"""The same of a period that is no screen's: a program that computes may be steady, but hardly so."""
_HELD = 0.5
"""So many frames on a multiple make a program that waits."""
_BUSY = 0.7
"""A program that computes for so much of its median frame waits for nothing."""
OVER = 1.05
"""A frame is over its budget from here on: one that waits for the screen ends a little late half the time."""


@dataclass(frozen=True)
class Measure:
    """`lower` and `higher`: how a sentence names a claim. Of `time` measures the first that is known is what a trial
    without a claim is told of."""

    title: str
    unit: Unit
    lower: str
    higher: str
    time: bool
    take: Callable[[Sequence[Run]], Figure | None]


def measures(budget_ns: float) -> list[Measure]:
    """In the order in which a sentence tells them."""

    def percentile(share: float, name: str) -> Callable[[Sequence[Run]], Figure | None]:
        return lambda runs: _percentile([getattr(one, name) for one in runs], share)

    def each(take: Callable[[Run], float], step: float) -> Callable[[Sequence[Run]], Figure | None]:
        return lambda runs: Figure.of_each([take(one) for one in runs], step) if runs else None

    def framed(take: Callable[[np.ndarray], float], step: float) -> Callable[[Sequence[Run]], Figure | None]:
        return lambda runs: (
            Figure.of_each([float(take(one.frames_ns)) for one in runs], step)
            if runs and all(len(one.frames_ns) for one in runs)
            else None
        )

    def frame(title: str, take: Callable[[Sequence[Run]], Figure | None]) -> Measure:
        return Measure(title, Unit.NS, f"faster by {{}} at {title}", f"slower by {{}} at {title}", True, take)

    def plain(title: str, unit: Unit, less: str, more: str, time: bool, take: Callable) -> Measure:
        return Measure(title, unit, f"{title} {less} by {{}}", f"{title} {more} by {{}}", time, take)

    late = OVER * budget_ns
    return [
        frame("frame p99", percentile(0.99, "frames_ns")),
        frame("frame p50", percentile(0.5, "frames_ns")),
        frame("frame p99.9", percentile(0.999, "frames_ns")),
        frame("worst frame", framed(np.max, _MARK_NS)),
        plain("late frames", Unit.RATE, "fewer", "more", False, framed(lambda frames: np.sum(frames > late), 1.0)),
        plain("CPU p50", Unit.NS, "less", "more", True, percentile(0.5, "frames_cpu_ns")),
        plain("CPU p99", Unit.NS, "less", "more", True, percentile(0.99, "frames_cpu_ns")),
        plain("elapsed", Unit.NS, "shorter", "longer", True, each(lambda one: one.elapsed_s * 1e9, _CLOCK_NS)),
        plain("CPU time", Unit.NS, "less", "more", True, each(lambda one: one.cpu_s * 1e9, _CLOCK_NS)),
        plain("peak memory", Unit.BYTES, "less", "more", False, each(lambda one: one.peak_bytes, _PAGE)),
        plain("page faults", Unit.COUNT, "fewer", "more", False, each(lambda one: one.faults, 1.0)),
    ]


@dataclass(frozen=True)
class Found:
    """By contender its figures, and all but the first's differences from the first; `confidence` is that of each."""

    measures: Sequence[Measure]
    figures: Mapping[str, Mapping[str, Figure]]
    differences: Mapping[str, Mapping[str, Difference]]
    confidence: float


def compare(runs: Mapping[str, Sequence[Run]], budget_ns: float) -> Found:
    """Of the runs that succeeded; the first contender is what the others differ from."""
    wanted = measures(budget_ns)
    taken = {name: {one.title: figure for one in wanted if (figure := one.take(own))} for name, own in runs.items()}
    first, *others = runs
    # A figure counts that the first and another have; how many there are does not depend on what they show.
    common = {name: [title for title in taken[first] if title in taken[name]] for name in others}
    confidence = noise.confidence(sum(map(len, common.values())))
    for one in wanted:
        known = [name for name in runs if one.title in taken[name]]
        spread = Spread.of([taken[name][one.title] for name in known])
        for name in known:
            taken[name][one.title] = spread.lent(taken[name][one.title])
    differences = {
        name: {title: noise.difference(taken[first][title], taken[name][title], confidence) for title in titles}
        for name, titles in common.items()
    }
    return Found(wanted, taken, differences, confidence)


def ends(base: Figure, new: Figure, found: Difference) -> tuple[float, float] | None:
    """The interval of the difference itself, in the figures' unit, as sure as that of the ratio; None where nothing
    tells how they vary. Each figure's own interval tells how far its side may be from the middle (the variance
    estimates recovery of G. Zou and A. Donner, Construction of confidence limits about effect measures, 2008)."""
    if not found.variance or base.variance is None or new.variance is None:
        return None
    assert found.low is not None
    assert found.high is not None
    quantile = log(found.high / found.low) / 2 / sqrt(found.variance)
    before, after = exp(base.log), exp(new.log)
    wide = [exp(min(quantile * sqrt(one.variance), 700.0)) for one in (base, new)]
    low = after - before - hypot(after - after / wide[1], before * wide[0] - before)
    high = after - before + hypot(after * wide[1] - after, before - before / wide[0])
    # Where the ratio's interval leaves out 1 by a hair.
    if found.verdict is Verdict.WORSE:
        return max(low, 0.0), high
    return low, min(high, 0.0) if found.verdict is Verdict.BETTER else high


def refresh_rate(runs: Sequence[Run]) -> int | None:
    """Frames per second that a program seems to be held to by its screen or its own limit; None where it computes all
    along."""
    if not runs or not all(len(one.frames_ns) for one in runs):
        return None
    frames = np.concatenate([one.frames_ns for one in runs])
    busy = np.concatenate([one.frames_cpu_ns for one in runs])
    middle = float(np.median(frames))
    if middle <= 0 or np.median(busy) > _BUSY * middle:
        return None
    # Where most frames miss one refresh, the median is two of them.
    for period in (middle, middle / 2):
        is_screen = any(abs(period * rate / 1e9 - 1) <= _ON_RATE for rate in _RATES)
        periods = frames / period
        near = np.abs(periods - np.round(periods)) <= (_ON_REFRESH if is_screen else _ON_OWN)
        held = near & (periods > 0.5)
        if held.mean() >= _HELD:
            return round(1e9 / period)
    return None


def _percentile(parts: Sequence[np.ndarray], share: float) -> Figure | None:
    """Of each run. With all frames in one heap, two runs that the machine slowed would be the tail of it, and leaving
    out one of them would hardly change it: simulated trials then erred in 7 % of cases."""
    if not all(map(len, parts)) or sum(map(len, parts)) * (1 - share) < _BEYOND - 1e-6:
        return None
    return Figure.of_each(
        [float(np.partition(part, _rank(part, share))[_rank(part, share)]) for part in parts], _MARK_NS
    )


def _rank(values: np.ndarray, share: float) -> int:
    return max(int(np.ceil(share * len(values) - 1e-6)) - 1, 0)
