"""Calls blockyard-advise and puts what it finds into a folder."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from blockyard import journal_tool, native
from blockyard.advise.document import Advice, Request
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
) -> Advice:
    """What blockyard-advise says, the change first that saves most of the worst frame. It writes `routes`."""
    given = native.arguments({"--routes": routes, "--on": on, "--apply": applied, "--all": everything})
    report = native.decoded("blockyard-advise", journal_tool.run("blockyard-advise", [journal, *given]), Advice)
    report.advice.sort(key=report.worth, reverse=True)
    for number, advice in enumerate(report.advice, start=1):
        advice.id = number
    return report


class Folder:
    """Where advice goes. It takes its final name when the advice is complete; a failure before leaves nothing behind.

    One whose replays were interrupted is opened again by the same request.
    """

    def __init__(self, final: Path, request: Request) -> None:
        self.final = final
        self.request = request
        self.path = final.with_name(f"{final.name}.part-{os.getpid()}")
        self.begun: Advice | None = None
        if final.exists():
            self.begun = self._interrupted()
            if self.begun is None:
                raise UserError(f"{final} exists already; name another folder with -o, or remove it")
            self.path = final
        elif not final.absolute().parent.is_dir():
            raise UserError(f"{final} can't be made: there is no folder {final.absolute().parent}")

    def _interrupted(self) -> Advice | None:
        try:
            report = msgspec.json.decode((self.final / REPORT).read_bytes(), type=Advice)
        except (OSError, msgspec.DecodeError):
            return None
        return report if report.request == self.request and report.measured is None else None

    def __enter__(self) -> "Folder":
        if self.begun is None:
            try:
                self.path.mkdir()
            except OSError as error:
                raise UserError(f"{self.final} can't be made: {error.strerror}; name another folder with -o") from None
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self.path != self.final:
            shutil.rmtree(self.path, ignore_errors=True)

    def write(self, report: Advice, page: str) -> None:
        """From now on the folder has its name; `page` says in words what the report does."""
        whole_text(self.path / REPORT, msgspec.json.format(text(report), indent=2) + "\n")
        whole_text(self.path / PAGE, page)
        if self.path != self.final:
            self.path.rename(self.final)
            self.path = self.final


def text(report: Advice) -> str:
    """As JSON."""
    return msgspec.json.encode(report).decode()


def read(folder: Path) -> Advice:
    """advice.json. Raises UserError, in a sentence, where the folder has none."""
    path = folder / REPORT
    try:
        report = msgspec.json.decode(path.read_bytes(), type=Advice)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} holds no advice; give the folder that 'blockyard advise -o' wrote") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror or error}") from None
    except msgspec.DecodeError:
        report = None
    if report is None or not report.request.sha256:
        raise UserError(f"{path} is no advice of this version; write it again by 'blockyard advise'")
    report.folder = str(folder)
    return report


def is_advice(folder: Path) -> bool:
    return (folder / REPORT).is_file() and not (folder / document.FILE).exists()


def replays(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """The campaign that measured the advice, and of its journals the one without changes and the one with all."""
    campaign = folder / REPLAYS
    if not campaign.is_dir():
        journal = read(folder).request.journal
        raise UserError(
            f"{folder} holds advice without replays; run 'blockyard replay {journal} -a ALLOCATORS -o results' and "
            f"'blockyard report results --advice {folder}'"
        )
    names = [entry.name for entry in document.read(campaign).journals]
    return campaign, (names[0], names[-1])


def fingerprint(report: Advice) -> str:
    """The SHA-256 of the journal that the advice was made from."""
    return report.request.sha256[0]
