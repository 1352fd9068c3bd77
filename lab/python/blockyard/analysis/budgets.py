"""What allocation takes of an allocator's frames and audio buffers, each computed once for whatever shows it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from blockyard.analysis import frames
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, Verdict
from blockyard.analysis.latency import View

Ends = dict[str, tuple[float, float] | None]
"""By percentile the ends of its 95 % interval, in ns; None where the frames support none."""


def of_frames(one: AllocatorFigures, view: View, budget_ns: float, phase: str | None) -> Verdict | None:
    """Of one phase's frames, or of all; None where the view is not known."""
    values = _once(
        one, ("sorted", view, phase), lambda: _frames(one, view, phase), lambda found: np.sort(found, axis=None)
    )
    return None if values is None else frames.verdict_of_sorted(values, budget_ns)


def ends_of_frames(one: AllocatorFigures, view: View, phase: str | None) -> Ends | None:
    """Of the time that allocation takes of a frame, whatever its budget."""
    return _once(one, ("intervals of frames", view, phase), lambda: _frames(one, view, phase), frames.intervals)


def of_buffers(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> AudioVerdict | None:
    key = ("audio", view, samples, phase)
    return _once(one, key, lambda: _buffers(one, *key[1:]), lambda found: frames.audio_verdict(found, samples))


def ends_of_buffers(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> Ends | None:
    """Of the time that allocation takes of a buffer."""
    key = ("intervals of buffers", view, samples, phase)
    return _once(one, key, lambda: _buffers(one, *key[1:]), frames.intervals)


def _once(
    one: AllocatorFigures, key: tuple, find: Callable[[], np.ndarray | None], take: Callable[[np.ndarray], Any]
) -> Any:
    """What is taken of the times that are found, and None where there are none."""
    return one.once(key, lambda: None if (found := find()) is None else take(found))


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
