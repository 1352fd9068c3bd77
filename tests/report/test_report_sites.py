"""Reports on journals with call stacks: who waits, who fills the worst frame, who holds and who pins memory."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stacked import Journal
from synthetic import FREE, LOOKING, MALLOC, Campaign, rows

from blockyard import native
from blockyard.analysis.samples import BLOCK
from blockyard.errors import UserError
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

TABLES = ReportOptions(pictures=False, recorded_with="quick")
EVERYTHING = ReportOptions(pictures=False, recorded_with="quick", everything=True, samples_parquet=False)
EVENTS = 24_000
MS = 1_000_000


def sites_of(journal: Journal, campaign: Campaign) -> None:
    path = journal.write(campaign.directory / "game.txt")
    native.call("blockyard-sites", ["events", path, "-o", campaign.directory / "runs" / "game" / "sites.bys"])
    campaign.journal_facts(stacks=True)


@pytest.fixture
def lab(tmp_path: Path) -> Campaign:
    """`load` and `spawn` allocate in turns, and draw() frees at once what spawn() got. Every hundredth of spawn()'s
    calls takes 20 us on quick and 40 us on slow; once load()'s takes 2 ms, because the machine interrupted it."""
    campaign = Campaign(tmp_path / "results", ["quick", "slow"], repeats=2)
    journal, entries = Journal(), []
    load, spawn, draw = (journal.stack("main", name) for name in ("load()", "spawn(int)", "draw()"))
    for event in range(0, EVENTS, 3):
        ns = event * 1_000
        journal.allocate(100, 0x1000 + event, ns + 1, load)
        journal.allocate(200, 0x1001 + event, ns + 2, spawn)
        journal.free(0x1001 + event, ns + 3, draw)
        entries += [(event, MALLOC, 100, ns), (event + 1, MALLOC, 200, ns + 100), (event + 2, FREE, 200, ns + 200)]
    for name, us in (("quick", 20), ("slow", 40)):
        for repeat in (1, 2):
            made = rows([(*entry, 10 + 2 * 50, 0) for entry in entries])
            made["call"][1::300] = 10 + 2 * us * 1000
            made["call"][3000] = 10 + 2 * 2 * MS
            made["cause"][3000] = 1 | 8
            campaign.run(name, made, repeat, looking=LOOKING)
    campaign.events(np.full(EVENTS, 4294967295))
    sites_of(journal, campaign)
    return campaign


def table(result, name: str) -> dict:
    [found] = [one for one in result.json["sections"][0]["tables"] if one["title"].startswith(name)]
    return found


def test_who_waits_is_said_first_and_tabled_by_allocator(lab: Campaign) -> None:
    result = build(lab.directory, options=TABLES)
    sentence = (
        "spawn(int) waits longest on quick: 100 % of the time in events above 10 us (1.60 ms a run; 3.20 ms on slow)."
    )
    assert sentence in result.json["sections"][0]["verdict"]
    found = table(result, "who waits")
    assert found["answer"] == sentence
    assert [(row["name"], *row["cells"]) for row in found["rows"]] == [
        ("quick", 80, 1_600_000, 1, "spawn(int)"),
        ("slow", 80, 3_200_000, 1, "spawn(int)"),
    ]


def test_the_worst_frame_names_who_fills_it_as_it_ran(lab: Campaign) -> None:
    found = table(build(lab.directory, options=TABLES), "who fills the worst frame")
    first = found["rows"][0]
    assert first["name"] == "quick" and first["cells"][4] == "load()" and first["cells"][2] > MS
    assert [row["cells"][4] for row in found["rows"][:3]] == ["load()", "spawn(int)", "draw()"]


def test_the_tail_of_each_busy_site(lab: Campaign) -> None:
    found = table(build(lab.directory, options=EVERYTHING), "p99.9 by site")
    quick = {row["cells"][4]: row["cells"][:4] for row in found["rows"] if row["name"] == "quick"}
    assert quick == {
        "load()": [8000, 50, 50, 50],
        "spawn(int)": [8000, 50, 20_000, 20_000],
        "draw()": [8000, 50, 50, 50],
    }


def test_memory_by_site_at_the_peak_and_at_the_end(lab: Campaign) -> None:
    found = table(build(lab.directory, options=EVERYTHING), "memory by site")
    shares = [100 * 8000 / (100 * 8000 + 200), 200 / (100 * 8000 + 200)]
    assert [(row["name"], *row["cells"]) for row in found["rows"]] == [
        ("load()", 800_000, pytest.approx(shares[0], abs=1e-6), 8000, 800_000, 8000),
        ("spawn(int)", 200, pytest.approx(shares[1], abs=1e-6), 1, 0, 0),
    ]


def test_pages_belong_to_the_site_that_holds_them_alone(lab: Campaign) -> None:
    def blocks(*entries: tuple[int, int, int]) -> None:
        np.save(lab.folder("quick") / "blocks.npy", np.array(list(entries), BLOCK))

    spawned = 1
    # A page of load() alone, one that both share, and a large block of load() whose last page is nearly empty.
    blocks((0x10010, 100, 0), (0x10100, 100, 3), (0x20000, 64, 0), (0x20100, 64, spawned), (0x30000, 3 * 4096 + 96, 6))
    found = table(build(lab.directory, options=EVERYTHING), "who pins pages")
    assert [(row["name"], *row["cells"]) for row in found["rows"]] == [
        ("quick", 3, 3 * 4096 - 200 - 4096 - 96, 200 + 4096 + 96, 3, "load()")
    ]


