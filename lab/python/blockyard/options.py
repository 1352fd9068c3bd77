"""What several verbs take on the command line, each option and each type of value in one place."""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from blockyard import journal_head, variants
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


class OutputFolder(click.Path):
    """A path that is not empty: an unset variable of a script would mean the folder it runs in."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the folder's name is empty; '.' is the one you are in", param, ctx)
        return super().convert(value, param, ctx)


class Journal(click.Path):
    """A journal to read. What its recorder could not see is said first, on standard error."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        for warning in journal_head.warnings(path):
            click.echo(f"Note: {warning}.", err=True)
        return path


class Renamed(click.Option):
    """An option that has had other names: `old` ones work, and neither help nor messages show them."""

    def __init__(self, declarations: Sequence[str], *, old: Iterable[str] = (), **attributes: Any) -> None:
        super().__init__([*old, *declarations], **attributes)
        self._old = frozenset(old)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return click.Option.get_help_record(self._as_shown(), ctx)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        return click.Option.get_error_hint(self._as_shown(), ctx)  # type: ignore[arg-type]

    def _as_shown(self) -> click.Option:
        shown = copy.copy(self)
        shown.opts = [name for name in self.opts if name not in self._old]
        return shown


Decorator = Callable[[Callable], Callable]


def renamed(*declarations: str, old: Iterable[str], **attributes: Any) -> Decorator:
    """An option with hidden former names; otherwise as click.option."""
    return click.option(*declarations, cls=Renamed, old=tuple(old), **attributes)


def allocators(text: str) -> Decorator:
    """`-a/--allocator NAMES`: the words as given, which `names` takes apart."""
    return renamed("-a", "--allocator", "allocators", old=["--allocators"], multiple=True, metavar="NAMES", help=text)


def names(given: Sequence[str]) -> tuple[str, ...]:
    """The names of an option that takes comma lists and may be repeated; none only where it was not given."""
    found = tuple(variants.current(name.strip()) for text in given for name in text.split(",") if name.strip())
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
    type=click.Path(path_type=Path),
    help="Where to write: .byj, or text (.txt, .journal, .log; compressed when .zst or .gz follows).",
)


def output_folder(text: str, *, required: bool = True, old: Iterable[str] = ()) -> Decorator:
    return renamed(
        "-o", "--output", "output", old=old, required=required, metavar="DIR", type=OutputFolder(), help=text
    )


def stretch(command: Callable) -> Callable:
    """`--from` and `--to`: seconds of the journal's own clock, in every verb that has them."""
    end = click.option(
        "--to", type=Seconds(min=0, min_open=True), metavar="S", help="Up to this second of the journal.  [its end]"
    )
    begin = click.option(
        "--from", "from_", type=Seconds(min=0), metavar="S", help="From this second of the journal on.  [its start]"
    )
    return begin(end(command))
