"""`blockyard sites`: which functions of the program allocate, how much, and how long it lives."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import click

from blockyard import journal_tool, options, sites_tool
from blockyard.errors import UserError
from blockyard.function_names import shortened
from blockyard.report import blocks
from blockyard.report.blocks import WIDTH, Block, Paragraph
from blockyard.report.table import Column, Name, Row, Table, Unit
from blockyard.sites_tool import Listing, Site, is_nameless, name, without_symbols
from blockyard.units import counted, rate, share, size

_FRAMES_SHOWN = 12
_INCOMPLETE_MENTIONED = 0.05
"""A larger share of stacks that do not reach the program's start gets a remark."""

_PARAMETERS = re.compile(r"(?<!^)(?<!::)\([^()]*\)(?: const)?$")
_NO_PLAIN_NAME = re.compile(r"[() <>]|^$")
"""Such a name would have to be quoted, or broken over two lines."""

_EPILOG = """\b
Examples:
  blockyard sites game.byj
  blockyard sites game.byj --sort frame --by line
  blockyard sites game.byj --sort same-frame --match 'particle'"""


@click.command(short_help="Who allocates: functions, lines, modules or tags.", epilog=_EPILOG)
@click.argument("journal", type=options.Journal())
@sites_tool.grouping
@click.option(
    "--sort",
    type=click.Choice(sites_tool.SORTS),
    default="allocations",
    show_default=True,
    help="What comes first: the most allocations, bytes, allocations within frames or in one frame, bytes at the peak "
    "or at the end, blocks that die in the frame they were born in, or blocks that live within one function.",
)
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, help="How many sites; 0 is all.")
@click.option("--match", metavar="REGEX", help="Only sites whose function, file, module or tag REGEX matches.")
@sites_tool.through
@sites_tool.skip
@sites_tool.wrappers
@options.stretch
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@options.as_json
def command(journal: Path, as_csv: bool, as_json: bool, **given: Any) -> None:
    """Say which functions of the program allocate: how often, how much, within frames, at the peak and at the end.

    JOURNAL must hold call stacks, as 'blockyard record' keeps them. A site is the stack of an allocation, grouped by
    --by. The innermost function that is not part of the standard library or of malloc stands for its stack.
    """
    if as_csv and as_json:
        raise UserError("--json and --csv can't both go to standard output")
    result, text = sites_tool.listing(journal, given)
    if given["from_"] is not None and not result.all.allocations and given["sort"] not in ("peak", "end"):
        raise UserError(f"{journal} has no allocation at or after {given['from_']:g} s that the options choose")
    if as_json:
        journal_tool.print_json(text)
        return
    if not result.sites:
        raise UserError(f"no site of {journal} matches")
    if as_csv:
        click.echo(_csv(json.loads(text)["sites"], result.sites), nl=False)
        return
    click.echo(blocks.text(said(journal, result, given["by"], given["sort"], given["wrappers"])), nl=False)


def said(journal: Path, result: Listing, by: str, sort: str, wrappers: bool = False) -> list[Block]:
    """The answer, a table of the sites, and what to know of them."""
    return [Paragraph(_answer(result, sort)), _table(result, by), *_remarks(journal, result, wrappers)]


def _answer(result: Listing, sort: str) -> str:
    first, everything = result.sites[0], result.all
    who = shortened(name(first), WIDTH)
    if sort == "bytes":
        return f"{who} requests most bytes: {size(first.bytes)}, {share(first.bytes, everything.bytes)} of all."
    if sort == "frame":
        part = share(first.frame_allocations, everything.frame_allocations)
        return (
            f"{who} allocates most within frames: {rate(_per_frame(first, result))} times a frame, {part} of all there."
        )
    if sort == "worst-frame":
        return f"{who} has the most allocations in one frame: {first.worst_frame_allocations:,}."
    if sort == "peak":
        part = share(first.peak_bytes, everything.peak_bytes)
        at = f"{result.peak_at_ns / 1e9:.2f} s"
        return f"{who} holds most at the peak ({at}): {size(first.peak_bytes)}, {part} of all."
    if sort == "end":
        held = f"{counted(first.end_blocks, 'block')}, {size(first.end_bytes)}"
        part = share(first.end_bytes, everything.end_bytes)
        what = "holds most when the recording ends" if result.cut_at_end else "leaks most"
        return f"{who} {what}: {held}, {part} of all."
    if sort == "same-frame":
        part = share(first.freed_same_frame, first.freed)
        blocks = counted(first.freed_same_frame, "block")
        return f"{who} has most blocks that die in the frame they were born in: {blocks}, {part} of its freed ones."
    if sort == "shared" and first.shared_function:
        blocks = counted(first.freed_shared, "block")
        return f"{who} has most blocks that live within one function: {blocks} within {first.shared_function}."
    part = share(first.allocations, everything.allocations)
    return f"{who} allocates most often: {part} of {counted(everything.allocations, 'allocation')}."


