"""The native passes over sample rows (libblockyard-samples.so), by ctypes."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from blockyard import native
from blockyard.errors import UserError

ABI = 1
AS_RUN, INHERENT = range(2)
MALLOC_CALL, MALLOC_TOUCH, MALLOC_BOTH, REALLOC_CALL, REALLOC_TOUCH, REALLOC_BOTH, FREE_CALL = range(7)
MALLOC_AS_RUN, FREE_AS_RUN, MALLOC_INHERENT, FREE_INHERENT = range(4)

ROW = np.dtype([("event", "<u4"), ("kind", "u1"), ("cause", "u1"), ("thread", "<u2"), ("size", "<u8"),
                ("start", "<u8"), ("call", "<u4"), ("touch", "<u4"), ("frame", "<u4")])
"""A row of samples.npy: 36 bytes packed."""
MARK = np.dtype([("time", "<u8"), ("size", "<u8"), ("ticks", "<u4"), ("event", "<u4")])

_FIRST_CAPACITY = 1 << 16


class _Run(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p), ("floor_call", ctypes.c_uint32), ("floor_touch", ctypes.c_uint32),
                ("scale", ctypes.c_double)]


class _Fault(ctypes.Structure):
    _fields_ = [("what", ctypes.c_uint32), ("run", ctypes.c_uint32), ("row", ctypes.c_uint64)]


class _Frame(ctypes.Structure):
    _fields_ = [("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("begin_ns", ctypes.c_double),
                ("end_ns", ctypes.c_double), ("low_ticks", ctypes.c_double), ("high_ticks", ctypes.c_double),
                ("step_ticks", ctypes.c_uint32), ("marks_from", ctypes.c_uint32 * 4)]


@dataclass(frozen=True)
class Rows:
    """One repeat's rows, and what turns its ticks into latencies of its group."""

    rows: np.ndarray
    floor_call: int
    floor_touch: int
    scale: float = 1.0


class BadRows(Exception):
    """Rows that no replay writes; `run` is an index into the repeats given."""

    def __init__(self, sentence: str, run: int) -> None:
        super().__init__(sentence)
        self.run = run


@dataclass(frozen=True)
class Frame:
    """The frame of a density picture: cells, times in ns, latencies in ticks; per plane, where marks begin."""

    width: int
    height: int
    begin_ns: float
    end_ns: float
    low_ticks: float
    high_ticks: float
    step_ticks: int
    marks_from: tuple[int, int, int, int]


@dataclass(frozen=True)
class Bins:
    """One plane's cells, [row from below, column], and its slowest events one by one."""

    counts: np.ndarray
    mean_log2_size: np.ndarray
    marks: np.ndarray


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(native.path("libblockyard-samples.so")))
    pointer, u32, u64, size = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t
    for name, result, arguments in [
            ("by_samples_abi", u32, []),
            ("by_samples_digest_new", pointer, [u32]),
            ("by_samples_digest_delete", None, [pointer]),
            ("by_samples_digest_feed", _Fault, [pointer, ctypes.POINTER(_Run), u32, u64]),
            ("by_samples_digest_copy", size, [pointer, u32, u32, u32, pointer, pointer, size]),
            ("by_samples_bin", pointer, [ctypes.POINTER(_Run), u32, u64, ctypes.POINTER(_Frame), u32]),
            ("by_samples_bins_delete", None, [pointer]),
            ("by_samples_bins_counts", pointer, [pointer, u32]),
            ("by_samples_bins_sizes", pointer, [pointer, u32]),
            ("by_samples_bins_marks", pointer, [pointer, u32, ctypes.POINTER(size)])]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if library.by_samples_abi() != ABI:
        raise UserError("libblockyard-samples.so is of another version than this blockyard; build it with 'make build'")
    return library


