"""`blockyard names`: functions and lines for the call stacks of a journal."""

from pathlib import Path
from typing import Any

import click
import msgspec

from blockyard import journal_tool, native, options
from blockyard.units import counted

_EPILOG = """\b
Example: blockyard names game.byj --debug-dir build/symbols"""

_MOST_LISTED = 12
"""Modules without lines that the text lists; --json has all."""


class Module(msgspec.Struct, frozen=True):
    path: str
    build_id: str
    frames: int
    named: int
    lines: int
    symbols: str
    problem: str


class Generated(msgspec.Struct, frozen=True):
    """Code that was compiled while the program ran."""

    frames: int
    named: int


class Naming(msgspec.Struct, frozen=True):
    frames: int
    named: int
    generated: Generated
    perf_map: str
    modules: list[Module]


@click.command(short_help="Name the functions and lines of a journal's call stacks.", epilog=_EPILOG)
@click.argument("journal", type=options.Journal())
@click.option(
    "--debug-dir",
    multiple=True,
    metavar="DIR",
    type=options.AnyPath(),
    help="A folder with debug files or unstripped programs, searched before the system's; repeatable.",
)
@click.option(
    "--perf-map",
    type=options.AnyPath(),
    metavar="FILE",
    help="Names of just-in-time compiled code.  [/tmp/perf-PID.map]",
)
@click.option("--debuginfod", is_flag=True, help="Ask the servers in DEBUGINFOD_URLS for what is missing.")
@options.as_json
def command(journal: Path, as_json: bool, **given: Any) -> None:
    """Find functions, files and lines for the call stacks of JOURNAL and store them in it.

    JOURNAL can then be read on a machine without the program. 'blockyard record' does this when a recording ends,
    unless --no-names. Files are found by build-id, so that names of another build are never used. No server is asked
    without --debuginfod.
    """
    text = native.call("blockyard-names", [journal, *native.arguments({**given, "json": True})])
    if as_json:
        journal_tool.print_json(text)
    else:
        for line in lines(journal, native.decoded("blockyard-names", text, Naming)):
            click.echo(line)


def lines(journal: Path, result: Naming) -> list[str]:
    """What the command says: how much is named, which modules lack lines and why, and how to get them."""
    said = [f"{journal}: {result.named:,} of {counted(result.frames, 'address')} in call stacks have names"]
    without = [
        module
        for module in result.modules
        if module.lines < module.frames and (module.symbols != "lines" or module.problem)
    ]
    generated = result.generated
    if generated.frames:
        map_name = result.perf_map or "no perf map was found"
        said.append(
            f"Code compiled while the program ran: {generated.named:,} of "
            f"{counted(generated.frames, 'address')} named ({map_name})"
        )
    if not without:
        return said
    said += ["", f"{counted(len(without), 'module')} without files and lines:"]
    for module in without[:_MOST_LISTED]:
        named = "no names" if not module.named else f"{module.named:,} of {module.frames:,} named"
        said.append(f"  {module.path}: {named}; {module.problem}")
        if module.build_id:
            said.append(f"    build-id {module.build_id}")
    if len(without) > _MOST_LISTED:
        said.append(f"  and {counted(len(without) - _MOST_LISTED, 'more module')}; --json lists all")
    said += [
        "",
        "To get them, do one of these and run 'blockyard names' again:",
        "  - Install debug symbols: on Debian the package NAME-dbgsym, where 'dpkg -S FILE' prints NAME.",
        "  - Name the folder of an unstripped build or of its debug files with --debug-dir.",
        "  - Ask a debuginfod server: set DEBUGINFOD_URLS and pass --debuginfod.",
    ]
    return said
