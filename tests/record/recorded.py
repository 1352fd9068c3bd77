"""Recording a program in a test: run it under `blockyard record`, check every journal, read the events back."""

import contextlib
import json
import os
import re
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import the_command

from blockyard import native

BUILD = Path(os.environ.get("BLOCKYARD_BUILD") or Path(__file__).parents[2] / "build" / "release")
PROGRAMS = BUILD / "tests" / "record"
NO_BLOCK = ""


def program(name: str) -> str:
    path = PROGRAMS / f"record-{name}"
    assert path.is_file(), f"{path} is missing: build with BLOCKYARD_TESTS=ON"
    return str(path)


@dataclass
class Event:
    """An event of a journal in its text form; a realloc is one event."""

    kind: str  # allocate, zeroed, aligned, free, realloc, frame, phase
    size: int
    address: str
    thread: int
    time: int
    alignment: int = 0
    name: str = ""


@dataclass
class Journal:
    """A journal that passed `blockyard check`."""

    path: Path
    events: list[Event]
    preamble: int
    threads: dict[int, str]
    info: dict = field(repr=False, default_factory=dict)

    def of_size(self, size: int) -> list[Event]:
        return [event for event in self.events if event.size == size and event.kind != "free"]

    def kinds(self, *sizes: int) -> Counter:
        return Counter(event.kind for event in self.events if event.size in sizes and event.kind != "free")

    def frees_of(self, *sizes: int) -> int:
        """Frees and reallocs of blocks that had one of these sizes."""
        live: dict[str, int] = {}
        count = 0
        for event in self.events:
            if event.kind in ("free", "realloc"):
                count += live.pop(event.name if event.kind == "realloc" else event.address, None) in sizes
            if event.kind in ("allocate", "zeroed", "aligned", "realloc"):
                live[event.address] = event.size
        return count

    def count(self, kind: str) -> int:
        return sum(event.kind == kind for event in self.events)


@dataclass
class Recording:
    """What a recorded program did and what was recorded of it."""

    exit_code: int
    stdout: str
    stderr: str
    output: Path

    def journal(self, path: Path | None = None) -> Journal:
        return read(path or self.output)

    def others(self) -> list[Journal]:
        """The journals of other processes and windows, in the order of their names."""
        return [
            read(path)
            for path in sorted(self.output.parent.rglob(f"{self.output.stem}*{self.output.suffix}"))
            if path != self.output
        ]


def environment(**more: str) -> dict[str, str]:
    clean = {
        name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "BLOCKYARD_COLLECT_OPTIONS")
    }
    return clean | {"BLOCKYARD_BUILD": str(BUILD)} | more


def open_files(pid: int) -> set[str]:
    found = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def command_line(process: Path) -> bytes:
    """Of a folder in /proc; empty where the process has ended."""
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_bytes()
    return b""


def command(output: Path, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    return the_command.line("record", "-o", output, "--addresses", *options, "--", *arguments)


def blockyard(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Any verb."""
    return subprocess.run(
        the_command.line(*arguments), env=environment(), capture_output=True, text=True, check=False, **options
    )


def started(
    output: Path, *arguments: str, options: tuple[str, ...] = (), own_session: bool = False, **env: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(output, *arguments, options=options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**env),
        start_new_session=own_session,
    )


def recording(output: Path, *arguments: str, options: tuple[str, ...] = (), stdin: str = "", **env: str) -> Recording:
    """Whether it succeeded is the caller's to check."""
    process = started(output, *arguments, options=options, own_session=True, **env)
    try:
        stdout, stderr = process.communicate(stdin, timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the program that hangs, too
        raise
    return Recording(process.returncode, stdout, stderr, output)


def record(output: Path, *arguments: str, **more: Any) -> Recording:
    """Fails the test where the recording or the program does."""
    done = recording(output, *arguments, **more)
    assert done.exit_code == 0, done.stderr
    return done


def read(path: Path) -> Journal:
    """Checks a journal and reads its events; fails with the violation's sentence."""
    native.call("blockyard-journal", ["check", path])
    info = json.loads(native.call("blockyard-journal", ["info", "--json", path]))
    text = path.with_suffix(".txt")
    native.call("blockyard-journal", ["convert", path, "-o", text, "--force"])
    journal = Journal(path, [], 0, {}, info)
    notes: dict[str, str] = {}
    replaced = NO_BLOCK
    for line in text.read_text().splitlines():
        if line.startswith("# "):
            _, key, *rest = line.split(" ")
            if key == "preamble":
                journal.preamble = int(rest[0])
            elif key == "thread":
                journal.threads[int(rest[1])] = " ".join(rest[2:])
            elif key == "frame":
                journal.events.append(Event("frame", -1, NO_BLOCK, int(rest[0]), int(rest[1])))
            elif key == "phase":
                journal.events.append(Event("phase", -1, NO_BLOCK, int(rest[1]), int(rest[2]), name=rest[0]))
            elif key in ("zeroed", "aligned", "realloc"):
                notes[key] = rest[0] if rest else ""
            continue
        if found := re.fullmatch(r"a (\d+) ([0-9A-F]+) (\d+) (\d+)", line):
            size, address, thread, time = found.groups()
            kind = next(iter(notes), "allocate")
            journal.events.append(
                Event(
                    kind,
                    int(size),
                    address,
                    int(thread),
                    int(time),
                    int(notes.get("aligned") or 0),
                    replaced if kind == "realloc" else "",
                )
            )
            notes, replaced = {}, NO_BLOCK
        elif found := re.fullmatch(r"f ([0-9A-F]+) (\d+) (\d+)", line):
            address, thread, time = found.groups()
            if "realloc" in notes:
                replaced = address
            else:
                journal.events.append(Event("free", 0, address, int(thread), int(time)))
    text.unlink()
    return journal
