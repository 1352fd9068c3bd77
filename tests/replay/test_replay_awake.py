"""`--keep-awake` has a process of the kernel's idle class on each core during a run, and only then."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from replay_lab import MS, REPLAY, planned, run, spaced

from blockyard import native

SCHED_IDLE = 5


def awake(parent: int) -> dict[int, tuple[int, frozenset[int]]]:
    """Of the run's processes that keep cores awake: scheduling class and cores, by process."""
    found = {}
    for process in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        try:
            if Path(f"/proc/{process}/comm").read_text().strip() == "blockyard-awake":
                found[int(process)] = os.sched_getscheduler(int(process)), frozenset(os.sched_getaffinity(int(process)))
        except OSError:
            continue
    return found


def eventually(holds: Callable[[], bool]) -> bool:
    for _ in range(2000):
        if holds():
            return True
        time.sleep(0.005)
    return False


@pytest.fixture
def going(tmp_path: Path) -> subprocess.Popen:
    """A run of a minute."""
    plan = planned(spaced(240, 250 * MS), tmp_path)
    process = subprocess.Popen(
        [
            REPLAY,
            "run",
            plan,
            "--adapter",
            native.path("blockyard-adapter-glibc.so"),
            "--keep-awake",
            "-o",
            tmp_path / "run",
        ]
    )
    yield process
    process.kill()
    process.wait()


def in_place(going: subprocess.Popen) -> bool:
    """One on each core, each of the idle class."""
    found = awake(going.pid)
    return all(kind == SCHED_IDLE for kind, _ in found.values()) and sorted(
        core for _, cores in found.values() if len(cores) == 1 for core in cores
    ) == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_each_core_has_one_of_the_idle_class_which_ends_with_the_run(going: subprocess.Popen, how: int) -> None:
    assert eventually(lambda: in_place(going))
    processes = list(awake(going.pid))
    time.sleep(0.2)
    going.send_signal(how)
    assert going.wait() != 0
    assert eventually(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))


def test_a_run_says_that_its_cores_were_kept_awake_and_takes_that_for_nobodys_load(tmp_path: Path) -> None:
    plan = planned(spaced(240, 5 * MS), tmp_path)
    made = run(plan, tmp_path, pace="1")
    assert made.facts["keep_awake"] is False

    assert made.facts["awake_cpu_ns"] == 0
    made = run(plan, tmp_path, "--keep-awake", pace="1")
    assert made.done.returncode == 0, made.done.stderr
    assert made.facts["keep_awake"] is True
    assert made.facts["awake_cpu_ns"] > 0
    # No core sleeps: what the run, the idle class and everything else took is all that there was, none counted twice.
    taken = made.facts["busy_cores"] + (made.facts["awake_cpu_ns"] + made.facts["cpu_ns"]) / made.facts["wall_ns"]
    assert taken < 1.15 * len(os.sched_getaffinity(0))


def test_a_traced_run_measures_nothing_and_refuses_it(tmp_path: Path) -> None:
    made = run(planned(spaced(4), tmp_path), tmp_path, "--keep-awake", "--trace", pace="1")
    assert made.done.returncode == 2 and "--keep-awake" in made.done.stderr
