"""`blockyard report` as a user meets it: what it prints, what it says of campaigns that are not whole, bad input."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from synthetic import Campaign, known_campaign, known_rows, lifelike_campaign, rows
from the_command import blockyard, sentence, started, success

from blockyard.analysis import samples_library

Report = Callable[..., subprocess.CompletedProcess[str]]
QUICK = ("--no-pictures", "--no-samples-parquet")


def facts(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON of a report on one section, with the cells of its tables by title and row."""
    found = json.loads(success(result).stdout)
    [section] = found["sections"]
    tables = {one["title"]: {row["name"]: row["cells"] for row in one["rows"]} for one in section["tables"]}
    return {**section, "notes": found["notes"], "cells": tables}


def test_report_prints_a_table_of_eighty_columns_and_where_the_rest_is(campaign: Campaign, report: Report) -> None:
    result = success(report("results", *QUICK))
    table = result.stdout.split("Tables:")[0]
    assert max(map(len, table.splitlines())) <= 80
    assert "quick" in table and "as-run" in table and "Verdict" in table
    assert (campaign.directory / "report" / "report.txt").is_file()


def by_itself(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The quick report in a process of its own."""
    return blockyard("report", "results", *QUICK, cwd=folder, more=environment)


def test_a_narrow_terminal_leaves_no_letter_of_a_figure_out(campaign: Campaign, report: Report) -> None:
    of_eighty = report("results", *QUICK).stdout
    assert by_itself(campaign.directory.parent, COLUMNS="20").stdout == of_eighty


def test_report_goes_where_it_is_told(campaign: Campaign, report: Report, tmp_path: Path) -> None:
    assert report("results", "-o", "elsewhere", *QUICK).returncode == 0
    assert (tmp_path / "elsewhere" / "summary.csv").is_file() and not (campaign.directory / "report").exists()


def test_allocators_and_journals_can_be_picked(tmp_path: Path, report: Report) -> None:
    known_campaign(tmp_path / "results")
    found = facts(report("results", "--allocator", "slow", "--journal", "game", "--json", *QUICK))
    assert {name for rows in found["cells"].values() for name in rows} == {"slow"}


@pytest.mark.parametrize("option, what", [("--allocator", "allocator"), ("--journal", "journal")])
def test_an_unknown_name_is_refused_with_the_known_ones(
    campaign: Campaign, report: Report, option: str, what: str
) -> None:
    assert f"has no {what} 'nope'; it has " in sentence(report("results", option, "nope", *QUICK))


def test_a_half_finished_campaign_is_reported_and_said_to_be_so(tmp_path: Path, report: Report) -> None:
    campaign = Campaign(tmp_path / "results", ["one", "two"], repeats=2)
    campaign.run("one", known_rows(1), 1)
    campaign.run("two", known_rows(1), 1)
    campaign.run("one", known_rows(2), 2)
    found = facts(report("results", "--json", *QUICK))
    assert "not finished (3 of 4 runs are there)" in found["notes"][0] and "two has 1" in found["warnings"][0]


def test_failed_and_missing_allocators_are_listed_with_their_reasons(tmp_path: Path, report: Report) -> None:
    campaign = Campaign(tmp_path / "results", ["one", "bad"], missing=[("scudo", "libscudo.so is not installed")])
    campaign.run("one", known_rows(1))
    campaign.run("bad", None, status="failed", reason="it crashed (SIGSEGV)")
    found = facts(report("results", "--json", *QUICK))
    assert found["warnings"] == ["bad failed in 1 of 1 runs: it crashed (SIGSEGV)"]
    assert found["notes"] == ["scudo is missing: libscudo.so is not installed"]
    said = " ".join(report("results", *QUICK).stdout.split())
    assert all(f"! {words}" in said for words in found["warnings"] + found["notes"])


def unfinished(folder: Path) -> None:
    Campaign(folder, ["one"], repeats=3)


def failed(folder: Path) -> None:
    Campaign(folder, ["one"]).run("one", None, status="failed", reason="out of memory")


def of_two_machines(folder: Path) -> None:
    path = known_campaign(folder).folder("slow", 1) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "ticks_per_ns": 3.4}))


@pytest.mark.parametrize(
    "make, words",
    [
        (unfinished, "has no finished run yet (3 planned); 'blockyard replay --resume"),
        (failed, "no run of the campaign in results succeeded (one: out of memory)"),
        (of_two_machines, "measured on different machines and cannot be compared"),
        (Path.mkdir, "results holds no campaign"),
        (lambda folder: None, "results is not a folder"),
    ],
    ids=["unfinished", "failed", "two machines", "empty", "missing"],
)
def test_what_can_not_be_reported_on_is_refused_with_the_reason(
    tmp_path: Path, report: Report, make: Callable[[Path], None], words: str
) -> None:
    make(tmp_path / "results")
    assert words in sentence(report("results", *QUICK))


def test_an_allocator_that_needed_a_lock_is_marked(tmp_path: Path, report: Report) -> None:
    campaign = Campaign(tmp_path / "results", ["tlsf", "one"])
    campaign.run("tlsf", known_rows(1), needs_lock=True, needs_pool=True)
    campaign.run("one", known_rows(1))
    assert "\ntlsf* " in report("results", *QUICK).stdout


def test_a_replay_on_one_thread_is_said_to_be_one(tmp_path: Path, report: Report) -> None:
    known_campaign(tmp_path / "results", threads="one")
    found = facts(report("results", "--json", *QUICK))
    assert found["warnings"][0].startswith("all events ran on one thread (--threads one)")
    assert found["header"][2].endswith("on one thread")


def test_untimed_runs_show_what_all_calls_together_take(tmp_path: Path, report: Report) -> None:
    campaign = Campaign(tmp_path / "results", ["one"], totals=True)
    campaign.run("one", known_rows(1))
    campaign.bursts("one", [(7, 0, 321_000_000)])
    campaign.bursts("null", [(7, 0, 1_000_000)])
    found = facts(report("results", "--json", *QUICK))
    assert found["cells"]["all calls together: untimed, defaults"]["one"][0] == 320_000_000


def tampered() -> np.ndarray:
    made = known_rows(2, 500)
    made["event"][1000] += 1
    return made


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "should have 2,000 rows and has 1,999.4"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "should have 2,000 rows"),
        (lambda path: path.write_bytes(b""), "is not a sample file"),
        (lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\xff\xff{"), "is not a sample file"),
        (lambda path: path.write_bytes(b"hello, this is no array at all"), "is not a sample file"),
        (lambda path: np.save(path, np.zeros(2000)), "does not have the columns of a sample file"),
        (lambda path: path.unlink(), "is missing though its run.json says that the run finished"),
        (lambda path: np.save(path, tampered()), "row 1000"),
    ],
)
def test_damaged_samples_are_refused_by_name(
    campaign: Campaign, report: Report, damage: Callable[[Path], None], words: str
) -> None:
    path = campaign.folder("slow", 2) / "samples.npy"
    damage(path)
    said = sentence(report("results", *QUICK))
    assert str(path.relative_to(campaign.directory.parent)) in said and words in said


@pytest.mark.parametrize(
    "name, text, words",
    [
        ("campaign.json", "{", "campaign.json is not a campaign's plan"),
        ("campaign.json", "[]", "campaign.json"),
        ("machine.json", "}{", "machine.json is missing or damaged"),
        ("runs/game/quick/1x-page/1/run.json", '{"status": "o', "1/run.json is damaged"),
        ("runs/game/quick/1x-page/1/run.json", "{}", "1/run.json is damaged"),
        ("runs/game/quick/1x-page/1/run.json", '{"status": "ok", "wall_ns": NaN}', "1/run.json is damaged"),
        ("runs/game/quick/1x-page/1/run.json", '{"status": "ok", "background": 3}', "1/run.json is damaged"),
        ("runs/game/quick/1x-page/1/run.json", '{"status": "ok"}', "has no usable 'ticks_per_ns'"),
        ("runs/game/frames.npy", "no array", "frames.npy is not a frame file"),
    ],
)
def test_damaged_documents_are_refused_by_name(
    campaign: Campaign, report: Report, name: str, text: str, words: str
) -> None:
    (campaign.directory / name).write_text(text)
    assert words in sentence(report("results", *QUICK))


def test_a_plan_that_does_not_say_why_an_allocator_is_missing_is_refused(campaign: Campaign, report: Report) -> None:
    path = campaign.directory / "campaign.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "missing": [{"name": "tlsf"}]}))
    assert "campaign.json" in sentence(report("results", *QUICK))


def test_a_file_where_the_report_should_go_is_refused(campaign: Campaign, report: Report, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    assert "taken can't be written" in sentence(report("results", "-o", "taken", *QUICK))
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("options, budget", [((), "60 Hz (16.7 ms)"), (("--fps", "100"), "100 Hz (10.0 ms)")])
def test_the_verdict_in_the_terminal_is_of_the_rate_that_was_asked_for(
    campaign: Campaign, report: Report, options: tuple[str, ...], budget: str
) -> None:
    found = success(report("results", *options, *QUICK))
    assert f"share of a frame at {budget}" in found.stdout
    assert found.stdout.count("share of a frame") == 1
    assert f"share of a frame at {budget}" in (campaign.directory / "report" / "report.txt").read_text()


@pytest.mark.parametrize("rate", ["nan", "0", "inf"])
def test_a_rate_that_is_no_number_of_frames_is_refused(campaign: Campaign, report: Report, rate: str) -> None:
    result = report("results", "--fps", rate, *QUICK)
    assert result.returncode == 2
    assert "'--fps'" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "entries", [[(0, 0, 8, 0, 30, 0)], [(0, 3, 8, 0, 30, 0)], []], ids=["one malloc", "one free", "no event"]
)
def test_tiny_journals_work(tmp_path: Path, report: Report, entries: list[tuple[int, ...]]) -> None:
    campaign = Campaign(tmp_path / "results", ["one"])
    made = rows(entries) if entries else known_rows(1)[:0]
    campaign.run("one", made)
    campaign.events(np.full(len(made), 4294967295))
    success(report("results"))


def test_an_interrupt_ends_the_report_without_a_trace_or_half_a_file(tmp_path: Path) -> None:
    process = slow_report(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130 and "Traceback" not in said and "interrupted" in said
    assert not list((tmp_path / "results").rglob("*.partial"))


def slow_report(tmp_path: Path) -> subprocess.Popen[str]:
    """A report that draws for a while, waited for until its first picture is there."""
    names = [f"a{number}" for number in range(12)]
    campaign = lifelike_campaign(tmp_path / "results", [(name, 1.0, 1.0) for name in names], 20_000, 1)
    process = started("report", "results", cwd=tmp_path, process_group=0)
    while process.poll() is None and not list((campaign.directory / "report" / "game" / "1x-page").glob("*.png")):
        time.sleep(0.02)
    return process


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{process.pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies_ends_the_report_with_a_sentence(tmp_path: Path, number: int) -> None:
    process = slow_report(tmp_path)
    os.kill(workers_of(process)[0], number)
    out, said = process.communicate()  # returns when nobody is left who could write
    words = "a process that drew pictures ended, most likely because the machine ran out of memory; "
    assert words in sentence(subprocess.CompletedProcess([], process.returncode, out, said))
    assert not list((tmp_path / "results").rglob("report.txt"))


def test_workers_end_by_themselves_when_the_report_is_killed(tmp_path: Path) -> None:
    process = slow_report(tmp_path)
    process.kill()
    assert process.communicate()[0] == ""  # a worker that waited on for its next task would hold this open for ever


def stale_library(tmp_path: Path, source: str) -> str:
    """What a report says whose libblockyard-samples.so was built from this."""
    (tmp_path / "build").mkdir()
    library = tmp_path / "build" / "libblockyard-samples.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=source, text=True, check=True)
    found = sentence(by_itself(tmp_path, BLOCKYARD_BUILD=str(tmp_path / "build")))
    assert str(library) in found and "build it again with 'make build'" in found
    return found


def test_a_native_library_of_another_version_is_refused(campaign: Campaign, tmp_path: Path) -> None:
    found = stale_library(tmp_path, "unsigned by_samples_abi(void) { return 3; }")
    assert f"its interface is number 3, and {samples_library.ABI} is needed" in found


@pytest.mark.parametrize(
    "source, words",
    [
        (f"unsigned by_samples_abi(void) {{ return {samples_library.ABI}; }}", "it has no by_samples_"),
        ("int nothing;", "can't be loaded"),
    ],
)
def test_a_native_library_that_lacks_something_is_refused(
    campaign: Campaign, tmp_path: Path, source: str, words: str
) -> None:
    assert words in stale_library(tmp_path, source)


def test_a_disk_that_is_full_is_said_to_be(campaign: Campaign, tmp_path: Path) -> None:
    limited = ("bash", "-c", 'ulimit -f 4; trap "" XFSZ; exec "$@"', "bash")
    assert "File too large" in sentence(blockyard("report", "results", cwd=tmp_path, under=limited))
    assert not list((tmp_path / "results").rglob("*.partial"))


def test_json_has_the_verdict_and_every_table_as_values(campaign: Campaign, report: Report) -> None:
    section = facts(report("results", "--json", *QUICK))
    assert section["verdict"] and section["header"][0].startswith("Machine: Test Processor 9000")
    [table] = [one for one in section["tables"] if one["title"] == "free: as-run, defaults"]
    assert [column["unit"] for column in table["columns"]] == ["ns"] * 7
    assert [(row["name"], row["cells"][0]) for row in table["rows"]] == [("quick", 50.0), ("slow", 50.0)]


def test_tables_csv_has_a_row_a_cell(campaign: Campaign, report: Report) -> None:
    assert report("results", *QUICK).returncode == 0
    cells = pyarrow.csv.read_csv(campaign.directory / "report" / "tables.csv").to_pylist()
    [cell] = [
        one
        for one in cells
        if (one["table"], one["row"], one["column"]) == ("malloc and first touch", "slow", "worst")
        and one["circumstances"] == "as-run, defaults"
    ]
    assert (float(cell["value"]), cell["unit"], cell["journal"]) == (2600, "ns", "game")
