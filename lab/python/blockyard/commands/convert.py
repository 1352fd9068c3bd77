"""`blockyard convert`: a journal in another form."""

from pathlib import Path

import click

from blockyard import journal_tool, native, options


@click.command(
    short_help="Write a journal in another form.",
    epilog="Example: blockyard convert game.journal.zst -o game.byj --join-realloc",
)
@click.argument("journal", type=options.Journal())
@options.output_journal
@click.option(
    "--plain", is_flag=True, help="Text: only lines of events, without the # lines that hold everything else."
)
@click.option(
    "--join-realloc", is_flag=True, help="A free and an allocation of the same instant and thread become one realloc."
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Leave out the program, its arguments, paths and build-ids; number the names of threads, phases, tags and "
    "functions.",
)
@click.option("--addresses", is_flag=True, help="Keep the program's pointers in a .byj.")
@options.overwrite
@options.as_json
def command(journal: Path, output: Path, force: bool, as_json: bool, **how: bool) -> None:
    """Write JOURNAL in another form: .byj, or text with an event per line.

    JOURNAL is a .byj, a text journal (plain, .zst, .gz) or a heaptrack recording. Nothing is lost from .byj to text and
    back, unless --plain.
    """
    journal_tool.write("convert", journal, output, native.arguments(how), force=force, as_json=as_json)
