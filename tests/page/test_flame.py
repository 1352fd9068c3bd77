"""The flame graph of the report's page in a real browser: what it shows of a stretch, and what a click does."""

import re
from pathlib import Path

import numpy as np
import pytest
import stack_files
from browser import Page
from page_lab import SHOTS, nanoseconds, page_of, report, samples, shown_range, slow
from stack_files import CLEAR, LABEL, SPAWN, TEXT_OF_LABEL, TEXT_OF_SPAWN
from synthetic import FREE, Campaign
from synthetic import rows as rows_of
from the_command import success

from blockyard.analysis.samples import NO_EVENT
from blockyard.analysis.sites import NONE

CANVAS, SCATTER = "#flame canvas", "#scatter canvas"


@pytest.fixture(scope="module")
def campaign(stacked: Campaign) -> Campaign:
    return stacked


@pytest.fixture(scope="module")
def leaves(stacked_leaves: np.ndarray) -> np.ndarray:
    return stacked_leaves


@pytest.fixture(scope="module")
def page(campaign: Campaign) -> Path:
    return page_of(campaign)


def number(words: str) -> float:
    """Of `1,234 calls`, `12.3 KiB`, `4.56 ms`."""
    value, unit = re.match(r"([\d,.]+) (\w+)", words).groups()
    units = {"calls": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    return float(value.replace(",", "")) * units[unit]


def frames(tab: Page) -> dict[str, float]:
    """By function what is shown of it, read with the keyboard: of each row of the graph every frame."""
    tab.focus("#flame")
    tab.press("Home")
    found = {}
    for _ in range(5):
        before = tab.text("frame-words")
        for _ in range(6):
            name, amount, *_ = tab.text("frame-words").split(" · ")
            found[name] = number(amount)
            tab.press("ArrowRight")
        for _ in range(6):
            tab.press("ArrowLeft")
        tab.press("ArrowDown")
        if tab.text("frame-words") == before:
            break
    return found


def stretch_of(tab: Page, rows: np.ndarray, begin: float, end: float) -> np.ndarray:
    """Which rows lie in the whole stretches of time that the graph says it counts."""
    whole = number(tab.text("flame-words").split("whole stretches of ")[1])
    last = 1.0005 * rows["start"].max()
    columns = min((1 << power for power in range(5, 13)), key=lambda count: abs(count - last / whole))
    place = rows["start"] / last * columns
    return (place >= np.floor(begin * 1e9 / last * columns)) & (place < np.ceil(end * 1e9 / last * columns))


def test_it_shows_who_called_in_the_whole_run(tab: Page, page: Path, campaign: Campaign, leaves: np.ndarray) -> None:
    tab.open(page)
    assert tab.problems == []
    mallocs = samples(campaign, "null")[0]["kind"] != FREE
    shown = frames(tab)
    assert shown["every malloc"] == mallocs.sum()
    spawned = mallocs & np.isin(leaves, (SPAWN, TEXT_OF_SPAWN))
    assert shown["spawn(Level&, int)"] == spawned.sum()
    assert shown["label(int)"] == (mallocs & np.isin(leaves, (LABEL, TEXT_OF_LABEL))).sum()
    assert shown["(no call stack)"] == (mallocs & (leaves == NONE)).sum()
    assert "of the events have no stack" in tab.text("flame-words")
    tab.screenshot(SHOTS / "flame.png")


def test_it_follows_the_brush(tab: Page, page: Path, campaign: Campaign, leaves: np.ndarray) -> None:
    tab.open(page)
    before = tab.picture(CANVAS)
    tab.drag("#strip", (0.6, 0.5), (0.9, 0.5))
    assert tab.picture(CANVAS) != before
    shown = frames(tab)
    assert "spawn(Level&, int)" not in shown
    rows = samples(campaign, "null")[0]
    here = stretch_of(tab, rows, *shown_range(tab)) & (rows["kind"] != FREE)
    assert shown["label(int)"] == pytest.approx((here & np.isin(leaves, (LABEL, TEXT_OF_LABEL))).sum(), abs=3)


@pytest.mark.parametrize("view", ["as-run", "attributed", "inherent"])
@pytest.mark.parametrize("operation", ["malloc", "free"])
def test_time_is_that_of_the_allocator_the_operation_and_the_view(
    tab: Page, page: Path, campaign: Campaign, leaves: np.ndarray, operation: str, view: str
) -> None:
    tab.open(page, f"#of=jemalloc&view={view}&op={operation}&by=time")
    repeats = samples(campaign, "jemalloc")
    chosen = (repeats[0]["kind"] == FREE) == (operation == "free")
    times = np.stack([nanoseconds(rows) for rows in repeats])
    if view == "inherent":
        value = times.min(axis=0)
    else:
        machine = np.stack([rows["cause"] & (8 | 32 | 128) for rows in repeats]) != 0
        own = np.where(machine & (view == "attributed"), 0, times)
        every = machine.all(axis=0) & (view == "attributed")
        value = np.where(every, times.min(axis=0), own.mean(axis=0))
    shown = frames(tab)
    name, nodes = ("clear(Level&)", (CLEAR,)) if operation == "free" else ("label(int)", (LABEL, TEXT_OF_LABEL))
    assert shown[name] == pytest.approx(value[chosen & np.isin(leaves, nodes)].sum(), rel=0.011 + 0.005)
    assert f"of {operation} of jemalloc, {view}" in tab.text("flame-words")
    assert "timed calls added up." in tab.text("flame-words")


def test_time_over_budget_is_what_frames_took_beyond_a_hundredth_of_their_time(tmp_path: Path, tab: Page) -> None:
    """Frames of 16.7 ms: one takes 400 us, of which 233 us are over budget; three quarters of its time is label's."""
    entries, leaf = [], []
    for frame in range(30):
        for event in range(4):
            slow = 100_000 if frame == 7 else 50
            entries.append((len(entries), 0, 100, frame * 16_666_667 + event * 1000, 10 + 2 * slow, 0))
            leaf.append(LABEL if event else SPAWN)
    campaign = Campaign(tmp_path / "results", ["one"])
    campaign.run("one", rows_of(entries))
    campaign.events(np.full(len(entries), NO_EVENT), [f * 16_666_667 for f in range(31)], frame_events=range(0, 121, 4))
    stack_files.write(campaign.directory / "runs" / "game", np.array(leaf))
    tab.open(page_of(campaign), "#by=over")
    shown = frames(tab)
    over = 400_000 - 1e9 / 60 / 100
    assert shown["every malloc"] == pytest.approx(over, rel=0.02)
    assert shown["label(int)"] == pytest.approx(over * 3 / 4, rel=0.02)
    assert "beyond 1.00 % of a 60 Hz frame (167 us)" in tab.text("flame-words")
    tab.open(page_of(campaign), "#by=over&s=0.3-0.4")
    assert "take no more than 1.00 %" in tab.text("flame-words")


def test_beside_timed_calls_stands_what_all_take_without_a_clock(tmp_path: Path, tab: Page) -> None:
    campaign = Campaign(tmp_path / "results", ["one", "null"], totals=True)
    made = rows_of([(event, 0, 100, event * 1_000_000, 210, 0) for event in range(40)])
    for name, ns in (("one", 2_000_000), ("null", 500_000)):
        campaign.run(name, made)
        campaign.bursts(name, [(39, 0, ns)])
    campaign.events(np.full(40, NO_EVENT))
    stack_files.write(campaign.directory / "runs" / "game", np.full(40, LABEL))
    tab.open(page_of(campaign), "#of=one&by=time")
    assert "without a clock around each, all calls of a run take 1.50 ms" in tab.text("flame-words")


def test_bytes_alive_are_those_at_the_cursor(tab: Page, page: Path, campaign: Campaign, leaves: np.ndarray) -> None:
    tab.open(page, "#by=alive&at=4")
    rows = samples(campaign, "null")[0]
    pair = np.load(campaign.directory / "runs" / "game" / "pairs.npy")
    at = float(tab.evaluate("document.getElementById('at').value"))
    born = (rows["kind"] != FREE) & (rows["start"] < at * 1e9)
    ends = pair[rows["event"]]
    died = born & (ends != NO_EVENT) & (rows["start"][np.where(ends == NO_EVENT, 0, ends)] < at * 1e9)
    alive = born & ~died & np.isin(leaves, (LABEL, TEXT_OF_LABEL))
    assert frames(tab)["label(int)"] == pytest.approx(rows["size"][alive].sum(), rel=0.02)
    before = tab.text("flame-words")
    tab.click("#memory .u-over", 0.2, 0.5)
    assert tab.text("flame-words") != before and "Alive at 1." in tab.text("flame-words")


def test_a_click_zooms_to_a_frame_and_marks_its_events(
    tab: Page, page: Path, campaign: Campaign, leaves: np.ndarray
) -> None:
    tab.open(page, "#of=glibc")
    graph, marks = tab.picture(CANVAS), tab.picture(SCATTER)
    height = tab.evaluate(f"document.querySelector('{CANVAS}').clientHeight")
    tab.click(CANVAS, 0.2, 1 - 30 / height)  # the second row: main
    assert tab.text("frame-words").startswith("main · ")
    tab.click(CANVAS, 0.1, 1 - 70 / height)  # the fourth row: spawn or label
    name = tab.text("frame-words").split(" · ")[0]
    assert name in ("spawn(Level&, int)", "label(int)")
    assert tab.picture(CANVAS) != graph and tab.picture(SCATTER) != marks
    nodes = (SPAWN, TEXT_OF_SPAWN) if name.startswith("spawn") else (LABEL, TEXT_OF_LABEL)
    marked, seen = (
        int(words.replace(",", ""))
        for words in re.match(r"Marked: ([\d,]+) of the ([\d,]+) ", tab.text("scatter-words")).groups()
    )
    slowest = slow(campaign, "glibc")
    assert seen == pytest.approx(len(slowest), rel=0.02)
    assert marked == pytest.approx(np.isin(leaves[slowest], nodes).sum(), rel=0.02)
    tab.screenshot(SHOTS / "flame-zoomed.png")
    tab.click("#flame-reset")
    assert (tab.picture(CANVAS), tab.picture(SCATTER)) == (graph, marks)


def test_a_slow_event_shows_its_stack(tab: Page, page: Path, leaves: np.ndarray) -> None:
    tab.open(page, "#of=glibc")
    for _ in range(20):
        tab.click("#slower")
        event = int(re.match(r"Event ([\d,]+)", tab.text("event")).group(1).replace(",", ""))
        if leaves[event] != NONE:
            break
        tab.click("#faster")
    lines = tab.evaluate("[...document.querySelectorAll('#event li')].map(e => e.textContent)")
    expected = []
    node = leaves[event]
    while node >= 0:
        function, file, line, parent = stack_files.FUNCTIONS[node]
        expected.append(f"{function}  {file}:{line}  {stack_files.MODULES[node]}")
        node = parent
    assert lines == expected
    outlined = tab.picture(CANVAS)
    tab.focus("#scatter")
    tab.press("Escape")
    assert tab.picture(CANVAS) != outlined and tab.text("event") == ""


def test_search_finds_functions_files_and_libraries(
    tab: Page, page: Path, campaign: Campaign, leaves: np.ndarray
) -> None:
    tab.open(page)
    before = tab.picture(CANVAS)
    mallocs = samples(campaign, "null")[0]["kind"] != FREE
    for what, nodes in (("SPAWN(", (SPAWN, TEXT_OF_SPAWN)), ("libtext", (TEXT_OF_SPAWN, TEXT_OF_LABEL))):
        tab.fill("find", what)
        share = 100 * (mallocs & np.isin(leaves, nodes)).sum() / mallocs.sum()
        assert f"Found “{what}” in {share:.1f} % of it." in tab.text("flame-words")
        assert tab.picture(CANVAS) != before
    tab.fill("find", "nobody")
    assert "“nobody” is not in it." in tab.text("flame-words")
    tab.fill("find", "label(")
    tab.focus("#find")
    tab.press("Enter")
    assert tab.text("frame-words").startswith("label(int) · ")
    assert tab.evaluate("document.activeElement.id") == "flame"


def test_inverted_the_functions_that_allocate_stand_outermost(
    tab: Page, page: Path, campaign: Campaign, leaves: np.ndarray
) -> None:
    tab.open(page)
    before = tab.picture(CANVAS)
    tab.click("#invert")
    assert tab.picture(CANVAS) != before
    assert tab.evaluate("document.getElementById('invert').getAttribute('aria-pressed')") == "true"
    mallocs = samples(campaign, "null")[0]["kind"] != FREE
    tab.focus("#flame")
    tab.press("Home", "ArrowDown")
    found = {}
    for _ in range(6):
        name, amount, *_ = tab.text("frame-words").split(" · ")
        found[name] = number(amount)
        tab.press("ArrowRight")
    assert found["spawn(Level&, int)"] == (mallocs & (leaves == SPAWN)).sum()
    assert found["text(char const*)"] == (mallocs & np.isin(leaves, (TEXT_OF_SPAWN, TEXT_OF_LABEL))).sum()
    tab.press("Enter")
    assert tab.text("scatter-words").startswith("Marked: ")


def test_keys_alone_choose_a_frame_and_leave_it(tab: Page, page: Path) -> None:
    tab.open(page)
    tab.focus("#flame")
    tab.press("ArrowDown", "ArrowDown", "Enter")
    chosen = tab.text("frame-words")
    assert chosen.startswith(("Game::update(float) · ", "Game::draw() · "))
    tab.press("ArrowUp")
    assert tab.text("frame-words").startswith("main · ")
    tab.press("Escape")
    assert tab.text("frame-words").startswith("every malloc · ")
    tab.press("/")
    assert tab.evaluate("document.activeElement.id") == "find"


def test_a_link_leads_to_the_very_frame(tab: Page, page: Path) -> None:
    tab.open(page, "#by=bytes&inverted=1&find=text")
    tab.focus("#flame")
    tab.press("ArrowDown", "Enter")
    words = tab.text("frame-words")
    tab.open(page, tab.link())
    assert tab.text("frame-words") == words
    assert tab.evaluate("document.getElementById('find').value") == "text"


def test_a_frame_under_the_pointer_is_named(tab: Page, page: Path) -> None:
    tab.open(page)
    height = tab.evaluate(f"document.querySelector('{CANVAS}').clientHeight")
    tab.move(CANVAS, 0.2, 1 - 30 / height)
    words = tab.evaluate("document.getElementById('tip').innerText")
    assert words.startswith("main") and "main.cpp:10 game" in words


def test_it_follows_the_systems_dark_theme(tab: Page, page: Path) -> None:
    tab.open(page, "#find=text")
    light = tab.picture(CANVAS)
    tab.theme("dark")
    assert tab.picture(CANVAS) != light
    tab.screenshot(SHOTS / "flame-dark.png")


def test_a_phone_shows_it_without_scrolling_sideways(tab: Page, page: Path) -> None:
    tab.size(375, 812, phone=True, ratio=2)
    tab.open(page, "#by=alive")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    assert tab.evaluate(f"document.querySelector('{CANVAS}').getBoundingClientRect().width") <= 375
    tab.screenshot(SHOTS / "flame-phone.png")


def test_a_journal_without_stacks_says_how_to_get_them(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    campaign.run("one", rows_of([(i, 0, 64, i * 1_000_000, 60, 0) for i in range(100)]))
    tab.open(page_of(campaign))
    assert "blockyard record, without --no-stacks" in tab.text("flame")
    assert tab.evaluate("[...document.querySelectorAll('.flame-control')].every(e => e.offsetParent === null)")
    tab.click("#memory .u-over")
    tab.click("#slower")
    assert tab.evaluate("document.querySelectorAll('#event li').length") == 0
    assert tab.problems == []
    tab.screenshot(SHOTS / "flame-without.png")


def test_functions_without_names_say_how_to_get_them(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    campaign.run("one", rows_of([(i, 0, 64, i * 1_000_000, 60, 0) for i in range(100)]))
    stack_files.write(campaign.directory / "runs" / "game", np.full(100, SPAWN), named=False)
    tab.open(page_of(campaign))
    assert "run blockyard names on the journal" in tab.text("flame-words")


def test_functions_that_are_skipped_stand_for_no_stack(
    tab: Page, campaign: Campaign, leaves: np.ndarray, tmp_path: Path
) -> None:
    success(report(campaign.directory, "--skip", "^text", "-o", tmp_path))
    tab.open(tmp_path / "report.html")
    mallocs = samples(campaign, "null")[0]["kind"] != FREE
    shown = frames(tab)
    assert "text(char const*)" not in shown
    assert shown["label(int)"] == (mallocs & np.isin(leaves, (LABEL, TEXT_OF_LABEL))).sum()


def test_the_table_shows_who_waits_as_the_report_does(tab: Page, page: Path) -> None:
    tables = (page.parent / "report.txt").read_text().split("who waits: time in events above 10 us by site")[1]
    tab.open(page)
    names = tab.evaluate("[...document.getElementById('show').options].map(one => one.value)")
    assert {"who fills the worst frame, by site", "p99.9 by site"} <= set(names)
    tab.fill("show", "who waits")
    head, *rows = tab.evaluate(
        "[...document.querySelectorAll('#table tr')].map(r => [...r.cells].map(c => c.innerText))"
    )
    assert head == ["allocator", "events a run", "time a run", "share", "site"]
    of_glibc = [row for row in rows if row[0] == "glibc"]
    assert len(of_glibc) > 1 and len({row[4] for row in of_glibc}) == len(of_glibc)
    for name, events, time, _, site in of_glibc:
        assert any(all(words in line for words in (name, events, time, site)) for line in tables.splitlines())
    assert tab.evaluate("document.querySelectorAll('#table tbody canvas').length") == len(rows)
