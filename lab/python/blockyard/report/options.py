"""What a report shall contain, and what it came to."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.text import Text

from blockyard.analysis import standing
from blockyard.analysis.latency import View


@dataclass(frozen=True)
class ReportOptions:
    """Everything that `blockyard report` can be asked for. The attributed view is left out where causes are not
    known.

    Unless `everything` is wanted, a report is the verdict and what is behind it: allocators in their defaults, in the
    view that is trusted most, some ten tables and a dozen pictures.
    """

    everything: bool = False
    views: tuple[View, ...] = ()
    """None named: the one trusted most, or all of them where everything is wanted."""
    by_size: bool = False
    allocations_csv: bool = False
    samples_parquet: bool = False
    pictures: bool = True
    html: bool = False
    gross: bool = False
    journals: tuple[str, ...] = ()
    allocators: tuple[str, ...] = ()
    """Those asked about: tables hold them and the program's own; pictures draw the others in grey."""
    recorded_with: str | None = None
    """The allocator that the program was recorded with; where nobody says, glibc."""
    jobs: int = 2
    fps: float | None = None
    thread: str | None = None
    """Frames are judged on this thread, by name or number; else on the one that marks them, or the busiest."""
    skip: str | None = None
    """A regular expression: functions that don't stand for a site, such as the program's own allocator's."""
    advice: tuple[Path, ...] = ()
    """Folders of `blockyard advise`, for the page."""

    @property
    def own(self) -> str:
        """The program's own allocator."""
        return self.recorded_with or standing.ASSUMED

    @property
    def assumed(self) -> bool:
        return self.recorded_with is None


@dataclass(frozen=True)
class ReportResult:
    """For a terminal of 80 columns: `table`, of which `short` is the verdict's own, and `verdict`, which stands last;
    `text` is all of report.txt, `json` its tables as values."""

    out: Path
    table: Text
    short: Text
    verdict: Text
    text: str
    json: dict[str, Any]
    pictures: list[Path] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    page: Path | None = None
