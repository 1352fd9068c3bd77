"""Memory and deferred cost as tables."""

from collections.abc import Callable, Iterator
from functools import cache

from blockyard.analysis import deferred, memory
from blockyard.analysis.deferred import Deferred
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.memory import MemoryFigures
from blockyard.report import units
from blockyard.report.lineup import Lineup
from blockyard.report.table import Cell, Column, Table, Unit, marked

_UNKNOWN = "not measured in these runs"


def memory_tables(lineup: Lineup) -> Iterator[Table]:
    """Peaks and fragmentation; by live block where allocators tell their rounding; what was given back, where bytes
    fell."""
    at_ns = memory.times(lineup.competing)

    @cache
    def of(name: str) -> MemoryFigures | None:
        return next((memory.figures(one, at_ns) for one in lineup.competing if one.name == name), None)

    known = [found for one in lineup.competing if (found := of(one.name)) is not None]
    if not known:
        return

    def main(one: AllocatorFigures) -> list[Cell] | None:
        found = of(one.name)
        if found is None:
            return None if one.runs.is_null else [None] * 7
        return [
            found.peak,
            found.at_peak_live,
            found.overhead,
            found.bytes_a_block,
            found.kept,
            found.faults_per_s,
            found.teardown,
        ]

    yield lineup.table(
        "memory",
        [
            Column("peak\nresident", Unit.BYTES, True),
            Column("at most\nlive", Unit.BYTES, True),
            Column("internal", Unit.SHARE, True),
            Column("a block", Unit.BYTES, True),
            Column("external", Unit.BYTES, True),
            Column("faults/s", Unit.RATE, True),
            Column("teardown", Unit.BYTES, True),
        ],
        main,
        f"at most {units.size(known[0].peak_live)} live",
        notes=[
            "internal: resident beyond live bytes at the moment of most live bytes (rounding, bookkeeping, pages "
            "partly used), and by live block; external: the most that was resident later beyond live and that share "
            "(holes, memory held back); teardown: left when all was freed"
        ],
        absent=_UNKNOWN,
        asked="peak\nresident",
    )
    if any(found.rounding_a_block is not None for found in known):
        yield lineup.table(
            "internal fragmentation, a live block",
            marked("all of it", "rounding", "bookkeeping", unit=Unit.BYTES),
            lambda one: (
                None
                if (found := of(one.name)) is None
                else [found.bytes_a_block, found.rounding_a_block, found.bookkeeping_a_block]
            ),
            notes=[
                "rounding: what the allocator says of the blocks alive at the end; bookkeeping: the rest, headers and "
                "tables, and pages partly used"
            ],
            absent="the allocator does not tell",
        )
    if any(found.unload is not None for found in known):
        yield lineup.table(
            "given back after the largest fall of live bytes",
            [
                Column("from", Unit.NS),
                Column("to", Unit.NS),
                Column("freed", Unit.BYTES),
                Column("given back", Unit.BYTES),
                Column("share", Unit.SHARE),
            ],
            lambda one: (
                None
                if (found := of(one.name)) is None or (gone := found.unload) is None
                else [gone.begin_ns, gone.end_ns, gone.freed, gone.returned, gone.returned / gone.freed]
            ),
        )


def processor_time(lineup: Lineup) -> Table:
    return _deferred(
        lineup,
        "processor time",
        [
            Column("timed\ncalls", Unit.NS),
            Column("own\nthreads", Unit.COUNT),
            Column("their\nCPU", Unit.NS),
            Column("calls and\ntheir CPU", Unit.NS, True),
            Column("whole\nprocess", Unit.NS, True),
            Column("untimed", Unit.NS, True),
        ],
        lambda found: [
            found.timed,
            found.background_threads,
            found.background_cpu,
            found.timed_and_background,
            found.cpu,
            found.cpu_untimed,
        ],
        "medians over repeats; calls and their CPU: what the allocator cost in all while the clock ran, the work of "
        "its own threads included",
        asked="calls and\ntheir CPU",
    )


def deferred_tables(lineup: Lineup) -> Iterator[Table]:
    """What an allocator costs outside the calls that are timed."""
    yield processor_time(lineup)
    after = _deferred(
        lineup,
        "after the last free",
        [
            Column("CPU of\nown threads", Unit.NS),
            Column("settled\nafter", Unit.NS),
            Column("resident\nthen", Unit.BYTES, True),
        ],
        lambda found: [found.after_last_free_cpu, found.settled_after, found.resident_after],
        "what an allocator's threads still do, until 50 ms went by without a change in it or in the resident memory; "
        "what it would do later (many purge after 0.5 to 10 s) is not seen",
    )
    threads = _deferred(
        lineup,
        "threads and placement",
        [*marked("a thread's start", "its end", "walk a fresh block"), Column("polluted between", Unit.BYTES)],
        lambda found: [found.thread_start, found.thread_stop, found.walk_a_block, found.pollute_bytes],
        "walk: to read the freshly allocated blocks afterwards",
    )
    for table, columns in ((after, 3), (threads, 3)):
        if any(cell is not None for row in table.rows for cell in row.cells[:columns]):
            yield table


def _deferred(
    lineup: Lineup,
    name: str,
    columns: list[Column],
    cells: Callable[[Deferred], list[Cell]],
    note: str,
    asked: str = "",
) -> Table:
    return lineup.table(
        name, columns, lambda one: cells(deferred.of(one.runs)), notes=[note], absent=_UNKNOWN, asked=asked
    )
