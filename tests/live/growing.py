"""A journal that is being written: the bundled one, piece by piece."""

import json
import queue
import struct
import threading
from pathlib import Path

from blockyard.live.follower import Follower, Frame, Line, Stacks, decode

JOURNAL = Path(__file__).parents[2] / "journals" / "godot-shooter.byj"
_PREFACE_BYTES = 16
_SECTION_HEAD = struct.Struct("<4sI16x")


def blocks(whole: bytes) -> list[tuple[int, int]]:
    """Of each block of events: how many events precede it, and where it ends."""
    found, at, kind = [], _PREFACE_BYTES, b""
    while kind != b"FOOT":
        kind, payload = _SECTION_HEAD.unpack_from(whole, at)
        begin = at + _SECTION_HEAD.size
        at = begin + payload
        if kind == b"BLCK":
            found.append((struct.unpack_from("<Q", whole, begin)[0], at))
    return found


class Growing:
    """Has the file open, as its recorder would, until `end`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole = JOURNAL.read_bytes()
        self.blocks = blocks(self.whole)
        self._file = path.open("wb", buffering=0)
        self._written = 0

    def write_until(self, end: int) -> None:
        self._file.write(self.whole[self._written : end])
        self._written = end

    def end(self) -> None:
        self._file.close()


class Heard:
    """What a follower says, read beside the test."""

    def __init__(self, journal: Path, every_s: float = 1.0) -> None:
        self.follower = Follower(journal, 60, every_s)
        self._said: queue.Queue[Line | Frame | Stacks | Exception] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            for text in self.follower.texts():
                json.loads(text)
                self._said.put(decode(text))
        except Exception as error:
            self._said.put(error)

    def until(self, what: type, fits=lambda said: True):
        """The next of this kind that fits; the test's own limit of time ends a wait for nothing."""
        while True:
            said = self._said.get()
            if isinstance(said, Exception):
                raise said
            if isinstance(said, what) and fits(said):
                return said
