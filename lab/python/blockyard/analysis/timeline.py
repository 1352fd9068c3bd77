"""When a section's events happened and on which thread, as its reference run saw it: native passes over its rows, so
that a journal of any length takes seconds and little memory."""

import ctypes
from dataclasses import dataclass
from functools import cache

import numpy as np

from blockyard.analysis import samples, samples_library
from blockyard.analysis.sections import Run, Section
from blockyard.errors import UserError

BIN_NS = 10_000_000
"""Events are counted in bins of 10 ms."""
_LONGEST_NS = 86_400_000_000_000
"""No replay takes more than a day; a start behind it was not written by one."""
_MALLOCS, _FREES, _FIRST_EVENT, _BY_THREAD = range(4)


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
    rows = samples.rows(path)
    library, facts = _library(), _Facts()
    handle = library.by_samples_timeline_read(rows.ctypes.data, len(rows), BIN_NS, _LONGEST_NS, facts)
    if not handle:
        raise MemoryError
    try:
        if facts.latest_ns > _LONGEST_NS:
            raise UserError(
                f"{path} has an event that began after {facts.latest_ns:.3g} ns: it was damaged; delete "
                "its folder and run 'blockyard replay --resume'"
            )
        mallocs, frees, first, by_thread = (
            _copied(library.by_samples_timeline_column(handle, column), length)
            for column, length in (
                (_MALLOCS, facts.bins),
                (_FREES, facts.bins),
                (_FIRST_EVENT, facts.bins),
                (_BY_THREAD, facts.threads),
            )
        )
        return Timeline(facts.latest_ns, mallocs, frees, first, by_thread, facts.end_event)
    finally:
        library.by_samples_timeline_delete(handle)


def edges(section: Section, thread: int, boundaries_ns: np.ndarray) -> np.ndarray:
    """For each time (rising) the number of the first event of the thread (ALL: of any) that started at or after it."""
    rows = samples.rows(reference(section).folder / "samples.npy")
    boundaries = np.ascontiguousarray(boundaries_ns, np.float64)
    found = np.zeros(len(boundaries), np.int64)
    _library().by_samples_first_events(
        rows.ctypes.data, len(rows), thread, boundaries.ctypes.data, len(boundaries), found.ctypes.data
    )
    return found


class _Facts(ctypes.Structure):
    _fields_ = [
        ("latest_ns", ctypes.c_uint64),
        ("end_event", ctypes.c_uint64),
        ("bins", ctypes.c_size_t),
        ("threads", ctypes.c_size_t),
    ]


@cache
def _library() -> ctypes.CDLL:
    pointer, u32, u64, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
    return samples_library.functions(
        [
            ("by_samples_timeline_read", pointer, [pointer, u64, u64, u64, ctypes.POINTER(_Facts)]),
            ("by_samples_timeline_delete", None, [pointer]),
            ("by_samples_timeline_column", pointer, [pointer, u32]),
            ("by_samples_first_events", None, [pointer, u64, u32, pointer, size, pointer]),
        ]
    )


def _copied(address: int, length: int) -> np.ndarray:
    if length == 0:
        return np.zeros(0, np.int64)
    return np.frombuffer(ctypes.string_at(address, 8 * length), np.uint64).astype(np.int64)
