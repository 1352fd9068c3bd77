"""A campaign's folder: who may write it, where things lie, and how they get there whole."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from blockyard.campaign import document, facts
from blockyard.campaign.facts import RunFacts
from blockyard.campaign.schedule import Run
from blockyard.errors import UserError
from blockyard.files import whole_folder

LOCK = ".campaign.lock"
PLANS = "plans"
RUNS = "runs"
MACHINE = "machine.json"

# What a folder may hold when a replay was stopped before its campaign was written.
_UNFINISHED = {LOCK, PLANS, RUNS, MACHINE}


@contextmanager
def disk_errors(folder: Path, when_full: str | None = None) -> Iterator[None]:
    """Turns what the file system refuses into a sentence. `when_full` says what is left then and what to do; in a
    campaign's own folder what was written before stays."""
    try:
        yield
    except OSError as error:
        resume = f"finished runs are kept: free some space and go on with 'blockyard replay --resume -o {folder}'"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"the disk that holds {folder} is full; {when_full or resume}") from None
        raise UserError(f"{folder} can't be written: {error.strerror or error}") from None


class Folder:
    """One campaign's folder, locked for as long as the object is open: a second replay is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._made = False

    @property
    def has_campaign(self) -> bool:
        return (self.path / document.FILE).is_file()

    @property
    def lock_descriptor(self) -> int:
        """Handed to each run's process, so that the folder stays locked while one outlives a killed `blockyard`."""
        assert self._lock is not None
        return self._lock

    def check(self) -> None:
        """Refuses a place that is not a folder, or one that holds anything but a campaign."""
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self.path} is a file; -o needs a folder")
        foreign = self._foreign()
        if foreign:
            raise UserError(f"{self.path} already holds other files ({foreign}); choose a new or empty folder")

    def __enter__(self) -> "Folder":
        """Makes the folder if need be and locks it. Refuses one that holds anything but a campaign."""
        with disk_errors(self.path):
            self.check()
            if not self.path.is_dir():
                self.path.mkdir(parents=True)
                self._made = True
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise UserError(
                f"another replay is working in {self.path}; wait for its end or choose another folder"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        """Unlocks. A folder in which no campaign came to be is left as it was found."""
        if not self.has_campaign:
            shutil.rmtree(self.path / PLANS, ignore_errors=True)
            shutil.rmtree(self.path / RUNS, ignore_errors=True)
            for name in (MACHINE, LOCK):
                (self.path / name).unlink(missing_ok=True)
            if self._made:
                self.path.rmdir()
        os.close(self.lock_descriptor)
        self._lock = None

    def _foreign(self) -> str | None:
        """A name that does not belong into a campaign's folder, when there is no campaign in it."""
        if not self.path.is_dir() or self.has_campaign:
            return None
        names = sorted(entry.name for entry in self.path.iterdir())
        if not names or (LOCK in names and set(names) <= _UNFINISHED):
            return None
        return names[0]

    def plan(self, journal: str) -> Path:
        return self.path / PLANS / f"{journal}.plan"

    def shared_facts(self, journal: str) -> Path:
        """Where all runs of a journal find what they share (`pairs.npy`, `frames.npy`)."""
        return self.path / RUNS / journal

    def run(self, run: Run) -> Path:
        return self.path / RUNS / run.id

    def result(self, run: Run) -> RunFacts | None:
        """Of a finished run; None when it isn't finished, or what is there can't be read."""
        try:
            found = facts.read(self.run(run) / facts.RUN, RunFacts)
        except (FileNotFoundError, UserError):
            return None
        left = "syscalls.npy" if run.traced else "samples.npy" if run.sampled else "bursts.npy"
        return found if not found.ok or (self.run(run) / left).is_file() else None

    def running(self, run: Run) -> AbstractContextManager[Path]:
        """An empty folder for the run to write into."""
        return whole_folder(self.run(run))

    def drop_plans(self) -> None:
        shutil.rmtree(self.path / PLANS, ignore_errors=True)

    def drop_runs(self) -> None:
        shutil.rmtree(self.path / RUNS, ignore_errors=True)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.path).free
