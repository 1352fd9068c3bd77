"""Calls blockyard-journal with a progress bar."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from blockyard import native, terminal
from blockyard.counted import counted
from blockyard.errors import UserError

_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def call(arguments: Sequence[str | os.PathLike]) -> dict[str, Any]:
    """Runs blockyard-journal; its result as a dictionary. A bar appears on a terminal when it takes a while."""
    if not sys.stderr.isatty():
        return json.loads(native.call("blockyard-journal", [*arguments, "--json"]))
    with terminal.reading_bar() as tell:
        return json.loads(native.call("blockyard-journal", [*arguments, "--json"], on_progress=tell))


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
    click.echo(f"{result['output']}: {events}{preamble}{joined}, {_size(result['bytes'])}")
    print_notes(result["notes"])


def _size(count: int) -> str:
    # Not report.units: importing that package costs these small verbs half a second.
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return counted(count, "byte")
