"""How often a gate is wrong, on repeats that were measured: three allocators on a second of a game, eight identical
campaigns, on a virtual machine of two cores that ten other processes kept busy."""

import gate_repeats
import pytest
from gate_repeats import Repeats

from blockyard.analysis import gate

LIMIT = gate.parse("p99.9:25%")
TWICE = 1 + 2 * LIMIT.limit


@pytest.fixture(scope="module")
def repeats() -> Repeats:
    return gate_repeats.stored()


def test_a_build_that_changed_nothing_passes_and_one_slower_by_twice_the_limit_fails(repeats: Repeats) -> None:
    found = gate_repeats.rates(repeats, gate_repeats.drawn(repeats, 8, each=5), (LIMIT,), TWICE)
    assert found.false == 0
    assert found.caught / found.slower > 0.6


@pytest.mark.slow
def test_identical_campaigns_measured_one_after_another_pass(repeats: Repeats) -> None:
    found = gate_repeats.rates(repeats, gate_repeats.whole(repeats), (LIMIT,), TWICE)
    assert (found.false, found.unchanged) == (0, 56)


@pytest.mark.slow
def test_at_most_one_unchanged_build_in_200_fails_and_most_slow_ones_do(repeats: Repeats) -> None:
    found = gate_repeats.rates(repeats, gate_repeats.drawn(repeats, 200, each=8), (LIMIT,), TWICE)
    assert found.false / found.unchanged <= 1 / 200
    assert found.caught / found.slower > 0.8


def test_a_tighter_limit_on_the_same_repeats_is_not_held_against_an_unchanged_build(repeats: Repeats) -> None:
    """The limit alone keeps most false alarms away from a wide gate; of a narrow one the repeats must."""
    narrow = gate.parse("p99.9:1%")
    found = gate_repeats.rates(repeats, gate_repeats.drawn(repeats, 12, each=10, seed=2), (narrow,), 1.0)
    assert (found.false, found.caught) == (0, 0)
