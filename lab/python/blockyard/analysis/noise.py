"""Better, worse or inconclusive: whether one figure of several repeats differs from another beyond noise.

Two claims are never made: of a difference that a clock step or 2 % explains, and of one that the repeats show among
themselves. What is said together of several views holds only where they all agree (docs/reference/method.md, Claims).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from blockyard.analysis import student
from blockyard.analysis.latency import View

MARGIN = 0.02
"""No claim is made of a smaller difference."""
LEAST_REPEATS = 3
"""Two repeats on a side show no spread: the interval of their ratio would span thousands."""
FALSE_ALARMS = 0.05
"""The chance of any wrong claim among all that are made together, were repeats the only thing that differs."""


class Verdict(Enum):
    BETTER = "better"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"


class Judged(Protocol):
    """What one view says."""

    @property
    def verdict(self) -> Verdict: ...

    @property
    def reason(self) -> str: ...


@dataclass(frozen=True)
class Figure:
    """One figure of all repeats together, and what each repeat says: either a figure of its own (`repeats`), or the
    figure of all others (`without`); neither where the view has no repeats, as inherent. `step`: the least difference
    that its measurement can show."""

    value: float
    repeats: Sequence[float]
    step: float
    without: Sequence[float] = ()


@dataclass(frozen=True)
class Difference:
    """`ratio` is NEW / BASE; `low` and `high` are the ends of its interval over the repeats, None where there are fewer
    than two, and `variance` is that of its logarithm. `reason` says why it is inconclusive."""

    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str
    variance: float | None = None


def confidence(claims: int, chance: float = FALSE_ALARMS) -> float:
    """Of each interval, such that a wrong one among so many claims has this chance."""
    return 1 - chance / max(claims, 1)


def spread(figures: Sequence[Figure]) -> student.Spread:
    """Of one figure of several allocators that were measured together."""
    return student.Spread.of([group for figure in figures if (group := _group(figure)) is not None])


def difference(
    base: Figure, new: Figure, repeats: int, confidence: float, spread: student.Spread = student.ALONE
) -> Difference:
    """`repeats`: how many there are on each side at least, whether the view shows them or not."""
    step = max(base.step, new.step)
    # A figure of 0 is below a step of the clock: it counts as half of one.
    before, after = (max(figure.value, step / 2) for figure in (base, new))
    ratio = after / before
    groups = [_group(figure) for figure in (base, new)]
    interval = student.ratio(*groups, confidence, spread) if None not in groups else None
    reason = ""
    if repeats < LEAST_REPEATS:
        reason = "too few repeats"
    elif abs(after - before) <= step:
        reason = "within a clock step"
    elif 1 / (1 + MARGIN) <= ratio <= 1 + MARGIN:
        reason = "within 2 %"
    elif interval is not None and interval.low <= 1 <= interval.high:
        reason = "repeats differ as much"
    verdict = Verdict.INCONCLUSIVE if reason else Verdict.WORSE if ratio > 1 else Verdict.BETTER
    if interval is None:
        return Difference(ratio, None, None, verdict, reason)
    return Difference(ratio, interval.low, interval.high, verdict, reason, interval.variance)


def together(found: Mapping[View, Judged]) -> tuple[Verdict, str]:
    """What all of these views say; nothing where they don't agree, and then which of them holds it back."""
    first = next(iter(found.values()))
    if all(one.verdict is first.verdict for one in found.values()):
        return first.verdict, first.reason
    reasons = [f"{view.value} {one.reason}" for view, one in found.items() if one.reason]
    return Verdict.INCONCLUSIVE, reasons[0] if reasons else "the views disagree"


def _group(figure: Figure) -> student.Group | None:
    """None where the repeats are too few to say anything, or the view has none."""
    if len(figure.without) > 1:
        value, *without = (max(one, figure.step / 2) for one in (figure.value, *figure.without))
        return student.Group.of_all(value, without, figure.step)
    if len(figure.repeats) > 1:
        return student.Group.of_each([max(value, figure.step / 2) for value in figure.repeats], figure.step)
    return None
