"""What the measured stretch of a journal is made of: the header figures of the study's text report."""

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from blockyard.analysis import samples
from blockyard.analysis.passes import FREE, REALLOCATE
from blockyard.analysis.sections import Section
from blockyard.analysis.timeline import BIN_NS, Timeline

_ROWS_AT_ONCE = 1 << 20
"""A journal may be longer than memory: its rows are mapped, and looked at in parts."""


@dataclass(frozen=True)
class JournalFacts:
    """Counts of the measured stretch; sizes in bytes. A reallocate counts as a malloc and a free, as in the study."""

    mallocs: int
    frees: int
    reallocs: int
    total_bytes: int
    max_live_bytes: int
    average_bytes: float | None
    median_bytes: int | None
    leaked: int | None
    leaked_bytes: int | None
    cut_at_end: bool


SLICES = 20
LAST = 0.6
"""The study looked at the last 60 % of its run, behind the loading."""


@dataclass(frozen=True)
class JournalRhythm:
    """Operations (mallocs and frees, a reallocate both) over time, all threads together.

    `per_frame` is the mean of the frames of the last 60 % of the time; None where there are no frames.
    """

    per_frame: float | None
    slice_s: float
    per_second: tuple[float, ...]
    mallocs_per_second: tuple[float, ...]


def rhythm(line: Timeline, frame_starts_ns: np.ndarray | None) -> JournalRhythm:
    """In 20 slices of equal length."""
    whole = max(len(line.mallocs), 1)
    edges = np.linspace(0, whole, SLICES + 1)
    sums = []
    for counts in (line.mallocs, line.frees):
        cumulated = np.concatenate([[0.0], np.cumsum(counts)]) if len(counts) else np.zeros(2)
        sums.append(np.diff(np.interp(edges, np.arange(len(cumulated)), cumulated)))
    # Bins are of 10 ms, and the last one ends with the last event: a journal shorter than a bin is one slice's worth.
    seconds = max(line.duration_ns, 1) / 1e9 / SLICES
    since = int(whole * (1 - LAST))
    per_frame = None
    if frame_starts_ns is not None and (count := np.count_nonzero(frame_starts_ns >= since * BIN_NS)):
        per_frame = float(line.mallocs[since:].sum() + line.frees[since:].sum()) / count
    return JournalRhythm(
        per_frame, seconds, *(tuple((values / seconds).tolist()) for values in (sums[0] + sums[1], sums[0]))
    )


def facts(section: Section) -> JournalFacts:
    """Reads the first successful run: the events of all are the same."""
    run = section.measured[0].runs[0]
    rows = samples.rows(run.folder / "samples.npy")
    pair = section.pairs()
    sizes: Counter[int] = Counter()
    frees = reallocs = leaked = leaked_bytes = 0
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[begin : begin + _ROWS_AT_ONCE]
        gives = part["kind"] != FREE
        given = part["size"][gives]
        sizes.update(dict(zip(*(found.tolist() for found in np.unique(given, return_counts=True)), strict=True)))
        frees += int(np.count_nonzero(~gives))
        reallocs += int(np.count_nonzero(part["kind"] == REALLOCATE))
        if pair is not None:
            events = part["event"][gives]
            stays = np.ones(len(given), bool)
            inside = events < len(pair)
            stays[inside] = pair[events[inside]] == samples.NO_EVENT
            leaked, leaked_bytes = leaked + int(stays.sum()), leaked_bytes + int(given[stays].sum())
    mallocs, total = sizes.total(), sum(size * count for size, count in sizes.items())
    return JournalFacts(
        mallocs=mallocs,
        frees=frees + reallocs,
        reallocs=reallocs,
        total_bytes=total,
        max_live_bytes=section.facts.peak_bytes,
        average_bytes=total / mallocs if mallocs else None,
        median_bytes=_nearest_median(sizes),
        leaked=None if pair is None else leaked,
        leaked_bytes=None if pair is None else leaked_bytes,
        cut_at_end=section.facts.cut_at_end,
    )


def _nearest_median(sizes: Counter[int]) -> int | None:
    """By nearest rank, like every percentile."""
    if not sizes:
        return None
    rank = -(-sizes.total() // 2)
    below = accumulate(count for _, count in sorted(sizes.items()))
    return next(size for size, places in zip(sorted(sizes), below, strict=True) if places >= rank)
