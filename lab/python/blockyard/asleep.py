"""Programs whose hooks sleep until somebody wakes them: no ptrace is needed."""

import contextlib
import fcntl
import mmap
import os
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from blockyard import native, preload, recording
from blockyard.errors import UserError

# AsleepPage in lab/src/record/channel.hpp: version, process, turn, answered; then two texts.
_FAILURE = slice(16, 128)
_SOCKET = slice(128, 240)
_TURN = slice(8, 12)
_ANSWERED = slice(12, 16)
_LOOK_EVERY = 0.01


def become(command: list[str]) -> None:
    """This process becomes the program, with sleeping hooks. Raises UserError where it can't."""
    program = recording.find_program(command[0])
    preload.refuse_unfit(program, recording.RECORDER, recording.OTHERWISE)
    library = native.path("libblockyard-record.so").resolve()
    if preload.is_split(library):
        raise UserError(f"{library} can't be preloaded: its path has a space or a colon; move Blockyard elsewhere")
    variables = {"BLOCKYARD_ASLEEP": tempfile.gettempdir(), "LD_PRELOAD": preload.in_front(library)}
    try:
        os.execve(program, command, os.environ | variables)
    except OSError as error:
        raise UserError(f"{command[0]} can't be started: {error.strerror}") from None


class Sleeper:
    """A program with sleeping hooks, through the page that it shares."""

    def __init__(self, page: mmap.mmap) -> None:
        self._page = page

    def wake(self, socket: Path, gives_up: Callable[[], bool]) -> bool:
        """Has it record into this collector. It notices at its next call; False when `gives_up` says so before that.
        Raises UserError where it can't."""
        self._page[_SOCKET] = os.fsencode(socket).ljust(112, b"\0")
        turn = self._number(_ANSWERED) + 1
        self._page[_TURN] = struct.pack("=I", turn)
        while self._number(_ANSWERED) != turn:
            if gives_up():
                return False
            time.sleep(_LOOK_EVERY)
        failure = self._page[_FAILURE].split(b"\0")[0].decode()
        if failure:
            raise UserError(f"the program can't be recorded: {failure}")
        return True

    def sleep(self) -> None:
        """Its calls pass through again."""
        self._page[_TURN] = bytes(4)

    def _number(self, field: slice) -> int:
        return struct.unpack("=I", self._page[field])[0]


def find(pid: int) -> Sleeper | None:
    """The program with this number, if its hooks sleep and this process may wake it; until this process ends it is
    ours. Raises UserError where it is another's."""
    folder = Path(f"/proc/{pid}")
    places = [tempfile.gettempdir()]
    number = str(pid)
    # They are not to be read in another user's program; it may be there nevertheless.
    with contextlib.suppress(OSError):
        for variable in (folder / "environ").read_bytes().split(b"\0"):
            if variable.startswith(b"BLOCKYARD_ASLEEP="):
                places.insert(0, os.fsdecode(variable.split(b"=", 1)[1]))
    with contextlib.suppress(OSError):
        for line in (folder / "status").read_text().splitlines():
            if line.startswith("NSpid:"):
                number = line.split()[-1]
    name = f"blockyard-asleep.{number}"
    for place in places:
        for seen in (folder / "root" / place.lstrip("/"), Path(place)):
            # One that is not of its full length yet, or never was, is no page.
            with contextlib.suppress(OSError, ValueError), (seen / name).open("r+b") as file:
                page = mmap.mmap(file.fileno(), 4096)
                version, owner = struct.unpack("=Ii", page[:8])
                if version == 0 or str(owner) != number or not _may_have(folder, name):
                    continue
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the page keeps it: it has the file open, too
                except BlockingIOError:
                    raise UserError(f"process {pid} can't be recorded: it is being recorded already") from None
                return Sleeper(page)
    return None


def _may_have(folder: Path, page: str) -> bool:
    """Whether the process has this page: one of a program that crashed may lie there under its number. Who hides its
    memory may have it."""
    try:
        return any(line.endswith(f"/{page}") for line in (folder / "maps").read_text(errors="replace").splitlines())
    except OSError:
        return True
