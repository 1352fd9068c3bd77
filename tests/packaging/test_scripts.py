"""The installing scripts say what they do before they do it, and do nothing twice.

Programs that would change the machine are stand-ins that note how they were called.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "scripts" / "packages.txt"


class Machine:
    """A folder of stand-ins in front of PATH, and the calls that they noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls = folder / "calls"
        self.stand_in("sleep", "exit 0")
        self.stand_in("id", "echo 0")
        self.stand_in("sudo", 'exec "$@"')

    def stand_in(self, name: str, script: str) -> None:
        program = self.folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.calls}"\n{script}\n')
        program.chmod(0o755)

    def install(self, *groups: str) -> subprocess.CompletedProcess:
        # One stream, so that the order of what is said and what is done can be seen.
        return subprocess.run(
            [ROOT / "scripts" / "install-packages", *groups],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"},
        )

    def called(self, name: str) -> list[str]:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line for line in lines if line.startswith(f"{name} ")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_is_said_or_done_when_every_package_is_there(machine: Machine) -> None:
    machine.stand_in("dpkg-query", "printf installed")
    machine.stand_in("apt-get", "exit 1")
    done = machine.install("build", "lab", "test")
    assert (done.returncode, done.stdout, machine.called("apt-get")) == (0, "", [])


def test_what_will_be_installed_is_said_first_with_the_reason(machine: Machine) -> None:
    machine.stand_in("dpkg-query", 'case "$*" in *libjemalloc2) exit 1 ;; *) printf installed ;; esac')
    machine.stand_in("apt-get", "echo AT WORK >&2")
    done = machine.install("lab")
    assert done.returncode == 0
    said, _, _ = done.stdout.partition("AT WORK")
    assert re.search(r"Will install .*\n +libjemalloc2 +jemalloc\n", said)
    assert "tcmalloc" not in said
    assert [call for call in machine.called("apt-get") if " install " in call and "libjemalloc2" in call]


def test_apt_waits_for_the_lock_that_another_holds(machine: Machine) -> None:
    machine.stand_in("dpkg-query", "exit 1")
    machine.stand_in("apt-get", "exit 0")
    assert machine.install("lint").returncode == 0
    assert all("DPkg::Lock::Timeout=600" in call for call in machine.called("apt-get"))


def test_dpkg_is_told_of_another_architecture_before_its_packages_are_asked_for(machine: Machine) -> None:
    machine.stand_in("dpkg-query", "exit 1")
    machine.stand_in("dpkg", 'case "$1" in --print-architecture) echo amd64 ;; esac')
    machine.stand_in("apt-get", "exit 0")
    done = machine.install("aarch64")
    assert done.returncode == 0
    calls = machine.calls.read_text().splitlines()
    added = calls.index("dpkg --add-architecture arm64")
    assert added < min(number for number, call in enumerate(calls) if call.startswith("apt-get "))
    assert "architecture arm64" in done.stdout


def test_dpkg_is_left_alone_where_it_knows_the_architecture(machine: Machine) -> None:
    machine.stand_in("dpkg-query", "exit 1")
    machine.stand_in("dpkg", 'case "$1" in --print-architecture) echo amd64 ;; *) echo arm64 ;; esac')
    machine.stand_in("apt-get", "exit 0")
    assert machine.install("aarch64").returncode == 0
    assert [call for call in machine.called("dpkg") if "--add-architecture" in call] == []


def test_a_user_who_is_not_root_goes_through_sudo(machine: Machine) -> None:
    machine.stand_in("dpkg-query", "exit 1")
    machine.stand_in("apt-get", "exit 0")
    machine.stand_in("id", "echo 1000")
    assert machine.install("lint").returncode == 0
    assert len(machine.called("sudo")) == len(machine.called("apt-get"))


def test_apt_that_fails_is_tried_again_and_then_named(machine: Machine) -> None:
    machine.stand_in("dpkg-query", "exit 1")
    machine.stand_in("apt-get", "exit 100")
    done = machine.install("lint")
    assert done.returncode == 1
    assert len(machine.called("apt-get")) == 3
    assert "apt-get could not install" in done.stdout.splitlines()[-1]


