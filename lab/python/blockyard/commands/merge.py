"""blockyard merge: shares of a campaign joined."""

import shlex
from pathlib import Path

import click

from blockyard import options
from blockyard.campaign.merge import merge
from blockyard.options import OutputFolder


@click.command(
    short_help="Join shares of one campaign.", epilog="Example: blockyard merge -o results share1 share2 share3"
)
@options.output_folder("Folder for the whole campaign; new or empty.")
@click.argument("shares", metavar="DIR...", nargs=-1, required=True, type=OutputFolder())
def command(output: Path, shares: tuple[Path, ...]) -> None:
    """Join shares of one campaign ('blockyard replay --shard').

    Only shares of the same campaign, from machines of the same kind, can be joined; what differs is said. The shares
    stay as they are.
    """
    total, absent = merge(output, shares)
    click.echo(f"{total - len(absent)} of {total} runs joined in {output}")
    if absent:
        click.echo(f"{len(absent)} runs are in none of the shares, the first is {absent[0]}", err=True)
    click.echo(f"next: blockyard report {shlex.quote(str(output))}")
