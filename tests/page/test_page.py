"""The report's page in a real browser: what it shows, and what pointer, keys and links do to it."""

import re
from pathlib import Path

import numpy as np
import pytest
from browser import Page
from page_lab import REPEATS, SECONDS, SHOTS, nanoseconds, page_of, samples, shown_range
from synthetic import FREE, Campaign
from synthetic import rows as rows_of


def table(tab: Page) -> dict[str, dict[str, str]]:
    """The table as it stands, without the intervals: allocator -> column -> text, rows in their order."""
    rows = tab.evaluate("""[...document.querySelectorAll('#table tr')].map(row => [...row.cells].map(cell =>
        [...cell.childNodes].filter(node => node.nodeName !== 'SMALL').map(node => node.textContent).join('')))""")
    names, *body = rows
    return {row[0]: dict(zip(names, row, strict=True)) for row in body}


def ns(words: str) -> float:
    """`1.23 us` in nanoseconds."""
    value, unit = words.lstrip("<≥").split()
    return float(value) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


SCATTER, PERCENTILES = "#scatter canvas", "#percentiles canvas"
OTHERS = (PERCENTILES, "#memory canvas", "#pareto canvas", "#frames canvas")


def test_it_opens_from_disk_asks_for_nothing_else_and_complains_of_nothing(opened: Page, page: Path) -> None:
    assert opened.requests == [page.as_uri()]
    assert opened.problems == []
    opened.screenshot(SHOTS / "desk.png")


def test_the_page_begins_with_the_verdict_of_the_report(opened: Page, campaign: Campaign) -> None:
    first = opened.evaluate("document.querySelector('#verdict li').innerText")
    assert re.match(r"game on glibc: allocation .* of a 60 Hz frame", first)
    assert first in " ".join((campaign.directory / "report" / "report.txt").read_text().split())
    assert opened.evaluate(
        "document.querySelector('#verdict').getBoundingClientRect().top < "
        "document.querySelector('#header').getBoundingClientRect().top"
    )


def test_it_states_how_it_was_measured(opened: Page) -> None:
    words = opened.evaluate("document.querySelector('.facts').innerText")
    for fact in (
        "Test Processor 9000",
        "Linux 6.1.0",
        "tsc",
        "timer floor",
        f"{REPEATS} repeats",
        "1x pace",
        "one byte touched in every page",
    ):
        assert fact in words


def test_the_table_without_a_brush_is_the_reports_own(opened: Page, page: Path) -> None:
    report = (page.parent / "report.txt").read_text()
    row = table(opened)["glibc"]
    for column in ("p50", "p99.9", "p99.99", "worst"):
        assert row[column] in report


def test_the_wheel_zooms_about_the_pointer(opened: Page) -> None:
    before = opened.picture(SCATTER)
    opened.wheel("#scatter", 0.9, -600)
    begin, end = shown_range(opened)
    assert begin > 0 and end - begin < SECONDS * 0.7 and SECONDS - end < begin
    assert opened.picture(SCATTER) != before
    opened.screenshot(SHOTS / "zoomed.png")


def test_a_dragged_rectangle_zooms_into_its_time_and_latency_and_a_double_click_leads_back(opened: Page) -> None:
    opened.drag("#scatter .u-over", (0.3, 0.4), (0.5, 0.8))
    begin, end = shown_range(opened)
    assert begin == pytest.approx(0.3 * SECONDS, abs=0.05) and end == pytest.approx(0.5 * SECONDS, abs=0.05)
    assert "ns=" in opened.link()
    opened.click("#scatter .u-over", 0.5, 0.97, clicks=2)
    assert shown_range(opened) == (0, pytest.approx(SECONDS, abs=0.1))


def test_nothing_of_a_closer_view_is_left_in_the_picture_of_the_whole(opened: Page) -> None:
    before = {chart: opened.picture(chart) for chart in (SCATTER, PERCENTILES)}
    opened.wheel("#scatter", 0.3, -900)
    opened.focus("#scatter")
    opened.press("PageUp", "Home")
    assert shown_range(opened)[0] == 0
    assert {chart: opened.picture(chart) for chart in before} == before


