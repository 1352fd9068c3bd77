"""Replays with routes: rerouted blocks come from the library's own allocators, what breaks the advice stays on the
program's allocator and is counted, and routing nothing is the plain replay."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_lab import MS, Journal, Route, Run, plan, run, write_routes
from the_command import refusal, sentence, success


def planned(journal: Journal, folder: Path, *routes: Route, options: tuple[str, ...] = ()) -> tuple[Path, list[dict]]:
    """The plan with these routes, and what it says of each."""
    target = folder / "journal.plan"
    file = write_routes(folder / "routes.byr", journal.events, *routes)
    done = success(plan(journal.write(folder / "journal.txt"), target, "--routes", str(file), *options))
    return target, json.loads(done.stdout).get("routes", [])


def rerouted(journal: Journal, folder: Path, *routes: Route, options: tuple[str, ...] = (), **keywords: Any) -> Run:
    """Replays with the routes, once checked and once timed; the timed run is returned."""
    made, _ = planned(journal, folder, *routes, options=options)
    checked = run(made, folder, "--verify", **keywords)
    assert checked.done.returncode == 0, checked.done.stderr
    timed = run(made, folder, **{"touch": "all", **keywords})
    assert timed.done.returncode == 0, timed.done.stderr
    return timed


def frames(count: int = 6, blocks: int = 5, threads: int = 1) -> tuple[Journal, list[int]]:
    """Blocks that die in their frame on their thread; thread 1 marks. With the events that allocate them."""
    journal, events = Journal(), []
    for frame in range(count):
        at = frame * MS
        for thread in range(1, threads + 1):
            for block in range(blocks):
                events.append(journal.events)
                journal.allocate(f"t{thread}-{block}", 100 + 16 * block, at, thread)
        for thread in range(1, threads + 1):
            for block in reversed(range(blocks)):
                journal.free(f"t{thread}-{block}", at + 1000, thread)
        journal.frame(at + 2000)
    return journal, events


def sizes_of(journal: Journal, events: set[int]) -> list[int]:
    """What the program's allocator is asked for: the sizes of all allocations except those of the events."""
    number, sizes = -1, []
    for line in journal.lines[2:]:
        if line.startswith("#"):
            number += line.startswith("# frame")
            continue
        number += 1
        if line.startswith("a") and number not in events:
            sizes.append(int(line.split()[1]))
    return sizes


def test_routing_nothing_is_the_plain_replay(tmp_path: Path) -> None:
    journal, _ = frames(threads=3)
    journal.allocate("grown", 50, 9 * MS).reallocate("grown", 90, 9 * MS, 2).free("grown", 9 * MS, 3)
    journal.allocate("zero", 64, 9 * MS, kind="calloc").allocate("aligned", 64, 9 * MS, kind="aligned 256")
    assert plan(journal.write(tmp_path / "journal.txt"), tmp_path / "plain.plan").returncode == 0
    behaviour = []
    for routes in (None, (), (Route("temp", ()), Route("keep", ()))):
        made = tmp_path / "plain.plan" if routes is None else planned(journal, tmp_path, *routes)[0]
        one = run(made, tmp_path, "--in-order")
        assert one.done.returncode == 0, one.done.stderr
        assert not (one.folder / "frame_ends.npy").exists()
        calls, rows = one.calls("mzarfse"), one.rows
        behaviour.append(
            (
                [calls[column].tolist() for column in ("what", "size", "alignment", "old_size")],
                [rows[column].tolist() for column in ("event", "kind", "thread", "size", "frame")],
            )
        )
    assert behaviour[0] == behaviour[1] == behaviour[2]


@pytest.mark.parametrize("kind", ["temp", "temp_scope", "temp_job", "pool", "rewindable"])
@pytest.mark.parametrize("adapter", ["witness", "witness-locked", "witness-sized"])
def test_rerouted_blocks_never_reach_the_programs_allocator(tmp_path: Path, kind: str, adapter: str) -> None:
    journal, events = frames(threads=2)
    chosen = events[::2]
    size = {"pool": 256, "temp": 64 << 10}.get(kind, 0)
    made = rerouted(journal, tmp_path, Route(kind, tuple(chosen), size), adapter=adapter)
    assert sorted(made.calls("m")["size"].tolist()) == sorted(sizes_of(journal, set(chosen)))
    assert len(made.calls("m")) == len(made.calls("f"))
    (route,) = made.facts["routes"]
    assert (route["kind"], route["blocks"], route["refused"], route["overflowed"]) == (kind, len(chosen), {}, 0)
    assert route["region_peak_bytes"] > 0
    assert len(made.rows) == made.facts["events"] == 2 * len(events)


