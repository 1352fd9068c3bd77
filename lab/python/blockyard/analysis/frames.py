"""What allocation takes of each frame of one thread, and the verdicts: of frame budgets, and of audio buffers.

A frame holds the same events in every repeat and on every allocator: its ends are event numbers, those of the journal's
frame marks or, where a clock cuts it, of the reference run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from blockyard.analysis import noise, passes, timeline
from blockyard.analysis.latency import P50, P99, P999, Percentile, View
from blockyard.analysis.passes import ALL
from blockyard.analysis.sections import Section
from blockyard.analysis.timeline import Timeline
from blockyard.analysis.totals import Untimed
from blockyard.errors import UserError

RATES_HZ = (30, 60, 90, 120, 144, 240)
AUDIO_SAMPLES = (64, 128, 256, 512, 1024)
AUDIO_HZ = 48_000
DEFAULT_FPS = 60
"""Journals without frame marks are cut at this rate unless another is asked for; reports say so."""
SHARES_OVER = (0.01, 0.05, 0.10)
PERCENTILES = (P50, P99, P999)
TAILS = (P99, P999)
"""Those whose interval is given."""
OWN_WORK = 0.5
"""Share of a buffer's time that the audio program itself is taken to need. In the rest it catches up: a program that
needs more makes up for a stall later, and needs more buffers."""
_DOUBLE_BUFFERING = 2
"""One buffer plays while the next is filled: fewer there are never."""
LATENCY_USES = ((2e6, "pro audio"), (20e6, "games"), (200e6, "music"), (2000e6, "streaming"))
"""Rule of thumb: up to so many ns of latency serve this use."""


@dataclass(frozen=True)
class FrameCut:
    """How a section is cut into frames. Frame i has the events of `thread` from edges[i] on and below edges[i + 1]."""

    edges: np.ndarray
    starts_ns: np.ndarray
    thread: int
    words: str
    """Where the frames come from and which thread is judged, for every page: `frames marked by thread main`."""
    hz: float | None = None
    """How many per second, where they were cut by the clock."""

    @property
    def frames(self) -> int:
        return max(len(self.edges) - 1, 0)

    @property
    def rate_hz(self) -> float:
        """Whose budget is the first to be judged by: a frame cut at 120 per second has no 16.7 ms."""
        return self.hz or DEFAULT_FPS

    @property
    def rates_hz(self) -> tuple[float, ...]:
        """All whose budgets are judged by."""
        return tuple(sorted({*RATES_HZ, self.rate_hz}))


@dataclass(frozen=True)
class NoFrames:
    """Why a section has no frames."""

    reason: str


@dataclass(frozen=True)
class FrameSeries:
    """One allocator's frames, in ns of allocator time (of an allocation the call and its touch): [repeat, frame], and
    for inherent [frame]. They come from untimed runs where there are some, and then `timed` has the timed calls added
    up, for what belongs to one of those."""

    cut: FrameCut
    events: np.ndarray
    as_run_ns: np.ndarray
    attributed_ns: np.ndarray | None
    inherent_ns: np.ndarray
    timed: "FrameSeries | None" = None

    def from_totals(self, totals: Untimed) -> "FrameSeries":
        """The same frames without a clock around each call."""
        edges, thread = self.cut.edges, self.cut.thread
        attributed = totals.frames(edges, thread)
        return replace(
            self,
            as_run_ns=totals.frames(edges, thread, away=True),
            attributed_ns=None if self.attributed_ns is None else attributed,
            inherent_ns=attributed.min(axis=0),
            timed=self,
        )

    def of(self, view: View, chosen: np.ndarray | slice = slice(None)) -> np.ndarray | None:
        """[repeat, frame] of the frames chosen; inherent has one row. None where causes are not known."""
        by_view = {View.AS_RUN: self.as_run_ns, View.ATTRIBUTED: self.attributed_ns}
        found = by_view.get(view, self.inherent_ns[None, :])
        return None if found is None else found[:, chosen]

    @cached_property
    def median_ns(self) -> np.ndarray:
        """By frame, over repeats."""
        return np.median(self.as_run_ns, axis=0) if self.as_run_ns.size else np.zeros(self.cut.frames)


@dataclass(frozen=True)
class Verdict:
    """What allocation takes of one budget. Shares are of the budget, 1 is all of it; None is unsupported."""

    budget_ns: float
    frames: int
    shares: dict[str, float | None]
    worst: float
    over: dict[float, int]
    """Frames over 1, 5 and 10 % of the budget, of all repeats together."""


@dataclass(frozen=True)
class AudioVerdict:
    """The same of an audio buffer, and the queue that no allocation ever empties."""

    samples: int
    verdict: Verdict
    buffers: int
    latency_ns: float
    use: str
    """The most demanding use that this latency serves by the rule of thumb; `none` beyond all of them."""


def cut(section: Section, line: Timeline, fps: float | None = None, thread: str | None = None) -> FrameCut | NoFrames:
    """By `fps` where given, else by the journal's marks where it has two of one thread, else at 60 per second.

    The judged thread is the one named, else the one that marks frames, else the busiest. Raises UserError for a thread
    that the journal does not have.
    """
    marks, marker = _marks(section)
    speed = _speed(section.pace)
    usual = marker if len(marks) >= 2 else line.busiest_thread()
    named = usual if thread is None else thread_index(section, thread)
    judged = ALL if section.threads == "one" else named
    if fps is None and len(marks) >= 2:
        times = np.array([time for time, _ in marks], float) / (speed or 1.0)
        words = f"frames as marked by {thread_name(section, marker)}, {_judged(section, judged)}"
        return FrameCut(np.array([event for _, event in marks]), times[:-1], judged, words)
    if speed is None:
        return NoFrames(
            "the journal has no frame marks, and at full speed there is no clock to cut frames by: replay at 1x"
        )
    if not section.facts.paced:
        return NoFrames("the journal has neither frame marks nor times, only an order")
    rate = fps or DEFAULT_FPS
    why = (
        f"{rate:g} frames per second by the clock"
        if fps
        else f"no frame marks in the journal: cut into {rate:g} per second by the clock (--fps changes it)"
    )
    return _by_clock(section, line, 1e9 / rate / speed, judged, f"{why}, {_judged(section, judged)}", rate)


def audio_cut(section: Section, line: Timeline, judged: int) -> FrameCut | NoFrames:
    """Stretches of the shortest buffer, 64 samples at 48 kHz; longer buffers are so many of them."""
    speed = _speed(section.pace)
    if speed is None or not section.facts.paced:
        return NoFrames("audio buffers need a clock: replay a journal with times at 1x")
    return _by_clock(section, line, AUDIO_SAMPLES[0] / AUDIO_HZ * 1e9 / speed, judged, _judged(section, judged))


def per_frame(
    runs: Sequence[passes.Rows], cuts: Sequence[FrameCut], ticks_per_ns: float, *, looked_into: bool, threads: int = 1
) -> list[FrameSeries]:
    """One series a cut, in one pass over the allocator's repeats."""
    found = passes.frame_times(runs, [(one.edges, one.thread) for one in cuts], threads)
    return [
        FrameSeries(
            one,
            times.events,
            times.as_run / ticks_per_ns,
            times.attributed / ticks_per_ns if looked_into else None,
            times.inherent / ticks_per_ns,
        )
        for one, times in zip(cuts, found, strict=True)
    ]