def test_a_brush_on_time_drives_every_other_chart(opened: Page) -> None:
    there = [chart for chart in OTHERS if opened.evaluate(f"Boolean(document.querySelector('{chart}'))")]
    assert len(there) >= 3
    before = [opened.picture(chart) for chart in (SCATTER, *there)]
    figures = table(opened)
    opened.drag("#strip", (0.5, 0.5), (0.7, 0.5))
    begin, end = shown_range(opened)
    assert (begin, end) == (pytest.approx(0.5 * SECONDS, abs=0.05), pytest.approx(0.7 * SECONDS, abs=0.05))
    assert all(opened.picture(chart) != old for chart, old in zip((SCATTER, *there), before, strict=True))
    assert int(table(opened)["glibc"]["events"].replace(",", "")) < int(figures["glibc"]["events"].replace(",", ""))


@pytest.mark.parametrize("stretch", [(1, 3), (4, 4.2), (5, SECONDS)])
@pytest.mark.parametrize("view", ["as-run", "attributed", "inherent"])
@pytest.mark.parametrize("operation", ["malloc", "free"])
def test_figures_of_a_brushed_stretch_are_within_the_stated_bound(
    tab: Page, page: Path, campaign: Campaign, view: str, operation: str, stretch: tuple[float, float]
) -> None:
    tab.open(page, f"#view={view}&op={operation}&s={stretch[0]}-{stretch[1]}")
    row = table(tab)["jemalloc"]
    repeats = samples(campaign, "jemalloc")
    # Figures count whole stretches of time: the run's end, cut as the page says it is.
    end = 1.0005 * max(rows["start"].max() for rows in repeats)
    words = tab.text("range-words").split("stretches of ")[1]
    columns = round(end / ns(words.strip("."))) if words else 0
    columns = min((1 << power for power in range(8, 13)), key=lambda count: abs(count - columns))
    first, behind = np.floor(stretch[0] * 1e9 / end * columns), min(np.ceil(stretch[1] * 1e9 / end * columns), columns)
    place = repeats[0]["start"] / end * columns
    chosen = (place >= first) & (place < behind) & ((repeats[0]["kind"] == FREE) == (operation == "free"))
    latencies = np.stack([nanoseconds(rows)[chosen] for rows in repeats])
    if view == "attributed":
        machine = np.stack([rows["cause"][chosen] & 8 for rows in repeats]) != 0
        every = machine.all(axis=0)  # counts with its least, in each repeat
        assert every.any() and machine.any(axis=0).sum() > every.sum()
        values = np.sort(np.concatenate([latencies[~machine], np.repeat(latencies.min(axis=0)[every], REPEATS)]))
    else:
        values = np.sort(latencies.min(axis=0) if view == "inherent" else latencies.ravel())
    assert int(row["events"].replace(",", "")) == len(values)
    for column, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
        if len(values) * (1 - share) < 10:
            assert row[column] == "–"
            continue
        exact = values[int(np.ceil(len(values) * share)) - 1]
        assert ns(row[column]) == pytest.approx(exact, rel=0.022 + 0.005), column  # and three digits
    assert ns(row["worst"]) == pytest.approx(values[-1], rel=0.0014 + 0.005)
    seconds = (behind - first) / columns * end / 1e9 * (1 if view == "inherent" else REPEATS)
    least, most = ((values > 1000 * bound).sum() / seconds for bound in (1.022, 1 / 1.022))
    assert least * 0.99 - 0.5 <= float(row[">1 us/s"].replace(",", "")) <= most * 1.01 + 0.5


def test_hovering_names_the_event(tab: Page, page: Path, campaign: Campaign) -> None:
    repeats = samples(campaign, "glibc")
    mallocs = repeats[0]["kind"] != FREE
    slowest = np.argmax(np.max([np.where(mallocs, nanoseconds(rows), 0) for rows in repeats], axis=0))
    event, start = repeats[0][slowest], repeats[0]["start"][slowest] / 1e9
    worst = max(nanoseconds(rows)[slowest] for rows in repeats)
    tab.open(page, f"#of=glibc&s={start - 0.2:.4f}-{start + 0.2:.4f}&ns={worst / 4:.0f}-{worst * 4:.0f}")
    tab.move("#scatter .u-over", 0.5, 0.5)
    words = tab.evaluate("document.getElementById('tip').innerText")
    assert f"event {event['event']:,}" in words and f"of {event['size']:,} B" in words
    # The journal has no marks that tell their event: frames are cut by the clock, and counted from 1.
    assert f"thread\t{event['thread']}" in words and f"frame\t{event['frame'] + 1:,}" in words
    assert f"of {REPEATS} repeats" in words
    threshold = ns(tab.text("scatter-words").split("more than ")[1].split(";")[0])
    for number, rows in enumerate(repeats, start=1):
        is_slow = nanoseconds(rows)[slowest] > threshold
        assert f"repeat {number}{', slow' if is_slow else ''}\t" in words
    assert any(cause in words for cause in ("preempted", "page fault", "own work"))