def test_the_programs_frames_end_where_the_journal_marks_them_and_a_workers_before_its_next_block(
    tmp_path: Path,
) -> None:
    journal, events = frames(count=4, threads=2)
    made = rerouted(journal, tmp_path, Route("temp", tuple(events)), pace="1")
    ends = np.load(made.folder / "frame_ends.npy")
    marks = [10 * 2 + 21 * frame for frame in range(4)]
    assert ends["event"][ends["thread"] == 0].tolist() == marks
    assert ends["event"][ends["thread"] == 1].tolist() == marks[:-1]
    of_program = ends[ends["thread"] == 0]
    assert (of_program["start"] >= 2000 + MS * np.arange(4)).all()
    assert (ends["call"] > 0).all()
    timed = made.rows["call"].astype(int).sum() + made.rows["touch"].astype(int).sum()
    assert made.facts["timed_ns"] * made.facts["ticks_per_ns"] <= timed + ends["call"].astype(int).sum()


def test_a_frames_memory_is_used_again(tmp_path: Path) -> None:
    journal, events = frames(count=50, blocks=20)
    (route,) = rerouted(journal, tmp_path, Route("temp", tuple(events), 8 << 10)).facts["routes"]
    assert route["overflowed"] == 0
    assert 20 * 100 <= route["region_peak_bytes"] <= 8 << 10


def test_a_region_that_is_too_small_overflows_and_is_counted(tmp_path: Path) -> None:
    journal, events = frames(count=3, blocks=20)
    (route,) = rerouted(journal, tmp_path, Route("temp", tuple(events), 1 << 10)).facts["routes"]
    assert 0 < route["overflowed"] < len(events)
    assert route["blocks"] == len(events)
    assert route["region_peak_bytes"] <= 1 << 10


def test_a_buffer_that_grows_by_an_allocation_and_a_free_stays_in_its_reserve(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 32, 0)
    journal.allocate("b", 64, 10).allocate("other", 10, 11, 2).free("a", 12)
    journal.allocate("c", 128, 20).free("b", 21).free("c", 30).free("other", 31, 2)
    reserve = Route("reserve", (0, 1, 3, 4, 5), 128, grows=(1, 4))
    made = rerouted(journal, tmp_path, reserve)
    assert sorted(made.calls("mr")["size"].tolist()) == [10, 128]
    (route,) = made.facts["routes"]
    assert (route["blocks"], route["refused"]) == (3, {})
    assert made.facts["events"] == journal.events - 2


def test_a_buffer_that_breaks_the_advice_grows_in_the_heap_as_it_did(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 32, 0).allocate("b", 64, 10).free("a", 11).free("b", 20, 2)
    made = rerouted(journal, tmp_path, Route("temp", (0, 1, 2), grows=(1,)))
    assert made.facts["routes"][0]["refused"] == {"other_thread": 2}
    assert [row.decode() for row in made.calls()["what"]] == ["m", "m", "f", "f"]


@pytest.mark.parametrize("grows", [(1,), (1, 2), (3,)])
def test_a_growth_without_a_free_belongs_to_another_journal(tmp_path: Path, grows: tuple[int, ...]) -> None:
    journal = Journal().allocate("a", 32, 0).allocate("b", 64, 10).allocate("c", 64, 20).free("a", 30)
    file = write_routes(tmp_path / "routes.byr", journal.events, Route("reserve", (0, *grows), 64, grows=grows))
    said = refusal(plan(journal.write(tmp_path / "journal.txt"), tmp_path / "journal.plan", "--routes", str(file)))
    assert "belong to another journal" in said


def remote_free(journal: Journal) -> None:
    journal.allocate("x", 64, 0).free("x", 10, 2)


def remote_reallocate(journal: Journal) -> None:
    journal.allocate("x", 64, 0).reallocate("x", 80, 5, 2).free("x", 10)


