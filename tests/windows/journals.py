"""Journals that programs wrote under Wine, read here. `run` calls this: its name keeps it out of other test runs."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from the_command import ROOT, blockyard

BUILD = ROOT / "build" / "windows"
WINE = os.environ["BLOCKYARD_WINE"]


def play(folder: Path, kind: str, end: str) -> tuple[Path, int]:
    """The journal of windows_game, and what its process ended with."""
    program = BUILD / "tests" / "windows" / f"windows_game_{kind}.exe"
    journal = folder / "game.byj"
    # A DLL is looked for beside the program and on the path.
    folders = f"Z:{BUILD}/lab/src/record/windows".replace("/", "\\")
    done = subprocess.run(
        [WINE, program, f"Z:{journal}", end],
        env={**os.environ, "WINEPATH": folders},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert journal.exists(), done.stdout + done.stderr
    return journal, done.returncode


def facts(journal: Path) -> dict:
    done = blockyard("info", journal, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("kind", "end"), [("static", "close"), ("shared", "exit")])
def test_a_journal_holds_what_the_engine_did_and_its_stacks_name_its_functions(tmp_path, kind, end):
    journal, code = play(tmp_path, kind, end)
    assert code == 0
    assert blockyard("check", journal).returncode == 0
    info = facts(journal)
    assert info["allocations"] == 100 * 50 + 100 * 2
    assert info["frees"] == info["allocations"] and info["live_at_end"]["blocks"] == 0
    assert info["kinds"]["frame_mark"] == 100 and info["kinds"]["phase_mark"] == 1
    assert "loader" in {thread["name"] for thread in info["threads"]} and len(info["threads"]) == 2
    done = blockyard("names", journal, "--debug-dir", BUILD / "tests" / "windows")
    assert done.returncode == 0, done.stderr
    stacks = blockyard("sites", journal, "--by", "stack", "--json")
    assert stacks.returncode == 0, stacks.stderr
    for function in ("engine_allocate", "engine_reallocate", "spawn_bullets", "load_textures", "main"):
        assert function in stacks.stdout, stacks.stdout


def test_an_unhandled_fault_loses_nothing(tmp_path):
    journal, _ = play(tmp_path, "static", "crash")
    assert blockyard("check", journal).returncode == 0
    assert facts(journal)["allocations"] == 100 * 50 + 100 * 2


def test_a_process_that_is_ended_from_outside_keeps_what_is_older_than_a_second(tmp_path):
    journal, code = play(tmp_path, "shared", "killed")
    assert code == 9
    assert facts(journal)["allocations"] == 100 * 50 + 100 * 2


def test_replay_and_advise_take_the_journal(tmp_path):
    journal, _ = play(tmp_path, "static", "close")
    done = blockyard("replay", journal, "-a", "null", "--repeats", 1, "-o", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    done = blockyard("advise", journal, "--no-replay", "-o", tmp_path / "advice")
    assert done.returncode == 0, done.stderr
