"""How every picture looks: light background, large labels, colours that all eyes can tell apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from PIL import Image
from scipy.optimize import isotonic_regression

from blockyard.files import whole

INK = "#1d2330"
FAINT = "#6b7280"
GRID = "#d9dde3"
MINOR_GRID = "#eef0f3"
NULL_COLOUR = "#8a8f98"
OTHERS = "#b4bac4"
"""Of those that a picture shows for comparison alone: line and mark; their names are FAINT, to be read."""

# Okabe and Ito's set without its yellow (too pale on white), then darker and lighter relatives; lines are labelled
# directly and differ in dash as well, so that no picture depends on colour alone.
LINES = "#0072b2 #d55e00 #009e73 #b3478f #56a5d8 #c78a00 #1b3a6b #7a2e00 #00594a #6a4c93 #a0522d #3f7d20".split()

# Size runs from indigo over teal and amber to crimson: along blue to yellow, which colour-blind eyes keep apart.
_SIZE_ANCHORS = ((4, "#2b3a9b"), (6, "#2f7fd0"), (10, "#2fae9f"), (15, "#dfa200"), (20, "#e2571e"), (26, "#8e1b3a"))

PIXELS_PER_INCH = 100
_MARGIN = 28
_SMALLEST = 6.0
_FOOT_LETTERS = 178
"""So many letters of 11.5 points fill the width of a picture."""
matplotlib.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "font.size": 15,
        "axes.edgecolor": FAINT,
        "axes.linewidth": 1.0,
        **dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
        "svg.fonttype": "path",
        "svg.hashsalt": "blockyard",
        "axes.titlesize": 18,
        "path.simplify_threshold": 0.5,
        "hatch.linewidth": 0.7,
        "hatch.color": "#ffffff",
    }
)


@dataclass(frozen=True)
class Sheet:
    """Where a picture goes, what stands around it, and as what it is written."""

    target: Path
    title: str
    subtitle: str
    caption: str
    formats: Sequence[str] = (".png", ".svg")


@dataclass(frozen=True)
class Look:
    """How one allocator is drawn in a picture of several. `emphasised` ones are brought out."""

    name: str
    colour: str
    emphasised: bool
    is_null: bool

    @property
    def ink(self) -> str:
        """Of its name."""
        return self.colour if self.emphasised or self.is_null else FAINT

    @property
    def weight(self) -> str:
        return "bold" if self.emphasised else "normal"

    @property
    def words(self) -> dict[str, Any]:
        """How its name is written."""
        return {"fontsize": 14, "fontweight": self.weight, "color": self.ink}

    @property
    def line(self) -> dict[str, Any]:
        """How its line is drawn: emphasised ones lie above the others."""
        return {"color": self.colour, "linewidth": 2.8 if self.emphasised else 1.4, "zorder": self.layer}

    @property
    def layer(self) -> int:
        return 4 if self.emphasised else 2


def colour(place: int) -> str:
    return LINES[place % len(LINES)]


def size_colours(steps: int = 256) -> np.ndarray:
    """RGB for log2(size) from 4 to 26 in equal steps, shape (steps, 3)."""
    at = np.linspace(_SIZE_ANCHORS[0][0], _SIZE_ANCHORS[-1][0], steps)
    places = [place for place, _ in _SIZE_ANCHORS]
    anchors = np.array([to_rgb(name) for _, name in _SIZE_ANCHORS])
    return np.stack([np.interp(at, places, anchors[:, channel]) for channel in range(3)], axis=1)


SIZE_RANGE = (_SIZE_ANCHORS[0][0], _SIZE_ANCHORS[-1][0])


def figure(width: int, height: int) -> Figure:
    """A figure of that many pixels."""
    return Figure(figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH), dpi=PIXELS_PER_INCH, facecolor="white")


def axes(page: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at pixels from the lower left corner."""
    whole_width, whole_height = page.get_size_inches() * PIXELS_PER_INCH
    made = page.add_axes((left / whole_width, bottom / whole_height, width / whole_width, height / whole_height))
    made.set_axisbelow(True)
    for side in ("top", "right"):
        made.spines[side].set_visible(False)
    return made


def put(page: Figure, x: float, y: float, words: str, **style: object) -> Text:
    """Text at pixels from the lower left corner."""
    whole_width, whole_height = page.get_size_inches() * PIXELS_PER_INCH
    return page.text(x / whole_width, y / whole_height, words, **style)