def test_causes_can_be_left_out(opened: Page) -> None:
    names = opened.evaluate("[...document.querySelectorAll('#scatter-key label')].map(e => e.textContent)")
    assert names == ["machine", "slept", "page fault", "own work", "not looked at"]
    before = opened.picture(SCATTER)
    opened.click("#scatter-key li:nth-child(5) label")
    assert opened.picture(SCATTER) != before


def test_a_click_keeps_the_event_and_its_link_brings_it_back(tab: Page, page: Path, campaign: Campaign) -> None:
    tab.open(page, "#of=mimalloc")
    tab.click("#slower")
    words = tab.text("event")
    assert words.startswith("Event ") and "of mimalloc" in words
    tab.open(page, tab.link())
    assert tab.text("event") == words


def test_a_column_sorts_both_ways(opened: Page) -> None:
    place = 1 + list(table(opened)["glibc"]).index("p99")
    button = f"#table th:nth-child({place}) button"
    opened.click(button)
    rising = [ns(row["p99"]) for row in table(opened).values()]
    assert rising == sorted(rising)
    opened.click(button)
    falling = [ns(row["p99"]) for row in table(opened).values()]
    assert falling == sorted(rising, reverse=True) and falling != rising


def test_a_column_sorts_by_keyboard_and_keeps_the_focus(opened: Page) -> None:
    place = 1 + list(table(opened)["glibc"]).index("p99.99")
    opened.focus(f"#table th:nth-child({place}) button")
    opened.press("Enter")
    assert opened.evaluate(
        "[document.activeElement.textContent, document.activeElement.parentElement.getAttribute('aria-sort')]"
    ) == ["p99.99", "ascending"]


def test_the_table_is_copied_as_text(opened: Page) -> None:
    opened.click("#copy-table")
    lines = opened.evaluate("navigator.clipboard.readText()").splitlines()
    shown = table(opened)
    assert lines[0].split("\t") == list(shown["glibc"]) and [line.split("\t")[0] for line in lines[1:]] == list(shown)


def test_a_tail_percentile_has_its_interval_below_it(opened: Page) -> None:
    place = 1 + list(table(opened)["glibc"]).index("p99")
    small = f"document.querySelector('#table tbody td:nth-child({place}) small').textContent"
    ends = opened.evaluate(small).split(" to ")
    unit = ends[-1].split()[1]
    values = [ns(end if " " in end else f"{end} {unit}") for end in ends]
    assert values[0] * 0.99 <= ns(next(iter(table(opened).values()))["p99"]) <= values[-1] * 1.01


def test_the_share_of_an_audio_buffer_has_its_interval_below_it(opened: Page) -> None:
    opened.fill("show", "share of an audio buffer of 64 samples")
    shown = table(opened)["glibc"]
    place = 1 + list(shown).index("p99")
    small = f"document.querySelector('#table tbody td:nth-child({place}) small').textContent"
    assert re.fullmatch(r"<?[0-9.]+( %)?( to <?[0-9.]+ %)?", opened.evaluate(small))
    assert shown["queue"].isdigit()


def test_the_table_shows_frames_audio_causes_and_memory_too(opened: Page, page: Path) -> None:
    report = (page.parent / "report.txt").read_text()
    for choice, column in (
        ("share of a frame at 144 Hz", "over 1 %"),
        ("share of an audio buffer of 256 samples", "queue"),
        ("events per second above 10 us by cause", "machine"),
        ("memory", "peak resident"),
    ):
        assert choice in report
        opened.fill("show", choice)
        assert table(opened)["glibc"][column] not in ("", "–")


def test_a_button_leads_to_a_worst_frame(opened: Page) -> None:
    opened.click("#worst-frames button")
    begin, end = shown_range(opened)
    words = opened.evaluate("document.querySelector('#worst-frames button').textContent")
    assert begin == pytest.approx(float(words.split(" s")[0]), abs=0.001)
    assert end - begin == pytest.approx(1 / 60, rel=0.01)


