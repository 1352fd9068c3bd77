"""Each rule of our prose finds a planted violation, and leaves plain English alone."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pages
import pytest

ROOT = pages.ROOT
VALE = shutil.which("vale", path=str(ROOT / ".venv" / "bin"))
pytestmark = pytest.mark.skipif(VALE is None, reason="Vale is not there: make lint and make docs install it")


def rules(folder: Path, text: str, name: str = "docs/guide/page.md") -> set[str]:
    page = folder / name
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text + "\n")
    done = subprocess.run(
        [str(VALE), "--config", str(ROOT / "scripts" / "docs" / "vale.ini"), "--output", "JSON", name],
        cwd=folder,
        env={**os.environ, "DICPATH": "/usr/share/hunspell"},
        capture_output=True,
        text=True,
        check=False,
    )
    alerts = [alert for each in json.loads(done.stdout).values() for alert in each]
    # The gate looks at nothing else.
    assert done.returncode == any(alert["Severity"] == "error" for alert in alerts)
    return {alert["Check"].removeprefix("Blockyard.") for alert in alerts}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("Idioms", "The slab is carved anew."),
        ("Idioms", "Blocks freed lately come first."),
        ("Idioms", "It puts the block at hand."),
        ("Idioms", "The thread is told of it."),
        ("Idioms", "Besides, it is fast."),
        ("Idioms", "Large and small blocks are alike."),
        ("Idioms", "It thereby saves a lock."),
        ("Idioms", "It takes 400 faults a second."),
        ("Idioms", "It costs 12 bytes an element."),
        ("Idioms", "Give it a thread of one's own."),
        ("History", "The ratio was 1.39 before."),
        ("History", "It used to take a lock."),
        ("History", "It was measured on 23 November."),
        ("Organisation", "This closes issue 23."),
        ("Organisation", "In this session the heap grew."),
        ("Organisation", "One evening it was slower."),
        ("Organisation", "The aim is 1.2."),
        ("Terms", "The favoured variant is faster."),
        ("Terms", "A granule has 16 KiB."),
        ("Terms", "Use a heap of its own."),
        ("Terms", "Each room has tests."),
        ("Repetition", "It takes the the lock."),
        ("Spelling", "It alocates a block."),
        ("Spelling", "The color is red."),
        ("SentenceLength", " ".join(["The block goes back"] * 8) + "."),
        ("Figures", "It took 1, 2, 3, 4, 5, 6 or 7 steps."),
        ("Parentheses", "A block (of a slab (its own) here) is free."),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, rule: str, text: str) -> None:
    assert rule in rules(tmp_path, text)


def test_words_of_the_heap_are_judged_in_its_pages_only(tmp_path: Path) -> None:
    text = "The row of the table is wide."
    assert "HeapTerms" in rules(tmp_path, text, "docs/design/heap.md")
    assert rules(tmp_path, text, "docs/guide/report.md") == set()


@pytest.mark.parametrize(
    "text",
    [
        "Nothing can be told apart at the median.",
        "Run it a second time; a second compiler must agree.",
        "It takes a second.",
        "There is room for one more block.",
        "`favoured` and `at hand` are code here.",
        "The janitor populates 4 MiB per second.",
        "A freed block goes back to its slab until then.",
    ],
)
def test_plain_english_is_left_alone(tmp_path: Path, text: str) -> None:
    assert rules(tmp_path, text) == set()
