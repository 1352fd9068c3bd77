"""Frames, audio buffers and phases as tables: what allocation takes of each budget, and which frames were the worst."""

from collections.abc import Iterator

import numpy as np

from blockyard import units
from blockyard.analysis import causes, frames, worst_frames
from blockyard.analysis.cuts import Cuts
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import FrameCut, NoFrames, Verdict
from blockyard.analysis.latency import P50, P999, Operation, View
from blockyard.analysis.phases import PLAY
from blockyard.analysis.sections import Section
from blockyard.analysis.worst_frames import WorstFrame
from blockyard.report.blocks import Block, Heading, Paragraph
from blockyard.report.latency_tables import ranged, with_intervals
from blockyard.report.lineup import Lineup, row
from blockyard.report.table import Cell, Column, Table, Unit, marked

_LISTED = 3
_USUAL_BUFFER = 256
_PHASES_APART = 6
"""Further phases stand in frames.csv."""
_SHARES = marked("median", "p99", "p99.9", "worst", unit=Unit.SHARE)
QUEUE = (
    "queue: how many buffers must be queued so that no allocation ever empties it, were this the audio thread and its "
    "own work took half of each buffer; for: a rule of thumb for that latency, "
    + ", ".join(f"{name} up to {most / 1e6:g} ms" for most, name in frames.LATENCY_USES)
)


def short(lineup: Lineup, view: View) -> Iterator[Block]:
    """One budget, one audio buffer, and the worst frames."""
    cuts = lineup.cuts
    yield Paragraph(words(lineup.of.section, cuts))
    if isinstance(cuts.frames, FrameCut):
        yield frame_table(lineup, view, cuts.frames.rate_hz)
        yield worst_table(lineup, 1)
    if isinstance(cuts.audio, FrameCut):
        yield buffer_table(lineup, view, _USUAL_BUFFER)


def every(lineup: Lineup) -> Iterator[Block]:
    """Everything that report.txt says of frames."""
    cuts = lineup.cuts
    yield from _phases(lineup)
    yield Heading(f"Frames, {lineup.variant}", 3)
    yield Paragraph(words(lineup.of.section, cuts))
    for view in lineup.of.shown:
        yield from budget_tables(lineup, view)
    if isinstance(cuts.frames, FrameCut):
        yield worst_table(lineup, _LISTED)
        yield slowest_table(lineup, _LISTED)


def budget_tables(lineup: Lineup, view: View) -> Iterator[Table]:
    """Each rate and each length of buffer; the intervals, which are of the same times, once for frames."""
    cuts = lineup.cuts
    if isinstance(cuts.frames, FrameCut):
        for hz in cuts.frames.rates_hz:
            table = frame_table(lineup, view, hz)
            yield from with_intervals(table) if hz == cuts.frames.rate_hz else [table]
        apart = [name for name in cuts.phases.names if name != cuts.judged_phase and cuts.frames_in(name).any()]
        for name in apart[:_PHASES_APART] if len(cuts.phases.names) > 1 else ():
            yield frame_table(lineup, view, cuts.frames.rate_hz, name)
    if isinstance(cuts.audio, FrameCut):
        for samples in frames.AUDIO_SAMPLES:
            yield from with_intervals(buffer_table(lineup, view, samples))


def words(section: Section, cuts: Cuts) -> str:
    """Where frames come from, which thread is judged, which phase."""
    if isinstance(cuts.frames, NoFrames):
        return f"No frames: {cuts.frames.reason}."
    phase = cuts.judged_phase
    only = "" if phase is None else f" Only frames of play are judged; {_others(cuts)}."
    return f"Frames: {cuts.frames.words}; {cuts.frames.frames:,} in each repeat.{only}"


def _others(cuts: Cuts) -> str:
    others = [
        f"{phase.name} {phase.begin_ns / 1e9:.1f} to {phase.end_ns / 1e9:.1f} s"
        for phase in cuts.phases.phases
        if phase.name != PLAY
    ]
    shown = ", ".join(others[:4])
    return (
        f"{shown} and {len(others) - 4} more stretches are left out"
        if len(others) > 4
        else f"{shown} {'is' if len(others) == 1 else 'are'} left out"
    )


def frame_table(lineup: Lineup, view: View, hz: float, phase: str | None = None) -> Table:
    """Shares of one rate's budget, of a phase's frames or of those that are judged."""
    phase, budget = phase or lineup.cuts.judged_phase, 1e9 / hz

    def cells(one: AllocatorFigures) -> list[Cell] | None:
        found = one.budget_of_frames(view, budget, phase)
        return found and [*_shares(one, *found), *found[0].over.values()]

    over = [Column(f"over\n{round(share * 100)} %", Unit.COUNT) for share in frames.SHARES_OVER]
    name = f"share of a frame at {hz:g} Hz ({units.duration(budget)}){_where(phase)}"
    return lineup.table(name, [*_SHARES, *over], cells, view.value, asked="worst")