def test_a_link_leads_to_the_very_view(opened: Page, page: Path) -> None:
    opened.click("#operation label:nth-child(2)")
    opened.click("#view label:nth-child(3)")
    opened.click("#allocators label:nth-child(2)")
    opened.drag("#strip", (0.2, 0.5), (0.4, 0.5))
    opened.evaluate("document.activeElement.blur()")
    seen = table(opened), shown_range(opened), opened.picture(SCATTER), opened.picture(PERCENTILES)
    opened.open(page, opened.link())
    assert (table(opened), shown_range(opened), opened.picture(SCATTER), opened.picture(PERCENTILES)) == seen


def test_a_link_keeps_the_table_its_order_and_the_causes_left_out(opened: Page, page: Path) -> None:
    opened.fill("show", "memory")
    opened.click("#table th:nth-child(2) button")
    opened.click("#table th:nth-child(2) button")
    opened.click("#scatter-key li:nth-child(4) label")
    opened.evaluate("document.activeElement.blur()")
    seen = list(table(opened).items()), opened.picture(SCATTER)
    opened.open(page, opened.link())
    assert (list(table(opened).items()), opened.picture(SCATTER)) == seen


@pytest.mark.parametrize(
    "link",
    ["#of=nobody&view=none&op=realloc&s=9-1&ns=-5-0&sort=what&event=x&with=", "#%%%&&=", "#s=0-1e99&ns=1e-9-1e99"],
)
def test_a_broken_link_opens_the_page_all_the_same(tab: Page, page: Path, link: str) -> None:
    tab.open(page, link)
    assert tab.problems == []


def test_allocators_can_be_left_out(opened: Page) -> None:
    assert set(table(opened)) == {"null", "glibc", "jemalloc", "mimalloc"}
    opened.click("#allocators label:nth-child(4)")
    assert set(table(opened)) == {"glibc", "jemalloc", "mimalloc"}


def test_without_any_allocator_the_charts_and_the_table_say_so(opened: Page) -> None:
    for place in (1, 2, 3, 4):
        opened.click(f"#allocators label:nth-child({place})")
    for element in ("percentiles", "frames", "memory", "pareto", "table-words"):
        assert opened.text(element) == "No allocator is chosen."
    assert opened.problems == []


