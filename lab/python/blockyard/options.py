"""What several verbs take on the command line, each option and each type of value in one place."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from blockyard import journal_head
from blockyard.errors import UserError


class Finite(click.FloatRange):
    """A number from `min` to `max`. Click alone takes `nan` for a number of any range."""

    fault = "is not a number to count with"
    most = math.inf

    def _describe_range(self) -> str:
        return ""  # the help's sentence says it in words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = super().convert(value, param, ctx)
        except click.BadParameter as error:
            error.message = error.message.replace("range .", f"range {super()._describe_range()}.")
            raise
        if not math.isfinite(number) or number > self.most:
            self.fail(f"{value} {self.fault}", param, ctx)
        return number


class Seconds(Finite):
    """A number of seconds, `min` or more."""

    fault = "is not a number of seconds; give one such as 2.5"
    most = 1e9  # some 31 years: no clock of the system takes more


class AnyPath(click.Path):
    """Whoever opens it says what is wrong with it: click's own look takes what forbids reading for wrong usage."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)


class OutputFolder(AnyPath):
    """A path that is not empty: an unset variable of a script would mean the folder it runs in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the folder's name is empty; '.' is the one you are in", param, ctx)
        return super().convert(value, param, ctx)


class Journal(AnyPath):
    """A journal to read. What its recorder could not see is said first, on standard error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        for warning in journal_head.warnings(path):
            click.echo(f"Note: {warning}.", err=True)
        return path


Decorator = Callable[[Callable], Callable]


def allocators(text: str) -> Decorator:
    """`-a/--allocator NAMES`: the words as given, which `names` takes apart."""
    return click.option("-a", "--allocator", "allocators", multiple=True, metavar="NAMES", help=text)


def names(given: Sequence[str]) -> tuple[str, ...]:
    """The names of an option that takes comma lists and may be repeated; none only where it was not given."""
    found = tuple(name.strip() for text in given for name in text.split(",") if name.strip())
    if given and not found:
        raise UserError(f"'{given[0]}' names nothing; leave the option out, or give it a name")
    return found


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

overwrite = click.option("--force", is_flag=True, help="Overwrite the output.")

output_journal = click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    type=AnyPath(),
    help="Where to write: .byj, or text (.txt, .journal, .log; compressed when .zst or .gz follows).",
)


def output_folder(text: str, *, required: bool = True) -> Decorator:
    return click.option("-o", "--output", "output", required=required, metavar="DIR", type=OutputFolder(), help=text)


def stretch(command: Callable) -> Callable:
    """`--from` and `--to`: seconds of the journal's own clock, in every verb that has them."""
    end = click.option(
        "--to", type=Seconds(min=0, min_open=True), metavar="S", help="Up to this second of the journal.  [its end]"
    )
    begin = click.option(
        "--from", "from_", type=Seconds(min=0), metavar="S", help="From this second of the journal on.  [its start]"
    )
    return begin(end(command))
