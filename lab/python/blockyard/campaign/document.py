"""The campaign as `campaign.json` keeps it: written once, the same in every share."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blockyard.campaign import run_options
from blockyard.campaign.run_options import RunOptions
from blockyard.campaign.schedule import NULL, Run, schedule, traces
from blockyard.campaign.settings import MOST_REPEATS, Settings
from blockyard.errors import UserError

FORMAT = 1
FILE = "campaign.json"
_SHARED = {
    "paces": "paces",
    "touches": "touches",
    "repeats": "repeats",
    "untimed runs": "totals",
    "traced runs": "traced",
}
"""What a campaign has in common with its shares and with a request to go on with it: words, and the field."""


@dataclass(frozen=True)
class Campaign:
    """`journals` and `allocators` are their entries in the file; see docs/reference/campaign-folder.md. A journal whose
    entry names another as its `baseline` has that one's runs on `null`."""

    name: str
    created_at: str
    blockyard: str
    journals: list[dict[str, Any]]
    allocators: list[dict[str, Any]]
    missing: list[dict[str, str]]
    paces: list[str]
    touches: list[str]
    repeats: int
    options: RunOptions
    shard: str | None = None
    traced: bool = False
    totals: bool = False

    def runs(self) -> list[Run]:
        """All runs, those of other shares included. Untimed ones stand beside the timed ones they are compared with."""
        runs = schedule(*self._names(), self.paces, self.touches, self.repeats, totals=self.totals)
        elsewhere = {entry["name"] for entry in self.journals if "baseline" in entry}
        return [run for run in runs if run.allocator != NULL or run.journal not in elsewhere]

    def traces(self) -> list[Run]:
        """The traced runs, which measure nothing: none of them is in `runs`."""
        return traces(*self._names(), self.paces, self.touches, len(self.runs())) if self.traced else []

    def _names(self) -> Iterator[list[str]]:
        return ([entry["name"] for entry in entries] for entries in (self.journals, self.allocators))

    def all_runs(self) -> list[Run]:
        """Everything that there is to do."""
        return self.runs() + self.traces()

    def journal(self, name: str) -> dict[str, Any]:
        return next(journal for journal in self.journals if journal["name"] == name)

    def to_json(self) -> str:
        """One line a journal, an allocator and a run, so that a person can read it and `diff` it."""
        fields: dict[str, Any] = {"format": FORMAT, **self.__dict__, **self.options.to_json()}
        del fields["options"]
        fields["runs"] = [{"id": run.id, **run.__dict__} for run in self.runs()]
        if self.traced:
            fields["traces"] = [{"id": run.id, **run.__dict__} for run in self.traces()]
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {_lines(value)}" for key, value in fields.items()) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n    " + ",\n    ".join(json.dumps(entry) for entry in value) + "\n  ]"
    return json.dumps(value)


def read(folder: Path) -> Campaign:
    """Reads a folder's campaign; refuses what isn't one, in a sentence."""
    path = folder / FILE
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        if fields["format"] != FORMAT:
            raise UserError(f"{path} has format {fields['format']}, and this Blockyard reads {FORMAT}; update it")
        fields["options"] = run_options.from_json(fields)
        campaign = Campaign(**{key: fields[key] for key in Campaign.__dataclass_fields__ if key in fields})
        names = [*campaign.paces, *campaign.touches, campaign.options.threads]
        if not 1 <= campaign.repeats <= MOST_REPEATS or not all(isinstance(name, str) for name in names):
            raise ValueError
        if not all({"name", "reason"} <= entry.keys() for entry in campaign.missing):
            raise ValueError
        campaign.all_runs()  # a plan that is JSON and yet none fails here
        return campaign
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder} holds no campaign; 'blockyard replay JOURNAL -a ALLOCATORS -o {folder}' makes one"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is not a campaign's plan; it was damaged or written by something else") from None


def requested_differences(
    campaign: Campaign, settings: Settings, hashes: dict[str, str], allocators: list[str]
) -> list[str]:
    """How a request differs from the campaign on disk, each difference a phrase; empty when it is the same.

    `hashes` are the SHA-256 of the journals asked for, by name; `allocators` the names that the request resolves to.
    """
    there = {journal["name"]: journal for journal in campaign.journals}
    here = {journal.name: journal for journal in settings.journals}
    known = [entry["name"] for entry in [*campaign.allocators, *campaign.missing]]
    found = list(_unequal("its journals are", list(there), list(here)))
    for name in there.keys() & here.keys():
        if there[name]["sha256"] != hashes[name]:
            found.append(f"its journal {name} has other contents")
        found += _unequal(
            f"its stretch of {name} is",
            [there[name]["from_s"], there[name]["to_s"]],
            [here[name].from_s, here[name].to_s],
        )
    found += _unequal("its allocators are", sorted(known), sorted(allocators))
    for words, field in _SHARED.items():
        here = getattr(settings, field)
        found += _unequal(f"its {words} are", getattr(campaign, field), list(here) if isinstance(here, tuple) else here)
    return found + _option_differences(campaign.options, settings.options)


def share_differences(first: Campaign, other: Campaign) -> list[str]:
    """How two shares differ in what they must have in common; empty when they are of one campaign."""
    found: list[str] = []
    for words, field in {"names": "name", "Blockyard versions": "blockyard", **_SHARED}.items():
        found += _unequal(f"their {words} are", getattr(first, field), getattr(other, field))
    found += _option_differences(first.options, other.options)
    found += _unequal("their journals are", *([entry["name"] for entry in one.journals] for one in (first, other)))
    found += _unequal("their allocators are", *([entry["name"] for entry in one.allocators] for one in (first, other)))
    if found:
        return found
    for mine, theirs in zip(first.journals, other.journals, strict=True):
        if any(mine[key] != theirs[key] for key in ("sha256", "from_s", "to_s")):
            found.append(f"journal {mine['name']} has other contents or another stretch")
    for mine, theirs in zip(first.allocators, other.allocators, strict=True):
        found += _unequal(f"the versions of {mine['name']} are", mine["version"], theirs["version"])
        if mine.get("sha256") != theirs.get("sha256"):
            found.append(f"the library of {mine['name']} is another")
    return found


def _option_differences(there: RunOptions, here: RunOptions) -> list[str]:
    return [words for flag, *both in there.differences(here) for words in _unequal(f"{flag} is", *both)]


def _unequal(what: str, there: object, here: object) -> Iterator[str]:
    if there != here:
        yield f"{what} {_text(there)} there and {_text(here)} here"


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join("-" if entry is None else str(entry) for entry in value) or "none"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