def test_an_unknown_group_is_refused(machine: Machine) -> None:
    done = machine.install("nonsense")
    assert (done.returncode, done.stdout) == (2, "blockyard: scripts/packages.txt has no group 'nonsense'\n")


def test_every_package_stands_with_its_reason() -> None:
    for line in PACKAGES.read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"[a-z0-9]+ +[a-z0-9.+:-]+ +\S.*", line), line


def test_make_help_names_every_command_within_eighty_columns() -> None:
    done = subprocess.run(["make", "-s", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert [line.split()[1] for line in lines] == phony.group(1).split()


def test_every_python_package_of_the_checkout_is_pinned() -> None:
    for line in (ROOT / "scripts" / "requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line


def test_what_builds_a_wheel_names_the_compiler_as_cmake_does(tmp_path: Path) -> None:
    """ccache, which tells compilers apart by name, then gives the wheel the objects of build/release."""
    (tmp_path / "ccache").write_text("#!/bin/sh\n")
    (tmp_path / "ccache").chmod(0o755)
    hidden = {"CC", "CXX", "BLOCKYARD_CCACHE", "CMAKE_CXX_COMPILER_LAUNCHER"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        ["bash", "-c", '. scripts/compiler-cache; echo "$CMAKE_CXX_COMPILER_LAUNCHER $CC $CXX"'],
        cwd=ROOT,
        env=environment | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "ccache cc c++\n"


@pytest.fixture
def parts(tmp_path: Path) -> str:
    for name in ("first", "second", "third"):
        program = tmp_path / name / "run"
        program.parent.mkdir()
        program.write_text(
            f"#!/bin/sh\n# What {name} does, in a minute.\necho at work: {name}; exec sleep ${{PAUSE:-0}}\n"
        )
        program.chmod(0o755)
    return f"{tmp_path}/*/run"


def run_each(pattern: str, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [ROOT / "scripts" / "run-each", pattern],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )


def test_parts_run_one_after_the_other_and_say_what_they_are_and_which_of_how_many(parts: str) -> None:
    said, _ = (running := run_each(parts)).communicate(timeout=60)
    assert running.returncode == 0
    for number, name in enumerate(("first", "second", "third"), start=1):
        heading = rf"{name}/run \({number} of 3, .*\)\n +What {name} does, in a minute\.\n"
        assert re.search(rf"{heading}at work: {name}\n", said)


def test_only_the_chosen_parts_run(parts: str) -> None:
    said, _ = run_each(parts, PARTS="third first").communicate(timeout=60)
    assert re.findall("at work: (.*)", said) == ["first", "third"]


def test_a_part_that_is_not_there_is_refused_with_those_that_are(parts: str) -> None:
    said, _ = (running := run_each(parts, PARTS="fourth")).communicate(timeout=60)
    assert (running.returncode, said) == (2, "blockyard: there is no part 'fourth'; there are: first second third\n")


def test_an_interrupted_row_of_parts_says_how_to_go_on(parts: str) -> None:
    running = run_each(parts, PARTS="second third", PAUSE="60")
    assert running.stdout is not None
    while "at work" not in running.stdout.readline():
        pass
    # As Ctrl-C does: to the whole group.
    os.killpg(running.pid, signal.SIGTERM)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert 'PARTS="second third"' in said


def test_each_run_under_wine_at_a_time_has_a_folder_of_its_own(tmp_path: Path) -> None:
    # `echo` stands for Wine.
    script = f'. {ROOT}/tests/windows/wine; BLOCKYARD_WINE=echo; begin_wine && echo "${{WINEPREFIX##*/}}"; read -r _'

    def begun() -> tuple[subprocess.Popen, str]:
        run = subprocess.Popen(
            ["bash", "-c", script], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return run, run.stdout.readline()

    (first, _), (second, _) = runs = [begun(), begun()]
    assert [folder for _, folder in runs] == ["wine\n", "wine-2\n"]
    first.communicate()
    third, folder = begun()
    assert folder == "wine\n"
    for run in (second, third):
        run.communicate()
