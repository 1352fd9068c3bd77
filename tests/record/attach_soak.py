"""Attaches to a program that allocates hard, throws, forks and loads libraries, and detaches, again and again: the
program must end as if nothing had been. tests/record/attach_soak.py [TIMES] prints what came of it."""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import the_command
from recorded import PROGRAMS, environment, program


@dataclass
class Soak:
    attached: int
    refusals: list[str]
    exit_code: int
    stdout: str
    stderr: str
    mappings: int  # of the recorder that are left, beyond its library


def soak(times: int, folder: Path, seconds: str = "0.05") -> Soak:
    busy = subprocess.Popen(
        [program("attached"), "busy", str(next(PROGRAMS.glob("librecord-plugin.so")))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert busy.stdout.readline() == "ready\n"
    attached, refusals = 0, []
    for _ in range(times):
        if busy.poll() is not None:
            break
        done = subprocess.run(
            the_command.line(
                "record", "--pid", str(busy.pid), "-o", folder / "soak.byj", "--for", seconds, "--no-names", "--force"
            ),
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
        if "recording process" in done.stderr and done.returncode == 0:
            attached += 1
        else:
            refusals.append(done.stderr)
    left = 0
    if busy.poll() is None:
        left = Path(f"/proc/{busy.pid}/maps").read_text().count("blockyard-rings")
    stdout, stderr = busy.communicate("", timeout=60)
    return Soak(attached, refusals, busy.returncode, stdout, stderr, left)


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = soak(times, Path(folder))
    print(f"{done.attached} of {times} attached in {time.monotonic() - begin:.0f} s, {len(done.refusals)} refusals")
    for refusal in sorted(set(done.refusals)):
        print(f"  {done.refusals.count(refusal)} times: {refusal.strip()}")
    print(f"the program: exit code {done.exit_code}, {done.stdout.strip()} {done.stderr.strip()}, {done.mappings} left")
    return 0 if done.exit_code == 0 and done.attached + len(done.refusals) == times else 1


if __name__ == "__main__":
    sys.exit(main())
