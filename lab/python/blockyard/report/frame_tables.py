"""Frames, audio buffers and phases as tables: what allocation takes of each budget, and which frames were the worst."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from blockyard.analysis import causes, frames, worst_frames
from blockyard.analysis.cuts import Cuts
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, FrameCut, NoFrames, Verdict
from blockyard.analysis.latency import P50, P999, Operation, Part, View
from blockyard.analysis.phases import PLAY
from blockyard.analysis.sections import Section
from blockyard.report import units
from blockyard.report.blocks import Block, Heading, Paragraph, Table
from blockyard.report.comparison import UNSUPPORTED, null_rows, short_name
from blockyard.report.frame_verdicts import Ends, audio_ends, audio_verdict, frame_ends, frame_verdict

_LISTED = 3
_USUAL_BUFFER = 256
_PHASES_APART = 6
"""Further phases stand in frames.csv."""
_SHORT = {View.AS_RUN: "as-run", View.ATTRIBUTED: "attr.", View.INHERENT: "inh."}


def blocks(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Block]:
    """Everything that report.txt says of frames, for the allocators of one variant."""
    cuts = figures[0].cuts
    found: list[Block] = [*phase_blocks(figures, views, variant)]
    found.append(Heading(f"Frames, {variant}", 3))
    found.append(Paragraph(words(section, cuts)))
    if isinstance(cuts.frames, FrameCut):
        found += [frame_table(figures, views, hz, variant, cuts.judged_phase) for hz in cuts.frames.rates_hz]
        apart = (
            [name for name in cuts.phases.names if name != cuts.judged_phase and cuts.frames_in(name).any()]
            if len(cuts.phases.names) > 1
            else []
        )
        found += [frame_table(figures, views, cuts.frames.rate_hz, variant, name) for name in apart[:_PHASES_APART]]
        found += frame_intervals(figures, views, variant, cuts.judged_phase)
        found += worst_tables(section, figures, variant)
    if isinstance(cuts.audio, FrameCut):
        for samples in frames.AUDIO_SAMPLES:
            found.append(buffer_table(figures, views, samples, variant, cuts.judged_phase))
            found.append(queue_table(figures, views, samples, variant, cuts.judged_phase))
        found += audio_intervals(figures, views, variant, cuts.judged_phase)
        found.append(
            Paragraph(
                "Queue: how many buffers must be queued so that no allocation ever empties it, were this the audio "
                f"thread and its own work took half of each buffer. A rule of thumb for latency: {uses()}."
            )
        )
    return found


def short(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Block]:
    """One budget, one audio buffer, and the worst frames."""
    cuts = figures[0].cuts
    found: list[Block] = [Paragraph(words(section, cuts))]
    if isinstance(cuts.frames, FrameCut):
        found.append(frame_table(figures, views, cuts.frames.rate_hz, variant, cuts.judged_phase))
        found.append(worst_tables(section, figures, variant, 1)[0])
    if isinstance(cuts.audio, FrameCut):
        found.append(audio_table(figures, views, _USUAL_BUFFER, variant, cuts.judged_phase))
    return found


def terminal(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> list[Block]:
    """The budget at 60 Hz, or at the rate that frames were cut at."""
    cuts = figures[0].cuts
    found: list[Block] = [Paragraph(words(section, cuts))]
    if isinstance(cuts.frames, FrameCut):
        found.append(frame_table(figures, views, cuts.frames.rate_hz, variant, cuts.judged_phase))
    return found


def words(section: Section, cuts: Cuts) -> str:
    """Where frames come from, which thread is judged, which phase."""
    if isinstance(cuts.frames, NoFrames):
        return f"No frames: {cuts.frames.reason}."
    phase = cuts.judged_phase
    only = "" if phase is None else f" Only frames of play are judged; {_others(cuts)}."
    return f"Frames: {cuts.frames.words}; {cuts.frames.frames:,} in each repeat.{only}"


def _others(cuts: Cuts) -> str:
    told = [
        f"{phase.name} {phase.begin_ns / 1e9:.1f} to {phase.end_ns / 1e9:.1f} s"
        for phase in cuts.phases.phases
        if phase.name != PLAY
    ]
    shown = ", ".join(told[:4])
    return (
        f"{shown} and {len(told) - 4} more stretches are left out"
        if len(told) > 4
        else f"{shown} {'is' if len(told) == 1 else 'are'} left out"
    )


def frame_table(
    figures: Sequence[AllocatorFigures], views: Sequence[View], hz: float, variant: str, phase: str | None
) -> Table:
    """Shares of one rate's budget in the first view, with the worst frame of the others beside."""
    budget = 1e9 / hz
    return _share_table(
        f"share of a frame at {hz:g} Hz ({units.duration(budget)})",
        figures,
        views,
        variant,
        phase,
        lambda one, view: frame_verdict(one, view, budget, phase),
    )


