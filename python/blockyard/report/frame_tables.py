"""Frames, audio buffers and phases as tables: what allocation takes of each budget, and which frames were the worst."""

from collections.abc import Iterator, Sequence

import numpy as np

from blockyard.analysis import causes, frames, worst_frames
from blockyard.analysis.cuts import Cuts
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, FrameCut, NoFrames, Verdict
from blockyard.analysis.latency import P50, P999, Operation, View
from blockyard.analysis.phases import PLAY
from blockyard.analysis.sections import Section
from blockyard.report import units
from blockyard.report.blocks import Block, Heading, Paragraph, Table
from blockyard.report.comparison import UNSUPPORTED, null_rows, short_name

TERMINAL_HZ = 60
_LISTED = 3
_PHASES_APART = 6
"""Further phases stand in frames.csv."""
_SHORT = {View.AS_RUN: "as-run", View.ATTRIBUTED: "attr.", View.INHERENT: "inh."}


def judged_phase(cuts: Cuts) -> str | None:
    """The phase whose frames are judged: play where there is loading or teardown beside it, else everything (None)."""
    names = cuts.phases.names
    return PLAY if PLAY in names and len(names) > 1 else None


def blocks(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Block]:
    """Everything that report.txt says of frames, for the allocators of one variant."""
    cuts = figures[0].cuts
    found: list[Block] = [*phase_blocks(figures, views, variant)]
    found.append(Heading(f"Frames, {variant}", 3))
    found.append(Paragraph(words(section, cuts)))
    if isinstance(cuts.frames, FrameCut):
        found += [frame_table(figures, views, hz, variant, judged_phase(cuts)) for hz in frames.RATES_HZ]
        apart = [name for name in cuts.phases.names if name != judged_phase(cuts)] if len(cuts.phases.names) > 1 else []
        found += [frame_table(figures, views, TERMINAL_HZ, variant, name) for name in apart[:_PHASES_APART]]
        found.append(worst_table(section, figures, variant))
    if isinstance(cuts.audio, FrameCut):
        found += [audio_table(figures, views, samples, variant, judged_phase(cuts)) for samples in frames.AUDIO_SAMPLES]
        found.append(Paragraph(
            "Queue: how many buffers must be queued so that no allocation ever empties it, were this the audio thread "
            f"and its own work took half of each buffer. A rule of thumb for latency: {_uses()}."))
    return found


def terminal(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Block]:
    """The verdict at 60 Hz and of one audio buffer."""
    cuts = figures[0].cuts
    found: list[Block] = [Paragraph(words(section, cuts))]
    if isinstance(cuts.frames, FrameCut):
        found.append(frame_table(figures, views, TERMINAL_HZ, variant, judged_phase(cuts)))
    if isinstance(cuts.audio, FrameCut):
        found.append(audio_table(figures, views, 256, variant, judged_phase(cuts)))
    return found


def words(section: Section, cuts: Cuts) -> str:
    """Where frames come from, which thread is judged, which phase."""
    if isinstance(cuts.frames, NoFrames):
        return f"No frames: {cuts.frames.reason}."
    phase = judged_phase(cuts)
    only = "" if phase is None else f" Only frames of play are judged; {_others(cuts)}."
    return f"Frames: {cuts.frames.words}; {cuts.frames.frames:,} in each repeat.{only}"


def _others(cuts: Cuts) -> str:
    told = [f"{phase.name} {phase.begin_ns / 1e9:.1f} to {phase.end_ns / 1e9:.1f} s" for phase in cuts.phases.phases
            if phase.name != PLAY]
    shown = ", ".join(told[:4])
    return f"{shown} and {len(told) - 4} more stretches are left out" if len(told) > 4 else \
        f"{shown} {'is' if len(told) == 1 else 'are'} left out"


