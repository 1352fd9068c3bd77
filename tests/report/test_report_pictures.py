"""Pictures by their pixels: they are there, in size, show what was measured, and let an outlier be seen."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image
from synthetic import FREE, LOOKING, Campaign, latencies, lifelike, lifelike_campaign

from blockyard.analysis.latency import View
from blockyard.analysis.phases import Phase, Phases
from blockyard.report import curves, frame_pictures, scatter, style
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

SPIKE_EVENT = 30_000


def game() -> tuple[np.ndarray, np.ndarray]:
    """Eleven seconds, in the fifth of which nothing happens."""
    base, pair = lifelike(60_000, seconds=10)
    base["start"][base["start"] >= 4 * 10**9] += np.uint64(10**9)
    return base, pair


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of two allocators; one malloc in the middle of `spiky` takes 20 ms."""
    campaign = Campaign(tmp_path_factory.mktemp("pictures"), ["calm", "spiky"], repeats=2)
    base, pair = game()
    for name in ("calm", "spiky"):
        made = latencies(base, 1.0, 0.0, 1001)
        made["call"] = np.minimum(made["call"], 2000)
        if name == "spiky":
            made["kind"][SPIKE_EVENT], made["call"][SPIKE_EVENT] = 0, 40_000_000
            made["start"][SPIKE_EVENT] = made["start"][SPIKE_EVENT - 1]
        for repeat in (1, 2):
            campaign.run(name, made, repeat)
    campaign.events(pair)
    build(campaign.directory, options=ReportOptions(everything=True))
    return campaign.directory / "report" / "game" / "1x-page"


def pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def plot(path: Path) -> np.ndarray:
    """The density's own part of a scatter."""
    left, top, width, height = scatter.FRAME
    return pixels(path)[top : top + height, left : left + width]


def saturated_colour(image: np.ndarray) -> np.ndarray:
    """Where there is colour: grid, text and ground are grey or nearly so."""
    return image.max(axis=2) - image.min(axis=2) > 40


@pytest.mark.parametrize("allocator", ["calm", "spiky"])
@pytest.mark.parametrize("operation", ["malloc", "free"])
@pytest.mark.parametrize("view", ["as-run", "inherent"])
def test_a_density_scatter_has_colour_where_events_are_and_nowhere_else(
    drawn: Path, allocator: str, operation: str, view: str
) -> None:
    path = drawn / f"{allocator}-{operation}-{view}.png"
    assert pixels(path).shape == (scatter.HEIGHT, scatter.WIDTH, 3)
    rows = np.load(drawn.parents[2] / "runs" / "game" / allocator / "1x-page" / "1" / "samples.npy")
    mine = rows["start"][(rows["kind"] == FREE) == (operation == "free")]
    expected = np.zeros(scatter.COLUMNS, bool)
    expected[(mine / (rows["start"].max() * 1.001) * scatter.COLUMNS).astype(int)] = True
    coloured = saturated_colour(plot(path)).reshape(-1, scatter.COLUMNS, scatter.CELL).any(axis=(0, 2))
    beside = np.convolve(expected, np.ones(9), "same") > 0  # a mark is some cells wide
    assert coloured[expected].all() and not coloured[~beside].any()
    assert not beside.all()


def in_colour(path: Path, colour: str) -> np.ndarray:
    return (pixels(path) == np.round(255 * np.array(to_rgb(colour)))).all(axis=2)


def pixels_of(path: Path, colour: str) -> int:
    return int(in_colour(path, colour).sum())


@pytest.mark.parametrize("view", ["as-run", "inherent"])
def test_a_spike_ends_its_line_above_the_others_and_its_row_further_right(drawn: Path, view: str) -> None:
    path = drawn / f"percentiles-{view}.png"
    calm, spiky = (np.flatnonzero(in_colour(path, colour).any(axis=1)).min() for colour in style.LINES[1:3])
    assert spiky < calm - 100
    # Of malloc the worst events, of calm above and of spiky below.
    rows, columns = np.nonzero(in_colour(drawn / f"comparison-{view}.png", style.LINES[1])[100:, 200:850])
    upper = rows < rows.mean()
    assert columns[~upper].min() > columns[upper].max() + 100


@pytest.mark.parametrize("asked, coloured", [((), 2), (("e",), 3), (("d", "e"), 4)])
def test_of_many_allocators_the_programs_own_the_best_and_those_named_are_brought_out(
    tmp_path: Path, asked: tuple[str, ...], coloured: int
) -> None:
    names = [("glibc", 1.0, 1.0), ("b", 1.0, 0.5), ("c", 1.0, 2.0), ("d", 1.0, 3.0), ("e", 1.0, 4.0)]
    campaign = lifelike_campaign(tmp_path / "r", names, 20_000, 2, 2.0)
    build(campaign.directory, options=ReportOptions(allocators=asked))
    picture = tmp_path / "r" / "report" / "game" / "1x-page" / "percentiles-attributed.png"
    shown = [colour for colour in style.LINES if pixels_of(picture, colour) > 100]
    assert shown == list(style.LINES[:coloured]) and pixels_of(picture, style.OTHERS) > 100


