"""How the runs of a campaign are replayed: every option in one place.

A field of RunOptions is an option of `blockyard replay`, a key of campaign files, a field of campaign.json, an argument
of `blockyard-replay run`, and something in which campaigns must agree to be resumed, joined or compared.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

import click

from blockyard import native
from blockyard.errors import UserError
from blockyard.options import Finite

THREADS = ("journal", "one")


def parse_size(text: str | int) -> int:
    """`32768`, `256K`, `8M` are bytes."""
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(i?B)?", str(text).strip(), re.IGNORECASE)
    if match is None:
        raise UserError(f"'{text}' is not a number of bytes; write 262144, 256K or 8M")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def _threads(way: str) -> str:
    if way not in THREADS:
        raise UserError(f"'{way}' is not a way to run threads; use journal or one")
    return way


def _declared() -> dict[str, list[Any]]:
    """By member, what run_options.def declares for both languages: each declaration is a call in Python, too."""
    text = native.data("run_options.def", "src/replay/run").read_text(encoding="utf-8")
    calls = ast.parse(re.sub("^//.*", "", text, flags=re.MULTILINE)).body
    found = [statement.value.args for statement in calls if isinstance(statement.value, ast.Call)]
    return {member.id: [ast.literal_eval(one) for one in more] for member, *more in found}


_DECLARED = _declared()
_MOST_MIB = _DECLARED["stream_above_mib"][2]


def _option(
    flag: str,
    text: str,
    default: Any = False,
    parse: Callable[[Any], Any] = lambda value: value,
    in_file: type | tuple[type, ...] = bool,
    in_traces: bool = True,
    same_results: bool = False,
    **click_attributes: Any,
) -> Any:
    """`in_file` is its type in a campaign file; an option of which results do not depend (`same_results`) may differ
    between campaigns that are compared."""
    metadata = {"flag": flag, "text": text, "parse": parse, "in_file": in_file, "in_traces": in_traces}
    metadata |= {"same_results": same_results, "click": click_attributes}
    return field(default=default, metadata={**metadata, "key": flag.removeprefix("--").replace("-", "_")})


def _switch(member: str, **how: bool) -> Any:
    return _option(*_DECLARED[member], **how)


def _number(member: str, parse: Callable[[Any], float], in_file: type | tuple[type, ...], **how: Any) -> Any:
    flag, default, most, unit, text = _DECLARED[member]

    def within(given: Any) -> float:
        number = parse(given)
        if not 0 <= number <= most:
            raise UserError(f"{flag} takes 0 to {most:,}, and not {number:,}")
        return number

    return _option(flag, f"{text}  [{default}]", parse(default), within, in_file, metavar=unit, **how)


@dataclass(frozen=True)
class RunOptions:
    """What all runs of a campaign have in common beside journal, allocator, pace and touch."""

    threads: str = _option(
        "--threads",
        "The journal's threads, or all on one.  [journal]",
        "journal",
        _threads,
        str,
        type=click.Choice(THREADS),
    )
    causes_above_ns: int = _number("causes_above_ns", int, int, type=int)
    pollute_bytes: int = _number("pollute_bytes", parse_size, (int, str))
    in_order: bool = _switch("in_order")
    keep_awake: bool = _switch("keep_awake", in_traces=False)
    stream_above_mib: float | None = _number(
        "stream_above_mib", float, (int, float), same_results=True, type=Finite(0, _MOST_MIB)
    )

    @property
    def words(self) -> str:
        """What a table's reader must know of them."""
        threads = "the journal's threads" if self.threads == "journal" else "all events on one thread"
        order = " in the journal's order" if self.in_order else ""
        return f"{threads}{order}{', cores kept awake' if self.keep_awake else ''}"

    def arguments(self, *, traced: bool) -> dict[str, Any]:
        """For `blockyard-replay run`; threads are the plan's."""
        return {
            one.metadata["flag"]: value
            for one, value in self._values()
            if one.name != "threads" and (one.metadata["in_traces"] or not traced)
        }

    def differences(self, other: "RunOptions") -> Iterator[tuple[str, Any, Any]]:
        """Option, value here and value there, of those on which results depend."""
        for one, value in self._values():
            if value != getattr(other, one.name) and not one.metadata["same_results"]:
                yield one.metadata["flag"], value, getattr(other, one.name)

    def _values(self) -> Iterator[tuple[Field, Any]]:
        return ((one, getattr(self, one.name)) for one in fields(self))


KEYS: dict[str, type | tuple[type, ...]] = {one.metadata["key"]: one.metadata["in_file"] for one in fields(RunOptions)}
"""What a campaign file may say of them, with its type."""


def on_command_line(command: Callable) -> Callable:
    """Adds an option for each; those that were not given are None."""
    for one in reversed(fields(RunOptions)):
        flag = {"is_flag": True} if one.type is bool else {}
        attributes = {**flag, **one.metadata["click"]}
        command = click.option(one.metadata["flag"], one.name, default=None, help=one.metadata["text"], **attributes)(
            command
        )
    return command


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Takes those that were given out of a command's arguments."""
    found = {one.name: (one, values.pop(one.name)) for one in fields(RunOptions)}
    return {name: one.metadata["parse"](value) for name, (one, value) in found.items() if value is not None}


def from_file(table: Mapping[str, Any]) -> RunOptions:
    """What a campaign file says of them."""
    keys = {one: one.metadata["key"] for one in fields(RunOptions)}
    return RunOptions(**{one.name: one.metadata["parse"](table[key]) for one, key in keys.items() if key in table})
