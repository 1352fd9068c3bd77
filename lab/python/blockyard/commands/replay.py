"""blockyard replay: journals on allocators, measured."""

import shlex
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from blockyard import options, terminal
from blockyard.campaign import cluster, drive, run_options, settings
from blockyard.campaign.drive import Outcome
from blockyard.campaign.progress import display
from blockyard.campaign.settings import Settings
from blockyard.errors import UserError

_EPILOG = """\b
Examples:
  blockyard replay game.byj -a all -o results
  blockyard replay game.byj -a glibc,mine=./libmine.so -o results --pace 1,max
  blockyard replay game.byj -a glibc -o results --trace --pollute 256K
  blockyard replay --resume -o results
  blockyard replay --campaign standard.toml -o results --shard 2/8
  blockyard replay --campaign standard.toml -o results --on slurm
"""


@click.command(epilog=_EPILOG)
@click.argument("journals", nargs=-1, metavar="[JOURNAL]...", type=options.Journal())
@options.allocators("Allocators, with commas: 'all', 'glibc', 'jemalloc@prefaulted', 'mine=./libmine.so'.")
@options.output_folder("Folder for the results; new or empty.")
@click.option("--repeats", type=int, metavar="N", help="Runs of each allocator, interleaved with the others'.  [5]")
@click.option(
    "--pace", metavar="LIST", help="1 is the journal's own pace, 10 ten times it, max as fast as it goes.  [1]"
)
@click.option(
    "--touch",
    metavar="LIST",
    help="What is written into a fresh block: none, first (a byte), page (a byte in every 4096) or all.  [page]",
)
@options.stretch
@click.option(
    "--totals/--no-totals",
    default=None,
    help="Run each repeat again without a clock around each call, for what all calls together take.  [totals]",
)
@run_options.on_command_line
@click.option(
    "--trace",
    is_flag=True,
    default=None,
    help="Add a run of each that records every event's system calls and measures nothing.",
)
@click.option("--resume", is_flag=True, help="Go on with the campaign in DIR; --repeats adds some.")
@click.option("--shard", metavar="I/N", help="Run only share I of N; 'blockyard merge' joins them.")
@click.option("--on", metavar="slurm[:PARTITION]", help="Have Slurm run it, in a folder that all nodes share.")
@click.option(
    "--campaign",
    "campaign_file",
    metavar="FILE",
    type=options.AnyPath(),
    help="Take journals and options from a campaign file; options given here win.",
)
def command(
    journals: tuple[Path, ...],
    allocators: tuple[str, ...],
    output: Path,
    repeats: int | None,
    pace: str | None,
    touch: str | None,
    from_: float | None,
    to: float | None,
    totals: bool | None,
    trace: bool | None,
    resume: bool,
    shard: str | None,
    on: str | None,
    campaign_file: Path | None,
    **others: Any,
) -> None:
    """Replay journals on allocators and measure every event.

    Each run is a process of its own; the repeats of the allocators are interleaved. Nothing else should run meanwhile.
    Runs that fail are reported at the end and the others go on; the exit code is 1 only when none succeeded.
    """
    partition = _partition(on, shard)
    base = _base(journals, campaign_file, from_, to)
    given = {
        "allocators": options.names(allocators) or None,
        "repeats": repeats,
        "totals": totals,
        "traced": trace,
        "paces": settings.parse_list(pace, settings.parse_pace) if pace is not None else None,
        "touches": settings.parse_list(touch, settings.parse_touch) if touch is not None else None,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    chosen_options = run_options.given(others)
    part = settings.parse_shard(shard) if shard is not None else None
    if base is None:
        if not resume:
            raise UserError("no journal was given; name at least one, or a campaign file with --campaign")
        if chosen.keys() - {"repeats"} or chosen_options or part or from_ is not None or to is not None:
            raise UserError(
                "--resume takes its options from the campaign, all but --repeats; name the journals too to have all "
                "compared"
            )
        wanted = None
        if cluster.is_one(output) and not cluster.read(output).is_whole:
            if repeats is not None:
                raise UserError(
                    "a campaign of a cluster takes no more repeats before it is joined; leave --repeats out"
                )
            _submitted(output, cluster.resume(output))
            return
    else:
        wanted = replace(base, options=replace(base.options, **chosen_options), **chosen)
        if not wanted.allocators:
            raise UserError("no allocator was named; -a all takes every one that this machine has")
    if on is not None:
        if wanted is None or resume:
            raise UserError("--on begins a campaign; to go on with one, 'blockyard replay --resume -o DIR' is enough")
        with display(Console(stderr=True)) as show:
            started = cluster.start(wanted, output, partition, show)
        _submitted(output, (started, started.shards))
        return
    terminal.terminate_like_interrupt()
    with display(Console(stderr=True)) as show:
        outcome = (
            drive.resume(output, show, wanted=wanted, repeats=repeats if base is None else None, shard=part)
            if resume
            else drive.start(wanted, output, show, shard=part)
        )  # type: ignore[arg-type]
    _finish(outcome, output, part)


def _partition(on: str | None, shard: str | None) -> str | None:
    """Of Slurm's; None is its default."""
    if on is None:
        return None
    scheduler, colon, partition = on.partition(":")
    if scheduler != "slurm" or (colon and not partition):
        raise UserError(f"'{on}' is no cluster; write slurm, or slurm:PARTITION")
    if shard is not None:
        raise UserError("--on plans the shards itself; leave --shard out")
    return partition or None


def _submitted(output: Path, found: tuple[cluster.Cluster, int]) -> None:
    one, shards = found
    folder = shlex.quote(str(output))
    click.echo(f"{shards} of {one.shards} shards submitted to Slurm, and the join behind them")
    click.echo(f"next: blockyard status {folder}")


def _base(
    journals: tuple[Path, ...], campaign_file: Path | None, from_s: float | None, to_s: float | None
) -> Settings | None:
    if campaign_file is not None:
        if journals or from_s is not None or to_s is not None:
            raise UserError("--campaign names journals and stretches itself; leave JOURNAL, --from and --to out")
        return settings.read_campaign(campaign_file)
    if not journals:
        return None
    return Settings(settings.stretches(list(journals), from_s, to_s), allocators=())


def _finish(outcome: Outcome, output: Path, part: tuple[int, int] | None) -> None:
    """Says how it ended and what to do next, and sets the exit code."""
    ended = outcome.succeeded + len(outcome.failed)
    for line in outcome.failure_lines():
        click.echo(line, err=True)
    if outcome.failed:
        click.echo(f"Delete a failed run's folder below {output / 'runs'} to have --resume run it again.", err=True)
    if outcome.interrupted:
        click.echo(
            f"blockyard: interrupted after {ended} of {outcome.total} runs, which are kept; go on with "
            f"'blockyard replay --resume -o {output}'",
            err=True,
        )
        sys.exit(128 + signal.SIGINT)
    if outcome.is_empty:
        raise UserError("no run succeeded; the reasons stand above")
    click.echo(f"{outcome.succeeded} of {outcome.total} runs measured in {output}")
    folder = shlex.quote(str(output))
    click.echo(f"next: blockyard merge -o OUT {folder} OTHER-SHARES..." if part else f"next: blockyard report {folder}")
