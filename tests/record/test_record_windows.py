"""Capture windows begin with the blocks alive, by time, by signal and by the program's own word; and the C API records
an engine's allocator with and without a recorder around."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from recorded import command_line, open_files, program, read, record, recording, started
from test_record_processes import child_named


def test_the_program_opens_and_closes_windows_with_exact_preambles(tmp_path):
    done = record(tmp_path / "api.byj", program("windows"), options=("--wait",))
    first = done.journal()
    preamble = [event for event in first.events[: first.preamble] if event.size > 160_000]
    assert [(event.size, event.kind, event.alignment) for event in preamble] == [
        (160_001, "allocate", 0),
        (163_840, "aligned", 4096),
    ]
    assert all(event.time == 0 for event in first.events[: first.preamble])
    measured = first.events[first.preamble :]
    assert [(event.kind, event.size) for event in measured] == [("allocate", 160_002), ("free", 0)]
    (second,) = done.others()
    assert second.path.name == "api-2.byj"
    assert [event.size for event in second.events[: second.preamble] if event.size > 160_000] == [163_840, 160_003]
    assert [event.kind for event in second.events[second.preamble :]] == ["free", "free"]


def test_a_signal_opens_and_closes_the_window(tmp_path):
    output = tmp_path / "signal.byj"
    process = started(output, program("windows"), "step", options=("--signal", "USR2"))
    # The signal goes to `blockyard record`, which passes it on.
    for is_open in (True, False):
        assert process.stdout.readline() == "step\n"
        process.send_signal(signal.SIGUSR2)
        wait_until(process.pid, output, is_open)
        process.stdin.write("\n")
        process.stdin.flush()
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    journal = read(output)
    assert [event.size for event in journal.events[: journal.preamble] if event.size > 160_000] == [160_001, 163_840]
    assert journal.kinds(160_002) == Counter(allocate=1)
    assert journal.count("free") == 1
    assert journal.info["cut_at_end"]


def wait_until(recorder: int, output: Path, is_open: bool) -> None:
    """Until the collector has acted on the signal: it holds the journal open just while the window is."""
    collector = child_named(recorder, "blockyard-colle")
    deadline = time.monotonic() + 60
    while (str(output) in open_files(collector)) != is_open:
        assert time.monotonic() < deadline, f"the window did not {'open' if is_open else 'close'}"
        time.sleep(0.001)


def test_a_window_by_time_holds_only_its_stretch(tmp_path):
    script = (
        "import os, sys, time; kept = [bytearray(170_001) for _ in range(3)]\n"
        "while not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"
        "more = bytearray(170_002); time.sleep(2); late = bytearray(170_003)"
    )
    output = tmp_path / "time.byj"
    done = record(output, sys.executable, "-c", script, output, options=("--after", "1", "--for", "1"))
    journal = done.journal()
    # A bytearray of n bytes asks for one more.
    assert len([event for event in journal.events[: journal.preamble] if event.size == 170_002]) == 3
    assert len([event for event in journal.events[journal.preamble :] if event.size == 170_003]) == 1
    assert not journal.of_size(170_004)
    assert journal.info["cut_at_end"]


def test_a_window_that_never_opens_is_said_in_a_sentence(tmp_path):
    done = recording(tmp_path / "late.byj", "true", options=("--after", "100"))
    assert done.exit_code == 1
    assert "ended before a window opened" in done.stderr
    assert not (tmp_path / "late.byj").exists()


def test_a_script_that_executes_the_program_before_the_window_leaves_it_the_name(tmp_path):
    done = record(
        tmp_path / "script.byj",
        "sh",
        "-c",
        f"exec {sys.executable} -c 'import time; time.sleep(1)'",
        options=("--after", "0.7"),
    )
    assert "python" in done.journal().info["program"]
    assert done.others() == []


def check_engine_journal(path):
    journal = read(path)
    assert journal.kinds(40) == Counter(aligned=15_000)
    assert journal.frees_of(40) == 7_500
    assert journal.kinds(100, 20) == Counter(allocate=2)
    assert journal.kinds(50) == Counter(realloc=1)
    assert journal.frees_of(50) == 1
    assert {journal.threads[event.thread] for event in journal.of_size(40)} == {f"engine worker {n}" for n in range(3)}
    assert (journal.count("frame"), journal.count("phase")) == (1, 1)
    assert len(journal.events) == 15_000 + 7_500 + 4 + 1 + 1, "malloc's events are not the engine's"


def test_an_engine_records_its_own_allocator_without_a_recorder(tmp_path):
    done = subprocess.run([program("engine"), "engine.byj"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    check_engine_journal(tmp_path / "engine.byj")


def test_an_engine_records_its_own_allocator_beside_malloc_under_the_recorder(tmp_path):
    done = record(tmp_path / "malloc.byj", program("engine"), str(tmp_path / "engine.byj"))
    check_engine_journal(tmp_path / "engine.byj")
    assert done.journal().kinds(5000 * 64) == Counter(allocate=3)


def test_an_engine_journal_that_can_not_be_written_fails_at_close(tmp_path):
    journal = tmp_path / "no" / "folder.byj"
    done = subprocess.run([program("engine"), str(journal)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert str(journal) in done.stderr


SLEEPS = "import json, time\nwhile True: json.dumps(list(range(100))); time.sleep(0.001)"
REFUSES = ("env", "--ignore-signal=TERM")
"""Before a program: it ignores the signal from its first event on."""


def test_quit_ends_a_program_that_would_run_on_when_its_window_closes(tmp_path):
    done = record(tmp_path / "q.byj", sys.executable, "-c", SLEEPS, options=("--for", "0.5", "--quit"))
    assert done.journal().events


def test_quit_ends_the_program_when_nobody_reads_what_is_said(tmp_path):
    command = [sys.executable, "-m", "blockyard", "record", "-o", tmp_path / "q.byj", "--for", "0.3", "--quit", "--"]
    recorder = subprocess.Popen([*command, *REFUSES, sys.executable, "-c", SLEEPS], stderr=subprocess.PIPE)
    recorder.stderr.close()
    recorder.wait()
    assert subprocess.run([sys.executable, "-m", "blockyard", "check", tmp_path / "q.byj"], check=False).returncode == 0


LAUNCHERS = {
    "waits": "{program}; exit 7",
    "is gone": "{program} & exit 7",
    "is left by a session of its own": "setsid {program} & exit 7",
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("before", [(), REFUSES])
def test_quit_ends_the_program_behind_a_script(tmp_path, launcher, before):
    mark = f"quit-{os.getpid()}-{tmp_path.name}"
    script = LAUNCHERS[launcher].format(program=shlex.join([*before, sys.executable, "-c", SLEEPS, mark]))
    done = record(tmp_path / "q.byj", "sh", "-c", script, options=("--for", "0.6", "--quit"))
    assert ("SIGKILL" in done.stderr) == (before == REFUSES)
    running = [path for path in Path("/proc").glob("[0-9]*") if mark.encode() in command_line(path)]
    assert running == []
    assert any("python" in journal.info["program"] and journal.events for journal in [done.journal(), *done.others()])


def test_without_quit_the_recorder_says_that_the_program_runs_on(tmp_path):
    code = "import time; time.sleep(1.5)"
    done = record(tmp_path / "q.byj", sys.executable, "-c", code, options=("--for", "0.3"))
    assert "the window has closed" in done.stderr