def verdict(values_ns: np.ndarray, budget_ns: float) -> Verdict:
    """Of allocator times by frame (of any shape) against one budget."""
    return verdict_of_sorted(np.sort(values_ns, axis=None), budget_ns)


def verdict_of_sorted(values: np.ndarray, budget_ns: float) -> Verdict:
    """The same of times in rising order: one sorting serves all budgets."""
    count = len(values)
    shares = {
        percentile.label: float(values[percentile.rank(count) - 1]) / budget_ns if percentile.supported(count) else None
        for percentile in PERCENTILES
    }
    over = {share: count - int(np.searchsorted(values, share * budget_ns, side="right")) for share in SHARES_OVER}
    return Verdict(budget_ns, count, shares, float(values[-1]) / budget_ns if count else 0.0, over)


Tails = dict[str, noise.Figure]
"""By percentile; without those that the frames support none of."""


def tails(values_ns: np.ndarray, step: float, runs: int, percentiles: Sequence[Percentile] = TAILS) -> Tails:
    """Percentiles of allocator times [repeat, frame], in ns, and of all repeats but each. Inherent, one row, has no
    repeats."""
    wanted = [percentile for percentile in percentiles if percentile.supported(values_ns.size)]
    if not wanted:
        return {}
    places = range(len(values_ns)) if len(values_ns) > 1 else ()
    rest = [_at_ranks(np.delete(values_ns, place, axis=0), wanted) for place in places]
    return {
        percentile.label: noise.Figure.of_all(value, [one[place] for one in rest], step, runs)
        for place, (percentile, value) in enumerate(zip(wanted, _at_ranks(values_ns, wanted), strict=True))
    }


