"""scripts/run-check in a tree whose tools are stand-ins: whatever ends it, nothing that it started goes on."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a build starts in turn, which hears of no signal that only the build is sent.
ENDLESS = "#!/bin/sh\nsleep 300 & echo $! > child; mv child began; wait\n"


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.program("scripts/build", ENDLESS)
        self.program(".venv/bin/python", "#!/bin/sh\n")
        subprocess.run(["git", "init", "-q", root], check=True)
        commit = ["commit", "-q", "--allow-empty", "-m", "empty"]
        subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", *commit], check=True)

    def program(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self, limit: int) -> subprocess.Popen[str]:
        text = (ROOT / "scripts/run-check").read_text()
        assert "\nLIMIT = 175 " in text
        self.program("scripts/run-check", text.replace("\nLIMIT = 175 ", f"\nLIMIT = {limit} "))
        return subprocess.Popen([self.root / "scripts/run-check"], stdout=subprocess.PIPE, text=True)

    def start_and_wait(self) -> subprocess.Popen[str]:
        """Returns when the build's child runs."""
        running = self.start(limit=100)
        while not (self.root / "began").exists():
            assert running.poll() is None
            time.sleep(0.05)
        return running

    def child_is_gone(self) -> bool:
        """Within seconds, which a busy machine takes to end what is killed."""
        stat = Path("/proc", (self.root / "began").read_text().strip(), "stat")
        for _ in range(100):
            try:
                state = stat.read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                return True
            if state == "Z":
                return True
            time.sleep(0.05)
        return False


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_what_the_time_does_not_suffice_for_is_ended_and_left_to_make_test(tree: Tree) -> None:
    said, _ = tree.start(limit=6).communicate(timeout=30)
    assert "Left to make test: build, layout\n" in said
    assert tree.child_is_gone()


def test_what_failed_before_the_time_was_over_has_failed(tree: Tree) -> None:
    tree.program("scripts/build", "#!/bin/sh\n")
    tree.program(".venv/bin/python", "#!/bin/sh\necho FAILED tests/layout/test_layout.py::test_order; exec sleep 300\n")
    running = tree.start(limit=6)
    said, _ = running.communicate(timeout=30)
    assert running.returncode == 1
    assert "FAILED tests/layout/test_layout.py::test_order\n" in said
    assert "FAILED: layout, in " in said


@pytest.mark.parametrize(
    ("number", "sleep"),
    [(signal.SIGINT, "sleep 300"), (signal.SIGTERM, "sleep 300"), (signal.SIGINT, "sleep 300 > /dev/null 2>&1")],
)
def test_a_signal_ends_what_is_at_work_wherever_it_writes(tree: Tree, number: signal.Signals, sleep: str) -> None:
    tree.program("scripts/build", ENDLESS.replace("sleep 300", sleep))
    running = tree.start_and_wait()
    os.kill(running.pid, number)
    assert running.wait(timeout=30) == 130
    assert tree.child_is_gone()


def test_a_signal_ends_what_is_only_being_started(tree: Tree) -> None:
    tree.program("scripts/build", ENDLESS.replace("/sh\n", "/sh\nkill -INT $PPID\n"))
    for _ in range(5):
        assert tree.start(limit=100).wait(timeout=30) == 130
        if (tree.root / "began").exists():
            assert tree.child_is_gone()


def test_a_second_interrupt_ends_what_ignores_the_first(tree: Tree) -> None:
    tree.program("scripts/build", ENDLESS.replace("/sh\n", "/sh\ntrap '' INT\n"))
    running = tree.start_and_wait()
    os.kill(running.pid, signal.SIGINT)
    time.sleep(1)
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(timeout=30) == 130
    assert tree.child_is_gone()
