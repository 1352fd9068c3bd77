"""What a journal says about itself at its end, read without its events: which recording it comes from, and what the
recorder could not see. A journal that is damaged or has another form says nothing here; whoever reads its events
explains that."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from blockyard.units import counted

_MAGIC, _END = b"\x89BYJ\r\n\x1a\n", b"BYJ-END\n"
_SECTION_HEAD = 24
_PROGRAM, _RECORDING, _UNSEEN, _TOTALS = 1, 13, 14, 16  # docs/reference/journal-format.md
OTHERS = ".processes"
"""A recording of many processes keeps the other processes' journals in a folder that is called like this after STEM."""


@dataclass
class Head:
    """Of one journal."""

    path: Path
    program: str = ""
    recording: bytes = b""
    unseen: list[str] = field(default_factory=list)
    events: int = 0


def read(path: Path) -> Head | None:
    """None for everything but a whole .byj."""
    try:
        if not path.is_file():  # reading from a pipe would take what follows from its reader
            return None
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return None
            file.seek(-16, 2)
            end = file.tell()
            at, magic = struct.unpack("<Q8s", file.read(16))
            if magic != _END or not 16 <= at <= end - _SECTION_HEAD:
                return None
            file.seek(at)
            fields = file.read(end - at)[_SECTION_HEAD:]
    except OSError:
        return None
    head = Head(path)
    for tag, value in _fields(fields):
        if tag == _PROGRAM:
            head.program = value.decode(errors="replace")
        elif tag == _RECORDING:
            head.recording = value
        elif tag == _UNSEEN:
            head.unseen.append(value.decode(errors="replace"))
        elif tag == _TOTALS and len(value) >= 8:
            (head.events,) = struct.unpack_from("<Q", value)
    return head


def _fields(fields: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 6 <= len(fields):
        tag, size = struct.unpack_from("<HI", fields, at)
        yield tag, fields[at + 6 : at + 6 + size]
        at += 6 + size


def warnings(path: Path) -> Iterator[str]:
    """What a reader must know before he believes a figure of this journal, a sentence each, without its stop."""
    head = read(path)
    if head is None:
        return
    yield from head.unseen
    largest = max(_siblings(head), key=lambda other: other.events, default=head)
    if largest.events > head.events:
        program = f", of {Path(largest.program).name}" if largest.program else ""
        yield (
            f"{largest.path} is of the same recording and has more: {counted(largest.events, 'event')}{program}; "
            f"{path.name} has {counted(head.events, 'event')}"
        )


def _siblings(head: Head) -> Iterator[Head]:
    """The journals of other processes of the recording, where the recorder puts them."""
    if not head.recording:
        return
    folder, stem = head.path.parent, head.path.name.split(".")[0]
    folders = {folder, *folder.glob(f"{_literal(stem)}*{OTHERS}")}
    if folder.name.endswith(OTHERS):
        folders.add(folder.parent)
    for place in folders:
        for path in place.glob(f"{_literal(stem)}.*{_literal(head.path.suffix)}"):
            if path != head.path and (other := read(path)) is not None and other.recording == head.recording:
                yield other


def _literal(text: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)
