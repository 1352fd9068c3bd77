"""The campaign as `campaign.json` keeps it: written once, the same in every share."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

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


class PhaseMark(Struct, frozen=True):
    name: str
    time_ns: Annotated[int, Meta(ge=0)]
    event: Annotated[int, Meta(ge=0)]


class PlanFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `blockyard-replay plan` says of a journal."""

    events: int
    measured_events: int
    peak_bytes: int
    duration_s: float
    first_event: int = 0
    blocks: int = 0
    preamble_blocks: int = 0
    preamble_bytes: int = 0
    peak_blocks: int = 0
    largest_bytes: int = 0
    pool_bytes: int = 0
    threads: int = 0
    idle_threads: int = 0
    remote_frees: int = 0
    waits: int = 0
    frames: int = 0
    origin_s: float = 0.0
    paced: bool = True
    slots: int = 0
    plan_bytes: int = 0
    program: str = ""
    allocator: str = ""
    notes: list[str] = []
    unseen: list[str] = []
    """What the recorder could not see, a sentence each, without its stop."""
    cut_at_end: bool = False
    stacks: bool | None = None
    phases: list[PhaseMark] = []
    thread_names: list[str] = []
    """By index, empty for a thread that never named itself."""
    routes: list[dict[str, Any]] = []


class Journal(PlanFacts, frozen=True, kw_only=True, omit_defaults=True):
    """One whose entry names another as its `baseline` has that one's runs on `null`. `groups` of routes, of the file
    with that sum, are what advise measures."""

    name: str
    path: str
    sha256: str
    from_s: float | None
    to_s: float | None
    baseline: str | None = None
    groups: list[int] = []
    routes_sha256: str = ""

    @property
    def stretch(self) -> tuple[str, float | None, float | None]:
        """What must be the same where replays of it are joined or compared."""
        return self.sha256, self.from_s, self.to_s


class Allocator(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`file`, with its sum, is a library of the user's own."""

    name: str
    base: str = ""
    variant: str = "defaults"
    version: str = ""
    origin: str = ""
    notes: str = ""
    options: str = ""
    populate: bool = False
    needs_lock: bool = False
    needs_pool: bool = False
    environment: dict[str, str] = {}
    file: str | None = None
    sha256: str | None = None


class Missing(Struct, frozen=True):
    name: str
    reason: str


class Campaign(Struct, frozen=True, kw_only=True):
    """`options` stand in the file one by one beside the others."""

    format: Literal[1] = FORMAT
    name: str
    created_at: str
    blockyard: str
    journals: list[Journal]
    allocators: list[Allocator]
    missing: list[Missing]
    paces: list[str]
    touches: list[str]
    repeats: Annotated[int, Meta(ge=1, le=MOST_REPEATS)]
    shard: str | None = None
    traced: bool = False
    totals: bool = False
    options: RunOptions = field(default_factory=RunOptions)

    def runs(self) -> list[Run]:
        """All runs, those of other shares included. Untimed ones stand beside the timed ones they are compared with."""
        runs = schedule(*self._names(), self.paces, self.touches, self.repeats, totals=self.totals)
        elsewhere = {journal.name for journal in self.journals if journal.baseline}
        return [run for run in runs if run.allocator != NULL or run.journal not in elsewhere]

    def traces(self) -> list[Run]:
        """The traced runs, which measure nothing: none of them is in `runs`."""
        return traces(*self._names(), self.paces, self.touches, len(self.runs())) if self.traced else []

    def _names(self) -> Iterator[list[str]]:
        return ([one.name for one in entries] for entries in (self.journals, self.allocators))

    def all_runs(self) -> list[Run]:
        """Everything that there is to do."""
        return self.runs() + self.traces()

    def journal(self, name: str) -> Journal:
        return next(journal for journal in self.journals if journal.name == name)

    def to_json(self, *, runs: bool = True) -> str:
        """One line a journal, an allocator and a run, so that a person can read it and `diff` it. Nobody reads `runs`
        back: one of a thousand shares does without."""
        fields = msgspec.to_builtins(self)
        fields |= fields.pop("options")
        if runs:
            fields["runs"] = [{"id": run.id, **run.__dict__} for run in self.runs()]
        if runs and self.traced:
            fields["traces"] = [{"id": run.id, **run.__dict__} for run in self.traces()]
        return "{\n" + ",\n".join(f"  {json.dumps(key)}: {_lines(value)}" for key, value in fields.items()) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n    " + ",\n    ".join(json.dumps(entry) for entry in value) + "\n  ]"
    return json.dumps(value)


class _Format(Struct):
    format: int


def read(folder: Path) -> Campaign:
    """Reads a folder's campaign; refuses what isn't one, in a sentence."""
    path = folder / FILE
    try:
        data = path.read_bytes()
        form = msgspec.json.decode(data, type=_Format).format
        if form != FORMAT:
            raise UserError(f"{path} has format {form}, and this Blockyard reads {FORMAT}; update it")
        campaign = msgspec.json.decode(data, type=Campaign)
        return msgspec.structs.replace(campaign, options=msgspec.json.decode(data, type=RunOptions))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder} holds no campaign; 'blockyard replay JOURNAL -a ALLOCATORS -o {folder}' makes one"
        ) from None
    except msgspec.DecodeError:
        raise UserError(f"{path} is not a campaign's plan; it was damaged or written by something else") from None


def requested_differences(
    campaign: Campaign, settings: Settings, hashes: dict[str, str], allocators: list[str]
) -> list[str]:
    """How a request differs from the campaign on disk, each difference a phrase; empty when it is the same.

    `hashes` are the SHA-256 of the journals asked for, by name; `allocators` the names that the request resolves to.
    """
    there = {journal.name: journal for journal in campaign.journals}
    here = {journal.name: journal for journal in settings.journals}
    known = [one.name for one in [*campaign.allocators, *campaign.missing]]
    found = list(_unequal("its journals are", list(there), list(here)))
    for name in there.keys() & here.keys():
        if there[name].sha256 != hashes[name]:
            found.append(f"its journal {name} has other contents")
        found += _unequal(
            f"its stretch of {name} is", [there[name].from_s, there[name].to_s], [here[name].from_s, here[name].to_s]
        )
    found += _unequal("its allocators are", sorted(known), sorted(allocators))
    for words, member in _SHARED.items():
        here = getattr(settings, member)
        found += _unequal(
            f"its {words} are", getattr(campaign, member), list(here) if isinstance(here, tuple) else here
        )
    return found + _option_differences(campaign.options, settings.options)


def share_differences(first: Campaign, other: Campaign) -> list[str]:
    """How two shares differ in what they must have in common; empty when they are of one campaign."""
    found: list[str] = []
    for words, name in {"names": "name", "Blockyard versions": "blockyard", **_SHARED}.items():
        found += _unequal(f"their {words} are", getattr(first, name), getattr(other, name))
    found += _option_differences(first.options, other.options)
    found += _unequal("their journals are", *([entry.name for entry in one.journals] for one in (first, other)))
    found += _unequal("their allocators are", *([entry.name for entry in one.allocators] for one in (first, other)))
    if found:
        return found
    for mine, theirs in zip(first.journals, other.journals, strict=True):
        if mine.stretch != theirs.stretch:
            found.append(f"journal {mine.name} has other contents or another stretch")
    for mine, theirs in zip(first.allocators, other.allocators, strict=True):
        found += _unequal(f"the versions of {mine.name} are", mine.version, theirs.version)
        if mine.sha256 != theirs.sha256:
            found.append(f"the library of {mine.name} is another")
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
