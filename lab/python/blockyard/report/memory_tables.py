"""Memory and deferred cost as tables."""

from collections.abc import Iterator, Sequence

import numpy as np

from blockyard.analysis import deferred, memory
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.sections import Section
from blockyard.report import units
from blockyard.report.blocks import Block, Heading, Table
from blockyard.report.comparison import null_rows, short_name

DEFERRED_NOTE = (
    "calls and their CPU: what the allocator cost in all while the clock ran, the work of its own threads included"
)
SETTLED_NOTE = (
    "what an allocator's threads still do, until 50 ms went by without a change in it or in the resident "
    "memory; what it would do later (many purge after 0.5 to 10 s) is not seen"
)


def blocks(figures: Sequence[AllocatorFigures], variant: str) -> list[Block]:
    return [
        Heading(f"Memory and deferred cost, {variant}", 3),
        *memory_tables(figures, variant),
        *deferred_tables(figures, variant),
    ]


def memory_tables(figures: Sequence[AllocatorFigures], variant: str) -> list[Table]:
    competing = [one for one in figures if not one.runs.is_null]  # null's memory is a buffer of the lab
    if not competing:
        return []
    at_ns = memory.times(competing)
    found = [(one, memory.figures(one, at_ns)) for one in competing]
    rows, unloads, blocks = [], [], []
    for one, told in found:
        if told is None:
            rows.append([short_name(one), *[units.ABSENT] * 7])
            continue
        rows.append(
            [
                short_name(one),
                units.size(told.peak),
                units.size(told.at_peak_live),
                f"{100 * told.overhead:.1f} %",
                units.size(told.bytes_a_block),
                units.size(told.kept),
                units.rate(told.faults_per_s),
                units.size(told.teardown),
            ]
        )
        blocks.append(
            [short_name(one), *map(units.size, (told.bytes_a_block, told.rounding_a_block, told.bookkeeping_a_block))]
        )
        if told.unload is not None:
            gone = told.unload
            unloads.append(
                [
                    short_name(one),
                    f"{gone.begin_ns / 1e9:.1f} s",
                    f"{gone.end_ns / 1e9:.1f} s",
                    units.size(gone.freed),
                    units.size(gone.returned),
                    f"{100 * gone.returned / gone.freed:.0f} %",
                ]
            )
    live = next((told.peak_live for _, told in found if told is not None), None)
    tables = [
        Table(
            f"memory, {variant}; at most {units.size(live)} live",
            ["allocator", "peak\nresident", "at most\nlive", "internal", "a block", "external", "faults/s", "teardown"],
            rows,
            [
                "internal: resident beyond live bytes at the moment of most live bytes (rounding, bookkeeping, "
                "pages partly used), and by live block; external: the most that was resident later beyond live "
                "and that share (holes, memory held back); teardown: left when all was freed"
            ],
        )
    ]
    if any(cell != units.ABSENT for row in blocks for cell in row[2:]):
        tables.append(
            Table(
                f"internal fragmentation, a live block, {variant}",
                ["allocator", "all of it", "rounding", "bookkeeping"],
                blocks,
                [
                    "rounding: what the allocator says of the blocks alive at the end; bookkeeping: the rest, "
                    "headers and tables, and pages partly used",
                    *(
                        [f"{units.ABSENT} the allocator does not tell"]
                        if any(units.ABSENT in row for row in blocks)
                        else []
                    ),
                ],
            )
        )
    if unloads:
        tables.append(
            Table(
                f"given back after the largest fall of live bytes, {variant}",
                ["allocator", "from", "to", "freed", "given back", "share"],
                unloads,
            )
        )
    return tables


def rows(section: Section, figures: Sequence[AllocatorFigures]) -> Iterator[dict[str, object]]:
    """memory.csv: a row an allocator and time, the times common to all; bytes are medians over repeats."""
    at_ns = memory.times(figures)
    for one in figures:
        found = memory.series(one, at_ns)
        told = memory.figures(one, at_ns)
        if found is None or told is None or one.runs.is_null:
            continue
        external = np.maximum(found.resident - found.live * (1 + told.overhead), 0)
        external[: int(found.live.argmax())] = np.nan
        for place, at in enumerate(at_ns):
            yield {
                "journal": section.journal,
                "pace": section.pace,
                "touch": section.touch,
                "allocator": one.name,
                "time_ns": round(float(at)),
                "resident_bytes": round(float(found.resident[place])),
                "live_bytes": round(float(found.live[place])),
                "live_blocks": None if found.blocks is None else round(float(found.blocks[place])),
                "external_bytes": None if np.isnan(external[place]) else round(float(external[place])),
                "page_faults_per_s": None if found.faults_per_s is None else round(float(found.faults_per_s[place]), 1),
            }


def deferred_tables(figures: Sequence[AllocatorFigures], variant: str) -> list[Table]:
    found = [(one, deferred.of(one.runs)) for one in figures]
    work = [
        [
            short_name(one),
            _duration(told.timed),
            units.ABSENT if told.background_threads is None else f"{told.background_threads:.0f}",
            _duration(told.background_cpu),
            _duration(told.timed_and_background),
            _duration(told.cpu),
            _duration(told.cpu_untimed),
        ]
        for one, told in found
    ]
    after = [
        [
            short_name(one),
            _duration(told.after_last_free_cpu),
            _duration(told.settled_after),
            units.size(told.resident_after),
        ]
        for one, told in found
    ]
    threads = [
        [
            short_name(one),
            _duration(told.thread_start),
            _duration(told.thread_stop),
            _duration(told.walk_a_block),
            units.size(told.pollute_bytes),
        ]
        for one, told in found
    ]
    unknown = f"{units.ABSENT} not measured in these runs"
    tables = [
        Table(
            f"processor time, medians over repeats, {variant}",
            [
                "allocator",
                "timed\ncalls",
                "own\nthreads",
                "their\nCPU",
                "calls and\ntheir CPU",
                "whole\nprocess",
                "untimed",
            ],
            work,
            [DEFERRED_NOTE, *([unknown] if any(units.ABSENT in row for row in work) else [])],
            dim=null_rows(figures),
        )
    ]
    if any(cell != units.ABSENT for row in after for cell in row[1:]):
        tables.append(
            Table(
                f"after the last free, {variant}",
                ["allocator", "CPU of\nown threads", "settled\nafter", "resident\nthen"],
                after,
                [SETTLED_NOTE],
                dim=null_rows(figures),
            )
        )
    if any(cell != units.ABSENT for row in threads for cell in row[1:4]):
        tables.append(
            Table(
                f"threads and placement, {variant}",
                ["allocator", "a thread's start", "its end", "walk a fresh block", "polluted between"],
                threads,
                [unknown] if any(units.ABSENT in row for row in threads) else [],
                dim=null_rows(figures),
            )
        )
    return tables


def _duration(ns: float | None) -> str:
    return units.ABSENT if ns is None else units.duration(ns)
