"""Memory, and what an allocator costs outside the calls that are timed (background threads, work after the last free,
threads that start and end, where it puts blocks), as tables. Medians over repeats."""

from collections.abc import Callable, Iterator
from operator import attrgetter
from statistics import mean

from blockyard import units
from blockyard.analysis import memory
from blockyard.analysis.memory import MemoryFigures
from blockyard.analysis.sections import AllocatorRuns, middle
from blockyard.report.lineup import Figure, Lineup
from blockyard.report.table import Column, Table, Unit

_UNKNOWN = "not measured in these runs"


def memory_tables(lineup: Lineup) -> Iterator[Table]:
    """Peaks and fragmentation; by live block where allocators tell their rounding; what was given back, where bytes
    fell."""
    at_ns = memory.times(lineup.competing)
    found = {one.name: of for one in lineup.competing if (of := memory.figures(one, at_ns)) is not None}
    if not found:
        return
    yield lineup.figures(
        "memory",
        [
            (Column("peak\nresident", Unit.BYTES, True), _known("peak")),
            (Column("at most\nlive", Unit.BYTES, True), _known("at_peak_live")),
            (Column("internal", Unit.SHARE, True), _known("overhead")),
            (Column("a block", Unit.BYTES, True), _known("bytes_a_block")),
            (Column("external", Unit.BYTES, True), _known("kept")),
            (Column("faults/s", Unit.RATE, True), _known("faults_per_s")),
            (Column("teardown", Unit.BYTES, True), _known("teardown")),
        ],
        # One whose memory nobody looked at has a row of dashes.
        lambda one: None if one.runs.is_null else found.get(one.name, ()),
        f"at most {units.size(next(iter(found.values())).peak_live)} live",
        notes=[
            "internal: resident beyond live bytes at the moment of most live bytes (rounding, bookkeeping, pages "
            "partly used), and by live block; external: the most that was resident later beyond live and that share "
            "(holes, memory held back); teardown: left when all was freed"
        ],
        absent=_UNKNOWN,
        asked="peak\nresident",
    )
    if any(of.rounding_a_block is not None for of in found.values()):
        yield lineup.figures(
            "internal fragmentation, a live block",
            [
                (Column("all of it", Unit.BYTES, True), _known("bytes_a_block")),
                (Column("rounding", Unit.BYTES, True), _known("rounding_a_block")),
                (Column("bookkeeping", Unit.BYTES, True), _known("bookkeeping_a_block")),
            ],
            lambda one: found.get(one.name),
            notes=[
                "rounding: what the allocator says of the blocks alive at the end; bookkeeping: the rest, headers and "
                "tables, and pages partly used"
            ],
            absent="the allocator does not tell",
        )
    if any(of.unload is not None for of in found.values()):
        yield lineup.figures(
            "given back after the largest fall of live bytes",
            [
                (Column("from", Unit.NS), attrgetter("begin_ns")),
                (Column("to", Unit.NS), attrgetter("end_ns")),
                (Column("freed", Unit.BYTES), attrgetter("freed")),
                (Column("given back", Unit.BYTES), attrgetter("returned")),
                (Column("share", Unit.SHARE), lambda gone: gone.returned / gone.freed),
            ],
            lambda one: getattr(found.get(one.name), "unload", None),
        )


def _known(name: str) -> Callable[[MemoryFigures | tuple[()]], float | None]:
    return lambda found: getattr(found, name, None)


def processor_time(lineup: Lineup) -> Table:
    return _deferred(
        lineup,
        "processor time",
        [
            (Column("calls", Unit.NS), attrgetter("spent_ns")),
            (Column("own\nthreads", Unit.COUNT), _middle("background.threads")),
            (Column("their\nCPU", Unit.NS), _middle("background.cpu_ns")),
            (Column("calls and\ntheir CPU", Unit.NS, True), attrgetter("spent_with_background_ns")),
            (Column("whole\nprocess", Unit.NS, True), _middle("cpu_ns")),
        ],
        "medians over repeats; calls: with first touch; calls and their CPU: what the allocator cost in all while the "
        "clock ran, the work of its own threads included",
        asked="calls and\ntheir CPU",
    )


def deferred_tables(lineup: Lineup) -> Iterator[Table]:
    """What an allocator costs outside the calls that are timed."""
    yield processor_time(lineup)
    after = _deferred(
        lineup,
        "after the last free",
        [
            (Column("CPU of\nown threads", Unit.NS), _middle("after_last_free.cpu_ns")),
            (Column("settled\nafter", Unit.NS), _middle("after_last_free.settled_after_ns")),
            (Column("resident\nthen", Unit.BYTES, True), _middle("after_last_free.resident_bytes")),
        ],
        "what an allocator's threads still do, until 50 ms went by without a change in it or in the resident memory; "
        "what it would do later (many purge after 0.5 to 10 s) is not seen",
    )
    threads = _deferred(
        lineup,
        "threads and placement",
        [
            (Column("a thread's start", Unit.NS, True), _mean("thread_start_ns")),
            (Column("its end", Unit.NS, True), _mean("thread_stop_ns")),
            (Column("walk a fresh block", Unit.NS, True), _middle("walk_ns_a_block")),
            (Column("polluted between", Unit.BYTES), _middle("pollute_bytes")),
        ],
        "walk: to read the freshly allocated blocks afterwards",
    )
    for table in (after, threads):
        if any(cell is not None for row in table.rows for cell in row.cells[:3]):
            yield table


def _deferred(lineup: Lineup, name: str, figures: list[Figure], note: str, asked: str = "") -> Table:
    return lineup.figures(name, figures, lambda one: one.runs, notes=[note], absent=_UNKNOWN, asked=asked)


def _middle(name: str) -> Callable[[AllocatorRuns], float | None]:
    """The median over the runs that know it."""
    return lambda runs: middle(runs.runs, attrgetter(name))


def _mean(name: str) -> Callable[[AllocatorRuns], float | None]:
    """The median of each run's mean."""
    return lambda runs: middle(runs.runs, lambda facts: mean(found) if (found := getattr(facts, name)) else None)
