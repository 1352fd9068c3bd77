"""What a campaign shows while it runs: bars on a terminal, a line a run elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from blockyard.campaign.schedule import Run
from blockyard.units import clock_text

_BAR_WIDTH = 24


class Display:
    """What a campaign reports to while it runs. For a file or a pipe: a line for each thing that happened, nothing
    redrawn."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._name = ""
        self._planned: set[str] = set()
        self._done = self._total = 0

    def planning(self, journal: str, fraction: float, text: str) -> None:
        if journal not in self._planned:
            self._planned.add(journal)
            self.note(f"planning {journal}")

    def begin(self, name: str, done: int, total: int) -> None:
        self._name, self._done, self._total = name, done, total

    def run_begins(self, run: Run, repeats: int, expected_s: float, left_s: float) -> None:
        pass

    def tick(self) -> None:
        pass

    def run_ends(self, run: Run, reason: str | None, left_s: float) -> None:
        self._done += 1
        width = len(str(self._total))
        outcome = f"failed: {reason}" if reason else f"{clock_text(left_s)} left"
        self.note(f"[{self._done:{width}}/{self._total}] {run.id}  {outcome}")

    def note(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, highlight=False, markup=False)


class Bars(Display):
    """For a terminal: what runs now and how far the campaign is, in four lines that fit 80 columns.

    The caller's own thread draws it about once per second: redrawing ten times per second would be load on the machine
    that is measured.
    """

    def __init__(self, console: Console, live: Live, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console)
        self._live, self._now = live, now
        self._run: Run | None = None
        self._repeats = 1
        self._expected = self._left = self._began = 0.0

    def planning(self, journal: str, fraction: float, text: str) -> None:
        self._live.update(_rows([("planning", journal, fraction, text)]), refresh=True)

    def run_begins(self, run: Run, repeats: int, expected_s: float, left_s: float) -> None:
        self._run, self._repeats, self._expected, self._left = run, repeats, expected_s, left_s
        self._began = self._now()
        self.tick()

    def tick(self) -> None:
        if self._run is None:
            return
        run, passed = self._run, self._now() - self._began
        left = max(self._left - min(passed, self._expected), 0.0)
        part = min(passed / self._expected, 1.0) if self._expected else 1.0
        rows: list[_Row] = [
            (
                "campaign",
                self._name,
                (self._done + part) / max(self._total, 1),
                f"{self._done} of {self._total}, {clock_text(left)} left",
            ),
            ("journal", f"{run.journal} {run.pace} {run.touch}", None, ""),
            ("allocator", run.allocator, None, ""),
            (
                "repeat",
                "traced" if run.traced else f"{run.repeat} of {self._repeats}",
                part,
                clock_text(max(self._expected - passed, 0.0)),
            ),
        ]
        self._live.update(_rows(rows), refresh=True)

    def run_ends(self, run: Run, reason: str | None, left_s: float) -> None:
        self._done += 1
        self._left = left_s
        if reason:
            self.note(f"{run.id} failed: {reason}")


_Row = tuple[str, str, float | None, str]


def _rows(rows: list[_Row]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=9, style="dim")
    table.add_column(width=20, no_wrap=True, overflow="ellipsis")
    table.add_column(width=_BAR_WIDTH)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for label, value, fraction, text in rows:
        bar = ProgressBar(total=1.0, completed=fraction, width=_BAR_WIDTH) if fraction is not None else Text("")
        table.add_row(label, value, bar, text)
    return table


@contextmanager
def display(console: Console) -> Iterator[Display]:
    """Bars on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield Display(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield Bars(console, live)
