"""Runs `blockyard record` beside the view, which has the terminal to itself meanwhile."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_LOOK_EVERY_S = 0.02

# Its own words go to a file of their own; what it starts keeps standard output and standard error.
_RECORD = """
import os, sys
sys.stderr = os.fdopen(int(sys.argv.pop(1)), "w")
from blockyard.cli import run
sys.argv[0] = "blockyard"
run()
"""


class Recorder:
    """A recording that goes on whether somebody looks or not. With `holds_output` the program reads nothing, and what
    it prints waits until `finish`; without, its standard output is our standard error."""

    def __init__(self, arguments: Sequence[str | os.PathLike], *, holds_output: bool) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115
        self._output = tempfile.TemporaryFile() if holds_output else None  # noqa: SIM115
        self._printed = 0
        words = self._words.fileno()
        output = self._output or sys.stderr
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _RECORD, str(words), "record", *map(os.fspath, arguments)],
            stdin=subprocess.DEVNULL if holds_output else None,
            stdout=output,
            stderr=output,
            pass_fds=[words],
        )

    def has_begun(self, journal: Path) -> bool:
        """Waits for the journal; False when the recording ended without one."""
        while not journal.exists():
            if self._process.poll() is not None:
                return journal.exists()
            time.sleep(_LOOK_EVERY_S)
        return True

    def runs(self) -> bool:
        return self._process.poll() is None

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def finish(self) -> int:
        """Waits for the program's end and prints what it says from now on, and said so far; then what was recorded.
        The recording's exit code."""
        # Ctrl-C is the program's.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            while self.runs():
                self._print_output()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.1)
        finally:
            signal.signal(signal.SIGINT, before)
        self._print_output()
        self._words.seek(0)
        sys.stderr.buffer.write(self._words.read())
        sys.stderr.flush()
        return self._process.returncode

    def _print_output(self) -> None:
        while self._output is not None and (said := os.pread(self._output.fileno(), 1 << 16, self._printed)):
            self._printed += len(said)
            sys.stdout.buffer.write(said)
            sys.stdout.flush()
