"""Bars of block characters: a strip of frames, a column each."""

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def _cell(value: int, most: int, rows: int, row: int) -> str:
    eighths = min(round(value / most * rows * 8), rows * 8) if most else 0
    return _EIGHTHS[max(0, min(max(eighths, int(value > 0)) - row * 8, 8))]


def bars(values: Sequence[int], most: int, rows: int, styles: Sequence[str]) -> list[Text]:
    """Rows from the top down, as wide as there are values; whoever reaches `most` fills a column. What is there at all
    can be seen."""
    lines = []
    for row in reversed(range(rows)):
        line = Text(no_wrap=True)
        for style, columns in groupby(zip(values, styles, strict=True), key=lambda column: column[1]):
            line.append("".join(_cell(value, most, rows, row) for value, _ in columns), style)
        lines.append(line)
    return lines
