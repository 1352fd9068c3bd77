"""Whether a section's runs can be trusted, and what to do where they can't: grades, and sentences for every report."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from blockyard.analysis.sections import AllocatorRuns, Run, Section
from blockyard.units import duration, listed

LATE_NS = 1_000_000
"""A run is marked when one event in a hundred started later than this against the journal's clock. A millisecond is
6 % of a frame at 60 Hz: bursts then run into one another, and what an allocator does by the clock (purging) comes at
other events."""
WAITS = 0.01
"""A run is marked when more than this share of its events had to wait for another thread's event."""


INVERSIONS = 0.10
"""Share of events that began before one that the journal has before them. Threads meet by microseconds, and one that
is a little late makes all events of the others out of order: runs that kept their pace to 10 us showed 2 to 5 %."""
LOST_THREADS = 0.25
"""Share of the replay's threads that lost their pace."""
SLOW_TIMER_NS = 100.0
"""An empty timed call of more than this hides what an allocator does (usual are 5 to 30 ns)."""
BUSY_CORES = 0.25
"""Cores' worth of processor time that others took during the run."""
_FAIR = 0.1
"""Of each limit above: beyond this share of it a run is fair and no longer good."""


class Grade(IntEnum):
    """How far a run is what the journal asks for. Only POOR must be said in every report that uses the run."""

    GOOD = 0
    FAIR = 1
    POOR = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Graded:
    """One run's grade, and what made it, by subject; what is not known does not count."""

    grade: Grade
    values: dict[str, float | None]
    """`late p99`, `inversions`, `lost threads`, `timer floor`, `busy cores`: in ns, shares of events and threads,
    cores."""
    poor: tuple[str, ...]
    """The subjects that are poor."""


_LIMITS = {
    "late p99": LATE_NS,
    "inversions": INVERSIONS,
    "lost threads": LOST_THREADS,
    "timer floor": SLOW_TIMER_NS,
    "busy cores": BUSY_CORES,
}
_FLOOR_FAIR_NS = 40.0


_FOLLOWS = ("late p99", "inversions", "lost threads")
"""What also follows from the allocator's own time: a slow call makes the events behind it late, as in the program."""


def _values(run: Run, pace: str) -> dict[str, float | None]:
    """By subject. At full speed there is no clock to be late against: lateness and lost pace do not count."""
    facts = run.facts
    return {
        "late p99": None if pace == "max" else facts.late.p99,
        "inversions": _share(facts.order_inversions, facts.events),
        "lost threads": None if pace == "max" else _share(facts.interrupted_threads, facts.replay_threads),
        "timer floor": _share(facts.floor_call_ticks, facts.ticks_per_ns),
        "busy cores": facts.busy_cores,
    }


def _most(runs: Iterable[Run], pace: str) -> dict[str, float | None]:
    """By subject, of whatever run."""
    each = [_values(run, pace) for run in runs]
    return {subject: max((v for of in each if (v := of[subject]) is not None), default=None) for subject in _LIMITS}


def grade(run: Run, section: Section) -> Graded:
    """What `null`, which takes no time, does not show on the same journal is the allocator's own and no fault of the
    run; without `null` nobody can tell, and it counts."""
    values = _values(run, section.pace)
    null = _most((other for one in section.measured if one.is_null for other in one.runs), section.pace)
    grades = {}
    for subject, value in values.items():
        limit = _LIMITS[subject]
        fair = _FLOOR_FAIR_NS if subject == "timer floor" else limit * _FAIR
        if value is not None:
            if subject in _FOLLOWS and (least := null[subject]) is not None:
                value = min(value, least)
            grades[subject] = Grade.POOR if value > limit else Grade.FAIR if value > fair else Grade.GOOD
    return Graded(
        max(grades.values(), default=Grade.GOOD),
        values,
        tuple(subject for subject, one in grades.items() if one is Grade.POOR),
    )