def buffer_table(
    figures: Sequence[AllocatorFigures], views: Sequence[View], samples: int, variant: str, phase: str | None
) -> Table:
    """The same of an audio buffer."""

    def of(one: AllocatorFigures, view: View) -> Verdict | None:
        found = audio_verdict(one, view, samples, phase)
        return found.verdict if found else None

    return _share_table(f"share of an audio buffer of {_length(samples)}", figures, views, variant, phase, of)


def queue_table(
    figures: Sequence[AllocatorFigures], views: Sequence[View], samples: int, variant: str, phase: str | None
) -> Table:
    """How many such buffers must be queued, the latency that this costs, and what it is good for."""
    rows = []
    for one in figures:
        verdicts = [audio_verdict(one, view, samples, phase) for view in views]
        rows.append(
            [
                short_name(one),
                *(cell for place, found in enumerate(verdicts) for cell in _queue(found)[: 3 if place == 0 else 2]),
            ]
        )
    names = [
        "allocator",
        *(
            f"{_SHORT[view] if place == 0 else ''}\n{label}"
            for view_place, view in enumerate(views)
            for place, label in enumerate(("queue", "latency", "for")[: 3 if view_place == 0 else 2])
        ),
    ]
    return Table(
        f"queue of audio buffers of {_length(samples)}{_where(phase)}, {variant}",
        names,
        rows,
        _notes(rows),
        dim=null_rows(figures),
    )


def audio_table(
    figures: Sequence[AllocatorFigures], views: Sequence[View], samples: int, variant: str, phase: str | None
) -> Table:
    """Shares and queue in one, for the terminal."""
    first, others = views[0], views[1:]
    rows = []
    for one in figures:
        found = audio_verdict(one, first, samples, phase)
        beside = [audio_verdict(one, view, samples, phase) for view in others]
        rows.append(
            [
                short_name(one),
                *_shares(found.verdict if found else None),
                *_queue(found),
                *(str(other.buffers) if other else units.ABSENT for other in beside),
            ]
        )
    return Table(
        f"share of an audio buffer of {_length(samples)}{_where(phase)}, {first.value}, {variant}",
        [
            "allocator",
            "median",
            "p99",
            "p99.9",
            "worst",
            "queue",
            "latency",
            "for",
            *(f"{_SHORT[view]}\nqueue" for view in others),
        ],
        rows,
        _notes(rows),
        dim=null_rows(figures),
    )


def _share_table(
    title: str,
    figures: Sequence[AllocatorFigures],
    views: Sequence[View],
    variant: str,
    phase: str | None,
    of: Callable[[AllocatorFigures, View], Verdict | None],
) -> Table:
    first, others = views[0], views[1:]
    rows = []
    for one in figures:
        found = of(one, first)
        beside = [of(one, view) for view in others]
        worst = [units.share(other.worst if other and other.frames else None) for other in beside]
        rows.append([short_name(one), *_shares(found), *worst, *_over(found)])
    return Table(
        f"{title}{_where(phase)}, {first.value}, {variant}",
        [
            "allocator",
            "median",
            "p99",
            "p99.9",
            "worst",
            *(f"{_SHORT[view]}\nworst" for view in others),
            "over\n1 %",
            "over\n5 %",
            "over\n10 %",
        ],
        rows,
        _notes(rows),
        dim=null_rows(figures),
    )


