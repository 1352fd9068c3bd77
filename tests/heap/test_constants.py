"""What bench/heap/constants replaces stands where it looks for it: a constant that was renamed would go unmeasured."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSTANTS = tomllib.loads((ROOT / "bench" / "heap" / "constants.toml").read_text(encoding="utf-8"))["constant"]


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda constant: constant["text"])
def test_text_stands_once_in_its_file(constant: dict) -> None:
    source = (ROOT / "library" / "src" / "heap" / constant["file"]).read_text(encoding="utf-8")

    assert source.count(constant["text"]) == 1
    assert all(instead != constant["text"] for instead in constant["values"].values())
    assert set(constant["on"]) <= {"replay", "threads", "level"}


def test_every_variant_has_a_text_of_its_own() -> None:
    instead = [(each["file"], text) for each in CONSTANTS for text in each["values"].values()]

    assert len(set(instead)) == len(instead)
