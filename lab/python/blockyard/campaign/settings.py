"""What the user asks of a campaign: journals, allocators, paces, touches, repeats."""

import math
import os
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blockyard import native
from blockyard.campaign import run_options
from blockyard.campaign.run_options import RunOptions
from blockyard.errors import UserError

TOUCHES = ("none", "first", "page", "all")
_MOST_SECONDS = 1e9
MOST_REPEATS = 1000  # the plan of all runs is kept in memory, and a day holds fewer

# Endings that say how a journal is stored, not which one it is.
_STORAGE_ENDINGS = re.compile(r"(\.(zst|gz|byj|journal|txt|log))+$")


@dataclass(frozen=True)
class Stretch:
    """One journal of a campaign, or a part of it; seconds of the journal's own clock, None is its start or end."""

    name: str
    path: Path
    from_s: float | None = None
    to_s: float | None = None


@dataclass(frozen=True)
class Settings:
    """A campaign as asked for. `allocators` are names as the user wrote them: `all`, `glibc`, `mine=./libmine.so`."""

    journals: tuple[Stretch, ...]
    allocators: tuple[str, ...]
    paces: tuple[str, ...] = ("1x",)
    touches: tuple[str, ...] = ("page",)
    repeats: int = 5
    totals: bool = True
    traced: bool = False
    options: RunOptions = field(default_factory=RunOptions)
    name: str = "replay"


def parse_pace(text: str) -> str:
    """`1` and `1x` are 1x; `10` is 10x; `max` is as fast as possible."""
    text = text.strip()
    if text == "max":
        return text
    try:
        factor = float(text.removesuffix("x"))
    except ValueError:
        factor = math.nan
    if not 0.001 <= factor <= 1e6:
        raise UserError(f"'{text}' is not a pace; use 1 for the journal's own, 10 for ten times as fast, or max")
    return f"{factor:g}x"


def parse_touch(text: str) -> str:
    text = text.strip()
    if text not in TOUCHES:
        raise UserError(
            f"'{text}' is not a touch; use none, first (the first byte), page (a byte in every 4096) or all"
        )
    return text


def parse_list(text: str, parse: Callable[[str], str]) -> tuple[str, ...]:
    """The values of a comma-separated list, each once, in the order given."""
    values = tuple(dict.fromkeys(parse(part) for part in text.split(",") if part.strip()))
    if not values:
        raise UserError(f"'{text}' names nothing; give at least one value")
    return values


def parse_shard(text: str) -> tuple[int, int]:
    """`2/8` is the second of eight shares."""
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    share, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= share <= of:
        raise UserError(f"'{text}' is not a share; write 2/8 for the second of eight")
    return share, of


def check(settings: Settings) -> Settings:
    """Refuses what no campaign can be made of."""
    if settings.repeats < 1:
        raise UserError(f"{settings.repeats} repeats measure nothing; ask for at least 1")
    if settings.repeats > MOST_REPEATS:
        raise UserError(f"{settings.repeats} repeats are too many; ask for at most {MOST_REPEATS:,}")
    if not settings.journals:
        raise UserError("no journal was given; name at least one, or a campaign file with --campaign")
    for journal in settings.journals:
        if not journal.path.is_file():
            raise UserError(f"there is no journal at {journal.path}")
        start = journal.from_s or 0.0
        for seconds in (start, journal.to_s):
            if seconds is not None and not 0 <= seconds <= _MOST_SECONDS:
                raise UserError(f"{seconds:g} s is not a place in {journal.name}; a stretch begins at 0 or later")
        if journal.to_s is not None and journal.to_s <= start:
            raise UserError(
                f"the stretch of {journal.name} from {start:g} s to {journal.to_s:g} s is empty; "
                "--to must lie after --from"
            )
    return settings


def journal_name(path: Path) -> str:
    """`/tmp/godot.journal.zst` is `godot`. The result is safe as a folder's name."""
    stem = _STORAGE_ENDINGS.sub("", path.name) or path.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".-") or "journal"


def stretches(paths: list[Path], from_s: float | None, to_s: float | None) -> tuple[Stretch, ...]:
    """Journals named after their files; a name that was taken gets a number."""
    taken: set[str] = set()
    result = []
    for path in paths:
        stem = name = journal_name(path)
        number = 2
        while name in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name)
        result.append(Stretch(name, path, from_s, to_s))
    return tuple(result)


def journals_folder() -> Path | None:
    """Where large journals lie that are not in the tree: $BLOCKYARD_JOURNALS, else beside the checkout."""
    named = os.environ.get("BLOCKYARD_JOURNALS")
    if named:
        return Path(named)
    checkout = native.checkout()
    return checkout.parent / "shared" / "journals" if checkout else None


_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "allocators": list,
    "pace": list,
    "touch": list,
    "repeats": int,
    "totals": bool,
    "trace": bool,
    **run_options.KEYS,
    "journal": list,
}
_JOURNAL_KEYS: dict[str, type | tuple[type, ...]] = {"name": str, "path": str, "from": (int, float), "to": (int, float)}


def read_campaign(path: Path) -> Settings:
    """Reads a campaign file (TOML). Journals are looked for beside it, then in $BLOCKYARD_JOURNALS."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no campaign file at {path}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a campaign file: it is not text") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not a campaign file: {error}") from None
    _check_keys(path, "the file", table, _KEYS)
    journals = []
    for number, entry in enumerate(table.get("journal", []), 1):
        where = f"journal {number}"
        if not isinstance(entry, dict):
            raise UserError(f"{path}: {where} must be a table; write [[journal]]")
        _check_keys(path, where, entry, _JOURNAL_KEYS)
        if "path" not in entry:
            raise UserError(f"{path}: {where} has no path")
        name = journal_name(Path(entry.get("name", entry["path"])))
        if name in {journal.name for journal in journals}:
            raise UserError(f"{path}: two journals are called {name}; give each a name of its own")
        journals.append(Stretch(name, _locate(path, entry["path"]), entry.get("from"), entry.get("to")))
    settings = Settings(
        journals=tuple(journals),
        allocators=tuple(map(str, table.get("allocators", ("all",)))),
        options=run_options.from_file(table),
        name=table.get("name", path.stem),
    )
    for key, name, parse in (("pace", "paces", parse_pace), ("touch", "touches", parse_touch)):
        if key in table:
            settings = replace(settings, **{name: parse_list(",".join(map(str, table[key])), parse)})
    plain = {"repeats": "repeats", "totals": "totals", "trace": "traced"}
    return replace(settings, **{name: table[key] for key, name in plain.items() if key in table})


def _check_keys(path: Path, where: str, table: dict[str, Any], keys: dict[str, type | tuple[type, ...]]) -> None:
    for key, value in table.items():
        if key not in keys:
            raise UserError(f"{path}: {where} has '{key}', which means nothing here; known are {', '.join(keys)}")
        # A TOML true is a Python int as well.
        if not isinstance(value, keys[key]) or (isinstance(value, bool) and keys[key] is not bool):
            raise UserError(f"{path}: '{key}' of {where} has the wrong type ({value!r})")


def _locate(campaign: Path, name: str) -> Path:
    beside = campaign.parent / name
    if beside.is_file():
        return beside
    folder = journals_folder()
    if folder is not None and (folder / name).is_file():
        return folder / name
    raise UserError(
        f"{campaign}: {name} lies neither beside the campaign file nor in "
        f"{folder or 'the journals folder'}; set BLOCKYARD_JOURNALS to the folder that holds it"
    )
