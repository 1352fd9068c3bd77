"""What varies, and what may be claimed of it: one model for intervals, bold figures, the verdict, compare and advise.

The logarithm of a figure varies for three reasons.

- **Events** take another time in each run. The journal is the same, so they are no sample: what they vary is within
  what runs vary.
- **Runs**: layout and neighbours move whole runs. A figure is also taken without each run (the jackknife), and what
  that changes tells its variance, never counted as less than rounding to whole steps gives. Three runs alone tell
  little, so all allocators that were measured together tell it together (`Spread`).
- **Machines**: two campaigns meet a machine in two states. The allocators that are the same in both tell how it moved
  (`Movement`).

Two claims are never made: of a difference that two steps of the clock or 2 % explain, and of one that runs show among
themselves. All claims that are made together have one chance of 5 % that any is wrong; intervals are as wide as that
takes, so two that do not touch are a claim (docs/reference/method.md, Claims).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import exp, hypot, log, sqrt
from statistics import median
from typing import Protocol

import numpy as np
from scipy.special import digamma, polygamma, stdtrit

from blockyard.analysis.latency import View

MARGIN = 0.02
"""No claim is made of a smaller difference."""
STEPS = 2
"""Nor of one of fewer steps of the clock: a call by itself is known no better."""
LEAST_REPEATS = 3
"""Two repeats on a side show no spread: the interval of their ratio would span thousands."""
FALSE_ALARMS = 0.05
"""The chance of any wrong claim among all that are made together."""
_KEPT = 0.8
"""Of the chance: where three runs vary unequally, simulated verdicts err a quarter more often than t promises."""
_POWER = 0.8
"""A change is said to show that would be claimed with this chance, were the variance known; as it is, with 0.7."""


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
    """A figure of all runs together. `step`: the least difference that its measurement can show. `variance` is that of
    its logarithm, None where it is not known: of a lone run, and of the minimum over runs. `freedom` says how well the
    variance is known: from its own runs, and from what others lent."""

    value: float
    step: float
    runs: int
    variance: float | None = None
    freedom: float = 0.0

    @classmethod
    def of_each(cls, values: Sequence[float], step: float) -> "Figure":
        """The geometric mean of a value of each run; of a lone one the value itself."""
        count = len(values)
        logs = np.log(np.maximum(values, step / 2))
        spread = float(np.var(logs, ddof=1)) / count if count > 1 else None
        middle = exp(float(logs.mean())) if max(values) >= step / 2 else 0.0
        return cls(middle if count > 1 else float(values[0]), step, count)._with(spread)

    @classmethod
    def of_all(cls, value: float, without: "Sequence[float] | np.ndarray", step: float, runs: int) -> "Figure":
        """One value of all runs together, and the value of all but each: the jackknife; none where the view has no
        runs."""
        count = len(without)
        if count < 2:
            return cls(value, step, runs)
        spread = float(np.var(np.log(np.maximum(without, step / 2)), ddof=1)) * (count - 1) ** 2 / count
        return cls(value, step, runs)._with(spread)

    def _with(self, spread: float | None) -> "Figure":
        if spread is None:
            return self
        rounding = (self.step / exp(self.log)) ** 2 / 12 / self.runs
        return replace(self, variance=max(spread, rounding, 1e-12), freedom=self.runs - 1)

    @property
    def log(self) -> float:
        """A figure of 0 is below a step: it counts as half of one."""
        return log(max(self.value, self.step / 2, 1e-300))

    def interval(self, confidence: float) -> tuple[float, float] | None:
        """Its ends; None of too few runs."""
        if self.variance is None or self.runs < LEAST_REPEATS:
            return None
        half = quantile(confidence, self.freedom) * sqrt(self.variance)
        return min(exp(max(self.log - half, -700.0)), self.value), exp(min(self.log + half, 700.0))


@dataclass(frozen=True)
class Spread:
    """How much a figure's logarithm varies, as several allocators tell together. `freedom` says how far to believe it
    of one of them: much where all vary alike, little where they differ. It is the prior of G. K. Smyth's moderated t
    (Linear Models and Empirical Bayes Methods for Assessing Differential Expression in Microarray Experiments, 2004),
    but for its variance, which is that of all together: of a few allocators the logarithms' mean tells too little."""

    variance: float = 0.0
    freedom: float = 0.0

    @classmethod
    def of(cls, figures: Sequence[Figure]) -> "Spread":
        known = [one for one in figures if one.variance is not None]
        if len(known) < 2:
            return cls()
        freedoms = np.array([one.freedom for one in known])
        variances = np.array([one.variance for one in known])
        logs = np.log(variances) - digamma(freedoms / 2) + np.log(freedoms / 2)
        # What the logarithms vary beyond a few runs' chance is what the allocators differ.
        beyond = float(np.var(logs, ddof=1) - polygamma(1, freedoms / 2).mean())
        # Of all freedom that there is two figures bring their own, whose difference is looked at.
        most = max(float(freedoms.sum() - 2 * freedoms.max()), 0.0)
        freedom = most if beyond <= 0 else min(2 * _inverse_trigamma(beyond), most)
        return cls(float(np.average(variances, weights=freedoms)), freedom)

    def lent(self, figure: Figure) -> Figure:
        """Its own variance is never counted as less: the one noisy allocator among steady ones would be called better
        or worse by chance."""
        if figure.variance is None or not self.freedom:
            return figure
        own = figure.runs - 1
        shrunk = (own * figure.variance + self.freedom * self.variance) / (own + self.freedom)
        return replace(figure, variance=max(figure.variance, shrunk), freedom=own + self.freedom)


