"""Real games' journals: a plan has the figures that stand beside them, and allocators keep their promises on them."""

import json
import os
import re
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest
from replay_lab import plan, replaying
from the_command import success

from blockyard import allocators

ROOT = Path(__file__).resolve().parents[2]
JOURNALS = Path(os.environ.get("BLOCKYARD_JOURNALS", ROOT.parent / "shared" / "journals"))
NAMES = ["godot", "supertux", "warzone2100", "wesnoth", "zeroad"]


def journal(name: str) -> Path:
    path = JOURNALS / f"{name}.journal.zst"
    if not path.is_file():
        message = f"THE JOURNAL {name} WAS NOT PLANNED: {path} is missing; set BLOCKYARD_JOURNALS"
        warnings.warn(message, stacklevel=1)
        pytest.skip(message)
    return path


def listed(name: str) -> dict[str, str]:
    text = (JOURNALS / f"{name}.md").read_text(encoding="utf-8").split("## This file")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE))


def number(text: str) -> int:
    return int(re.sub(r"\D.*", "", text.replace(",", "")))


def test_a_plan_is_the_same_with_and_without_call_stacks(tmp_path: Path) -> None:
    lines = ["a 16 A0 7 0", "a 32 B0 7 10", "f A0 7 20"]
    stacks = ["# blockyard journal text 1", "# name tag", "# address - 10", "# node - 0"]
    made = []
    for name, text in (
        ("without", "\n".join(lines)),
        ("with", "\n".join(stacks + [f"# tag 1\n# site 0\n{line}" for line in lines])),
    ):
        (tmp_path / f"{name}.txt").write_text(text + "\n")
        success(plan(tmp_path / f"{name}.txt", tmp_path / name))
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_has_the_journals_figures(name: str, tmp_path: Path) -> None:
    done = success(plan(journal(name), tmp_path / "plan", "--events-dir", str(tmp_path)))
    facts, wanted = json.loads(done.stdout), listed(name)
    assert facts["events"] == number(wanted["lines"])
    assert facts["blocks"] == number(wanted["mallocs"])
    assert facts["measured_events"] == facts["events"] - facts["preamble_blocks"]
    assert facts["threads"] - facts["idle_threads"] == number(wanted["threads"])
    assert facts["remote_frees"] == number(wanted["frees on another thread"])
    assert facts["peak_blocks"] == number(wanted["max live blocks"])
    assert f"{facts['peak_bytes'] / 1e6:.1f}" == wanted["max live bytes"].split()[0]
    assert facts["slots"] <= facts["peak_blocks"] * 1.1 + 10_000, (
        "the slot table is about as long as the most blocks alive"
    )
    pair = np.load(tmp_path / "pairs.npy")
    paired = pair != 4294967295
    assert int(paired.sum()) == 2 * number(wanted["frees"]), "each free has its allocation, and that has its free"
    events = np.flatnonzero(paired)
    assert (pair[pair[events]] == events).all()


@pytest.mark.parametrize("choice", allocators.resolve("all"), ids=lambda choice: choice.name)
def test_every_allocator_keeps_contents_and_alignment_in_a_real_program(
    choice: allocators.Choice, tmp_path: Path
) -> None:
    if choice.base == "null":
        pytest.skip("null gives every block the same memory: THERE IS NOTHING TO VERIFY")
    if choice.missing:
        pytest.skip(f"THE ALLOCATOR {choice.name} WAS NOT VERIFIED, it is missing here: {choice.missing}")
    success(plan(journal("zeroad"), tmp_path / "plan", "--from", "3", "--to", "3.5"))
    given = {"allocator": choice.name, "verify": True, "options": choice.options, "populate": choice.populate}
    command = replaying(tmp_path / "plan", tmp_path / "out", choice.adapter, **given)
    made = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **choice.environment}
    )
    assert made.returncode == 0, made.stderr
