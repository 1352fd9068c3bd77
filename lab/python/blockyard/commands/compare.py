"""`blockyard compare`: is NEW better or worse than BASE?"""

import sys
from collections.abc import Callable
from pathlib import Path

import click

from blockyard import files, options, terminal
from blockyard.errors import UserError

GATE_FAILED = 3

_EPILOG = """\b
Examples:
  blockyard compare results-main results-branch
  blockyard compare main branch --gate p99.9:5% --export-junit gate.xml
"""


def _export(form: str, text: str) -> Callable:
    return click.option(f"--export-{form}", f"{form}_path", metavar="FILE", help=text)


@click.command(short_help="Is NEW better or worse than BASE? With gates for CI.", epilog=_EPILOG)
@click.argument("base", type=options.AnyPath())
@click.argument("new", type=options.AnyPath())
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="[VIEW/][OPERATION/]PERCENTILE|total:LIMIT%",
    help="Exit with 3 when the percentile rose by more than LIMIT, for malloc and for free unless one is "
    "named; repeatable.",
)
@click.option("--strict", is_flag=True, help="A gate also fails where a rise beyond its limit can't be ruled out.")
@options.allocators("Only these allocators, with commas.")
@click.option("--all", "everything", is_flag=True, help="A row for every comparison, with its interval and reason.")
@options.as_json
@_export("json", "Write everything as JSON; '-' prints it, here and below.")
@_export("markdown", "Write the text as Markdown.")
@_export("junit", "Write JUnit XML.")
def command(
    base: Path,
    new: Path,
    gates: tuple[str, ...],
    strict: bool,
    allocators: tuple[str, ...],
    everything: bool,
    as_json: bool,
    json_path: str | None,
    markdown_path: str | None,
    junit_path: str | None,
) -> None:
    """Say of each allocator and percentile whether NEW is better, worse or neither.

    BASE and NEW are folders of 'blockyard replay', of the same journal on the same kind of machine with the same
    options. "Better" and "worse" are said only where the repeats bear it out in more than one view, by more than 2 %
    and more than the other allocators moved. Exits with 0, with 3 when a gate failed or could not be judged, with 1
    when the two can't be compared.
    """
    from blockyard.analysis import compare, gate, pairing, sections
    from blockyard.report import blocks, compared

    chosen = tuple(gate.parse(text) for text in gates)
    if strict and not chosen:
        raise UserError("--strict says how gates are judged; name one with --gate")
    files.check_outputs(files.STANDARD_OUTPUT if as_json else None, json_path, markdown_path, junit_path)
    pairs = pairing.pair(sections.read(base), sections.read(new), options.names(allocators))
    with terminal.reading_bar() as tell:
        measured = compare.measure(pairs, tell)
    found = compare.compare(measured)
    outcomes = gate.judge(measured, chosen, strict)
    document = compared.document(found, outcomes, everything)
    if as_json:
        click.echo(compared.json_text(found, outcomes), nl=False)
    if not files.exported(
        as_json,
        (json_path, lambda: compared.json_text(found, outcomes)),
        (markdown_path, lambda: blocks.markdown(document, Path())),
        (junit_path, lambda: compared.junit_text(found, outcomes)),
    ):
        terminal.show(blocks.terminal(document))
    lost = gate.losses(found) if chosen else []
    if lost or not all(one.passed for one in outcomes):
        sys.exit(GATE_FAILED)
    if chosen and not outcomes:
        raise UserError("the gates apply to nothing that was compared; see the allocators and percentiles above")
