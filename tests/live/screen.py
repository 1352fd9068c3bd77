"""A Textual screen as text, out of the picture that Textual exports."""

import html
import re

_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)"[^>]*clip-path="url\(#[^)]*-line-(\d+)\)">([^<]*)</text>')
_CELL_WIDTH = 12.2


def text_of(app) -> list[str]:
    """Its rows, without blanks at their ends; without those in which nothing stands."""
    rows: dict[int, str] = {}
    for x, row, text in sorted(_TEXT.findall(app.export_screenshot()), key=lambda one: (int(one[1]), float(one[0]))):
        plain = html.unescape(text).replace("\xa0", " ")
        rows[int(row)] = rows.get(int(row), "").ljust(round(float(x) / _CELL_WIDTH)) + plain
    return [row.rstrip() for _, row in sorted(rows.items()) if row.strip()]
