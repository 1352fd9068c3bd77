"""How the runs of a campaign are replayed: every option in one place.

A field of RunOptions is an option of `blockyard replay`, a key of campaign files, a field of campaign.json, an argument
of `blockyard-replay run`, and something in which campaigns must agree to be resumed, joined or compared.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

import click

from blockyard.errors import UserError
from blockyard.options import Finite

THREADS = ("journal", "one")
CAUSES_ABOVE_NS = 250
"""From here on an event carries why it was slow: whatever the kernel does to one takes longer."""
_MOST_CAUSES_ABOVE_NS = 10**18  # some 31 years, which no event takes, and within 64 bits
_MOST_POLLUTE_BYTES = 1 << 30
_MOST_MIB = 1 << 24  # 16 TiB, more than any machine has


def parse_size(text: str | int) -> int:
    """`32768`, `256K`, `8M` are bytes."""
    match = re.fullmatch(r"(\d+)\s*([KMG]?)(i?B)?", str(text).strip(), re.IGNORECASE)
    if match is None:
        raise UserError(f"'{text}' is not a number of bytes; write 262144, 256K or 8M")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def _pollute(text: str | int) -> int:
    count = parse_size(text)
    if count > _MOST_POLLUTE_BYTES:
        raise UserError(f"{count} bytes can't be walked between events; use 0 to 1G")
    return count


def _causes_above(nanoseconds: int) -> int:
    if not 0 <= nanoseconds <= _MOST_CAUSES_ABOVE_NS:
        raise UserError(
            f"{nanoseconds} ns is not a latency; --causes-above takes 0 (no causes) to {_MOST_CAUSES_ABOVE_NS:,}"
        )
    return nanoseconds


def _threads(way: str) -> str:
    if way not in THREADS:
        raise UserError(f"'{way}' is not a way to run threads; use journal or one")
    return way


def _option(
    default: Any,
    flag: str,
    text: str,
    *,
    parse: Callable[[Any], Any] = lambda value: value,
    in_file: type | tuple[type, ...] = bool,
    in_traces: bool = True,
    same_results: bool = False,
    **click_attributes: Any,
) -> Any:
    """`in_file` is its type in a campaign file; an option of which results do not depend (`same_results`) may differ
    between campaigns that are compared."""
    key = flag.removeprefix("--").replace("-", "_")
    return field(
        default=default,
        metadata={
            "flag": flag,
            "text": text,
            "key": key,
            "parse": parse,
            "in_file": in_file,
            "in_traces": in_traces,
            "same_results": same_results,
            "click": click_attributes,
        },
    )


@dataclass(frozen=True)
class RunOptions:
    """What all runs of a campaign have in common beside journal, allocator, pace and touch."""

    threads: str = _option(
        "journal",
        "--threads",
        "The journal's threads, or all on one.  [journal]",
        parse=_threads,
        in_file=str,
        type=click.Choice(THREADS),
    )
    causes_above_ns: int = _option(
        CAUSES_ABOVE_NS,
        "--causes-above",
        "Find out why events of NS nanoseconds and more were slow; 0 turns it off.  [250]",
        parse=_causes_above,
        in_file=int,
        type=int,
        metavar="NS",
    )
    pollute_bytes: int = _option(
        0,
        "--pollute",
        "Walk through this much other memory between events (64K, 8M), so that the allocator's data are as cold as "
        "in a game.  [0]",
        parse=_pollute,
        in_file=(int, str),
        metavar="BYTES",
    )
    in_order: bool = _option(
        False,
        "--in-order",
        "Begin each event after all earlier ones in the journal, of every thread, and keep each thread on one core: "
        "every repeat does the same work, and none waits for another thread's lock.",
    )
    keep_awake: bool = _option(
        False,
        "--keep-awake",
        "Run an idle-priority loop on each core, so that none sleeps between events: as in a busy program, steadier on "
        "a virtual machine.",
        in_traces=False,
    )
    stream_above_mib: float | None = _option(
        None,
        "--stream-above",
        "Memory for a journal's events (32 bytes each); a longer one is read during its replay.  [512]",
        in_file=(int, float),
        same_results=True,
        type=Finite(0, _MOST_MIB),
        metavar="MIB",
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
