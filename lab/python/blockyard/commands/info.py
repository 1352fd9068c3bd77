"""`blockyard info`: what a journal holds."""

from pathlib import Path

import click

from blockyard import journal_tool, options


@click.command(short_help="Print what a journal holds.", epilog="Example: blockyard info game.byj")
@click.argument("journal", type=options.Journal())
@options.as_json
def command(journal: Path, as_json: bool) -> None:
    """Print the facts of JOURNAL: mallocs and frees, sizes, lifetimes, threads, frames, leaks.

    JOURNAL is a .byj, a text journal, or the log of another tool that `convert` reads.
    """
    text = journal_tool.call(["info", journal])
    if as_json:
        journal_tool.print_json(text)
        return
    from blockyard.report import blocks, journal_info  # only here: rich, which it imports, would slow --json and --help

    click.echo(blocks.text(journal_info.said(journal_tool.facts(text))), nl=False)