def worst(allocator: AllocatorRuns, section: Section) -> Graded:
    """Of an allocator's runs: the worst value of each subject, from whatever run."""
    graded = [grade(run, section) for run in allocator.runs]
    return Graded(
        max(one.grade for one in graded),
        _most(allocator.runs, section.pace),
        tuple(subject for subject in _LIMITS if any(subject in one.poor for one in graded)),
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def sentences(section: Section) -> list[str]:
    """Everything a reader of this section's figures must know, worst first; empty when all is well."""
    found = [*section.machines, *_failed(section), *_unequal_repeats(section)]
    # At full speed there is no clock to be late against.
    paced = section.measured if section.pace != "max" else []
    late = [one for one in paced if "late p99" in worst(one, section).poor]
    if late:
        most = max(run.facts.late.p99 or 0 for allocator in late for run in allocator.runs)
        who = (
            "no allocator could keep the journal's pace in every run"
            if len(late) == len(section.measured) > 1
            else f"{_names(late)} could not keep the journal's pace in some run"
        )
        found.append(
            f"{who} (one event in a hundred started "
            f"{duration(most)} late or more): read those tails with care; replay on a machine with more "
            "free cores, close other programs, or choose a lower --pace"
        )
    waits = {one.name: [_share(run.facts.order_waits, run.facts.events) or 0.0 for run in one.runs] for one in paced}
    waiting = [one for one in paced if max(waits[one.name]) > WAITS]
    if waiting:
        found.append(
            f"{_names(waiting)}: more than one event in a hundred had to wait for another thread to allocate "
            "its block first, so threads ran closer together than in the program; more free cores help"
        )
    found += _below_grade(section)
    found += _outruns(section)
    locked = [allocator for allocator in section.measured if allocator.needs_lock]
    if locked and section.threads != "one":
        several = len(locked) > 1
        found.append(
            f"{_names(locked)} {'are' if several else 'is'} not thread-safe: every call took a lock, and "
            f"{'their' if several else 'its'} figures include it"
        )
    pooled = [allocator for allocator in section.measured if allocator.needs_pool]
    if pooled:
        found.append(
            f"{_names(pooled)} {'work' if len(pooled) > 1 else 'works'} out of a pool whose size was taken "
            "from the journal beforehand"
        )
    if section.threads == "one":
        found.append(
            "all events ran on one thread (--threads one), whatever thread the program used: nothing here "
            "tells about locks, remote frees or per-thread caches"
        )
    return found


def _below_grade(section: Section) -> list[str]:
    """Of every subject but lateness, which has its own sentence."""
    found = {one.name: worst(one, section) for one in section.measured}
    remarks = []
    for subject, (words, remedy) in _BELOW.items():
        poor = [one for one in section.measured if subject in found[one.name].poor]
        if poor:
            most = max(found[one.name].values[subject] or 0.0 for one in poor)
            who = "every allocator" if len(poor) == len(section.measured) > 1 else _names(poor)
            remarks.append(f"{who}: {words.format(most)}: {remedy}")
    return remarks


_BELOW = {
    "lost threads": (
        "{:.0%} of the threads lost their pace in some run",
        "read their tails with care; replay on more free cores, or at a lower --pace",
    ),
    "inversions": (
        "{:.1%} of the events of some run came before one that the journal has before them",
        "threads met the allocator in another order than in the program; more free cores help",
    ),
    "timer floor": (
        "an empty timed call takes up to {:.0f} ns",
        "latencies near that are the timer's; use a machine whose cycle counter is cheap to read",
    ),
    "busy cores": (
        "others took up to {:.2f} cores of the machine during a run",
        "close what else runs and replay, as every tail holds some of it",
    ),
}


def _outruns(section: Section) -> list[str]:
    """Runs whose threads caught up with the reader of a journal that is larger than the memory for it."""
    waits = [
        (allocator, found)
        for allocator in section.measured
        for run in allocator.runs
        if (found := outruns(run)) is not None and found[0] > 0
    ]
    if not waits:
        return []
    times, waited_ns = max((found for _, found in waits), key=lambda found: found[1])
    names = _names([allocator for allocator in section.measured if any(one is allocator for one, _ in waits)])
    facts = (
        f"threads caught up with the reader of the journal, {times:,} times in the worst run, and waited for it "
        f"{duration(waited_ns)} in all"
    )
    if section.pace == "max":
        return [
            f"{names}: {facts}; the waits lie between events and no latency has them in it, but how "
            "long the whole took is the disk's speed as well: give the journal's events more memory "
            "(--stream-above), or replay a stretch"
        ]
    return [
        f"{names}: {facts}: the events behind each wait came late and closer together than in the "
        "program, so read those tails with care; give the journal's events more memory (--stream-above), or keep "
        "a core and the disk free"
    ]


def outruns(run: Run) -> tuple[int, float] | None:
    """How often threads waited for the reader of a streamed journal, and how many ns; None where it lay in memory."""
    stream = run.facts.stream
    return None if stream is None else (stream.outruns, stream.waited_ns)


def _failed(section: Section) -> list[str]:
    found = []
    for allocator in section.allocators:
        reasons = sorted({run.facts.why for run in allocator.failures})
        for reason in reasons:
            count = sum(run.facts.why == reason for run in allocator.failures)
            found.append(
                f"{allocator.name} failed in {count} of {len(allocator.runs) + len(allocator.failures)} runs: {reason}"
            )
    return found


def _unequal_repeats(section: Section) -> list[str]:
    counts = [len(allocator.runs) for allocator in section.measured]
    if not counts or min(counts) == max(counts):
        return []
    short = [allocator for allocator in section.measured if len(allocator.runs) < max(counts)]
    few = ", ".join(f"{allocator.name} has {len(allocator.runs)}" for allocator in short)
    return [
        f"not every allocator has all its {max(counts)} repeats ({few}): its inherent figures are minima over "
        "fewer runs and so a little higher; 'blockyard replay --resume' completes them"
    ]


def _names(allocators: list[AllocatorRuns]) -> str:
    return listed([allocator.name for allocator in allocators])
