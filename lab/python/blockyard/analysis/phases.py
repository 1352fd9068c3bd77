"""The phases of a section: as the program named them, else load, play and teardown by how it allocates."""

from dataclasses import dataclass

import numpy as np

from blockyard.analysis.sections import Section
from blockyard.analysis.timeline import BIN_NS, Timeline
from blockyard.errors import UserError

LOAD, PLAY, TEARDOWN, OTHER = "load", "play", "teardown", "other phases"
_MOST_NAMES = 12
"""Of a program that names more phases than that, the later ones are joined: each has tables of its own."""
_WINDOW_NS = 500_000_000
"""A window. A second of much allocation in the midst of play is what frames are there to show, and a second's rest does
not end a load: both take two windows."""
_BUSY = 3.0
"""A window loads when it allocates so many times as often as the median one ..."""
_GROWTH = 0.25
"""... or when at least a quarter of its allocations stay."""
_GOES = 2.0
"""A window tears down when it frees so many times as often as it allocates."""


@dataclass(frozen=True)
class Phase:
    """Events from `begin_event` on and below `end_event`; times in ns of the replay's clock, to 10 ms where found by
    rate."""

    name: str
    begin_event: int
    end_event: int
    begin_ns: float
    end_ns: float

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


@dataclass(frozen=True)
class Phases:
    """In order of time, without gaps. `named` by the program, else found by rate."""

    phases: tuple[Phase, ...]
    named: bool

    @property
    def names(self) -> list[str]:
        """Each once, in order of first appearance."""
        return list(dict.fromkeys(phase.name for phase in self.phases))

    def of_events(self, events: np.ndarray) -> np.ndarray:
        """For each event number the index into `names`."""
        begins = np.array([phase.begin_event for phase in self.phases])
        order = np.array([self.names.index(phase.name) for phase in self.phases])
        return order[np.clip(np.searchsorted(begins, events, side="right") - 1, 0, None)]


def find(section: Section, line: Timeline) -> Phases:
    """Never empty: a section in which nothing stands out is play."""
    named = _named(section, line)
    return Phases(tuple(named), True) if named else Phases(tuple(_by_rate(line)), False)


def _named(section: Section, line: Timeline) -> list[Phase]:
    marks = [mark for mark in section.facts.phases if mark.name]
    if not marks:
        return []
    times = [(mark.event, mark.time_ns) for mark in marks]
    if any(list(column) != sorted(column) for column in zip(*times, strict=True)):
        raise UserError(
            f"campaign.json has phases of journal {section.journal} that no plan tells: it was damaged; replay again"
        )
    speed = float(section.pace.removesuffix("x")) if section.pace != "max" else 1.0
    names = list(dict.fromkeys(mark.name for mark in marks))
    kept = set(names if len(names) <= _MOST_NAMES else names[: _MOST_NAMES - 1])
    begins = [(mark.name if mark.name in kept else OTHER, mark.event, mark.time_ns / speed) for mark in marks]
    if begins[0][2] > 0:
        begins.insert(0, ("before the first mark", 0, 0.0))
    begins[0] = (begins[0][0], 0, 0.0)
    ends = [*((event, time) for _, event, time in begins[1:]), (line.end_event, float(line.duration_ns))]
    return [
        Phase(name, event, end, time, end_time)
        for (name, event, time), (end, end_time) in zip(begins, ends, strict=True)
    ]


def _by_rate(line: Timeline) -> list[Phase]:
    step = _WINDOW_NS // BIN_NS
    starts = np.arange(0, max(len(line.mallocs), 1), step)
    mallocs, frees = (
        np.add.reduceat(counts, starts) if len(counts) else np.zeros(1) for counts in (line.mallocs, line.frees)
    )
    busy = mallocs[mallocs > 0]
    usual = np.median(busy) if len(busy) else 0
    loads = (mallocs > _BUSY * usual) | ((mallocs >= usual / 2) & (mallocs - frees > _GROWTH * mallocs))
    goes = (frees > _GOES * mallocs) & (frees > usual / 2)
    names = np.where(_smoothed(loads & ~goes), LOAD, PLAY).astype(object)
    last = len(names)
    while last > 0 and goes[last - 1]:
        last -= 1
    names[last:] = TEARDOWN
    changes = [0, *(np.flatnonzero(names[1:] != names[:-1]) + 1).tolist()]
    ends = [*changes[1:], len(names)]
    found = []
    for begin, end in zip(changes, ends, strict=True):
        begin_ns, end_ns = float(begin * _WINDOW_NS), min(float(end * _WINDOW_NS), float(line.duration_ns))
        found.append(
            Phase(
                names[begin],
                0 if begin == 0 else line.event_at(begin_ns),
                line.end_event if end == len(names) else line.event_at(end_ns),
                begin_ns,
                end_ns,
            )
        )
    return found


def _smoothed(loads: np.ndarray) -> np.ndarray:
    """Rests of one window are closed, then loads of one window are dropped, but for one at the beginning."""
    before, after = _neighbours(loads)
    closed = loads | (before & after)
    before, after = _neighbours(closed)
    before[:1] = True
    return closed & (before | after)


def _neighbours(flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each the one before and the one behind."""
    padded = np.pad(flags, 1)
    return padded[:-2].copy(), padded[2:]
