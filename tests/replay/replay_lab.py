"""What the tests of blockyard-replay share: journals written line by line, runs on the witness allocator, its log."""

import ctypes
import ctypes.util
import json
import os
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from blockyard import native
from blockyard.analysis.samples_library import fields

BUILD = Path(os.environ.get("BLOCKYARD_BUILD") or Path(__file__).parents[2] / "build" / "release")
TOOLS = BUILD / "tests" / "replay"
MS = 1_000_000
REPLAY = native.path("blockyard-replay")

SANITIZED = (
    "BLOCKYARD_SANITIZER:" in (BUILD / "CMakeCache.txt").read_text() if (BUILD / "CMakeCache.txt").exists() else False
)
"""Whether this build has a sanitizer in it, whose own memory and malloc some tests would measure."""

CALL = np.dtype(
    fields(
        *(("S1", "what"), ("S3", "padding"), ("<u4", "thread")),
        ("<u8", "size alignment old_size block old_block pages_written bytes_written inside mallocs"),
    )
)
"""A row of the witness's log, as tests/replay/adapters/witness.cpp writes it."""


@dataclass
class Journal:
    """A journal in the annotated text form; times in ns, blocks by names of the test's own."""

    lines: list[str] = field(default_factory=lambda: ["# blockyard journal text 1", "# preamble 0"])
    addresses: dict[str, int] = field(default_factory=dict)
    given: int = 0
    events: int = 0
    """So far, which is the number of the next one."""

    def allocate(self, block: str, size: int, ns: int = 0, thread: int = 1, kind: str = "") -> "Journal":
        self.given += 1
        self.events += 1
        self.addresses[block] = 0x1000_0000 + 0x100 * self.given
        if kind:
            self.lines.append(f"# {kind}")
        self.lines.append(f"a {size} {self.addresses[block]:016x} {thread} {ns}")
        return self

    def free(self, block: str, ns: int = 0, thread: int = 1) -> "Journal":
        self.events += 1
        self.lines.append(f"f {self.addresses.pop(block):016x} {thread} {ns}")
        return self

    def reallocate(self, block: str, size: int, ns: int = 0, thread: int = 1) -> "Journal":
        self.lines.append("# realloc 100")
        self.events -= 1  # the two lines are one event
        return self.free(block, ns, thread).allocate(block, size, ns, thread)

    def frame(self, ns: int, thread: int = 1) -> "Journal":
        self.events += 1
        self.lines.append(f"# frame {thread} {ns}")
        return self

    def write(self, path: Path) -> Path:
        path.write_text("\n".join(self.lines) + "\n")
        return path


ROUTE_KINDS = ("", "temp", "temp_scope", "temp_job", "pool", "rewindable", "reserve", "keep")


@dataclass(frozen=True)
class Route:
    """A route of a routes file, and the numbers of the journal's events whose blocks go there."""

    kind: str
    events: tuple[int, ...]
    size: int = 0
    group: int = 0
    alignment: int = 16
    grows: tuple[int, ...] = ()
    """Of the events those whose block replaces the one that the thread's next event frees."""


def write_routes(path: Path, events: int, *routes: Route) -> Path:
    """A file as lab/src/journal/routes.hpp lays it out, of a journal with so many events."""
    head = struct.Struct("<8sIIQQQ")
    body = b"".join(
        struct.pack("<BBHIQQ", ROUTE_KINDS.index(one.kind), one.alignment.bit_length() - 1, 0, one.group, one.size, 0)
        for one in routes
    )
    listed = sorted((event, number) for number, one in enumerate(routes) for event in one.events)
    body += b"".join(struct.pack("<IHH", event, route, event in routes[route].grows) for event, route in listed)
    xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    xxhash.XXH3_64bits.restype = ctypes.c_uint64
    digest = xxhash.XXH3_64bits(body, ctypes.c_size_t(len(body)))
    path.write_bytes(head.pack(b"BYROUTE\n", 1, len(routes), len(listed), events, digest) + body)
    return path


