"""The terminal as tables of figures and long readings need it.

rich takes a twentieth of a second to load, so it is loaded where it is used: `record`, which draws nothing, stands
before the program's start.
"""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text


def show(*texts: "Text | str") -> None:
    """On standard output, in colours where it is a terminal; the lines are as long as they are."""
    from rich.console import Console

    Console(highlight=False).print(*texts, sep="\n", soft_wrap=True, markup=False)


Progress = Callable[[float, str], None]
"""Called with how far something is, 0 to 1, and what it is doing."""

_QUIET_S = 20.0
"""Where there is no terminal, a line so often: a log shows that work goes on, and stays short."""


@contextmanager
def reading_bar() -> Iterator[Progress]:
    """A progress bar without a refresh thread: workers are forked while it is up. Lines where there is no terminal."""
    if not sys.stderr.isatty():
        said = time.monotonic()

        def tell(fraction: float, text: str) -> None:
            nonlocal said
            if time.monotonic() - said >= _QUIET_S:
                said = time.monotonic()
                with suppress(OSError):  # whoever read it may be gone; the work goes on
                    print(f"blockyard: {text}, {100 * fraction:.0f} %", file=sys.stderr, flush=True)

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
    ) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda fraction, text: bar.update(task, completed=fraction, description=text, refresh=True)


def terminate_like_interrupt() -> None:
    """SIGTERM, or a terminal that closes, is as Ctrl-C: the current run is dropped, finished ones are kept."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup has it ignored, and means it.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)
