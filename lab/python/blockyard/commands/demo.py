"""blockyard demo: the bundled journal on every allocator, with table and pictures."""

import os
import signal
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from blockyard import options
from blockyard.campaign import demo, document
from blockyard.campaign.folder import Folder, disk_errors, write_whole
from blockyard.campaign.progress import display
from blockyard.commands.replay import terminate_like_interrupt
from blockyard.errors import UserError


@click.command(
    short_help="A real game on every allocator, compared, in four minutes.", epilog="Example: blockyard demo --again"
)
@click.option("--again", is_flag=True, help="Measure anew instead of showing the stored result.")
@options.output_folder("Folder for the result.  [demo/ in a checkout, else blockyard-demo/]", required=False)
def command(again: bool, output: Path | None) -> None:
    """Replay a stretch of a real game on every allocator and show the comparison.

    Takes about four minutes; a second call shows the stored result.
    """
    folder = output or demo.default_folder()
    if again:
        demo.forget(folder)
    if demo.is_stored(folder):
        _print(Text.from_ansi((folder / demo.STORED).read_text(encoding="utf-8")))
        click.echo("This is the stored result; 'blockyard demo --again' measures anew.", err=True)
        return
    with disk_errors(folder):
        Folder(folder).check()
    terminate_like_interrupt()
    with display(Console(stderr=True)) as show:
        show.note("Replaying takes about four minutes; nothing else should run meanwhile.")
        outcome = demo.measure(folder, show)
    for line in outcome.failure_lines():
        click.echo(line, err=True)
    if outcome.interrupted:
        click.echo("blockyard: interrupted; finished runs are kept, and 'blockyard demo' goes on from there", err=True)
        sys.exit(128 + signal.SIGINT)
    if outcome.succeeded == 0:
        raise UserError("no run succeeded; the reasons stand above")
    text = _report(folder)
    _print(Text.from_ansi(text))
    with disk_errors(folder):
        write_whole(folder / demo.STORED, text)


def _report(folder: Path) -> str:
    """The report's table and where its pictures lie, as a terminal of 80 columns shows it."""
    # Imported here: drawing libraries take a second to load that the stored result need not wait for.
    from blockyard import report
    from blockyard.report import page as html_page

    no_page = html_page.missing()
    result = report.build(
        folder, folder / demo.REPORT, report.ReportOptions(samples_parquet=False, html=no_page is None)
    )
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        page = Console(record=True, width=80, file=nowhere, force_terminal=True, highlight=False)
        page.print(result.table)
        repeats = document.read(folder).repeats
        page.print(
            f"Measured with {repeats} repeat{'s' * (repeats != 1)} on a short stretch, to be quick: published "
            "figures take 5 repeats of longer ones (docs/reference/method.md)."
        )
        page.print(f"Tables: {result.out / 'report.txt'}", soft_wrap=True)
        page.print(
            f"Every event, in a browser: {result.page}" if result.page else f"No page to explore: {no_page}",
            soft_wrap=True,
        )
        drawn = sorted(path for path in result.pictures if path.suffix == ".png")
        # Those of all allocators together; each one's own are too many to list.
        together = [path for path in drawn if path.stem.startswith(("comparison", "percentiles"))] or drawn
        page.print("Pictures:")
        for picture in together:
            page.print(f"  {picture}", soft_wrap=True)
        if len(together) < len(drawn):
            page.print(f"and {len(drawn) - len(together)} more beside them: each allocator's events over time")
        return page.export_text(styles=True)


def _print(text: Text) -> None:
    Console(highlight=False).print(text, soft_wrap=True, end="")
