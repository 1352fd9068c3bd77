"""Writing files whole or not at all."""

from collections.abc import Callable
from pathlib import Path


def whole(path: Path, write: Callable[[Path], object]) -> None:
    """Has `write` fill a file beside `path`, then renames it: half a file never has the final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    try:
        write(partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
