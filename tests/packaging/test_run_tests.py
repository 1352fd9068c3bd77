"""scripts/run-tests in a tree whose tools are stand-ins: two steps run at a time, and nothing that they say is lost."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# `pytest PART/` runs the part's own script; all else that is asked of this Python is real.
PYTHON = """#!/bin/sh
[ "$1" = -m ] || exec python3 "$@"
for word; do case $word in tests/*/) part=$word ;; esac; done
exec sh "$part/behave" "$@"
"""
# Waits half a minute for a file; in vain where nothing else runs.
WAIT = 'for _ in $(seq 300); do [ -e "$1" ] && exit; sleep 0.1; done; exit 1'


class Tree:
    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "scripts", root / "scripts", ignore=lambda _, names: set(names) - {"run-tests"})
        for name in ("install-packages", "setup-npm", "setup-venv", "build", "compiler-cache"):
            self.program(f"scripts/{name}", "#!/bin/sh\n")
        self.program(".venv/bin/python", PYTHON)
        self.program("bin/ctest", "#!/bin/sh\n")
        self.program("bin/wait-for", f"#!/bin/sh\n{WAIT}\n")

    def program(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def part(self, name: str, behave: str) -> None:
        (self.root / "tests" / name).mkdir(parents=True)
        (self.root / "tests" / name / f"test_{name}.py").touch()
        (self.root / "tests" / name / "behave").write_text(behave)

    def start(self, *names: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / "scripts/run-tests", *names],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"},
            start_new_session=True,
        )

    def run(self, *names: str) -> tuple[int, str]:
        said, _ = (running := self.start(*names)).communicate(timeout=120)
        return running.returncode, said


def wait_for(running: subprocess.Popen[str], *paths: Path) -> None:
    while not all(path.exists() for path in paths):
        assert running.poll() is None
        time.sleep(0.05)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_two_steps_run_at_a_time(tree: Tree) -> None:
    tree.part("first", "touch first.began; exec wait-for second.began\n")
    tree.part("second", "touch second.began; exec wait-for first.began\n")
    code, said = tree.run()
    assert code == 0, said
    assert "All 11 steps passed" in said  # build, ctest, two parts, two a sanitizer, Clang
    for name in ("build", "ctest", "pytest-first", "pytest-second", "asan", "tsan", "checked", "clang"):
        assert f" s  {name}\n" in said


def test_a_step_that_fails_is_named_with_its_tests_and_the_others_run_to_their_end(tree: Tree) -> None:
    tree.part("first", "echo FAILED tests/first/test_first.py::test_sum; exit 2\n")
    tree.part("second", "echo 'SKIPPED [1] tests/second/test_second.py:7: there is no Mono here'\n")
    code, said = tree.run()
    assert code == 1
    assert "1 of 11 steps FAILED" in said
    summary = said.rpartition("\n\n")[0]
    assert "pytest-first: Python tests of tests/first/\n" in summary
    assert "                FAILED tests/first/test_first.py::test_sum\n" in summary
    assert "pytest-second: 1 test: there is no Mono here" in summary


def test_only_the_steps_that_are_named_run(tree: Tree) -> None:
    tree.part("first", "touch first.began\n")
    tree.part("second", "touch second.began\n")
    code, said = tree.run("pytest-second")
    assert (code, "All 1 steps passed" in said) == (0, True), said
    assert not (tree.root / "first.began").exists()


def test_a_name_that_is_none_is_refused(tree: Tree) -> None:
    assert tree.run("nonsense")[0] == 2


def test_what_installs_python_packages_stands_in_a_line_of_its_own(tree: Tree) -> None:
    tree.program("scripts/setup-venv", "#!/bin/sh\necho Will install\n")
    tree.program("scripts/build", "#!/bin/sh\nsleep 0.5\n")
    assert "Will install" in tree.run("ctest")[1].splitlines()


def test_what_python_lacks_for_that_is_installed_where_sudo_can_ask(tree: Tree) -> None:
    (tree.root / ".venv/bin/python").unlink()
    python = f"""case $2 in *ensurepip*) exit 1 ;; esac; exec {sys.executable} "$@"\n"""
    tree.program("bin/python3", f"#!/bin/sh\n{python}")
    tree.program("scripts/install-packages", "#!/bin/sh\necho groups: $*\n")
    assert "groups: build lab test venv\n" in tree.run("ctest")[1]


def test_what_a_step_leaves_running_ends_with_the_lane(tree: Tree) -> None:
    tree.part("first", "sleep 60 > /dev/null 2>&1 & echo $! > left\n")
    assert tree.run("pytest-first")[0] == 0
    stat = Path("/proc", (tree.root / "left").read_text().strip(), "stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_ctrl_c_ends_what_installs_python_packages(tree: Tree) -> None:
    tree.program("scripts/setup-venv", "#!/bin/sh\ntouch began; sleep 60; touch survived\n")
    running = tree.start()
    wait_for(running, tree.root / "began")
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=15)  # returns when nobody is left who could write
    assert running.returncode == 130


def test_ctrl_c_a_second_time_ends_what_ignores_it(tree: Tree) -> None:
    tree.part("first", "trap '' INT TERM; touch first.began; sleep 60\n")
    running = tree.start("pytest-first")
    wait_for(running, tree.root / "first.began")
    os.killpg(running.pid, signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        running.communicate(timeout=1)
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=15)
    assert running.returncode == 130


def test_ctrl_c_ends_both_steps(tree: Tree) -> None:
    for name in ("first", "second"):
        tree.part(name, f"trap 'touch {name}.interrupted; exit 2' INT; touch {name}.began; sleep 60 & wait\n")
    running = tree.start()
    wait_for(running, tree.root / "first.began", tree.root / "second.began")
    os.kill(running.pid, signal.SIGINT)
    said, _ = running.communicate(timeout=60)  # returns when nobody is left who could write
    assert running.returncode == 130 and "interrupted" in said
    assert all((tree.root / f"{name}.interrupted").exists() for name in ("first", "second"))
