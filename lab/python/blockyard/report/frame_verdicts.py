"""The verdicts on frames and audio buffers, each computed once for whatever shows it, and as rows of frames.csv."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from blockyard.analysis import frames
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, FrameCut, Verdict
from blockyard.analysis.latency import View
from blockyard.analysis.sections import Section

Ends = dict[str, tuple[float, float] | None]
"""By percentile the ends of its 95 % interval, in ns; None where the frames support none."""


def frame_verdict(one: AllocatorFigures, view: View, budget_ns: float, phase: str | None) -> Verdict | None:
    """Of one phase's frames, or of all; None where the view is not known."""
    key = ("sorted frames", view, phase)
    if key not in one.known:
        chosen = _frames(one, view, phase)
        one.known[key] = None if chosen is None else np.sort(chosen, axis=None)
    values = one.known[key]
    return None if values is None else frames.verdict_of_sorted(values, budget_ns)


def frame_ends(one: AllocatorFigures, view: View, phase: str | None) -> Ends | None:
    """Of the time that allocation takes of a frame, whatever its budget."""
    key = ("intervals of frames", view, phase)
    if key not in one.known:
        chosen = _frames(one, view, phase)
        one.known[key] = None if chosen is None else frames.intervals(chosen)
    return one.known[key]


def audio_verdict(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> AudioVerdict | None:
    key = ("audio", view, samples, phase)
    if key not in one.known:
        chosen = _buffers(one, view, samples, phase)
        one.known[key] = None if chosen is None else frames.audio_verdict(chosen, samples)
    return one.known[key]


def audio_ends(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> Ends | None:
    """Of the time that allocation takes of a buffer."""
    key = ("intervals of buffers", view, samples, phase)
    if key not in one.known:
        chosen = _buffers(one, view, samples, phase)
        one.known[key] = None if chosen is None else frames.intervals(chosen)
    return one.known[key]


def _frames(one: AllocatorFigures, view: View, phase: str | None) -> np.ndarray | None:
    values = one.frames.of(view) if one.frames else None
    return values if values is None or phase is None else values[:, one.cuts.frames_in(phase)]


def _buffers(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> np.ndarray | None:
    """Times by buffer of `samples`, [repeat, buffer]."""

    def stretches() -> np.ndarray | None:
        values = one.audio.of(view) if one.audio else None
        return values if values is None or phase is None else values[:, one.cuts.audio_in(phase)]

    def joined() -> np.ndarray | None:
        chosen = _latest(one, "stretches", (view, phase), stretches)
        return None if chosen is None else frames.in_buffers(chosen, samples)

    return _latest(one, "buffers", (view, phase, samples), joined)


def _latest(one: AllocatorFigures, name: str, key: tuple, find: Callable[[], np.ndarray | None]) -> np.ndarray | None:
    """What was asked for last is kept, and only that: all would be a copy of the series for each length of buffer."""
    if one.known.get(("latest", name), (None,))[0] != key:
        one.known["latest", name] = (key, find())
    return one.known["latest", name][1]


def rows(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View]) -> Iterator[dict[str, object]]:
    """frames.csv: a row an allocator, view, phase and budget. Shares are of the budget, 1 is all of it."""
    for one in figures:
        rates = one.cuts.frames.rates_hz if isinstance(one.cuts.frames, FrameCut) else ()
        for view in views:
            for phase in (None, *(one.cuts.phases.names if len(one.cuts.phases.names) > 1 else ())):
                shared = {
                    "journal": section.journal,
                    "pace": section.pace,
                    "touch": section.touch,
                    "allocator": one.name,
                    "view": view.value,
                    "phase": phase or "all",
                }
                for hz in rates:
                    if found := frame_verdict(one, view, 1e9 / hz, phase):
                        yield {
                            **shared,
                            "budget": f"{hz:g} Hz",
                            **_figures(found, frame_ends(one, view, phase)),
                            **_queue(None),
                        }
                for samples in frames.AUDIO_SAMPLES:
                    if audio := audio_verdict(one, view, samples, phase):
                        yield {
                            **shared,
                            "budget": f"{samples} samples",
                            **_figures(audio.verdict, audio_ends(one, view, samples, phase)),
                            **_queue(audio),
                        }


def _figures(found: Verdict, ends: Ends | None) -> dict[str, object]:
    return {
        "budget_ns": round(found.budget_ns, 1),
        "frames": found.frames,
        **{f"{label}_share": None if share is None else round(share, 6) for label, share in found.shares.items()},
        **{
            f"{percentile.label}_share_{name}": None
            if (told := (ends or {}).get(percentile.label)) is None
            else round(told[place] / found.budget_ns, 6)
            for percentile in frames.TAILS
            for place, name in enumerate(("low", "high"))
        },
        "worst_share": round(found.worst, 6),
        **{f"over_{round(share * 100)}_percent": count for share, count in found.over.items()},
    }


def _queue(audio: AudioVerdict | None) -> dict[str, object]:
    return {
        "queued_buffers": audio.buffers if audio else None,
        "queue_latency_ns": round(audio.latency_ns) if audio else None,
        "good_for": audio.use if audio else None,
    }