def across_a_frame(journal: Journal) -> None:
    journal.allocate("x", 64, 0).frame(5).free("x", 10)


def never_freed(journal: Journal) -> None:
    journal.allocate("x", 64, 0)


def five_frames(journal: Journal) -> None:
    journal.allocate("x", 64, 0)
    for number in range(5):
        journal.frame(1 + number)
    journal.free("x", 10)


def huge(journal: Journal) -> None:
    journal.allocate("x", 300, 0).free("x", 10)


@pytest.mark.parametrize(
    ("kind", "misuse", "reason"),
    [
        ("temp", remote_free, "other_thread"),
        ("temp", remote_reallocate, "other_thread"),
        ("temp_scope", remote_free, "other_thread"),
        ("keep", remote_free, "other_thread"),
        ("temp", across_a_frame, "outlives_frame"),
        ("temp_scope", across_a_frame, "outlives_frame"),
        ("temp_job", five_frames, "outlives_frame"),
        ("temp", never_freed, "unfinished"),
        ("temp_job", never_freed, "unfinished"),
        ("pool", huge, "does_not_fit"),
    ],
)
def test_a_block_that_breaks_the_advice_goes_to_the_heap_and_is_counted(
    tmp_path: Path, kind: str, misuse: Callable[[Journal], None], reason: str
) -> None:
    journal = Journal()
    misuse(journal)
    blocks = tuple(number for number in range(journal.events) if gives(journal, number))
    made = rerouted(journal, tmp_path, Route(kind, blocks, 128 if kind == "pool" else 0))
    (route,) = made.facts["routes"]
    assert (route["blocks"], route["refused"]) == (0, {reason: len(blocks)})
    assert len(made.calls("mr")) == len(blocks)


def gives(journal: Journal, wanted: int) -> bool:
    """Whether the event gives a block."""
    number = -1
    for line in journal.lines[2:]:
        if line.startswith("# realloc"):
            number -= 1
        elif line.startswith(("a", "f", "# frame")):
            number += 1
            if number == wanted and line.startswith("a"):
                return True
    return False


@pytest.mark.parametrize("kind", ["temp_job", "pool", "rewindable", "reserve"])
def test_these_may_be_freed_by_another_thread(tmp_path: Path, kind: str) -> None:
    journal, events = Journal(), []
    for number in range(300):
        events.append(journal.events)
        journal.allocate("x", 64, number, number % 3 + 1).free("x", number, (number + 1) % 3 + 1)
    made = rerouted(journal, tmp_path, Route(kind, tuple(events), 64))
    (route,) = made.facts["routes"]
    assert (route["blocks"], route["refused"]) == (300, {})


def test_four_frames_are_not_too_many_for_temp_job(tmp_path: Path) -> None:
    journal = Journal().allocate("x", 64)
    for number in range(4):
        journal.frame(1 + number)
    journal.free("x", 10, 2)
    assert planned(journal, tmp_path, Route("temp_job", (0,)))[1][0]["blocks"] == 1


def test_a_scope_lasts_while_its_route_has_blocks_and_what_would_outlive_it_goes_to_the_heap(tmp_path: Path) -> None:
    journal = Journal()
    journal.allocate("outer", 64)  # 0
    journal.allocate("inner", 64)  # 1
    journal.allocate("temp", 64)  # 2: allocated in both scopes, outlives the inner one
    journal.allocate("fits", 64)  # 3: dies in both
    journal.free("fits").free("inner").free("temp").free("outer")
    _, routes = planned(journal, tmp_path, Route("temp_scope", (0,)), Route("temp_scope", (1,)), Route("temp", (2, 3)))
    assert [one["blocks"] for one in routes] == [1, 1, 1]
    assert routes[2]["refused"] == {"outlives_scope": 1}
    rerouted(journal, tmp_path, Route("temp_scope", (0,)), Route("temp_scope", (1,)), Route("temp", (2, 3)))


def test_scopes_that_would_not_close_in_reverse_order_are_refused(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 64).allocate("b", 64).free("a").free("b")
    routes = (Route("temp_scope", (0,)), Route("temp_scope", (1,)))
    assert [one["blocks"] for one in planned(journal, tmp_path, *routes)[1]] == [1, 0]
    rerouted(journal, tmp_path, *routes)