def test_bytes_are_whole_in_the_table(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run(
        "one",
        rows_of([(0, 0, 64, 0, 10, 0), (1, FREE, 64, 1000, 10, 0)]),
        after_last_free={"cpu_ns": 1, "settled_after_ns": 1, "resident_bytes": 26.579332398377463},
    )
    campaign.events(np.array([1, 0]))
    tab.open(page_of(campaign))
    tab.fill("show", "after the last free")
    assert table(tab)["one"]["resident then"] == "27 B"


def test_every_chart_is_drawn_anew_for_another_operation_and_view(opened: Page) -> None:
    seen = [opened.picture(SCATTER)]
    for choice in ("#operation label:nth-child(2)", "#view label:nth-child(3)"):
        opened.click(choice)
        seen.append(opened.picture(SCATTER))
    assert len(set(seen)) == len(seen)


def test_the_keyboard_alone_zooms_moves_and_names_events(opened: Page) -> None:
    opened.focus("#scatter")
    opened.press("+", "+")
    begin, end = shown_range(opened)
    assert end - begin == pytest.approx(SECONDS * 0.36, rel=0.05)
    opened.press("ArrowRight")
    assert shown_range(opened)[0] > begin
    opened.press("n", "n")
    second = opened.text("event")
    opened.press("p")
    assert opened.text("event") not in ("", second)
    opened.press("Escape", "0")
    assert opened.text("event") == ""
    assert shown_range(opened) == (0, pytest.approx(SECONDS, abs=0.1))


def test_the_brush_moves_by_keys_and_says_where_it_is(opened: Page) -> None:
    opened.focus("#handle-from")
    opened.press("PageUp", "ArrowRight")
    assert shown_range(opened)[0] == pytest.approx(0.11 * SECONDS, abs=0.01)
    assert opened.evaluate("document.getElementById('handle-from').getAttribute('aria-valuetext')").endswith(" s")


def test_every_control_is_reached_by_tab_in_the_order_of_the_page(opened: Page) -> None:
    reached = []
    for _ in range(90):
        opened.press("Tab")
        reached.append(opened.evaluate("(e => e.id || e.name || e.parentElement.className)(document.activeElement)"))
    wanted = ["operation", "view", "chip", "focus", "zoom-in", "handle-from", "handle-to", "scatter", "copy-table"]
    assert [reached.index(name) for name in wanted] == sorted(reached.index(name) for name in wanted)


def test_it_follows_the_systems_dark_theme(opened: Page) -> None:
    light, drawn = (opened.evaluate("getComputedStyle(document.body).backgroundColor"), opened.picture(SCATTER))
    opened.theme("dark")
    assert opened.evaluate("getComputedStyle(document.body).backgroundColor") != light
    assert opened.picture(SCATTER) != drawn
    opened.screenshot(SHOTS / "dark.png")


def test_a_phone_shows_all_of_it_without_scrolling_sideways(tab: Page, page: Path) -> None:
    tab.size(375, 812, phone=True, ratio=2)
    tab.open(page)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    assert tab.evaluate("[...document.querySelectorAll('.plot')].every(e => e.getBoundingClientRect().width <= 375)")
    assert tab.evaluate("document.querySelector('#handle-from').getBoundingClientRect().width") >= 24
    tab.screenshot(SHOTS / "phone.png")


def test_a_small_laptop_shows_every_column_of_the_figures(tab: Page, page: Path) -> None:
    tab.size(1130, 900)
    tab.open(page)
    assert tab.evaluate("document.querySelectorAll('#table td small').length > 2")
    of = "document.getElementById('table').parentElement"
    assert tab.evaluate(f"{of}.scrollWidth") <= tab.evaluate(f"{of}.clientWidth")


def test_two_fingers_zoom_on_a_phone(tab: Page, page: Path) -> None:
    tab.size(375, 812, phone=True, ratio=2)
    tab.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=5)
    tab.open(page)
    tab.pinch("#scatter .u-over", (0.4, 0.6), (0.1, 0.9))
    tab.call("Emulation.setTouchEmulationEnabled", enabled=False)
    begin, end = shown_range(tab)
    assert end - begin == pytest.approx(SECONDS / 4, rel=0.1)
    assert (begin + end) / 2 == pytest.approx(SECONDS / 2, rel=0.1)


def shapes_of(opened: Page, selector: str) -> list[str]:
    """What is opaque in each of these pictures."""
    return opened.evaluate(
        f"[...document.querySelectorAll('{selector}')]"
        """.map(canvas => {
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        return [...pixels].filter((_, i) => i % 4 === 3).map(alpha => alpha > 128 ? 1 : 0).join('');
    })"""
    )


def test_no_two_allocators_are_told_apart_by_colour_alone(opened: Page) -> None:
    shapes = shapes_of(opened, ".chip canvas")
    assert len(set(shapes)) == len(shapes) == 4
    opened.sight("achromatopsia")
    opened.screenshot(SHOTS / "without-colour.png")


def test_no_two_causes_are_told_apart_by_colour_alone(opened: Page) -> None:
    shapes = shapes_of(opened, "#scatter-key label canvas")
    assert len(set(shapes)) == len(shapes) == 5


def luminance(colour: str) -> float:
    """Of `#rrggbb`, relative to white, as WCAG 2 has it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_stand_out_from_their_ground(opened: Page, theme: str) -> None:
    """WCAG 2 asks for a contrast of 4.5 for small letters."""
    opened.theme(theme)
    names = ("ink", "faint", "paper", "card", "accent", "accent-ink", "warn", "warn-paper")
    found = {
        name: luminance(
            opened.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}').trim()")
        )
        for name in names
    }
    for words, ground in (
        ("ink", "paper"),
        ("ink", "card"),
        ("faint", "paper"),
        ("faint", "card"),
        ("accent-ink", "accent"),
        ("warn", "warn-paper"),
    ):
        low, high = sorted((found[words], found[ground]))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (words, ground)


def test_its_libraries_licences_are_in_it(opened: Page) -> None:
    words = opened.evaluate("document.querySelector('footer').textContent")
    assert "uPlot 1." in words and "The MIT License" in words and "Leon Sorokin" in words