def frame_table(figures: Sequence[AllocatorFigures], views: Sequence[View], hz: float, variant: str,
                phase: str | None) -> Table:
    """Shares of one rate's budget, as-run, with the worst frame of the other views beside."""
    budget = 1e9 / hz
    others = [view for view in views if view is not View.AS_RUN]
    rows = []
    for one in figures:
        found = frame_verdict(one, View.AS_RUN, budget, phase)
        beside = [frame_verdict(one, view, budget, phase) for view in others]
        rows.append([short_name(one), *_shares(found), *(_share(other.worst if other else None) for other in beside),
                     *_over(found)])
    where = "" if phase is None else f" in {phase}"
    return Table(f"share of a frame at {hz:g} Hz ({units.duration(budget)}){where}, {variant}",
                 ["allocator", "median", "p99", "p99.9", "worst", *(f"{_SHORT[view]}\nworst" for view in others),
                  "over\n1 %", "over\n5 %", "over\n10 %"], rows, _notes(rows, figures, phase), dim=null_rows(figures))


def frame_verdict(one: AllocatorFigures, view: View, budget_ns: float, phase: str | None) -> Verdict | None:
    """Of one phase's frames, or of all; None where the view is not known."""
    key = ("sorted frames", view, phase)
    if key not in one.known:
        series = one.frames
        values = series.of(view) if series else None
        chosen = values if values is None or phase is None else values[:, one.cuts.frames_in(phase)]
        one.known[key] = None if chosen is None else np.sort(chosen, axis=None)
    values = one.known[key]
    return None if values is None else frames.verdict_of_sorted(values, budget_ns)


def audio_verdict(one: AllocatorFigures, view: View, samples: int, phase: str | None) -> AudioVerdict | None:
    key = ("audio", view, samples, phase)
    if key not in one.known:
        series = one.audio
        values = series.of(view) if series else None
        chosen = values if values is None or phase is None else values[:, one.cuts.audio_in(phase)]
        one.known[key] = None if chosen is None else frames.audio_verdict(chosen, samples)
    return one.known[key]


def audio_table(figures: Sequence[AllocatorFigures], views: Sequence[View], samples: int, variant: str,
                phase: str | None) -> Table:
    others = [view for view in views if view is not View.AS_RUN]
    rows = []
    for one in figures:
        found = audio_verdict(one, View.AS_RUN, samples, phase)
        beside = [audio_verdict(one, view, samples, phase) for view in others]
        queue = [str(found.buffers), units.duration(found.latency_ns), found.use] if found else [units.ABSENT] * 3
        rows.append([short_name(one), *_shares(found.verdict if found else None), *queue,
                     *(str(other.buffers) if other else units.ABSENT for other in beside)])
    length = samples / frames.AUDIO_HZ * 1e9
    where = "" if phase is None else f" in {phase}"
    return Table(f"share of an audio buffer of {samples} samples ({units.duration(length)}){where}, {variant}",
                 ["allocator", "median", "p99", "p99.9", "worst", "queue", "latency", "for",
                  *(f"{_SHORT[view]}\nqueue" for view in others)], rows, _notes(rows, figures, None),
                 dim=null_rows(figures))


def worst_table(section: Section, figures: Sequence[AllocatorFigures], variant: str) -> Table:
    """The worst frames of each allocator, as-run, and what filled them."""
    rows = []
    notes = ["time: in the allocator, of an allocation with its first touch; run: the repeat in which it was the worst"]
    for one in figures:
        for frame in worst_frames.of(section, one, _LISTED):
            rows.append([short_name(one), f"{frame.start_ns / 1e9:.3f}", str(frame.repeat),
                         units.duration(frame.allocator_ns), units.duration(frame.median_ns),
                         units.number(frame.events), f"{units.duration(frame.slowest_ns)} {frame.slowest}",
                         causes.class_of(frame.slowest_cause) if one.looked_into else units.ABSENT])
    return Table(f"worst frames, as-run, {variant}",
                 ["allocator", "at s", "run", "time", "median\nof runs", "events", "the slowest of them", "its\ncause"],
                 rows, notes)


