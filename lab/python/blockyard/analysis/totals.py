"""What allocation takes in all: from untimed runs, whose clock is read around bursts of calls, less the same on `null`.

Two clock reads around each call drain the processor's pipeline, so timed calls added up are two to four times what they
take in a program. Every sum comes from here: of a frame, of an audio buffer, of a thread, of a whole replay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from statistics import median, variance

import numpy as np
from scipy.special import stdtrit

from blockyard.analysis import noise, samples
from blockyard.analysis.passes import ALL

BURST = np.dtype(
    [
        ("event", "<u4"),
        ("events", "<u4"),
        ("frame", "<u4"),
        ("thread", "<u2"),
        ("cause", "<u2"),
        ("start", "<u8"),
        ("ns", "<u8"),
        ("away", "<u4"),
    ]
)
"""A row of bursts.npy."""
CONFIDENCE = 0.95
_TOGETHER = 8
"""Bursts end at other events in each repeat where threads wait for one another: over a few of them that is little."""


@dataclass(frozen=True)
class Bursts:
    """One untimed run's."""

    rows: np.ndarray

    @classmethod
    def of(cls, folder: Path) -> "Bursts":
        """Raises UserError for a file that no replay wrote."""
        return cls(samples.columns(folder / "bursts.npy", BURST, "burst"))

    def by_thread(self) -> dict[int, float]:
        """Time in ns; the machine's is not in it."""
        sums = np.bincount(self.rows["thread"], self.rows["ns"])
        return {thread: float(sums[thread]) for thread in np.unique(self.rows["thread"]).tolist()}

    def by_frame(self, edges: np.ndarray, thread: int, *, away: bool) -> np.ndarray:
        """The same by frame; frame i has the bursts that end with an event from edges[i] on and below edges[i + 1].
        With `away` what the machine took is in it."""
        place = np.searchsorted(edges, self.rows["event"], side="right") - 1
        chosen = (place >= 0) & (place < len(edges) - 1)
        if thread != ALL:
            chosen &= self.rows["thread"] == thread
        ns = self.rows["ns"][chosen].astype(float)
        if away:
            ns += self.rows["away"][chosen]
        return np.bincount(place[chosen], ns, max(len(edges) - 1, 0))


@dataclass(frozen=True)
class Total:
    """What allocation takes of one thread in a whole replay, or of all, in ns per repeat. `ns` is without first touch,
    which is `touch_ns`; `low_ns` and `high_ns` are the ends of the 95 % interval of `ns`, None of a lone repeat."""

    thread: int
    repeats: int
    ns: float
    low_ns: float | None
    high_ns: float | None
    null_ns: float
    touch_ns: float | None
    figure: noise.Figure
    """Of `ns`, for claims."""

    @property
    def with_touch_ns(self) -> float:
        return self.ns + (self.touch_ns or 0.0)


@dataclass(frozen=True, eq=False)
class Untimed:
    """The untimed runs of one allocator in a section beside those of `null`: as the section touches its blocks, and
    untouched."""

    touched: Sequence[Bursts]
    untouched: Sequence[Bursts]
    null_touched: Sequence[Bursts]
    null_untouched: Sequence[Bursts]

    def frames(self, edges: np.ndarray, thread: int, *, away: bool = False) -> np.ndarray:
        """Allocator time with first touch in ns, [repeat, frame]."""
        own = np.array([each.by_frame(edges, thread, away=away) for each in self.touched])
        return np.maximum(own - self._null_frames(edges, thread), 0.0)

    def _null_frames(self, edges: np.ndarray, thread: int) -> np.ndarray:
        return np.median([each.by_frame(edges, thread, away=False) for each in self.null_touched], axis=0)

    @cached_property
    def by_thread(self) -> list[Total]:
        """All threads together, then each."""
        return [self._total(thread) for thread in (ALL, *sorted(self.touched[0].by_thread()))]

    @property
    def each_ns(self) -> list[float]:
        """All threads together with first touch, by repeat."""
        null = median(_sums(self.null_touched, ALL))
        return [max(ns - null, 0.0) for ns in _sums(self.touched, ALL)]

    @property
    def all(self) -> Total:
        return self.by_thread[0]

    def _cells(self, runs: Sequence[Bursts], thread: int) -> np.ndarray:
        """The median over repeats of each few bursts of a thread: what struck one repeat alone is in none."""
        ends = self.touched[0].rows
        edges = ends["event"][ends["thread"] == thread][_TOGETHER - 1 :: _TOGETHER]
        sums = []
        for rows in (each.rows[each.rows["thread"] == thread] for each in runs):
            sums.append(np.bincount(np.searchsorted(edges, rows["event"]), rows["ns"], len(edges) + 1))
        return np.median(sums, axis=0) if sums else np.zeros(len(edges) + 1)

    def _total(self, thread: int) -> Total:
        own, null = (_sums(each, thread) for each in (self.touched, self.null_touched))
        threads = sorted(self.touched[0].by_thread()) if thread == ALL else [thread]
        kinds = (self.touched, self.null_touched, self.untouched, self.null_untouched)
        cells = [np.concatenate([self._cells(kind, each) for each in threads]) for kind in kinds]
        null_ns = float(cells[1].sum())
        with_touch = float(cells[0].sum()) - null_ns
        touch = None
        if self.untouched and self.null_untouched:
            # Not to touch costs nothing more: what is more came from elsewhere, or is first touch that came later.
            bare = float(np.minimum(cells[0], cells[2]).sum() - np.minimum(cells[1], cells[3]).sum())
            touch = max(with_touch - bare, 0.0)
        ns = with_touch - (touch or 0.0)
        error, freedom = _error(own, null)
        half = None if error is None else float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
        ends = (None, None) if half is None else (ns - half, ns + half)
        relative = None if error is None or ns <= 0 else max((error / ns) ** 2, 1e-12)
        figure = noise.Figure(max(ns, 0.0), 1.0, len(own), relative, freedom)
        return Total(thread, len(own), ns, *ends, null_ns, touch, figure)


def _sums(bursts: Sequence[Bursts], thread: int) -> list[float]:
    found = [each.by_thread() for each in bursts]
    return [sum(each.values()) if thread == ALL else each.get(thread, 0.0) for each in found]


def _error(own: Sequence[float], null: Sequence[float]) -> tuple[float | None, float]:
    """The standard error of the difference of two means, and its degrees of freedom, by Welch's test; None of a lone
    repeat."""
    if min(len(own), len(null)) < 2:
        return None, 0.0
    parts = [(variance(each) / len(each), len(each) - 1) for each in (own, null)]
    total = sum(part for part, _ in parts)
    return sqrt(total), total**2 / sum(part**2 / count for part, count in parts) if total else float(len(own) - 1)
