"""Frames for the page: allocator time by frame as columns, and the verdicts as the tables have them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from blockyard.analysis import frames
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import FrameCut, Verdict
from blockyard.analysis.latency import View
from blockyard.analysis.sections import Section
from blockyard.report import frame_tables
from blockyard.report.page.pack import packed, steps

MOST_POINTS = 12_000
"""Of more frames than that, each point of the page is the worst of a few."""


def facts(section: Section, members: Sequence[AllocatorFigures]) -> dict[str, Any]:
    """Where the frames come from, and the phases of the run."""
    cuts = members[0].cuts
    known = isinstance(cuts.frames, FrameCut)
    return {
        "words": frame_tables.words(section, cuts), "known": known,
        "phase": frame_tables.judged_phase(cuts), "group": _group(cuts.frames.frames) if known else 1,
        "budgets": [*(f"{hz} Hz" for hz in frames.RATES_HZ),
                    *(f"{samples} samples" for samples in frames.AUDIO_SAMPLES)],
        "phases": [{"name": phase.name, "begin_s": phase.begin_ns / 1e9, "end_s": phase.end_ns / 1e9}
                   for phase in cuts.phases.phases] if len(cuts.phases.phases) > 1 else []}


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


def verdicts(one: AllocatorFigures, view: View) -> dict[str, dict[str, Any]]:
    """By budget: shares of it, how many frames are over a part of it, and of audio buffers the queue."""
    phase = frame_tables.judged_phase(one.cuts)
    found: dict[str, dict[str, Any]] = {}
    for hz in frames.RATES_HZ:
        if verdict := frame_tables.frame_verdict(one, view, 1e9 / hz, phase):
            found[f"{hz} Hz"] = _verdict(verdict)
    for samples in frames.AUDIO_SAMPLES:
        if audio := frame_tables.audio_verdict(one, view, samples, phase):
            found[f"{samples} samples"] = {**_verdict(audio.verdict), "buffers": audio.buffers,
                                           "latency_ns": round(audio.latency_ns), "use": audio.use}
    return found


def _verdict(found: Verdict) -> dict[str, Any]:
    return {"budget_ns": round(found.budget_ns), "frames": found.frames,
            "shares": [None if share is None else round(share, 7) for share in found.shares.values()],
            "worst": round(found.worst, 7), "over": list(found.over.values())}


def _group(frame_count: int) -> int:
    return -(-frame_count // MOST_POINTS) or 1
