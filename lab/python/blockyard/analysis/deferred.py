"""What an allocator costs outside the calls that are timed: background threads, work after the last free, threads that
start and end, and where it puts blocks. Medians over repeats; None is not known."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean

from blockyard.analysis.facts import RunFacts
from blockyard.analysis.sections import AllocatorRuns, middle


@dataclass(frozen=True)
class Deferred:
    """Times in ns."""

    background_threads: float | None
    background_cpu: float | None
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
    def over_runs(pick: Callable[[RunFacts], float | None]) -> float | None:
        return middle(allocator.runs, pick)

    def behind(facts: RunFacts) -> float | None:
        return facts.background.cpu_ns if facts.background else None

    def together(facts: RunFacts) -> float | None:
        calls, threads = facts.timed_ns, behind(facts)
        return calls + threads if calls is not None and threads is not None else None

    def after(name: str) -> float | None:
        return over_runs(lambda facts: getattr(facts.after_last_free, name, None))

    return Deferred(
        over_runs(lambda facts: facts.background.threads if facts.background else None),
        over_runs(behind),
        over_runs(lambda facts: facts.cpu_ns),
        middle(allocator.untimed, lambda facts: facts.cpu_ns),
        over_runs(lambda facts: facts.timed_ns),
        over_runs(together),
        after("cpu_ns"),
        after("settled_after_ns"),
        after("resident_bytes"),
        over_runs(lambda facts: mean(facts.thread_start_ns) if facts.thread_start_ns else None),
        over_runs(lambda facts: mean(facts.thread_stop_ns) if facts.thread_stop_ns else None),
        over_runs(lambda facts: facts.walk_ns_a_block),
        over_runs(lambda facts: facts.pollute_bytes),
    )