def frame_intervals(
    figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str, phase: str | None
) -> Iterator[Table]:
    """What allocation takes of a frame, whatever the budget, at the percentiles that enough frames support."""
    for percentile in frames.TAILS:
        rows = []
        for one in figures:
            cells = []
            for view in views:
                found, ends = frame_verdict(one, view, 1.0, phase), frame_ends(one, view, phase)
                value = found.shares[percentile.label] if found else None
                cells += [
                    units.ABSENT if value is None else units.duration(value),
                    units.span(ends.get(percentile.label) if ends else None),
                ]
            rows.append([short_name(one), *cells])
        if any(cell != units.ABSENT for row in rows for cell in row[1:]):
            yield Table(
                f"{percentile.label} of the time in the allocator a frame{_where(phase)}, with 95 % intervals, "
                f"{variant}",
                ["allocator", *(name for view in views for name in (f"\n{_SHORT[view]}", "95 %\ninterval"))],
                rows,
                _notes(rows),
                dim=null_rows(figures),
            )


def audio_intervals(
    figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str, phase: str | None
) -> Iterator[Table]:
    """The intervals of the shares of audio buffers."""
    for percentile in frames.TAILS:
        for view in views:
            rows = [
                [
                    short_name(one),
                    *(
                        _share_span(
                            audio_ends(one, view, samples, phase), percentile.label, samples / frames.AUDIO_HZ * 1e9
                        )
                        for samples in frames.AUDIO_SAMPLES
                    ),
                ]
                for one in figures
            ]
            if any(cell != units.ABSENT for row in rows for cell in row[1:]):
                yield Table(
                    f"{percentile.label} of the share of an audio buffer{_where(phase)}: 95 % intervals, "
                    f"{view.value}, {variant}",
                    ["allocator", *(f"{samples}\nsamples" for samples in frames.AUDIO_SAMPLES)],
                    rows,
                    _notes(rows),
                    dim=null_rows(figures),
                )


def worst_tables(
    section: Section, figures: Sequence[AllocatorFigures], variant: str, listed: int = _LISTED
) -> list[Table]:
    """The worst frames of each allocator, as-run, and what filled them: mallocs and frees, and the slowest of these."""
    times, slowest = [], []
    for one in figures:
        for frame in worst_frames.of(section, one, listed):
            where = [short_name(one), f"{frame.start_ns / 1e9:.3f}"]
            times.append(
                [
                    *where,
                    str(frame.repeat),
                    units.duration(frame.allocator_ns),
                    units.duration(frame.median_ns),
                    units.number(frame.events),
                    units.duration(frame.mallocs_ns),
                    units.duration(frame.frees_ns),
                ]
            )
            slowest.append(
                [
                    *where,
                    units.number(frame.slowest_event),
                    frame.slowest,
                    units.duration(frame.slowest_ns),
                    causes.class_of(frame.slowest_cause) if one.looked_into else units.ABSENT,
                ]
            )
    return [
        Table(
            f"worst frames, as-run, {variant}",
            ["allocator", "at s", "run", "time", "median\nof runs", "events", "in\nmallocs", "in\nfrees"],
            times,
            [
                "time: in the allocator, of an allocation with its first touch; run: the repeat in which it was the "
                "worst"
            ],
            dim=_null_times(times),
        ),
        Table(
            f"the slowest event in each of them, {variant}",
            ["allocator", "at s", "event", "what", "took", "cause"],
            slowest,
            [f"{units.ABSENT} these runs did not look for causes"]
            if any(units.ABSENT in row for row in slowest)
            else [],
            dim=_null_times(slowest),
        ),
    ]


def _null_times(rows: list[list[str]]) -> frozenset[int]:
    return frozenset(place for place, row in enumerate(rows) if row[0] == "null")


