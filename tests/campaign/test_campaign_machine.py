"""What is said of the machine, and what it is warned of."""

import pytest
from msgspec.structs import replace

from blockyard.campaign import machine
from blockyard.campaign.facts import MachineFacts

QUIET = MachineFacts(cores=8, governor="performance", transparent_huge_pages="madvise", clock="tsc")


def test_a_quiet_machine_gets_no_warning() -> None:
    assert machine.warnings(QUIET, busy=0.01) == []


@pytest.mark.parametrize(
    ("change", "busy", "words"),
    [
        ({}, 1.3, ["busy (1.3 of its 8 cores", "stop what else is running"]),
        ({"governor": "powersave"}, 0.0, ["'powersave'", "cpupower frequency-set -g performance"]),
        ({"transparent_huge_pages": "always"}, 0.0, ["'always'", "echo madvise"]),
        ({"clock": "hpet"}, 0.0, ["'hpet'", "another machine"]),
        ({"cores": 1}, 0.0, ["single core"]),
    ],
)
def test_what_spoils_figures_is_said_with_what_to_do(change: dict[str, object], busy: float, words: list[str]) -> None:
    (sentence,) = machine.warnings(replace(QUIET, **change), busy)
    assert all(word in sentence for word in words)


def test_a_machine_that_does_not_tell_its_governor_is_not_warned_of_it() -> None:
    assert machine.warnings(replace(QUIET, governor="unknown"), busy=0.0) == []


@pytest.mark.parametrize("key", ["cpu", "cores", "kernel", "libc", "transparent_huge_pages", "governor", "virtualised"])
def test_whatever_moves_a_latency_makes_another_kind_of_machine(key: str) -> None:
    here = machine.describe()
    there = getattr(here, key)
    other = replace(here, **{key: not there if isinstance(there, bool) else f"{there} or another"})
    assert machine.kind(other) != machine.kind(here)
    assert len(machine.kind_differences(here, other)) == 1


def test_memory_that_firmware_took_a_bite_of_is_the_same_kind() -> None:
    here = replace(machine.describe(), memory_bytes=16 << 30)
    assert machine.kind(replace(here, memory_bytes=(16 << 30) - (100 << 20))) == machine.kind(here)


def test_two_looks_at_one_machine_agree() -> None:
    assert machine.describe() == machine.describe()