def phase_blocks(figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> Iterator[Block]:
    """Each phase apart: how much of it allocation takes, on all threads, and what a malloc and a free cost in it."""
    cuts = figures[0].cuts
    names = cuts.phases.names
    if len(names) < 2:
        return
    yield Heading(f"Phases, {variant}", 3)
    how = "as the program named them" if cuts.phases.named else "told apart by how much is allocated and kept"
    spans = {name: sum(phase.seconds for phase in cuts.phases.phases if phase.name == name) for name in names}
    yield Paragraph(f"Phases, {how}: {', '.join(f'{name} {seconds:.1f} s' for name, seconds in spans.items())}.")
    for name in names:
        mine = np.array([phase.name == name for phase in cuts.phases.phases])
        rows = []
        for one in figures:
            total = float(np.median(one.phases.as_run_ns[:, mine].sum(axis=1)))
            mallocs, frees = (one.in_phase(View.AS_RUN, operation, name) for operation in
                              (Operation.MALLOC, Operation.FREE))
            tails = [one.in_phase(view, Operation.MALLOC, name) for view in views if view is not View.AS_RUN]
            rows.append([short_name(one), units.duration(total), _share(total / 1e9 / spans[name]) if spans[name] else
                         units.ABSENT, units.latency(mallocs.percentile(P50)), units.latency(mallocs.percentile(P999)),
                         units.latency(mallocs.worst), *(units.latency(tail.worst) for tail in tails),
                         units.latency(frees.percentile(P999))])
        yield Table(f"{name}: time in the allocator on all threads, and latencies, {variant}",
                    ["allocator", "time in\nallocator", "of the\nphase", "malloc\np50", "\np99.9", "\nworst",
                     *(f"{_SHORT[view]}\nworst" for view in views if view is not View.AS_RUN), "free\np99.9"], rows,
                    [UNSUPPORTED] if any(units.ABSENT in row for row in rows) else [], dim=null_rows(figures))


def rows(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View]) -> Iterator[dict[str, object]]:
    """frames.csv: a row an allocator, view, phase and budget. Shares are of the budget, 1 is all of it."""
    for one in figures:
        for view in views:
            for phase in (None, *(one.cuts.phases.names if len(one.cuts.phases.names) > 1 else ())):
                shared = {"journal": section.journal, "pace": section.pace, "touch": section.touch,
                          "allocator": one.name, "view": view.value, "phase": phase or "all"}
                for hz in frames.RATES_HZ:
                    if found := frame_verdict(one, view, 1e9 / hz, phase):
                        yield {**shared, "budget": f"{hz} Hz", **_figures(found), **_queue(None)}
                for samples in frames.AUDIO_SAMPLES:
                    if audio := audio_verdict(one, view, samples, phase):
                        yield {**shared, "budget": f"{samples} samples", **_figures(audio.verdict), **_queue(audio)}


def _figures(found: Verdict) -> dict[str, object]:
    return {"budget_ns": round(found.budget_ns, 1), "frames": found.frames,
            **{f"{label}_share": None if share is None else round(share, 6) for label, share in found.shares.items()},
            "worst_share": round(found.worst, 6),
            **{f"over_{round(share * 100)}_percent": count for share, count in found.over.items()}}


def _queue(audio: AudioVerdict | None) -> dict[str, object]:
    return {"queued_buffers": audio.buffers if audio else None,
            "queue_latency_ns": round(audio.latency_ns) if audio else None, "good_for": audio.use if audio else None}


def _shares(found: Verdict | None) -> list[str]:
    if found is None:
        return [units.ABSENT] * 4
    return [*(_share(found.shares[percentile.label]) for percentile in frames.PERCENTILES), _share(found.worst)]


def _over(found: Verdict | None) -> list[str]:
    return [units.ABSENT if found is None else _percent(found.over[share]) for share in frames.SHARES_OVER]


def _percent(count: int) -> str:
    return f"{count:,}"


def _share(share: float | None) -> str:
    """`0.03 %`, `12 %`, `210 %`."""
    if share is None:
        return units.ABSENT
    percent = share * 100
    if 0 < percent < 0.01:
        return "<.01 %"
    return f"{percent:.0f} %" if percent >= 99.5 else f"{percent:.2g} %"


def _notes(rows: list[list[str]], figures: Sequence[AllocatorFigures], phase: str | None) -> list[str]:
    return [UNSUPPORTED] if any(units.ABSENT in row for row in rows) else []


def _uses() -> str:
    return ", ".join(f"{name} up to {units.duration(most)}".replace(".00", "") for most, name in frames.LATENCY_USES)
