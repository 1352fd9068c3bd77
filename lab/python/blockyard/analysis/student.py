"""Student's t: the interval of a ratio between two groups of repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, lgamma, log, log1p, sqrt
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
    """How much the logarithm of a figure varies from repeat to repeat, from several groups together: of each alone a
    few repeats tell little."""

    variance: float
    freedom: float

    @classmethod
    def of(cls, groups: Sequence[Group]) -> "Spread":
        known = [group for group in groups if group.repeats > 1]
        freedom = sum(group.repeats - 1 for group in known)
        squares = sum(group.log_variance * group.repeats * (group.repeats - 1) for group in known)
        return cls(squares / freedom if freedom else 0.0, freedom)


@dataclass(frozen=True)
class Ratio:
    """The ends of the interval of a ratio, and the variance of its logarithm."""

    low: float
    high: float
    variance: float


def ratio(base: Group, new: Group, confidence: float, spread: Spread | None = None) -> Ratio:
    """The interval of new / base, by Welch's test on logarithms; both groups have at least two repeats.

    With a `spread` no group counts as steadier than that, and it lends its degrees of freedom: among eleven allocators
    of three repeats, an effect of x 4 is then found nearly always, not once in three times, and a family of claims is
    wrong as seldom (2 to 7 % in simulations of even, mixed and heavy-tailed noise).
    """
    least = spread.variance if spread else 0.0
    variances = [max(one.log_variance, least / one.repeats) for one in (base, new)]
    total = sum(variances)
    # Welch and Satterthwaite's degrees of freedom.
    welch = total**2 / sum(v**2 / (one.repeats - 1) for v, one in zip(variances, (base, new), strict=True))
    freedom = max(welch, spread.freedom if spread else 0.0)
    middle, half = new.log_value - base.log_value, quantile(confidence, round(freedom, 3)) * sqrt(total)
    return Ratio(exp(max(middle - half, -700.0)), exp(min(middle + half, 700.0)), total)


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
