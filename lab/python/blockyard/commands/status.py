"""blockyard status: how far a campaign on a cluster is."""

import shlex
import sys
import time
from pathlib import Path

import click
import msgspec

from blockyard import options, terminal
from blockyard.campaign import cluster
from blockyard.campaign.cluster import Status
from blockyard.options import OutputFolder

_LOOKS_S = 2.0
"""Between two looks of --wait: Slurm's controller has other users."""
_SHOWN = 20


@click.command(short_help="How far a campaign on a cluster is.", epilog="Example: blockyard status results --wait")
@click.argument("folder", metavar="DIR", type=OutputFolder())
@click.option("--wait", is_flag=True, help="Wait until all is joined, or nothing runs any more.")
@options.as_json
def command(folder: Path, wait: bool, as_json: bool) -> None:
    """Say what runs of the campaign that 'blockyard replay --on slurm' submitted, what failed, and why.

    Exits with 1 when shards are missing and nothing is left to run them.
    """
    found = cluster.status(folder)
    if wait:
        with terminal.reading_bar() as tell:
            while found.queued and not found.whole:
                tell(found.runs / max(found.of, 1), f"{found.runs} of {found.of} runs")
                time.sleep(_LOOKS_S)
                found = cluster.status(folder)
    if as_json:
        from blockyard import journal_tool

        journal_tool.print_json(msgspec.to_builtins(found))
    else:
        _say(folder, found)
    if not found.whole and not found.queued:
        sys.exit(1)


def _say(folder: Path, found: Status) -> None:
    click.echo(found.sentence)
    lines = [f"shard {number}: {words}" for number, words in found.trouble.items()]
    lines += [f"run {name} failed: {reason}" for name, reason in found.failed.items()]
    for line in lines[:_SHOWN]:
        click.echo(f"  {line}")
    if len(lines) > _SHOWN:
        click.echo(f"  and {len(lines) - _SHOWN:,} more; --json has all")
    name = shlex.quote(str(folder))
    if found.whole:
        click.echo(f"next: blockyard report {name}")
    elif not found.queued:
        click.echo(f"next: blockyard replay --resume -o {name}")
