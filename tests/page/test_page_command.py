"""`blockyard report --html` on campaigns that are small, odd or hostile, and where it can't be."""

import json
from pathlib import Path

import numpy as np
import pytest
from browser import Page
from page_lab import ROOT, page_of, report
from synthetic import FREE, MALLOC, Campaign, rows

from blockyard.analysis import syscalls
from blockyard.report.page import bundle


def known(count: int = 400) -> np.ndarray:
    return rows(
        [
            (2 * i + kind // 2, kind, 100, i * 1_000_000 + kind * 100_000, 40 + i, 30)
            for i in range(count)
            for kind in (MALLOC, FREE)
        ]
    )


def test_a_build_without_the_libraries_says_so_before_it_begins(tmp_path: Path) -> None:
    Campaign(tmp_path / "results", ["one"]).run("one", known())
    (tmp_path / "build" / "page").mkdir(parents=True)
    (tmp_path / "build" / "page" / "missing.txt").write_text("npm was not found; install npm and build again\n")
    done = report(tmp_path / "results", BLOCKYARD_BUILD=str(tmp_path / "build"))
    assert done.returncode == 1
    assert done.stderr.strip() == "blockyard: --html is not possible: npm was not found; install npm and build again"
    assert not (tmp_path / "results" / "report").exists()


@pytest.mark.parametrize(
    "entries",
    [
        [(0, MALLOC, 8, 0, 30, 0)],
        [(0, FREE, 8, 0, 30, 0)],
        [],
        [(i, MALLOC, 64, i * 1000, 30 + i, 4) for i in range(50)],
    ],
    ids=["one malloc", "one free", "no event", "no frees"],
)
def test_tiny_journals_have_a_page(tab: Page, tmp_path: Path, entries: list[tuple[int, ...]]) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    campaign.run("one", rows(entries) if entries else known()[:0])
    tab.open(page_of(campaign))
    assert tab.problems == []
    tab.click("#operation label:nth-child(2)")
    assert tab.problems == []


def test_what_is_missing_is_said(tab: Page, tmp_path: Path) -> None:
    """Neither frames nor a clock to cut them by, no causes, no memory file."""
    campaign = Campaign(tmp_path / "results", ["one"], paces=["max"])
    folder = campaign.run("one", known(), pace="max")
    (folder / "memory.npy").unlink()
    tab.open(page_of(campaign))
    words = tab.evaluate("document.body.innerText")
    assert "Attributed is not in this report" in words
    assert "recorded no memory" in words
    assert "No frames: the journal has no frame marks" in words
    assert tab.problems == []


def test_system_calls_of_a_traced_run_stand_with_their_event(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    trace = campaign.run("one", known()).parent / syscalls.FOLDER
    trace.mkdir()
    (trace / "run.json").write_text(json.dumps({"status": "ok", "traced": True}))
    np.save(
        trace / "syscalls.npy",
        np.array([(798, 0, 9, 0, 3, 1000), (syscalls.OUTSIDE, syscalls.OWN_THREAD, 28, 0, 5, 1000)], syscalls.ROW),
    )
    page = page_of(campaign)
    words = []
    for event in (798, 796):
        tab.open(page, f"#event={event}")
        words.append(tab.text("event"))
    assert "system calls, when traced: mmap x3" in words[0]
    assert words[1].startswith("Event 796") and "system calls" not in words[1]
    tab.open(page, "#show=system+calls")
    row = tab.evaluate("[...document.querySelectorAll('#table tbody td')].map(cell => cell.textContent)")
    assert row[1:] == ["3", "3"]


def test_names_cannot_break_out_of_the_page(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    campaign.run("one", known())
    plan = json.loads((campaign.directory / "campaign.json").read_text())
    plan["name"] = "</script><img src=x onerror=alert(1)>@@facts@@"
    plan["allocators"][0]["version"] = "<b>1</b>"
    (campaign.directory / "campaign.json").write_text(json.dumps(plan))
    tab.open(page_of(campaign))
    assert "</script><img" in tab.text("campaign")
    assert tab.evaluate("document.images.length") == 0 and tab.problems == []


def test_several_journals_share_one_page(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one", "two"], journals=["game", "editor"])
    for journal, count in (("game", 400), ("editor", 150)):
        campaign.run("one", known(count), journal=journal)
        campaign.run("two", known(count), journal=journal)
    tab.open(page_of(campaign))
    first = tab.evaluate("document.querySelector('#table tbody td:nth-child(2)').textContent")
    tab.fill("section", 1)
    tab.wait("document.getElementById('campaign').textContent.includes('editor')")
    tab.settle()
    assert (first, tab.evaluate("document.querySelector('#table tbody td:nth-child(2)').textContent")) == ("400", "150")
    assert tab.problems == []


def test_another_journal_keeps_the_allocator_in_focus_and_tells_its_own_grades(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one", "two"], journals=["game", "editor"])
    for journal, late in (("game", 2_000), ("editor", 5_000_000)):
        for name in ("one", "two"):
            campaign.run(
                name, known(), journal=journal, lateness_ns={"p50": 50, "p99": late, "p999": late, "max": late}
            )
    tab.open(page_of(campaign))
    tab.fill("focus", "two")
    chips = "[...document.querySelectorAll('.chip')].map(chip => chip.textContent)"
    calm = tab.evaluate(chips)
    tab.fill("section", 1)
    tab.wait("document.getElementById('campaign').textContent.includes('editor')")
    tab.settle()
    assert (calm, tab.evaluate(chips)) == (["one", "two"], ["one !", "two !"])
    assert tab.evaluate("document.getElementById('focus').value") == "two"


def test_a_button_shows_all_of_a_variant_or_none_of_it(tab: Page, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one", "two", "one@prefaulted", "two@prefaulted"])
    for name in ("one", "two", "one@prefaulted", "two@prefaulted"):
        campaign.run(name, known())
    tab.open(page_of(campaign))
    names = "[...document.querySelectorAll('#table tbody td:first-child')].map(cell => cell.textContent).sort()"
    seen = [tab.evaluate(names)]
    for _ in range(2):
        tab.click(".chip-row:nth-child(2) button")
        seen.append(tab.evaluate(names))
    assert seen == [["one", "two"], ["one", "one@prefaulted", "two", "two@prefaulted"], ["one", "two"]]


def test_long_names_do_not_widen_the_page_on_a_phone(tab: Page, tmp_path: Path) -> None:
    journals = [f"a-journal-whose-name-is-quite-a-bit-longer-than-a-phone-is-wide-{number}" for number in (1, 2)]
    names = ["an-allocator-with-a-long-name", "an-allocator-with-a-long-name@prefaulted"]
    campaign = Campaign(tmp_path / "results", names, journals=journals)
    for journal in journals:
        for name in names:
            campaign.run(name, known(), journal=journal)
    page = page_of(campaign)
    tab.size(375, 812, phone=True, ratio=2)
    tab.open(page)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 375


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    campaign.run("one", known())
    first = page_of(campaign).read_bytes()
    assert page_of(campaign).read_bytes() == first


def test_a_failed_write_leaves_the_page_that_was_there(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    campaign.run("one", known())
    page = page_of(campaign)
    page.write_text("the old one")
    (campaign.folder("one") / "samples.npy").write_bytes(b"no rows")
    assert report(campaign.directory).returncode == 1
    assert page.read_text() == "the old one"


@pytest.mark.parametrize(
    "source, complaint",
    [
        ('import { a } from "./b.js";\n', "import each other in a circle: main.js -> b.js -> main.js"),
        ("export default 1;\n", "imports or exports in a way"),
        ("const same = 1;\n", "both declare same"),
    ],
)
def test_a_module_that_concatenation_would_break_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, complaint: str
) -> None:
    (tmp_path / "main.js").write_text(source + 'import { c } from "./c.js";\nfunction work() {}\n')
    (tmp_path / "b.js").write_text('import { work } from "./main.js";\nexport const a = 1;\n')
    (tmp_path / "c.js").write_text("export const c = 1;\nconst same = 2;\n")
    monkeypatch.setattr(bundle, "STATIC", tmp_path)
    with pytest.raises(ValueError, match=complaint):
        bundle.script()


def test_the_tree_names_no_registry_and_pins_every_library_by_hash() -> None:
    lock = (ROOT / "lab" / "cmake" / "page" / "package-lock.json").read_text()
    assert "://" not in lock
    entries = [entry for name, entry in json.loads(lock)["packages"].items() if name]
    assert entries and all(entry["integrity"].startswith("sha512-") for entry in entries)