def subtitle(page: Figure, from_top: float, words: str, width: float | None = None) -> Text:
    """Below the title, its last line so many pixels below the upper edge; smaller where a line would not fit into the
    width (to the right margin by default)."""
    whole_width, whole_height = page.get_size_inches() * PIXELS_PER_INCH
    made = put(page, _MARGIN, whole_height - from_top, words, fontsize=15, color=FAINT, linespacing=1.5)
    pen, room = FigureCanvasAgg(page).get_renderer(), width or whole_width - 2 * _MARGIN
    # Step by step: letters are fitted to pixels, so that their width is not in proportion to their size.
    while made.get_window_extent(pen).width > room and made.get_fontsize() > _SMALLEST:
        made.set_fontsize(made.get_fontsize() - 0.25)
    return made


def foot(page: Figure, caption: str) -> Text:
    """The circumstances at the lower edge, smaller where a line would not fit."""
    longest = max(map(len, caption.splitlines()))
    size = min(11.5, 11.5 * _FOOT_LETTERS / longest)
    return put(page, 28, 16, caption, fontsize=size, color=FAINT, linespacing=1.5)


def finish(page: Figure, sheet: Sheet, from_top: tuple[float, float]) -> list[Path]:
    """Title and subtitle so many pixels below the upper edge, the caption at the lower, and all of it written."""
    height = page.get_size_inches()[1] * PIXELS_PER_INCH
    put(page, _MARGIN, height - from_top[0], sheet.title, fontsize=22, fontweight="bold")
    subtitle(page, from_top[1], sheet.subtitle)
    foot(page, sheet.caption)
    return save(page, sheet.target, sheet.formats)


class Furniture:
    """The pixels of what several pictures on one page have in common, once the first of them was drawn."""

    def __init__(self) -> None:
        self._pixels: object = None

    def draw(self, page: Figure, own: Sequence[Artist]) -> np.ndarray:
        """RGBA of the page. `own`: the artists of this picture alone, which nothing else covers, in their order."""
        canvas = FigureCanvasAgg(page)
        if self._pixels is None:
            for artist in own:
                artist.set_visible(False)
            canvas.draw()
            self._pixels = canvas.copy_from_bbox(page.bbox)
            for artist in own:
                artist.set_visible(True)
        canvas.restore_region(self._pixels)
        for artist in own:
            artist.draw(canvas.get_renderer())
        return np.asarray(canvas.buffer_rgba())


_PNG = {"compress_level": 1}
"""Six takes half as long again for a tenth of the size."""
_SVG = {"Date": None}


def save(
    page: Figure,
    target: Path,
    formats: Sequence[str] = (".png", ".svg"),
    furniture: Furniture | None = None,
    own: Sequence[Artist] = (),
) -> list[Path]:
    """Writes TARGET.png and TARGET.svg; with `furniture`, of which this picture has all but its `own`, sooner."""

    def write(path: Path, suffix: str) -> None:
        if suffix == ".png" and furniture is not None:
            inches = (PIXELS_PER_INCH, PIXELS_PER_INCH)
            Image.fromarray(furniture.draw(page, own)).save(path, "png", dpi=inches, **_PNG)
        elif suffix == ".png":
            page.savefig(path, format="png", dpi=PIXELS_PER_INCH, pil_kwargs=_PNG)
        else:
            page.savefig(path, format="svg", dpi=PIXELS_PER_INCH, metadata=_SVG)

    written = []
    for suffix in formats:
        path = target.with_name(target.name + suffix)
        whole(path, lambda partial, suffix=suffix: write(partial, suffix))
        written.append(path)
    return written


def latency_label(ns: float) -> str:
    """Of a decade on an axis: `1 ns`, `10 us`, `100 ms`."""
    units = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))
    unit, scale = next((pair for pair in units if ns < pair[1] * 999), units[-1])
    return f"{ns / scale:g} {unit}"


def lower_edge(step_ns: float, least_ns: float = 0.0) -> float:
    """Where a latency axis begins: at a decade below the least latency, or below a quarter of the clock's step."""
    if least_ns > 0:
        return float(10 ** np.floor(np.log10(max(least_ns, 1.0))))
    quarter = max(step_ns / 4, 1.0)
    decade = 10 ** np.floor(np.log10(quarter))
    return float(decade * max(step for step in (1, 2, 5) if decade * step <= quarter))


