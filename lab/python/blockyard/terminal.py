"""The terminal as tables of figures and long readings need it.

rich takes a twentieth of a second to load, so it is loaded where it is used: `record`, which draws nothing, stands
before the program's start.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST = 80


def for_tables() -> "Console":
    """Standard output, of eighty columns at least: rich fits a table into fewer by leaving letters of its figures out,
    units among them, where a terminal folds a line and loses nothing."""
    from rich.console import Console

    console = Console(highlight=False)
    console.width = max(console.width, NARROWEST)
    return console


@contextmanager
def reading_bar() -> Iterator[Callable[[float, str], None]]:
    """A progress bar without a refresh thread: workers are forked while it is up."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        auto_refresh=False,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("reading", total=1.0)
        yield lambda fraction, text: bar.update(task, completed=fraction, description=text, refresh=True)
