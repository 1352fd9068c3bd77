"""Calls blockyard-sites and words what sites, diff and export share."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from blockyard import journal_tool, native
from blockyard.counted import listed

BY = ("function", "line", "module", "tag", "stack")
_GENERATED = "[generated code]"
SORTS = ("allocations", "bytes", "frame", "worst-frame", "peak", "end", "same-frame", "shared")


def call(arguments: Sequence[str | os.PathLike]) -> str:
    """Runs blockyard-sites; what it printed."""
    return journal_tool.run("blockyard-sites", arguments)


def listing(journal: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The journal's sites, by these options of the native program."""
    return json.loads(call(["list", journal, *native.arguments(given)]))


def name(site: dict[str, Any]) -> str:
    """What a person calls the site."""
    if "tag" in site:
        return site["tag"] or "(no tag)"
    if "function" not in site:
        return site["module"] or "(no call stack)"
    if not site["function"]:
        return "(no call stack)"
    where = os.path.basename(site["file"]) if "line" in site else ""
    return f"{site['function']} {where}:{site['line']}" if site.get("line") else f"{site['function']} {where}".rstrip()


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
