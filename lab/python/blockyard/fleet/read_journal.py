"""One journal as rows of the fleet's tables, out of what the native programs say of it."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from blockyard import native, sites_tool

SCHEMAS = {
    "journals": pa.schema(
        {
            "journal": pa.string(),
            "path": pa.string(),
            "file_bytes": pa.int64(),
            "modified_ns": pa.int64(),
            "program": pa.string(),
            "hardware": pa.string(),
            "started_at": pa.string(),
            "paced": pa.bool_(),
            "duration_s": pa.float64(),
            "events": pa.int64(),
            "allocations": pa.int64(),
            "frees": pa.int64(),
            "remote_frees": pa.int64(),
            "bytes": pa.int64(),
            "peak_bytes": pa.int64(),
            "peak_blocks": pa.int64(),
            "end_bytes": pa.int64(),
            "end_blocks": pa.int64(),
            "cut_at_end": pa.bool_(),
            "has_stacks": pa.bool_(),
            "frames": pa.int64(),
            "notes": pa.string(),
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


def read(path: Path, digest: str) -> Tables:
    """Raises UserError for a journal that can't be read. Called by several threads at once."""
    facts = json.loads(native.call("blockyard-journal", ["info", path, "--json"]))
    status = path.stat()
    about = {
        "path": str(path.absolute()),
        "file_bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "program": facts["program"],
        "hardware": facts["machine"],
        "started_at": facts["started_at"],
        "paced": facts["paced"],
        "duration_s": facts["duration_ns"] / 1e9 if facts["paced"] else None,
        "events": facts["events"],
        "allocations": facts["allocations"],
        "frees": facts["frees"],
        "remote_frees": facts["remote_frees"],
        "bytes": facts["total_bytes"],
        "peak_bytes": facts["max_live_bytes"],
        "peak_blocks": facts["max_live_blocks"],
        "end_bytes": facts["live_at_end"]["bytes"],
        "end_blocks": facts["live_at_end"]["blocks"],
        "cut_at_end": facts["cut_at_end"],
        "has_stacks": facts["stacks"]["events"] > 0,
        "frames": facts["frames"]["count"] if facts["frames"]["marked"] else 0,
        "notes": "; ".join(facts["notes"]),
    }
    sizes = [
        {"from_bytes": one["from"], "below_bytes": one["below"], "blocks": one["blocks"], "bytes": one["bytes"]}
        for one in facts["sizes"]["histogram"]
    ]
    lifetimes = [{"below_ns": one["below_ns"], "blocks": one["blocks"]} for one in facts["lifetimes"]]
    frames = _frames(path) if about["frames"] and facts["paced"] else {}
    return {
        "journals": _table("journals", digest, [about]),
        "sites": _table("sites", digest, list(_sites(path)) if about["has_stacks"] else []),
        "frames": pa.table({"journal": pa.array([digest] * len(frames["frame"])), **frames}, SCHEMAS["frames"])
        if frames
        else SCHEMAS["frames"].empty_table(),
        "sizes": _table("sizes", digest, sizes),
        "lifetimes": _table("lifetimes", digest, lifetimes if facts["paced"] else []),
    }


def _table(name: str, digest: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"journal": digest, **row} for row in rows], SCHEMAS[name])


def _sites(path: Path) -> Iterator[dict[str, Any]]:
    text = native.call("blockyard-sites", ["list", path, "--limit", "0"])
    for site in msgspec.json.decode(text, type=sites_tool.Listing).sites:
        row = msgspec.structs.asdict(site)
        yield {**row, "function": site.function or ""}


def _frames(path: Path) -> dict[str, np.ndarray]:
    """Frames lie between two marks of the thread that marks most, and have the events of all threads."""
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder:
        native.call("blockyard-replay", ["plan", path, "-o", Path(folder) / "plan", "--events-dir", folder])
        pairs = np.load(Path(folder) / "pairs.npy")
        marks = np.load(Path(folder) / "frames.npy")
    # What is paired with a later event, or with none, gives a block; a mark is paired with none, too.
    gives = pairs > np.arange(len(pairs))
    gives[marks["event"]] = False
    own = marks[marks["thread"] == np.bincount(marks["thread"]).argmax()]
    given = np.concatenate([[0], np.cumsum(gives)])[own["event"]]
    other_marks = np.searchsorted(marks["event"], own["event"])
    times = own["time"].astype(np.int64)
    return {
        "frame": np.arange(len(own) - 1),
        "start_ns": times[:-1],
        "length_ns": np.diff(times),
        "events": np.diff(own["event"].astype(np.int64)) - np.diff(other_marks),
        "allocations": np.diff(given),
    }
