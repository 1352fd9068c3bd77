"""The tables of a campaign whose every figure is known."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from synthetic import (
    FREE,
    LOOKING,
    MALLOC,
    REALLOC,
    ZEROED,
    Campaign,
    known_rows,
    latencies,
    lifelike,
    lifelike_campaign,
    rows,
)

from blockyard.analysis.distribution import SATURATED
from blockyard.analysis.latency import PERCENTILES, SIZE_CLASSES, View
from blockyard.errors import UserError
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions, ReportResult

TABLES = ReportOptions(everything=True, pictures=False)


def figures(result: ReportResult, **wanted: object) -> dict[str, object]:
    """The one row of summary.csv that fits."""
    wanted = {"size_class": "all", **wanted}
    table = pyarrow.csv.read_csv(result.out / "summary.csv").to_pylist()
    found = [row for row in table if all(row[key] == value for key, value in wanted.items())]
    assert len(found) == 1, f"{len(found)} rows fit {wanted}"
    return found[0]


def titles(result: ReportResult) -> set[str]:
    return {one["title"] for section in result.json["sections"] for one in section["tables"]}


def table(result: ReportResult, title: str) -> dict[str, list]:
    """By allocator the cells of the table under that title, in ns, bytes and shares."""
    (found,) = [one for one in result.json["sections"][0]["tables"] if one["title"] == title]
    return {row["name"]: row["cells"] for row in found["rows"]}


@pytest.mark.parametrize(
    "view, part, best, median, p99, worst",
    [
        ("as-run", "call", 1, 1000, 1980, 2000),
        ("as-run", "touch", 100, 100, 100, 100),
        ("as-run", "call+touch", 101, 1100, 2080, 2100),
        ("inherent", "call", 1, 500, 990, 1000),
        ("inherent", "call+touch", 101, 600, 1090, 1100),
    ],
)
def test_summary_has_the_known_malloc_figures(
    campaign: Campaign, view: str, part: str, best: int, median: int, p99: int, worst: int
) -> None:
    result = build(campaign.directory, options=TABLES)
    found = figures(result, allocator="quick", view=view, operation="malloc", part=part)
    assert [found[key] for key in ("best_ns", "p50_ns", "p99_ns", "worst_ns")] == [best, median, p99, worst]


def test_summary_has_the_known_free_figures_and_leaves_unsupported_percentiles_empty(campaign: Campaign) -> None:
    result = build(campaign.directory, options=TABLES)
    found = figures(result, allocator="slow", view="as-run", operation="free", part="call")
    assert found["samples"] == 2000 and found["best_ns"] == found["p99_ns"] == found["worst_ns"] == 50
    found = figures(result, allocator="quick", view="as-run", operation="malloc", part="call")
    assert found["p99_ns"] is not None and found["p99.9_ns"] is None


def test_summary_parquet_is_the_same_as_the_csv(campaign: Campaign) -> None:
    result = build(campaign.directory, options=TABLES)
    csv = pyarrow.csv.read_csv(result.out / "summary.csv").to_pylist()
    parquet = pyarrow.parquet.read_table(result.out / "summary.parquet").to_pylist()
    assert [[row["allocator"], row["p50_ns"]] for row in csv] == [[row["allocator"], row["p50_ns"]] for row in parquet]


def test_report_puts_the_allocators_side_by_side(campaign: Campaign) -> None:
    result = build(campaign.directory, options=TABLES)
    assert table(result, "malloc and first touch: as-run, defaults") == {
        "quick": [101, 1100, 2080, None, None, None, 2100],
        "slow": [601, 1600, 2580, None, None, None, 2600],
    }
    text = result.text.split("malloc and first touch: as-run, defaults\n")[1]
    assert " ".join(text.splitlines()[2].split()) == "quick 101 ns 1.10 us 2.08 us – – – 2.10 us"
    assert "fewer than 10 samples lie beyond" in text.splitlines()[4]


def test_report_has_the_studys_header_figures(campaign: Campaign) -> None:
    text = build(campaign.directory, options=TABLES).text
    quick = text.split("quick 1.0\n", 1)[1]
    for name, figure in [
        ("Number of mallocs", "1,000"),
        ("Number of frees", "1,000"),
        ("Total allocation", "97.7 KiB"),
        ("Max live bytes", "1.00 MiB"),
        ("Average allocation", "100 B"),
        ("Median allocation", "100 B"),
        ("Leaked", r"0 \(0 B\)"),
        (r"Average Malloc Time \(as-run\)", "1.10 us"),
        (r"Average Malloc Time \(inherent\)", "600 ns"),
    ]:
        assert re.search(rf"{name} +{figure}\n", quick), name


def test_report_has_the_studys_percentiles_from_best_to_worst(campaign: Campaign) -> None:
    quick = build(campaign.directory, options=TABLES).text.split("quick 1.0\n", 1)[1].split("as-run\n", 1)[1]
    first_column = [line.split("  ")[0] for line in quick.splitlines()[2:16]]
    assert first_column == ["Best", *(percentile.label for percentile in PERCENTILES), "Worst"]
    assert re.search(r"p25 +500 ns +100 ns +600 ns +50\.0 ns", quick)


def test_blocks_that_are_never_freed_are_leaked(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(0, MALLOC, 70, 0, 30, 0), (1, MALLOC, 30, 1, 30, 0), (2, FREE, 30, 2, 30, 0)]))
    campaign.events(np.array([4294967295, 2, 1]))
    assert re.search(r"Leaked +1 \(70 B\)", build(campaign.directory, options=TABLES).text)


def test_reallocs_count_as_malloc_and_stand_apart(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(0, MALLOC, 8, 0, 30, 0), (1, REALLOC, 80, 1, 110, 0), (2, ZEROED, 8, 2, 30, 0)]))
    result = build(campaign.directory, options=TABLES)
    malloc = figures(result, view="as-run", operation="malloc", part="call")
    realloc = figures(result, view="as-run", operation="realloc", part="call")
    assert (malloc["samples"], malloc["worst_ns"], realloc["samples"], realloc["best_ns"]) == (3, 50, 1, 50)


def test_by_size_splits_every_table(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run(
        "one",
        rows([(i, MALLOC, size, i, 10 + 2 * (i + 1), 0) for i, size in enumerate((64, 1024, 32768, 1 << 20, 1 << 21))]),
    )
    result = build(campaign.directory, options=ReportOptions(everything=True, pictures=False, by_size=True))
    for best, blocks in enumerate(SIZE_CLASSES, start=1):
        assert table(result, f"malloc, blocks {blocks}: as-run, defaults")["one"][0] == best


def test_gross_figures_keep_the_timers_floor(campaign: Campaign) -> None:
    result = build(campaign.directory, options=ReportOptions(everything=True, pictures=False, gross=True))
    assert figures(result, allocator="quick", view="inherent", operation="malloc", part="call")["best_ns"] == 6
    assert result.json["sections"][0]["header"][1].endswith("timer floor 5.00 ns, left in")


def measured_floors(directory: Path) -> Campaign:
    """Two allocators, two repeats each: every call takes 40 ticks, and each run measured another floor."""
    campaign = Campaign(directory, ["one", "other"], repeats=2)
    for allocator, floors in {"one": (30, 14), "other": (12, 38)}.items():
        for repeat, floor in enumerate(floors, start=1):
            campaign.run(allocator, rows([(0, MALLOC, 8, 0, 40, 0)]), repeat, floor_call_ticks=floor)
    return campaign


@pytest.mark.parametrize("view", ["as-run", "inherent"])
def test_one_floor_the_least_that_any_run_measured_is_taken_off_all_runs(tmp_path: Path, view: str) -> None:
    result = build(measured_floors(tmp_path / "r").directory, options=TABLES)
    for allocator in ("one", "other"):
        found = figures(result, allocator=allocator, view=view, operation="malloc", part="call")
        assert [found[key] for key in ("best_ns", "worst_ns", "floor_call_ns")] == [14, 14, 6], allocator
    clock = result.json["sections"][0]["header"][1]
    assert clock.endswith("timer floor 6.00 ns (in single runs up to 19.0 ns), taken off")


def test_a_table_of_one_allocator_takes_the_floor_of_all_off(tmp_path: Path) -> None:
    result = build(
        measured_floors(tmp_path / "r").directory,
        options=ReportOptions(everything=True, pictures=False, allocators=("one",)),
    )
    assert figures(result, view="inherent", operation="malloc", part="call")["best_ns"] == 14


def test_a_saturated_call_is_said_to_be_at_least_that(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(0, MALLOC, 8, 0, SATURATED, 0)]))
    text = build(campaign.directory, options=TABLES).text
    assert "≥2.15 s" in text and "it took at least that long" in text


def test_one_view_alone_can_be_asked_for(campaign: Campaign) -> None:
    result = build(campaign.directory, options=ReportOptions(everything=True, views=(View.INHERENT,), pictures=False))
    assert {"free: inherent, defaults", "free: as-run, defaults"} & titles(result) == {"free: inherent, defaults"}


def test_prefaulted_variants_have_a_table_of_their_own(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["null", "one", "one@prefaulted"])
    for name in ("null", "one", "one@prefaulted"):
        campaign.run(name, known_rows(1))
    result = build(campaign.directory, options=TABLES)
    for variant, name in (("defaults", "one"), ("prefaulted", "one@prefaulted")):
        assert list(table(result, f"free: as-run, {variant}")) == [name, "null"]


def test_paces_touches_and_journals_are_never_in_one_table(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], journals=("a", "b"), paces=("1x", "max"), touches=("none", "page"))
    for journal in ("a", "b"):
        for pace in ("1x", "max"):
            for touch in ("none", "page"):
                campaign.run("one", known_rows(1), journal=journal, pace=pace, touch=touch)
    sections = build(campaign.directory, options=TABLES).json["sections"]
    assert len({section["title"] for section in sections}) == 8
    for section in sections:
        assert [one["title"] for one in section["tables"]].count("free: as-run, defaults") == 1


def test_slow_events_are_counted_a_second_beside_null(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["null", "one"])
    slow = [
        (i, MALLOC, 8, i * 100_000_000, 10 + 2 * ns, 0)
        for i, ns in enumerate((900, 1100, 2000, 50_000, 200_000, 10, 10, 10, 10, 10, 10))
    ]
    campaign.run("one", rows(slow))
    campaign.run("null", rows([(*row[:4], 10, 0) for row in slow]))
    title = "slow events per second: as-run, mallocs with touch and frees, defaults"
    found = table(build(campaign.directory, options=TABLES), title)
    assert found == {"one": [4, 2, 1, 1], "null": [0, 0, 0, 1]}


def test_repeats_with_different_calibrations_are_brought_to_one_tick(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=2)
    campaign.run("one", rows([(0, MALLOC, 8, 0, 10 + 20_000, 0)]), 1)
    campaign.run("one", rows([(0, MALLOC, 8, 0, 10 + 20_100, 0)]), 2, ticks_per_ns=2.01)
    found = figures(build(campaign.directory, options=TABLES), view="as-run", operation="malloc", part="call")
    assert found["best_ns"] == pytest.approx(10_000, rel=1e-4) == found["worst_ns"]


def test_every_section_states_its_circumstances(campaign: Campaign) -> None:
    plan = campaign.directory / "campaign.json"
    for options, words in (
        ({}, "the journal's threads"),
        ({"in_order": True}, "the journal's threads in the journal's order"),
        ({"keep_awake": True}, "the journal's threads, cores kept awake"),
    ):
        before = plan.read_text()
        plan.write_text(json.dumps({**json.loads(before), **options}))
        (section,) = build(campaign.directory, options=TABLES).json["sections"]
        plan.write_text(before)
        assert section["header"] == [
            "Machine: Test Processor 9000, 2 cores, 8.00 GiB; Debian GNU/Linux 12, Linux 6.1.0, huge pages madvise, "
            "governor performance",
            "Clock: tsc at 2.000 ticks/ns in steps of 1.00 ns; timer floor 5.00 ns, taken off",
            f"Runs: 2 repeats; 1x pace, one byte touched in every page, {words}",
        ]


def test_no_line_of_the_whole_text_report_is_wider_than_eighty_columns(tmp_path: Path) -> None:
    """Slow events with every cause at once, as machines under load show them, and threads of the allocator's own."""
    campaign = Campaign(tmp_path / "r", ["blockyard", "rpmalloc@prefaulted", "null"], repeats=2)
    base, pair = lifelike(20_000, seconds=4)
    base["size"][base["size"] > 1000] = 4 << 20
    for name in ("blockyard", "rpmalloc@prefaulted", "null"):
        for repeat in (1, 2):
            made = latencies(base, 1.0, 1.0, 1000 + repeat)
            made["cause"][made["cause"] > 0] = 255
            campaign.run(
                name,
                made,
                repeat,
                looking=LOOKING,
                timed_ns=123_456_789_000,
                background={"threads": 12, "cpu_ns": 7_654_321_000, "names": ["purger"]},
                after_last_free={"cpu_ns": 10**9, "settled_after_ns": 10**9, "resident_bytes": 123 << 20},
            )
    campaign.events(pair)
    campaign.journal_facts(
        phases=[{"name": "load", "time_ns": 0, "event": 5}, {"name": "play", "time_ns": 2 * 10**9, "event": 10_000}]
    )
    text = build(campaign.directory, options=ReportOptions(everything=True, pictures=False, by_size=True)).text
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "page fault in the touch" in " ".join(text.split()), "a folded cause keeps its words"


