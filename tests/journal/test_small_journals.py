"""The small journals in the tree are sound, and survive every conversion."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from blockyard import native

SMALL = Path(__file__).resolve().parents[2] / "journals" / "small"
JOURNALS = sorted(path for path in SMALL.iterdir() if path.suffix != ".md")


def tool(*arguments: object) -> dict:
    return json.loads(native.call("blockyard-journal", [*map(str, arguments), "--json"]))


def events_and_header(path: Path) -> dict:
    facts = tool("info", path)
    return {key: value for key, value in facts.items() if key not in ("form", "file_bytes", "bytes_per_event", "notes")}


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: path.name)
def test_is_sound(journal):
    assert tool("check", journal)["violations"] == 0


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: path.name)
@pytest.mark.parametrize("form", ["txt", "txt.zst", "txt.gz", "byj"])
def test_keeps_every_fact_through(journal, form, tmp_path):
    tool("convert", journal, "-o", tmp_path / f"there.{form}")
    tool("convert", tmp_path / f"there.{form}", "-o", tmp_path / "back.byj")
    assert events_and_header(tmp_path / "back.byj") == events_and_header(journal)
    assert tool("check", tmp_path / "back.byj")["violations"] == 0


@pytest.mark.parametrize("journal", [path for path in JOURNALS if path.suffix == ".byj"], ids=lambda path: path.name)
def test_takes_at_most_five_bytes_an_event(journal):
    assert tool("info", journal)["bytes_per_event"] <= 5


def checked_through_a_pipe(path):
    line = f"{native.path('blockyard-journal')} check <(cat {path}) --json"
    return subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=False)


def test_a_byj_through_a_pipe_is_refused_with_the_reason():
    piped = checked_through_a_pipe(SMALL / "godot-start.byj")
    assert piped.returncode == 1
    assert "is a pipe" in piped.stderr


def peak_kib(*command: object) -> int:
    """Resident memory of a program at its peak. A process of its own starts it: the kernel counts what a process held
    before it became the program, and the one that runs the tests may hold hundreds of MiB."""
    starter = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    started = [sys.executable, "-c", starter, *map(str, command)]
    return int(subprocess.run(started, capture_output=True, text=True, check=True).stdout)


def test_memory_does_not_grow_with_the_journal(tmp_path):
    """Two million events with one live block at a time need a few megabytes; held at once they would take 150."""
    text = tmp_path / "long.txt"
    with text.open("w") as lines:
        for number in range(1, 1_000_001):
            address = f"{number % 1000 * 16 + 16:X}"
            lines.write(f"a 64 {address} 7 {2 * number}\nf {address} 7 {2 * number + 1}\n")
    tool("convert", text, "-o", tmp_path / "long.byj")
    for verb in (["info"], ["check"], ["cut", "-o", tmp_path / "cut.byj"], ["convert", "-o", tmp_path / "back.txt"]):
        peak = peak_kib(native.path("blockyard-journal"), verb[0], tmp_path / "long.byj", *verb[1:])
        assert peak < 64 * 1024, f"{verb[0]} needed {peak} KiB"
