"""One run of a program: started with an allocator in front of its malloc, its frames marked, and what it took."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

import msgspec
import numpy as np

from blockyard import files, native, preload
from blockyard.errors import UserError
from blockyard.trial.contenders import Contender

_MARK = np.dtype([("at_ns", "<u8"), ("cpu_ns", "<u8"), ("thread", "<u4"), ("automatic", "<u4")])
"""What libblockyard-frames.so writes (lab/src/trial/frame_times.cpp)."""
_PATIENCE_S = 2.0


class _Took(msgspec.Struct, frozen=True):
    """What blockyard-launch reports of the program."""

    pid: int
    code: int
    signal: int
    elapsed_s: float
    cpu_s: float
    peak_bytes: int
    faults: int


@dataclass(frozen=True)
class How:
    """How a program is run: `timeout_s` after which it has failed, None for never; the function whose calls end a frame
    where no buffer swap does."""

    timeout_s: float | None = None
    frame_symbol: str | None = None


@dataclass
class Run:
    """`failed` says why there are no figures. `frames_ns` and `frames_cpu_ns`: of the thread that marked most frames,
    in their order; `child` is the program that they are of, where it is not the one that was started."""

    failed: str | None = None
    elapsed_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    faults: int = 0
    output: str = ""
    child: str | None = None
    frames_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    frames_cpu_ns: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def save(self, path: Path) -> None:
        facts = {name: value for name, value in asdict(self).items() if not name.startswith("frames_")}

        def write(partial: Path) -> None:
            with partial.open("wb") as file:
                np.savez(file, facts=json.dumps(facts), frames_ns=self.frames_ns, frames_cpu_ns=self.frames_cpu_ns)

        files.whole(path, write)

    @classmethod
    def load(cls, path: Path) -> "Run | None":
        """None where it was not saved or can't be read."""
        try:
            with np.load(path) as held:
                return cls(
                    **json.loads(str(held["facts"])), frames_ns=held["frames_ns"], frames_cpu_ns=held["frames_cpu_ns"]
                )
        except (OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile, zlib.error):
            return None


def run(one: Contender, arguments: Sequence[str], how: How) -> Run:
    """Runs it to its end. An interrupt ends the program, too."""
    with preload.private_folder() as folder, contextlib.ExitStack() as held:
        variables = {**one.environment, **_preloads(one, how, folder), "BLOCKYARD_FRAMES": str(folder)}
        # The library's own blocks are of no interest here.
        variables["BLOCKYARD_OBSERVED"] = "0"
        report = folder / "report.json"
        output, errors = (held.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        command = [str(native.path("blockyard-launch")), str(report)]
        command += [f"{name}={value}" for name, value in variables.items()]
        process = subprocess.Popen(
            [*command, "--", one.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            # A group of its own, so that the program's children end with it.
            start_new_session=True,
        )
        try:
            process.wait(how.timeout_s)
        except subprocess.TimeoutExpired:
            return Run(failed=f"it did not end within {how.timeout_s:g} s")
        finally:
            _end(process)
        if process.returncode != 0:
            return Run(failed=_last_line(errors) or "it can't be started")
        took = native.decoded("blockyard-launch", report.read_text(), _Took)
        return _read(took, folder, output, errors)


def _preloads(one: Contender, how: How, folder: Path) -> dict[str, str]:
    variables, stubs = preload.frame_symbol(how.frame_symbol, folder)
    libraries = [str(preload.linked(native.path("libblockyard-frames.so"), folder)), *map(str, stubs)]
    if one.library is not None:
        library = Path(one.library)
        libraries.append(str(preload.linked(library, folder)) if library.is_absolute() else one.library)
    own = one.environment.get("LD_PRELOAD", os.environ.get("LD_PRELOAD", ""))
    return {**variables, "LD_PRELOAD": ":".join([*libraries, *filter(None, own.split(":"))])}


def _end(process: subprocess.Popen[bytes]) -> None:
    """What is left of the program's group would disturb the next run. The one that was started ends at the first
    signal; what it started has its time all the same."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        latest = time.monotonic() + _PATIENCE_S
        while (lives := _group_lives(process.pid)) and time.monotonic() < latest:
            time.sleep(0.01)
        if not lives:
            process.wait()
            return


def _group_lives(group: int) -> bool:
    """Whether any of it runs: who ended and nobody waits for is in the group for as long as that."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return False


def _read(took: _Took, folder: Path, output: IO[bytes], errors: IO[bytes]) -> Run:
    if took.signal or took.code:
        how = f"{native.signal_name(took.signal)} ended it" if took.signal else f"it ended with exit code {took.code}"
        line = _last_line(errors)
        return Run(failed=f"{how} ({line})" if line else how)
    output.seek(0)
    found = Run(
        elapsed_s=took.elapsed_s,
        cpu_s=took.cpu_s,
        peak_bytes=took.peak_bytes,
        faults=took.faults,
        output=hashlib.file_digest(output, "sha256").hexdigest(),
    )
    marked = {path: _marks(path) for path in folder.iterdir() if path.name.partition("-")[0].isdecimal()}
    if not marked:
        return found
    path = max(marked, key=lambda path: len(marked[path]))
    marks = marked[path]
    if len(marks) < 2:
        return found
    if int(path.name.partition("-")[0]) != took.pid:
        found.child = path.name.partition(".")[2]
    found.frames_ns = np.diff(marks["at_ns"].astype(np.int64))
    found.frames_cpu_ns = np.diff(marks["cpu_ns"].astype(np.int64))
    return found


def _marks(path: Path) -> np.ndarray:
    """Of the thread that marked most; what a buffer swap marked only where the program marked nothing itself."""
    whole = path.stat().st_size // _MARK.itemsize
    marks = np.fromfile(path, _MARK, whole)
    marks = marks[marks["at_ns"] > 0]
    if (marks["automatic"] == 0).any():
        marks = marks[marks["automatic"] == 0]
    if not len(marks):
        return marks
    threads, counts = np.unique(marks["thread"], return_counts=True)
    return marks[marks["thread"] == threads[counts.argmax()]]


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(max(errors.seek(0, os.SEEK_END) - 4096, 0))
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("blockyard: ") if lines else ""


def refuse_not_started(found: Run, name: str) -> None:
    """Of the program as it is: with it nothing can be compared."""
    if found.failed is not None:
        raise UserError(f"the program fails on {name}, with which the others are compared: {found.failed}")
