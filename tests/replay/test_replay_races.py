"""The replayer's own threads do not race; ThreadSanitizer would say so, as it does when the waits are taken out."""

import subprocess
from pathlib import Path

import pytest
from replay_lab import SANITIZED, TOOLS, Journal, planned

pytestmark = pytest.mark.skipif(
    SANITIZED, reason="NOT RUN: this build is sanitized itself; the release build has replay-tsan"
)


def handed_on() -> Journal:
    """Blocks that three threads pass around: allocated on one, grown on the next, freed on the third."""
    journal = Journal()
    for number in range(3000):
        journal.allocate("b", 8, number, thread=number % 3 + 1).reallocate("b", 24, number, thread=(number + 1) % 3 + 1)
        journal.free("b", number, thread=(number + 2) % 3 + 1)
    return journal


def races(plan: Path, folder: Path, *options: str) -> int:
    command = [TOOLS / "replay-tsan", "run", plan, "--adapter", TOOLS / "witness.so", "-o", folder / "out", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = done.stderr.count("WARNING: ThreadSanitizer")
    assert done.returncode == 0 or found, done.stderr
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("--pace", "max", "--touch", "page"),
        ("--pace", "1"),
        ("--pace", "max", "--verify"),
        ("--pace", "max", "--untimed"),
        ("--pace", "max", "--in-order"),
    ],
)
def test_threads_that_pass_blocks_on_do_not_race(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert races(planned(handed_on(), tmp_path), tmp_path, *options) == 0


def test_a_plan_without_waits_is_noticed(tmp_path: Path) -> None:
    without = tmp_path / "without.plan"
    subprocess.run([TOOLS / "replay-drop-waits", planned(handed_on(), tmp_path), without], check=True)
    assert races(without, tmp_path, "--pace", "max") > 0
