"""What allocation takes of an allocator's frames and audio buffers, each computed once for whatever shows it."""

import numpy as np

from blockyard.analysis import frames
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, Verdict
from blockyard.analysis.latency import View

Ends = dict[str, tuple[float, float] | None]
"""By percentile the ends of its 95 % interval, in ns; None where the frames support none."""


def of_frames(one: AllocatorFigures, view: View, budget_ns: float, phase: str | None) -> tuple[Verdict, Ends] | None:
    """Of one phase's frames, or of all, with the intervals of the time that allocation takes of a frame, whatever its
    budget; None where the view is not known."""

    def find() -> tuple[np.ndarray, Ends] | None:
        values = one.frames.of(view, one.cuts.frames_in(phase)) if one.frames else None
        return None if values is None else (np.sort(values, axis=None), frames.intervals(values))

    found = one.once(("frames", view, phase), find)
    return found and (frames.verdict_of_sorted(found[0], budget_ns), found[1])


def of_buffers(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> tuple[AudioVerdict, Ends] | None:
    """The same of audio buffers of so many samples."""

    def find() -> tuple[AudioVerdict, Ends] | None:
        stretches = one.audio.of(view, one.cuts.audio_in(phase)) if one.audio else None
        if stretches is None:
            return None
        buffers = frames.in_buffers(stretches, samples)
        return frames.audio_verdict(buffers, samples), frames.intervals(buffers)

    return one.once(("audio", view, samples, phase), find)
