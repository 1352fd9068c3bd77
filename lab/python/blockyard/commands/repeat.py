"""`blockyard repeat`: a journal several times over."""

from pathlib import Path

import click

from blockyard import journal_tool, options

_MOST_TIMES = 1_000_000


@click.command(
    short_help="Write a journal several times over, as a long one.",
    epilog="Example: blockyard repeat game.byj 50 -o long.byj",
)
@click.argument("journal", type=options.Journal())
@click.argument("times", type=click.IntRange(1, _MOST_TIMES))
@options.output_journal
@options.overwrite
@options.as_json
def command(journal: Path, times: int, output: Path, force: bool, as_json: bool) -> None:
    """Write JOURNAL, TIMES over, as one long journal.

    Between two repetitions the blocks that are still alive are freed and the preamble is allocated again, as where a
    game leaves one level and loads the next. For trying how an allocator ages, and how a long journal is dealt with.
    """
    journal_tool.write("repeat", journal, output, [str(times)], force=force, as_json=as_json)
