"""What an allocator costs outside the calls that are timed: background threads, work after the last free, threads that
start and end, and where it puts blocks. Medians over repeats; None is not known."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median

from blockyard.analysis.facts import RunFacts
from blockyard.analysis.sections import AllocatorRuns, Run


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
    def middle(pick: Callable[[RunFacts], float | None], runs: tuple[Run, ...] = allocator.runs) -> float | None:
        known = [value for run in runs if (value := pick(run.facts)) is not None]
        return float(median(known)) if known else None

    def behind(facts: RunFacts) -> float | None:
        return facts.background.cpu_ns if facts.background else None

    def together(facts: RunFacts) -> float | None:
        calls, threads = facts.timed_ns, behind(facts)
        return calls + threads if calls is not None and threads is not None else None

    def after(name: str) -> float | None:
        return middle(lambda facts: getattr(facts.after_last_free, name, None))

    return Deferred(
        middle(lambda facts: facts.background.threads if facts.background else None),
        middle(behind),
        middle(lambda facts: facts.cpu_ns),
        middle(lambda facts: facts.cpu_ns, allocator.untimed),
        middle(lambda facts: facts.timed_ns),
        middle(together),
        after("cpu_ns"),
        after("settled_after_ns"),
        after("resident_bytes"),
        middle(lambda facts: mean(facts.thread_start_ns) if facts.thread_start_ns else None),
        middle(lambda facts: mean(facts.thread_stop_ns) if facts.thread_stop_ns else None),
        middle(lambda facts: facts.walk_ns_a_block),
        middle(lambda facts: facts.pollute_bytes),
    )
