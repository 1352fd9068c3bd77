"""A run drives the allocator exactly as the journal says, measures only that, and its rows say so."""

import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
from replay_lab import REPLAY, SANITIZED, TOOLS, Journal, planned, replayed, run

from blockyard.analysis import samples

MS = 1_000_000
S = 1_000 * MS


def test_calls_are_those_of_the_journal(tmp_path: Path) -> None:
    journal = (
        Journal()
        .allocate("a", 100)
        .allocate("b", 64, 1, kind="zeroed")
        .allocate("c", 300, 2, kind="aligned 256")
        .reallocate("a", 500, 3)
        .reallocate("c", 7, 4)
        .free("b", 5)
        .free("a", 6)
        .free("c", 7)
    )
    calls = replayed(journal, tmp_path).calls()
    assert calls["what"].tolist() == [b"m", b"z", b"a", b"r", b"r", b"f", b"f", b"f"]
    assert calls["size"][:5].tolist() == [100, 64, 300, 500, 7]
    assert calls["alignment"][[2, 3, 4]].tolist() == [256, 16, 256], "reallocate gets the old block's alignment"
    assert calls["old_size"][3:5].tolist() == [100, 300]
    assert calls["old_block"][3:5].tolist() == calls["block"][[0, 2]].tolist()
    assert calls["block"][5:].tolist() == calls["block"][[1, 3, 4]].tolist(), "each free gets what its block became"


def test_a_sized_free_gets_back_what_was_asked(tmp_path: Path) -> None:
    journal = (
        Journal()
        .allocate("a", 100)
        .allocate("c", 300, 2, kind="aligned 256")
        .allocate("d", 9, 3, kind="aligned 64")
        .reallocate("d", 77, 4)
        .free("a", 5)
        .free("c", 6)
        .free("d", 7)
    )
    freed = replayed(journal, tmp_path, adapter="witness-sized").calls("f")
    assert freed["size"].tolist() == [100, 300, 77]
    assert freed["alignment"].tolist() == [16, 256, 16], "realloc keeps no alignment"


def test_rows_agree_with_the_journal(tmp_path: Path) -> None:
    journal = (
        Journal()
        .allocate("a", 100, 0, thread=7)
        .frame(10, thread=7)
        .allocate("b", 64, 20, thread=9, kind="zeroed")
        .frame(30, thread=9)
        .frame(40, thread=7)
        .allocate("c", 32, 50, thread=7, kind="aligned 64")
        .reallocate("b", 500, 60, thread=7)
        .free("a", 70, thread=9)
        .free("b", 80, thread=7)
    )
    rows = replayed(journal, tmp_path).rows
    assert rows.dtype.itemsize == 36
    assert rows["event"].tolist() == [0, 2, 5, 6, 7, 8]
    assert rows["kind"].tolist() == [0, 1, 2, 4, 3, 3]
    assert rows["thread"].tolist() == [0, 1, 0, 0, 1, 0]
    assert rows["size"].tolist() == [100, 64, 32, 500, 100, 500]
    assert rows["frame"].tolist() == [0, 1, 3, 3, 3, 3]
    assert (rows["call"] > 0).all()


def test_pairs_and_frames_are_shared_by_all_runs(tmp_path: Path) -> None:
    journal = (
        Journal().allocate("a", 100).frame(2 * MS).allocate("b", 1, 3 * MS, thread=2).free("a", 5 * MS).frame(6 * MS, 2)
    )
    planned(journal, tmp_path, "--events-dir", str(tmp_path / "shared"))
    pair, marks = (np.load(tmp_path / "shared" / name) for name in ("pairs.npy", "frames.npy"))
    none = 4294967295
    assert pair.tolist() == [3, none, none, 0, none] and pair.dtype == np.dtype("<u4")
    assert marks.dtype == samples.MARK and marks.tolist() == [(2 * MS, 1, 0), (6 * MS, 4, 1)]


