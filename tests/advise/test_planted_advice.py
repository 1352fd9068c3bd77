"""What `blockyard advise` says of the planted scene: each site gets what is right for it, each near miss its proof."""

from pathlib import Path

import pytest
from planted import ALMOST, RIGHT
from the_command import told

RIGHT_SITES = [(kind, name) for kind, names in RIGHT.items() for name in names if kind != "leave"]
ALMOST_SITES = [(kind, name, broken) for kind, names in ALMOST.items() for name, broken in names.items()]


@pytest.fixture(scope="module")
def report(scene: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    return advice(scene, tmp_path_factory.mktemp("advice") / "scene")


def advice(scene: Path, output: Path, *options: str) -> dict:
    return told("advise", scene, "--no-replay", "-o", output, *options)


def about(pieces: list[dict], function: str) -> list[dict]:
    """The pieces with this function in one of their contexts."""

    def names(piece: dict) -> set[str]:
        return {step["function"].split("(")[0] for context in piece["contexts"] for step in context}

    return [piece for piece in pieces if function in names(piece)]


@pytest.mark.parametrize("kind, name", RIGHT_SITES)
def test_a_planted_site_gets_the_right_advice(report, kind, name):
    (piece,) = about(report["advice"], f"{kind}::{name}")
    assert piece["what"] == kind
    assert piece["held"]["broken"] == (1 if kind == "reserve" else 0)


def test_the_right_function_is_named_where_a_wrapper_or_a_scope_matters(report):
    assert about(report["advice"], "pool::new_component")[0]["where"]["function"].startswith("pool::new_component")
    assert about(report["advice"], "temp::draw_label")[0]["where"]["function"].startswith("temp::draw_label")
    path = about(report["advice"], "temp_scope::find_path")[0]["where"]
    assert path["function"].startswith("temp_scope::find_path") and path["file"].endswith("planted.cpp")
    # Another thread's blocks that die within its own frame belong into a scope of its loop.
    assert about(report["advice"], "temp_scope::resample")[0]["where"]["function"].startswith("program::mix")


def test_what_the_c_library_allocates_and_frees_by_itself_is_advised_on_demand_only(report, scene, tmp_path):
    def sorting(found: dict) -> list[dict]:
        return [one for one in found["advice"] if one["where"]["function"].startswith("temp_scope::sort_entities")]

    assert not sorting(report)
    assert any(one["module"].startswith("libc.") for one in report["inside"])
    (sort,) = sorting(advice(scene, tmp_path / "all", "--all"))
    assert sort["what"] == "temp_scope" and sort["contexts"][0][0]["module"].startswith("libc")


def test_a_pool_leaves_the_blocks_of_other_sizes_where_they_are(report):
    (piece,) = about(report["advice"], "pool::make_packet")
    assert (piece["what"], piece["evidence"]["other_sizes"], piece["held"]["broken"]) == ("pool", 45, 0)


def test_a_reserve_covers_99_of_100_lives_and_a_pool_knows_its_size(report):
    assert about(report["advice"], "reserve::record_input")[0]["bytes"] == 4096
    assert about(report["advice"], "reserve::collect_visible")[0]["bytes"] == 2048
    assert about(report["advice"], "pool::new_component")[0]["bytes"] == 48


@pytest.mark.parametrize("kind, name, broken", ALMOST_SITES)
def test_a_near_miss_is_never_advised_without_its_counter_example(report, kind, name, broken):
    (piece,) = about(report["advice"] + report["leave"], f"almost_{kind}::{name}")
    held = piece["held"] if piece["what"] == kind else piece["near_held"]
    assert kind in (piece["what"], piece["near"])
    assert held["broken"] == broken
    assert len(held["counterexamples"]) == min(broken, 10)
    assert all(example["why"] and example["time_ns"] > 0 for example in held["counterexamples"])


@pytest.mark.parametrize("name", RIGHT["leave"])
def test_what_nothing_suits_is_left_alone(report, name):
    assert about(report["advice"], f"leave::{name}") == []
    (piece,) = about(report["leave"], f"leave::{name}")
    assert piece["near"] is None


def test_advice_from_one_half_holds_in_the_other(report):
    assert report["halves"]["precision"] > 0.999
