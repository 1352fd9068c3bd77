"""Writing files whole or not at all."""

from collections.abc import Callable
from pathlib import Path

PARTIAL = ".partial"


def whole(path: Path, write: Callable[[Path], object]) -> None:
    """Has `write` fill a file beside `path`, then renames it: half a file never has the final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL)
    try:
        write(partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def whole_text(path: Path, text: str) -> None:
    """The same of a text that is there already."""
    whole(path, lambda partial: partial.write_text(text, encoding="utf-8"))
