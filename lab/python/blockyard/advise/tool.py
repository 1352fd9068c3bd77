"""Calls blockyard-advise and puts what it finds into a folder."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blockyard import native, terminal
from blockyard.advise import markdown
from blockyard.errors import UserError

KINDS = ("temp", "temp_scope", "temp_job", "pool", "rewindable", "reserve", "keep")
REPORT = "advice.json"
PAGE = "advice.md"
ROUTES = "routes.byr"


def wishes(texts: Sequence[str], earlier: Sequence[dict[str, Any]] = ()) -> list[str]:
    """SITE=KIND,SITE=KIND,... one by one. Commas inside a function's parameters or template arguments belong to it."""
    found = []
    for text in texts:
        begin, depth = 0, 0
        for at, letter in enumerate(text):
            depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(letter, 0)
            if letter == "," and depth <= 0:
                found.append(text[begin:at])
                begin = at + 1
        found.append(text[begin:])
    for one in found:
        site, _, kind = one.rpartition("=")
        if not site or kind not in KINDS:
            raise UserError(f"--apply wants SITE=KIND with KIND one of {', '.join(KINDS)}, and got '{one}'")
    return found


def analyse(journal: Path, on: Sequence[Path], applied: Sequence[str], routes: Path) -> dict[str, Any]:
    """What blockyard-advise says. It writes `routes`."""
    arguments: list[str | os.PathLike] = [journal, "--routes", routes]
    for other in on:
        arguments += ["--on", other]
    for wish in applied:
        arguments += ["--apply", wish]
    if not sys.stderr.isatty():
        return json.loads(native.call("blockyard-advise", arguments))
    with terminal.reading_bar() as tell:
        return json.loads(native.call("blockyard-advise", arguments, on_progress=tell))


class Folder:
    """Where advice goes. It takes its final name when it is complete; a failure leaves nothing behind."""

    def __init__(self, final: Path) -> None:
        if final.exists():
            raise UserError(f"{final} exists already; name another folder with -o, or remove it")
        if not final.absolute().parent.is_dir():
            raise UserError(f"{final} can't be made: there is no folder {final.absolute().parent}")
        self.final = final
        self.path = final.with_name(f"{final.name}.part-{os.getpid()}")

    def __enter__(self) -> "Folder":
        self.path.mkdir()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.path.rename(self.final)
        else:
            shutil.rmtree(self.path, ignore_errors=True)

    def write(self, report: dict[str, Any]) -> None:
        (self.path / REPORT).write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
        (self.path / PAGE).write_text(markdown.page(report))
