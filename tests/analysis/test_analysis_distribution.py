"""Percentiles, rates and joins of exact distributions, held against numpy."""

import numpy as np
import pytest

from blockyard.analysis.distribution import SATURATED, Distribution
from blockyard.analysis.latency import P50, P99, P999, P9999, PERCENTILES, Percentile


def of(values: np.ndarray, ticks_per_ns: float = 1.0) -> Distribution:
    return Distribution(*np.unique(values.astype(np.uint32), return_counts=True), ticks_per_ns)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("samples", [10, 997, 100_000])
def test_percentiles_equal_numpys_nearest_rank(seed: int, samples: int) -> None:
    values = np.random.default_rng(seed).pareto(1.1, samples) * 100
    found = of(values)
    for percentile in PERCENTILES:
        share = percentile.numerator / percentile.denominator
        expected = np.quantile(values.astype(np.uint32), share, method="inverted_cdf")
        assert found.at_rank(percentile.rank(samples)) == expected, percentile.label


def test_a_rank_is_exact_where_floating_point_would_round_up() -> None:
    assert Percentile("p7", 7, 100).rank(100) == 7  # 0.07 * 100 is 7.000000000000001


def test_a_percentile_needs_ten_samples_beyond_it() -> None:
    assert of(np.arange(1000)).percentile(P99) is not None
    assert of(np.arange(999)).percentile(P99) is None


def test_unsupported_percentiles_leave_best_and_worst_alone() -> None:
    found = of(np.array([3, 9]))
    assert found.percentile(P50) is None
    assert (found.best.value, found.worst.value) == (3, 9)


def test_ticks_become_nanoseconds() -> None:
    assert of(np.full(100, 26), ticks_per_ns=2.6).percentile(P50).value == pytest.approx(10)


def test_joining_equals_the_distribution_of_all_samples() -> None:
    random = np.random.default_rng(7)
    parts = [random.integers(0, 500, 2000), random.integers(300, 90_000, 3000), np.zeros(0)]
    joined, whole = Distribution.joined(map(of, parts)), of(np.concatenate(parts))
    assert np.array_equal(joined.ticks, whole.ticks) and np.array_equal(joined.counts, whole.counts)


def test_distributions_of_different_ticks_are_not_joined() -> None:
    with pytest.raises(ValueError, match="different ticks"):
        Distribution.joined([of(np.ones(3)), of(np.ones(3), 2.0)])


def test_mean_and_total_weigh_by_count() -> None:
    found = of(np.array([10, 10, 40]), ticks_per_ns=2.0)
    assert found.mean.value == 10


def test_above_counts_what_took_longer_and_not_what_took_as_long() -> None:
    found = of(np.array([1000, 1001, 5000]))
    assert (found.above(999), found.above(1000), found.above(1001), found.above(5000)) == (3, 2, 1, 0)


def test_a_saturated_worst_is_at_least_that_and_so_is_the_mean() -> None:
    found = of(np.array([5, SATURATED]))
    assert found.worst.at_least and found.mean.at_least and not found.best.at_least


def test_an_empty_distribution_has_no_figures() -> None:
    found = of(np.zeros(0))
    assert found.samples == 0 and found.above(1) == 0
    assert found.best is found.worst is found.mean is found.percentile(P999) is found.percentile(P9999) is None
