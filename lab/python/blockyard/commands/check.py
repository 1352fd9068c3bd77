"""`blockyard check`: is a journal sound?"""

from pathlib import Path

import click

from blockyard import journal_tool, options
from blockyard.units import counted


@click.command(short_help="Verify a journal from end to end.", epilog="Example: blockyard check game.byj")
@click.argument("journal", type=options.Journal())
@options.as_json
def command(journal: Path, as_json: bool) -> None:
    """Verify JOURNAL from end to end.

    Checks the checksums, the order of events, that only live blocks are freed, that no address is live twice, the call
    stacks, and the footer against the contents. Exits with 1 and the first violation's event and place.
    """
    text = journal_tool.call(["check", journal])
    if as_json:
        journal_tool.print_json(text)
        return
    result = journal_tool.checked(text)
    addresses = "addresses checked" if result.has_addresses else "no addresses kept"
    stacks = "no call stacks"
    if result.stacks:
        of = counted(result.events_with_stack, "event")
        stacks = f"{counted(result.stacks, 'different call stack')} on {of}"
    frames = counted(result.frame_marks, "frame mark")
    allocator = f"; malloc of {result.allocator}" if result.allocator else ""
    click.echo(
        f"{journal}: no violation in {counted(result.events, 'event')} "
        f"({counted(result.blocks_given, 'block')}, {result.live_at_end:,} live at the end; "
        f"{counted(result.threads, 'thread')}; {frames}; {stacks}; {addresses}{allocator})"
    )
    journal_tool.print_notes(result.notes)
