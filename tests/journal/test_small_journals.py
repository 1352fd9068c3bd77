"""The small journals in the tree are sound, and survive every conversion."""

import json
import subprocess
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


def test_a_pipe_of_text_is_read_as_a_file_is(tmp_path):
    journal = SMALL / "godot-start.byj"
    tool("convert", journal, "-o", tmp_path / "plain.txt", "--plain")
    piped = subprocess.run(f"{native.path('blockyard-journal')} check <(cat {tmp_path / 'plain.txt'}) --json",
                           shell=True, executable="/bin/bash", capture_output=True, text=True, check=True)
    assert json.loads(piped.stdout)["events"] == tool("check", tmp_path / "plain.txt")["events"]
