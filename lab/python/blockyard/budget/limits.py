"""The limits of `blockyard budget`: read from TOML or options, and written by --learn."""

import math
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blockyard.campaign.run_options import parse_size
from blockyard.errors import UserError
from blockyard.units import size

FRAME, SECOND, RUN = PERIODS = ("frame", "second", "run")
LIVE, OUTLIVING = "live-bytes", "outliving-blocks"
QUANTITIES = {
    "allocations": "allocations",
    "allocated-bytes": "allocated in total",
    "frees": "frees",
    "reallocations": "reallocations",
    LIVE: "live at most",
    OUTLIVING: "blocks that outlive the frame",
}
_PATTERNS = ("thread", "tag", "site")
_MARGIN = 1.1
"""--learn allows a tenth more than it saw; what was 0 stays 0."""


@dataclass(frozen=True)
class Limit:
    """`most` of a quantity, of the threads, tags and sites that patterns of file names fit. `after`: the name of a
    phase, a number of frames, or seconds."""

    what: str
    most: int
    per: str = RUN
    thread: str = ""
    tag: str = ""
    site: str = ""
    after: str | int | float | None = None
    forbidden: str = ""
    """What the code itself says must not allocate; then nothing else is given."""

    @property
    def name(self) -> str:
        """`audio*: no allocations per frame`."""
        if self.forbidden:
            return f"{self.forbidden}: no allocation, says the code"
        of = ", ".join(getattr(self, key) for key in _PATTERNS if getattr(self, key)) or "all"
        most = size(self.most) if self.is_bytes else f"{self.most:,}"
        limit = f"{QUANTITIES[self.what]} {most}" if self.is_bytes else f"at most {most} {QUANTITIES[self.what]}"
        period = "" if self.what in (LIVE, OUTLIVING) else f" per {self.per}"
        return f"{of}: {limit}{period}{f', after {self.beginning}' if self.beginning else ''}"

    @property
    def beginning(self) -> str:
        """What it begins after; nothing where it is judged from the start."""
        return {str: "{}", int: "{} frames", float: "{:g} s"}.get(type(self.after), "").format(self.after)

    @property
    def is_bytes(self) -> bool:
        return self.what.endswith("bytes")

    def amount(self, value: int) -> str:
        return size(value) if self.is_bytes else f"{value:,}"

    def native(self) -> dict[str, Any]:
        """As blockyard-budget takes it."""
        given = {key: getattr(self, key) for key in ("what", "most", "per", *_PATTERNS)}
        match self.after:
            case str():
                given["after_phase"] = self.after
            case int():
                given["after_frames"] = self.after
            case float():
                given["after_ns"] = round(self.after * 1e9)
        return given


def watched(limits: Sequence[Limit]) -> str:
    """As the recorder reads them for --stop. Raises UserError for one that only the whole journal can judge."""
    fields = []
    for one in limits:
        if one.site or one.what in (LIVE, OUTLIVING):
            raise UserError(
                f"--stop can't watch '{one.name}': it takes calls and allocated-bytes, by thread and tag, not by site"
            )
        given = {"after_phase": "", "after_frames": 0, "after_ns": 0, **one.native()}
        keys = ("what", "per", "most", "after_phase", "after_frames", "after_ns", "thread", "tag")
        fields += [*(str(given[key]) for key in keys), one.name]
    return "".join(field.replace("\t", " ") + "\t" for field in fields) or "-"


def read(path: Path) -> list[Limit]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no file of limits at {path}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} is no file of limits: {error}") from None
    entries = table.pop("limit", [])
    if table or not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise UserError(f"{path} is no file of limits: it consists of [[limit]] tables")
    found = [one for number, entry in enumerate(entries, 1) for one in _of(entry, f"{path}, limit {number}")]
    if not found:
        raise UserError(f"{path} has no [[limit]]")
    return found


def parse(text: str) -> list[Limit]:
    """Of --limit: `thread=audio* allocations=0 per=frame`."""
    entry: dict[str, Any] = {}
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--limit '{text}' can't be read: {str(error)[:1].lower()}{str(error)[1:]}") from None
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"--limit '{text}': '{word}' is not KEY=VALUE, such as allocations=0")
        entry[key] = value
    return _of(entry, f"--limit '{text}'")


def _of(entry: Mapping[str, Any], where: str) -> list[Limit]:
    """One for each quantity that it limits."""
    known = (*QUANTITIES, "per", "after", *_PATTERNS)
    for key in entry:
        if key not in known:
            raise UserError(f"{where}: '{key}' means nothing here; known are {', '.join(known)}")
    quantities = [key for key in QUANTITIES if key in entry]
    if not quantities:
        raise UserError(f"{where} limits nothing; name one of {', '.join(QUANTITIES)}")
    given = {}
    for key in _PATTERNS:
        given[key] = entry.get(key, "")
        if not isinstance(given[key], str) or (key in entry and not given[key]):
            raise UserError(f"{where}: {key} takes a pattern such as 'audio*'")
    found = []
    for what in quantities:
        per = entry.get("per", FRAME if what == OUTLIVING else RUN)
        if per not in PERIODS:
            raise UserError(f"{where}: per is one of {', '.join(PERIODS)}, not {per!r}")
        if (what == OUTLIVING and per != FRAME) or (what == LIVE and "per" in entry):
            raise UserError(
                f"{where}: {what} is counted {'per frame' if what == OUTLIVING else 'at every moment'} only"
            )
        found.append(Limit(what, _amount(entry[what], what, where), per, after=_after(entry, where), **given))
    return found


def _amount(value: Any, what: str, where: str) -> int:
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError
        amount = parse_size(value) if what.endswith("bytes") and isinstance(value, str) else int(value)
    except (ValueError, UserError):
        amount = -1
    if amount < 0:
        example = "a size such as 64K" if what.endswith("bytes") else "a whole number"
        raise UserError(f"{where}: {what} takes {example}, not {value!r}")
    return amount


def _after(entry: Mapping[str, Any], where: str) -> str | int | float | None:
    """`warm-up` is a phase, `10 frames` and `2.5 s` are what they say."""
    if "after" not in entry:
        return None
    text = entry["after"]
    if not isinstance(text, str) or not text:
        raise UserError(f"{where}: after takes the name of a phase, '10 frames' or '2.5 s'")
    if match := re.fullmatch(r"(\d{1,9}) ?frames?", text):
        return int(match[1])
    if match := re.fullmatch(r"(\d{1,9}(?:\.\d+)?) ?s", text):
        return float(match[1])
    return text


def to_learn(frames: bool) -> list[Limit]:
    """What --learn looks at: without a limit, so that the worst is seen."""
    every = [Limit("allocations", 1 << 62), Limit("allocated-bytes", 1 << 62), Limit(LIVE, 1 << 62)]
    if frames:
        every += [Limit("allocations", 1 << 62, FRAME), Limit(OUTLIVING, 1 << 62, FRAME)]
    return every


def learned(limits: Sequence[Limit], worst: Sequence[int]) -> str:
    """The file of limits that a run would have kept to."""
    lines = ["# Written by 'blockyard budget --learn': a tenth above what one run needed.\n"]
    for one, value in zip(limits, worst, strict=True):
        per = f'per = "{one.per}"\n' if one.what not in (LIVE, OUTLIVING) else ""
        lines.append(f"[[limit]]\n{one.what} = {math.ceil(value * _MARGIN)}\n{per}")
    return "\n".join(lines)
