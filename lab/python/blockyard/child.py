"""Runs a user's program as our child: the signals that come for us go to it."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Handed on to the program; what the terminal sends (Ctrl-C, Ctrl-\) reaches it by itself.
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_AWAITED = (*_FORWARDED, signal.SIGCHLD)


Timed = tuple[float, Callable[[subprocess.Popen], None]]
"""Seconds after the program's start, and what to do then if it still runs."""


def run(program: Path, command: Sequence[str], environment: dict[str, str], timed: Sequence[Timed] = ()) -> int:
    """Runs it to its end; its exit code, or 128 and the number of the signal that ended it. Raises OSError when it
    can't be started. What is `timed` is done in its order."""
    with _signals_held() as held:
        process = subprocess.Popen(
            command, executable=program.absolute(), env=environment, close_fds=False, preexec_fn=held.give_back
        )
        code = _wait_passing_on(process, timed)
    return code if code >= 0 else 128 - code


def _wait_passing_on(process: subprocess.Popen, timed: Sequence[Timed]) -> int:
    """Until the program ends; the signals that come for us meanwhile go to it."""
    begin = time.monotonic()
    to_come = list(timed)
    while (code := process.poll()) is None:
        if to_come and time.monotonic() >= begin + to_come[0][0]:
            to_come.pop(0)[1](process)
            continue
        if to_come:
            info = signal.sigtimedwait(_AWAITED, max(0.0, begin + to_come[0][0] - time.monotonic()))
            number = None if info is None else info.si_signo
        else:
            number = signal.sigwait(_AWAITED)
        if number not in (None, signal.SIGCHLD):
            process.send_signal(number)
    return code


@dataclass(frozen=True)
class _HeldSignals:
    """The signals' mask and handlers as we were started with them."""

    mask: set[signal.Signals]
    handlers: dict[signal.Signals, Any]

    def give_back(self) -> None:
        """Run in the child: the program starts with the signals that it would have had without us."""
        for number, handler in self.handlers.items():
            # Python's own handler of Ctrl-C stands for the default action.
            signal.signal(number, handler if handler == signal.SIG_IGN else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)


@contextlib.contextmanager
def _signals_held() -> Iterator[_HeldSignals]:
    """Within, no signal is lost: those for the program wait until `_wait_passing_on` takes them, also one that comes
    before the program has started or just before the wait begins, where a handler would come too early. What the
    terminal sends reaches the program without us."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    # A parent that ignores SIGCHLD, as its own parent may have made it, hears of no child.
    handlers = {signal.SIGCHLD: signal.signal(signal.SIGCHLD, signal.SIG_DFL)}
    handlers |= {number: signal.signal(number, signal.SIG_IGN) for number in _FROM_TERMINAL}
    try:
        yield _HeldSignals(mask, handlers)
    finally:
        while signal.sigtimedwait(_AWAITED, 0) is not None:  # came after the program's end
            pass
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
