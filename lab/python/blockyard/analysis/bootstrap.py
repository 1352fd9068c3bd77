"""95 % bootstrap intervals of percentiles, computed as the limit of infinitely many resamples.

Resampled are the repeats, with replacement, and within each the events, with replacement: what differs from one run to
the next (layout, a neighbour on the host) strikes whole repeats, and a tail made by one repeat gets the wide interval
that it deserves. No random numbers are drawn. For one choice of repeats, the number of resampled events above a latency
is binomial, so the chance that the resampled percentile is at or below that latency is known; averaged over all choices
of repeats it is the bootstrap distribution itself. docs/reference/method.md says what follows from that choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from blockyard.analysis.distribution import Distribution, Nanoseconds
from blockyard.analysis.latency import Percentile

CONFIDENCE = 0.95
_MOST_EXACT = 6
"""Up to so many repeats every choice of repeats is weighed (462 of them); beyond, a fixed sample of choices is."""
_CHOICES = 500


@dataclass(frozen=True)
class Sampled:
    """What a percentile was taken from: all samples together, and by repeat. An inherent figure has one repeat."""

    pooled: Distribution
    repeats: tuple[Distribution, ...]


@dataclass(frozen=True)
class Interval:
    """The ends of a percentile's interval, each a latency that occurred."""

    low: Nanoseconds
    high: Nanoseconds


def intervals(
    sampled: Sampled, percentiles: Sequence[Percentile], confidence: float = CONFIDENCE
) -> list[Interval | None]:
    """One a percentile; None where the samples do not support it."""
    ends = ((1 - confidence) / 2, (1 + confidence) / 2)
    wanted = [percentile for percentile in percentiles if percentile.supported(sampled.pooled.samples)]
    found = dict(zip(wanted, _inverse(sampled, wanted, ends), strict=True))
    pooled = sampled.pooled
    return [
        Interval(*(pooled.latency(int(ticks)) for ticks in found[percentile])) if percentile in found else None
        for percentile in percentiles
    ]


def _inverse(sampled: Sampled, percentiles: Sequence[Percentile], probabilities: Sequence[float]) -> np.ndarray:
    """Ticks, [percentile, probability]: the least pooled latency with at least that probability at or below."""
    ticks = sampled.pooled.ticks
    repeats = [repeat for repeat in sampled.repeats if repeat.samples]
    if len(repeats) == 1:
        return repeats[0].ticks_above(_most_above(repeats[0].samples, tuple(percentiles), tuple(probabilities)))
    choices, weights = _choices(len(repeats))
    sizes = np.array([repeat.samples for repeat in repeats], float)
    totals = choices @ sizes
    goals = np.asarray(probabilities, float)[None, :]
    # How many resampled events may lie above the percentile, [choice, percentile].
    allowed = (
        np.stack([np.floor(totals * (p.denominator - p.numerator) / p.denominator + 1e-9) for p in percentiles], axis=1)
        if percentiles
        else np.zeros((len(totals), 0))
    )
    low = np.zeros((len(percentiles), goals.shape[1]), np.int64)
    high = np.full_like(low, len(ticks) - 1)
    while (low < high).any():
        middle = (low + high) // 2
        values = ticks[middle]
        above = np.stack([repeat.above_ticks(values) for repeat in repeats]).astype(float)
        share = np.tensordot(choices, above, 1) / totals[:, None, None]
        chance = np.tensordot(weights, _at_most(allowed[:, :, None], totals[:, None, None], share), 1)
        reached = chance >= goals
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1, high))
    return ticks[low].astype(float)


@lru_cache(maxsize=4096)
def _most_above(samples: int, percentiles: tuple[Percentile, ...], probabilities: tuple[float, ...]) -> np.ndarray:
    """The same where one repeat stands for all, [percentile, probability]: how many of its samples at most may lie
    above that latency. That depends on how many there are and on nothing else, so all allocators share it."""
    allowed = np.array([[samples * (p.denominator - p.numerator) // p.denominator] for p in percentiles], float)
    goals = np.asarray(probabilities, float)[None, :]
    low = np.zeros((len(percentiles), goals.shape[1]), np.int64)
    high = np.full_like(low, samples)
    while (low < high).any():
        middle = (low + high + 1) // 2
        reached = _at_most(allowed, np.float64(samples), middle / samples) >= goals
        low = np.where(reached, middle, low)
        high = np.where(reached, high, middle - 1)
    return low


def over_repeats(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval of the median of figures of which each repeat has one."""
    ordered = np.sort(np.asarray(values, float))
    choices, weights = _choices(len(ordered))
    # Of each choice the lower and the upper median: the places at which half of the draws are reached.
    drawn = np.cumsum(choices, axis=1)
    middles = [(drawn > place).argmax(axis=1) for place in ((len(ordered) - 1) // 2, len(ordered) // 2)]
    medians = (ordered[middles[0]] + ordered[middles[1]]) / 2
    by_value = np.argsort(medians, kind="stable")
    reached = np.cumsum(weights[by_value])
    low, high = (
        medians[by_value[min(int(np.searchsorted(reached, goal - 1e-12)), len(medians) - 1)]]
        for goal in ((1 - confidence) / 2, (1 + confidence) / 2)
    )
    return float(low), float(high)


@cache
def _choices(repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """How often each repeat is drawn, [choice, repeat], and each choice's probability."""
    if repeats <= _MOST_EXACT:
        drawn = [
            np.bincount(choice, minlength=repeats) for choice in combinations_with_replacement(range(repeats), repeats)
        ]
        weights = [factorial(repeats) / np.prod([factorial(count) for count in counts]) for counts in drawn]
        return np.array(drawn, float), np.array(weights) / repeats**repeats
    drawn = np.random.default_rng(1).multinomial(repeats, [1 / repeats] * repeats, _CHOICES)
    return drawn.astype(float), np.full(_CHOICES, 1 / _CHOICES)


def _at_most(count: np.ndarray, total: np.ndarray, share: np.ndarray) -> np.ndarray:
    """P(binomial <= count) by Peizer and Pratt's normal approximation (J. Am. Stat. Assoc. 63, 1968), good to three
    digits for the counts of ten and more that a supported percentile has."""
    p = np.clip(share, 1e-12, 1 - 1e-12)
    q = 1 - p
    distance = (
        count
        + 2 / 3
        - (total + 1 / 3) * p
        + 0.02 * (q / (count + 1) - p / np.maximum(total - count, 0.5) + (q - 0.5) / (total + 1))
    )
    bend = 1 + q * _bend((count + 0.5) / (total * p)) + p * _bend(np.maximum(total - count - 0.5, 0) / (total * q))
    return _normal(distance * np.sqrt(np.maximum(bend, 0) / ((total + 1 / 6) * p * q)))


def _bend(x: np.ndarray) -> np.ndarray:
    beside = 1 - x
    near = np.abs(beside) < 1e-4
    safe = np.where(near, 0.5, np.maximum(x, 1e-300))
    return np.where(near, beside / 3, (1 - safe * safe + 2 * safe * np.log(safe)) / (1 - safe) ** 2)


def _normal(z: np.ndarray) -> np.ndarray:
    """The standard normal distribution by Abramowitz and Stegun's 7.1.26, good to seven digits."""
    x = np.abs(z) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * x)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    upper = 0.5 * series * np.exp(-x * x)
    return np.where(z > 0, 1 - upper, upper)
