"""`blockyard --help` teaches the command: every verb, what it does, and an example of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def blockyard_help() -> str:
    done = subprocess.run(
        [sys.executable, "-m", "blockyard", "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "lab" / "python"), "COLUMNS": "80"},
    )
    return done.stdout


def test_help_shows_every_verb_with_an_example_below_it():
    verbs = {path.stem.replace("_", "-") for path in (ROOT / "lab/python/blockyard/commands").glob("[a-z]*.py")}
    shown = dict(re.findall(r"^  ([a-z-]+) +\S.*\n +(\S.*)$", blockyard_help().partition("Commands")[2], re.MULTILINE))
    assert set(shown) == verbs
    for verb, example in shown.items():
        assert f"blockyard {verb} " in example


def test_help_fits_80_columns():
    assert max(map(len, blockyard_help().splitlines())) <= 80
