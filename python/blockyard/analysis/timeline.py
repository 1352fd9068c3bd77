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
    mallocs, frees, by_thread = (np.zeros(0, np.int64) for _ in range(3))
    first: list[np.ndarray] = []
    latest = end = bins = 0
    for piece in pieces(section):
        starts = _risen(piece.starts, latest)
        latest, end = int(starts[-1]), int(piece.events[-1]) + 1
        if latest > _LONGEST_NS:
            path = reference(section).folder / "samples.npy"
            raise UserError(f"{path} has an event that began after {latest:.3g} ns: it was damaged; delete its folder "
                            "and run 'blockyard replay --resume'")
        begin_bin, end_bin = int(starts[0]) // BIN_NS, latest // BIN_NS + 1
        # Starts rise, so a bin's rows lie side by side: where each bin begins tells its counts.
        begins = np.searchsorted(starts, np.arange(begin_bin, end_bin + 1, dtype=np.uint64) * np.uint64(BIN_NS))
        mallocs, frees = _grown(mallocs, end_bin), _grown(frees, end_bin)
        mallocs[begin_bin:end_bin] += _between(begins, piece.kinds != FREE)
        frees[begin_bin:end_bin] += _between(begins, (piece.kinds == FREE) | (piece.kinds == REALLOCATE))
        first.append(piece.events[begins[np.maximum(np.arange(bins, end_bin) - begin_bin, 0)]].astype(np.int64))
        bins = max(bins, end_bin)
        counts = np.bincount(piece.threads)
        by_thread = _grown(by_thread, len(counts))
        by_thread[: len(counts)] += counts
    return Timeline(latest, mallocs, frees, np.concatenate([np.zeros(0, np.int64), *first]), by_thread, end)


@dataclass(frozen=True)
class Piece:
    """Columns of some rows that follow one another, copied."""

    events: np.ndarray
    kinds: np.ndarray
    threads: np.ndarray
    starts: np.ndarray


def pieces(section: Section) -> Iterator[Piece]:
    """The rows of the reference run, a piece at a time; never an empty one."""
    rows = samples.rows(reference(section).folder / "samples.npy")
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        yield Piece(*(np.array(rows[name][part]) for name in ("event", "kind", "thread", "start")))


def edges(section: Section, thread: int, boundaries_ns: np.ndarray) -> np.ndarray:
    """For each time (rising) the number of the first event of the thread (ALL: of any) that started at or after it."""
    found = np.zeros(len(boundaries_ns), np.int64)
    done = latest = end = 0
    for piece in pieces(section):
        end = int(piece.events[-1]) + 1
        mine = slice(None) if thread == ALL else piece.threads == thread
        events, starts = piece.events[mine], piece.starts[mine]
        if not len(events):
            continue
        starts = _risen(starts, latest)
        latest = int(starts[-1])
        until = int(np.searchsorted(boundaries_ns, latest, side="right"))
        found[done:until] = events[np.searchsorted(starts, boundaries_ns[done:until], side="left")]
        done = max(done, until)
    found[done:] = end
    return found


def _risen(starts: np.ndarray, latest: int) -> np.ndarray:
    """Each start, or the latest before it where threads came out of order."""
    starts[0] = max(int(starts[0]), latest)
    return np.maximum.accumulate(starts)


def _between(begins: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """How many flags are set from each beginning to the next."""
    counted = np.concatenate([np.zeros(1, np.int64), np.cumsum(flags, dtype=np.int64)])
    return np.diff(counted[begins])


def _grown(counts: np.ndarray, length: int) -> np.ndarray:
    return np.concatenate([counts, np.zeros(max(length - len(counts), 0), counts.dtype)])
