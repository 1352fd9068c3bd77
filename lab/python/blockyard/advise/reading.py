"""Reads the advice that a folder holds."""

import json
from pathlib import Path
from typing import Any

from blockyard.advise import tool
from blockyard.campaign import document
from blockyard.errors import UserError

_MEMBERS = {"advice", "leave", "estimated_ns", "frames", "request"}
_OF_SITE = {"what", "where", "contexts", "evidence", "estimate"}


def read(folder: Path) -> dict[str, Any]:
    """advice.json. Raises UserError, in a sentence, where the folder has none."""
    path = folder / tool.REPORT
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
    return report


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
    return (folder / tool.REPORT).is_file() and not (folder / document.FILE).exists()


def replays(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """The campaign that measured the advice, and of its journals the one without changes and the one with all."""
    campaign = folder / tool.REPLAYS
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