def buffer_table(lineup: Lineup, view: View, samples: int) -> Table:
    """The same of an audio buffer, how many must be queued, the latency that this costs, and what it is good for."""
    phase, period = lineup.cuts.judged_phase, samples / frames.AUDIO_HZ * 1e9

    def cells(one: AllocatorFigures) -> list[Cell] | None:
        found = one.budget_of_buffers(view, samples, phase)
        if found is None:
            return None
        audio, tails = found
        return [*_shares(one, audio.verdict, tails), audio.buffers, audio.latency_ns, audio.use]

    name = f"share of an audio buffer of {samples} samples ({units.duration(period)}){_where(phase)}"
    queue = [Column("queue", Unit.COUNT, True), Column("latency", Unit.NS, True), Column("for")]
    return lineup.table(name, [*_SHARES, *queue], cells, view.value, notes=[QUEUE], asked="worst")


def _shares(one: AllocatorFigures, found: Verdict, tails: frames.Tails) -> list[Cell]:
    """Of the budget; those of tail percentiles with their interval."""
    if not found.frames:
        return [None] * len(_SHARES)
    cells: list[Cell] = []
    for label, share in found.shares.items():
        cells.append(ranged(one, share, tails.get(label), found.budget_ns))
    return [*cells, found.worst]


def worst_table(lineup: Lineup, listed: int) -> Table:
    """The worst frames of each allocator, as-run, and what filled them."""

    def cells(frame: WorstFrame) -> list[Cell]:
        took = [frame.allocator_ns, frame.median_ns, frame.events, frame.mallocs_ns, frame.frees_ns]
        return [_moment(frame), frame.repeat, *took]

    columns = [
        Column("at s"),
        Column("run", Unit.COUNT),
        Column("time", Unit.NS),
        Column("median\nof runs", Unit.NS),
        Column("events", Unit.COUNT),
        Column("in\nmallocs", Unit.NS),
        Column("in\nfrees", Unit.NS),
    ]
    return lineup.rows(
        "worst frames",
        columns,
        [row(one, cells(frame)) for one in lineup.members for frame in worst_frames.of(one, listed)],
        View.AS_RUN.value,
        notes=[
            "time: in the allocator, of an allocation with its first touch; run: the repeat in which it was the worst"
        ],
    )


def slowest_table(lineup: Lineup, listed: int) -> Table:
    """The slowest event in each of these frames."""

    def cells(one: AllocatorFigures, frame: WorstFrame) -> list[Cell]:
        call = units.call(frame.slowest_kind, frame.slowest_size)
        why = causes.class_of(frame.slowest_cause) if one.looked_into else None
        return [_moment(frame), frame.slowest_event, call, frame.slowest_ns, why]

    rows = [row(one, cells(one, frame)) for one in lineup.members for frame in worst_frames.of(one, listed)]
    columns = [Column("at s"), Column("event", Unit.COUNT), Column("what"), Column("took", Unit.NS), Column("cause")]
    return lineup.rows("the slowest event in each of them", columns, rows, absent="these runs did not look for causes")


def _moment(frame: WorstFrame) -> str:
    return f"{frame.start_ns / 1e9:.3f}"


def _phases(lineup: Lineup) -> Iterator[Block]:
    """Each phase apart: how much of it allocation takes, on all threads, and what a malloc and a free cost in it."""
    cuts = lineup.cuts
    names = cuts.phases.names
    if len(names) < 2:
        return
    yield Heading(f"Phases, {lineup.variant}", 3)
    how = "as the program named them" if cuts.phases.named else "found by how much is allocated and kept"
    spans = {name: sum(phase.seconds for phase in cuts.phases.phases if phase.name == name) for name in names}
    listed = ", ".join(f"{name} {units.duration(seconds * 1e9)}" for name, seconds in spans.items())
    yield Paragraph(f"Phases, {how}: {listed}.")
    for name in names:
        for view in lineup.of.shown:
            yield from with_intervals(_phase_table(lineup, view, name, spans[name]))


def _phase_table(lineup: Lineup, view: View, name: str, seconds: float) -> Table:
    phases = lineup.cuts.phases
    mine = np.array([phase.name == name for phase in phases.phases])

    def cells(one: AllocatorFigures) -> list[Cell]:
        total = float(np.median(one.phases.as_run_ns[:, mine].sum(axis=1)))
        mallocs, frees = (one.whole(view, operation, name) for operation in (Operation.MALLOC, Operation.FREE))
        known = {
            operation: one.known(view, operation, lineup.part(operation), phase=name).get(P999.label)
            for operation in (Operation.MALLOC, Operation.FREE)
        }
        return [
            total,
            total / 1e9 / seconds if seconds else None,
            mallocs.percentile(P50),
            ranged(one, mallocs.percentile(P999), known[Operation.MALLOC]),
            mallocs.worst,
            ranged(one, frees.percentile(P999), known[Operation.FREE]),
            frees.worst,
        ]

    columns = [
        Column("time\nspent", Unit.NS, True),
        Column("of\nphase", Unit.SHARE, True),
        *marked("malloc\np50", "malloc\np99.9", "malloc\nworst", "free\np99.9", "free\nworst"),
    ]
    return lineup.table(
        f"{name}, time in the allocator on all threads and latencies", columns, cells, view.value, asked="time\nspent"
    )


def _where(phase: str | None) -> str:
    return "" if phase is None else f" in {phase}"
