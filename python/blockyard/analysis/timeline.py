"""When a section's events happened and on which thread, as its reference run saw it; read in pieces, so that a journal
of any length needs little memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from blockyard.analysis import samples
from blockyard.analysis.passes import ALL
from blockyard.analysis.sections import Run, Section
from blockyard.errors import UserError

FREE, REALLOCATE = 3, 4
BIN_NS = 10_000_000
"""Events are counted in bins of 10 ms."""
_ROWS_AT_ONCE = 1 << 20
_LONGEST_NS = 86_400_000_000_000
"""No replay takes more than a day; a start behind it was not written by one."""


@dataclass(frozen=True)
class Timeline:
    """Counts by bin of 10 ms of the replay's clock.

    `first_event[b]` is the number of the first event in bin b or later; `by_thread` counts events by thread.
    """

    duration_ns: int
    mallocs: np.ndarray
    frees: np.ndarray
    first_event: np.ndarray
    by_thread: np.ndarray
    end_event: int

    def busiest_thread(self) -> int:
        return int(self.by_thread.argmax()) if len(self.by_thread) else 0

    def event_at(self, ns: float) -> int:
        """The number of the first event at or after that time, to 10 ms."""
        place = int(ns // BIN_NS)
        return int(self.first_event[place]) if place < len(self.first_event) else self.end_event


def reference(section: Section) -> Run:
    """The run that was nearest to the journal's clock: one of `null`, which delays nobody, where there is one."""
    nulls = [allocator for allocator in section.measured if allocator.is_null]
    return (nulls or section.measured)[0].runs[0]


def read(section: Section) -> Timeline:
    """Of the reference run: the events of all runs are the same."""
    bins = 0
    mallocs, frees, first = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    by_thread = np.zeros(0, np.int64)
    latest = end = 0
    for rows in pieces(section):
        starts = np.maximum.accumulate(np.maximum(rows["start"], np.uint64(latest)))
        latest, end = int(starts[-1]), int(rows["event"][-1]) + 1
        if latest > _LONGEST_NS:
            path = reference(section).folder / "samples.npy"
            raise UserError(f"{path} has an event that began after {latest:.3g} ns: it was damaged; delete its folder "
                            "and run 'blockyard replay --resume'")
        places = (starts // np.uint64(BIN_NS)).astype(np.int64)
        grown = int(places[-1]) + 1
        mallocs, frees = _grown(mallocs, grown), _grown(frees, grown)
        gives, takes = rows["kind"] != FREE, (rows["kind"] == FREE) | (rows["kind"] == REALLOCATE)
        mallocs += np.bincount(places[gives], minlength=grown)
        frees += np.bincount(places[takes], minlength=grown)
        fresh = np.searchsorted(places, np.arange(bins, grown), side="left")
        first = np.concatenate([first, rows["event"][np.minimum(fresh, len(rows) - 1)].astype(np.int64)])
        bins = grown
        counts = np.bincount(rows["thread"])
        by_thread = _grown(by_thread, max(len(counts), len(by_thread)))
        by_thread[: len(counts)] += counts
    return Timeline(latest, mallocs, frees, first, by_thread, end)


def pieces(section: Section) -> Iterator[np.ndarray]:
    """The rows of the reference run, copied a piece at a time; never an empty one."""
    rows = samples.rows(reference(section).folder / "samples.npy")
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        yield np.array(rows[begin:begin + _ROWS_AT_ONCE])


def edges(section: Section, thread: int, boundaries_ns: np.ndarray) -> np.ndarray:
    """For each time (rising) the number of the first event of the thread (ALL: of any) that started at or after it."""
    found = np.zeros(len(boundaries_ns), np.int64)
    done = latest = end = 0
    for rows in pieces(section):
        end = int(rows["event"][-1]) + 1
        mine = rows if thread == ALL else rows[rows["thread"] == thread]
        if not len(mine):
            continue
        starts = np.maximum.accumulate(np.maximum(mine["start"], np.uint64(latest)))
        latest = int(starts[-1])
        until = int(np.searchsorted(boundaries_ns, latest, side="right"))
        found[done:until] = mine["event"][np.searchsorted(starts, boundaries_ns[done:until], side="left")]
        done = max(done, until)
    found[done:] = end
    return found


def _grown(counts: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([counts, np.zeros(max(length - len(counts), 0), counts.dtype)])
