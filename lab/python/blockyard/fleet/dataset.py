"""The data set on disk: TABLE/build=B/machine=M/PART.parquet. A part is a batch of journals, the same name in each
table; it counts from the moment its file of `journals` is in place, which comes last."""

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from blockyard.campaign.folder import disk_errors
from blockyard.errors import UserError
from blockyard.files import PARTIAL, whole, whole_text
from blockyard.fleet.read_journal import SCHEMAS, Tables

FILE = "fleet.json"
_FORMAT = '{"format": 1}\n'
_LOCK = ".lock"
_DAMAGED = ".damaged"
_END = b"PAR1"
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Place:
    """Where a journal belongs."""

    build: str
    machine: str

    @property
    def folder(self) -> Path:
        return Path(f"build={self.build}") / f"machine={self.machine}"


def name(text: str) -> str:
    """As a folder's name that every engine reads the same: letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:_LONGEST_NAME] or "unknown"


def check(root: Path) -> None:
    """Refuses what is no data set."""
    if not (root / FILE).is_file():
        raise UserError(f"{root} is no fleet; 'blockyard collect FOLDER -o {root}' makes one")
    if (root / FILE).read_text(encoding="utf-8") != _FORMAT:
        raise UserError(f"{root / FILE} is of another version of Blockyard, or damaged; collect into another folder")


def parts(root: Path, table: str = "journals") -> list[Path]:
    return sorted((root / table).glob("build=*/machine=*/*.parquet"))


@contextmanager
def opened(root: Path) -> Iterator[list[str]]:
    """Makes the folder if need be, locks it and puts it right; yields a sentence for each thing that was wrong."""
    with disk_errors(root, "what was collected before is kept: free some space and run the command again"):
        if root.exists() and (not root.is_dir() or (any(root.iterdir()) and not (root / FILE).is_file())):
            raise UserError(f"{root} holds something else; choose a new or empty folder for the fleet")
        root.mkdir(parents=True, exist_ok=True)
        if not (root / FILE).is_file():
            whole_text(root / FILE, _FORMAT)
        check(root)
        lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UserError(f"another collect is working in {root}; wait for its end") from None
            yield _put_right(root)
        finally:
            os.close(lock)


def _put_right(root: Path) -> list[str]:
    """What an interrupted run left is removed; a part of which a file is damaged is set aside, so that its journals are
    collected again."""
    said = []
    for partial in root.glob(f"*/build=*/machine=*/*{PARTIAL}"):
        partial.unlink()
    committed = {part.relative_to(root / "journals") for part in parts(root)}
    for table in SCHEMAS:
        for part in parts(root, table):
            if part.relative_to(root / table) not in committed:
                part.unlink()
    for inner in sorted(committed):
        files = [root / table / inner for table in SCHEMAS]
        if bad := [file for file in files if not _is_whole(file)]:
            for file in files:
                if file.exists():
                    file.rename(file.with_name(file.name + _DAMAGED))
            said.append(f"{bad[0]} is damaged: its part was set aside as *{_DAMAGED}, and its journals are read again")
    return said


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-len(_END), os.SEEK_END)
            return file.read() == _END
    except OSError:
        return False


def known(root: Path) -> tuple[set[str], set[tuple[str, int, int]]]:
    """Digests of the journals that are there, and the files (path, bytes, time of change) that they came from."""
    digests, files = set(), set()
    for part in parts(root):
        columns = pq.read_table(
            part, columns=["journal", "path", "file_bytes", "modified_ns"], partitioning=None
        ).to_pydict()
        digests.update(columns["journal"])
        files.update(zip(columns["path"], columns["file_bytes"], columns["modified_ns"], strict=True))
    return digests, files


def add(root: Path, place: Place, journals: Sequence[Tables]) -> None:
    """One more part of these journals."""
    digests = sorted(tables["journals"]["journal"][0].as_py() for tables in journals)
    part = place.folder / f"{sha256(' '.join(digests).encode()).hexdigest()[:16]}.parquet"
    for name in [*(name for name in SCHEMAS if name != "journals"), "journals"]:
        table = pa.concat_tables([tables[name] for tables in journals])
        whole(root / name / part, lambda path, table=table: pq.write_table(table, path, compression="zstd"))
