"""Every allocation function and operator is recorded exactly once, with its size, alignment, kind and thread."""

from collections import Counter

import pytest
from recorded import program, record, recording


def test_every_c_function_gives_its_event_once(tmp_path):
    done = record(tmp_path / "c.byj", program("c-functions"))
    journal = done.journal()
    assert journal.kinds(100001, 100003, 100010, 100011) == Counter(allocate=4)
    assert journal.kinds(100009) == Counter(zeroed=1)
    assert journal.kinds(200003, 300003) == Counter(realloc=2)
    aligned = {event.size: event.alignment for event in journal.events if event.kind == "aligned"}
    page = 4096
    assert aligned == {100004: 256, 100352: 512, 100006: 1024, 100007: page, 100008: page, 100032: 64}


def test_every_c_function_frees_its_block_once(tmp_path):
    journal = recording(tmp_path / "c.byj", program("c-functions")).journal()
    sizes = (100001, 100009, 100003, 200003, 300003, 100004, 100352, 100006, 100007, 100008, 100010, 100032, 100011)
    assert journal.frees_of(*sizes) == len(sizes)


def test_every_operator_new_and_delete_is_one_event_with_the_size_asked_for(tmp_path):
    done = recording(tmp_path / "new.byj", program("operators"))
    assert (done.exit_code, done.stdout) == (0, "done\n"), done.stderr
    journal = done.journal()
    asked = range(500_001, 500_013)
    events = [event for event in journal.events if event.size in asked]
    assert [event.size for event in events] == list(asked)
    assert [event.kind for event in events] == ["allocate"] * 6 + ["aligned"] * 6
    assert {event.alignment for event in events[6:]} == {128}
    assert journal.frees_of(*asked) == 12


def test_what_a_new_handler_allocates_is_recorded_and_recording_outlives_an_exception(tmp_path):
    journal = recording(tmp_path / "new.byj", program("operators")).journal()
    assert journal.kinds(600_001) == Counter(allocate=2)
    assert journal.kinds(700_001) == Counter(allocate=1)
    assert journal.frees_of(600_001, 700_001) == 3


AWKWARD = {
    1: (800_001, 800_002, 800_004, 800_008),
    2: (810_001, 810_002, 810_004),
    3: (800_005, 800_006, 800_007),
    4: (800_003,),
}
"""Sizes by how often each is allocated."""


@pytest.mark.parametrize("size, times", [(size, times) for times, sizes in AWKWARD.items() for size in sizes])
def test_awkward_corners_are_recorded_and_freed(tmp_path, size, times):
    done = record(
        tmp_path / "awkward.byj",
        program("awkward"),
        str(program("awkward")).replace("record-awkward", "librecord-plugin.so"),
    )
    journal = done.journal()
    assert len(journal.of_size(size)) == times
    assert journal.frees_of(size) == times


def test_frees_on_other_threads_and_short_threads_are_counted_exactly(tmp_path):
    done = record(tmp_path / "threads.byj", program("threads"))
    assert "recorder" not in done.stderr or "were left out" not in done.stderr
    journal = done.journal()
    sizes = (130_000, 130_001, 130_002)
    assert journal.kinds(*sizes, 140_000) == Counter(allocate=3 * 30_000 + 60)
    assert journal.frees_of(*sizes, 140_000) == 3 * 30_000 + 60
    allocating = {event.thread for event in journal.events if event.size in sizes}
    assert sorted(journal.threads[thread] for thread in allocating) == ["producer 0", "producer 1", "producer 2"]
    names = Counter(journal.threads.values())
    assert [names[f"consumer {number}"] for number in range(3)] == [1, 1, 1]
    # The first thread bears the program's name; those that only inherited it bear none.
    assert names["record-threads"] == 1
    assert len({event.thread for event in journal.of_size(140_000)}) == 60


def test_a_small_ring_makes_the_program_wait_and_loses_nothing(tmp_path):
    done = record(tmp_path / "threads.byj", program("threads"), BLOCKYARD_COLLECT_OPTIONS="--ring-kib 64 --slots 16")
    assert done.journal().kinds(130_000, 130_001, 130_002, 140_000) == Counter(allocate=3 * 30_000 + 60)


def test_more_threads_than_rings_neither_hang_nor_go_unsaid(tmp_path):
    done = recording(tmp_path / "end.byj", program("endings"), "return", BLOCKYARD_COLLECT_OPTIONS="--slots 1")
    assert done.exit_code == 7
    assert "3 threads were not recorded" in done.stderr
    assert len(done.journal().threads) == 1
