"""The model of what varies, held against campaigns whose truth is known: how often a whole verdict claims a difference
that is none, how often it finds a planted one, and how wide its intervals are.

Run as a program it prints the table of docs/design/statistics.md."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from blockyard.analysis import noise
from blockyard.analysis.distribution import Distribution
from blockyard.analysis.latency import P50, P999
from blockyard.analysis.noise import Figure, Spread, Verdict


@dataclass(frozen=True)
class World:
    """Of what campaigns are drawn: how much the runs of each allocator vary, and how often a run meets a storm."""

    name: str
    spread: Callable[[np.random.Generator], float]
    """The standard deviation of an allocator's runs, drawn anew for each."""
    storms: float = 0.0
    events: int = 3_500


ALIKE = World("all vary alike", lambda random: 0.15)
APART = World("some vary five times more", lambda random: 0.03 * 5 ** random.random())
STORMS = World("a run in twenty meets a storm", lambda random: 0.1, storms=0.05)
WORLDS = (ALIKE, APART, STORMS)


def level(random: np.random.Generator, world: World, spread: float) -> float:
    """Of one run, beside the others."""
    storm = 1 + 4 * random.random() if random.random() < world.storms else 1.0
    return storm * math.exp(spread * random.standard_normal())


def of_events(random: np.random.Generator, world: World, repeats: int, factor: float) -> tuple[Figure, Figure]:
    """p50 and p99.9 of an allocator's events, through the jackknife of its runs."""
    spread = world.spread(random)
    parts = []
    for _ in range(repeats):
        typical = 200 * level(random, world, spread) * factor
        events = (typical * np.exp(0.5 * random.standard_normal(world.events, np.float32))).astype(np.uint32)
        parts.append(Distribution(*np.unique(events, return_counts=True), 1.0))
    pooled = Distribution.joined(parts)
    without = pooled.without_each(parts, (P50, P999))
    return tuple(
        Figure.of_all(pooled.percentile(one).value, each, 1.0, repeats)
        for one, each in zip((P50, P999), without, strict=True)
    )


def of_runs(random: np.random.Generator, world: World, repeats: int, factor: float) -> Figure:
    """A figure that each run has one of, as its worst frame."""
    spread = world.spread(random)
    return Figure.of_each([1e6 * level(random, world, spread) * factor for _ in range(repeats)], 1.0)


def claims(random: np.random.Generator, world: World, repeats: int, factor: float, allocators: int = 7):
    """Of a verdict on four measures, two of them percentiles of events, each against the first allocator's: which
    differences are claimed that are none, and those of the last, which differs by `factor`."""
    confidence = noise.confidence(4 * (allocators - 1))
    factors = [*[1.0] * (allocators - 1), factor]
    measures = [
        *zip(*(of_events(random, world, repeats, each) for each in factors), strict=True),
        *([of_runs(random, world, repeats, each) for each in factors] for _ in range(2)),
    ]
    wrong, last = 0, []
    for alone in measures:
        base, *others = map(Spread.of(alone).lent, alone)
        differences = [noise.difference(base, one, confidence) for one in others]
        claimed = [one.verdict is not Verdict.INCONCLUSIVE for one in differences]
        wrong += sum(claimed[:-1]) + (claimed[-1] and factor == 1.0)
        last.append(differences[-1])
    return wrong, last


def rates(world: World, repeats: int, campaigns: int, factor: float = 1.0) -> tuple[float, float, float]:
    """The share of verdicts that claim what is not there, the share of the planted differences that are found, and
    the middle change that the runs are said to show."""
    random = np.random.default_rng(7)
    found = [claims(random, world, repeats, factor) for _ in range(campaigns)]
    last = [one for _, each in found for one in each]
    return (
        float(np.mean([wrong > 0 for wrong, _ in found])),
        float(np.mean([one.verdict is not Verdict.INCONCLUSIVE for one in last])),
        float(np.median([one.shows for one in last])),
    )


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
@pytest.mark.parametrize("repeats", [3, 5])
def test_a_verdict_on_allocators_that_are_the_same_claims_something_in_one_of_twenty_at_most(
    world: World, repeats: int
) -> None:
    wrong, _, _ = rates(world, repeats, 300)
    assert wrong <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS[:2], ids=lambda world: world.name)
