"""A project of Godot 3 that loads the GDNative library has its frames, phases and tags in a recording."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import the_command
from recorded import record

ROOT = Path(__file__).parents[2]
GODOT = ROOT / "integrations" / "godot3"
STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fvisibility=hidden"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("godot3-server") is None:
        pytest.skip("NOT TESTED: integrations/godot3; install godot3-server")
    folder = tmp_path_factory.mktemp("godot") / "project"
    shutil.copytree(GODOT / "project", folder)
    library = folder / "libblockyard_godot.so"
    source = GODOT / "blockyard_godot.c"
    include = f"-I{ROOT / 'library' / 'include'}"
    subprocess.run(["cc", *STRICT, "-shared", "-fPIC", "-O2", include, source, "-o", library], check=True)
    return folder


@pytest.fixture(scope="module")
def journal(project: Path) -> Path:
    path = project.parent / "godot.byj"
    record(path, "godot3-server", "--path", str(project), HOME=str(project.parent))
    return path


def said(command: str, journal: Path, *options: str) -> dict[str, Any]:
    return the_command.told(command, *options, journal)


def test_each_frame_of_the_engine_and_each_phase_of_a_script_is_marked(journal: Path) -> None:
    kinds = said("info", journal)["kinds"]
    assert (kinds["frame_mark"], kinds["phase_mark"]) == (30, 2)


def test_what_a_script_tags_is_told_apart_and_leaks_nothing(journal: Path) -> None:
    sites = {site["tag"]: site for site in said("sites", journal, "--by", "tag")["sites"]}
    assert set(sites) == {"", "ai"}
    assert sites["ai"]["allocations"] > 30 * 100
    assert sites["ai"]["end_blocks"] == 0


def test_without_a_recorder_the_project_runs_as_before(project: Path) -> None:
    line = ["godot3-server", "--path", project]
    environment = {**the_command.environment(), "HOME": str(project.parent)}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "SCRIPT ERROR" not in done.stdout + done.stderr
