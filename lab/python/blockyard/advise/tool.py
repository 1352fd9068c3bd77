"""Calls blockyard-advise and puts what it finds into a folder."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blockyard import journal_tool, native
from blockyard.advise import markdown
from blockyard.errors import UserError
from blockyard.files import whole_text

KINDS = ("temp", "temp_scope", "temp_job", "pool", "rewindable", "reserve", "keep")
REPORT = "advice.json"
PAGE = "advice.md"
ROUTES = "routes.byr"
REPLAYS = "replays"


def wishes(texts: Sequence[str]) -> list[str]:
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
        if sum(other.rpartition("=")[0] == site for other in found) > 1:
            raise UserError(f"--apply names '{site}' twice; one site can't go two ways")
    return found


def analyse(journal: Path, on: Sequence[Path], applied: Sequence[str], routes: Path) -> dict[str, Any]:
    """What blockyard-advise says. It writes `routes`."""
    given = native.arguments({"--routes": routes, "--on": on, "--apply": applied})
    return json.loads(journal_tool.run("blockyard-advise", [journal, *given]))


class Folder:
    """Where advice goes. It takes its final name when the advice is complete; a failure before leaves nothing behind.

    One whose replays were interrupted is opened again by the same request.
    """

    def __init__(self, final: Path, request: dict[str, Any]) -> None:
        self.final = final
        self.request = request
        self.path = final.with_name(f"{final.name}.part-{os.getpid()}")
        self.begun: dict[str, Any] | None = None
        if final.exists():
            self.begun = self._interrupted()
            if self.begun is None:
                raise UserError(f"{final} exists already; name another folder with -o, or remove it")
            self.path = final
        elif not final.absolute().parent.is_dir():
            raise UserError(f"{final} can't be made: there is no folder {final.absolute().parent}")

    def _interrupted(self) -> dict[str, Any] | None:
        try:
            report = json.loads((self.final / REPORT).read_text())
        except (OSError, ValueError):
            return None
        if not isinstance(report, dict):
            return None
        return report if report.get("request") == self.request and "measured" not in report else None

    def __enter__(self) -> "Folder":
        if self.begun is None:
            self.path.mkdir()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self.path != self.final:
            shutil.rmtree(self.path, ignore_errors=True)

    def write(self, report: dict[str, Any]) -> None:
        """From now on the folder has its name."""
        whole_text(self.path / REPORT, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
        whole_text(self.path / PAGE, markdown.page(report))
        if self.path != self.final:
            self.path.rename(self.final)
            self.path = self.final
