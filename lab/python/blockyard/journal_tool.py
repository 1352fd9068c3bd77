"""Calls native programs with a progress bar, blockyard-journal above all, and what that one says as types."""

import json
import os
from collections.abc import Iterable, Sequence

import click
import msgspec

from blockyard import native, terminal
from blockyard.errors import UserError
from blockyard.units import counted, size

_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_TOOL = "blockyard-journal"


class Written(msgspec.Struct, frozen=True):
    """Of cut, repeat and convert."""

    output: str
    events: int
    preamble_events: int
    joined_reallocs: int
    bytes: int
    notes: list[str]


class Checked(msgspec.Struct, frozen=True):
    events: int
    blocks_given: int
    live_at_end: int
    threads: int
    frame_marks: int
    has_addresses: bool
    allocator: str
    events_with_stack: int
    stacks: int
    notes: list[str]


class Kinds(msgspec.Struct, frozen=True):
    allocate_zeroed: int
    allocate_aligned: int
    reallocate: int


class Blocks(msgspec.Struct, frozen=True):
    blocks: int
    bytes: int


class SizeClass(msgspec.Struct, frozen=True, rename={"first": "from"}):
    first: int
    below: int
    blocks: int
    bytes: int


class Sizes(msgspec.Struct, frozen=True):
    mean: float
    median: int
    p99: int
    p999: int
    largest: int
    zero: int
    histogram: list[SizeClass]


class Lifetime(msgspec.Struct, frozen=True):
    """Of blocks that lived shorter; None is the rest."""

    below_ns: int | None
    blocks: int
    share: float


class Thread(msgspec.Struct, frozen=True):
    id: int
    name: str
    allocations: int
    frees: int
    remote_frees: int
    bytes: int


class Percentiles(msgspec.Struct, frozen=True):
    p50: int
    p90: int
    p99: int
    p999: int
    max: int


class Busiest(msgspec.Struct, frozen=True):
    at_ns: int
    events: int = 0
    bytes: int = 0


class Frames(msgspec.Struct, frozen=True):
    """`thread` is the place of the one that marked them; `frame_ns` is how they are cut where none did."""

    marked: bool
    count: int
    events: Percentiles
    most_events: Busiest
    most_bytes: Busiest
    thread: int = 0
    frame_ns: int = 0
    length_ns: Percentiles | None = None


class Stacks(msgspec.Struct, frozen=True):
    modules: int
    modules_without_names: int
    named_addresses: int
    sites: int
    events: int
    incomplete_events: dict[str, int]
    tagged_events: int


class Facts(msgspec.Struct, frozen=True):
    """Of info."""

    form: str
    file_bytes: int
    bytes_per_event: float
    program: str
    command: list[str]
    machine: str
    recorder: str
    allocator: str
    started_at: str
    paced: bool
    has_addresses: bool
    cut_at_end: bool
    threads_known: bool
    events: int
    duration_ns: int
    kinds: Kinds
    preamble: Blocks
    allocations: int
    frees: int
    total_bytes: int
    max_live_bytes: int
    max_live_bytes_at_ns: int
    max_live_blocks: int
    live_at_end: Blocks
    remote_frees: int
    remote_free_share: float
    sizes: Sizes
    lifetimes: list[Lifetime]
    threads: list[Thread]
    frames: Frames
    stacks: Stacks
    phases: list[str]
    repairs: list[str]
    notes: list[str]


def run(program: str, arguments: Sequence[str | os.PathLike]) -> str:
    """What a native program prints. Where it takes a while it is seen to go on."""
    with terminal.reading_bar() as tell:
        return native.call(program, arguments, on_progress=tell)


def call(arguments: Sequence[str | os.PathLike]) -> str:
    """The JSON that blockyard-journal prints."""
    return run(_TOOL, [*arguments, "--json"])


def facts(text: str) -> Facts:
    return native.decoded(_TOOL, text, Facts)


def checked(text: str) -> Checked:
    return native.decoded(_TOOL, text, Checked)


def write(
    verb: str, journal: os.PathLike, output: os.PathLike, more: Sequence[str], *, force: bool, as_json: bool
) -> None:
    """Has blockyard-journal write `output`, and says what it wrote."""
    refuse_standard_output(output)
    text = call([verb, journal, *more, "-o", output, *(["--force"] if force else [])])
    if as_json:
        print_json(text)
        return
    result = native.decoded(_TOOL, text, Written)
    preamble = f", of them {result.preamble_events:,} preamble" if result.preamble_events else ""
    joined = f", {counted(result.joined_reallocs, 'realloc')} joined" if result.joined_reallocs else ""
    click.echo(f"{result.output}: {counted(result.events, 'event')}{preamble}{joined}, {size(result.bytes)}")
    print_notes(result.notes)


def refuse_standard_output(output: os.PathLike) -> None:
    """A journal on standard output would be mixed with the command's own words."""
    if os.fspath(output) in _STANDARD_OUTPUT:
        raise UserError(f"{output} can't take a journal: standard output has the command's own words; name a file")


def print_json(found: object) -> None:
    """Indented: of a text that is JSON, or of values."""
    click.echo(
        msgspec.json.format(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False), indent=2)
    )


def print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"Note: {note}.")
