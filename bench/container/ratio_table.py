"""The ratios as a table of a document, between two marks that stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BEGIN = "<!-- written by bench/container/run --document -->"
END = "<!-- end of what is written -->"


@dataclass(frozen=True)
class Row:
    """A ratio cold and warm, beside what it is to be at most; or, with a title alone, what the next rows are about."""

    title: str
    beside: str = ""
    at_most: float | None = None
    cold: float | None = None
    warm: float | None = None

    def text(self) -> str:
        if self.at_most is None:
            return f"| **{_plain(self.title)}** | | | | |"
        ratios = [self._cell(self.cold), self._cell(self.warm)]
        return "| " + " | ".join([_plain(self.title), _plain(self.beside), f"{self.at_most:.2f}", *ratios]) + " |"

    def _cell(self, value: float | None) -> str:
        if value is None or self.at_most is None:
            return ""
        return f"{value:.2f}" if value <= self.at_most else f"**{value:.2f}**"


def _plain(text: str) -> str:
    """Not read as markup: List<int>."""
    return text.replace("<", "\\<")


def write(path: Path, rows: Sequence[Row], processes: str) -> None:
    text = path.read_text()
    if BEGIN not in text or END not in text.split(BEGIN)[1]:
        raise SystemExit(f"blockyard: {path} lacks the marks between which ratios are written: {BEGIN} and {END}")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    head = f"Medians of {processes} processes a figure; what is above its aim is bold.\n"
    table = ["| | beside | aim | cold | warm |", "|---|---|---|---|---|", *(row.text() for row in rows)]
    lines = [BEGIN, head, *table, "", END]
    path.write_text(before + "\n".join(lines) + after)