def phase_blocks(figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> Iterator[Block]:
    """Each phase apart: how much of it allocation takes, on all threads, and what a malloc and a free cost in it."""
    cuts = figures[0].cuts
    names = cuts.phases.names
    if len(names) < 2:
        return
    yield Heading(f"Phases, {variant}", 3)
    how = "as the program named them" if cuts.phases.named else "told apart by how much is allocated and kept"
    spans = {name: sum(phase.seconds for phase in cuts.phases.phases if phase.name == name) for name in names}
    told = ", ".join(f"{name} {units.duration(seconds * 1e9)}" for name, seconds in spans.items())
    yield Paragraph(f"Phases, {how}: {told}.")
    for name in names:
        mine = np.array([phase.name == name for phase in cuts.phases.phases])
        rows = []
        for one in figures:
            total = float(np.median(one.phases.as_run_ns[:, mine].sum(axis=1)))
            mallocs, frees = (
                one.in_phase(View.AS_RUN, operation, name) for operation in (Operation.MALLOC, Operation.FREE)
            )
            tails = [one.in_phase(view, Operation.MALLOC, name) for view in views if view is not View.AS_RUN]
            rows.append(
                [
                    short_name(one),
                    units.duration(total),
                    units.share(total / 1e9 / spans[name]) if spans[name] else units.ABSENT,
                    units.latency(mallocs.percentile(P50)),
                    units.latency(mallocs.percentile(P999)),
                    units.latency(mallocs.worst),
                    *(units.latency(tail.worst) for tail in tails),
                    units.latency(frees.percentile(P999)),
                ]
            )
        yield Table(
            f"{name}: time in the allocator on all threads, and latencies, {variant}",
            [
                "allocator",
                "time\nspent",
                "of\nphase",
                "malloc\np50",
                "\np99.9",
                "\nworst",
                *(f"{_SHORT[view]}\nworst" for view in views if view is not View.AS_RUN),
                "free\np99.9",
            ],
            rows,
            _notes(rows),
            dim=null_rows(figures),
        )
        yield _phase_intervals(figures, views, variant, name)


def _phase_intervals(figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str, name: str) -> Table:
    """Of the percentiles of malloc, in each view, and of free."""
    touched = any(one.touched for one in figures)
    shown = [
        *((view, Operation.MALLOC, Part.BOTH if touched else Part.CALL) for view in views),
        (views[0], Operation.FREE, Part.CALL),
    ]
    rows = [
        [
            short_name(one),
            *(
                units.interval(one.intervals(view, operation, part, phase=name)[P999.label])
                for view, operation, part in shown
            ),
        ]
        for one in figures
    ]
    return Table(
        f"{name}: 95 % intervals of p99.9, {variant}",
        ["allocator", *(f"{operation.value}\n{_SHORT[view]}" for view, operation, _ in shown)],
        rows,
        _notes(rows),
        dim=null_rows(figures),
    )


def _shares(found: Verdict | None) -> list[str]:
    if found is None or not found.frames:
        return [units.ABSENT] * 4
    return [
        *(units.share(found.shares[percentile.label]) for percentile in frames.PERCENTILES),
        units.share(found.worst),
    ]


def _over(found: Verdict | None) -> list[str]:
    return [units.ABSENT if found is None else _percent(found.over[share]) for share in frames.SHARES_OVER]


def _percent(count: int) -> str:
    return f"{count:,}"


def _share_span(ends: Ends | None, label: str, budget_ns: float) -> str:
    """`3.1–4.2 %`."""
    told = ends.get(label) if ends else None
    if told is None:
        return units.ABSENT
    low, high = (units.share(end / budget_ns) for end in told)
    return low if low == high else f"{low.removesuffix(' %')}–{high}"


def _queue(found: AudioVerdict | None) -> list[str]:
    return [str(found.buffers), units.duration(found.latency_ns), found.use] if found else [units.ABSENT] * 3


def _where(phase: str | None) -> str:
    return "" if phase is None else f" in {phase}"


def _length(samples: int) -> str:
    """`64 samples (1.33 ms)`."""
    return f"{samples} samples ({units.duration(samples / frames.AUDIO_HZ * 1e9)})"


def _notes(rows: list[list[str]]) -> list[str]:
    return [UNSUPPORTED] if any(units.ABSENT in row for row in rows) else []


def uses() -> str:
    """The rule of thumb of latencies: `pro audio up to 2 ms, ...`."""
    return ", ".join(f"{name} up to {most / 1e6:g} ms" for most, name in frames.LATENCY_USES)
