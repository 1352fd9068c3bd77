"""runs.csv: a row a run, with its grade and what made it, and what the run took as a whole."""

from collections.abc import Iterator, Sequence

from blockyard.analysis import fidelity
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.sections import Run, Section

_LATE = (("p50", "late_p50_ns"), ("p99", "late_p99_ns"), ("p999", "late_p99.9_ns"), ("max", "late_most_ns"))
_FACTS = (
    "order_waits",
    "wall_ns",
    "cpu_ns",
    "timed_ns",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
    "peak_resident_bytes",
    "teardown_resident_bytes",
    "walk_ns_a_block",
)


def rows(section: Section, figures: Sequence[AllocatorFigures]) -> Iterator[dict[str, object]]:
    """Shares are of events and of threads; null is not known."""
    for one in figures:
        for run in one.runs.runs:
            graded = fidelity.grade(run, section.pace)
            yield {
                "journal": section.journal,
                "pace": section.pace,
                "touch": section.touch,
                "allocator": one.name,
                "variant": one.runs.variant,
                "repeat": run.repeat,
                "grade": graded.grade.word,
                "poor": ", ".join(graded.poor),
                **{name: _late(run, key) for key, name in _LATE},
                "inversions_share": graded.values["inversions"],
                "lost_threads_share": graded.values["lost threads"],
                "timer_floor_ns": graded.values["timer floor"],
                "busy_cores": graded.values["busy cores"],
                **{name: _number(run.facts.get(name)) for name in _FACTS},
            }


def _late(run: Run, key: str) -> float | None:
    told = run.facts.get("lateness_ns")
    return _number(told.get(key)) if isinstance(told, dict) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
