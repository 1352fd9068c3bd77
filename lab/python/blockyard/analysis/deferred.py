"""What an allocator costs outside the calls that are timed: background threads, work after the last free, threads that
start and end, and where it puts blocks. Medians over repeats; None is not known."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from blockyard.analysis.sections import AllocatorRuns, Run


@dataclass(frozen=True)
class Deferred:
    """Times in ns."""

    background_threads: float | None
    background_cpu: float | None
    background_names: tuple[str, ...]
    cpu: float | None
    """Of the whole process, timed."""
    cpu_untimed: float | None
    """Of a replay without a clock around each event."""
    timed: float | None
    """Sum of the timed calls and touches of all threads."""
    timed_and_background: float | None
    """The same and the processor time of the allocator's own threads, summed by repeat."""
    after_last_free_cpu: float | None
    settled_after: float | None
    """How long after teardown memory still changed."""
    resident_after: float | None
    thread_start: float | None
    thread_stop: float | None
    walk_a_block: float | None
    pollute_bytes: float | None


def of(allocator: AllocatorRuns) -> Deferred:
    def middle(
        *path: str, runs: tuple[Run, ...] = allocator.runs, of_list: Callable[[list[float]], float] = mean
    ) -> float | None:
        known = [value for run in runs if (value := _number(run.facts, path, of_list)) is not None]
        return float(median(known)) if known else None

    sums = [
        calls + behind
        for run in allocator.runs
        if (calls := _number(run.facts, ("timed_ns",), mean)) is not None
        and (behind := _number(run.facts, ("background", "cpu_ns"), mean)) is not None
    ]
    names = {str(name) for run in allocator.runs for name in _list(run.facts.get("background"), "names")}
    return Deferred(
        middle("background", "threads"),
        middle("background", "cpu_ns"),
        tuple(sorted(names)),
        middle("cpu_ns"),
        middle("cpu_ns", runs=allocator.untimed),
        middle("timed_ns"),
        float(median(sums)) if sums else None,
        middle("after_last_free", "cpu_ns"),
        middle("after_last_free", "settled_after_ns"),
        middle("after_last_free", "resident_bytes"),
        middle("thread_start_ns"),
        middle("thread_stop_ns"),
        middle("walk_ns_a_block"),
        middle("pollute_bytes"),
    )


def _number(facts: Any, path: tuple[str, ...], of_list: Callable[[list[float]], float]) -> float | None:
    for name in path:
        facts = facts.get(name) if isinstance(facts, dict) else None
    if isinstance(facts, list):
        numbers = [float(one) for one in facts if isinstance(one, int | float)]
        return of_list(numbers) if numbers else None
    return float(facts) if isinstance(facts, int | float) and not isinstance(facts, bool) else None


def _list(found: Any, name: str) -> list[Any]:
    inner = found.get(name) if isinstance(found, dict) else None
    return inner if isinstance(inner, list) else []
