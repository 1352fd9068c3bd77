"""Runs a program under the recorder: starts the collector, preloads the library, hands signals on."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from blockyard import child, native, preload, terminal
from blockyard.errors import UserError

# The system takes 107 bytes of a socket's path; a folder's own name and the socket's need the rest.
_SOCKET_FOLDER_BYTES = 70

RECORDER = "the recorder"
OTHERWISE = "or call the functions of blockyard/journal.h"


@dataclass
class Request:
    """What to record and how; times are seconds."""

    command: list[str]
    output: Path
    after: float | None = None
    length: float | None = None
    signal: int | None = None
    wait: bool = False
    frame_symbol: str | None = None
    addresses: bool = False
    overwrite: bool = False
    stack_depth: int = 64  # 0: no stacks
    verify_stacks: bool = False
    quit: bool = False  # end the program when the window has closed
    names: bool = True  # resolve the stacks' functions and lines at the end
    stop_at: str | None = None  # limits that are watched in the program, as lab/src/record/linux/stop.cpp reads them
    children: str | None = None  # "no", or the file name of the programs to record beside the first; None: all


class Journal(msgspec.Struct):
    """One that was written. `preamble`: blocks that a forked child found alive; `error`: why it is incomplete."""

    path: str
    events: int
    preamble: int
    allocations: int
    frees: int
    reallocates: int
    frames: int
    threads: int
    bytes: int
    seconds: float
    error: str


class Image(msgspec.Struct):
    """A program in a process. One that still runs has no journals yet but a path; `silent`: nothing is in it so far."""

    pid: int
    program: str
    running: bool
    path: str = ""
    silent: bool = False
    process: int = 0
    unseen: list[str] = []
    journals: list[Journal] = []
    stacks_verified: int = 0
    stacks_differing: int = 0
    stacks_ended_by_us: int = 0
    stacks_ended_by_them: int = 0
    waits: int = 0
    waited_ms: float = 0.0
    threads_left: int = 0
    threads_refused: int = 0
    was_running: bool = False  # before it was recorded
    unknown_frees: int = 0
    missed_frees: int = 0


class Unseen(msgspec.Struct):
    """A program that began without the recorder."""

    program: str


class Summary(msgspec.Struct):
    """The collector's."""

    images: list[Image]
    unseen: list[Unseen]
    clock: str


@dataclass
class Outcome:
    """What came of it: the program's exit code and the collector's summary."""

    request: Request
    exit_code: int
    summary: Summary
    notes: list[str] = field(default_factory=list)
    was_quit: bool = False  # the program was ended because its window had closed

    @property
    def journals(self) -> list[tuple[Image, Journal]]:
        return [(image, journal) for image in self.summary.images for journal in image.journals]


def run(request: Request) -> Outcome:
    """Runs the program to its end and returns what was recorded. Raises UserError before anything was started."""
    program = find_program(request.command[0])
    preload.refuse_unfit(program, RECORDER, OTHERWISE)
    check_output(request)
    with preload.private_folder(_SOCKET_FOLDER_BYTES) as folder:
        socket = str(folder / "socket")
        environment = _environment(request, socket, folder)
        collector = start_collector(request, socket)
        try:
            ending = _Ending(request, socket)
            exit_code = child.run(program, request.command, environment, ending.steps())
            ending.finish()
        except OSError as error:
            collector.stdin.close()
            collector.wait()
            raise UserError(f"{request.command[0]} can't be started: {error.strerror}") from None
        return outcome(request, collected(collector), folder, exit_code, ending.was_quit)


class _Ending:
    """What happens when the window of --for has closed and the program still runs."""

    # The program's start and the collector's window are not quite the same moment.
    _SLACK = 0.3
    _PATIENCE = 5.0
    _LOOK_EVERY = 0.05
    # While a program is being executed its environment can't be seen, so one look is not enough.
    _LOOKS = 4

    def __init__(self, request: Request, socket: str) -> None:
        self._request = request
        self._socket = socket
        self._begin = time.monotonic()
        self._killed = False
        self.was_quit = False

    def steps(self) -> list[child.Timed]:
        request = self._request
        if request.length is None or request.wait or request.signal is not None:
            return []
        if not request.quit:
            return [(self._closes, self._say_that_it_runs_on)]
        return [
            (self._closes, lambda process: self._terminate(process.pid)),
            (self._closes + self._PATIENCE, lambda process: self._kill(process.pid)),
        ]

    def finish(self) -> None:
        """The program has ended, but it may have been a script that started the one to be recorded."""
        if not self._request.quit:
            return
        for at, end in ((self._closes, self._terminate), (self._closes + self._PATIENCE, self._kill)):
            empty_looks = 0
            while empty_looks < self._LOOKS and time.monotonic() < self._begin + at:
                time.sleep(self._LOOK_EVERY)
                empty_looks = 0 if self._recorded() else empty_looks + 1
            if self._recorded() and not self._killed:
                end()

    @property
    def _closes(self) -> float:
        return (self._request.after or 0) + (self._request.length or 0) + self._SLACK

    def _recorded(self) -> list[int]:
        """The processes that were started with this recording's environment, whoever their parents are now."""
        wanted = os.fsencode(f"BLOCKYARD_RECORD={self._socket}")
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                # It may have ended, or be another user's.
                with contextlib.suppress(OSError):
                    if wanted in (folder / "environ").read_bytes().split(b"\0"):
                        found.append(int(folder.name))
        return found

    def _send(self, number: signal.Signals, *others: int) -> None:
        for pid in {*self._recorded(), *others}:
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def _say_that_it_runs_on(self, process: subprocess.Popen) -> None:
        say(
            f"the window has closed and the journal is complete; process {process.pid} runs on unrecorded ('--quit' "
            "would end it)"
        )

    def _terminate(self, *program: int) -> None:
        if not self.was_quit:
            self.was_quit = True
            self._send(signal.SIGTERM, *program)

    def _kill(self, *program: int) -> None:
        self._killed = True
        self._send(signal.SIGKILL, *program)
        say(f"{self._request.command[0]} did not end within {self._PATIENCE:g} s of SIGTERM; SIGKILL ended it")


