"""`blockyard collect`: many journals as one data set."""

import shlex
from pathlib import Path

import click

from blockyard import options, terminal
from blockyard.errors import UserError
from blockyard.options import OutputFolder
from blockyard.units import counted


@click.command(
    short_help="Read a folder of journals into one data set.", epilog="Example: blockyard collect journals -o fleet"
)
@click.argument("folder", metavar="FOLDER", type=OutputFolder())
@options.output_folder("Folder of the data set; what it holds already is kept.")
@click.option("--build", metavar="NAME", help="Of which build the journals are.  [the folder FOLDER/BUILD]")
@click.option(
    "--machine", metavar="NAME", help="From which machine.  [the folder FOLDER/BUILD/MACHINE, else as recorded]"
)
def command(folder: Path, output: Path, build: str | None, machine: str | None) -> None:
    """Read the journals below FOLDER into a Parquet data set for 'blockyard fleet': sites, frames, sizes, lifetimes.

    A second run adds only journals that are new. One that can't be read is named and left out.
    """
    from blockyard.fleet.collect import collect  # pyarrow takes its time, which --help need not

    with terminal.reading_bar() as tell:
        outcome = collect(
            folder,
            output,
            build=build,
            machine=machine,
            tell=tell,
            note=lambda sentence: click.echo(f"Note: {sentence}.", err=True),
        )
    for sentence in outcome.bad:
        click.echo(f"left out: {sentence}", err=True)
    if len(outcome.bad) == outcome.seen:
        raise UserError(f"no journal below {folder} could be read; the reasons stand above")
    there = outcome.seen - outcome.added - len(outcome.bad)
    parts = [f"{counted(outcome.added, 'journal')} added to {output}, {outcome.events:,} events"]
    if there:
        parts.append(f"{there:,} there already")
    if outcome.bad:
        parts.append(f"{len(outcome.bad):,} left out")
    click.echo("; ".join(parts))
    click.echo(f"next: blockyard fleet {shlex.quote(str(output))}")
