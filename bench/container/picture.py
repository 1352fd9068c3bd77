"""Draws each ratio that is judged as a bar beside the line that it is to stay under."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FURTHEST = 2.0
"""A bar beyond is cut off, and its figure tells."""


def draw(path: Path, sections: Sequence[tuple[str, Sequence[tuple[str, float, float]]]], note: str) -> None:
    """A panel for each section; its rows are text, ratio and what that is to be at most."""
    sys.path.insert(0, str(ROOT / "lab" / "python"))
    try:
        from matplotlib.figure import Figure
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        from blockyard.report import style
    except ImportError as error:
        raise SystemExit(f"blockyard: a picture needs {error.name}: run with PYTHON=.venv/bin/python") from error
    met, missed = "#0072b2", "#d55e00"
    rows = [len(lines) for _, lines in sections]
    figure = Figure(figsize=(12, 0.30 * sum(rows) + 0.62 * len(rows) + 1.5), dpi=style.PIXELS_PER_INCH)
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False, height_ratios=[count + 0.6 for count in rows])
    for panel, (title, lines) in zip(panels[:, 0], sections, strict=True):
        places = range(len(lines))
        panel.barh(
            places,
            [min(ratio, FURTHEST) for _, ratio, _ in lines],
            height=0.68,
            color=[met if ratio <= at_most else missed for _, ratio, at_most in lines],
        )
        for place, (_, ratio, at_most) in zip(places, lines, strict=True):
            panel.plot([at_most, at_most], [place - 0.46, place + 0.46], color=style.INK, linewidth=2.2)
            panel.text(max(min(ratio, FURTHEST), at_most) + 0.015, place, f"{ratio:.2f}", va="center", fontsize=10)
        panel.set_yticks(places, [text for text, _, _ in lines], fontsize=10)
        panel.set_ylim(len(lines) - 0.4, -0.6)
        panel.set_xlim(0, FURTHEST + 0.12)
        panel.set_title(title, loc="left", fontsize=12, color=style.INK)
        panel.grid(axis="x", color=style.GRID, linewidth=0.8)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1, 0].set_xlabel(
        "our CPU time (or bytes) over the peer's, medians of processes that took turns", fontsize=11
    )
    figure.legend(
        handles=[
            Patch(color=met, label="within its aim"),
            Patch(color=missed, label="missed"),
            Line2D([], [], color=style.INK, linewidth=2.2, label="the aim: at most"),
        ],
        loc="upper right",
        ncols=3,
        fontsize=11,
        frameon=False,
    )
    figure.text(0.01, 0.004, note, fontsize=9, color=style.FAINT)
    figure.tight_layout(rect=(0, 0.012, 1, 1 - 0.32 / figure.get_figheight()))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
