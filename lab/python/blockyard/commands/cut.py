"""`blockyard cut`: a stretch of a journal."""

from pathlib import Path

import click

from blockyard import journal_tool
from blockyard.seconds import Seconds


@click.command(
    short_help="Write a stretch of a journal as a journal.",
    epilog="Example: blockyard cut game.byj --from 60 --to 68 -o level.byj",
)
@click.argument("journal", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Where to write: .byj, or text (.txt, .journal, .log; compressed when .zst or .gz follows).",
)
@click.option(
    "--from", "from_s", type=Seconds(min=0), default=0.0, metavar="S", show_default=True, help="Begin here, in seconds."
)
@click.option(
    "--to",
    "to_s",
    type=Seconds(min=0, min_open=True),
    metavar="S",
    help="End before here, in seconds; the journal's end when left out.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
def command(journal: Path, output: Path, from_s: float, to_s: float | None, force: bool, as_json: bool) -> None:
    """Write a stretch of JOURNAL as a journal of its own.

    The blocks alive where the stretch begins come first, as its preamble: a replay restores them and measures none.
    Of a journal whose end is missing, what is whole is kept. Of one that is damaged, what of the stretch lies before
    the damage is written, and the command says so and exits with 1.
    """
    journal_tool.refuse_standard_output(output)
    arguments = ["cut", journal, "-o", output, "--from", repr(from_s)]
    if to_s is not None:
        arguments += ["--to", repr(to_s)]
    if force:
        arguments.append("--force")
    result = journal_tool.call(arguments)
    if as_json:
        journal_tool.print_json(result)
    else:
        journal_tool.print_written(result)