def _native_runs(runs: Sequence[Rows]) -> ctypes.Array:
    lengths = {len(run.rows) for run in runs}
    if len(lengths) != 1:
        raise BadRows("does not have as many rows as the first repeat",
                      next(i for i, run in enumerate(runs) if len(run.rows) != len(runs[0].rows)))
    for run in runs:
        if run.rows.dtype != ROW or not run.rows.flags.c_contiguous:
            raise ValueError("rows of another layout")
    return (_Run * len(runs))(*[_Run(run.rows.ctypes.data, run.floor_call, run.floor_touch, run.scale) for run in runs])


def _fault_sentence(fault: _Fault) -> str:
    return {1: f"has an event of unknown kind in row {fault.row}",
            2: f"has event numbers that do not rise at row {fault.row}",
            3: f"has another event in row {fault.row} than the first repeat"}[fault.what]


def digest(runs: Sequence[Rows], threads: int) -> dict[tuple[int, int, int], tuple[np.ndarray, np.ndarray]]:
    """(view, metric, size class) -> distinct ticks and their counts, over all repeats, floors taken off."""
    library = _library()
    native_runs = _native_runs(runs)
    handle = library.by_samples_digest_new(threads)
    if not handle:
        raise MemoryError
    try:
        fault = library.by_samples_digest_feed(handle, native_runs, len(runs), len(runs[0].rows))
        if fault.what == 4:
            raise MemoryError
        if fault.what:
            raise BadRows(_fault_sentence(fault), fault.run)
        return {(view, metric, klass): _distribution(library, handle, view, metric, klass)
                for view in (AS_RUN, INHERENT) for metric in range(7) for klass in range(5)}
    finally:
        library.by_samples_digest_delete(handle)


def _distribution(library: ctypes.CDLL, handle: int, view: int, metric: int,
                  klass: int) -> tuple[np.ndarray, np.ndarray]:
    capacity = _FIRST_CAPACITY
    while True:
        ticks, counts = np.empty(capacity, np.uint32), np.empty(capacity, np.uint64)
        found = library.by_samples_digest_copy(handle, view, metric, klass, ticks.ctypes.data, counts.ctypes.data,
                                               capacity)
        if found == ctypes.c_size_t(-1).value:
            raise MemoryError
        if found <= capacity:
            return ticks[:found].copy(), counts[:found].copy()
        capacity = found


def bins(runs: Sequence[Rows], frame: Frame, threads: int) -> list[Bins]:
    """The four planes of one allocator (MALLOC_AS_RUN ... FREE_INHERENT), in one pass."""
    library = _library()
    native_runs = _native_runs(runs)
    native_frame = _Frame(frame.width, frame.height, frame.begin_ns, frame.end_ns, frame.low_ticks, frame.high_ticks,
                          frame.step_ticks, (ctypes.c_uint32 * 4)(*frame.marks_from))
    handle = library.by_samples_bin(native_runs, len(runs), len(runs[0].rows), native_frame, threads)
    if not handle:
        raise MemoryError
    try:
        return [_plane(library, handle, frame, plane) for plane in range(4)]
    finally:
        library.by_samples_bins_delete(handle)


def _plane(library: ctypes.CDLL, handle: int, frame: Frame, plane: int) -> Bins:
    def cells(address: int, kind: type) -> np.ndarray:
        flat = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), (frame.width, frame.height))
        return flat.T

    counts = cells(library.by_samples_bins_counts(handle, plane), ctypes.c_uint32)
    sizes = cells(library.by_samples_bins_sizes(handle, plane), ctypes.c_uint64)
    mean = np.divide(sizes, 4 * np.maximum(counts, 1, dtype=np.uint64), dtype=np.float32, casting="unsafe")
    length = ctypes.c_size_t()
    address = library.by_samples_bins_marks(handle, plane, ctypes.byref(length))
    marks = np.zeros(0, MARK)
    if length.value:
        marks = np.frombuffer(ctypes.string_at(address, length.value * MARK.itemsize), MARK)
    return Bins(counts.copy(), mean, marks)