def _per_frame(site: Site, result: Listing) -> float | None:
    return site.frame_allocations / result.frame_count if result.frame_count else None


_COLUMNS = (
    Column("allocations", Unit.COUNT),
    Column("share", Unit.SHARE),
    Column("bytes", Unit.BYTES),
    Column("per\nframe", Unit.RATE),
    Column("at peak", Unit.BYTES),
    Column("at end", Unit.BYTES),
    Column("same\nframe", Unit.SHARE),
)


def _table(result: Listing, by: str) -> Table:
    rows = [
        Row(
            Name(name(site) + _module(site, by)),
            [
                site.allocations,
                site.allocations / result.all.allocations if result.all.allocations else None,
                site.bytes,
                _per_frame(site, result),
                site.peak_bytes,
                site.end_bytes,
                site.freed_same_frame / site.freed if site.freed else None,
            ],
            below=[*(_stack(site) if by == "stack" else ()), *_lives(site)],
        )
        for site in result.sites
    ]
    more = result.site_count - len(rows)
    notes = [f"{counted(more, 'more site')}; --limit 0 shows all"] if more else []
    return Table("", _COLUMNS, rows, notes=notes, first="site")


def _module(site: Site, by: str) -> str:
    """What stands behind the name; an address without a name has its module in front."""
    module = site.module if by in ("function", "line", "stack") else ""
    return f" ({module})" if module and not (site.function or "").startswith(f"{module}+") else ""


def _lives(site: Site) -> list[str]:
    if not site.freed_shared:
        return []
    begin, end = "      live within ", f" ({share(site.freed_shared, site.freed)} of its freed blocks)"
    return [begin + shortened(site.shared_function, WIDTH - len(begin) - len(end)) + end]


def _stack(site: Site) -> list[str]:
    frames = site.stack or []
    rows = [f"  < {shortened(name(frame), WIDTH - 4)}" for frame in frames[:_FRAMES_SHOWN]]
    if len(frames) > _FRAMES_SHOWN:
        rows.append(f"  < {counted(len(frames) - _FRAMES_SHOWN, 'more function')}; --json has all")
    return rows


def _remarks(journal: Path, result: Listing, wrappers: bool) -> list[Block]:
    said = []
    if not result.marked_frames:
        said.append("The program marked no frames; a frame here is a sixtieth of a second.")
    if not result.has_names and any(site.function is not None for site in result.sites):
        said.append(f"Addresses have no names yet: 'blockyard names {journal}' finds them.")
    else:
        said += _about_the_first(journal, result.sites[0], result.all.allocations, wrappers)
    if result.without_stack:
        part = share(result.without_stack, result.all.allocations)
        said.append(f"{counted(result.without_stack, 'allocation')} ({part}) have no call stack.")
    if result.incomplete_stacks > _INCOMPLETE_MENTIONED * result.all.allocations:
        part = share(result.incomplete_stacks, result.all.allocations)
        said.append(f"{part} of the allocations have an incomplete stack; --by stack says why.")
    return [Paragraph(line) for line in said] + [Paragraph(f"Note: {note}.") for note in result.notes]


def _about_the_first(journal: Path, first: Site, allocations: int, wrappers: bool) -> list[str]:
    function = first.function or ""
    said = []
    if is_nameless(function):
        said.append(without_symbols([first.module], journal))
        passes_on = first.allocations * 2 > allocations
    else:
        passes_on = "alloc" in function.lower()
    called = _PARAMETERS.sub("", function)
    if passes_on and not wrappers and not _NO_PLAIN_NAME.search(called):
        pattern = re.escape(called) + ("$" if called == function else "")
        said.append(f"If {called} is the program's own malloc, --skip '{pattern}' names its callers.")
    return said


def _csv(records: list[dict[str, Any]], sites: list[Site]) -> str:
    out = io.StringIO()
    rows = [
        {**record, "stack": ";".join(name(frame) for frame in reversed(site.stack))} if site.stack else record
        for record, site in zip(records, sites, strict=True)
    ]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
