"""Sample, memory and event files of a run: mapped, their layout checked, a damaged one named."""

import threading
from pathlib import Path
from typing import BinaryIO

import numpy as np

from blockyard.analysis.passes import ROW
from blockyard.analysis.samples_library import fields
from blockyard.errors import UserError

MEMORY = np.dtype(fields(("<u8", "time resident live blocks minor_faults cpu_ns background_cpu_ns")))
"""A row of memory.npy."""
BLOCK = np.dtype(fields(("<u8", "address size"), ("<u4", "event")))
"""A row of blocks.npy: a block that was alive when the clock had stopped, and the event that gave it."""
MARK = np.dtype(fields(("<u8", "time"), ("<u4", "event thread")))
"""A row of frames.npy: a frame mark, and the first event after it."""
LOOKED, FAULT_CALL, FAULT_TOUCH, PREEMPTED, SLEPT, MIGRATED, MAJOR_FAULT, HOST = (1 << bit for bit in range(8))
"""Bits of the column `cause`."""
NO_EVENT = 4294967295
"""In pairs.npy: nothing frees this block, or a free of a block of the preamble."""

_REMEDY = "delete its folder and run 'blockyard replay --resume', or leave the allocator out with --allocator"


def rows(path: Path) -> np.ndarray:
    """The rows of a samples.npy, mapped read-only."""
    return columns(path, ROW, "sample")


def memory(path: Path) -> np.ndarray:
    """The rows of a memory.npy."""
    return columns(path, MEMORY, "memory")


def columns(path: Path, layout: np.dtype, what: str) -> np.ndarray:
    """The rows of a file with these columns, mapped read-only."""
    try:
        with path.open("rb") as file:
            shape, dtype = _header(file)
            offset = file.tell()
            size = path.stat().st_size
    except FileNotFoundError:
        raise UserError(f"{path} is missing though its run.json says that the run finished; {_REMEDY}") from None
    except (OSError, ValueError, EOFError, SyntaxError, TypeError) as error:
        raise UserError(f"{path} is not a {what} file ({_first_line(error)}); {_REMEDY}") from None
    if dtype != layout or len(shape) != 1:
        raise UserError(f"{path} does not have the columns of a {what} file; {_REMEDY}")
    if size - offset != shape[0] * layout.itemsize:
        raise UserError(
            f"{path} should have {shape[0]:,} rows and has {(size - offset) / layout.itemsize:,.1f}: "
            f"it was cut or added to; {_REMEDY}"
        )
    if shape[0] == 0:
        return np.zeros(0, layout)
    return np.memmap(path, layout, "r", offset, shape)


_PARSING = threading.Lock()
"""Headers are parsed as Python's literals are. In Python 3.11 two threads that do so may fail (CPython 106905)."""


def _header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype]:
    """Of an array in the .npy format; the array itself comes next."""
    layouts = np.lib.format
    version = layouts.read_magic(file)
    with _PARSING:
        shape, _, dtype = (layouts.read_array_header_1_0 if version == (1, 0) else layouts.read_array_header_2_0)(file)
    return shape, dtype


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
