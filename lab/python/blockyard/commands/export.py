"""`blockyard export`: sites and time lines for other tools."""

from itertools import chain
from pathlib import Path
from typing import Any

import click

from blockyard import journal_tool, native, options, sites_tool, units
from blockyard.errors import UserError

_ENDINGS = {
    "pprof": (".pb", ".pb.gz"),
    "folded": (".folded", ".folded.gz"),
    "speedscope": (".speedscope.json",),
    "trace": (".trace.json", ".trace.json.gz"),
}

_EPILOG = """\b
Examples:
  blockyard export game.byj -o game.pb.gz            # for pprof
  blockyard export game.byj -o game.folded           # for flamegraph.pl
  blockyard export game.byj -o game.speedscope.json
  blockyard export game.byj -o game.trace.json       # for Perfetto"""


@click.command(short_help="Write sites or the time line for pprof, flame graphs, Perfetto.", epilog=_EPILOG)
@click.argument("journal", type=options.Journal())
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=options.AnyPath(),
    help="Where to write; its ending chooses the form: " + ", ".join(chain(*_ENDINGS.values())) + ".",
)
@click.option("--as", "form", type=click.Choice(tuple(_ENDINGS)), help="The form, whatever the name ends in.")
@click.option(
    "--weight",
    type=click.Choice(("allocations", "bytes", "end-blocks", "end-bytes")),
    default="allocations",
    show_default=True,
    help="What a folded stack counts; the other forms hold all of them.",
)
@sites_tool.through
@options.stretch
@options.overwrite
def command(journal: Path, output: Path, form: str | None, **given: Any) -> None:
    """Write the sites of JOURNAL, or its time line, in a form that other tools read.

    pprof, folded stacks and speedscope hold allocations and bytes by stack, and what is alive at the end: with --to, at
    that second. The trace holds frames, phases and memory over time; it needs no call stacks.
    """
    journal_tool.refuse_standard_output(output)
    told = (one for one, endings in _ENDINGS.items() if output.name.endswith(endings))
    if (form := form or next(told, None)) is None:
        raise UserError(f"what form {output} shall have can't be told from its name; end it in .pb.gz, or pass --as")
    given |= {"-o": output, "--as": form}
    sites_tool.call(["export", journal, *native.arguments(given)])
    click.echo(f"{output}: {units.size(output.stat().st_size)}")
