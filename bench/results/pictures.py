"""percentiles.png: malloc's latency over percentiles, a panel a journal, Blockyard and its best rivals emphasised."""

import io
from pathlib import Path
from typing import Any

from common import DEFAULTS, OURS, PREFAULTED, Allocator, Campaign, Journal
from PIL import Image

from blockyard.analysis.latency import View
from blockyard.report import style
from blockyard.units import duration

PERCENTILES = ("p50", "p99", "p99.9", "p99.99", "worst")
_COLUMNS = 3
_OURS, _RIVAL, _TLSF = style.LINES[0], style.LINES[1], style.LINES[2]
_LEAST_NS = 5.0
_COLOURS = 64


def draw(campaign: Campaign, folder: Path) -> list[str]:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    rows = -(-len(campaign.journals) // _COLUMNS)
    view = _view(campaign)
    page = style.figure(480 * _COLUMNS, 400 * rows + 60)
    panels = page.subplots(rows, _COLUMNS, sharey=True, squeeze=False).ravel()
    for panel, journal in zip(panels, campaign.journals, strict=False):
        best = _best(journal, view)
        for one in journal.variant(DEFAULTS):
            if one.name not in (OURS, best) and one.name != "tlsf":
                _line(panel, one, view, "#c3c8d0", 1.2, None)
        for one, colour, label in (
            (journal.of("tlsf", PREFAULTED), _TLSF, "tlsf, populated"),
            (journal.of(best) if best else None, _RIVAL, best),
            (journal.of(OURS), _OURS, OURS),
        ):
            if one is not None:
                _line(panel, one, view, colour, 3.2 if one.name == OURS else 2.2, label)
        panel.set_title(journal.title, loc="left", fontsize=14)
        panel.set_yscale("log")
        panel.set_xticks(range(len(PERCENTILES)), PERCENTILES, fontsize=10)
        panel.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: duration(value).replace(".00", "").replace(".0", ""))
        )
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.tick_params(axis="y", labelsize=10)
        panel.grid(color=style.GRID, linewidth=0.8)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=10, frameon=False, loc="upper left")
    for panel in panels[len(campaign.journals) :]:
        panel.set_visible(False)
    page.suptitle(
        f"malloc with its first touch, {view.value}; grey: other allocators in their defaults",
        x=0.01,
        ha="left",
        fontsize=15,
    )
    page.tight_layout(rect=(0, 0, 1, 0.98))
    folder.mkdir(parents=True, exist_ok=True)
    name = "percentiles.png"
    picture = io.BytesIO()
    page.savefig(picture, format="png")
    Image.open(picture).convert("RGB").quantize(_COLOURS).save(folder / name, optimize=True)
    return [name]


def _view(campaign: Campaign) -> View:
    """Attributed, where all that is drawn has it."""
    drawn = [
        one
        for journal in campaign.journals
        for one in [*journal.variant(DEFAULTS), journal.of("tlsf", PREFAULTED)]
        if one is not None
    ]
    known = all(View.ATTRIBUTED.value in one.told["latency"] for one in drawn)
    return View.ATTRIBUTED if known else View.INHERENT


def _best(journal: Journal, view: View) -> str | None:
    """The general-purpose peer with the lowest p99.9."""
    known = [(value, one.name) for one in journal.general if (value := one.value(view, "malloc", "p99.9")) is not None]
    return min(known)[1] if known else None


def _line(panel: Any, one: Allocator, view: View, colour: str, width: float, label: str | None) -> None:
    values = [one.value(view, "malloc", name) for name in PERCENTILES]
    known = [(place, max(value, _LEAST_NS)) for place, value in enumerate(values) if value is not None]
    panel.plot(
        *zip(*known, strict=True),
        color=colour,
        linewidth=width,
        label=label,
        marker="o" if label else None,
        markersize=4,
    )
