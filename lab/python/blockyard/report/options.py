"""What a report shall contain, and what it came to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from blockyard.analysis.latency import View

ALL_VIEWS = tuple(View)

Progress = Callable[[float, str], None]
"""Told how far a report is, 0 to 1, and what it is doing."""


@dataclass(frozen=True)
class ReportOptions:
    """Everything that `blockyard report` can be asked for. `from_s`, `to_s` zoom the density pictures alone. The
    attributed view is left out where causes are not known."""

    views: tuple[View, ...] = ALL_VIEWS
    by_size: bool = False
    allocations_csv: bool = False
    samples_parquet: bool = True
    pictures: bool = True
    html: bool = False
    gross: bool = False
    from_s: float | None = None
    to_s: float | None = None
    journals: tuple[str, ...] = ()
    allocators: tuple[str, ...] = ()
    jobs: int = 2
    fps: float | None = None
    thread: str | None = None
    """Frames are judged on this thread, by name or number; else on the one that marks them, or the busiest."""


@dataclass(frozen=True)
class ReportResult:
    """`table` is for the terminal (80 columns); `text` is the whole report, as in report.txt."""

    out: Path
    table: RenderableType
    text: str
    guidelines: list[str] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    page: Path | None = None
