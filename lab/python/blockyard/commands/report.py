"""`blockyard report`: tables and pictures of a campaign."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from blockyard import options, sites_tool, terminal
from blockyard.advise import tool
from blockyard.analysis.latency import View
from blockyard.options import Finite

_VIEWS = {
    "as-run": (View.AS_RUN,),
    "attributed": (View.ATTRIBUTED,),
    "inherent": (View.INHERENT,),
    "both": (View.AS_RUN, View.INHERENT),
    "all": tuple(View),
}
"""Without one: that which is trusted most, or with --all all of them."""


@click.command(short_help="Does allocation cost frames? Verdict, tables, pictures.")
@click.argument("directory", type=options.AnyPath())
@options.output_folder("Where the report goes.  [DIRECTORY/report]", required=False)
@click.option("--all", "everything", is_flag=True, help="Everything: all tables, pictures, views and samples.")
@options.allocators("Ask about these, with commas: tables hold them and the program's own allocator.")
@click.option("--recorded-with", metavar="NAME", help="The allocator that the program was recorded with.  [glibc]")
@click.option(
    "--view",
    type=click.Choice(list(_VIEWS)),
    help="All repeats as they came, without what the machine interrupted, or each event's least; both is the first "
    "and the last.  [attributed]",
)
@click.option("--by-size", is_flag=True, help="Add tables by size class: up to 64 B, 1 KiB, 32 KiB, 1 MiB, larger.")
@click.option(
    "--allocations-csv",
    is_flag=True,
    help="Write one CSV a run with a row an allocation, as 'Benchmarking Malloc with Doom 3' did.",
)
@click.option(
    "--samples-parquet/--no-samples-parquet", default=None, help="Write all samples as Parquet.  [with --all]"
)
@click.option(
    "--fps",
    type=Finite(1, 10_000),
    metavar="N",
    help="Cut frames by the clock, N per second, instead of at the journal's frame marks.",
)
@click.option(
    "--thread",
    metavar="NAME",
    help="Judge frames and audio buffers on this thread (name or number), not on the one that marks frames.",
)
@sites_tool.skip
@click.option("--journal", "journals", multiple=True, metavar="NAME", help="Only this journal; may be repeated.")
@click.option("--gross", is_flag=True, help="Leave the timer's own floor in every latency.")
@click.option("--html", is_flag=True, help="Write report.html too: one file to explore all events in a browser.")
@click.option(
    "--advice",
    type=options.AnyPath(),
    multiple=True,
    metavar="FOLDER",
    help="Advice about a journal of the campaign, for the page; implies --html.",
)
@click.option("--pictures/--no-pictures", default=True, help="Draw pictures, or write tables alone.")
@options.as_json
def command(directory: Path, output: Path | None, view: str | None, as_json: bool, **given: Any) -> None:
    """Say whether allocation makes the program of the campaign in DIRECTORY miss frames, and whether another allocator
    would help.

    Prints the verdict and the figures behind it; writes report.txt, report.md, CSV and Parquet files, and pictures.
    DIRECTORY may be a folder of 'blockyard advise', whose replays it then reports on, with the advice on the page.

    \b
    Examples:
      blockyard report results
      blockyard report results -a mimalloc
      blockyard report results --all --by-size --html
      blockyard report results --advice advice
    """
    from blockyard.report.builder import build  # here, so that `blockyard --help` need not load them
    from blockyard.report.options import ReportOptions

    given["allocators"] = options.names(given["allocators"])
    if given["samples_parquet"] is None:
        given["samples_parquet"] = given["everything"]
    given["html"] = given["html"] or bool(given["advice"])
    wanted = ReportOptions(**given, views=_VIEWS[view] if view else ())
    if tool.is_advice(directory):
        output = output or directory / "report"
        campaign, pair = tool.replays(directory)
        wanted = replace(wanted, html=True, advice=(*wanted.advice, directory), journals=wanted.journals or pair)
        directory = campaign
    with terminal.reading_bar() as tell:
        result = build(directory, output, wanted, tell)
    if as_json:
        click.echo(json.dumps(result.json, indent=2, ensure_ascii=False))
        return
    lines = [f"Tables: {result.out / 'report.txt'}"]
    if result.page:
        lines.append(f"Page: {result.page}")
    if result.pictures:
        lines.append(f"Pictures: {len(result.pictures)} below {result.out}")
    terminal.show(result.table, result.verdict, "\n".join(lines))
