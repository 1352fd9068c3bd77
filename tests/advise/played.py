"""Small games as text journals: each site of them allocates in one known way."""

import struct
from collections.abc import Callable
from pathlib import Path

from stacked import Journal
from the_command import blockyard, success

from blockyard.advise import tool
from blockyard.advise.document import Advice, Site

FRAME_NS = 16_000_000
FRAMES = 60

MAIN = [("main", "main.cpp", 10)]
UPDATE = [("app::update()", "update.cpp", 20)]
END_FRAME = [("app::end_frame()", "update.cpp", 90)]


class Game:
    """A journal that goes on frame by frame. Stacks are named by functions, the outermost first."""

    def __init__(self, path: Path, marks: bool = True) -> None:
        self.journal = Journal()
        self.journal.module("/usr/lib/x86_64-linux-gnu/libGL.so.1")
        self.path = path
        self.marks = marks
        self.frame = 0
        self._ns = 0
        self._next = 0x1000

    def stack(self, *functions: str | tuple) -> int:
        """Each function, or a function and the line in it, or with its module as well, below main().

        A stack that begins in another module is that of a thread of its own.
        """
        named = [(one, 1) if isinstance(one, str) else one for one in functions]
        if len(named[0]) == 2 and named[0] != ("main()", 99):
            named.insert(0, ("main()", 1))
        return self.journal.stack(
            *[self.journal.frame([(name, f"{name.split('(')[0]}.cpp", line)], *module) for name, line, *module in named]
        )

    def allocate(self, size: int, *functions: str | tuple, thread: int = 1) -> int:
        self._ns += 100
        self._next += 0x10000
        self.journal.allocate(size, self._next, self._ns, self.stack(*functions), thread=thread)
        return self._next

    def grow(self, block: int, size: int, *functions: str | tuple) -> int:
        self._ns += 100
        self._next += 0x10000
        site = self.stack(*functions)
        self.journal.line(
            f"# realloc 50\n# site {site}\nf {block:x} 1 {self._ns}\na {size} {self._next:x} 1 {self._ns}"
        )
        return self._next

    def free(self, block: int, *functions: str | tuple, thread: int = 1) -> None:
        self._ns += 100
        self.journal.free(block, self._ns, self.stack(*functions), thread=thread)

    def free_all(self, blocks: list[int], *functions: str | tuple) -> None:
        """The list is empty then."""
        for block in blocks:
            self.free(block, *functions)
        blocks.clear()

    def thin_out(self, blocks: list[int], most: int, *functions: str | tuple) -> None:
        """Frees some, from all over the list, until so many are left."""
        while len(blocks) > most:
            self.free(blocks.pop(self.frame * 7 % len(blocks)), *functions)

    def brief(self, count: int, size: int, *functions: str | tuple) -> None:
        """So many blocks that are freed at once, at the frame's end."""
        for _ in range(count):
            self.free(self.allocate(size, *functions), "end_frame()")

    def wait(self, ns: int) -> None:
        self._ns += ns

    def end_frame(self) -> None:
        self.frame += 1
        self._ns = max(self._ns + 100, self.frame * FRAME_NS)
        if self.marks:
            self.journal.line(f"# frame 1 {self._ns} 0 {self.stack(('main()', 99))}")

    def write(self) -> Path:
        return self.journal.write(self.path)


def play(path: Path, each_frame: Callable[[Game], None], frames: int = FRAMES, marks: bool = True) -> Path:
    """A game whose frames all do the same, as far as `each_frame` does not ask for game.frame."""
    game = Game(path, marks)
    for _ in range(frames):
        each_frame(game)
        game.end_frame()
    return game.write()


def advise(journal: Path, *options: object) -> Advice:
    output = journal.with_name(f"{journal.stem}-advice-{len(list(journal.parent.iterdir()))}")
    success(blockyard("advise", journal, "--no-replay", "-o", output, *options))
    return tool.read(output)


def at(report: Advice, function: str) -> Site:
    """What is said of a function: advice, or to leave it alone."""
    found = [one for one in [*report.advice, *report.leave] if one.where.function == function]
    assert len(found) == 1, f"{function}: {len(found)} times among {[one.where for one in report.advice]}"
    return found[0]


def routed(report: Advice) -> list[tuple[int, int]]:
    """Event and route of each block in the routes file."""
    data = (Path(report.folder) / "routes.byr").read_bytes()
    magic, version, routes, blocks, events, _ = struct.unpack_from("<8sIIQQQ", data)
    assert (magic, version, events) == (b"BYROUTE\n", 1, report.events)
    at_byte = 40 + 24 * routes
    return [struct.unpack_from("<IHH", data, at_byte + 8 * i)[:2] for i in range(blocks)]
