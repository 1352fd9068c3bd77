"""Student's t: the interval of a ratio between two groups of repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, lgamma, log, log1p, sqrt
from statistics import mean, variance


@dataclass(frozen=True)
class Group:
    """One figure of each repeat, above 0, and the step in which it was measured."""

    values: Sequence[float]
    step: float

    @property
    def log_mean(self) -> float:
        return mean(log(value) for value in self.values)

    @property
    def log_variance(self) -> float:
        """Of the mean of the logarithms. Never below what rounding to whole steps alone would give."""
        rounding = sum((self.step / value) ** 2 for value in self.values) / len(self.values) / 12
        return max(variance(log(value) for value in self.values), rounding) / len(self.values)


def ratio(base: Group, new: Group, confidence: float) -> tuple[float, float]:
    """The interval of new / base, by Welch's test on logarithms; both groups have at least two values."""
    spread = base.log_variance + new.log_variance
    # Welch and Satterthwaite's degrees of freedom.
    freedom = spread**2 / sum(one.log_variance**2 / (len(one.values) - 1) for one in (base, new)) if spread else 1.0
    middle, half = new.log_mean - base.log_mean, quantile(confidence, round(freedom, 3)) * sqrt(spread)
    return exp(max(middle - half, -700.0)), exp(min(middle + half, 700.0))


@cache
def quantile(confidence: float, freedom: float) -> float:
    """The t that so large a share of the distribution lies within, both ways."""
    low, high = 0.0, 1.0
    while _beyond(high, freedom) > 1 - confidence and high < 1e9:
        high *= 2
    for _ in range(80):
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
