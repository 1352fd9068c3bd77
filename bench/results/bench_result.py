"""The result file of one part of `make bench`: figures with the machine and the date, in $BLOCKYARD_BUILD/results.

`bench/results/make --collect` takes these files to docs/results/data.
"""

import datetime
import json
import os
from pathlib import Path
from typing import Any

import data
import msgspec
from data import commit, described

from blockyard.campaign import machine


def write(part: str, figures: dict[str, Any]) -> Path:
    """A part that measured only some of its figures keeps the others, where the same tree measured them here."""
    head = {
        "kind": "bench",
        "part": part,
        "measured_at": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": described(msgspec.to_builtins(machine.describe())),
    }
    path = _path(part)
    data.write(path, {**head, "figures": {**measured(part), **figures}})
    return path


def measured(part: str) -> dict[str, Any]:
    """The figures that this tree has measured on this machine so far."""
    path = _path(part)
    old = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    same = old.get("commit") == commit() and old.get("machine") == described(msgspec.to_builtins(machine.describe()))
    return old["figures"] if same else {}


def _path(part: str) -> Path:
    return Path(os.environ["BLOCKYARD_BUILD"]) / "results" / f"{part}.json"
