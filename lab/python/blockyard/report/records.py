"""Every figure of the tables as data: summary, frames, memory and runs, each as CSV and as Parquet."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from blockyard.analysis import fidelity, frames, memory
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import AudioVerdict, FrameCut, Verdict
from blockyard.analysis.latency import PERCENTILES, SIZE_CLASSES, WITH_INTERVAL, Operation, Part, Percentile, View
from blockyard.analysis.noise import Figure
from blockyard.analysis.sections import Section
from blockyard.files import whole, whole_csv
from blockyard.report import total_tables
from blockyard.report.lineup import MeasuredSection

_COMBINATIONS = tuple(
    (operation, part)
    for operation in Operation
    for part in Part
    if operation is not Operation.FREE or part is Part.CALL
)
_LATE = (("p50", "late_p50_ns"), ("p99", "late_p99_ns"), ("p999", "late_p99.9_ns"), ("max", "late_most_ns"))
_FACTS = (
    "order_waits wall_ns cpu_ns timed_ns minor_faults major_faults voluntary_switches involuntary_switches "
    "peak_resident_bytes teardown_resident_bytes walk_ns_a_block"
).split()


def write_all(target: Path, measured: Sequence[MeasuredSection]) -> list[Path]:
    """Shares are of their whole, times in ns; null is not known or not supported."""
    found = {
        "summary": [row for one in measured for row in _latencies(one.section, one.asked, one.views)],
        "frames": [row for one in measured for row in _budgets(one.section, one.asked, one.views)],
        "totals": [row for one in measured for row in total_tables.records(one.section, one.asked)],
        "memory": [row for one in measured for row in _memory(one.section, one.asked)],
        "runs": [row for one in measured for row in _runs(one.section, one.asked)],
    }
    return [path for name, rows in found.items() for path in write(target, name, rows)]


def write(target: Path, name: str, found: list[dict[str, object]]) -> list[Path]:
    """NAME.csv and NAME.parquet; nothing where there are no rows."""
    if not found:
        return []
    table = pa.Table.from_pylist([{key: _held(value) for key, value in row.items()} for row in found])
    plain, parquet = target / f"{name}.csv", target / f"{name}.parquet"
    whole(plain, lambda path: pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="needed")))
    whole(parquet, lambda path: pq.write_table(table, path, compression="zstd"))
    return [plain, parquet]


def _held(value: object) -> object:
    """What no column of 64 bits holds is not known."""
    return None if isinstance(value, int) and abs(value) >= 1 << 63 else value


def write_cells(target: Path, found: list[dict[str, object]]) -> list[Path]:
    """tables.csv: a row a cell, whose value is a number or a word."""
    return [whole_csv(target / "tables.csv", found[0], (row.values() for row in found))] if found else []


def _latencies(
    section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View]
) -> Iterator[dict[str, object]]:
    """One row a view, operation, part and size class (and all sizes together). Latencies in ns; null is unsupported."""
    for one in figures:
        for view in views:
            for operation, part in _COMBINATIONS:
                for size_class in (None, *range(len(SIZE_CLASSES))):
                    found = one.distribution(view, operation, part, size_class)
                    if not found.samples:
                        continue
                    supported = {percentile.label: found.percentile(percentile) for percentile in PERCENTILES}
                    ends = _ends(one, one.known(view, operation, part, size_class), WITH_INTERVAL, "ns")
                    figure = {"best": found.best, **supported, "worst": found.worst, "mean": found.mean}
                    yield {
                        **section.named,
                        "threads": section.threads,
                        "allocator": one.name,
                        "variant": one.runs.variant,
                        "version": one.runs.version,
                        "repeats": len(one.runs.runs),
                        "view": view.value,
                        "operation": operation.value,
                        "part": part.value,
                        "size_class": "all" if size_class is None else SIZE_CLASSES[size_class],
                        "samples": found.samples,
                        **{
                            f"{label}_ns": None if value is None else round(value.value, 3)
                            for label, value in figure.items()
                        },
                        **ends,
                        "worst_is_at_least": found.worst.at_least,
                        "floor_call_ns": round(one.runs.floors_ns[0], 3),
                        "floor_touch_ns": round(one.runs.floors_ns[1], 3),
                    }


def _ends(
    one: AllocatorFigures, known: dict[str, Figure], percentiles: Sequence[Percentile], unit: str, whole: float = 1.0
) -> dict[str, float | None]:
    """The intervals' ends: `p99.9_low_ns`, `p99.9_high_ns`, or shares of a `whole`."""
    found = {}
    for percentile in percentiles:
        ends = one.together.ends(known.get(percentile.label)) or (None, None)
        for name, end in zip(("low", "high"), ends, strict=True):
            key = f"{percentile.label}_{name}_ns" if unit == "ns" else f"{percentile.label}_{unit}_{name}"
            found[key] = None if end is None else round(end / whole, 3 if unit == "ns" else 6)
    return found


