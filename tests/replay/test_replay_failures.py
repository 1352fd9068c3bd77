"""An allocator that fails, and input that is wrong: one sentence, the right status, nothing half-done left."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from replay_lab import REPLAY, SANITIZED, TOOLS, Journal, plan, planned, replayed, replaying, run
from the_command import refusal, sentence, success

from blockyard import native


def some() -> Journal:
    """Ten events, numbered 0 to 9; with thread_start the witness's calls are numbered 1 to 10."""
    journal = Journal()
    for number in range(5):
        journal.allocate(f"b{number}", 100 + number, 2 * number).free(f"b{number}", 2 * number + 1)
    return journal


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    return planned(some(), tmp_path)


def test_no_memory_is_a_failed_run(ten: Path, tmp_path: Path) -> None:
    made = run(ten, tmp_path, witness="fail_at=5")
    assert made.done.returncode == 1
    assert made.sentence == "the allocator witness ran out of memory at event 4, which asks for 102 bytes"
    assert made.facts["status"] == "failed" and made.facts["reason"] == made.sentence
    assert made.facts["allocator"] == "witness" and made.facts["events"] == 10
    assert not (made.folder / "samples.npy").exists()


def test_an_exhausted_pool_is_a_failed_run_that_says_so(ten: Path, tmp_path: Path) -> None:
    made = run(ten, tmp_path, adapter="witness-pool", witness="fail_at=5")
    assert "its pool is sized from the journal's peak" in made.sentence
    assert made.facts["needs_pool"] and made.facts["pool_bytes"] > 16 << 20


def test_a_block_larger_than_memory_is_a_failed_run(tmp_path: Path) -> None:
    made = run(planned(Journal().allocate("a", 1 << 47), tmp_path), tmp_path)
    assert f"event 0, which asks for {1 << 47}" in made.sentence


@pytest.mark.parametrize(
    ("knob", "number", "name"), [("crash_at=6", signal.SIGSEGV, "SIGSEGV"), ("abort_at=6", signal.SIGABRT, "SIGABRT")]
)
def test_a_crash_says_where_and_ends_by_its_signal(
    ten: Path, tmp_path: Path, knob: str, number: int, name: str
) -> None:
    made = run(ten, tmp_path, witness=knob)
    assert made.done.returncode == -number
    assert made.sentence == f"the allocator witness crashed ({name}) at event 5"
    assert made.facts["status"] == "failed" and made.facts["reason"] == made.sentence


def test_a_crash_in_the_preamble_says_so(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 8).allocate("b", 8).allocate("c", 8, 2_000_000_000)
    made = run(planned(journal, tmp_path, "--from", "1"), tmp_path, witness="crash_at=2")
    assert made.sentence == "the allocator witness crashed (SIGSEGV) while the preamble was restored"


def test_an_allocator_that_hangs_is_ended(ten: Path, tmp_path: Path) -> None:
    made = run(ten, tmp_path, "--patience", "1", witness="hang_at=6")
    assert made.done.returncode == 1
    assert made.sentence == "the allocator witness hangs: no progress for 1 s at event 5"
    assert made.facts["reason"] == made.sentence


def test_a_journal_that_pauses_does_not_hang(tmp_path: Path) -> None:
    journal = Journal().allocate("a", 8).free("a", 2_500_000_000)
    replayed(journal, tmp_path, "--patience", "1", pace="1")


def test_thousands_of_threads_are_no_hang(tmp_path: Path) -> None:
    """Each that starts is progress, and wakes no other than the next."""
    journal = Journal()
    for thread in range(1, 2001):
        journal.allocate(f"b{thread}", 64, ns=1000 * thread, thread=thread)
    for thread in range(1, 2001):
        journal.free(f"b{thread}", ns=5_000_000 + 1000 * thread, thread=thread % 2000 + 1)
    made = replayed(journal, tmp_path, "--patience", "5")
    assert len(made.rows) == 4000 and len(set(made.rows["thread"])) == 2000


def test_an_allocator_that_does_not_start_is_a_failed_run(ten: Path, tmp_path: Path) -> None:
    made = run(ten, tmp_path, witness="refuse=1")
    assert made.done.returncode == 1
    assert made.sentence.startswith("the allocator witness did not start: the pool of ")
    assert made.facts["reason"] == made.sentence


@pytest.mark.parametrize(
    ("adapter", "sentence"),
    [
        ("malloc-counter", "does not export by_adapter_get"),
        ("witness-wrong-abi", "was built for adapter ABI 2"),
        ("witness-incomplete", "it lacks 'reallocate'"),
        ("no-such-adapter", "does not exist"),
    ],
)
def test_what_is_no_adapter_is_refused(ten: Path, tmp_path: Path, adapter: str, sentence: str) -> None:
    made = run(ten, tmp_path, adapter=adapter)
    assert made.done.returncode == 1
    assert sentence in made.sentence
    assert made.facts["status"] == "failed"


