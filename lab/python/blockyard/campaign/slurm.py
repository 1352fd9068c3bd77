"""Slurm, as a campaign needs it: what it was told to run, and what it says of that."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blockyard.errors import UserError

_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
_ANSWERS_S = 60.0


@dataclass(frozen=True)
class Job:
    """One element of an array: `state` and `reason` are Slurm's own words."""

    array: int
    element: int | None
    state: str
    reason: str
    node: str

    @property
    def is_queued(self) -> bool:
        """Whether it waits, runs, or is on its way from one to the other."""
        return self.state not in _ENDED

    @property
    def words(self) -> str:
        return f"{self.state} ({self.reason})" if self.reason not in ("", "None") else self.state


def _call(*command: str, text: str | None = None) -> str:
    if shutil.which(command[0]) is None:
        raise UserError(f"{command[0]} was not found; run this where Slurm's commands are (Debian: slurm-client)")
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_ANSWERS_S, check=False)
    except subprocess.TimeoutExpired:
        raise UserError(f"{command[0]} did not answer within {_ANSWERS_S:.0f} s; is Slurm's controller up?") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise UserError(f"{command[0]} refused: {said.removeprefix(command[0] + ': ')}")
    return done.stdout


def most_elements() -> int:
    """How many one array may have."""
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", _call("scontrol", "show", "config"), re.MULTILINE)
    return int(found[1]) if found else 1001


def submit(script: str, name: str, log: Path, partition: str | None, more: Sequence[str]) -> int:
    """The id of the new job. What this process has in `SBATCH_CONSTRAINT`, `SBATCH_TIMELIMIT` and their like holds, as
    for every sbatch."""
    given = ["--parsable", "--nodes=1", "--requeue", "--open-mode=append", f"--job-name={name}", f"--output={log}"]
    if partition:
        given.append(f"--partition={partition}")
    return int(_call("sbatch", *given, *more, text=script).strip().split(";")[0])


def jobs(name: str) -> list[Job]:
    """All of this name that Slurm still knows, those that ended lately too."""
    form = "%F|%K|%T|%r|%N"
    found = []
    for line in _call("squeue", "--noheader", "--array", "--states=all", f"--name={name}", f"--format={form}").split(
        "\n"
    ):
        if line.count("|") == 4:
            array, element, state, reason, node = line.strip().split("|")
            found.append(Job(int(array), int(element) if element.isdigit() else None, state, reason, node))
    return found


def node() -> str:
    """The one that this process runs on."""
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename
