"""Judges recordings: what of a program's journal exceeds limits, and what could not be judged."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from blockyard import native, sites_tool, terminal
from blockyard.budget.limits import FRAME, Limit
from blockyard.errors import UserError
from blockyard.recording import Outcome

# What measures and tests allocate for themselves, inside the program that they look at.
HARNESS = ("__gcov_*", "__llvm_profile_*", "libgcov*.so*", "tracer.*.so", "_memray.*.so")


@dataclass(frozen=True)
class Rule:
    """A pattern of functions or modules whose calls are left out, and why."""

    pattern: str
    reason: str
    own: bool = False
    """Of Blockyard: that it fits nothing is not worth saying."""


class First(msgspec.Struct, frozen=True):
    """The first call that exceeds a limit; `frame` counts from 1, and is 0 before all."""

    time_s: float
    frame: int
    thread: str
    call: str
    bytes: int
    tag: str
    stack: list[sites_tool.Function]


class Site(msgspec.Struct, frozen=True):
    """Where calls beyond a limit come from, and in how many of its periods."""

    function: str
    module: str
    events: int
    periods: int


class Judged(msgspec.Struct, frozen=True):
    """What blockyard-budget says of a limit. `threads` are those that it concerns, `judged` its whole periods."""

    threads: int
    active: bool
    judged: int
    worst: int
    periods_over: int
    events_over: int
    first: First | None
    sites: list[Site]
    name: str = ""


class _Ignored(msgspec.Struct, frozen=True):
    events: int
    bytes: int


class _Found(msgspec.Struct, frozen=True):
    frames: int
    threads: list[str]
    limits: list[Judged]
    forbidden: list[Judged]
    ignored: list[_Ignored]


@dataclass(frozen=True)
class Verdict:
    """What came of a limit. `unjudged` says why nothing did."""

    limit: Limit
    facts: Judged
    unjudged: str | None
    run: int = 1
    """Which run it is of: with --again the first in which the limit was exceeded."""
    again: list["Verdict"] = field(default_factory=list)
    """What came of it in the other runs."""

    @property
    def passed(self) -> bool | None:
        return None if self.unjudged else not self.facts.periods_over


@dataclass(frozen=True)
class Judgement:
    program: str
    verdicts: list[Verdict]
    left_out: list[tuple[Rule, int, int]]
    """With how many calls and bytes."""
    child: str | None
    frames: int

    def add(self, other: "Judgement") -> None:
        """The program ran again."""
        of_limit = {one.limit: one for one in other.verdicts}
        for place, one in enumerate(self.verdicts):
            new = of_limit.get(one.limit)
            if new is None:
                continue
            run = len(one.again) + 2
            if one.passed and not new.passed:
                self.verdicts[place] = replace(new, run=run, again=[*one.again, replace(one, again=[])])
            else:
                one.again.append(replace(new, run=run))


def read_rules(path: Path | None) -> list[Rule]:
    """One a line: a pattern, then `#` and the reason."""
    rules = [Rule(pattern, "what measures or tests the program", own=True) for pattern in HARNESS]
    if path is None:
        return rules
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {getattr(error, 'strerror', None) or error}") from None
    for number, line in enumerate(lines, 1):
        pattern, _, reason = (part.strip() for part in line.partition("#"))
        if pattern and not reason:
            raise UserError(f"{path}, line {number}: '{pattern}' has no reason; write it after a '#'")
        if pattern:
            rules.append(Rule(pattern, reason))
    return rules


def journal_of(outcome: Outcome) -> tuple[Path, str | None]:
    """The journal that is judged: of the process that marked most frames, else of the program itself; and the name of
    the program where that is a child."""
    found = [(image, journal) for image, journal in outcome.journals if not journal.error]
    if not found:
        raise UserError(
            f"nothing of {outcome.request.command[0]} was recorded; 'blockyard record' says why"
            if not any(image.running for image in outcome.summary.images)
            else f"{outcome.request.command[0]} left a process that still runs; budget needs one that ends"
        )
    own = str(outcome.request.output.absolute())
    image, journal = max(found, key=lambda pair: (pair[1].frames, pair[1].path == own, pair[1].events))
    return Path(journal.path), None if journal.path == own else Path(image.program).name


def judge(
    journal: Path, program: str, child: str | None, limits: Sequence[Limit], rules: Sequence[Rule], cut: bool = False
) -> Judgement:
    """`cut`: the program may have been stopped within its last frame."""
    with tempfile.TemporaryDirectory(prefix="blockyard-") as folder, terminal.reading_bar() as tell:
        given = Path(folder) / "limits.json"
        wanted = {"limits": [one.native() for one in limits], "ignored": [one.pattern for one in rules], "cut": cut}
        given.write_text(json.dumps(wanted), encoding="utf-8")
        text = native.call("blockyard-budget", [journal, "--limits", given], on_progress=tell)
    found = native.decoded("blockyard-budget", text, _Found)
    verdicts = [
        Verdict(limit, facts, _unjudged(limit, facts, found)) for limit, facts in zip(limits, found.limits, strict=True)
    ]
    for facts in found.forbidden:
        limit = Limit("allocations", 0, forbidden=facts.name)
        verdicts.append(Verdict(limit, facts, None))
    left_out = [(rule, one.events, one.bytes) for rule, one in zip(rules, found.ignored, strict=True)]
    return Judgement(program, verdicts, left_out, child, found.frames)


def _unjudged(limit: Limit, facts: Judged, found: _Found) -> str | None:
    if limit.thread and not facts.threads:
        named = ", ".join(sorted(set(found.threads))[:8])
        return f"no thread is called '{limit.thread}'; " + (f"there are {named}" if named else "none allocated")
    if limit.per == FRAME and not found.frames:
        return "no frame was marked; 'blockyard record --help' says how frames are"
    if not facts.active:
        return f"what it begins after, {limit.beginning}, never came"
    if not facts.judged and limit.per == FRAME:
        return "no whole frame came after what it begins after"
    return None