def test_the_processor_time_of_an_allocators_own_threads_is_added_to_its_calls(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run(
        "one",
        rows([(0, MALLOC, 64, 0, 10, 0)]),
        timed_ns=2_000_000,
        background={"threads": 1, "cpu_ns": 5_000_000, "names": ["janitor"]},
    )
    found = table(build(campaign.directory, options=TABLES), "processor time: defaults")
    assert found["one"][:4] == [2_000_000, 1, 5_000_000, 7_000_000]


def test_markdown_tables_have_as_many_cells_as_columns(campaign: Campaign) -> None:
    markdown = (build(campaign.directory, options=TABLES).out / "report.md").read_text()
    tables = [block.splitlines() for block in markdown.split("\n\n") if block.startswith("|")]
    assert tables and all(len({line.count("|") for line in table if line.startswith("|")}) == 1 for table in tables)


def three(campaign: Campaign) -> Campaign:
    """A third repeat of each, like the second."""
    for name in ("quick", "slow"):
        campaign.run(name, known_rows(2), 3)
    plan = campaign.directory / "campaign.json"
    plan.write_text(plan.read_text().replace('"repeats": 2', '"repeats": 3'))
    return campaign


def test_summary_has_the_ends_of_each_percentiles_interval(campaign: Campaign) -> None:
    result = build(campaign.directory, options=TABLES)
    found = figures(result, allocator="quick", view="as-run", operation="malloc", part="call")
    assert found["p99_low_ns"] is None, "two repeats show no spread"
    campaign = three(campaign)
    found = figures(
        build(campaign.directory, options=TABLES), allocator="quick", view="as-run", operation="malloc", part="call"
    )
    assert found["p99_low_ns"] < found["p99_ns"] < found["p99_high_ns"]
    assert found["p99.9_low_ns"] is None and found["p99.9_high_ns"] is None


def test_tables_have_the_intervals_of_what_is_supported(campaign: Campaign) -> None:
    campaign = three(campaign)
    found = table(build(campaign.directory, options=TABLES), "malloc and first touch: intervals, as-run, defaults")
    # No column for what no allocator has events enough for.
    assert len(found["quick"]) == 2 and re.fullmatch(r"2\.0\d–2\.\d\d us", found["quick"][1])


def looked(made: np.ndarray, interrupted: int) -> np.ndarray:
    """Every event slower than 1.5 us was looked at; the first so many of them were interrupted."""
    made = made.copy()
    slow = made["call"] > 10 + 2 * 1500
    made["cause"][slow] = 1
    made["cause"][np.flatnonzero(slow)[:interrupted]] |= 8
    return made


def test_attributed_stands_beside_the_others_where_causes_are_known(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=2)
    for repeat in (1, 2):
        campaign.run(
            "one",
            looked(known_rows(repeat), 400),
            repeat,
            looking={"threshold_ns": 1500, "events": 500, "ns_a_look": 400, "source": "perf", "reason": ""},
        )
    result = build(campaign.directory, options=TABLES)
    found = figures(result, allocator="one", view="attributed", operation="malloc", part="call")
    assert (found["samples"], found["worst_ns"], found["p50_ns"]) == (1600, 2000, 800)
    assert {
        "malloc, the call alone: attributed, defaults",
        "slow events per second: attributed, mallocs with touch and frees, defaults",
    } <= titles(result)


def test_without_causes_there_is_no_attributed_view(campaign: Campaign) -> None:
    result = build(campaign.directory, options=TABLES)
    assert not [title for title in titles(result) if "attributed" in title]
    with pytest.raises(UserError, match="did not look for the causes of slow events"):
        build(campaign.directory, options=ReportOptions(everything=True, views=(View.ATTRIBUTED,), pictures=False))


def test_every_table_of_latencies_has_one_of_intervals(tmp_path: Path) -> None:
    campaign = lifelike_campaign(tmp_path / "r", [("one", 1.0, 1.0)], 4000, 3, 2.0)
    found = titles(build(campaign.directory, options=ReportOptions(everything=True, pictures=False, by_size=True)))
    latencies = r"((?:malloc|first touch|realloc|free).*): (as-run|attributed|inherent), defaults"
    tables = [match.groups() for match in (re.fullmatch(latencies, title) for title in found) if match]
    assert len(tables) > 15
    for what, view in tables:
        assert (f"{what}: intervals, {view}, defaults" in found) == (view != "inherent")