@dataclass(frozen=True)
class Difference:
    """`ratio` is NEW / BASE; `low` and `high` are the ends of its interval, None where nothing tells how the figures
    vary, and `variance` is that of its logarithm. `reason` says why it is inconclusive. A ratio of `shows` or more
    would probably have been claimed."""

    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str
    variance: float | None = None
    shows: float | None = None


def confidence(claims: int, chance: float = FALSE_ALARMS) -> float:
    """Of each interval, such that a wrong one among so many claims has this chance."""
    return 1 - _KEPT * chance / max(claims, 1)


def difference(base: Figure, new: Figure, confidence: float) -> Difference:
    """By Welch's test on logarithms."""
    step = max(base.step, new.step)
    before, after = exp(base.log), exp(new.log)
    ratio = after / before
    low = high = variance = shows = None
    if base.variance is not None and new.variance is not None:
        variance = base.variance + new.variance
        # Welch and Satterthwaite's degrees of freedom.
        freedom = variance**2 / (base.variance**2 / base.freedom + new.variance**2 / new.freedom)
        lent = min(one.freedom - one.runs + 1 for one in (base, new))  # to both, and counted once
        freedom = min(freedom, base.freedom + new.freedom - lent)
        middle, error = log(ratio), sqrt(variance)
        half = quantile(confidence, freedom) * error
        low, high = exp(max(middle - half, -700.0)), exp(min(middle + half, 700.0))
        power = float(stdtrit(freedom, _POWER)) * error
        shows = max(exp(min(half + power, 700.0)), 1 + MARGIN, 1 + STEPS * step / before)
    reason = ""
    if min(base.runs, new.runs) < LEAST_REPEATS:
        reason, shows = "too few repeats", None
    elif abs(after - before) < (STEPS - 0.5) * step:  # a step is known no better than to half of one
        reason = "within two clock steps"
    elif 1 / (1 + MARGIN) <= ratio <= 1 + MARGIN:
        reason = f"within {MARGIN * 100:.0f} %"
    elif low is not None and high is not None and low <= 1 <= high:
        reason = "repeats differ as much"
    verdict = Verdict.INCONCLUSIVE if reason else Verdict.WORSE if ratio > 1 else Verdict.BETTER
    return Difference(ratio, low, high, verdict, reason, variance, shows)


