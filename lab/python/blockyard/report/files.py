"""The forms that a verb exports."""

from pathlib import Path

import click

from blockyard.errors import UserError
from blockyard.files import whole_text

STANDARD_OUTPUT = "-"


def refuse_same_outputs(*paths: str | None) -> None:
    """Before anything is computed: each form needs a name of its own, and only one can be printed."""
    given = [path for path in paths if path is not None]
    if "" in given:
        raise UserError("the name of a file to write is empty; '-' is standard output")
    if len(set(given)) < len(given):
        raise UserError(
            "two forms can't both go to "
            + next("standard output" if path == STANDARD_OUTPUT else path for path in given if given.count(path) > 1)
        )


def export(path: str, content: str) -> bool:
    """Whether it went to standard output."""
    if path == STANDARD_OUTPUT:
        click.echo(content, nl=False)
        return True
    try:
        whole_text(Path(path), content)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}") from None
    return False