def latency_axis(axis: Axes, low_ns: float, high_ns: float, step_ns: float, horizontal: bool = False) -> None:
    """A logarithmic axis of time with a gridline and a label at every decade, faint lines at 2 to 9.

    Where it begins below the clock's step, its end is labelled as what it shows: less than a step.
    """
    decades = 10.0 ** np.arange(np.floor(np.log10(low_ns)), np.ceil(np.log10(high_ns)) + 1)
    decades = decades[(decades >= low_ns * 0.999) & (decades <= high_ns * 1.001)]
    minors = (decades[:, None] * np.arange(2, 10)).ravel()
    (axis.set_xscale if horizontal else axis.set_yscale)("log")
    (axis.set_xlim if horizontal else axis.set_ylim)(low_ns, high_ns)
    scale = axis.xaxis if horizontal else axis.yaxis
    below = low_ns * 2 <= step_ns
    decades = decades[decades >= step_ns * 0.999] if below else decades
    scale.set_major_locator(FixedLocator([low_ns, *decades] if below else decades))
    scale.set_minor_locator(NullLocator())
    scale.set_major_formatter(
        FuncFormatter(
            lambda value, _: (
                f"<{latency_label(float(f'{step_ns:.3g}'))}" if below and value < step_ns / 2 else latency_label(value)
            )
        )
    )
    scale.grid(True, "major", color=GRID, linewidth=1.1)
    scale.set_tick_params("both", length=0)
    # One collection: as minor ticks these lines would take longer to draw than eleven million points.
    minors = minors[(minors > low_ns) & (minors < high_ns)]
    span, transform = (0, 1), axis.get_xaxis_transform() if horizontal else axis.get_yaxis_transform()
    (axis.vlines if horizontal else axis.hlines)(
        minors, *span, colors=MINOR_GRID, linewidth=0.8, zorder=0, transform=transform
    )


def name_rows(axis: Axes, looks: Sequence[Look]) -> None:
    """The names beside rows; those of emphasised ones stand out."""
    for label, look in zip(axis.get_yticklabels(), looks, strict=True):
        label.set_color(FAINT if look.is_null else look.colour if look.emphasised else INK)
        label.set_fontweight(look.weight)


_MARK = 9
"""Half the width of a mark that must not be covered."""


def beside(
    marks: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    bounds: tuple[float, float, float, float],
) -> list[tuple[float, float]]:
    """Lower left corners of names beside their marks, such that none covers another or a mark, within the bounds
    (left, bottom, right, top) where that can be had; the nearest place to each mark, in their order."""
    taken = [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in marks]
    found = []
    for (x, y), (width, height) in zip(marks, sizes, strict=True):
        steps = sorted(range(-12, 13), key=lambda step: (abs(step), -step))
        tried = [
            (left, y - height / 2 + step * height * 0.6)
            for step in steps
            for left in (x + _MARK + 5, x - _MARK - 5 - width)
        ]
        free = (
            corner
            for corner in tried
            if bounds[0] <= corner[0]
            and corner[0] + width <= bounds[2]
            and bounds[1] <= corner[1]
            and corner[1] + height <= bounds[3]
            and not any(
                corner[0] < box[2] and box[0] < corner[0] + width and corner[1] < box[3] and box[1] < corner[1] + height
                for box in taken
            )
        )
        corner = next(free, tried[0])
        taken.append((*corner, corner[0] + width, corner[1] + height))
        found.append(corner)
    return found


def say(axis: Axes, x: float, y: float, words: str, **look: object) -> Text:
    """Text at a place in the panel's own fractions."""
    return axis.text(x, y, words, transform=axis.transAxes, **look)


def name_panel(axis: Axes, name: str, y: float, colour: str = INK) -> None:
    say(axis, 0.0, y, name, fontsize=17, fontweight="bold", color=colour)


def label_ends(axis: Axes, ends: Sequence[tuple[Look, float]], gap: float, top: float, x: float) -> list[float]:
    """Allocators' names beside the panel, none on another, with lines that lead to them from the ends of their curves;
    and their places. All in the panel's own fractions."""
    places = spread([height for _, height in ends], gap, 0.0, top)
    for (look, height), place in zip(ends, places, strict=True):
        pen = {"transform": axis.transAxes, "color": look.colour, "linewidth": 1.1, "clip_on": False}
        axis.plot([x, x + 0.009, x + 0.018], [height, place, place], **pen)
        say(axis, x + 0.022, place, look.name, va="center", **look.words)
    return places


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places for labels as near as can be to where they are wanted, no two nearer than `gap`, all within low..high."""
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    nearest = isotonic_regression(np.asarray(wanted, float)[order] - steps).x if len(wanted) else steps
    places = np.empty(len(wanted))
    places[order] = np.clip(nearest, low, high - gap * (len(wanted) - 1)) + steps
    return places.tolist()
