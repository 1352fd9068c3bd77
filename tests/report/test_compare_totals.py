"""Gates on what all calls together take."""

from pathlib import Path

import numpy as np
import pytest
from compare_lab import compare
from synthetic import Campaign, known_rows

MS = 1_000_000
NAMES = ("one", "two", "three", "four")


def campaign(folder: Path, seed: int, slower: float = 1.0, everything: float = 1.0) -> Path:
    """Five repeats of four allocators that take 50 ms, 1 % more or less; `slower` times as much on the first."""
    random = np.random.default_rng(seed)
    made = Campaign(folder, [*NAMES, "null"], repeats=5, totals=True)
    for repeat in range(1, 6):
        for name in (*NAMES, "null"):
            made.run(name, known_rows(1, slower=seed), repeat)
            own = 0 if name == "null" else 50 * everything * (slower if name == "one" else 1)
            made.bursts(name, [(5, 0, int((5 + own * random.normal(1, 0.01)) * MS))], repeat)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return campaign(tmp_path_factory.mktemp("base") / "base", 1)


def test_a_gate_on_the_total_fails_for_the_allocator_that_takes_more(base: Path, tmp_path: Path) -> None:
    found = compare(base, campaign(tmp_path / "new", 2, slower=1.15), "--gate", "total:5%")
    assert found.code == 3
    assert found.failed() == [("total:5%", "one", "all calls")]


@pytest.mark.parametrize("everything", [1.0, 1.2])
def test_the_same_total_passes_also_on_a_slower_machine(base: Path, tmp_path: Path, everything: float) -> None:
    found = compare(base, campaign(tmp_path / "new", 3, everything=everything), "--gate", "total:5%")
    assert found.code == 0, found.text
    assert "all calls together" in found.text


def test_a_total_of_one_operation_is_refused(base: Path) -> None:
    found = compare(base, base, "--gate", "malloc/total:5%")
    assert found.code == 1 and "and total" in found.error
