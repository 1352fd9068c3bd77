"""The installing scripts say what they do before they do it, and do nothing twice.

Programs that would change the machine are stand-ins that note how they were called.
"""

import os
import re
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
        return subprocess.run([ROOT / "scripts" / "install-packages", *groups], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60,
                              env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})

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
            assert re.fullmatch(r"[a-z]+ +[a-z0-9.+-]+ +\S.*", line), line


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
