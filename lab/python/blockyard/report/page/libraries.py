"""The libraries that the page carries: fetched at build (cmake/BlockyardPage.cmake), never at run time."""

from dataclasses import dataclass
from pathlib import Path

from blockyard import native
from blockyard.errors import UserError

_FOLDER = "page"


@dataclass(frozen=True)
class Library:
    name: str
    version: str
    script: str
    style: str
    licence: str


def missing() -> str | None:
    """Why the build has none, with what to do; None where it has them."""
    folder = native.folder(_FOLDER)
    if folder and (folder / "missing.txt").is_file():
        return _text(folder / "missing.txt").strip()
    if folder is None or not (folder / "uPlot.iife.min.js").is_file():
        return "this blockyard was built without the libraries of the report's page; build it with 'make build'"
    return None


def libraries() -> list[Library]:
    """Raises UserError where the build could not have them."""
    folder = native.folder(_FOLDER)
    if reason := missing():
        raise UserError(f"--html is not possible: {reason}")
    assert folder is not None
    return [
        Library(
            "uPlot",
            _text(folder / "uPlot.version").strip(),
            _text(folder / "uPlot.iife.min.js"),
            _text(folder / "uPlot.min.css"),
            _text(folder / "uPlot.LICENSE"),
        )
    ]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
