"""Advice about synthetic campaigns, as `blockyard advise` writes it."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import stack_files
from synthetic import Campaign

from blockyard.advise.document import Evidence

JOURNAL_SHA = "5a" * 32
_FIGURE = {"value": 0.0, "low": 0.0, "high": 0.0}
_NONE = dict.fromkeys(Evidence.__struct_fields__, 0)


def name_journals(campaign: Campaign) -> None:
    """All journals of the campaign are the one that the advice is about."""
    path = campaign.directory / "campaign.json"
    plan = json.loads(path.read_text())
    for entry in plan["journals"]:
        entry["sha256"] = JOURNAL_SHA
    path.write_text(json.dumps(plan))


def steps(*nodes: int, line_of_last: bool = True) -> list[dict[str, Any]]:
    """A context: these nodes of stack_files, the innermost first."""
    found = []
    for place, node in enumerate(nodes, start=1):
        function, file, line, _ = stack_files.FUNCTIONS[node]
        shown = line if line_of_last or place < len(nodes) else 0
        found.append({"function": function, "module": stack_files.MODULES[node], "file": file, "line": shown})
    return found


def change(what: str, contexts: list[list[dict[str, Any]]], gain: tuple[float, float] | None = None) -> dict[str, Any]:
    """`gain`: the time of a whole replay without the change and with it."""
    where = contexts[0][-1]
    broken = {"event": 1, "bytes": 64, "time_ns": 1_500_000_000, "freed_ns": None, "why": "outlives its frame"}
    return {
        "id": 0,
        "what": what,
        "group": 0,
        "near": None,
        "where": where | {"line": where["line"] or 12},
        "contexts": contexts,
        "bytes": 48,
        "size": 0,
        "callers": {"all": 0, "places": []},
        "freed_at": {"all": 0, "places": []},
        "evidence": {**_NONE, "lives": 12_345, "frames": 60, "threads": 1, "peak_blocks": 7, "region_bytes": 4096},
        "held": {"holds": 12_344, "broken": 1, "undecided": 0, "counterexamples": [broken]},
        "estimate": {"cost_ns": 3e6, "saved_ns": 2e6, "worst_frame_saved_ns": 1e5},
        "on": [],
        "gain": gain and measured(gain[1]),
    }


def measured(total_ns: float) -> dict[str, Any]:
    return {
        "name": "plain",
        "groups": [],
        "frames": 60,
        "p50_ns": None,
        "p99_ns": None,
        "worst_ns": None,
        "total_ns": {"value": total_ns, "low": total_ns, "high": total_ns},
        "slow_calls": _FIGURE,
        "peak_bytes": _FIGURE,
        "routes": [],
    }


REPORT = json.loads("""{
  "journal": "game.byj", "leave": [], "inside": [], "left_count": 0, "on": [], "notes": [], "dotnet": false,
  "cpp": true, "has_names": true, "marked_frames": true, "frames": 60, "program": "", "allocator": "", "allocations": 0,
  "halves": null, "duration_ns": 6000000000, "estimated_ns": 1e7, "estimated_worst_frame_ns": 1e6,
  "worst_frame_ns": 1000000000
}""")
MEASURED = {"allocator": "glibc", "repeats": 5, "together": None, "from_s": None, "to_s": None}


def write(
    folder: Path,
    changes: list[dict[str, Any]],
    sha256: str = JOURNAL_SHA,
    routed: Sequence[np.ndarray] = (),
    events: int = 1,
    **members: Any,
) -> Path:
    """`routed`: of each change the events of the journal, which has `events`, whose blocks it leads elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, one in enumerate(changes):
        one |= {"id": place + 1, "group": place}
    report = {
        **REPORT,
        "request": {"journal": "/there/game.byj", "sha256": [sha256], "on": [], "apply": [], "all": False, "fps": 60},
        "advice": changes,
        "events": events,
        "sites": len(changes),
        "measured": {**MEASURED, "plain": measured(10e6)},
        **members,
    }
    (folder / "advice.json").write_text(json.dumps(report))
    blocks = sorted((int(event), route) for route, those in enumerate(routed) for event in those)
    head = struct.pack("<8sIIQQQ", b"BYROUTE\n", 1, len(routed), len(blocks), events, 0)
    routes = b"".join(struct.pack("<BBHIQQ", 1, 4, 0, group, 4096, 0) for group in range(len(routed)))
    data = b"".join(struct.pack("<IHH", event, route, 0) for event, route in blocks)
    (folder / "routes.byr").write_bytes(head + routes + data)
    return folder
