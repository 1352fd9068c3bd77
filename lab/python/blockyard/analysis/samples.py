"""Sample, memory and event files of a run: mapped, their layout checked, a damaged one named."""

import json
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from blockyard.analysis.passes import ROW
from blockyard.errors import UserError

MEMORY = np.dtype(
    [
        ("time", "<u8"),
        ("resident", "<u8"),
        ("live", "<u8"),
        ("blocks", "<u8"),
        ("minor_faults", "<u8"),
        ("cpu_ns", "<u8"),
        ("background_cpu_ns", "<u8"),
    ]
)
"""What a memory.npy may hold; runs of older Blockyards have the first three alone."""
BLOCK = np.dtype([("address", "<u8"), ("size", "<u8"), ("event", "<u4")])
"""A row of blocks.npy: a block that was alive when the clock had stopped, and the event that gave it."""
_ALWAYS = ("time", "resident", "live")
NO_EVENT = 4294967295
"""In `pair`: nothing frees this block, or a free of a block of the preamble."""

_REMEDY = "delete its folder and run 'blockyard replay --resume', or leave the allocator out with --allocator"


def rows(path: Path) -> np.ndarray:
    """The rows of a samples.npy, mapped read-only."""
    return columns(path, ROW, "sample")


def memory(path: Path) -> np.ndarray:
    """The rows of a memory.npy. Only `time`, `resident` and `live` are always there."""
    return columns(path, MEMORY, "memory", _ALWAYS)


def columns(path: Path, layout: np.dtype, what: str, needed: tuple[str, ...] = ()) -> np.ndarray:
    """The rows of a file with these columns, mapped read-only; with `needed`, these at least, and any others of eight
    bytes."""
    try:
        with path.open("rb") as file:
            shape, dtype = _header(file)
            offset = file.tell()
            size = path.stat().st_size
    except FileNotFoundError:
        raise UserError(f"{path} is missing though its run.json says that the run finished; {_REMEDY}") from None
    except (OSError, ValueError, EOFError, SyntaxError, TypeError) as error:
        raise UserError(f"{path} is not a {what} file ({_first_line(error)}); {_REMEDY}") from None
    if (
        needed
        and dtype.names
        and set(needed) <= set(dtype.names)
        and all(dtype.fields[name][0] == np.dtype("<u8") for name in dtype.names)
    ):
        layout = dtype
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


def arrays(path: Path) -> dict[str, np.ndarray]:
    """What all runs of a journal share (`pair`, `frame_times`, `frame_threads`); empty when the file is not there.

    Large arrays are mapped: `pair` has four bytes for each event of a journal that may be longer than memory.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return {info.filename.removesuffix(".npy"): _member(path, archive, info) for info in archive.infolist()}
    except FileNotFoundError:
        return {}
    except Exception as error:  # zipfile, zlib, numpy and struct each have their own
        raise UserError(f"{path} cannot be read ({_first_line(error)}); {_REMEDY}") from None


_LOCAL_HEADER = struct.Struct("<26x2H")
"""Of a file in a zip (APPNOTE 4.3.7): its length in front of the names' lengths."""
_MAPPED_FROM = 1 << 20


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """An array out of a .npz; a large one is mapped, which an uncompressed zip allows."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size < _MAPPED_FROM:
        with archive.open(info) as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    with archive.open(info) as file:
        while file.read(_MAPPED_FROM):  # to its end, where its checksum is compared
            pass
    with path.open("rb") as file:
        file.seek(info.header_offset)
        begin = info.header_offset + _LOCAL_HEADER.size + sum(_LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size)))
        file.seek(begin)
        shape, dtype = _header(file)
        if file.tell() - begin + dtype.itemsize * int(np.prod(shape)) != info.file_size:
            raise ValueError(f"{info.filename} is not as long as it says")
        return np.memmap(path, dtype, "r", file.tell(), shape)


def _header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype]:
    """Of an array in the .npy format; the array itself comes next."""
    layouts = np.lib.format
    version = layouts.read_magic(file)
    shape, _, dtype = (layouts.read_array_header_1_0 if version == (1, 0) else layouts.read_array_header_2_0)(file)
    return shape, dtype


def document(path: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is not valid JSON ({_first_line(error)})") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} is not a JSON object")
    return found


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
