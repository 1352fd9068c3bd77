"""blockyard demo: the bundled journal on five allocators, with the verdict and its figures."""

import os
import signal
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from blockyard import options
from blockyard.campaign import demo
from blockyard.campaign.folder import Folder, disk_errors
from blockyard.campaign.progress import display
from blockyard.errors import UserError
from blockyard.files import whole_text
from blockyard.terminal import terminate_like_interrupt

_OWN_PROGRAM = "blockyard trial -a glibc,mimalloc,blockyard -- ./your-program"


@click.command(
    short_help="A real game on five allocators, compared, in two minutes.", epilog="Example: blockyard demo --again"
)
@click.option("--again", is_flag=True, help="Measure again instead of showing the stored result.")
@click.option(
    "--all", "everything", is_flag=True, help="All allocators and their prefaulted variants, every table and picture."
)
@options.output_folder("Folder for the result.  [demo/ in a checkout, else blockyard-demo/]", required=False)
def command(again: bool, everything: bool, output: Path | None) -> None:
    """Replay a stretch of a real game on five allocators, and say which would help it.

    Takes about two minutes; a second call shows the stored result.
    """
    folder = output or demo.default_folder()
    if again:
        demo.forget(folder)
    extent = demo.ALL if everything else demo.DEFAULTS
    if demo.is_stored(folder):
        demo.refuse_less(folder, extent)
        _print(Text.from_ansi((folder / demo.STORED).read_text(encoding="utf-8")))
        click.echo("This is the stored result; 'blockyard demo --again' measures again.", err=True)
        return
    with disk_errors(folder):
        Folder(folder).check()
    terminate_like_interrupt()
    with display(Console(stderr=True)) as show:
        show.note(f"Replaying takes about {extent.words}; nothing else should run meanwhile.")
        outcome = demo.measure(folder, show, extent)
    for line in outcome.failure_lines():
        click.echo(line, err=True)
    if outcome.interrupted:
        click.echo("blockyard: interrupted; finished runs are kept, and 'blockyard demo' goes on from there", err=True)
        sys.exit(128 + signal.SIGINT)
    if outcome.is_empty:
        raise UserError("no run succeeded; the reasons stand above")
    text = _report(folder, everything)
    _print(Text.from_ansi(text))
    with disk_errors(folder):
        whole_text(folder / demo.STORED, text)


def _report(folder: Path, everything: bool) -> str:
    """The verdict with its figures and where the rest lies, as a screen of 80 columns shows it."""
    # Imported here: drawing libraries take a second to load that the stored result need not wait for.
    from blockyard.report.builder import build
    from blockyard.report.options import ReportOptions
    from blockyard.report.page import writer as html_page

    no_page = html_page.missing()
    result = build(folder, folder / demo.REPORT, ReportOptions(everything, html=no_page is None))
    more = [
        f"Tables and {len(result.pictures)} pictures: {result.out / 'report.md'}",
        f"In a browser: {result.page}" if result.page else f"No page to explore: {no_page}",
        f"To try a program of yours: {_OWN_PROGRAM}",
    ]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        page = Console(record=True, file=nowhere, force_terminal=True, highlight=False)
        page.print(result.short, result.verdict, "\n".join(more), sep="\n", soft_wrap=True, markup=False)
        return page.export_text(styles=True)


def _print(text: Text) -> None:
    Console(highlight=False).print(text, soft_wrap=True, end="")
