"""How long runs take: expected from their journals, corrected by those that have finished."""

from collections import defaultdict
from collections.abc import Iterable

from blockyard.campaign.document import Journal
from blockyard.campaign.schedule import Run

# Before anything has run: a process start, a plan mapped in and samples written out, and an event at max pace.
_OVERHEAD_S = 0.4
_EVENT_AT_MAX_PACE_S = 200e-9


class Estimate:
    """Expected seconds of runs. `journals` are the entries of `campaign.json`."""

    def __init__(self, journals: Iterable[Journal]) -> None:
        self._journals = {journal.name: journal for journal in journals}
        self._like: dict[tuple[str, str, str, bool], list[float]] = defaultdict(list)
        self._overheads: list[float] = []

    def nominal_s(self, run: Run) -> float:
        """What the journal's own clock says, nothing else counted."""
        journal = self._journals[run.journal]
        if run.pace == "max":
            return journal.measured_events * _EVENT_AT_MAX_PACE_S
        return journal.duration_s / float(run.pace.removesuffix("x"))

    def expected_s(self, run: Run) -> float:
        """The mean of like runs of the same journal, else the nominal time and the mean overhead so far."""
        like = self._like[run.journal, run.pace, run.touch, run.untimed]
        if like:
            return sum(like) / len(like)
        overhead = sum(self._overheads) / len(self._overheads) if self._overheads else _OVERHEAD_S
        return self.nominal_s(run) + overhead

    def limit_s(self, run: Run) -> float:
        """When a run is taken for hung: far beyond anything a slow allocator needs, short of a night lost."""
        return 120.0 + 20.0 * self.nominal_s(run)

    def observed(self, run: Run, seconds: float) -> None:
        self._like[run.journal, run.pace, run.touch, run.untimed].append(seconds)
        self._overheads.append(max(seconds - self.nominal_s(run), 0.0))

    def left_s(self, runs: Iterable[Run]) -> float:
        return sum(self.expected_s(run) for run in runs)