def _at_ranks(values: np.ndarray, percentiles: Sequence[Percentile]) -> list[float]:
    ranks = [percentile.rank(values.size) - 1 for percentile in percentiles]
    return np.partition(values, ranks, axis=None)[ranks].tolist()


def in_buffers(stretches_ns: np.ndarray, samples: int) -> np.ndarray:
    """Times by stretch of 64 samples, [repeat, stretch], as times by buffer of `samples`; a last part is left out."""
    joined = samples // AUDIO_SAMPLES[0]
    whole = stretches_ns.shape[1] // joined * joined
    return stretches_ns[:, :whole].reshape(stretches_ns.shape[0], -1, joined).sum(axis=2)


def audio_verdict(buffers: np.ndarray, samples: int) -> AudioVerdict:
    """Of allocator times by buffer of `samples`, [repeat, buffer].

    A buffer is late by what was still to do when its time was over. Work comes as half of each buffer's time and
    whatever allocation took in it; a queue of two buffers is never emptied while nothing is late, and each buffer's
    time of lateness needs another one.
    """
    period = samples / AUDIO_HZ * 1e9
    queued = _DOUBLE_BUFFERING + int(np.ceil(_latest(buffers, period) / period - 1e-9))
    latency = queued * period
    use = next((name for most, name in LATENCY_USES if latency <= most), "none")
    return AudioVerdict(samples, verdict(buffers, period), queued, latency, use)


def _latest(buffers: np.ndarray, period: float) -> float:
    """The most that any buffer was late, in ns."""
    if not buffers.size or buffers.max() <= period * (1 - OWN_WORK):
        return 0.0
    behind = np.cumsum(buffers - period * (1 - OWN_WORK), axis=1)
    before = np.minimum.accumulate(np.concatenate([np.zeros((len(behind), 1)), behind], axis=1), axis=1)[:, 1:]
    return float((behind - before).max())


def thread_index(section: Section, name: str) -> int:
    """Of a thread by its name or its number."""
    names = section.thread_names
    same = [index for index, known in enumerate(names) if known and known == name]
    if len(same) > 1:
        raise UserError(
            f"journal {section.journal} has {len(same)} threads named '{name}', and threads are never "
            f"summed; give the number of one: {', '.join(map(str, same))}"
        )
    if same:
        return same[0]
    count = max(section.facts.threads, len(names))
    if name.isdecimal() and int(name) < count:
        return int(name)
    known = ", ".join(dict.fromkeys(one for one in names if one)) or "none with a name"
    raise UserError(
        f"journal {section.journal} has no thread '{name}'; it has {known}, by number 0 to {count - 1} "
        "(not the system's numbers)"
    )


def thread_name(section: Section, index: int) -> str:
    if index == ALL:
        return "all threads"
    names = section.thread_names
    return f"thread {names[index]}" if index < len(names) and names[index] else f"thread {index}"


def _judged(section: Section, thread: int) -> str:
    if thread == ALL:
        return "all threads' events together, as they ran on one"
    return f"judged on {thread_name(section, thread)}"


def _marks(section: Section) -> tuple[list[tuple[int, int]], int]:
    """(time, event) of the marks of the thread that has most of them, and that thread."""
    marks = section.marks()
    if not len(marks):
        return [], 0
    marker = int(np.bincount(marks["thread"]).argmax())
    mine = marks[marks["thread"] == marker]
    if (np.diff(mine["event"].astype(np.int64)) <= 0).any():
        raise UserError(
            f"{section.folder / 'frames.npy'} has frame marks out of order: it was damaged; run 'blockyard "
            "replay' again"
        )
    return list(zip(mine["time"].tolist(), mine["event"].tolist(), strict=True)), marker


def _by_clock(
    section: Section, line: Timeline, period: float, judged: int, words: str, hz: float | None = None
) -> FrameCut:
    count = max(int(line.duration_ns // period), 1)
    boundaries = np.arange(count + 1) * period
    return FrameCut(timeline.edges(section, judged, boundaries), boundaries[:-1], judged, words, hz)


def _speed(pace: str) -> float | None:
    return float(pace.removesuffix("x")) if pace != "max" else None