def test_blocks_that_are_alive_at_the_end_are_listed_with_their_addresses(tmp_path: Path) -> None:
    journal = (
        Journal().allocate("a", 100).allocate("b", 64, 1).reallocate("a", 500, 2).free("b", 3).allocate("c", 32, 4)
    )
    made = replayed(journal, tmp_path)
    blocks, calls = np.load(made.folder / "blocks.npy"), made.calls()
    assert sorted(zip(blocks["event"].tolist(), blocks["size"].tolist(), strict=True)) == [(2, 500), (4, 32)]
    assert set(blocks["address"].tolist()) == set(calls["block"][[2, 4]].tolist())
    again = tmp_path / "again"
    again.mkdir()
    assert not (replayed(journal, again, "--repeat", "2").folder / "blocks.npy").exists(), "one repeat is enough"


def test_no_event_comes_before_its_time(tmp_path: Path) -> None:
    journal = Journal()
    times = [0, 100, 5 * MS, 5 * MS + 2_000, 40 * MS, 41 * MS]
    for number, ns in enumerate(times):
        journal.allocate(f"b{number}", 8, ns)
    rows = replayed(journal, tmp_path, pace="1").rows
    assert (rows["start"] >= np.array(times) - 1).all()


def test_pace_divides_the_journals_times(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 8).allocate("b", 8, 10 * S)
    made = replayed(journal, tmp_path, pace="100")
    assert made.facts["pace"] == "100x"
    assert made.rows["start"][1] >= 100 * MS - 1
    assert made.facts["wall_ns"] < 10 * S, "a hundred times as fast is not the journal's own pace"


