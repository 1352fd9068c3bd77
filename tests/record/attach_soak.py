"""Attaches to a program that allocates hard, throws, forks and loads libraries, and detaches, again and again: the
program must end as if nothing had been. tests/record/attach_soak.py [TIMES [attached-own]] prints what came of it."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from recorded import PROGRAMS, program

from blockyard import native


@dataclass
class Soak:
    attached: int
    refusals: list[str]
    exit_code: int
    stdout: str
    stderr: str
    mappings: int  # of the recorder's shared memory that are left


def soak(times: int, folder: Path, name: str = "attached") -> Soak:
    library = native.path("libblockyard-record.so")
    copy, socket = folder / library.name, folder / "socket"
    shutil.copy(library, copy)
    busy = subprocess.Popen(
        [program(name), "busy", PROGRAMS / "librecord-plugin.so"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert busy.stdout.readline() == "ready\n"
    call = [native.path("blockyard-attach"), str(busy.pid), "--library", library]
    attached, refusals = 0, []
    while attached + len(refusals) < times and busy.poll() is None:
        collect = [native.path("blockyard-collect"), "--socket", socket, "--output", folder / "soak.byj", "--overwrite"]
        collector = subprocess.Popen(collect, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert collector.stdout.readline() == "ready\n"
        done = subprocess.run([*call, "--as", copy, "--socket", socket], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            time.sleep(0.01)
            done = subprocess.run([*call, "--detach"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            attached += 1
        else:
            refusals.append(done.stderr)
        collector.communicate()
        socket.unlink(missing_ok=True)
    left = Path(f"/proc/{busy.pid}/maps").read_text().count("blockyard-rings") if busy.poll() is None else 0
    stdout, stderr = busy.communicate("", timeout=60)
    return Soak(attached, refusals, busy.returncode, stdout, stderr, left)


def main() -> int:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = soak(times, Path(folder), *sys.argv[2:])
    print(f"{done.attached} of {times} attached in {time.monotonic() - begin:.0f} s, {len(done.refusals)} refusals")
    for refusal, count in Counter(done.refusals).items():
        print(f"  {count} times: {refusal.strip()}")
    print(f"the program: exit code {done.exit_code}, {done.stdout.strip()} {done.stderr.strip()}, {done.mappings} left")
    return 0 if done.exit_code == 0 and done.attached + len(done.refusals) == times else 1


if __name__ == "__main__":
    sys.exit(main())
