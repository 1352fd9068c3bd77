"""Bars of block characters: a strip of frames, a column each."""

from collections.abc import Sequence

from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def bars(values: Sequence[int], most: int, rows: int, styles: Sequence[str]) -> list[Text]:
    """Rows from the top down, as wide as there are values; whoever reaches `most` fills a column. What is there at all
    can be seen."""
    lines = []
    for row in reversed(range(rows)):
        line = Text(no_wrap=True)
        for value, style in zip(values, styles, strict=True):
            eighths = min(round(value / most * rows * 8), rows * 8) if most else 0
            eighths = max(eighths, int(value > 0))
            line.append(_EIGHTHS[max(0, min(eighths - row * 8, 8))], style)
        lines.append(line)
    return lines
