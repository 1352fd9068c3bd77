"""Calls native programs with a progress bar, blockyard-journal above all."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import click

from blockyard import native, terminal
from blockyard.counted import counted
from blockyard.errors import UserError
from blockyard.sizes import size

_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def run(program: str, arguments: Sequence[str | os.PathLike]) -> str:
    """What a native program prints. Where it takes a while it is seen to go on."""
    with terminal.reading_bar() as tell:
        return native.call(program, arguments, on_progress=tell)


def call(arguments: Sequence[str | os.PathLike]) -> dict[str, Any]:
    """The result of blockyard-journal as a dictionary."""
    return json.loads(run("blockyard-journal", [*arguments, "--json"]))


def write(
    verb: str, journal: os.PathLike, output: os.PathLike, more: Sequence[str], *, force: bool, as_json: bool
) -> None:
    """Has blockyard-journal write `output`, and says what it wrote."""
    refuse_standard_output(output)
    result = call([verb, journal, *more, "-o", output, *(["--force"] if force else [])])
    if as_json:
        print_json(result)
    else:
        print_written(result)


def refuse_standard_output(output: os.PathLike) -> None:
    """A journal on standard output would be mixed with the command's own words."""
    if os.fspath(output) in _STANDARD_OUTPUT:
        raise UserError(f"{output} can't take a journal: standard output has the command's own words; name a file")


def print_json(result: dict[str, Any]) -> None:
    click.echo(json.dumps(result, indent=2, ensure_ascii=False))


def print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"Note: {note}.")


def print_written(result: dict[str, Any]) -> None:
    """What cut and convert have to say."""
    preamble = f", of them {result['preamble_events']:,} preamble" if result["preamble_events"] else ""
    joined = f", {counted(result['joined_reallocs'], 'realloc')} joined" if result["joined_reallocs"] else ""
    events = counted(result["events"], "event")
    click.echo(f"{result['output']}: {events}{preamble}{joined}, {size(result['bytes'])}")
    print_notes(result["notes"])
