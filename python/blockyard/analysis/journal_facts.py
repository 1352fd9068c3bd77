"""What the measured stretch of a journal is made of: the header figures of the study's text report."""

from dataclasses import dataclass

import numpy as np

from blockyard.analysis import samples
from blockyard.analysis.sections import Section

FREE, REALLOCATE = 3, 4


@dataclass(frozen=True)
class JournalFacts:
    """Counts of the measured stretch; sizes in bytes. A reallocate counts as a malloc and a free, as in the study."""

    events: int
    mallocs: int
    frees: int
    reallocs: int
    total_bytes: int
    max_live_bytes: int | None
    average_bytes: float | None
    median_bytes: int | None
    leaked: int | None
    leaked_bytes: int | None
    cut_at_end: bool
    threads: int
    frames: int


def facts(section: Section) -> JournalFacts:
    """Reads the first successful run: the events of all are the same."""
    run = section.measured[0].runs[0]
    rows = samples.rows(run.folder / "samples.npy")
    kinds, sizes = np.array(rows["kind"]), np.array(rows["size"])
    reallocs = int(np.count_nonzero(kinds == REALLOCATE))
    gives = kinds != FREE
    given = sizes[gives]
    arrays = section.arrays()
    leaked = leaked_bytes = None
    if "pair" in arrays:
        pair, events = arrays["pair"], np.array(rows["event"][gives])
        stays = np.ones(len(given), bool)
        inside = events < len(pair)
        stays[inside] = pair[events[inside]] == samples.NO_EVENT
        leaked, leaked_bytes = int(stays.sum()), int(given[stays].sum())
    return JournalFacts(
        events=len(rows), mallocs=len(given), frees=int(np.count_nonzero(~gives)) + reallocs, reallocs=reallocs,
        total_bytes=int(given.sum()), max_live_bytes=_max_live(section),
        average_bytes=float(given.mean()) if len(given) else None, median_bytes=_nearest_median(given),
        leaked=leaked, leaked_bytes=leaked_bytes, cut_at_end=bool(section.facts.get("cut_at_end")),
        threads=len(np.unique(rows["thread"])), frames=len(arrays.get("frame_times", ())))


def _nearest_median(values: np.ndarray) -> int | None:
    """By nearest rank, like every percentile."""
    if not len(values):
        return None
    rank = -(-len(values) // 2)
    return int(np.partition(values, rank - 1)[rank - 1])


def _max_live(section: Section) -> int | None:
    """As planned (the preamble's blocks included); else the highest that a run saw."""
    planned = section.facts.get("peak_bytes")
    if planned is not None:
        return int(planned)
    path = section.measured[0].runs[0].folder / "memory.npy"
    live = samples.memory(path)["live"] if path.is_file() else ()
    return int(max(live)) if len(live) else None
