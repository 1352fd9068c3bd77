"""Finds libblockyard-samples.so, and refuses one that was built for another blockyard."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from blockyard import native
from blockyard.errors import UserError

ABI = 7
"""BY_SAMPLES_ABI of samples.h. Goes up with any change of what a call there takes, does or returns."""
_NAME = "libblockyard-samples.so"

POINTER, U32, U64, F64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_double
SIZE = ctypes.c_size_t

Functions = Sequence[tuple[str, type | None, Sequence[type]]]
"""Names with their results and arguments."""


def fields(*declared: tuple[Any, str]) -> list[tuple[str, Any]]:
    """Of a structure or a row: declarations as in C, a type and its names."""
    return [(name, kind) for kind, names in declared for name in names.split()]


@cache
def _opened() -> ctypes.CDLL:
    found = native.path(_NAME)
    try:
        library = ctypes.CDLL(str(found))
        library.by_samples_abi.restype = ctypes.c_uint32
        abi = library.by_samples_abi()
    except (OSError, AttributeError) as error:
        raise UserError(f"{found} can't be loaded ({error}); build it again with 'make build'") from None
    if abi != ABI:
        raise UserError(
            f"{found} is of another version than this blockyard (its interface is number {abi}, and "
            f"{ABI} is needed); build it again with 'make build'"
        )
    return library


def functions(wanted: Functions) -> ctypes.CDLL:
    """The library, with these declared."""
    library = _opened()
    for name, result, arguments in wanted:
        try:
            function = getattr(library, name)
        except AttributeError:
            raise UserError(
                f"{native.path(_NAME)} is of another version than this blockyard (it has no {name}); build "
                "it again with 'make build'"
            ) from None
        function.restype, function.argtypes = result, arguments
    return library
