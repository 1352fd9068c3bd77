"""Bootstrap intervals, held against resampling done by drawing."""

from math import comb

import numpy as np
import pytest

from blockyard.analysis import bootstrap
from blockyard.analysis.bootstrap import Sampled
from blockyard.analysis.distribution import Distribution
from blockyard.analysis.latency import P50, P99, P999, P9999, Percentile


def of(values: np.ndarray) -> Distribution:
    return Distribution(*np.unique(values.astype(np.uint32), return_counts=True), 1.0)


def sampled(*repeats: np.ndarray) -> Sampled:
    return Sampled(of(np.concatenate(repeats)), tuple(of(repeat) for repeat in repeats))


def drawn(repeats: list[np.ndarray], percentile: Percentile, draws: int) -> np.ndarray:
    """The percentile of resamples: repeats with replacement, and of each its events with replacement."""
    random = np.random.default_rng(5)
    found = []
    for _ in range(draws):
        chosen = [repeats[place] for place in random.integers(len(repeats), size=len(repeats))]
        resample = np.sort(np.concatenate([random.choice(repeat, len(repeat)) for repeat in chosen]))
        found.append(resample[percentile.rank(len(resample)) - 1])
    return np.sort(found)


@pytest.mark.parametrize("percentile", [P50, P99])
@pytest.mark.parametrize("count", [1, 3])
def test_an_interval_is_what_drawing_resamples_gives(percentile: Percentile, count: int) -> None:
    random = np.random.default_rng(11)
    repeats = [random.exponential(1000 * (1 + repeat / 5), 2000).astype(int) for repeat in range(count)]
    found = drawn(repeats, percentile, 4000)
    interval = bootstrap.intervals(sampled(*repeats), [percentile])[0]
    for end, place in ((interval.low, 0.025), (interval.high, 0.975)):
        near = np.interp([place - 0.008, place + 0.008], np.linspace(0, 1, len(found)), found)
        assert near[0] <= end.value <= near[1]


def test_of_one_repeat_the_chance_is_the_binomial_one() -> None:
    """Whether p99 of 1500 lies at or below a value with k samples above it: at most 15 of a resample lie above."""
    for above in (8, 12, 15, 20, 30):
        p = above / 1500
        exact = sum(comb(1500, k) * p**k * (1 - p) ** (1500 - k) for k in range(16))
        found = bootstrap._at_most(np.array([15.0]), np.array([1500.0]), np.array([p]))[0]
        assert found == pytest.approx(exact, abs=2e-3)


def test_a_tail_of_one_repeat_alone_has_an_interval_that_says_so() -> None:
    calm = np.full(10_000, 100)
    spiky = np.concatenate([np.full(9_900, 100), np.full(100, 50_000)])
    interval = bootstrap.intervals(sampled(calm, calm, calm, calm, spiky), [P999])[0]
    assert (interval.low.value, interval.high.value) == (100, 50_000)


def test_a_percentile_lies_within_its_interval() -> None:
    values = sampled(*(np.random.default_rng(seed).pareto(1.2, 30_000) * 100 for seed in range(5)))
    for percentile, interval in zip((P50, P99, P999), bootstrap.intervals(values, (P50, P99, P999)), strict=True):
        assert interval.low.value < values.pooled.percentile(percentile).value < interval.high.value


def test_an_unsupported_percentile_has_no_interval() -> None:
    assert bootstrap.intervals(sampled(np.arange(5000)), [P99, P9999])[1] is None


def test_many_repeats_are_handled_by_a_fixed_sample_of_choices() -> None:
    values = sampled(*(np.random.default_rng(seed).integers(0, 1000, 2000) for seed in range(12)))
    first, again = (bootstrap.intervals(values, [P99])[0] for _ in range(2))
    assert first == again and 980 <= first.low.value < first.high.value <= 995


def test_the_median_of_one_figure_a_repeat_has_the_interval_that_drawing_gives() -> None:
    values = [3.0, 9.0, 1.0, 4.0, 7.0]
    random = np.random.default_rng(3)
    drawn_medians = np.sort([np.median(random.choice(values, 5)) for _ in range(20_000)])
    assert bootstrap.over_repeats(values) == (drawn_medians[500], drawn_medians[19_499])
    assert bootstrap.over_repeats([2.0]) == (2.0, 2.0)
    low, high = bootstrap.over_repeats([float(value) for value in range(9)])  # too many for every choice
    assert 0 <= low < 4 < high <= 8