def test_waiting_for_an_event_takes_no_processor_time(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(6):
        journal.allocate(f"b{number}", 8, number * 100 * MS)
    facts = replayed(journal, tmp_path, pace="1").facts
    assert facts["wall_ns"] >= 500 * MS
    assert facts["cpu_ns"] < facts["wall_ns"] / 2
    assert facts["voluntary_switches"] >= 5


def test_lateness_is_told_only_where_there_is_a_pace(tmp_path: Path) -> None:
    plan = planned(Journal().allocate("a", 8).allocate("b", 8, MS), tmp_path)
    paced = run(plan, tmp_path, pace="1").facts["lateness_ns"]
    assert set(paced) == {"p50", "p99", "p999", "max"}
    assert run(plan, tmp_path, pace="max").facts["lateness_ns"] is None


def test_a_lost_pace_shows_as_lateness(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(10):
        journal.allocate(f"b{number}", 8, number)
    facts = replayed(journal, tmp_path, pace="1", witness="slow_us=2000").facts
    assert facts["lateness_ns"]["max"] >= 9 * 2 * MS - 10


def test_journal_threads_are_threads_and_the_first_is_the_main_one(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(12):
        journal.allocate(f"b{number}", number, number, thread=100 + number % 3)
    made = replayed(journal, tmp_path, "--progress")
    calls = made.calls("m")
    thread_of = {int(call["size"]) % 3: int(call["thread"]) for call in calls}
    assert len(set(thread_of.values())) == 3
    for call in calls:
        assert call["thread"] == thread_of[int(call["size"]) % 3]
    assert made.calls("s")["thread"].tolist() == [thread_of[0], thread_of[1], thread_of[2]]
    assert thread_of[0] == min(thread_of.values()), "the process's first thread"


def test_each_thread_is_started_before_and_stopped_after_its_calls(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 1, 0, thread=1).allocate("b", 2, 1, thread=2).free("a", 2, thread=2)
    calls = replayed(journal, tmp_path).calls("sezmarf")
    for thread in set(calls["thread"].tolist()):
        whats = calls["what"][calls["thread"] == thread].tolist()
        assert whats[0] == b"s" and whats[-1] == b"e" and whats.count(b"s") == whats.count(b"e") == 1


def test_one_thread_replays_all_events_in_order_on_one(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(20):
        journal.allocate(f"b{number}", number, 0, thread=number % 5 + 1)
    made = replayed(journal, tmp_path, plan_options=("--threads", "one"))
    assert len(set(made.calls("m")["thread"].tolist())) == 1
    assert made.calls("m")["size"].tolist() == list(range(20))
    assert made.facts["threads"] == "one"
    assert made.facts["replay_threads"] == 1


def test_a_remote_free_waits_for_its_block(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(20):
        journal.allocate(f"b{number}", 8, 2 * number, thread=1).free(f"b{number}", 2 * number + 1, thread=2)
    made = replayed(journal, tmp_path, witness="slow_us=3000")
    assert made.facts["order_waits"] >= 1
    given = made.calls("m")["block"].tolist()
    freed = made.calls("f")["block"].tolist()
    assert freed == given, "every free got its block, in order, and none a block that was not there yet"
    assert len(set(made.calls("f")["thread"].tolist())) == 1


def test_a_reused_address_is_never_freed_twice_across_threads(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(300):
        journal.allocate("b", 8, number, thread=number % 3 + 1).reallocate("b", 24, number, thread=(number + 1) % 3 + 1)
        journal.free("b", number, thread=(number + 2) % 3 + 1)
    made = replayed(journal, tmp_path, "--verify")
    assert len(made.calls("f")) == 300
    assert (made.calls("f")["block"] != 0).all()


@pytest.mark.parametrize(("adapter", "locked"), [("witness", False), ("witness-locked", True)])
def test_only_an_allocator_that_needs_a_lock_gets_one(tmp_path: Path, adapter: str, locked: bool) -> None:
    journal = Journal()
    for number in range(60):
        journal.allocate(f"b{number}", 8, 0, thread=number % 2 + 1)
    made = replayed(journal, tmp_path, adapter=adapter, witness="slow_us=500")
    assert (made.calls("m")["inside"].max() == 1) == locked
    assert made.facts["needs_lock"] == locked
    assert made.facts["locked"] == locked
    waited = made.rows["call"] / made.facts["ticks_per_ns"]
    assert (waited.max() > 900_000) == locked or not locked, "waiting for the lock is part of the call"


def test_one_thread_needs_no_lock(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 8).allocate("b", 8, 1, thread=2)
    facts = replayed(journal, tmp_path, adapter="witness-locked", plan_options=("--threads", "one")).facts
    assert facts["needs_lock"] and not facts["locked"]


# A witness's block begins 16 bytes before a page's end, so one of 4096 bytes covers two pages.
@pytest.mark.parametrize(
    ("touch", "pages", "bytes_"), [("none", 0, 0), ("page", 1 + 2 + 4, 1 + 2 + 4), ("all", 7, 16 + 4096 + 12000)]
)
def test_touch_writes_into_every_page(tmp_path: Path, touch: str, pages: int, bytes_: int) -> None:
    journal = Journal()
    for number, size in enumerate([16, 4096, 12000]):
        journal.allocate(f"b{number}", size).free(f"b{number}")
    made = replayed(journal, tmp_path, touch=touch)
    assert made.calls("f")["pages_written"].sum() == pages
    assert made.calls("f")["bytes_written"].sum() == bytes_
    assert made.facts["touch"] == touch
    assert (made.rows["touch"][made.rows["kind"] != 3] > 0).all() == (touch != "none")
    assert (made.rows["touch"][made.rows["kind"] == 3] == 0).all()


def test_a_reallocate_touches_what_it_added(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 16).reallocate("a", 4096 * 3, 1).reallocate("a", 100, 2).free("a", 3)
    made = replayed(journal, tmp_path, touch="all")
    assert (made.rows["touch"] > 0).tolist() == [True, True, False, False]
    assert made.calls("f")["bytes_written"].tolist() == [100]


def test_zero_sizes_are_replayed(tmp_path: Path) -> None:
    journal = (
        Journal().allocate("a", 0).allocate("b", 0, 1, kind="zeroed").reallocate("a", 0, 2).free("a", 3).free("b", 4)
    )
    for touch in ("none", "page", "all"):
        assert replayed(journal, tmp_path, touch=touch).calls()["size"][:3].tolist() == [0, 0, 0]


def test_a_stretch_begins_with_its_preamble_on_the_threads_that_allocated_it(tmp_path: Path) -> None:
    journal = (
        Journal()
        .allocate("a", 10, 0, thread=1)
        .allocate("b", 20, 1, thread=2)
        .allocate("c", 30, 2, thread=1)
        .free("c", 3, thread=1)
        .free("a", 2 * S, thread=2)
        .allocate("d", 40, 2 * S + 5, thread=1)
        .free("d", 4 * S)
    )
    made = replayed(journal, tmp_path, touch="all", plan_options=("--from", "1", "--to", "3"))
    calls = made.calls()
    assert calls["size"][:2].tolist() == [10, 20], "what is alive by then, in its order"
    assert calls["thread"][0] != calls["thread"][1]
    assert calls["what"][2:].tolist()[:2] in ([b"f", b"m"], [b"m", b"f"])
    assert made.rows["event"].tolist() == [4, 5]
    assert made.rows["size"].tolist() == [10, 40]
    freed = made.calls("f")
    assert freed["bytes_written"][freed["block"] == calls["block"][0]][0] == 10, (
        "a preamble block is written to as well"
    )


def test_what_is_left_is_freed_when_the_clock_has_stopped(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 10, 0, thread=1).allocate("b", 20, 1, thread=2).allocate("c", 30, 2, thread=2)
    made = replayed(journal, tmp_path, "--verify")
    calls = made.calls()
    assert sorted(made.calls("f")["block"].tolist()) == sorted(made.calls("m")["block"].tolist())
    owner = {int(call["block"]): int(call["thread"]) for call in calls if call["what"] == b"m"}
    assert all(owner[int(call["block"])] == int(call["thread"]) for call in calls if call["what"] == b"f")


def test_an_untimed_run_has_totals_and_no_samples(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 8).free("a", 1)
    made = replayed(journal, tmp_path, "--untimed", touch="page")
    assert made.facts["untimed"] and made.facts["touch"] == "page"
    assert made.facts["cpu_ns"] >= 0 and made.facts["wall_ns"] > 0
    assert not (tmp_path / "run" / "samples.npy").exists()
    assert made.calls()["what"].tolist() == [b"m", b"f"]


def test_run_json_has_every_field_of_the_contract(tmp_path: Path) -> None:
    made = replayed(
        Journal().allocate("a", 8),
        tmp_path,
        "--variant",
        "prefaulted",
        "--repeat",
        "3",
        "--journal",
        "game",
        environment={"MALLOC_ARENA_MAX": "7", "BLOCKYARD_HEAP_PURGE": "250"},
    )
    text = (Path(__file__).parents[2] / "docs" / "reference" / "campaign-folder.md").read_text()
    rows = text.split("\n## run.json\n")[1].split("\n## ")[0].splitlines()
    fields = {name for row in rows if row.startswith("| `") for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert len(fields) > 25
    assert fields <= set(made.facts)
    assert made.facts["variant"] == "prefaulted" and made.facts["repeat"] == 3 and made.facts["journal"] == "game"
    assert made.facts["environment"]["MALLOC_ARENA_MAX"] == "7"
    assert made.facts["environment"]["BLOCKYARD_HEAP_PURGE"] == "250"
    assert made.facts["status"] == "ok" and made.facts["events"] == 1


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: the sanitizer's own memory and malloc would be counted")
def test_memory_rows_follow_the_live_bytes(tmp_path: Path) -> None:
    journal = (
        Journal().allocate("a", 1_000_000).allocate("b", 500_000, 300 * MS, thread=2).free("a", 600 * MS, thread=2)
    )
    journal.allocate("c", 1, 900 * MS)
    rows = replayed(journal, tmp_path, pace="1", touch="all").memory
    assert rows["live"][-1] == 500_001
    assert set(rows["live"].tolist()) >= {1_000_000, 1_500_000, 500_000}
    assert (np.diff(rows["time"].astype(np.int64)) >= 0).all()
    middle = rows[rows["live"] == 1_500_000][1:-1]  # blocks come and go beside the first and the last
    assert (middle["resident"] >= 1_500_000).all()
    assert (middle["resident"] < 6_000_000).all(), "the lab's own memory is not counted"


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: the sanitizer's own memory and malloc would be counted")
def test_peaks_cover_what_lies_between_two_samples(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 50_000_000, MS).free("a", 2 * MS)
    facts = replayed(journal, tmp_path, touch="page").facts
    # The kernel counts resident pages on each core apart: its sum lags by some of them.
    assert facts["peak_resident_bytes"] >= 49_500_000
    assert facts["teardown_resident_bytes"] < 10_000_000


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: the sanitizer's own memory and malloc would be counted")
def test_the_lab_calls_no_malloc_while_the_clock_runs(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(400):
        journal.allocate(f"b{number}", number, number * 500_000, thread=number % 3 + 1)
        if number >= 40:
            journal.free(f"b{number - 40}", number * 500_000, thread=number % 2 + 1)
    counter = {"LD_PRELOAD": str(TOOLS / "malloc-counter.so")}
    for pace in ("1", "max"):
        calls = replayed(journal, tmp_path, "--progress", pace=pace, environment=counter).calls("mf")
        events = calls[:760]
        assert events["mallocs"][0] > 0, "the counter counts"
        assert events["mallocs"].min() == events["mallocs"].max()


def test_more_threads_than_cores_replay(tmp_path: Path) -> None:
    journal = Journal()
    threads = 4 * (os.cpu_count() or 1) + 8
    for number in range(threads * 20):
        journal.allocate(f"b{number}", 8, number * 10_000, thread=number % threads + 1)
        if number >= threads:
            journal.free(f"b{number - threads}", number * 10_000, thread=(number + 1) % threads + 1)
    made = replayed(journal, tmp_path, pace="1")
    assert made.facts["replay_threads"] == threads
    assert len(made.rows) == threads * 20 + threads * 19


NO_TRACE = pytest.mark.skipif(SANITIZED, reason="NOT RUN: a sanitizer's own system calls would be traced")


@pytest.mark.parametrize(
    "number, options",
    [(signal.SIGINT, []), (signal.SIGTERM, []), pytest.param(signal.SIGTERM, ["--trace"], marks=NO_TRACE)],
)
def test_an_interrupt_ends_the_run_and_leaves_nothing(tmp_path: Path, number: int, options: list[str]) -> None:
    plan = planned(Journal().allocate("a", 8).free("a", 600 * S), tmp_path)
    output = tmp_path / "run"
    command = [REPLAY, "run", plan, "--adapter", TOOLS / "witness.so", "--pace", "1", "-o", output, "--progress"]
    command += options
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        ending = threading.Timer(60, process.kill)
        ending.start()
        assert process.stderr is not None
        while "replaying" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(number)
        process.stderr.read()
        ending.cancel()
    assert process.returncode == 128 + number
    assert not output.exists()


def test_progress_lines_rise_to_one(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 8).allocate("b", 8, 1200 * MS)
    lines = replayed(journal, tmp_path, "--progress", pace="1").done.stderr.splitlines()
    fractions = [float(line.split()[1]) for line in lines if line.startswith("progress ")]
    assert fractions == sorted(fractions) and fractions[0] >= 0 and fractions[-1] <= 1
    assert any(0.1 < fraction < 0.95 for fraction in fractions)
