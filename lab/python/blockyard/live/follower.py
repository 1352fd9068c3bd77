"""Runs blockyard-follow, which reads a journal while it is written: its lines, and answers to questions."""

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from blockyard import native, sites_tool
from blockyard.errors import UserError
from blockyard.journal_tool import Blocks
from blockyard.live.recorder import Recorder


class Calls(msgspec.Struct, frozen=True):
    allocations: int
    bytes: int
    frees: int


class Site(msgspec.Struct, frozen=True):
    """`allocations` and `bytes` are those of the line's second, or of the frame."""

    site: int
    function: str
    module: str
    allocations: int
    bytes: int
    live: Blocks
    grown: int = 0  # bytes since `for_ns`
    for_ns: int = 0
    left: Blocks = Blocks(0, 0)  # alive, and allocated since the mark


class Frame(msgspec.Struct, frozen=True):
    """`sites` is None when the frame is too old to be known."""

    number: int
    sites: list[Site] | None
    begin_ns: int = 0
    ns: int = 0
    allocations: int = 0
    bytes: int = 0


class Frames(msgspec.Struct, frozen=True):
    """Those since the line before, from number `first` on; without marks of the program a sixtieth of a second each."""

    marked: bool
    budget_ns: int
    count: int
    over_budget: int
    first: int
    ns: list[int]
    allocations: list[int]
    bytes: list[int]


class Mark(msgspec.Struct, frozen=True):
    at_ns: int
    left: Blocks
    older_freed: Blocks
    sites: list[Site]


class Thread(Calls, frozen=True):
    id: int
    name: str


class Tag(Calls, frozen=True):
    name: str
    live: Blocks


class Line(msgspec.Struct, frozen=True):
    """What the program did since the line before, `window_ns` earlier, and what it holds."""

    program: str
    time_ns: int
    window_ns: int
    events: int  # so far
    all: Calls
    last: Calls
    live: Blocks
    peak_bytes: int
    frames: Frames
    sites: list[Site]
    worst_frame: Frame | None
    growing: list[Site]
    mark: Mark | None
    threads: list[Thread]
    tags: list[Tag]
    ended: bool
    damage: str = ""


class Stack(msgspec.Struct, frozen=True):
    """`functions` begins with the innermost."""

    allocations: int
    live: Blocks
    left: Blocks
    functions: list[sites_tool.Function]


class Stacks(msgspec.Struct, frozen=True):
    """Those of `site` that allocated most in the last second; `count` is how many it has."""

    site: int
    count: int
    stacks: list[Stack]


class _Answer(msgspec.Struct, frozen=True):
    frame: Frame | None = None
    stacks: Stacks | None = None


_LINE = b'{"program"'
_EVENTS = re.compile(rb'"events":\d+')
_TAIL_BYTES = 500  # "ended" is among the last members
_END = b"BYJ-END\n"

_answers = msgspec.json.Decoder(_Answer)
_lines = msgspec.json.Decoder(Line)


def decode(text: bytes) -> Line | Frame | Stacks:
    if text.startswith(_LINE):
        return _lines.decode(text)
    answer = _answers.decode(text)
    return answer.frame or answer.stacks


class Follower:
    """One process, which ends with `close`. Whoever reads it waits, so read on a thread of its own."""

    def __init__(self, journal: Path, fps: float, every_s: float = 1.0) -> None:
        command = [native.path("blockyard-follow"), journal, "--fps", str(fps), "--every", str(every_s), "--stay"]
        self._file = _file_of(journal)
        # Ctrl-C is for the program that is watched.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    def texts(self) -> Iterator[bytes]:
        """What it says, undecoded. Raises UserError when it fails."""
        yield from self._process.stdout
        messages = self._process.stderr.read().decode(errors="replace").splitlines()
        if self._process.wait() != 0:
            raise UserError(native.sentence("blockyard-follow", self._process.returncode, messages))

    def ask(self, question: str) -> None:
        """`frame NUMBER`, `stacks SITE`, or `mark`, which answers in the lines to come."""
        with contextlib.suppress(OSError):  # it has ended
            self._process.stdin.write(question.encode() + b"\n")
            self._process.stdin.flush()

    def reads(self, path: Path) -> bool:
        return _file_of(path) == self._file

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()


def _file_of(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        facts = path.stat()
        return facts.st_dev, facts.st_ino
    return None


def _is_complete(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-len(_END), os.SEEK_END)
        return file.read() == _END


class Watch:
    """Follows a journal, and of a recording whatever process records most: what the program executes in its own place,
    and another when the followed one has been silent for some lines. A launcher says little and starts the game."""

    _SILENT_LINES = 3

    def __init__(self, journal: Path, fps: float, *, stay: bool, recorder: Recorder | None = None) -> None:
        self._journal = journal
        self._fps = fps
        self._stay = stay
        self._recorder = recorder
        self._sizes: dict[tuple[int, int], int] = {}
        self._follower = Follower(journal, fps)
        self._closed = False

    def texts(self) -> Iterator[bytes]:
        """What the followers say, undecoded, until the last has nothing more to say; with `stay` until `close`."""
        silent, events = 0, b""
        while not self._closed:
            other = None
            for text in self._follower.texts():
                yield text
                if not text.startswith(_LINE):
                    continue
                before, events = events, _EVENTS.search(text)[0]
                silent = silent + 1 if events == before else 0
                ended = b'"ended":true' in text[-_TAIL_BYTES:]
                recorded = self._recorder is not None and self._recorder.runs()
                other = self._busiest() if recorded else None
                if other is not None and (ended or silent >= self._SILENT_LINES):
                    break
                if ended and not self._stay and not recorded:
                    self._closed = True
                    break
            else:
                return
            self._follower.close()
            if other is not None and not self._closed:
                self._follower = Follower(other, self._fps)

    def ask(self, question: str) -> None:
        self._follower.ask(question)

    def close(self) -> None:
        self._closed = True
        self._follower.close()

    def _busiest(self) -> Path | None:
        """The journal of the recording that grew most since the last look, if it is another than the followed one."""
        first = self._journal
        most, busiest = 0, None
        of_others = first.with_suffix(".processes").glob(f"*{first.suffix}")
        for path in [*first.parent.glob(f"{first.stem}*{first.suffix}"), *of_others]:
            with contextlib.suppress(OSError):
                facts = path.stat()
                file = (facts.st_dev, facts.st_ino)
                grown = facts.st_size - self._sizes.get(file, 0)
                self._sizes[file] = facts.st_size
                # One that is complete has got its names.
                if grown > most and not _is_complete(path):
                    most, busiest = grown, path
        return None if busiest is None or self._follower.reads(busiest) else busiest
