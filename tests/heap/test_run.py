"""blockyard run and path: real programs on the heap, by preload."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from blockyard import native

if native.find("libblockyard-malloc.so") is None:
    pytest.skip("libblockyard-malloc.so is not built: nothing of the preloaded heap is tested", allow_module_level=True)


def blockyard(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # bash warns of a locale that is not there.
    return subprocess.run(
        [sys.executable, "-m", "blockyard", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C", **environment},
        check=False,
    )


def test_a_program_runs_on_the_heap_with_its_output_and_exit_code() -> None:
    result = blockyard("run", "--", "bash", "-c", "echo out; echo err >&2; exit 7")
    assert (result.stdout, result.stderr, result.returncode) == ("out\n", "err\n", 7)


def test_the_heap_is_really_under_the_program() -> None:
    result = blockyard("run", "--", "cat", "/proc/self/maps")
    assert "libblockyard-malloc.so" in result.stdout


def test_the_settings_are_shown_on_request_and_bad_ones_are_named() -> None:
    result = blockyard(
        "run", "--", "true", BLOCKYARD_HEAP_SHOW="1", BLOCKYARD_HEAP_RESERVE="8M", BLOCKYARD_HEAP_PURGE="soon"
    )
    assert "BLOCKYARD_HEAP_RESERVE=8388608" in result.stderr
    assert "BLOCKYARD_HEAP_GUARD=0 " in result.stderr and "BLOCKYARD_HEAP_GUARD_SAMPLE=5000 " in result.stderr
    assert "BLOCKYARD_HEAP_PURGE=soon is not a number" in result.stderr
    assert result.returncode == 0


def test_a_program_that_does_not_exist_is_one_sentence() -> None:
    result = blockyard("run", "--", "no-such-program")
    assert result.returncode == 1
    assert result.stderr == (
        "blockyard: no-such-program is not a program that can be run; check the name and its permissions\n"
    )


def test_a_program_that_nothing_can_be_preloaded_into_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "static"
    built = subprocess.run(
        ["cc", "-static", "-x", "c", "-o", program, "-"],
        input="int main(void) { return 0; }",
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        pytest.skip(f"A STATIC PROGRAM COULD NOT BE BUILT: {built.stderr.splitlines()[-1]}")
    result = blockyard("run", "--", str(program))
    assert result.returncode == 1
    assert result.stderr.startswith("blockyard: ") and "linked statically" in result.stderr


@pytest.fixture
def spaced(tmp_path: Path) -> Path:
    """A build folder whose path LD_PRELOAD would split."""
    folder = tmp_path / "two words: one colon"
    folder.mkdir()
    shutil.copy(native.path("libblockyard-malloc.so"), folder)
    return folder


def test_a_build_folder_with_a_space_in_its_name_serves_and_nothing_stays_behind(spaced: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # cat is a child of the program: its heap comes through the same link.
    result = blockyard(
        "run",
        "--",
        "bash",
        "-c",
        "ls $TMPDIR >&2; cat /proc/self/maps; exit 7",
        BLOCKYARD_BUILD=str(spaced),
        TMPDIR=str(temporary),
    )
    assert str(spaced / "libblockyard-malloc.so") in result.stdout
    assert (len(result.stderr.split()), result.returncode) == (1, 7), result.stderr
    assert list(temporary.iterdir()) == []


def test_a_temporary_folder_with_a_space_in_its_name_is_gone_round(spaced: Path) -> None:
    result = blockyard("run", "--", "cat", "/proc/self/maps", BLOCKYARD_BUILD=str(spaced), TMPDIR=str(spaced))
    assert str(spaced / "libblockyard-malloc.so") in result.stdout
    assert (result.stderr, result.returncode) == ("", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_reaches_the_program_behind_a_link(spaced: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "blockyard", "run", "--", "bash", "-c", "echo $$; read"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BLOCKYARD_BUILD": str(spaced)},
    )
    assert process.stdin is not None and process.stdout is not None
    assert int(process.stdout.readline()) != process.pid
    process.send_signal(number)
    assert process.wait() == 128 + number
    process.communicate()  # not before: the program would end at the end of its input


def test_the_path_of_a_library_that_can_not_be_preloaded_by_hand_is_said_to_be_one(spaced: Path) -> None:
    result = blockyard("path", "malloc", BLOCKYARD_BUILD=str(spaced))
    assert (result.stdout, result.returncode) == (f"{spaced / 'libblockyard-malloc.so'}\n", 0)
    assert len(result.stderr.splitlines()) == 1 and "splits at spaces" in result.stderr
    assert blockyard("path", "malloc").stderr == ""


def test_the_janitor_can_be_switched_off() -> None:
    script = "import threading, os; b = [bytes(5000) for _ in range(20000)]; print(len(os.listdir('/proc/self/task')))"
    assert blockyard("run", "--", sys.executable, "-c", script, BLOCKYARD_HEAP_JANITOR="0").stdout == "1\n"
    assert blockyard("run", "--", sys.executable, "-c", script, BLOCKYARD_HEAP_JANITOR="1").stdout == "2\n"


def test_a_janitor_starts_by_memory_in_use_not_by_the_threads_of_the_program() -> None:
    count = "time.sleep(0.2); print(len(os.listdir('/proc/self/task')));"  # a thread ends after it was joined
    script = (
        f"import threading, os, time; t = threading.Thread(target=lambda: None); t.start(); t.join(); {count}"
        f"b = [bytes(5000) for _ in range(20000)]; {count}"
    )
    assert blockyard("run", "--", sys.executable, "-c", script).stdout == "1\n2\n"


# The short form of `make test-programs`: the same output with the heap and without.
@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", "for i in $(seq 200); do x+=$i; done; echo ${#x}; echo $x | md5sum"],
        [
            sys.executable,
            "-c",
            "import json, pickle, threading; d = {str(i): list(range(i % 50)) for i in range(20000)};"
            "print(len(json.dumps(d)), len(pickle.dumps(d)))",
        ],
        ["git", "--version"],
        [
            "perl",
            "-e",
            "my %h; $h{$_} = 'x' x ($_ % 1000) for 1..50000; print length join '', map { $h{$_} } sort keys %h",
        ],
        ["gcc", "-O2", "-S", "-o", "-", "-x", "c", str(Path(__file__).parent / "programs" / "sort.c")],
    ],
    ids=["bash", "python", "git", "perl", "gcc"],
)
def test_a_real_program_prints_the_same_on_the_heap(command: list[str]) -> None:
    without = subprocess.run(command, capture_output=True, text=True, check=False)
    assert without.returncode == 0, without.stderr
    on_heap = blockyard("run", "--", *command)
    assert (on_heap.stdout, on_heap.returncode) == (without.stdout, 0)