def test_a_temp_block_that_a_reallocate_would_move_into_a_scope_is_refused(tmp_path: Path) -> None:
    journal = Journal().allocate("temp", 64).allocate("scoped", 64)  # 0, 1
    journal.reallocate("temp", 4000).free("scoped").free("temp")  # 2
    routes = (Route("temp", (0, 2)), Route("temp_scope", (1,)))
    _, found = planned(journal, tmp_path, *routes)
    assert found[0]["refused"] == {"outlives_scope": 2}
    assert found[1]["blocks"] == 1
    rerouted(journal, tmp_path, *routes)


def test_a_block_goes_one_way_with_all_its_reallocates(tmp_path: Path) -> None:
    journal = Journal()
    journal.allocate("whole", 10).reallocate("whole", 20).reallocate("whole", 15).free("whole")  # 0, 1, 2
    journal.allocate("split", 10).reallocate("split", 20).free("split")  # 4, 5: not listed
    journal.allocate("late", 10).reallocate("late", 20).free("late")  # 7 not listed, 8
    for kind in ("temp", "temp_job", "pool", "rewindable", "reserve", "keep"):
        _, (route,) = planned(journal, tmp_path, Route(kind, (0, 1, 2, 4, 8), 64))
        assert (route["blocks"], route["refused"]) == (3, {"split": 2}), kind
        rerouted(journal, tmp_path, Route(kind, (0, 1, 2, 4, 8), 64))


def test_reserve_asks_once_for_what_a_buffer_grows_to(tmp_path: Path) -> None:
    journal = Journal().allocate("x", 10)
    for size in (20, 40, 80, 160):
        journal.reallocate("x", size)
    journal.free("x")
    made = rerouted(journal, tmp_path, Route("reserve", tuple(range(5)), 100), adapter="witness-sized")
    assert made.calls("m")["size"].tolist() == [100]
    assert [(row["old_size"], row["size"]) for row in made.calls("r")] == [(100, 160)]
    assert made.calls("f")["size"].tolist() == [160]
    assert made.facts["routes"][0]["extra_bytes"] == 90


def test_kept_buffers_are_handed_out_again_where_they_fit_and_freed_at_the_end(tmp_path: Path) -> None:
    journal, events = Journal(), []
    for size in (100, 60, 100, 200, 150):
        events.append(journal.events)
        journal.allocate("x", size).free("x")
    made = rerouted(journal, tmp_path, Route("keep", tuple(events)), adapter="witness-sized")
    assert made.calls("mf")["what"].tolist() == [b"m", b"f", b"m", b"f"]
    assert made.calls("m")["size"].tolist() == [100, 200]
    assert made.calls("f")["size"].tolist() == [100, 200]


def test_an_arena_is_rewound_when_the_last_of_its_blocks_ends(tmp_path: Path) -> None:
    journal, events = Journal(), []
    for level in range(40):
        for block in range(20):
            events.append(journal.events)
            journal.allocate(f"b{block}", 1000, level, block % 3 + 1)
        for block in range(20):
            journal.free(f"b{block}", level, (block + 1) % 3 + 1)
    made = rerouted(journal, tmp_path, Route("rewindable", tuple(events), 64 << 10))
    (route,) = made.facts["routes"]
    assert 20_000 <= route["region_peak_bytes"] <= 64 << 10


def test_a_stretch_restores_its_preamble_on_the_programs_allocator_and_counts_it(tmp_path: Path) -> None:
    journal, events = frames(count=6)
    journal.allocate("open", 64, 5 * MS + 3000)
    _, (route,) = planned(
        journal, tmp_path, Route("temp", tuple(events)), options=("--from", "0.0020005", "--to", "0.0050005")
    )
    # The stretch begins between the allocations and the frees of the third frame, and ends so in the sixth.
    assert route["refused"] == {"preamble": 5, "unfinished": 5}
    assert route["blocks"] == 10
    made = rerouted(
        journal, tmp_path, Route("temp", tuple(events)), options=("--from", "0.0020005", "--to", "0.0050005")
    )
    assert made.calls("m")["size"].tolist() == 2 * [100 + 16 * block for block in range(5)]
    assert len(np.load(made.folder / "frame_ends.npy")) == 3


