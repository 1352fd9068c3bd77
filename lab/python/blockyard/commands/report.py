"""`blockyard report`: tables and pictures of a campaign."""

import json
from dataclasses import replace
from pathlib import Path

import click

from blockyard import options, sites_tool, terminal, variants
from blockyard.advise import reading
from blockyard.analysis.latency import View
from blockyard.errors import UserError
from blockyard.options import Finite, Seconds

_VIEWS = {
    "as-run": (View.AS_RUN,),
    "attributed": (View.ATTRIBUTED,),
    "inherent": (View.INHERENT,),
    "both": (View.AS_RUN, View.INHERENT),
    "all": tuple(View),
}
"""Without one: that which is trusted most, or with --all all of them."""


@click.command(short_help="Does allocation cost frames? Verdict, tables, pictures.")
@click.argument("directory", type=click.Path(path_type=Path))
@options.output_folder("Where the report goes.  [DIRECTORY/report]", required=False, old=["--out"])
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
@options.renamed(
    "--pictures-from",
    "from_s",
    old=["--from"],
    type=Seconds(min=0),
    metavar="S",
    help="Density pictures begin at this second of the measured stretch.",
)
@options.renamed(
    "--pictures-to",
    "to_s",
    old=["--to"],
    type=Seconds(min=0, min_open=True),
    metavar="S",
    help="Density pictures end at this second.",
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
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FOLDER",
    help="Advice about a journal of the campaign, for the page; implies --html.",
)
@click.option("--pictures/--no-pictures", default=True, help="Draw pictures, or write tables alone.")
@options.as_json
def command(
    directory: Path,
    output: Path | None,
    everything: bool,
    allocators: tuple[str, ...],
    recorded_with: str | None,
    view: str | None,
    by_size: bool,
    allocations_csv: bool,
    samples_parquet: bool | None,
    from_s: float | None,
    to_s: float | None,
    journals: tuple[str, ...],
    gross: bool,
    html: bool,
    advice: tuple[Path, ...],
    pictures: bool,
    fps: float | None,
    thread: str | None,
    skip: str | None,
    as_json: bool,
) -> None:
    """Say whether allocation makes the program of the campaign in DIRECTORY miss frames, and whether another allocator
    would help.

    Prints the verdict and the figures behind it; writes report.txt, report.md, CSV and Parquet files, and pictures.
    DIRECTORY may be a folder of 'blockyard advise', whose replays it then reports on, with the advice on the page.

    \b
    Examples:
      blockyard report results
      blockyard report results -a mimalloc --pictures-from 2 --pictures-to 3.5
      blockyard report results --all --by-size --html
      blockyard report results --advice advice
    """
    if from_s is not None and to_s is not None and from_s >= to_s:
        raise UserError(f"--pictures-from {from_s:g} is not before --pictures-to {to_s:g}")
    if not pictures and (from_s is not None or to_s is not None):
        raise UserError("--pictures-from and --pictures-to zoom pictures, and --no-pictures draws none; leave one out")
    from blockyard.report import ReportOptions, build  # here, so that `blockyard --help` need not load them

    wanted = ReportOptions(
        everything,
        _VIEWS[view] if view else (),
        by_size,
        allocations_csv,
        everything if samples_parquet is None else samples_parquet,
        pictures,
        html or bool(advice),
        gross,
        from_s,
        to_s,
        journals,
        options.names(allocators),
        variants.current(recorded_with) if recorded_with else None,
        fps=fps,
        thread=thread,
        skip=skip,
        advice=advice,
    )
    if reading.is_advice(directory):
        output = output or directory / "report"
        campaign, pair = reading.replays(directory)
        wanted = replace(wanted, html=True, advice=(*advice, directory), journals=journals or pair)
        directory = campaign
    with terminal.reading_bar() as tell:
        result = build(directory, output, wanted, tell)
    if as_json:
        click.echo(json.dumps(result.json, indent=2, ensure_ascii=False))
        return
    console = terminal.for_tables()
    console.print(result.table)
    console.print(result.verdict)
    console.print(f"Tables: {result.out / 'report.txt'}", soft_wrap=True)
    if result.page:
        console.print(f"Page: {result.page}", soft_wrap=True)
    if result.pictures:
        console.print(f"Pictures: {len(result.pictures)} below {result.out}", soft_wrap=True)
