"""Frames for the page: allocator time by frame as columns, the worst of them, and the phases of the run."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from blockyard.analysis import worst_frames
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import DEFAULT_FPS, FrameCut
from blockyard.analysis.latency import View
from blockyard.analysis.sections import Section
from blockyard.report import frame_tables
from blockyard.report.page.pack import packed, steps

MOST_POINTS = 12_000
"""Of more frames than that, each point of the page is the worst of a few."""
_LISTED = 5


def facts(section: Section, members: Sequence[AllocatorFigures]) -> dict[str, Any]:
    """Where the frames come from, and the phases of the run."""
    cuts = members[0].cuts
    known = isinstance(cuts.frames, FrameCut)
    return {
        "words": frame_tables.words(section, cuts),
        "known": known,
        "group": _group(cuts.frames.frames) if known else 1,
        "rate_hz": cuts.frames.rate_hz if known else DEFAULT_FPS,
        "phases": [
            {"name": phase.name, "begin_s": phase.begin_ns / 1e9, "end_s": phase.end_ns / 1e9}
            for phase in cuts.phases.phases
        ]
        if len(cuts.phases.phases) > 1
        else [],
    }


def worst(one: AllocatorFigures) -> list[dict[str, float]]:
    """Where the worst frames lie, for going there."""
    cut = one.cuts.frames
    if not isinstance(cut, FrameCut):
        return []
    ends = np.append(cut.starts_ns[1:], one.cuts.line.duration_ns)
    return [
        {
            "begin_s": frame.start_ns / 1e9,
            "end_s": max(float(ends[frame.frame]), frame.start_ns + 1e5) / 1e9,
            "ns": round(frame.allocator_ns),
        }
        for frame in worst_frames.of(one, _LISTED)
    ]


def pack(members: Sequence[AllocatorFigures], views: Sequence[View]) -> str:
    """Columns `start` (us) and ALLOCATOR/VIEW (latency steps): the median of the repeats, inherent its one value."""
    cut = members[0].cuts.frames
    columns: dict[str, np.ndarray] = {}
    if isinstance(cut, FrameCut) and cut.frames:
        group = _group(cut.frames)
        edges = np.arange(0, cut.frames, group)
        columns["start"] = np.round(cut.starts_ns[edges] / 1e3).astype(np.uint32)
        for one in members:
            for view in views:
                values = one.frames.of(view) if one.frames else None
                if values is not None:
                    columns[f"{one.name}/{view.value}"] = steps(np.maximum.reduceat(np.median(values, axis=0), edges))
    return packed({}, columns, frozenset({"start"}) & columns.keys())


def _group(frame_count: int) -> int:
    return -(-frame_count // MOST_POINTS) or 1
