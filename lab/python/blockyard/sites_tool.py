"""Calls blockyard-sites and words what sites, diff and export share."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from blockyard import journal_tool, native
from blockyard.units import listed

BY = ("function", "line", "module", "tag", "stack")
_GENERATED = "[generated code]"
SORTS = ("allocations", "bytes", "frame", "worst-frame", "peak", "end", "same-frame", "shared")


def call(arguments: Sequence[str | os.PathLike]) -> str:
    """Runs blockyard-sites; what it printed."""
    return journal_tool.run("blockyard-sites", arguments)


class Totals(msgspec.Struct, frozen=True):
    """Of a site, or of all: calls, bytes, and what became of the blocks."""

    allocations: int
    bytes: int
    frame_allocations: int
    frame_bytes: int
    worst_frame_allocations: int
    frames: int
    peak_blocks: int
    peak_bytes: int
    end_blocks: int
    end_bytes: int
    freed: int
    freed_same_frame: int


class Function(msgspec.Struct, frozen=True):
    """One of a stack; `line` is 0 where it is unknown."""

    function: str
    file: str
    line: int
    module: str


class Site(Totals, frozen=True):
    """What --by does not tell apart is None."""

    freed_shared: int
    shared_function: str
    tag: str | None = None
    function: str | None = None
    file: str = ""
    line: int | None = None
    module: str = ""
    stack: list[Function] | None = None


class Listing(msgspec.Struct, frozen=True):
    program: str
    marked_frames: bool
    frame_count: int
    peak_at_ns: int
    cut_at_end: bool
    has_names: bool
    without_stack: int
    incomplete_stacks: int
    site_count: int
    all: Totals
    sites: list[Site]
    notes: list[str]


def listing(journal: Path, given: Mapping[str, Any]) -> tuple[Listing, str]:
    """The journal's sites, by these options of the native program; and as the JSON that it printed."""
    text = call(["list", journal, *native.arguments(given)])
    return native.decoded("blockyard-sites", text, Listing), text


def name(site: Site | Function) -> str:
    """What a person calls the site."""
    if isinstance(site, Site):
        if site.tag is not None:
            return site.tag or "(no tag)"
        if site.function is None:
            return site.module or "(no call stack)"
    if not site.function:
        return "(no call stack)"
    where = os.path.basename(site.file) if site.line is not None else ""
    return f"{site.function} {where}:{site.line}" if site.line else f"{site.function} {where}".rstrip()


def is_nameless(function: str) -> bool:
    """Whether it is called by its address, in a module or in code that was compiled while the program ran."""
    return re.search(r"(?:\+|^)0x[0-9a-f]+$", function) is not None


def without_symbols(modules: Sequence[str], journal: str | os.PathLike) -> str:
    """What to do about functions of these modules that have no names."""
    files = [module for module in modules if module != _GENERATED]
    said = []
    if files:
        said.append(
            f"Functions of {listed(files)} have addresses instead of names: install debug symbols (the distribution's "
            f"-dbgsym package) and run 'blockyard names {journal}' (--debug-dir DIR for symbols elsewhere), or build "
            "with -g and record again."
        )
    if len(files) < len(modules):
        said.append(
            "Code that was compiled while the program ran has addresses instead of names; a perf map names it: record "
            ".NET with DOTNET_PerfMapEnabled=1. Stacks of JavaScript and Java end there."
        )
    return " ".join(said)


grouping = click.option(
    "--by", type=click.Choice(BY), default="function", show_default=True, help="What makes allocations one site."
)
wrappers = click.option(
    "--wrappers", is_flag=True, help="Let operator new, malloc and the standard library stand for a stack."
)
skip = click.option(
    "--skip",
    metavar="REGEX",
    help="Functions of the program that don't stand for a stack, such as its own allocator's.",
)
through = click.option(
    "--through", metavar="REGEX", help="Only stacks with a function, anywhere in them, that REGEX matches."
)