def _budgets(
    section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View]
) -> Iterator[dict[str, object]]:
    """frames.csv: a row an allocator, view, phase and budget. Shares are of the budget, 1 is all of it."""
    for one in figures:
        rates = one.cuts.frames.rates_hz if isinstance(one.cuts.frames, FrameCut) else ()
        for view in views:
            for phase in (None, *(one.cuts.phases.names if len(one.cuts.phases.names) > 1 else ())):
                shared = {**section.named, "allocator": one.name, "view": view.value, "phase": phase or "all"}
                for hz in rates:
                    if found := one.budget_of_frames(view, 1e9 / hz, phase):
                        yield {**shared, "budget": f"{hz:g} Hz", **_figures(one, *found), **_queue(None)}
                for samples in frames.AUDIO_SAMPLES:
                    if found := one.budget_of_buffers(view, samples, phase):
                        audio, tails = found
                        name = f"{samples} samples"
                        yield {**shared, "budget": name, **_figures(one, audio.verdict, tails), **_queue(audio)}


def _figures(one: AllocatorFigures, found: Verdict, tails: frames.Tails) -> dict[str, object]:
    return {
        "budget_ns": round(found.budget_ns, 1),
        "frames": found.frames,
        **{f"{label}_share": None if share is None else round(share, 6) for label, share in found.shares.items()},
        **_ends(one, tails, frames.TAILS, "share", found.budget_ns),
        "worst_share": round(found.worst, 6),
        **{f"over_{round(share * 100)}_percent": count for share, count in found.over.items()},
    }


def _queue(audio: AudioVerdict | None) -> dict[str, object]:
    return {
        "queued_buffers": audio.buffers if audio else None,
        "queue_latency_ns": round(audio.latency_ns) if audio else None,
        "good_for": audio.use if audio else None,
    }


def _memory(section: Section, figures: Sequence[AllocatorFigures]) -> Iterator[dict[str, object]]:
    """memory.csv: a row an allocator and time, the times common to all; bytes are medians over repeats."""
    at_ns = memory.times(figures)
    for one in figures:
        found = memory.series(one, at_ns)
        peak = memory.figures(one, at_ns)
        if found is None or peak is None or one.runs.is_null:
            continue
        external = np.maximum(found.resident - found.live * (1 + peak.overhead), 0)
        external[: int(found.live.argmax())] = np.nan
        for place, at in enumerate(at_ns):
            yield {
                **section.named,
                "allocator": one.name,
                "time_ns": round(float(at)),
                "resident_bytes": round(float(found.resident[place])),
                "live_bytes": round(float(found.live[place])),
                "live_blocks": round(float(found.blocks[place])),
                "external_bytes": None if np.isnan(external[place]) else round(float(external[place])),
                "page_faults_per_s": round(float(found.faults_per_s[place]), 1),
            }


def _runs(section: Section, figures: Sequence[AllocatorFigures]) -> Iterator[dict[str, object]]:
    """Shares are of events and of threads; null is not known."""
    for one in figures:
        for run in one.runs.runs:
            graded = fidelity.grade(run, section)
            yield {
                **section.named,
                "allocator": one.name,
                "variant": one.runs.variant,
                "repeat": run.repeat,
                "grade": graded.grade.word,
                "poor": ", ".join(graded.poor),
                **{name: getattr(run.facts.late, which) for which, name in _LATE},
                "inversions_share": graded.values["inversions"],
                "lost_threads_share": graded.values["lost threads"],
                "timer_floor_ns": graded.values["timer floor"],
                "busy_cores": graded.values["busy cores"],
                **{name: getattr(run.facts, name) for name in _FACTS},
            }
