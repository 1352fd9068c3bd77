"""The journal that `make demo` replays is what it is said to be: a game's, with threads, frames and realloc."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from blockyard import native

JOURNALS = Path(__file__).parents[2] / "journals"
BUNDLED = JOURNALS / "godot-shooter.byj"


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    return json.loads(native.call("blockyard-journal", ["info", BUNDLED, "--json"]))


def test_the_bundled_journal_has_no_violation():
    assert json.loads(native.call("blockyard-journal", ["check", BUNDLED, "--json"]))["events"] > 0


def test_the_bundled_journal_shows_what_a_journal_can_hold(facts):
    assert facts["recorder"].startswith("blockyard record")
    assert sum(thread["allocations"] > 0 for thread in facts["threads"]) > 1
    assert facts["frames"]["marked"]
    for kind in ("allocate_zeroed", "allocate_aligned", "reallocate", "frame_mark"):
        assert facts["kinds"][kind] > 0, kind
    assert facts["remote_frees"] > 0
    assert facts["preamble"]["blocks"] > 0
    assert BUNDLED.stat().st_size <= 6_000_000


def test_the_document_beside_it_has_its_figures(facts):
    said = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\d", (JOURNALS / "README.md").read_text())}
    kinds = facts["kinds"]
    assert {
        BUNDLED.stat().st_size,
        *(facts[name] for name in ("events", "allocations", "frees", "remote_frees", "max_live_bytes")),
        *(facts["preamble"][name] for name in ("blocks", "bytes")),
        *(kinds[name] for name in ("reallocate", "allocate_zeroed", "allocate_aligned", "frame_mark")),
    } <= said
