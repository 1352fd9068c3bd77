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


def libraries() -> list[Library]:
    """Raises UserError, in one sentence with what to do, where the build could not have them."""
    folder = native.folder(_FOLDER)
    missing = folder / "missing.txt" if folder else None
    if folder is None or (missing and missing.is_file()) or not (folder / "uPlot.iife.min.js").is_file():
        reason = missing.read_text(encoding="utf-8").strip() if missing and missing.is_file() else \
            "this blockyard was built without the libraries of the report's page"
        raise UserError(f"--html is not possible: {reason}")
    return [Library("uPlot", _text(folder / "uPlot.version").strip(), _text(folder / "uPlot.iife.min.js"),
                    _text(folder / "uPlot.min.css"), _text(folder / "uPlot.LICENSE"))]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
