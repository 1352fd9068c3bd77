"""blockyard allocators: what this machine can replay on."""

import json

import click

from blockyard import allocators, options
from blockyard.allocators import Allocator, Choice


@click.command(short_help="List the allocators that this machine has.", epilog="Example: blockyard allocators --json")
@options.as_json
def command(as_json: bool) -> None:
    """List the allocators, their versions and variants, and what is missing here.

    Each is started once in a process of its own, so what the list shows has worked on this machine.
    """
    known = allocators.load()
    choices = {choice.name: choice for choice in allocators.resolve("all")}
    if as_json:
        click.echo(json.dumps([_facts(known[choice.base], choice) for choice in choices.values()], indent=2))
        return
    from blockyard import terminal  # here, so that --json and --help need not load what draws
    from blockyard.report import blocks
    from blockyard.report.table import Column, Row, Table

    rows = []
    for name, allocator in known.items():
        one = choices[name]
        cells = [one.version or "missing", _prefaulted(allocator, choices), one.origin]
        rows.append(Row(name, cells, dim=one.missing is not None))
    columns = [Column("version"), Column("prefaulted"), Column("from")]
    table = Table("", columns, rows, first="name")
    said = "\n".join(_remarks(known, choices))
    terminal.show(blocks.terminal([table, blocks.Paragraph(said)]))


def _facts(allocator: Allocator, choice: Choice) -> dict:
    named = ("name", "base", "variant", "title", "version", "missing", "notes", "environment", "options", "populate")
    return {
        **{name: getattr(choice, name) for name in named},
        "from": choice.origin,
        "available": choice.missing is None,
        "flags": sorted(choice.flags),
        "prefaulted": None if allocator.absent else f"{choice.base}@{allocators.PREFAULTED}",
        "prefaulted_absent": allocator.absent,
        "adapter": str(choice.adapter),
    }


def _prefaulted(allocator: Allocator, choices: dict[str, Choice]) -> str:
    if allocator.absent:
        return "-"
    return "yes" if choices[f"{allocator.name}@{allocators.PREFAULTED}"].missing is None else "missing"


def _remarks(known: dict[str, Allocator], choices: dict[str, Choice]) -> list[str]:
    lines = []
    for name, allocator in known.items():
        choice, remarks = choices[name], []
        if choice.missing:
            remarks.append(f"missing: {choice.missing}")
        if choice.needs_lock:
            remarks.append("a lock around every call of a threaded replay")
        remarks += filter(None, [choice.notes])
        if allocator.absent:
            remarks.append(f"no @{allocators.PREFAULTED}: {allocator.absent}")
        else:
            remarks.append(f"@{allocators.PREFAULTED}: {allocator.prefaulted.get('notes', '')}")
            prefaulted = choices[f"{name}@{allocators.PREFAULTED}"]
            if prefaulted.missing and not choice.missing:
                remarks.append(f"@{allocators.PREFAULTED} missing: {prefaulted.missing}")
        lines.append(f"{name}: " + ". ".join(remark[:1].upper() + remark[1:] for remark in remarks) + ".")
    lines += [
        "",
        "@prefaulted: memory for the journal's peak populated before the clock starts, and purging off.",
        "A shared object of your own that exports malloc and free: -a mine=./libmine.so",
    ]
    return lines
