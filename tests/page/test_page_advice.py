"""Advice on the report's page: its rows, the events and the part of the flame graph that a row marks."""

import re
from pathlib import Path

import advice_files
import numpy as np
import pytest
import stack_files
from advice_files import change, steps
from browser import Page
from page_lab import SHOTS, report, samples, slow
from stack_files import LABEL, SPAWN, TEXT_OF_LABEL
from synthetic import FREE, Campaign
from synthetic import rows as rows_of
from the_command import refusal, sentence, success

CANVAS, SCATTER = "#flame canvas", "#scatter canvas"
FIRST, SECOND = (f"#advice tbody tr:nth-child({place}) button" for place in (1, 2))


@pytest.fixture(scope="module")
def advice(tmp_path_factory: pytest.TempPathFactory, stacked_leaves: np.ndarray) -> Path:
    """The text that label() asks for is temp, and what spawn() asks for itself belongs in a pool."""
    return advice_files.write(
        tmp_path_factory.mktemp("advice") / "advice",
        [
            change("temp", [steps(TEXT_OF_LABEL, LABEL)], gain=(10e6, 6e6)),
            change("pool", [steps(SPAWN, line_of_last=False)]),
        ],
        routed=[np.flatnonzero(stacked_leaves == TEXT_OF_LABEL), np.flatnonzero(stacked_leaves == SPAWN)],
        events=len(stacked_leaves),
    )


