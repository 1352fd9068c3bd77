"""Durations are told in units that a person reads, by the terminal and by the page alike."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from blockyard.units import duration, length, moment, span

WORDS = Path(__file__).parents[2] / "lab/python/blockyard/report/page/static/words.js"
TOLD = [
    (0, "0 ns"),
    (8.456, "8.46 ns"),
    (999.4, "999 ns"),
    (999.5, "1.00 us"),
    (45.6e6, "45.6 ms"),
    (2.1e9, "2.10 s"),
    (119.4e9, "119 s"),
    (119.5e9, "2:00 min"),
    (313532.6e6, "5:14 min"),
    (3599.4e9, "59:59 min"),
    (3600e9, "1:00 h"),
    (4330e9, "1:12 h"),
]


def test_a_range_says_its_unit_once_where_its_ends_share_it() -> None:
    assert [span(duration(low), duration(high)) for low, high in ((1.37e6, 20.6e6), (842e3, 1.37e6), (5, 5))] == [
        "1.37 to 20.6 ms",
        "842 us to 1.37 ms",
        "5.00 ns",
    ]


@pytest.mark.parametrize("ns, words", TOLD)
def test_a_duration_has_the_unit_of_its_size(ns: float, words: str) -> None:
    assert duration(ns) == words


def test_the_page_says_the_same() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("THERE IS NO node: WHAT THE PAGE SAYS WAS NOT TESTED")
    # Not imported: node before 20.19 takes a .js for no module where no package.json says that it is one.
    script = WORDS.read_text() + f"console.log(JSON.stringify({json.dumps([ns for ns, _ in TOLD])}.map(duration)));"
    done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [words for _, words in TOLD]


def test_a_place_in_a_journal_is_in_seconds_as_from_and_to_take_it() -> None:
    assert [moment(ns) for ns in (0, 45.64e9, 313.53e9, 4330e9)] == ["0 ns", "45.6 s", "313.5 s", "4330.0 s"]
    assert [length(ns) for ns in (45.6e9, 313.53e9, 5e6)] == ["45.6 s", "5:14 min (313.5 s)", "5.00 ms"]
