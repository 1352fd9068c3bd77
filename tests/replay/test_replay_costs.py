"""What allocation costs beyond its calls: the allocator's own threads, memory over time, thread start and end,
placement, and an allocator as cold as in a program."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from replay_lab import MS, SANITIZED, Journal, planned, planted, replayed, replaying, run, sooner_or_later, spaced

from blockyard import allocators

pytestmark = pytest.mark.skipif(SANITIZED, reason="NOT RUN: a sanitizer has threads and memory of its own")

MIB = 1 << 20


def test_memory_rows_count_blocks_faults_and_processor_time(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(100):
        journal.allocate(f"b{number}", 1000, number * 4 * MS)
        if number >= 10:
            journal.free(f"b{number - 10}", number * 4 * MS)
    made = replayed(journal, tmp_path, pace="1", touch="page")
    memory = made.memory
    assert memory.dtype.names == ("time", "resident", "live", "blocks", "minor_faults", "cpu_ns", "background_cpu_ns")
    assert (memory["live"] == memory["blocks"] * 1000).all()
    assert memory["blocks"][-1] == 10
    for rising in ("time", "minor_faults", "cpu_ns", "background_cpu_ns"):
        assert (np.diff(memory[rising].astype(np.int64)) >= 0).all(), rising
    assert memory["minor_faults"][-1] >= 100, "the witness maps a page for each block"


def test_memory_is_sampled_at_the_same_times_in_every_run(tmp_path: Path) -> None:
    memory = planted(spaced(400), tmp_path, {}).memory
    slots = memory["time"][:-1] // (50 * MS)
    assert len(set(slots.tolist())) == len(slots), "one row in each 50 ms, at its beginning"


def test_threads_of_the_allocator_have_names_and_times(tmp_path: Path) -> None:
    made = planted(spaced(600), tmp_path, {}, more=",background=300")
    background = made.facts["background"]
    assert (background["threads"], background["names"]) == (1, ["planted-bg"])
    assert 0 < background["cpu_ns"] < 400 * MS
    assert made.memory["background_cpu_ns"][-1] == background["cpu_ns"]


def test_the_replayers_own_threads_are_not_the_allocators(tmp_path: Path) -> None:
    made = planted(spaced(60, threads=4), tmp_path, {}, "--progress")
    assert made.facts["background"] == {"threads": 0, "cpu_ns": 0, "names": []}
    assert made.facts["after_last_free"]["settled_after_ns"] == 0, "nobody is there who could do anything"


def test_what_is_given_back_after_the_last_free_is_seen(tmp_path: Path) -> None:
    def is_seen() -> bool:
        facts = planted(spaced(60), tmp_path, {}, more=",purge_ms=15").facts
        after = facts["after_last_free"]
        given_back = facts["teardown_resident_bytes"] - after["resident_bytes"]
        return given_back > 12 * MIB and after["settled_after_ns"] > 0

    assert sooner_or_later(is_seen), "a thread that gets no processor for 50 ms gives nothing back in that time"


def test_starting_and_stopping_threads_is_timed(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(6):
        journal.allocate(f"b{number}", 8, number, thread=number % 3 + 1)
    facts = replayed(journal, tmp_path, witness="slow_us=2000").facts
    for times in (facts["thread_start_ns"], facts["thread_stop_ns"]):
        assert len(times) == 3
        assert min(times) >= 2 * MS, "the witness takes so long to start and to stop a thread"


def test_blocks_that_are_left_of_the_run_are_walked(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(10):
        journal.allocate(f"b{number}", 100, number * MS)
    for number in range(4):
        journal.free(f"b{number}", (10 + number) * MS)
    journal.allocate("c", 100, 20 * MS)
    whole = replayed(journal, tmp_path, touch="page").facts
    assert whole["walked_blocks"] == 7 and whole["walk_ns_a_block"] > 0
    stretch = replayed(journal, tmp_path, touch="page", plan_options=("--from", "0.015")).facts
    assert stretch["walked_blocks"] == 1, "restored blocks are not fresh"
    untouched = replayed(journal, tmp_path, touch="none").facts
    assert (untouched["walked_blocks"], untouched["walk_ns_a_block"]) == (0, None)


@pytest.mark.parametrize("choice", allocators.resolve("all"), ids=lambda choice: choice.name)
def test_the_usable_bytes_of_blocks_that_are_left_are_told(tmp_path: Path, choice: allocators.Choice) -> None:
    if choice.missing:
        pytest.skip(f"NOT RUN with {choice.name}, it is missing here: {choice.missing}")
    sizes = (0, 1, 100, 5000, 40_000, 3 << 20)
    journal = Journal()
    for number, size in enumerate(sizes):
        journal.allocate(f"kept{number}", size, number)
        journal.allocate(f"gone{number}", size, number).free(f"gone{number}", number)
    output = tmp_path / "run"
    given = {"options": choice.options, "populate": choice.populate}
    command = replaying(planned(journal, tmp_path), output, choice.adapter, **given)
    subprocess.run(command, check=True, capture_output=True, timeout=120, env={**os.environ, **choice.environment})
    found = json.loads((output / "run.json").read_text())["live_at_stop"]
    if choice.name.partition("@")[0] in ("scudo", "tlsf", "null"):
        assert found is None
    else:
        assert (found["blocks"], found["asked_bytes"]) == (len(sizes), sum(sizes))
        assert sum(sizes) < found["usable_bytes"] < 1.5 * sum(sizes)
        assert 0 < found["rounding_bytes"] <= found["usable_bytes"] - sum(sizes)


def test_events_that_change_places_between_threads_are_counted(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 8, 0).allocate("b", 8, MS).allocate("c", 8, 20 * MS, thread=2)
    plan = planned(journal, tmp_path)

    def change_places() -> bool:
        return run(plan, tmp_path, pace="1", witness="slow_us=100000").facts["order_inversions"] == 1

    assert sooner_or_later(change_places), "c began while a still kept b waiting"


def test_a_thread_that_loses_its_pace_is_counted(tmp_path: Path) -> None:
    journal = Journal()
    for number in range(20):
        journal.allocate(f"b{number}", 8, number)
    plan = planned(journal, tmp_path)
    assert run(plan, tmp_path, pace="1", witness="slow_us=3000").facts["interrupted_threads"] == 1
    assert run(plan, tmp_path, pace="max", witness="slow_us=3000").facts["interrupted_threads"] is None


def test_timed_nanoseconds_are_the_sum_of_the_rows(tmp_path: Path) -> None:
    made = planted(spaced(), tmp_path, {20: "sleep", 60: "touched"})
    facts, rows = made.facts, made.rows
    ticks = rows["call"].sum(dtype=np.int64) - len(rows) * facts["floor_call_ticks"]
    touched = rows["touch"][rows["touch"] > 0]
    ticks += touched.sum(dtype=np.int64) - len(touched) * facts["floor_touch_ticks"]
    assert facts["timed_ns"] == pytest.approx(ticks / facts["ticks_per_ns"], abs=1)


def test_how_busy_others_were_is_known_of_a_run_that_is_long_enough(tmp_path: Path) -> None:
    assert planted(spaced(10), tmp_path, {}).facts["busy_cores"] is None
    assert planted(spaced(400), tmp_path, {}).facts["busy_cores"] >= 0


@pytest.mark.parametrize("pace", ["1", "max"])
def test_the_programs_memory_is_walked_between_events(tmp_path: Path, pace: str) -> None:
    def is_walked() -> bool:
        facts = planted(spaced(20, 20 * MS), tmp_path, {}, "--pollute", "65536", pace=pace).facts
        assert facts["pollute_bytes"] == 65536
        return facts["polluted"] >= 0.9

    assert sooner_or_later(is_walked), "all but the first event, which is due at once"


def test_walking_stops_where_the_pace_leaves_no_time(tmp_path: Path) -> None:
    facts = planted(spaced(200), tmp_path, {}, "--pollute", str(64 * MIB)).facts
    assert facts["polluted"] < 0.5
    assert planted(spaced(20), tmp_path, {}).facts["polluted"] is None


def test_what_is_walked_is_the_labs_memory(tmp_path: Path) -> None:
    plain = planted(spaced(20), tmp_path, {}).facts
    polluted = planted(spaced(20), tmp_path, {}, "--pollute", str(64 * MIB)).facts
    assert polluted["lab_resident_bytes"] >= plain["lab_resident_bytes"] + 60 * MIB
    assert abs(polluted["peak_resident_bytes"] - plain["peak_resident_bytes"]) < 8 * MIB