def test_groups_choose_among_the_routes(tmp_path: Path) -> None:
    journal, events = frames()
    routes = (Route("temp", tuple(events[::2]), group=3), Route("pool", tuple(events[1::2]), 256, group=7))
    _, found = planned(journal, tmp_path, *routes, options=("--groups", "7"))
    assert [(one["group"], one["blocks"]) for one in found] == [(3, 0), (7, len(events[1::2]))]
    done = plan(tmp_path / "journal.txt", tmp_path / "x", "--routes", str(tmp_path / "routes.byr"), "--groups", "4")
    assert done.returncode == 1
    assert done.stderr == f"blockyard: {tmp_path / 'routes.byr'} has no group 4\n"


def damaged(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def foreign(path: Path) -> None:
    path.write_text("routes\n")


def missing(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("harm", [damaged, cut_short, foreign, missing])
def test_a_file_that_cannot_be_used_is_one_sentence(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    journal, events = frames()
    file = write_routes(tmp_path / "routes.byr", journal.events, Route("temp", tuple(events)))
    harm(file)
    said = sentence(plan(journal.write(tmp_path / "journal.txt"), tmp_path / "plan", "--routes", str(file)))
    assert said.startswith(f"blockyard: {file} ")
    assert not (tmp_path / "plan").exists()


def test_routes_of_another_journal_are_refused(tmp_path: Path) -> None:
    journal, events = frames()
    path = journal.write(tmp_path / "journal.txt")
    for count, event, words in (
        (journal.events + 1, events[0], f"belongs to a journal of {journal.events + 1:,} events"),
        (journal.events, events[-1] + 3, "which gives no block; it belongs to another journal"),
    ):
        file = write_routes(tmp_path / "routes.byr", count, Route("temp", (event,)))
        assert words in sentence(plan(path, tmp_path / "plan", "--routes", str(file)))


def random_journal(seed: int) -> tuple[Journal, list[int]]:
    """Three threads allocate, reallocate and free one another's blocks; thread 2 marks frames."""
    pick = random.Random(seed)
    journal, events, live = Journal(), [], []
    for number in range(2500):
        thread, choice = pick.randrange(1, 4), pick.random()
        if choice < 0.45 or not live:
            events.append(journal.events)
            kind = pick.choice(["", "", "", "calloc", "aligned 64"])
            live.append((f"b{number}", thread))
            journal.allocate(f"b{number}", pick.choice([0, 1, 24, 100, 700, 5000]), number, thread, kind)
        elif choice < 0.55:
            events.append(journal.events)
            block, owner = live[-pick.randrange(1, min(len(live), 4) + 1)]
            journal.reallocate(block, pick.choice([8, 300, 2000]), number, pick.choice([owner, owner, thread]))
        elif choice < 0.97:
            block, owner = live.pop(-pick.randrange(1, min(len(live), 6) + 1))
            journal.free(block, number, pick.choice([owner, owner, owner, thread]))
        else:
            journal.frame(number, 2)
    return journal, events


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_routed_where_no_block_is_broken(tmp_path: Path, seed: int) -> None:
    """Random routes over random journals: whatever breaks an advice must be found beforehand, or --verify sees blocks
    that overlap or lose their contents."""
    journal, events = random_journal(seed)
    pick = random.Random(100 + seed)
    kinds = ["temp", "temp_scope", "temp_scope", "temp_job", "pool", "rewindable", "reserve", "keep"]
    chosen: list[list[int]] = [[] for _ in kinds]
    for event in events:
        if pick.random() < 0.8:
            pick.choice(chosen).append(event)
    routes = tuple(
        Route(kind, tuple(listed), 1024 if kind == "pool" else 600, alignment=64)
        for kind, listed in zip(kinds, chosen, strict=True)
    )
    made = rerouted(journal, tmp_path, *routes)
    found = made.facts["routes"]
    assert sum(one["blocks"] + sum(one["refused"].values()) for one in found) == sum(map(len, chosen))
    assert sum(one["blocks"] for one in found) > 100
    streamed, _ = planned(journal, tmp_path, *routes)
    for options in (("--stream-above", "0"), ("--in-order",), ("--untimed",), ("--in-order", "--verify")):
        done = run(streamed, tmp_path, *options).done
        assert done.returncode == 0, done.stderr
