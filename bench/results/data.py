"""The files of docs/results/data, from which pages are written. They are laid out so that a diff shows what changed."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_MACHINE = ("cpu", "cores", "memory_bytes", "kernel", "distribution", "libc", "transparent_huge_pages", "virtualised")
_WIDTH = 118


def commit() -> str | None:
    """Of the tree that measures, with a `+` where what is measured was changed since; None outside of a clone."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "library", "lab", "bench"], check=False)
    return f"{head.stdout.strip()}{'+' if changed.returncode else ''}" if head.returncode == 0 else None


def described(machine: dict[str, Any]) -> dict[str, Any]:
    """What a page tells of a machine; of the kernel its version, without what a builder appends."""
    found = {key: machine.get(key) for key in _MACHINE}
    version = re.match(r"[\d.]+", str(found["kernel"] or ""))
    return {**found, "kernel": version[0].rstrip(".") if version else None}


def write(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(document, 0) + "\n", encoding="utf-8")


def _text(value: object, depth: int) -> str:
    """On one line where it fits, else a line an entry."""
    line = json.dumps(value)
    if len(line) + depth <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    entries = (
        [f"{json.dumps(key)}: {_text(inner, depth + 1)}" for key, inner in value.items()]
        if isinstance(value, dict)
        else [_text(inner, depth + 1) for inner in value]
    )
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    indent = " " * (depth + 1)
    return f"{opening}\n{indent}" + f",\n{indent}".join(entries) + f"\n{' ' * depth}{closing}"