def test_a_change_as_large_as_runs_are_said_to_show_is_found_two_times_in_three(world: World) -> None:
    _, _, shows = rates(world, 5, 60)
    _, found, _ = rates(world, 5, 60, shows)
    assert found > 0.6


def measured(random: np.random.Generator, value: float, spread: float) -> Figure:
    return Figure.of_each(list(value * np.exp(spread * random.standard_normal(5))), 1e-6)


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    ends = [measured(random, 100, 0.05).interval(0.95) for _ in range(1000)]
    assert 0.93 <= np.mean([low <= 100 <= high for low, high in ends]) <= 0.995


def test_a_tail_of_one_run_alone_has_an_interval_that_says_so() -> None:
    calm = Distribution(np.array([100]), np.array([10_000], np.uint64), 1.0)
    spiky = Distribution(np.array([100, 50_000]), np.array([9_900, 100], np.uint64), 1.0)
    parts = [calm, calm, calm, calm, spiky]
    pooled = Distribution.joined(parts)
    without = pooled.without_each(parts, [P999])[0]
    assert without.tolist() == [50_000] * 4 + [100]
    low, high = Figure.of_all(50_000, without, 1.0, 5).interval(0.95)
    assert low < 100 and high > 50_000


def test_what_all_runs_but_each_give_is_what_sorting_gives() -> None:
    random = np.random.default_rng(4)
    runs = [random.pareto(1.2, 3_000) * 100 // 1 for _ in range(4)]
    parts = [Distribution(*np.unique(run.astype(np.int64), return_counts=True), 1.0) for run in runs]
    for percentile in (P50, P999):
        expected = []
        for place in range(4):
            rest = np.sort(np.concatenate([run for other, run in enumerate(runs) if other != place]))
            expected.append(rest[percentile.rank(len(rest)) - 1])
        assert Distribution.joined(parts).without_each(parts, [percentile])[0].tolist() == expected


@pytest.mark.parametrize("noisy", [0.05, 0.3])
def test_allocators_measured_together_narrow_each_others_intervals_and_a_noisy_one_keeps_its_own(noisy: float) -> None:
    random = np.random.default_rng(2)
    builds, hits, narrower = 250, np.zeros(6), 0
    for _ in range(builds):
        pairs = [(measured(random, 100, each), measured(random, 110, each)) for each in (*[0.05] * 5, noisy)]
        spread = Spread.of([figure for pair in pairs for figure in pair])
        lent = [noise.difference(*map(spread.lent, pair), 0.998) for pair in pairs]
        hits += [one.low <= 1.1 <= one.high for one in lent]
        alone = noise.difference(*pairs[0], 0.998)
        narrower += lent[0].high / lent[0].low < alone.high / alone.low
    assert hits.min() >= builds - 3
    assert noisy > 0.05 or narrower > 0.7 * builds


def test_figures_whose_intervals_do_not_touch_are_a_claim() -> None:
    random = np.random.default_rng(5)
    touching = apart = 0
    for _ in range(300):
        one, other = (measured(random, 100 * factor, 0.1) for factor in (1, 1.0 + random.random()))
        ends = [each.interval(0.99) for each in (one, other)]
        claimed = noise.difference(one, other, 0.99).verdict is not Verdict.INCONCLUSIVE
        if ends[0][1] < ends[1][0] or ends[1][1] < ends[0][0]:
            assert claimed
            assert noise.apart((one.value, *ends[0]), (other.value, *ends[1]))
            apart += 1
        else:
            touching += not claimed
    assert apart > 10 < touching


def test_of_a_lone_run_and_of_a_minimum_over_runs_no_interval_is_known() -> None:
    assert Figure.of_each([3.0], 1.0).interval(0.95) is None
    least = Figure(50.0, 1.0, 5)
    assert least.interval(0.95) is None
    assert noise.difference(Figure(100.0, 1.0, 5), least, 0.95).verdict is Verdict.BETTER
    assert noise.difference(Figure(100.0, 1.0, 2), Figure(50.0, 1.0, 2), 0.95).reason == "too few repeats"


if __name__ == "__main__":
    for world in WORLDS:
        for repeats in (3, 5, 8):
            wrong, _, shows = rates(world, repeats, 400)
            _, found, _ = rates(world, repeats, 200, shows)
            print(
                f"| {world.name} | {repeats} | {wrong * 100:.1f} % | {(shows - 1) * 100:.0f} % | {found * 100:.0f} % |",
                flush=True,
            )
