"""How a section is cut into frames, audio buffers and phases: by its reference run, before anything is measured."""

from dataclasses import dataclass, field

import numpy as np

from blockyard.analysis import frames, phases, timeline
from blockyard.analysis.frames import FrameCut, NoFrames
from blockyard.analysis.passes import ALL
from blockyard.analysis.phases import PLAY, Phase, Phases
from blockyard.analysis.sections import Section
from blockyard.analysis.timeline import Timeline


@dataclass(frozen=True)
class Cuts:
    """`whole` has a phase a frame, of all threads: what allocation takes in each phase."""

    line: Timeline
    frames: FrameCut | NoFrames
    audio: FrameCut | NoFrames
    phases: Phases
    whole: FrameCut | NoFrames
    known: dict[tuple[str, str], np.ndarray] = field(default_factory=dict, compare=False)
    """By the cut's name and the phase, what was asked for: every allocator and view asks for the same."""

    @property
    def judged_phase(self) -> str | None:
        """Whose frames are judged: play where there is loading or teardown beside it, else everything (None)."""
        names = self.phases.names
        return PLAY if PLAY in names and len(names) > 1 else None

    def frames_in(self, phase: str | None) -> np.ndarray | slice:
        """Which frames begin in the phase of that name; all of them for None."""
        return self._within("frames", phase)

    def audio_in(self, phase: str | None) -> np.ndarray | slice:
        """Which of the shortest buffers do."""
        return self._within("audio", phase)

    @property
    def by_name(self) -> dict[str, FrameCut]:
        """Those that there are."""
        named = {"frames": self.frames, "audio": self.audio, "whole": self.whole}
        return {name: cut for name, cut in named.items() if isinstance(cut, FrameCut)}

    def _within(self, name: str, phase: str | None) -> np.ndarray | slice:
        if phase is None:
            return slice(None)
        cut, key = self.by_name[name], (name, phase)
        if key not in self.known:
            self.known[key] = self.phases.of_events(cut.edges[:-1]) == self.phases.names.index(phase)
        return self.known[key]


def uncut() -> Cuts:
    """For those who ask for latencies alone: all of it is one phase, and nothing is summed by frame. O(1)."""
    none, nothing = NoFrames("not asked for"), np.zeros(0, np.int64)
    line = Timeline(0, nothing, nothing, nothing, nothing, 0)
    return Cuts(line, none, none, Phases((Phase(PLAY, 0, 0, 0.0, 0.0),), named=False), none)


def of(section: Section, fps: float | None = None, thread: str | None = None) -> Cuts:
    """`fps` and `thread` as for frames.cut. Raises UserError for a thread that the journal does not have."""
    line = timeline.read(section)
    cut = frames.cut(section, line, fps, thread)
    judged = cut.thread if isinstance(cut, FrameCut) else line.busiest_thread()
    found = phases.find(section, line)
    edges = np.array([*(phase.begin_event for phase in found.phases), line.end_event])
    whole = FrameCut(edges, np.array([phase.begin_ns for phase in found.phases]), ALL, "phases")
    return Cuts(line, cut, frames.audio_cut(section, line, judged), found, whole)