@dataclass
class Run:
    """A run that was made: what it said and left."""

    done: subprocess.CompletedProcess
    folder: Path
    log: Path

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads((self.folder / "run.json").read_text())

    @property
    def rows(self) -> np.ndarray:
        return np.load(self.folder / "samples.npy")

    @property
    def memory(self) -> np.ndarray:
        return np.load(self.folder / "memory.npy")

    def calls(self, what: str = "mzarf") -> np.ndarray:
        """The witness's calls of these kinds, in their order."""
        rows = np.fromfile(self.log, CALL)
        return rows[np.isin(rows["what"], [letter.encode() for letter in what])]

    @property
    def sentence(self) -> str:
        """The one line that a failed run says."""
        lines = [line for line in self.done.stderr.splitlines() if not line.startswith("progress ")]
        assert len(lines) == 1 and lines[0].startswith("blockyard: "), self.done.stderr
        return lines[0].removeprefix("blockyard: ")


def plan(journal: Path, target: Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [REPLAY, "plan", journal, "-o", target, *options], capture_output=True, text=True, timeout=300
    )


def planned(journal: Journal, folder: Path, *options: str) -> Path:
    target = folder / "journal.plan"
    done = plan(journal.write(folder / "journal.txt"), target, *options)
    assert done.returncode == 0, done.stderr
    return target


def replaying(plan_file: Path, output: Path, adapter: Path, *options: object, pace: str = "max", **more: Any) -> list:
    """The command line."""
    given = native.arguments({"adapter": adapter, "pace": pace, "-o": output, **more})
    return [REPLAY, "run", plan_file, *given, *options]


def run(
    plan_file: Path,
    folder: Path,
    *options: str,
    adapter: str = "witness",
    pace: str = "max",
    touch: str = "none",
    witness: str = "",
    environment: dict[str, str] | None = None,
) -> Run:
    """Replays on the witness; whether it succeeded is the caller's to check."""
    output, log = folder / "run", folder / "log"
    knobs = ",".join(part for part in (f"log={log}", witness) if part)
    given = {"touch": touch, "options": knobs, "allocator": "witness"}
    command = replaying(plan_file, output, TOOLS / f"{adapter}.so", *options, pace=pace, **given)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **(environment or {})}
    )
    return Run(done, output, log)


def replayed(journal: Journal, folder: Path, *options: str, plan_options: tuple[str, ...] = (), **keywords: Any) -> Run:
    """Plans and replays; fails the test when either does."""
    made = run(planned(journal, folder, *plan_options), folder, *options, **keywords)
    assert made.done.returncode == 0, made.done.stderr
    return made


def spaced(count: int = 240, ns: int = MS, threads: int = 1) -> Journal:
    """Even events allocate, odd ones free; what is planted at an event is found by the block's size."""
    journal = Journal()
    for number in range(0, count, 2):
        thread = number // 2 % threads + 1
        journal.allocate(f"b{number}", 1000 + number, number * ns, thread).free(f"b{number}", (number + 1) * ns, thread)
    return journal


EACH_PLANT = {20: "sleep", 41: "futex", 60: "fault", 80: "touched", 100: "map", 121: "unmap", 140: "advise"}
"""What planted() does at which event."""


def planted(
    journal: Journal, folder: Path, plants: dict[int, str], *options: str, more: str = "", **keywords: Any
) -> Run:
    knobs = "plant=" + "/".join(f"{kind}:{event}" for event, kind in plants.items()) + more
    if "--trace" not in options:  # a trace counts calls, and one that makes sure is one more
        knobs += ",slept=1"
    keywords = {"pace": "1", "touch": "page", **keywords}
    made = run(planned(journal, folder), folder, *options, adapter="planted", witness=knobs, **keywords)
    assert made.done.returncode == 0, made.done.stderr
    return made


def sooner_or_later(attempt: Callable[[], bool]) -> bool:
    """Whether it holds in one of five attempts: for what a busy machine may keep from happening in any one of them."""
    return any(attempt() for _ in range(5))
