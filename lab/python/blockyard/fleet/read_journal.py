"""One journal as rows of the fleet's tables, out of what the native programs say of it."""

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from blockyard import journal_tool, native, sites_tool

_FACTS: dict[str, tuple[pa.DataType, Callable[[journal_tool.Facts], Any]]] = {
    "program": (pa.string(), attrgetter("program")),
    "hardware": (pa.string(), attrgetter("machine")),
    "started_at": (pa.string(), attrgetter("started_at")),
    "paced": (pa.bool_(), attrgetter("paced")),
    "duration_s": (pa.float64(), lambda facts: facts.duration_ns / 1e9 if facts.paced else None),
    "events": (pa.int64(), attrgetter("events")),
    "allocations": (pa.int64(), attrgetter("allocations")),
    "frees": (pa.int64(), attrgetter("frees")),
    "remote_frees": (pa.int64(), attrgetter("remote_frees")),
    "bytes": (pa.int64(), attrgetter("total_bytes")),
    "peak_bytes": (pa.int64(), attrgetter("max_live_bytes")),
    "peak_blocks": (pa.int64(), attrgetter("max_live_blocks")),
    "end_bytes": (pa.int64(), attrgetter("live_at_end.bytes")),
    "end_blocks": (pa.int64(), attrgetter("live_at_end.blocks")),
    "cut_at_end": (pa.bool_(), attrgetter("cut_at_end")),
    "has_stacks": (pa.bool_(), lambda facts: facts.stacks.events > 0),
    "frames": (pa.int64(), lambda facts: facts.frames.count if facts.frames.marked else 0),
    "notes": (pa.string(), lambda facts: "; ".join(facts.notes)),
}
"""Of a journal, what each column takes of it."""

SCHEMAS = {
    "journals": pa.schema(
        {
            "journal": pa.string(),
            "path": pa.string(),
            "file_bytes": pa.int64(),
            "modified_ns": pa.int64(),
            **{name: kind for name, (kind, _) in _FACTS.items()},
        }
    ),
    "sites": pa.schema(
        {
            "journal": pa.string(),
            "function": pa.string(),
            "file": pa.string(),
            "module": pa.string(),
            **dict.fromkeys((*sites_tool.Totals.__struct_fields__, "freed_shared"), pa.int64()),
        }
    ),
    "frames": pa.schema(
        {
            "journal": pa.string(),
            "frame": pa.int64(),
            "start_ns": pa.int64(),
            "length_ns": pa.int64(),
            "events": pa.int64(),
            "allocations": pa.int64(),
        }
    ),
    "sizes": pa.schema(
        {
            "journal": pa.string(),
            "from_bytes": pa.int64(),
            "below_bytes": pa.int64(),
            "blocks": pa.int64(),
            "bytes": pa.int64(),
        }
    ),
    "lifetimes": pa.schema({"journal": pa.string(), "below_ns": pa.int64(), "blocks": pa.int64()}),
}
"""Columns of each table; `build` and `machine` are folders. docs/guide/fleet.md explains them."""

Tables = dict[str, pa.Table]


class _Frames(msgspec.Struct):
    """Columns. A frame lies between two marks of the thread that marks most, and has the events of all threads."""

    begin_ns: list[int]
    end_ns: list[int]
    events: list[int]
    allocations: list[int]


class _All(msgspec.Struct):
    """Of one pass over the journal."""

    info: journal_tool.Facts
    frames: _Frames
    listing: sites_tool.Listing


def read(path: Path, digest: str) -> Tables:
    """Raises UserError for a journal that can't be read. Called by several threads at once."""
    found = native.decoded("blockyard-sites", native.call("blockyard-sites", ["all", path]), _All)
    facts, frames = found.info, found.frames
    status = path.stat()
    about = {
        "path": str(path.absolute()),
        "file_bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        **{name: take(facts) for name, (_, take) in _FACTS.items()},
    }
    sites = [msgspec.structs.asdict(site) | {"function": site.function or ""} for site in found.listing.sites]
    sizes = [
        {"from_bytes": one.first, "below_bytes": one.below, "blocks": one.blocks, "bytes": one.bytes}
        for one in facts.sizes.histogram
    ]
    lifetimes = [{"below_ns": one.below_ns, "blocks": one.blocks} for one in facts.lifetimes]
    count = len(frames.begin_ns) if facts.paced else 0
    begins = np.array(frames.begin_ns[:count], np.int64)
    columns = {
        "journal": pa.array([digest] * count, pa.string()),
        "frame": np.arange(count),
        "start_ns": begins,
        "length_ns": np.array(frames.end_ns[:count], np.int64) - begins,
        "events": frames.events[:count],
        "allocations": frames.allocations[:count],
    }
    return {
        "journals": _table("journals", digest, [about]),
        "sites": _table("sites", digest, sites if about["has_stacks"] else []),
        "frames": pa.table(columns, SCHEMAS["frames"]),
        "sizes": _table("sizes", digest, sizes),
        "lifetimes": _table("lifetimes", digest, lifetimes if facts.paced else []),
    }


def _table(name: str, digest: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"journal": digest, **row} for row in rows], SCHEMAS[name])