@pytest.mark.parametrize(
    ("knob", "sentence"),
    [
        ("break=overlap", "lost its contents"),
        ("break=contents", "lost its contents"),
        ("break=zero", "was asked for zeroed and is not"),
        ("break=alignment", "is not aligned as it was asked for"),
    ],
)
def test_verifying_finds_a_broken_allocator(tmp_path: Path, knob: str, sentence: str) -> None:
    journal = (
        Journal()
        .allocate("a", 40)
        .allocate("b", 40, 1)
        .allocate("z", 8, 2, kind="zeroed")
        .allocate("l", 64, 3, kind="aligned 64")
        .reallocate("a", 400, 4)
        .free("b", 5)
        .free("a", 6)
    )
    target = planned(journal, tmp_path)
    assert run(target, tmp_path, "--verify").done.returncode == 0
    made = run(target, tmp_path, "--verify", witness=knob)
    assert made.done.returncode == 1
    assert made.sentence.startswith("the allocator witness is broken: the block of event ")
    assert sentence in made.sentence


def test_a_failure_leaves_no_result_of_an_earlier_run(ten: Path, tmp_path: Path) -> None:
    assert run(ten, tmp_path).done.returncode == 0
    made = run(ten, tmp_path, witness="fail_at=5")
    assert sorted(path.name for path in made.folder.iterdir()) == ["run.json"]


def test_a_full_disk_is_no_failure_of_the_allocator(ten: Path, tmp_path: Path) -> None:
    limited = ["bash", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "bash"]
    done = subprocess.run(
        [*limited, REPLAY, "run", ten, "--adapter", TOOLS / "witness.so", "--pace", "max", "-o", tmp_path / "out"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("blockyard: ") and "can't be written: File too large" in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_an_unpaced_journal_is_replayed_at_max_only(tmp_path: Path) -> None:
    journal = some()
    journal.lines.insert(1, "# unpaced")
    target = planned(journal, tmp_path)
    made = run(target, tmp_path, pace="1")
    assert made.done.returncode == 1 and "--pace max" in made.sentence
    assert run(target, tmp_path, pace="max").done.returncode == 0


def test_a_plan_that_is_none_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.plan"
    for content in (b"", b"hello", b"BYPLAN\r\n" + bytes(200)):
        wrong.write_bytes(content)
        made = run(wrong, tmp_path)
        assert made.done.returncode == 1 and str(wrong) in made.sentence
    made = run(tmp_path / "absent.plan", tmp_path)
    assert made.done.returncode == 1 and "No such file" in made.sentence


def test_a_damaged_plan_is_refused(ten: Path, tmp_path: Path) -> None:
    content = bytearray(ten.read_bytes())
    content[200] ^= 4
    ten.write_bytes(content)
    assert "is damaged" in run(ten, tmp_path).sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from", "5"], "the journal ends at"),
        (["--from", "2", "--to", "1"], "--to must be later than --from"),
        (["--from", "-1"], "--from must be a time of 0 s or later"),
        (["--to", "nan"], "--to must be a time"),
    ],
)
def test_a_stretch_that_is_none_is_refused(tmp_path: Path, options: list[str], words: str) -> None:
    assert words in sentence(plan(some().write(tmp_path / "j.txt"), tmp_path / "p", *options))
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["plan"],
        [],
        ["run", "x", "-o", "y", "--touch", "some"],
        ["plan", "x", "-o", "y", "--threads", "two"],
        ["run", "x", "-o", "y", "--untimed", "--verify"],
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert subprocess.run([REPLAY, *arguments], capture_output=True, timeout=60).returncode == 2


def test_a_pace_that_is_none_is_refused(ten: Path, tmp_path: Path) -> None:
    for pace in ("0", "-1", "fast", "1y", "nan"):
        made = run(ten, tmp_path, pace=pace)
        assert made.done.returncode == 1 and "--pace must be" in made.sentence


def foreign(ten: Path, folder: Path, library: Path) -> subprocess.CompletedProcess:
    adapter = native.path("blockyard-adapter-foreign.so")
    command = replaying(ten, folder / "out", adapter, foreign=library, verify=True)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ))


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: sanitizers refuse how a foreign library is loaded")
def test_any_library_that_exports_malloc_and_free_is_driven(ten: Path, tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text(
        "#include <stddef.h>\nstatic char pool[1 << 20]; static size_t used;\n"
        "void *malloc(size_t n) { void *p = pool + used; used += (n + 15) & ~(size_t)15; return p; }\n"
        "void free(void *p) { (void)p; }\n"
    )
    compiler = shutil.which("cc")
    assert compiler is not None
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-fno-builtin", "-O1", source, "-o", tmp_path / "mine.so"], check=True
    )
    success(foreign(ten, tmp_path, tmp_path / "mine.so"))


@pytest.mark.skipif(SANITIZED, reason="NOT RUN: sanitizers refuse how a foreign library is loaded")
def test_a_library_without_malloc_is_a_failed_run(ten: Path, tmp_path: Path) -> None:
    said = refusal(foreign(ten, tmp_path, TOOLS / "witness.so"))
    assert said.startswith("blockyard: ") and "malloc" in said
