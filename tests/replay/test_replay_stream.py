"""A journal that is larger than the memory for its events is read while it is replayed, and nothing else changes."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from replay_lab import SANITIZED, TOOLS, Journal, Run, planned, replaying, sooner_or_later
from the_command import blockyard, sentence, started, success

from blockyard import native

SMALL = ("--stream-above", "0.25")
"""A quarter of a MiB: every thread with more than 8192 records has the smallest ring there is."""
WHOLE = ("--stream-above", "512")
DETERMINISTIC = ("event", "kind", "thread", "size", "frame")


def long_journal(rounds: int = 12_000, step_ns: int = 40, silence_ns: int = 0) -> Journal:
    """Three threads that allocate, grow and free one another's blocks, and a fourth that is hardly ever there."""
    journal = Journal()
    for number in range(rounds):
        now = number * step_ns + (silence_ns if number > rounds // 2 else 0)
        mine, other = number % 3 + 1, (number + 1) % 3 + 1
        journal.allocate(f"b{number}", 16 + number % 1000, now, thread=mine)
        if number % 10 == 0:
            journal.reallocate(f"b{number}", 2000, now + 1, thread=mine)
        if number % 500 == 0:
            journal.frame(now + 2, thread=1).allocate(f"rare{number}", 70_000, now + 2, thread=4)
        if number >= 100:
            journal.free(f"b{number - 100}", now + 3, thread=other if number % 7 == 0 else mine)
    return journal


def command(plan: Path, output: Path, *options: str, allocator: str = "null", pace: str = "max") -> list[str]:
    adapter = TOOLS / "witness.so" if allocator == "witness" else native.path(f"blockyard-adapter-{allocator}.so")
    return [*map(str, replaying(plan, output, adapter, *options, allocator=allocator, pace=pace))]


def replay(plan: Path, output: Path, *options: str, **keywords: str) -> Run:
    done = subprocess.run(command(plan, output, *options, **keywords), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return Run(done, output, output)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planned(long_journal(silence_ns=6_000_000_000), tmp_path_factory.mktemp("plan"))


@pytest.mark.parametrize("allocator", ["null", "glibc"])
@pytest.mark.parametrize("pace", ["max", "1000"])
def test_a_streamed_run_has_the_rows_of_one_from_memory(plan: Path, tmp_path: Path, allocator: str, pace: str) -> None:
    streamed = replay(plan, tmp_path / "streamed", *SMALL, allocator=allocator, pace=pace)
    whole = replay(plan, tmp_path / "whole", *WHOLE, allocator=allocator, pace=pace)
    assert streamed.facts["stream"]["buffer_bytes"] < 2 << 20 and whole.facts["stream"] is None
    assert len(whole.rows) == len(streamed.rows) == whole.facts["events"]
    for column in DETERMINISTIC:
        assert np.array_equal(streamed.rows[column], whole.rows[column]), column
    assert (streamed.rows["start"] > 0).all() and (streamed.rows["call"] > 0).all()
    assert (streamed.facts["lateness_ns"] is None) == (pace == "max")
    assert sorted(path.name for path in streamed.folder.iterdir()) == [
        "blocks.npy",
        "memory.npy",
        "run.json",
        "samples.npy",
    ]


def test_each_threads_rows_are_in_the_order_in_which_they_happened(plan: Path, tmp_path: Path) -> None:
    rows = replay(plan, tmp_path / "run", *SMALL).rows
    for thread in np.unique(rows["thread"]):
        assert (np.diff(rows["start"][rows["thread"] == thread].astype(np.int64)) >= 0).all()


@pytest.mark.parametrize("mode", ["--verify", "--untimed"])
def test_a_streamed_run_without_samples_ends_as_well(plan: Path, tmp_path: Path, mode: str) -> None:
    made = replay(plan, tmp_path / "run", *SMALL, mode, allocator="glibc")
    assert made.facts["stream"] is not None and not (made.folder / "samples.npy").exists()


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: a sanitizer's own memory would be measured")
def test_the_labs_memory_does_not_grow_with_the_journal(tmp_path: Path) -> None:
    facts = []
    for rounds in (12_000, 48_000):
        folder = tmp_path / str(rounds)
        folder.mkdir()
        facts.append(replay(planned(long_journal(rounds), folder), folder / "run", *SMALL).facts)
    short, long = facts
    assert long["events"] > 3.9 * short["events"]
    assert long["stream"]["buffer_bytes"] == short["stream"]["buffer_bytes"]
    assert abs(long["lab_resident_bytes"] - short["lab_resident_bytes"]) < 1 << 20


def succeeds(*arguments: object, **options: object) -> None:
    success(blockyard(*arguments, **options))


def test_threads_that_catch_up_with_the_reader_are_counted_and_the_report_says_so(tmp_path: Path) -> None:
    journal = long_journal(80_000, step_ns=1).write(tmp_path / "burst.txt")
    # On one core, a thread that never sleeps has followed all that its ring holds before the reader gets a turn; unless
    # the machine is so busy that the thread loses its core.
    one_core = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    results = tmp_path / "results"
    stream = {}

    def is_outrun() -> bool:
        shutil.rmtree(results, ignore_errors=True)
        succeeds("replay", journal, "-a", "null", "--repeats", 1, "--stream-above", 0, "-o", results, under=one_core)
        stream.update(json.loads((results / "runs/burst/null/1x-page/1/run.json").read_text())["stream"])
        return stream["outruns"] > 0

    assert sooner_or_later(is_outrun) and stream["waited_ns"] > 0
    said = success(blockyard("report", results, "--json", "--no-pictures")).stdout
    words = "".join(json.loads(said)["sections"][0]["warnings"])
    assert f"caught up with the reader of the journal, {stream['outruns']:,} times in the worst run" in words
    assert "read those tails with care; give the journal's events more memory (--stream-above)" in words


def test_a_leisurely_journal_is_never_outrun(tmp_path: Path) -> None:
    plan = planned(long_journal(step_ns=40_000), tmp_path)

    def is_ahead() -> bool:
        stream = replay(plan, tmp_path / "run", *SMALL, pace="1").facts["stream"]
        return stream["outruns"] == 0 and stream["waited_ns"] == 0

    assert sooner_or_later(is_ahead), "a reader that gets no processor for 0.4 s is outrun"


def test_an_interrupted_run_leaves_nothing_and_can_be_made_again(tmp_path: Path) -> None:
    slow = planned(long_journal(step_ns=400_000), tmp_path)
    process = subprocess.Popen(command(slow, tmp_path / "run", *SMALL, pace="1"), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "run/samples.npy.part").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 128 + signal.SIGINT
    assert not (tmp_path / "run").exists()
    assert len(replay(slow, tmp_path / "run", *SMALL, pace="1000").rows) > 0


def test_a_campaign_interrupted_in_a_streamed_run_is_resumed(tmp_path: Path) -> None:
    journal = long_journal(step_ns=150_000).write(tmp_path / "level.txt")
    results = tmp_path / "results"
    words = ("replay", journal, "-a", "null", "--repeats", 2, "--no-totals", "--stream-above", 0, "-o", results)
    process = started(*words, stdout=subprocess.DEVNULL)
    runs = results / "runs/level/null/1x-page"
    deadline = time.monotonic() + 60
    while not (runs / "2.partial/samples.npy.part").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert [path.name for path in runs.iterdir()] == ["1"]
    succeeds("replay", "--resume", "-o", results)
    first, second = (np.load(runs / repeat / "samples.npy") for repeat in ("1", "2"))
    assert json.loads((runs / "2/run.json").read_text())["stream"] is not None
    for column in DETERMINISTIC:
        assert np.array_equal(first[column], second[column]), column


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    limited = ["bash", "-c", 'ulimit -f 1200; trap "" XFSZ; exec "$@"', "bash"]
    arguments = command(planned(long_journal(40_000), tmp_path), tmp_path / "run", *SMALL, allocator="glibc")
    done = subprocess.run([*limited, *arguments], capture_output=True, text=True, timeout=60)
    assert "samples.npy" in sentence(done)
    assert not (tmp_path / "run").exists()


def test_a_plan_that_turns_out_damaged_is_one_sentence_and_leaves_nothing(plan: Path, tmp_path: Path) -> None:
    content = bytearray(plan.read_bytes())
    content[3 * len(content) // 4] ^= 1
    damaged = tmp_path / "damaged.plan"
    damaged.write_bytes(content)
    done = subprocess.run(command(damaged, tmp_path / "run", *SMALL), capture_output=True, text=True, timeout=60)
    assert "damaged.plan" in sentence(done)
    assert not (tmp_path / "run").exists()


def test_an_allocator_that_crashes_leaves_no_half_of_its_samples(plan: Path, tmp_path: Path) -> None:
    options = (*SMALL, "--options", f"log={tmp_path / 'log'},crash_at=20000")
    arguments = command(plan, tmp_path / "run", *options, allocator="witness")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGSEGV
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["run.json"]


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: this build is sanitized itself; the release build has replay-tsan")
@pytest.mark.parametrize("mode", ["", "--verify"])
def test_the_reader_and_the_replay_do_not_race(plan: Path, tmp_path: Path, mode: str) -> None:
    options = (*SMALL, "--options", f"log={tmp_path / 'log'}", *filter(None, [mode]))
    arguments = command(plan, tmp_path / "run", *options, allocator="witness")
    done = subprocess.run([str(TOOLS / "replay-tsan"), *arguments[1:]], capture_output=True, text=True, timeout=120)
    assert "ThreadSanitizer" not in done.stderr and done.returncode == 0, done.stderr
