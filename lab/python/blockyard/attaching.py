"""Records a program that runs already: starts the collector, has the program load the recorder, and takes it back."""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from blockyard import asleep, native, recording
from blockyard.errors import UserError

_LIBRARY = "libblockyard-record.so"
# Where a folder for the library and the socket may lie, as the program sees it.
_PLACES = ("/tmp", "/dev/shm", "/var/tmp")
# What the collector's clock and ours differ in, at the end of --for.
_SLACK = 0.1


def run(request: recording.Request, pid: int) -> recording.Outcome:
    """Records process `pid` until the time of --for is over, until this process is interrupted, or until it ends.
    Raises UserError where nothing could be recorded."""
    recording.check_output(request)
    try:
        program = os.fdopen(os.pidfd_open(pid), "rb", buffering=0)
    except (OSError, OverflowError):
        raise UserError(f"there is no process {pid}") from None
    with program, _interruptible() as interrupted, _folder(pid) as folder:
        socket = folder.here / "socket"
        collector = recording.start_collector(request, str(socket))
        try:
            _give_to(pid, socket)
            sleeper = asleep.find(pid)
            if sleeper is not None:
                gives_up = lambda: _is_ready(program) or _is_ready(interrupted)  # noqa: E731
                if not sleeper.wake(folder.there / "socket", gives_up):
                    sleeper.sleep()
                    raise UserError(f"process {pid} allocated nothing until the end, so it never woke")
            else:
                _call(pid, "--as", folder.there / _LIBRARY, "--socket", folder.there / "socket")
            length = request.length if request.signal is None else None
            until = "Ctrl-C ends it" if length is None else f"Ctrl-C ends it before its {length:g} s are over"
            recording.say(f"recording process {pid} from now on; {until}")
            seconds = None if length is None else (request.after or 0) + length + _SLACK
            select.select([program, interrupted], [], [], seconds)
            if sleeper is not None:
                sleeper.sleep()
            elif not _is_ready(program):
                _detach(pid, program)
        finally:
            line = recording.collected(collector)
        return recording.outcome(request, line, folder.own)


@dataclass
class _Folder:
    """A folder that the program can read: as this process sees it, as the program does, and one of our own."""

    here: Path
    there: Path
    own: Path


@contextlib.contextmanager
def _folder(pid: int) -> Iterator[_Folder]:
    # A container, or a changed root, shows the program other files than us.
    root = Path(f"/proc/{pid}/root")
    try:
        is_ours = os.path.samestat(root.stat(), Path("/").stat()) and os.path.samestat(
            os.stat(f"/proc/{pid}/ns/mnt"), os.stat("/proc/self/ns/mnt")
        )
    except OSError:
        raise UserError(
            f"process {pid} can't be attached to: it is another user's; attach as its user or as root"
        ) from None
    for place in _PLACES:
        seen = Path(place) if is_ours else root / place[1:]
        with contextlib.suppress(OSError):
            if os.statvfs(seen).f_flag & os.ST_NOEXEC:
                continue
            here = Path(tempfile.mkdtemp(prefix="blockyard-", dir=seen))
            break
    else:
        raise UserError(f"no folder of which process {pid} may run a library could be made in {', '.join(_PLACES)}")
    try:
        library = here / _LIBRARY
        shutil.copyfile(native.path(_LIBRARY), library)
        library.chmod(0o755)
        _give_to(pid, here)
        with tempfile.TemporaryDirectory(prefix="blockyard-") as own:
            yield _Folder(here, Path(place) / here.name, Path(own))
    finally:
        shutil.rmtree(here, ignore_errors=True)


def _give_to(pid: int, path: Path) -> None:
    """The program's user may use it, whoever we are."""
    facts = os.stat(f"/proc/{pid}")
    if facts.st_uid != os.geteuid():
        os.chown(path, facts.st_uid, facts.st_gid)


@contextlib.contextmanager
def _interruptible() -> Iterator[int]:
    """A descriptor that can be read once a signal has asked this process to end."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    before = {}
    before_descriptor = signal.set_wakeup_fd(write_end)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            continue  # under nohup
        before[number] = signal.signal(number, lambda *_: None)
    try:
        yield read_end
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_descriptor)
        os.close(read_end)
        os.close(write_end)


def _is_ready(descriptor: BinaryIO | int) -> bool:
    """Of a process: it has ended. Of a pipe: a signal has come."""
    return bool(select.select([descriptor], [], [], 0)[0])


def _call(pid: int, *arguments: object) -> None:
    # Not to be interrupted together with us, by Ctrl-C at the terminal.
    done = subprocess.run(
        [native.path("blockyard-attach"), str(pid), "--library", native.path(_LIBRARY), *map(str, arguments)],
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    if done.returncode != 0:
        raise UserError(done.stderr.removeprefix("blockyard: ").strip() or f"attaching to process {pid} failed")


def _detach(pid: int, program: BinaryIO) -> None:
    try:
        _call(pid, "--detach")
    except UserError as error:
        if not _is_ready(program):
            recording.say(f"the hooks stay in place, asleep: {error}")
