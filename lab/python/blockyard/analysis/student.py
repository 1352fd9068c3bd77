"""Student's t: the interval of a ratio between two groups of repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, inf, lgamma, log, log1p, sqrt
from statistics import mean, variance

import numpy as np


@dataclass(frozen=True)
class Group:
    """What some repeats say of a figure above 0: its logarithm, and the variance of that. The variance is never below
    what rounding to whole steps of the measurement alone would give."""

    log_value: float
    log_variance: float
    repeats: int

    @classmethod
    def of_each(cls, values: Sequence[float], step: float) -> "Group":
        """From a value of each repeat: the mean of their logarithms."""
        rounding = sum((step / value) ** 2 for value in values) / len(values) / 12
        spread = max(variance(log(value) for value in values), rounding)
        return cls(mean(log(value) for value in values), spread / len(values), len(values))

    @classmethod
    def of_all(cls, value: float, without: Sequence[float], step: float) -> "Group":
        """From one value of all repeats together, and the value of all but each: the jackknife. A tail percentile of
        all is twice as steady as the mean of each repeat's."""
        count = len(without)
        spread = float(np.var(np.log(without), ddof=1)) * (count - 1) ** 2 / count
        return cls(log(value), max(spread, (step / value) ** 2 / 12 / count), count)


@dataclass(frozen=True)
class Spread:
    """How much the logarithm of a figure varies from repeat to repeat, as several groups tell together: of each alone a
    few repeats tell little. `freedom` says how far to believe it of one group: much where all vary alike, little where
    they differ. It is the prior of G. K. Smyth, Linear Models and Empirical Bayes Methods for Assessing Differential
    Expression in Microarray Experiments (2004), whose moderated t this is."""

    variance: float = 0.0
    freedom: float = 0.0
    most: float = inf
    """The freedom of all groups together."""

    @classmethod
    def of(cls, groups: Sequence[Group]) -> "Spread":
        known = [(one.log_variance * one.repeats, one.repeats - 1) for one in groups if one.repeats > 1]
        if len(known) < 2:
            return ALONE
        most = sum(freedom for _, freedom in known)
        logarithms = [log(variance) - _mean_log_chi2(freedom) for variance, freedom in known]
        # What the logarithms vary beyond a few repeats' chance is what the groups differ.
        beyond = variance(logarithms) - mean(_trigamma(freedom / 2) for _, freedom in known)
        if beyond <= 0:
            return cls(sum(variance * freedom for variance, freedom in known) / most, most, most)
        freedom = min(2 * _inverse_trigamma(beyond), most)
        return cls(exp(mean(logarithms) + _mean_log_chi2(freedom)), freedom, most)

    def moderated(self, group: Group) -> tuple[float, float]:
        """The variance and the freedom of a group among these. Its own variance is never counted as less: shrunk, the
        one noisy allocator among steady ones would be called better or worse by chance."""
        own = group.repeats - 1
        shrunk = (own * group.log_variance * group.repeats + self.freedom * self.variance) / (own + self.freedom)
        return max(group.log_variance, shrunk / group.repeats), min(own + self.freedom, self.most)


ALONE = Spread()
"""Of a group that others tell nothing about."""


@dataclass(frozen=True)
class Ratio:
    """The ends of the interval of a ratio, and the variance of its logarithm."""

    low: float
    high: float
    variance: float


def ratio(base: Group, new: Group, confidence: float, spread: Spread = ALONE) -> Ratio:
    """The interval of new / base, by Welch's test on logarithms; both groups have at least two repeats. A `spread` of
    the groups that were measured with them lends its degrees of freedom."""
    sides = [spread.moderated(one) for one in (base, new)]
    total = sum(variance for variance, _ in sides)
    # Welch and Satterthwaite's degrees of freedom.
    freedom = min(total**2 / sum(variance**2 / freedom for variance, freedom in sides), spread.most)
    middle, half = new.log_value - base.log_value, quantile(confidence, round(freedom, 3)) * sqrt(total)
    return Ratio(exp(max(middle - half, -700.0)), exp(min(middle + half, 700.0)), total)


def _mean_log_chi2(freedom: float) -> float:
    """The mean logarithm of a variance that so many degrees of freedom measure, where the true one is 1."""
    x, step = freedom / 2, freedom / 2000
    return (lgamma(x + step) - lgamma(x - step)) / (2 * step) - log(x)


def _trigamma(x: float) -> float:
    step = x / 1000
    return (lgamma(x + step) - 2 * lgamma(x) + lgamma(x - step)) / step**2


def _inverse_trigamma(value: float) -> float:
    low, high = 1e-3, 1e4
    while high > 1.0001 * low:
        middle = sqrt(low * high)
        low, high = (middle, high) if _trigamma(middle) > value else (low, middle)
    return low


@cache
def quantile(confidence: float, freedom: float) -> float:
    """The t that so large a share of the distribution lies within, both ways."""
    low, high = 0.0, 1.0
    while _beyond(high, freedom) > 1 - confidence and high < 1e9:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, freedom) > 1 - confidence else (low, middle)
    return high


def _beyond(t: float, freedom: float) -> float:
    """The share of Student's distribution beyond t, both ways: the regularised incomplete beta function."""
    x = freedom / (freedom + t * t)
    a, b = freedom / 2, 0.5
    if x >= (a + 1) / (a + b + 2):
        return 1 - _beta(1 - x, b, a)
    return _beta(x, a, b)


def _beta(x: float, a: float, b: float) -> float:
    """I_x(a, b) by its continued fraction (DLMF 8.17.22), which converges fast below (a + 1) / (a + b + 2)."""
    if x <= 0:
        return 0.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    # Lentz's way to evaluate it.
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, 300):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * value