def test_few_allocators_are_all_in_colour(drawn: Path) -> None:
    assert pixels_of(drawn / "percentiles-as-run.png", style.OTHERS) == 0


def test_one_repeat_has_no_pictures_of_its_least(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    base, pair = lifelike(2_000, seconds=1)
    campaign.run("one", latencies(base, 1.0, 0.0, 1))
    campaign.events(pair)
    build(campaign.directory, options=ReportOptions(everything=True))
    folder = campaign.directory / "report" / "game" / "1x-page"
    assert {"one-malloc-as-run", "comparison-as-run"} <= {path.stem for path in folder.glob("*.png")}
    assert not list(folder.glob("*inherent*"))


def test_a_picture_is_the_same_whatever_was_drawn_before_it_in_its_frame(tmp_path: Path) -> None:
    from blockyard.analysis.distribution import Distribution
    from blockyard.analysis.passes import MARK, Bins

    def content(name: str, seed: int) -> scatter.Scatter:
        random = np.random.default_rng(seed)
        counts = random.integers(0, 3, (scatter.ROWS, scatter.COLUMNS)).astype(np.uint32)
        marks = np.zeros(5, MARK)
        marks["time"], marks["ticks"] = random.integers(0, 10**9, 5), random.integers(10**4, 10**6, 5)
        marks["cause"][:2] = 8
        found = Distribution(np.array([10 + seed, 10**6]), np.array([10**6, 10**3]), 1.0)
        return scatter.Scatter(
            style.Sheet(tmp_path / name, name, "words", "circumstances"),
            Bins(counts, np.full(counts.shape, 6, np.float32), marks),
            found,
            (0.0, 1.0),
            (1.0, 1e7),
            1.0,
        )

    first, second = content("first", 1), content("second", 2)
    scatter._stage.cache_clear()
    scatter.draw(second)
    alone = pixels(tmp_path / "second.png")
    scatter._stage.cache_clear()
    for one in (first, second):
        scatter.draw(one)
    assert (pixels(tmp_path / "second.png") == alone).all()
    assert (pixels(tmp_path / "first.png") != alone).any()


def test_a_lone_outlier_is_a_visible_mark_where_it_happened(drawn: Path) -> None:
    spiky, calm = plot(drawn / "spiky-malloc-as-run.png"), plot(drawn / "calm-malloc-as-run.png")
    upper = slice(0, scatter.FRAME[3] // 6)  # above 2 ms, where nothing else is
    mark = (spiky[upper] != calm[upper]).any(axis=2)
    assert np.count_nonzero(mark) >= 30, "a mark of at least 30 pixels"
    row, column = (np.mean(axis) for axis in np.nonzero(mark))
    starts = game()[0]["start"]
    across = starts[SPIKE_EVENT] / starts[-1]
    assert column / scatter.FRAME[2] == pytest.approx(across, abs=0.02)
    assert row < scatter.FRAME[3] * 0.1  # 20 ms of 1 ns to 50 ms


def test_density_is_darker_where_more_events_are() -> None:
    from blockyard.analysis.passes import MARK, Bins

    counts = np.array([[0, 1, 10, 1000]], np.uint32)
    image = scatter.shades(Bins(counts, np.full((1, 4), 6, np.float32), np.zeros(0, MARK)))[0]
    brightness = image[:, :3].sum(axis=1).tolist()
    assert image[0, 3] == 0 and brightness[1] > brightness[2] > brightness[3]


def test_hue_tells_sizes_apart_without_red_and_green() -> None:
    colours = style.size_colours()
    # As an eye without the green cone sees them (Vienot, Brettel and Mollon 1999).
    seen = (colours**2.2) @ np.array([[0.33066, 0.33066, -0.02786], [0.66934, 0.66934, 0.02786], [0, 0, 1]])
    steps = [round((place - 4) / 22 * 255) for place in (4, 10, 15, 20, 26)]
    distances = [np.linalg.norm(seen[a] - seen[b]) for a, b in pairwise(steps)]
    assert min(distances) > 0.15


def test_svg_pictures_are_whole_and_embed_the_density(drawn: Path) -> None:
    for path in sorted(drawn.glob("*.svg")):
        root = ElementTree.parse(path).getroot()
        assert root.tag.endswith("svg") and path.stat().st_size < 2_000_000
    images = ElementTree.parse(drawn / "calm-malloc-as-run.svg").iter("{http://www.w3.org/2000/svg}image")
    assert any(image.get("{http://www.w3.org/1999/xlink}href", "").startswith("data:image/png") for image in images)


def test_every_png_has_an_svg_beside_it(drawn: Path) -> None:
    assert {path.stem for path in drawn.glob("*.png")} == {path.stem for path in drawn.glob("*.svg")}


def test_each_allocator_has_a_panel_of_frames_of_its_own(tmp_path: Path) -> None:
    starts = np.arange(2000) * 16_666_667.0
    steady = {View.AS_RUN: np.full((3, 2000), 5e4)}
    lines = [
        frame_pictures.Line.of_repeats(style.Look(f"allocator {place}", style.colour(place), True, False), steady)
        for place in range(4)
    ]
    phases = Phases((Phase("play", 0, 9, 0.0, float(starts[-1])),), named=False)
    frame_pictures.draw(style.Sheet(tmp_path / "frames", "Frames", "as-run", "a test"), starts, lines, phases, 60.0)
    image = pixels(tmp_path / "frames.png")
    found = []
    for line in lines:
        wanted = np.array([round(255 * part) for part in to_rgb(line.look.colour)])
        rows, columns = np.nonzero((np.abs(image - wanted) < 8).all(axis=2))
        assert len(rows) > 300, line.name
        found.append((round(np.median(rows)), round(np.median(columns))))
    assert len(set(found)) == len(lines)


@pytest.mark.parametrize("rate_hz", [60.0, 100.0, 25.0])
def test_frames_cut_at_any_rate_have_its_budget_drawn(tmp_path: Path, rate_hz: float) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    base, pair = lifelike(20_000, seconds=4)
    campaign.run("one", latencies(base, 1, 1, 1001))
    campaign.events(pair)
    result = build(campaign.directory, options=ReportOptions(everything=True, views=(View.AS_RUN,), fps=rate_hz))
    (drawn,) = (path for path in result.pictures if path.name == "frames.svg")
    words = re.findall(r"<!-- (.*?) -->", drawn.read_text())  # matplotlib notes there what its outlines spell
    assert {"240 Hz", f"{rate_hz:g} Hz", f"10 % of {rate_hz:g} Hz", f"1 % of {rate_hz:g} Hz"} <= set(words)


def test_the_worst_frame_beside_a_line_of_medians_is_that_of_any_repeat() -> None:
    repeats = np.full((3, 100), 5e4)
    repeats[1, 40] = 7e6
    line = frame_pictures.Line.of_repeats(
        style.Look("one", "#000000", True, False), {View.INHERENT: repeats[:1], View.AS_RUN: repeats}
    )
    assert line.main.max() == 5e4 and line.worst_ns == 7e6


def test_the_tail_beyond_p90_has_half_the_width() -> None:
    assert curves.place(0.9) == pytest.approx(0.5)
    assert [float(curves.place(share)) for share in (0.99, 0.999, 0.9999)] == pytest.approx([0.6, 0.7, 0.8])
    assert curves.place(0.45) == pytest.approx(0.25)


def test_names_beside_marks_cover_neither_one_another_nor_a_mark() -> None:
    marks = [(500.0 + 6 * place, 300.0 + 3 * (place % 3)) for place in range(8)]
    sizes = [(90.0, 18.0)] * len(marks)
    corners = style.beside(marks, sizes, (0, 0, 1000, 600))
    boxes = [(x, y, x + 90, y + 18) for x, y in corners]
    assert all(
        one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        for place, one in enumerate(boxes)
        for other in boxes[:place]
    )
    assert not any(box[0] < x < box[2] and box[1] < y < box[3] for box in boxes for x, y in marks)


def test_labels_are_spread_without_overlap_and_stay_inside() -> None:
    placed = style.spread([0.9, 0.91, 0.92, 0.1, 0.99, 0.5], 0.1, 0.0, 1.0)
    ordered = sorted(placed)
    assert min(b - a for a, b in pairwise(ordered)) >= 0.1 - 1e-9
    assert ordered[0] >= 0 and ordered[-1] <= 1 + 1e-9 and placed[3] == pytest.approx(0.1)


@pytest.mark.parametrize("letters", [10, 150, 200, 260])
def test_no_subtitle_reaches_the_edge_of_its_picture(tmp_path: Path, letters: int) -> None:
    page = style.figure(1600, 120)
    style.subtitle(page, 70, "wide" * (letters // 4))
    style.save(page, tmp_path / "page", (".png",))
    ink = (pixels(tmp_path / "page.png") < 250).any(axis=(0, 2))
    assert ink.any() and not ink[1600 - 28 + 1 :].any()


def test_no_ink_touches_the_edges_of_prefaulted_pictures(tmp_path: Path) -> None:
    """Of all subtitles theirs are the longest."""
    names = ["calm@prefaulted", "other@prefaulted", "null"]
    campaign = Campaign(tmp_path / "r", names, repeats=2)
    base, pair = lifelike(30_000, seconds=4)
    for name in names:
        for repeat in (1, 2):
            campaign.run(name, latencies(base, 1.0, 1.0, 1000 + repeat), repeat, looking=LOOKING)
    campaign.events(pair)
    build(campaign.directory, options=ReportOptions(everything=True))
    drawn = list((campaign.directory / "report").rglob("*.png"))
    assert {"comparison-attributed-prefaulted", "frames-prefaulted", "memory-prefaulted", "pareto-prefaulted"} <= {
        path.stem for path in drawn
    }
    assert [path.name for path in drawn if (pixels(path)[:, [0, 1, -2, -1]] < 250).any()] == []