def test_a_journal_without_stacks_gets_one_line_that_says_how_to_have_them(lab: Campaign) -> None:
    (lab.directory / "runs" / "game" / "sites.bys").unlink()
    lab.journal_facts(stacks=False)
    text = " ".join(build(lab.directory, options=TABLES).text.split())
    assert "Sites: the journal has no call stacks; record the program again with 'blockyard record'" in text
    assert "who waits" not in text and "waits longest" not in text
    lab.journal_facts(stacks=None)
    text = " ".join(build(lab.directory, options=TABLES).text.split())
    assert "Sites: this campaign was replayed without them" in text


def test_functions_that_are_skipped_leave_their_place_to_their_callers(lab: Campaign) -> None:
    options = replace(TABLES, skip="^spawn")
    found = table(build(lab.directory, options=options), "who waits")
    assert [row["cells"][3] for row in found["rows"]] == ["main", "main"]
    with pytest.raises(UserError, match=r"'\('"):
        build(lab.directory, options=replace(TABLES, skip="("))


def test_functions_of_one_name_in_two_modules_are_told_apart(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["quick"])
    journal = Journal()
    other = journal.module("/usr/games/libother.so")
    mine = journal.stack("main", "load()")
    theirs = journal.stack("main", journal.frame("load()", other))
    journal.allocate(100, 0x10, 1, mine)
    journal.allocate(100, 0x20, 2, theirs)
    campaign.run("quick", rows([(0, MALLOC, 100, 0, 10 + 2 * 20_000, 0), (1, MALLOC, 100, 9, 10 + 2 * 30_000, 0)]))
    campaign.events(np.full(2, 4294967295))
    sites_of(journal, campaign)
    found = table(build(campaign.directory, options=TABLES), "who waits")
    assert [row["cells"][3] for row in found["rows"]] == ["load() (libother.so)", "load() (libgame.so)"]


def test_sites_are_in_every_form_of_the_report(lab: Campaign) -> None:
    result = build(lab.directory, options=TABLES)
    assert re.search(r"^quick +80\.0 +1\.60 ms +100 % +spawn\(int\)$", result.text, re.MULTILINE)
    assert "| quick | 80.0 | 1.60 ms | 100 % | spawn(int) |" in (result.out / "report.md").read_text()
    assert "spawn(int)" in (result.out / "tables.csv").read_text()
    json.dumps(result.json)


def test_a_long_name_is_short_in_text_and_whole_elsewhere(tmp_path: Path) -> None:
    name = "void app::fill<std::vector<int, app::Allocator<int> > >(std::vector<int, app::Allocator<int> > const&, int)"
    campaign = Campaign(tmp_path / "results", ["quick"])
    journal = Journal()
    journal.allocate(100, 0x10, 1, journal.stack("main", name))
    campaign.run("quick", rows([(0, MALLOC, 100, 0, 10 + 2 * 20_000, 0)]))
    campaign.events(np.full(1, 4294967295))
    sites_of(journal, campaign)
    result = build(campaign.directory, options=TABLES)
    assert "app::fill<std::vector<int, app::Allocator<int> > >(…) waits longest on quick" in " ".join(
        result.text.split()
    )
    assert re.search(r"^quick .* app::fill<std::vector<…> >\(…\)$", result.text, re.MULTILINE)
    assert name in (result.out / "tables.csv").read_text()


@pytest.mark.parametrize("allocator, columns", [("quick", 80), ("quick-with-a-name-that-leaves-little-room", 105)])
def test_names_that_differ_in_a_template_argument_leave_tables_as_narrow(
    tmp_path: Path, allocator: str, columns: int
) -> None:
    find = "app::Registry<std::pair<int, std::basic_string<char> >, {}>::find_all_items_by_a_very_long_name(int) const"
    names = [find.format(argument) for argument in "AB"]
    campaign = Campaign(tmp_path / "results", [allocator])
    journal = Journal()
    for number, name in enumerate(names):
        journal.allocate(100, 0x10 + 0x100 * number, 1 + number, journal.stack("main", name))
    campaign.run(allocator, rows([(at, MALLOC, 100, at, 10 + 2 * 20_000, 0) for at in range(2)]))
    campaign.events(np.full(2, 4294967295))
    sites_of(journal, campaign)
    text = build(campaign.directory, options=replace(EVERYTHING, recorded_with=allocator)).text
    assert [line for line in text.splitlines() if len(line) > columns] == []
    table = text.split("\nmemory by site", 1)[1].split("\n\n", 1)[0]
    whole = "".join(re.sub("  +.*", "", line.strip()) for line in table.splitlines()).replace(" ", "")
    for argument in "AB":
        assert f"app::Registry<std::pair<…>,{argument}>::find_all_items_by_a_very_long_name(…)" in whole


def test_an_address_that_waits_longest_says_how_it_gets_a_name(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results", ["quick"])
    journal = Journal()
    journal.allocate(100, 0x10, 1, journal.stack("main", ""))
    campaign.run("quick", rows([(0, MALLOC, 100, 0, 10 + 2 * 20_000, 0)]))
    campaign.events(np.full(1, 4294967295))
    sites_of(journal, campaign)
    path = f"/games{'/night-of-the-shooter' * 3}.byj"
    campaign.journal_facts(path=path)
    said = " ".join(build(campaign.directory, options=TABLES).json["sections"][0]["verdict"])
    assert "An unnamed function of libgame.so (+0x101) waits longest on quick" in said
    assert (
        f"To name it, install debug symbols (-dbgsym), run 'blockyard names {path}' (--debug-dir DIR for "
        "symbols elsewhere) and replay again; or build with -g and record again." in said
    )
