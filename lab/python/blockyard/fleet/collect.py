"""Reads a folder of journals into a fleet's data set."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from blockyard.errors import UserError
from blockyard.files import sha256
from blockyard.fleet import dataset, read_journal
from blockyard.fleet.dataset import Place
from blockyard.fleet.read_journal import Tables

_SUFFIXES = (".byj", ".journal", ".journal.zst", ".journal.gz")
_JOURNALS_AT_ONCE = 256
"""So many are in memory, and are lost when a run is killed; a data set of thousands stays a few dozen files a table."""


@dataclass
class Outcome:
    """`seen` journals, of which `added` are new to the fleet and `bad` could not be read: a sentence for each."""

    seen: int = 0
    added: int = 0
    events: int = 0
    bad: list[str] = field(default_factory=list)


def collect(
    source: Path,
    root: Path,
    *,
    build: str | None,
    machine: str | None,
    tell: Callable[[float, str], None],
    note: Callable[[str], None],
) -> Outcome:
    """Adds what is new in `source`. Interrupted, it keeps what it has read."""
    if not source.is_dir():
        raise UserError(f"{source} is no folder; name the one that holds the journals")
    outcome = Outcome()
    with dataset.opened(root) as said:
        for sentence in said:
            note(sentence)
        paths = [path for path in sorted(source.rglob("*")) if path.name.endswith(_SUFFIXES) and path.is_file()]
        paths = [path for path in paths if root.resolve() not in path.resolve().parents]
        if not paths:
            raise UserError(f"{source} holds no journal ({', '.join(_SUFFIXES)})")
        outcome.seen = len(paths)
        digests, files = dataset.known(root)
        waiting: dict[Place, list[Tables]] = {}

        def write() -> None:
            while waiting:
                dataset.add(root, *waiting.popitem())

        try:
            for number, (path, found) in enumerate(_read(paths, files, digests)):
                tell((number + 1) / len(paths), f"collecting {path.name}")
                if isinstance(found, str):
                    outcome.bad.append(found)
                elif found is not None:
                    waiting.setdefault(_place(path, source, found, build, machine), []).append(found)
                    outcome.added += 1
                    outcome.events += found["journals"]["events"][0].as_py()
                    if outcome.added % _JOURNALS_AT_ONCE == 0:
                        write()
        finally:
            write()
    return outcome


def _read(
    paths: list[Path], files: set[tuple[str, int, int]], digests: set[str]
) -> Iterator[tuple[Path, Tables | str | None]]:
    """The rows of each new journal, a sentence for one that can't be read, None for contents that were there."""
    todo = (path for path in paths if _stamp(path) not in files)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        running: dict[Future[tuple[str, Tables | None]], Path] = {}
        try:
            while True:
                # Few at a time: what is read and not yet written takes memory.
                while len(running) < 2 * (os.cpu_count() or 1) and (path := next(todo, None)) is not None:
                    running[pool.submit(_rows, path, digests)] = path
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    path = running.pop(done)
                    try:
                        digest, found = done.result()
                    except (UserError, OSError, ValueError, KeyError) as error:
                        yield path, f"{path}: {error}".replace(f"{path}: {path}", str(path))
                        continue
                    # A copy may have been read beside it.
                    yield path, None if digest in digests else found
                    digests.add(digest)
        finally:
            for future in running:
                future.cancel()


def _rows(path: Path, digests: set[str]) -> tuple[str, Tables | None]:
    digest = sha256(path)
    return digest, None if digest in digests else read_journal.read(path, digest)


def _stamp(path: Path) -> tuple[str, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), -1, -1  # gone meanwhile: its reader says so
    return str(path.absolute()), status.st_size, status.st_mtime_ns


def _place(path: Path, source: Path, found: Tables, build: str | None, machine: str | None) -> Place:
    """By options, else by folders BUILD/MACHINE/ below the one named, else what the journal says of its machine."""
    folders = path.relative_to(source).parts[:-1]
    hardware = found["journals"]["hardware"][0].as_py()
    return Place(
        dataset.name(build or (folders[0] if folders else "unknown")),
        dataset.name(machine or (folders[1] if len(folders) > 1 else hardware)),
    )
