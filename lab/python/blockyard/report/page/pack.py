"""Columns of numbers as one compressed text: what the page carries its events in.

A pack is a deflated (zlib) byte string in base64: a 4-byte length, a JSON header of that length, then the columns one
after the other. A column's bytes are shuffled (all lowest bytes first, then all second ones), because the higher bytes
of small numbers then cost next to nothing; `delta` columns hold the differences from row to row, modulo 2^32.
static/data.js reads it.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

_LEVEL = 4
"""zlib's: 6 takes twice as long for two to seven in a hundred."""


LATENCY_STEPS = 256
"""A latency is kept as log2(ns + 1) in steps of this many an octave: within 0.14 %."""


def steps(ns: np.ndarray) -> np.ndarray:
    return np.round(np.log2(ns + 1.0) * LATENCY_STEPS).astype(np.uint16)


def packed(
    facts: Mapping[str, Any],
    columns: Mapping[str, np.ndarray],
    deltas: frozenset[str] = frozenset(),
    *,
    noisy: bool = False,
) -> str:
    """Columns are unsigned, of 1, 2 or 4 bytes; those named in `deltas` of 4 bytes. `noisy`: what repeats in them are
    single bytes, as in latencies, so that no longer words are looked for, which takes half the time."""
    described, parts = [], []
    for name, column in columns.items():
        values = column
        if name in deltas:
            values = np.diff(column.astype(np.uint32), prepend=np.uint32(0)).astype(np.uint32)
        width = values.dtype.itemsize
        described.append({"name": name, "width": width, "length": len(values), "delta": name in deltas})
        little = np.ascontiguousarray(values, f"<u{width}")
        parts.append(np.ascontiguousarray(little.view(np.uint8).reshape(len(values), width).T).tobytes())
    header = json.dumps({**facts, "columns": described}, separators=(",", ":")).encode()
    whole = b"".join([len(header).to_bytes(4, "little"), header, *parts])
    strategy = zlib.Z_RLE if noisy else zlib.Z_DEFAULT_STRATEGY
    deflate = zlib.compressobj(_LEVEL, wbits=zlib.MAX_WBITS, strategy=strategy)
    return base64.b64encode(deflate.compress(whole) + deflate.flush()).decode("ascii")
