"""The planted scene does what it says: what its sites allocate lives as long as their namespaces promise."""

from pathlib import Path

import pytest
from planted import ALMOST, RIGHT
from the_command import told

FRAMES = 450


@pytest.fixture(scope="module")
def sites(scene: Path) -> dict[str, dict]:
    helpers = r"filled|written|Growing|copy_text|new_component"
    return {site["function"]: site for site in told("sites", scene, "--limit", 0, "--skip", helpers)["sites"]}


def freed_in_another_frame(site: dict) -> int:
    return site["freed"] - site["freed_same_frame"]


def test_every_planted_function_allocates(sites):
    wrappers = {"pool::new_component", "temp::copy_text"}
    planted = {f"{kind}::{name}" for kind, names in RIGHT.items() for name in names} - wrappers
    planted |= {f"almost_{kind}::{name}" for kind, names in ALMOST.items() for name in names}
    assert planted <= {name.removesuffix("()") for name in sites}


def test_temp_dies_in_its_frame_and_almost_temp_does_with_exceptions(sites):
    for name in ("temp::visible_nodes()", "temp::draw_label()", "temp_scope::find_path()", "keep::draw_interface()"):
        assert freed_in_another_frame(sites[name]) == 0, name
    assert freed_in_another_frame(sites["almost_temp::queue_event()"]) == ALMOST["temp"]["queue_event"]
    assert freed_in_another_frame(sites["almost_temp::build_mesh()"]) == ALMOST["temp"]["build_mesh"]
    assert freed_in_another_frame(sites["almost_keep::draw_map()"]) == ALMOST["keep"]["draw_map"]


def test_a_scope_is_left_before_the_frame_ends(sites):
    path, script = sites["temp_scope::find_path()"], sites["almost_temp_scope::run_script()"]
    assert (
        path["shared_function"] == "temp_scope::find_path()" and path["freed_shared"] == path["freed"] == 300 * FRAMES
    )
    assert script["shared_function"] == "almost_temp_scope::run_script()"
    assert script["freed"] - script["freed_shared"] == ALMOST["temp_scope"]["run_script"]


def test_jobs_cross_frames(sites):
    for name in ("temp_job::decode_samples()", "temp_job::meter_levels()", "almost_temp_job::stream_chunk()"):
        assert sites[name]["freed_same_frame"] == 0, name
