"""The page's tables beside that of latencies, which it computes for any stretch itself: of the whole run, as analysed.

Each says what its columns are measured in, so that one renderer sorts and writes all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from blockyard.analysis import causes, deferred, fidelity, frames, memory, syscalls
from blockyard.analysis.figures import RATE_LIMITS_NS, AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, FrameCut, Verdict
from blockyard.analysis.latency import P999, Operation, View
from blockyard.analysis.sections import Section
from blockyard.report import cause_tables, frame_tables, frame_verdicts, memory_tables, units

NS, BYTES, COUNT, RATE, SHARE, TEXT = "ns", "bytes", "count", "rate", "share", "text"
_DEFERRED = memory_tables.DEFERRED_NOTE[0].upper() + memory_tables.DEFERRED_NOTE[1:]
_UNKNOWN = f"{units.ABSENT}: not measured in these runs."


@dataclass(frozen=True)
class Table:
    """`rows` by view and allocator; the view is empty where the table is of no view. A column is (name, unit, whether
    its lowest is marked)."""

    name: str
    words: str
    columns: tuple[tuple[str, str, bool], ...]
    rows: dict[str, dict[str, list[Any]]]

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "words": self.words, "columns": self.columns, "rows": self.rows}


def tables(
    section: Section, members: Sequence[AllocatorFigures], views: Sequence[View], machine: dict[str, Any]
) -> Iterator[Table]:
    """In the order of the choice; what the runs do not have is left out."""
    yield from _frames(section, members, views)
    if any(one.looked_into for one in members):
        yield from _causes(members)
    yield from _calls(members, machine)
    yield from _memory(members)
    yield from _deferred(members)
    yield _fidelity(section, members)


def _frames(section: Section, members: Sequence[AllocatorFigures], views: Sequence[View]) -> Iterator[Table]:
    cuts = members[0].cuts
    phase = cuts.judged_phase
    said = f"Share of the budget that allocation takes, with 95 % intervals. {frame_tables.words(section, cuts)}"
    shares = (("median", SHARE, True), ("p99", SHARE, True), ("p99.9", SHARE, True), ("worst", SHARE, True))
    over = tuple((f"over {round(share * 100)} %", COUNT, False) for share in frames.SHARES_OVER)
    for hz in cuts.frames.rates_hz if isinstance(cuts.frames, FrameCut) else ():
        yield Table(
            f"a frame at {hz:g} Hz",
            said,
            (("frames", COUNT, False), *shares, *over),
            {
                view.value: {
                    one.name: _verdict(found, frame_verdicts.frame_ends(one, view, phase))
                    for one in members
                    if (found := frame_verdicts.frame_verdict(one, view, 1e9 / hz, phase))
                }
                for view in views
            },
        )
    queue = (("buffers queued", COUNT, True), ("latency", NS, True), ("good for", TEXT, False))
    for samples in frames.AUDIO_SAMPLES if isinstance(cuts.audio, FrameCut) else ():
        yield Table(
            f"an audio buffer of {samples} samples",
            f"{said} Queued: so many buffers that no allocation ever "
            "empties the queue, were this the audio thread and its own work took half of each buffer. A rule "
            f"of thumb for latency: {frame_tables.uses()}.",
            (("buffers", COUNT, False), *shares, *over, *queue),
            {
                view.value: {
                    one.name: _audio(found, frame_verdicts.audio_ends(one, view, samples, phase))
                    for one in members
                    if (found := frame_verdicts.audio_verdict(one, view, samples, phase))
                }
                for view in views
            },
        )


def _verdict(found: Verdict, ends: frame_verdicts.Ends | None) -> list[Any]:
    """A share with an interval is a list of it and its ends."""
    shares = [_share(share, (ends or {}).get(label), found.budget_ns) for label, share in found.shares.items()]
    return [found.frames, *shares, round(found.worst, 7), *found.over.values()]


def _share(share: float | None, ends: tuple[float, float] | None, budget_ns: float) -> float | list[float] | None:
    if share is None or ends is None:
        return None if share is None else round(share, 7)
    return [round(value, 7) for value in (share, *(end / budget_ns for end in ends))]


def _audio(found: AudioVerdict, ends: frame_verdicts.Ends | None) -> list[Any]:
    return [*_verdict(found.verdict, ends), found.buffers, round(found.latency_ns), found.use]


def _causes(members: Sequence[AllocatorFigures]) -> Iterator[Table]:
    said = f"As-run, mallocs and frees together. {cause_tables.looked(members)} {cause_tables.OWN_NOTE}."
    for limit in RATE_LIMITS_NS:
        yield Table(
            f"events above {limit // 1000} us a second, by cause",
            said,
            (*((name, RATE, False) for name in causes.CLASSES), ("all", RATE, True)),
            {"": {one.name: _rates(one, limit) for one in members}},
        )
    for operation in (Operation.MALLOC, Operation.FREE):
        yield Table(
            f"the slowest 0.1 % of {operation.value}s, by cause",
            f"Share of their time. {said}",
            (("p99.9", NS, True), *((name, SHARE, False) for name in causes.CLASSES), ("events", COUNT, False)),
            {"": {one.name: _tail(one, operation) for one in members}},
        )


def _rates(one: AllocatorFigures, limit: float) -> list[float | None]:
    found = causes.rates(one, limit)
    return [*(found[name] if found else None for name in causes.CLASSES), one.rate_above(limit)]


def _tail(one: AllocatorFigures, operation: Operation) -> list[float | None]:
    edge = one.whole(View.AS_RUN, operation).percentile(P999)
    if edge is None:
        return [None] * (len(causes.CLASSES) + 2)
    found = causes.breakdown(one, operation, edge.value)
    total = sum(part.ns for part in found.values())
    return [
        edge.value,
        *(found[name].ns / total if total else None for name in causes.CLASSES),
        sum(part.events for part in found.values()),
    ]


def _calls(members: Sequence[AllocatorFigures], machine: dict[str, Any]) -> Iterator[Table]:
    traces = {one.name: trace for one in members if (trace := syscalls.read(one.runs, machine)) is not None}
    if not traces:
        return
    rows = {}
    for name, trace in traces.items():
        counted = ((trace.totals(), 3), (trace.outside(), 2), (trace.own_threads(), 2))
        rows[name] = [
            value
            for calls, most in counted
            for value in (sum(calls.values()), syscalls.phrase(calls.most_common(most)) or units.ABSENT)
        ]
    yield Table(
        "system calls",
        "Of a traced run of the same journal, whose latencies are never shown. At ends: while "
        "the program's threads start and end, and free what is left.",
        (
            ("in events", COUNT, True),
            ("most often in events", TEXT, False),
            ("at ends", COUNT, False),
            ("most often at ends", TEXT, False),
            ("own threads", COUNT, False),
            ("most often in own threads", TEXT, False),
        ),
        {"": rows},
    )


def _memory(members: Sequence[AllocatorFigures]) -> Iterator[Table]:
    competing = [one for one in members if not one.runs.is_null]
    at_ns = memory.times(competing)
    found = {one.name: told for one in competing if (told := memory.figures(one, at_ns)) is not None}
    if not found:
        return
    yield Table(
        "memory",
        "Internal: resident beyond live bytes at the moment of most live bytes (rounding, "
        "bookkeeping, pages partly used), and by live block, its rounding and the rest apart where the "
        "allocator tells; external: the most that was resident later beyond live and that share (holes, "
        "memory held back); given back: within a second of the largest fall of live bytes; teardown: left "
        f"when all was freed. {_UNKNOWN}",
        (
            ("peak resident", BYTES, True),
            ("at most live", BYTES, True),
            ("internal", SHARE, True),
            ("a block", BYTES, True),
            ("rounding", BYTES, True),
            ("bookkeeping", BYTES, True),
            ("external", BYTES, True),
            ("freed", BYTES, False),
            ("given back", BYTES, False),
            ("faults/s", RATE, True),
            ("teardown", BYTES, True),
        ),
        {
            "": {
                name: [
                    told.peak,
                    told.at_peak_live,
                    told.overhead,
                    told.bytes_a_block,
                    told.rounding_a_block,
                    told.bookkeeping_a_block,
                    told.kept,
                    told.unload.freed if told.unload else None,
                    told.unload.returned if told.unload else None,
                    told.faults_per_s,
                    told.teardown,
                ]
                for name, told in found.items()
            }
        },
    )


def _deferred(members: Sequence[AllocatorFigures]) -> Iterator[Table]:
    found = {one.name: deferred.of(one.runs) for one in members}
    yield Table(
        "processor time",
        "Medians over repeats; untimed: a replay without a clock around each event. "
        f"{_DEFERRED}. After last free, settled after, resident then: "
        f"{memory_tables.SETTLED_NOTE}. {_UNKNOWN}",
        (
            ("timed calls", NS, False),
            ("own threads", COUNT, False),
            ("their CPU", NS, False),
            ("calls and their CPU", NS, True),
            ("whole process", NS, True),
            ("untimed", NS, True),
            ("after last free", NS, False),
            ("settled after", NS, False),
            ("resident then", BYTES, True),
        ),
        {
            "": {
                name: [
                    told.timed,
                    told.background_threads,
                    told.background_cpu,
                    told.timed_and_background,
                    told.cpu,
                    told.cpu_untimed,
                    told.after_last_free_cpu,
                    told.settled_after,
                    told.resident_after,
                ]
                for name, told in found.items()
            }
        },
    )
    yield Table(
        "threads and placement",
        f"Walk: to read the freshly allocated blocks afterwards. {_UNKNOWN}",
        (
            ("a thread's start", NS, True),
            ("its end", NS, True),
            ("walk a fresh block", NS, True),
            ("polluted between events", BYTES, False),
        ),
        {
            "": {
                name: [told.thread_start, told.thread_stop, told.walk_a_block, told.pollute_bytes]
                for name, told in found.items()
            }
        },
    )


def _fidelity(section: Section, members: Sequence[AllocatorFigures]) -> Table:
    rows = {}
    for one in members:
        graded = fidelity.worst(one.runs, section.pace)
        late, inversions, lost, floor, busy = (
            graded.values.get(name) for name in ("late p99", "inversions", "lost threads", "timer floor", "busy cores")
        )
        rows[one.name] = [graded.grade.word, late, inversions, lost, floor, busy]
    return Table(
        "how far to trust the runs",
        "The worst repeat of each allocator; what is poor stands among the warnings above, with what to do about it.",
        (
            ("grade", TEXT, False),
            ("late p99", NS, True),
            ("out of order", SHARE, True),
            ("threads that lost pace", SHARE, True),
            ("timer floor", NS, False),
            ("cores busy", RATE, True),
        ),
        {"": rows},
    )