def say(what: str) -> None:
    # Whoever read it may be gone; the recording goes on.
    with contextlib.suppress(OSError):
        print(f"blockyard: {what}", file=sys.stderr)


def collected(collector: subprocess.Popen[str]) -> str:
    """What the collector says, in one line, when the end of its input tells it that the program is over."""
    collector.stdin.close()
    return collector.stdout.readline()


def outcome(request: Request, line: str, folder: Path, exit_code: int = 0, was_quit: bool = False) -> Outcome:
    """With names in the journals. The collector writes each byte of a path as a character, because a path need not be
    text. `folder` is for files of ours."""
    if not line:
        raise UserError("the recorder's collector ended early; what it had written is readable")
    summary = native.decoded("blockyard-collect", line, Summary)
    for image in summary.images:
        for holder in (image, *image.journals):
            holder.path = os.fsdecode(holder.path.encode("latin-1"))
    for one in summary.unseen:
        one.program = os.fsdecode(one.program.encode("latin-1"))
    found = Outcome(request, exit_code, summary, was_quit=was_quit)
    if request.names and request.stack_depth:
        found.notes += _name_stacks(found, folder)
    return found


def _name_stacks(outcome: Outcome, folder: Path) -> list[str]:
    """Stores functions and lines in every journal that is complete. Returns what went wrong, in sentences."""
    journals = [journal.path for _, journal in outcome.journals if not journal.error and journal.events]
    if not journals:
        return []
    listed = folder / "journals"
    listed.write_bytes(b"".join(os.fsencode(path) + b"\0" for path in journals))
    try:
        with terminal.reading_bar() as tell:
            text = native.call("blockyard-names", ["--list", listed], on_progress=tell)
            failures = native.decoded("blockyard-names", text, list[str])
    except UserError as error:
        failures = [str(error)]
    return [f"call stacks are without names: {failure}" for failure in failures]


def find_program(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        if Path(name).exists():
            raise UserError(f"{name} is not executable; 'chmod +x' makes it so, or name the interpreter first")
        raise UserError(f"{name} was not found; give the path of a program")
    return Path(found)


def check_output(request: Request) -> None:
    output = request.output
    if output.is_dir():
        raise UserError(f"{output} is a folder; name a file for the journal with -o")
    if output.exists() and not request.overwrite:
        raise UserError(f"{output} exists already; name another file with -o, or pass --force to replace it")
    if not output.parent.is_dir():
        raise UserError(f"the folder {output.parent} does not exist; make it, or name another with -o")
    if output.exists() and not os.access(output, os.W_OK):
        raise UserError(f"{output} can't be written; name another file with -o")
    try:
        with tempfile.TemporaryFile(dir=output.parent):  # folders of /proc permit it and take none
            pass
    except OSError as error:
        raise UserError(f"{output} can't be created: {error.strerror}; name another file with -o") from None


def _environment(request: Request, socket: str, folder: Path) -> dict[str, str]:
    libraries = [preload.linked(native.path("libblockyard-record.so"), folder)]
    environment = dict(os.environ, BLOCKYARD_RECORD=socket)
    variables, stubs = preload.frame_symbol(request.frame_symbol, folder)
    environment |= variables
    libraries += stubs
    if request.stop_at is not None:
        environment["BLOCKYARD_STOP"] = request.stop_at
    environment["BLOCKYARD_PRELOAD"] = ":".join(map(str, libraries))
    environment["LD_PRELOAD"] = preload.in_front(*libraries)
    return environment


def start_collector(request: Request, socket: str) -> subprocess.Popen[str]:
    arguments = native.arguments(
        {
            "--socket": socket,
            "--output": request.output.absolute(),
            "--overwrite": request.overwrite,
            "--addresses": request.addresses,
            "--stack-depth": request.stack_depth,
            "--verify-stacks": request.verify_stacks,
            "--after": request.after,
            "--for": request.length,
            "--signal": request.signal,
            "--wait": request.wait or request.signal is not None,
            "--children": request.children,
        }
    )
    arguments += os.environ.get("BLOCKYARD_COLLECT_OPTIONS", "").split()
    collector = subprocess.Popen(
        [str(native.path("blockyard-collect")), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if collector.stdout.readline().strip() != "ready":
        collector.wait()
        raise UserError("the recorder's collector did not start")
    return collector
