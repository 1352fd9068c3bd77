"""What allocation takes of an allocator's frames and audio buffers, each computed once for whatever shows it."""

from collections.abc import Callable

import numpy as np

from blockyard.analysis import frames
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, Verdict
from blockyard.analysis.latency import View

Ends = dict[str, tuple[float, float] | None]
"""By percentile the ends of its 95 % interval, in ns; None where the frames support none."""


def of_frames(one: AllocatorFigures, view: View, budget_ns: float, phase: str | None) -> Verdict | None:
    """Of one phase's frames, or of all; None where the view is not known."""
    key = ("sorted frames", view, phase)
    if key not in one.known:
        chosen = _frames(one, view, phase)
        one.known[key] = None if chosen is None else np.sort(chosen, axis=None)
    values = one.known[key]
    return None if values is None else frames.verdict_of_sorted(values, budget_ns)


def ends_of_frames(one: AllocatorFigures, view: View, phase: str | None) -> Ends | None:
    """Of the time that allocation takes of a frame, whatever its budget."""
    key = ("intervals of frames", view, phase)
    if key not in one.known:
        chosen = _frames(one, view, phase)
        one.known[key] = None if chosen is None else frames.intervals(chosen)
    return one.known[key]


def of_buffers(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> AudioVerdict | None:
    key = ("audio", view, samples, phase)
    if key not in one.known:
        chosen = _buffers(one, view, samples, phase)
        one.known[key] = None if chosen is None else frames.audio_verdict(chosen, samples)
    return one.known[key]


def ends_of_buffers(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> Ends | None:
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
