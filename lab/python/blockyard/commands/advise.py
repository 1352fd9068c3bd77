"""`blockyard advise`: what to change at which sites of a program, and what it gains."""

import shlex
import signal
import sys
from pathlib import Path

import click

from blockyard import journal_tool, options
from blockyard.advise import tool
from blockyard.advise.document import Request
from blockyard.files import sha256
from blockyard.report import advice, blocks

_EPILOG = """\b
Examples:
  blockyard advise game.byj -o advice
  blockyard advise game.byj --on evening.byj --on night.byj -o advice
  blockyard advise game.byj --apply 'draw_label=temp,spawn=pool' -o what-if"""


@click.command(short_help="What to change at which sites, and what it gains.", epilog=_EPILOG)
@click.argument("journal", type=options.Journal())
@click.option(
    "--on",
    type=options.AnyPath(),
    multiple=True,
    metavar="JOURNAL",
    help="Another recording of the program, to judge the advice. May be given several times.",
)
@click.option(
    "--fps",
    type=options.Finite(min=1, max=1000),
    default=60,
    show_default=True,
    help="Frames per second that the worst frame is compared with; without frame marks, replays are cut into as many.",
)
@click.option(
    "--apply",
    "applied",
    multiple=True,
    metavar="SITE=KIND,...",
    help=f"Judge these changes of yours instead of advising. SITE is a function, KIND one of {', '.join(tool.KINDS)}.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1, max=50),
    default=5,
    show_default=True,
    help="How many changes are replayed: each alone, and all of them together.",
)
@click.option("--all", "everything", is_flag=True, help="Advise what libraries of the system allocate as well.")
@click.option("--no-replay", is_flag=True, help="Estimate the gain only.")
@click.option(
    "-o", "--output", type=options.OutputFolder(), default="advice", show_default=True, help="The folder to write."
)
@options.as_json
def command(
    journal: Path,
    on: tuple[Path, ...],
    fps: float,
    applied: tuple[str, ...],
    top: int,
    everything: bool,
    no_replay: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Say which sites should allocate otherwise: as temp, from a pool, with a reserve, or not at all.

    JOURNAL must hold call stacks, as 'blockyard record' keeps them; frame marks tell more. OUTPUT gets advice.json,
    advice.md, and routes.byr, which says for each block where it would go. Then the gain is measured: at most ten
    seconds of the journal, around its worst frame, are replayed with and without the changes. A measurement that was
    interrupted goes on when the command is given again.
    """
    wanted = tool.wishes(applied)
    request = Request(
        str(journal.resolve()),
        [sha256(one) for one in (journal, *on)],
        [str(one.resolve()) for one in on],
        wanted,
        everything,
        fps,
    )
    with tool.Folder(output, request) as folder:
        report = folder.begun
        if report is None:
            report = tool.analyse(journal, on, wanted, folder.path / tool.ROUTES, everything)
            report.request = request
            folder.write(report, advice.page(report))
        if report.advice and not no_replay:
            from blockyard.advise import measure  # here, as it brings numpy along, which the rest does not need

            try:
                measure.add(report, folder.final, top)
                folder.write(report, advice.page(report))
            except KeyboardInterrupt:
                click.echo("blockyard: interrupted; the replays made are kept; the same command goes on", err=True)
                sys.exit(128 + signal.SIGINT)
    if as_json:
        journal_tool.print_json(tool.text(report))
        return
    click.echo(blocks.text(advice.said(report)), nl=False)
    if report.measured:
        click.echo(f"\nOn a page, with its events and stacks: blockyard report {shlex.quote(str(output))}")
