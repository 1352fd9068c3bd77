"""Two campaigns side by side: a planted change is found, and two measurements of the same thing are not told apart."""

import re
from pathlib import Path
from typing import Any

import pytest
from compare_lab import ALLOCATORS, campaign, compare
from synthetic import Campaign


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "base"
    campaign(folder, seed=0)
    return folder


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_campaigns_of_the_same_thing_are_not_called_different(base: Path, tmp_path: Path, seed: int) -> None:
    campaign(tmp_path / "new", seed=seed)
    found = compare(base, tmp_path / "new", "--gate", "p99.9:5%")
    assert found.code == 0, found.text
    assert found.verdicts(*ALLOCATORS) == {"inconclusive"}
    assert (found.facts["counts"]["better"], found.facts["counts"]["worse"]) == (0, 0)


def test_a_planted_slowdown_of_ten_percent_is_found_and_nothing_else(base: Path, tmp_path: Path) -> None:
    campaign(tmp_path / "new", seed=4, slower={"mine": 1.1})
    found = compare(base, tmp_path / "new", "--gate", "malloc/p99:5%")
    assert found.code == 3
    claim = found.claim("mine", "malloc", "p99")
    assert claim["verdict"] == "worse"
    change = claim["views"]["as-run"]
    assert change["low"] < 1.1 < change["high"]
    assert change["low"] > 1.02
    assert found.verdicts("glibc", "jemalloc", "mimalloc", "null") == {"inconclusive"}
    assert found.failed() == [("malloc/p99:5%", "mine", "malloc")]


def test_an_improvement_is_called_better_and_passes_every_gate(base: Path, tmp_path: Path) -> None:
    campaign(tmp_path / "new", seed=5, slower={"mine": 0.8})
    found = compare(base, tmp_path / "new", "--gate", "p50:1%", "--gate", "p99:1%")
    assert found.code == 0
    assert found.claim("mine", "malloc", "p99")["verdict"] == "better"
    assert found.claim("mine", "free", "p99")["verdict"] == "better"


def test_a_machine_on_which_everything_is_slower_is_not_held_against_any_allocator(base: Path, tmp_path: Path) -> None:
    campaign(tmp_path / "new", seed=6, drift=1.15)
    found = compare(base, tmp_path / "new", "-a", "glibc,jemalloc,mimalloc,mine")
    assert found.verdicts(*ALLOCATORS) == {"inconclusive"}
    assert found.claim("mine", "malloc", "p99")["reason"] == "the others moved as much"


def test_the_others_tell_that_the_machine_moved_also_where_one_allocator_is_asked_for(
    base: Path, tmp_path: Path
) -> None:
    campaign(tmp_path / "new", seed=6, drift=1.15)
    found = compare(base, tmp_path / "new", "-a", "mine", "--gate", "p99:5%")
    assert found.code == 0
    assert {claim["allocator"] for claim in found.facts["sections"][0]["claims"]} == {"mine"}
    claim = found.claim("mine", "malloc", "p99")
    assert (claim["verdict"], claim["reason"]) == ("inconclusive", "the others moved as much")
    assert claim["views"]["as-run"]["beside"] == pytest.approx(1.0, abs=0.03)


def test_a_change_stands_out_from_a_machine_that_moved(base: Path, tmp_path: Path) -> None:
    campaign(tmp_path / "new", seed=7, drift=1.15, slower={"mine": 1.3})
    found = compare(base, tmp_path / "new")
    assert found.claim("mine", "malloc", "p99")["verdict"] == "worse"
    assert found.verdicts("glibc", "jemalloc", "mimalloc") == {"inconclusive"}
    assert any(note.startswith("null, which calls no allocator, is not the same in both") for note in found.notes)


def test_with_no_others_to_compare_with_null_tells_that_the_machine_moved(base: Path, tmp_path: Path) -> None:
    campaign(tmp_path / "new", seed=8, drift=1.3, allocators=("mine", "null"))
    found = compare(base, tmp_path / "new")
    assert found.verdicts("mine") == {"inconclusive"}
    assert found.claim("mine", "malloc", "p99")["reason"] == "null moved as well"


def of_mine(folder: Path, slower: float, **settings: Any) -> list[Campaign]:
    """`base` and `new` of one allocator alone."""
    return [
        campaign(folder / name, seed=seed, allocators=("mine",), slower={"mine": factor}, **settings)
        for name, seed, factor in (("base", 0, 1.0), ("new", 1, slower))
    ]


def test_too_few_samples_are_inconclusive_and_say_so(tmp_path: Path) -> None:
    of_mine(tmp_path, 3.0, events=2_000)
    found = compare(tmp_path / "base", tmp_path / "new")
    assert found.claim("mine", "malloc", "p99.99")["reason"] == "too few samples"
    assert found.claim("mine", "malloc", "p50")["verdict"] == "worse"
    for table in re.split(r"\n(?=\S.*: NEW against BASE)", found.text)[1:]:
        assert ("(...) inconclusive" in table) == bool(re.search(r"\([+-]", table)), table


def test_two_repeats_prove_nothing(tmp_path: Path) -> None:
    of_mine(tmp_path, 2.0, events=4_000, repeats=2)
    found = compare(tmp_path / "base", tmp_path / "new", "--gate", "p50:5%")
    assert found.verdicts("mine") == {"inconclusive"}
    assert {one["words"].partition(":")[0] for one in found.facts["gates"]} == {"fewer than 3 repeats"}
    assert found.code == 3  # a gate that can't be judged does not pass


def test_an_allocator_that_looks_for_causes_is_judged_by_attributed(tmp_path: Path) -> None:
    for made in of_mine(tmp_path, 1.3, events=10_000):
        for repeat in range(1, 6):
            file = made.folder("mine", repeat) / "run.json"
            file.write_text(file.read_text().replace('"status"', '"looking": {"source": "perf"}, "status"', 1))
    found = compare(tmp_path / "base", tmp_path / "new")
    claim = found.claim("mine", "malloc", "p99")
    assert next(iter(claim["views"])) == "attributed"
    assert claim["verdict"] == "worse"
