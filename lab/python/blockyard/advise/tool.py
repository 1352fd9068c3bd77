"""Calls blockyard-advise and puts what it finds into a folder."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blockyard import journal_tool, native
from blockyard.advise.worth import worth
from blockyard.campaign import document
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


def analyse(
    journal: Path, on: Sequence[Path], applied: Sequence[str], routes: Path, everything: bool = False
) -> dict[str, Any]:
    """What blockyard-advise says, the change first that saves most of the worst frame. It writes `routes`."""
    given = native.arguments({"--routes": routes, "--on": on, "--apply": applied, "--all": everything})
    report = json.loads(journal_tool.run("blockyard-advise", [journal, *given]))
    report["advice"].sort(key=worth(report), reverse=True)
    for number, advice in enumerate(report["advice"], start=1):
        advice["id"] = number
    return report


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

    def write(self, report: dict[str, Any], page: str) -> None:
        """From now on the folder has its name; `page` says in words what the report does."""
        whole_text(self.path / REPORT, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
        whole_text(self.path / PAGE, page)
        if self.path != self.final:
            self.path.rename(self.final)
            self.path = self.final


_MEMBERS = {"advice", "leave", "inside", "estimated_ns", "frames", "request"}
_OF_SITE = {"what", "where", "contexts", "evidence", "estimate"}


def read(folder: Path) -> dict[str, Any]:
    """advice.json. Raises UserError, in a sentence, where the folder has none."""
    path = folder / REPORT
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        if not _is_whole(report):
            raise ValueError
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} holds no advice; give the folder that 'blockyard advise -o' wrote") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror or error}") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise UserError(f"{path} is no advice of this version; write it again by 'blockyard advise'") from None
    return report | {"folder": str(folder)}


def _is_whole(report: dict[str, Any]) -> bool:
    sites = [*report["advice"], *report["leave"]]
    return (
        report.keys() >= _MEMBERS
        and report["request"].keys() >= {"journal", "sha256"}
        and len(fingerprint(report)) == 64
        and all(site.keys() >= _OF_SITE for site in sites)
        and all("held" in advice for advice in report["advice"])
    )


def is_advice(folder: Path) -> bool:
    return (folder / REPORT).is_file() and not (folder / document.FILE).exists()


def replays(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """The campaign that measured the advice, and of its journals the one without changes and the one with all."""
    campaign = folder / REPLAYS
    if not campaign.is_dir():
        journal = read(folder)["request"]["journal"]
        raise UserError(
            f"{folder} holds advice without replays; run 'blockyard replay {journal} -a ALLOCATORS -o results' and "
            f"'blockyard report results --advice {folder}'"
        )
    names = [entry["name"] for entry in document.read(campaign).journals]
    return campaign, (names[0], names[-1])


def fingerprint(report: dict[str, Any]) -> str:
    """The SHA-256 of the journal that the advice was made from."""
    return report["request"]["sha256"][0]