def apart(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether a claim can be made of two figures of which no more is known than (value, low, high): their difference is
    as uncertain as both together, a little more than difference() finds."""
    if min(one[0], other[0]) <= 0:
        return one[2] < other[1] or other[2] < one[1]
    halves = [log(max(high, value) / max(min(low, value), 1e-300)) / 2 for value, low, high in (one, other)]
    return abs(log(other[0] / one[0])) > max(hypot(*halves), log(1 + MARGIN))


def together(found: Mapping[View, Judged]) -> tuple[Verdict, str]:
    """What all of these views say; nothing where they don't agree, and then which of them holds it back."""
    first = next(iter(found.values()))
    if all(one.verdict is first.verdict for one in found.values()):
        return first.verdict, first.reason
    reasons = [f"{view.value} {one.reason}" for view, one in found.items() if one.reason]
    return Verdict.INCONCLUSIVE, reasons[0] if reasons else "the views disagree"


@dataclass(frozen=True)
class Movement:
    """How the machine moved between two campaigns, as the allocators tell that are the same in both.

    Repeats a few seconds apart do not know what another minute brings: other guests of the host, the clock's speed,
    other programs. The allocators that nobody changed do. Where they moved by more than their repeats explain, their
    median change is the machine's. Where they scatter around it by more than that, so may any other, and its interval
    is widened as much: the scale factor with which the Particle Data Group averages measurements that disagree.

    `shift` is the logarithm of the machine's change, `variance` that of the shift, `scatter` the factor of 1 or more
    by which intervals are widened."""

    shift: float = 0.0
    variance: float = 0.0
    scatter: float = 1.0

    @classmethod
    def of(cls, changes: Sequence[Difference]) -> "Movement":
        """From the changes of one percentile, malloc's and free's, of the others that are the same in both."""
        shift = median(log(one.ratio) for one in changes)
        known = [(log(one.ratio), one.variance) for one in changes if one.variance]
        if len(known) < 2:
            return cls(shift)
        if sum(change**2 / variance for change, variance in known) <= len(known):
            return UNMOVED
        disagreement = sum((change - shift) ** 2 / variance for change, variance in known) / (len(known) - 1)
        return cls(shift, 1 / sum(1 / variance for _, variance in known), max(1.0, sqrt(disagreement)))

    def beside(self, ratio: float) -> float:
        """A change with the machine's taken off."""
        return ratio / exp(self.shift)

    def bears(self, found: Difference) -> bool:
        """Whether this change is one beside the machine's as well."""
        beside = log(self.beside(found.ratio))
        if abs(beside) <= log(1 + MARGIN) or (beside > 0) != (found.ratio > 1):
            return False
        if found.low is None or found.high is None or not found.variance:
            return True
        return abs(beside) > log(found.high / found.low) / 2 * self._widening(found)

    def shown(self, found: Difference) -> float | None:
        """What ratio would show beside the machine's movement."""
        return found.shows and exp(min(log(found.shows) * self._widening(found), 700.0))

    def _widening(self, found: Difference) -> float:
        return self.scatter * sqrt(1 + self.variance / found.variance) if found.variance else 1.0


UNMOVED = Movement()


def quantile(confidence: float, freedom: float) -> float:
    """The t that so large a share of Student's distribution lies within, both ways."""
    return float(stdtrit(freedom, (1 + confidence) / 2))


def _inverse_trigamma(value: float) -> float:
    """By Newton's method on its inverse, which is nearly straight (Smyth 2004, appendix)."""
    if value < 1e-6:
        return 1 / value
    x = 0.5 + 1 / value
    for _ in range(20):
        trigamma = float(polygamma(1, x))
        x += trigamma * (1 - trigamma / value) / float(polygamma(2, x))
    return x
