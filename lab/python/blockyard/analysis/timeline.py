"""When a section's events happened and on which thread, as its reference run saw it, for cutting a section into frames,
audio buffers and phases."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from blockyard.analysis import samples
from blockyard.analysis.passes import ALL, FREE, REALLOCATE
from blockyard.analysis.sections import Run, Section
from blockyard.errors import UserError

BIN_NS = 10_000_000
"""Events are counted in bins of 10 ms."""
_LONGEST_NS = 86_400_000_000_000
"""No replay takes more than a day; a start behind it was not written by one."""
_ROWS_AT_ONCE = 1 << 16
"""Rows are mapped, as a journal may be longer than memory, and looked at in parts that the cache holds."""


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
    path = reference(section).folder / "samples.npy"
    mallocs, frees, first_event, by_thread = (np.zeros(0, np.int64) for _ in range(4))
    latest, end_event = 0, 0
    for part, _, starts in _parts(samples.rows(path)):
        latest, end_event = int(starts[-1]), int(part["event"][-1]) + 1
        if latest > _LONGEST_NS:
            raise UserError(
                f"{path} has an event that began after {latest:.3g} ns: it was damaged; delete "
                "its folder and run 'blockyard replay --resume'"
            )
        # Where each bin begins among these rows, from the first that no earlier rows reached or that these are in.
        base = min(int(starts[0]) // BIN_NS, len(first_event))
        bins = np.arange(base, latest // BIN_NS + 2)
        firsts = np.searchsorted(starts, (bins * BIN_NS).astype(np.uint64))
        kinds = np.ascontiguousarray(part["kind"])
        mallocs = _sum(mallocs, _between(kinds != FREE, firsts), base)
        frees = _sum(frees, _between((kinds == FREE) | (kinds == REALLOCATE), firsts), base)
        by_thread = _sum(by_thread, np.bincount(part["thread"]))
        reached = part["event"][firsts[len(first_event) - base : -1]]
        first_event = np.append(first_event, reached.astype(np.int64))
    return Timeline(latest, mallocs, frees, first_event, by_thread, end_event)


def edges(section: Section, thread: int, boundaries_ns: np.ndarray) -> np.ndarray:
    """For each time (rising) the number of the first event of the thread (ALL: of any) that started at or after it, or
    one more than the last event of all."""
    rows = samples.rows(reference(section).folder / "samples.npy")
    found = np.full(len(boundaries_ns), int(rows["event"][-1]) + 1 if len(rows) else 0, np.int64)
    done = 0
    for part, mine, starts in _parts(rows, thread):
        reached = done + int(np.searchsorted(boundaries_ns[done:], starts[-1], side="right"))
        places = np.searchsorted(starts, np.ceil(boundaries_ns[done:reached]).astype(np.uint64))
        found[done:reached] = part["event"][mine][places]
        done = reached
        if done == len(found):
            break
    return found


def _parts(rows: np.ndarray, thread: int = ALL) -> Iterator[tuple[np.ndarray, slice | np.ndarray, np.ndarray]]:
    """Rows, which of them are the thread's, and when these began. Threads are out of order by microseconds: where an
    earlier row began later, its time counts instead, so that time only rises."""
    latest = np.uint64(0)
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[begin : begin + _ROWS_AT_ONCE]
        mine = slice(None) if thread == ALL else np.flatnonzero(part["thread"] == thread)
        starts = np.maximum.accumulate(np.maximum(part["start"][mine], latest))
        if len(starts):
            latest = starts[-1]
            yield part, mine, starts


def _between(chosen: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """How many are chosen from each place on and below the next."""
    return np.diff(np.append(0, np.cumsum(chosen))[firsts])


def _sum(counts: np.ndarray, more: np.ndarray, base: int = 0) -> np.ndarray:
    """`more` is added from place `base` on, and may end behind `counts`."""
    found = np.pad(counts, (0, max(base + len(more) - len(counts), 0)))
    found[base : base + len(more)] += more
    return found