@pytest.fixture(scope="module")
def advised(stacked: Campaign, advice: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page-advice") / "report"
    success(report(stacked.directory, "--advice", advice, "-o", out))
    return out / "report.html"


def pictures(tab: Page) -> list[str]:
    return [tab.picture(one) for one in (CANVAS, SCATTER)]


def marked(tab: Page) -> tuple[int, int]:
    """How many slow events are marked, and of how many."""
    found = re.match(r"Marked: ([\d,]+) of the ([\d,]+) slow events", tab.text("scatter-words")).groups()
    return tuple(int(words.replace(",", "")) for words in found)


def bars(tab: Page) -> list[float]:
    """Of each row of the flame graph how much of its width is underlined."""
    return tab.evaluate(f"""(() => {{ const canvas = document.querySelector('{CANVAS}');
        return Array.from({{ length: Math.round(canvas.height / 20) }}, (_, row) => {{
            const {{ data }} = canvas.getContext('2d').getImageData(0, row * 20 + 17, canvas.width, 1);
            let dark = 0;
            for (let at = 0; at < data.length; at += 4) dark += data[at] === 0x1d && data[at + 1] === 0x23;
            return dark / canvas.width; }}); }})()""")


def rows_of_table(tab: Page) -> list[list[str]]:
    return tab.evaluate("[...document.querySelectorAll('#advice tr')].map(r => [...r.cells].map(c => c.textContent))")


def test_each_change_has_a_row_with_what_where_and_what_it_gains(tab: Page, advised: Path) -> None:
    tab.open(advised)
    head, first, second = rows_of_table(tab)
    assert head == ["#", "change", "in", "blocks", "break it", "share of time, estimated", "measured", "memory"]
    assert first == [
        "1", "temp", "label(int)label.cpp:7", "12,345", "1", "20 %", "-40 % in the whole replay", "4.00 KiB",
    ]  # fmt: skip
    assert second[1:3] == ["block pool", "spawn(Level&, int)spawn.cpp:12"] and second[6] == "not replayed"
    assert "temp in label()" in tab.text("advice-words")
    assert tab.problems == []


def test_a_row_marks_its_events_and_its_part_of_the_flame_graph_until_it_is_clicked_again(
    tab: Page, advised: Path, stacked: Campaign, stacked_leaves: np.ndarray
) -> None:
    tab.open(advised, "#of=glibc")
    before = pictures(tab)
    tab.click(FIRST)
    slowest = slow(stacked, "glibc")
    chosen, seen = marked(tab)
    assert seen == pytest.approx(len(slowest), rel=0.02)
    assert chosen == pytest.approx((stacked_leaves[slowest] == TEXT_OF_LABEL).sum(), rel=0.02)
    mallocs = samples(stacked, "glibc")[0]["kind"] != FREE
    share = (mallocs & (stacked_leaves == TEXT_OF_LABEL)).sum() / mallocs.sum()
    underlined = bars(tab)
    # main, draw, label, text: each row down to the function that asks has the same share.
    assert underlined[:5] == pytest.approx([share] * 5, abs=0.005) and sum(underlined[5:]) == 0
    assert f"Advice 1, underlined, covers {100 * share:.1f} %." in tab.text("flame-words")
    assert all(now != old for now, old in zip(pictures(tab), before, strict=True))
    assert tab.evaluate(f"document.querySelector('{FIRST}').getAttribute('aria-pressed')") == "true"
    tab.screenshot(SHOTS / "advice.png")
    tab.click("#advice tbody tr:nth-child(1) td:nth-child(4)")
    tab.evaluate("document.activeElement.blur()")
    assert pictures(tab) == before and tab.text("advice-details") == ""


def test_a_row_shows_the_evidence_the_exceptions_and_the_code(tab: Page, advised: Path) -> None:
    tab.open(advised, "#advice=1")
    words = tab.text("advice-details")
    assert words.startswith("temp in label()Allocates: text() < label().")
    assert "1 block breaks it and stays on the program's allocator: one of 64 bytes at 1.50 s outlives its" in words
    assert "blockyard::temp_allocate(bytes)" in words


def test_what_is_behind_a_row_is_in_sight_below_many_rows(tab: Page, tmp_path: Path, stacked: Campaign) -> None:
    many = advice_files.write(tmp_path / "many", [change("temp", [steps(SPAWN)], gain=(10e6, 6e6)) for _ in range(40)])
    success(report(stacked.directory, "--advice", many, "-o", tmp_path / "report"))
    tab.open(tmp_path / "report" / "report.html")
    tab.click(FIRST)
    assert tab.evaluate("document.getElementById('advice-details').getBoundingClientRect().top < innerHeight")
    assert tab.evaluate("document.querySelector('#advice button').getClientRects().length") == 1


def test_of_frees_those_of_its_blocks_are_marked(
    tab: Page, advised: Path, stacked: Campaign, stacked_leaves: np.ndarray
) -> None:
    tab.open(advised, "#of=glibc&op=free&advice=2")
    pair = np.load(stacked.directory / "runs" / "game" / "pairs.npy")
    slowest = slow(stacked, "glibc", frees=True)
    assert marked(tab)[0] == pytest.approx((stacked_leaves[pair[slowest]] == SPAWN).sum(), rel=0.02)
    frees = np.flatnonzero(samples(stacked, "glibc")[0]["kind"] == FREE)
    share = (stacked_leaves[pair[frees]] == SPAWN).mean()
    assert bars(tab)[0] == pytest.approx(share, abs=0.01)


def test_it_works_with_the_brush_the_search_and_the_zoom(tab: Page, advised: Path) -> None:
    tab.open(advised, "#of=glibc&advice=1")
    whole = marked(tab)[0]
    tab.drag("#strip", (0.05, 0.5), (0.3, 0.5))  # label() comes in the second half
    assert marked(tab)[0] == 0 and sum(bars(tab)) == 0
    tab.drag("#strip", (0.6, 0.5), (0.99, 0.5))
    assert 0 < marked(tab)[0] < whole and bars(tab)[0] > 0.2
    tab.fill("find", "libtext")
    assert "Found “libtext”" in tab.text("flame-words") and bars(tab)[0] > 0.2
    tab.open(advised, "#of=glibc&advice=1&find=spawn")
    tab.focus("#find")
    tab.press("Enter", "Enter")
    assert tab.text("frame-words").startswith("spawn(Level&, int)")
    assert marked(tab)[0] == 0 and "of the frame that is chosen" in tab.text("scatter-words")


def test_the_keyboard_chooses_a_row_and_a_link_brings_it_back(tab: Page, advised: Path) -> None:
    tab.open(advised)
    tab.focus(SECOND)
    tab.press("Enter")
    assert "those of advice 2, a block pool" in tab.text("scatter-words")
    tab.evaluate("document.activeElement.blur()")
    seen = pictures(tab)
    link = tab.link()
    tab.open(advised, link)
    assert "advice=2" in link and pictures(tab) == seen
    tab.open(advised, "#advice=7")
    assert tab.problems == [] and tab.text("scatter-words").startswith("Marks: ")


def test_on_a_phone_nothing_scrolls_sideways_but_the_table(tab: Page, advised: Path) -> None:
    tab.size(375, 812, phone=True, ratio=2)
    tab.open(advised, "#advice=1")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375
    tab.screenshot(SHOTS / "advice-phone.png")


def test_without_advice_there_is_no_table(opened: Page) -> None:
    assert opened.evaluate("document.getElementById('advice-card').offsetParent === null")


def test_advice_about_another_journal_is_refused_before_anything_is_written(stacked: Campaign, tmp_path: Path) -> None:
    other = advice_files.write(tmp_path / "advice", [], sha256="b" * 64)
    said = refusal(report(stacked.directory, "--advice", other, "-o", tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert said.strip() == (
        f"blockyard: {other} is advice about /there/game.byj, which is no journal of this campaign as it was replayed; "
        "'blockyard advise game.byj' writes advice about it"
    )


@pytest.mark.parametrize(
    "content, complaint",
    [
        (None, "holds no advice; give the folder that 'blockyard advise -o' wrote"),
        ("{", "is no advice of this version; write it again by 'blockyard advise'"),
        ('{"advice": [], "request": 5}', "is no advice of this version; write it again by 'blockyard advise'"),
        (
            '{"advice": [{}], "leave": [], "estimated_ns": 0, "frames": 0, "request": {"journal": "", "sha256": []}}',
            "is no advice of this version; write it again by 'blockyard advise'",
        ),
    ],
    ids=["no folder", "no JSON", "something else", "damaged"],
)
def test_what_is_no_advice_is_refused(stacked: Campaign, tmp_path: Path, content: str | None, complaint: str) -> None:
    if content is not None:
        (tmp_path / "advice").mkdir()
        (tmp_path / "advice" / "advice.json").write_text(content)
    assert complaint in sentence(report(stacked.directory, "--advice", tmp_path / "advice"))


def test_two_folders_of_advice_about_one_journal_are_refused(stacked: Campaign, tmp_path: Path) -> None:
    one, other = (advice_files.write(tmp_path / name, []) for name in ("one", "other"))
    said = refusal(report(stacked.directory, "--advice", one, "--advice", other, "-o", tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert said.strip() == f"blockyard: {one} and {other} are both advice about game; give one of them"


def test_a_folder_of_advice_is_reported_on_with_its_replays(tab: Page, tmp_path: Path) -> None:
    changes = [change("temp", [steps(SPAWN)], gain=(10e6, 6e6))]
    folder = advice_files.write(tmp_path / "advice", changes, routed=[np.arange(100)], events=100)
    campaign = Campaign(folder / "replays", ["glibc"], journals=["plain", "group-0", "together"])
    advice_files.name_journals(campaign)
    for journal in ("plain", "group-0", "together"):
        campaign.run("glibc", rows_of([(i, 0, 64, i * 1_000_000, 60, 0) for i in range(100)]), journal=journal)
        stack_files.write(campaign.directory / "runs" / journal, np.full(100, SPAWN))
    success(report(folder))
    tab.open(folder / "report" / "report.html", "#advice=1")
    assert tab.evaluate("[...document.getElementById('section').options].map(one => one.text)") == ["plain", "together"]
    assert marked(tab) == (100, 100)


def test_a_folder_of_advice_without_replays_says_what_to_do(tmp_path: Path) -> None:
    said = refusal(report(advice_files.write(tmp_path / "advice", [])))
    assert "run 'blockyard replay /there/game.byj -a" in said
