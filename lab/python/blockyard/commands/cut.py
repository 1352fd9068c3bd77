"""`blockyard cut`: a stretch of a journal."""

from pathlib import Path

import click

from blockyard import journal_tool, native, options


@click.command(
    short_help="Write a stretch of a journal as a journal.",
    epilog="Example: blockyard cut game.byj --from 60 --to 68 -o level.byj",
)
@click.argument("journal", type=options.Journal())
@options.output_journal
@options.stretch
@options.overwrite
@options.as_json
def command(journal: Path, output: Path, force: bool, as_json: bool, **stretch: float | None) -> None:
    """Write a stretch of JOURNAL as a journal of its own.

    The blocks alive where the stretch begins come first, as its preamble: a replay restores them and measures none.
    Of a journal whose end is missing, what is whole is kept. Of one that is damaged, what of the stretch lies before
    the damage is written, and the command says so and exits with 1.
    """
    journal_tool.write("cut", journal, output, native.arguments(stretch), force=force, as_json=as_json)
