"""blockyard trial: the program itself on several allocators, compared."""

import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from blockyard import files, options, terminal
from blockyard.errors import UserError
from blockyard.options import Finite, Seconds
from blockyard.terminal import terminate_like_interrupt
from blockyard.units import counted

_EPILOG = """\b
Examples:
  blockyard trial -a glibc,blockyard --runs 10 -- ./game --benchmark
  blockyard trial -a glibc,mine=./libmine.so -o results -- ./game --benchmark
  blockyard trial --with blockyard@x='BLOCKYARD_HEAP_RESERVE=9M' -- ./game
  blockyard trial --build patched=./game-patched -- ./game --benchmark
  blockyard trial --resume -o results
"""


@click.command(
    short_help="Does another allocator make the program itself faster?",
    context_settings={"allow_interspersed_args": False},
    epilog=_EPILOG,
)
@click.argument("command_line", nargs=-1, metavar="-- PROGRAM [ARGS]...")
@options.allocators("Allocators to preload, with commas: 'glibc', 'mimalloc', 'mine=./libmine.so', 'defaults'.")
@click.option(
    "--with", "settings", multiple=True, metavar="NAME='VAR=VALUE ...'", help="Try settings, as NAME or ALLOCATOR@NAME."
)
@click.option("--build", "builds", multiple=True, metavar="NAME=PROGRAM", help="Try another build of the program.")
@click.option("--runs", type=int, metavar="N", help="Runs of each, in random order.  [10]")
@click.option("--timeout", type=Seconds(min=0, min_open=True), metavar="S", help="A run that takes longer has failed.")
@click.option("--same-output", is_flag=True, help="Say who writes another output than the first.")
@click.option("--fps", type=Finite(1, 10_000), default=60.0, metavar="N", help="The budget of a frame.  [60]")
@click.option("--frame-symbol", metavar="NAME", help="Calls of this function end a frame, as 'record' takes it.")
@click.option(
    "--replayed",
    metavar="RESULTS",
    type=options.AnyPath(),
    help="Show what a replay of its journal, with report, had predicted.",
)
@options.output_folder("Keep all runs, report and pictures here; new or empty.", required=False)
@click.option("--resume", is_flag=True, help="Go on with the trial in DIR; --runs adds some.")
@options.as_json
def command(
    command_line: tuple[str, ...],
    allocators: tuple[str, ...],
    settings: tuple[str, ...],
    builds: tuple[str, ...],
    runs: int | None,
    timeout: float | None,
    same_output: bool,
    fps: float,
    frame_symbol: str | None,
    replayed: Path | None,
    output: Path | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Run PROGRAM itself on each allocator and say what that changes.

    Runs are interleaved in random order, after one of each to warm up. The first named is what the others are compared
    with. Frames are seen as 'blockyard record' sees them; without frames whole runs are compared. Nothing else should
    run meanwhile.
    """
    # Here, so that `blockyard --help` need not load them, and all before a program runs.
    from blockyard.trial import contenders, drive, page, pictures, predicted, tell  # noqa: F401
    from blockyard.trial.run import How

    if resume and output is None:
        raise UserError("--resume needs -o, the folder of the trial to go on with")
    if resume and (command_line or allocators or settings or builds or timeout or frame_symbol):
        raise UserError("--resume takes all from the trial but --runs; leave the program and its options out")
    if not resume and not command_line:
        raise UserError("no program was given; write it after --, with its arguments")
    expected = predicted.read(replayed) if replayed is not None else None
    terminate_like_interrupt()
    folder = output or Path(tempfile.mkdtemp(prefix="blockyard-trial-"))
    kept = output is not None
    try:
        if resume:
            outcome = drive.resume(folder, runs, _tell)
        else:
            program, *arguments = command_line
            named = options.names(allocators)
            wanted = drive.Trial(
                arguments,
                contenders.of(program, named, settings, builds),
                runs if runs is not None else 10,
                How(timeout, frame_symbol),
            )
            outcome = drive.start(wanted, folder, _tell)
        kept = kept or outcome.interrupted
        _report(outcome, folder if kept else None, 1e9 / fps, same_output, expected, as_json)
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)
    if outcome.interrupted:
        click.echo(
            f"blockyard: interrupted; kept: {counted(outcome.ended, 'run')}; go on with 'blockyard trial --resume -o "
            f"{folder}'",
            err=True,
        )
        sys.exit(128 + signal.SIGINT)


def _tell(what: str) -> None:
    click.echo(what, err=True)


def _report(outcome, folder: Path | None, budget_ns: float, same_output: bool, expected, as_json: bool) -> None:
    """Prints it, and with a folder writes it there too, with pictures."""
    from blockyard.report import blocks
    from blockyard.trial import page, pictures, predicted
    from blockyard.trial.tell import Story

    story = Story(outcome, budget_ns, same_output)
    if story.found is None:
        if outcome.interrupted:
            return
        raise UserError(f"no run of {story.first} ended well, so there is nothing to compare with: {_reasons(outcome)}")
    told = story.blocks()
    document = story.json()
    if expected is not None:
        document["predicted"] = expected.figures
        told += filter(None, [predicted.table(expected, story)])
    as_text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    drawn: Sequence[Path] = ()
    if folder is not None:
        files.whole_text(folder / "report.txt", blocks.text(told))
        files.whole_text(folder / "report.json", as_text)
        drawn = pictures.draw(story.runs, folder, story.program)
        svg = [path for path in drawn if path.suffix == ".svg"]
        files.whole_text(folder / "report.html", page.render(story.program, told, svg))
    if as_json:
        click.echo(as_text, nl=False)
        return
    terminal.show(blocks.terminal(told))
    if folder is not None:
        click.echo(f"Report: {folder / 'report.txt'}")
        click.echo(f"Page: {folder / 'report.html'}")
        if drawn:
            click.echo(f"Pictures: {', '.join(path.name for path in drawn)}")


def _reasons(outcome) -> str:
    return next((one.failed for one in outcome.runs[outcome.trial.contenders[0].name] if one.failed), "none was made")
