"""What the pages share: the data, tables, figures as people read them, and whether one figure is beyond noise of
another."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from blockyard.analysis import noise
from blockyard.analysis.latency import View
from blockyard.analysis.noise import Verdict
from blockyard.errors import UserError
from blockyard.units import duration

OURS, NULL = "blockyard", "null"
DEFAULTS, PREFAULTED = "defaults", "prefaulted"
ABSENT = "–"
VIEWS = (View.INHERENT, View.ATTRIBUTED)
JOURNALS = {
    "godot": ("Godot", "a shooter in play"),
    "supertux": ("SuperTux", "a level loads, then play"),
    "warzone2100": ("Warzone 2100", "loading"),
    "wesnoth": ("Wesnoth", "AI turns"),
    "zeroad": ("0 A.D.", "simulation turns"),
}
MIB = 1 << 20

Claim = dict[View, noise.Difference]


@dataclass(frozen=True)
class Allocator:
    """One allocator on one journal, as campaign.py writes it."""

    told: dict[str, Any]

    @property
    def name(self) -> str:
        return self.told["name"]

    @property
    def variant(self) -> str:
        return self.told["variant"]

    @property
    def label(self) -> str:
        """`tlsf*` took a lock around every call."""
        return f"{self.name}{'*' if self.told['locked'] else ''}"

    def latency(self, view: View, operation: str, percentile: str) -> list[float] | None:
        """All repeats together, then each; None where too few samples support it."""
        return self.told["latency"].get(view.value, {}).get(operation, {}).get(percentile)

    def value(self, view: View, operation: str, percentile: str) -> float | None:
        found = self.latency(view, operation, percentile)
        return found[0] if found else None

    def part(self, *path: str) -> Any:
        """None where anything on the way is not known."""
        found: Any = self.told
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


@dataclass(frozen=True)
class Journal:
    told: dict[str, Any]

    @property
    def name(self) -> str:
        return self.told["name"]

    @property
    def title(self) -> str:
        return JOURNALS.get(self.name, (self.name, ""))[0]

    @property
    def subject(self) -> str:
        return JOURNALS.get(self.name, ("", ""))[1]

    @cached_property
    def allocators(self) -> list[Allocator]:
        return [Allocator(one) for one in self.told["allocators"]]

    def of(self, name: str, variant: str = DEFAULTS) -> Allocator | None:
        return next((one for one in self.allocators if (one.name, one.variant) == (name, variant)), None)

    def variant(self, variant: str) -> list[Allocator]:
        return [one for one in self.allocators if one.variant == variant and one.name != NULL]

    @property
    def general(self) -> list[Allocator]:
        """General-purpose peers in their defaults: not TLSF, which is not thread-safe and wants a pool."""
        return [one for one in self.variant(DEFAULTS) if one.name not in (OURS, "tlsf")]


@dataclass(frozen=True)
class Campaign:
    told: dict[str, Any]

    @cached_property
    def journals(self) -> list[Journal]:
        return [Journal(one) for one in self.told["journals"]]

    @property
    def step_ns(self) -> float:
        return self.told["clock"]["step_ns"]

    @property
    def repeats(self) -> int:
        return self.told["repeats"]

    @cached_property
    def confidence(self) -> float:
        """One claim a journal, call, percentile and peer."""
        peers = sum(len(journal.allocators) - 1 for journal in self.journals)
        return noise.confidence(max(peers, 1) * 2 * 6)

    def claim(self, ours: Allocator, peer: Allocator, operation: str, percentile: str) -> Claim | None:
        """How ours differs from the peer's in each view; None where a view is not known."""
        found: Claim = {}
        for view in VIEWS:
            mine, theirs = (one.latency(view, operation, percentile) for one in (ours, peer))
            if not mine or not theirs:
                return None
            found[view] = self.difference(theirs, mine)
        return found

    def difference(self, base: Sequence[float], new: Sequence[float]) -> noise.Difference:
        """Of figures of all repeats, each before what single repeats say; the inherent one has none."""
        one, other = (
            replace(noise.Figure.of_each(each[1:], self.step_ns), value=each[0])
            if each[1:]
            else noise.Figure(each[0], self.step_ns, self.repeats)
            for each in (base, new)
        )
        return noise.difference(one, other, self.confidence)


@dataclass(frozen=True)
class Data:
    """All of docs/results/data."""

    folder: Path

    @cached_property
    def documents(self) -> dict[str, dict[str, Any]]:
        found = {}
        for path in sorted(self.folder.glob("*.json")):
            try:
                found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise UserError(f"{path} is not JSON ({error}); take it from the repository again") from None
        if not found:
            raise UserError(f"{self.folder} has no data; collect it with --collect from a campaign and 'make bench'")
        return found

    @cached_property
    def standard(self) -> Campaign:
        if "standard" not in self.documents:
            raise UserError(f"{self.folder / 'standard.json'} is missing: collect it from the standard campaign")
        return Campaign(self.documents["standard"])

    @cached_property
    def newest(self) -> Campaign:
        """What is claimed of the heap rests on it."""
        campaigns = [one for one in self.documents.values() if one["kind"] == "campaign"]
        return Campaign(max(campaigns, key=lambda one: one["measured_at"]))

    def figures(self, part: str) -> dict[str, Any]:
        """Of one part of `make bench`; empty where it was not measured."""
        return self.documents.get(part, {}).get("figures", {})


_FIGURE = re.compile(r"[*<–]*\d|–$|$")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns of figures are aligned at the right. Cells have no blanks around them: the pages count their words."""
    body = [[cell.replace("|", "\\|").replace("<", "\\<") for cell in row] for row in rows]
    figures = [all(_FIGURE.match(cell.lstrip("\\")) for cell in column) for column in zip(*body, strict=True)]
    ruler = ["--:" if place and right else "---" for place, right in enumerate(figures or [False] * len(head))]
    return ["|" + "|".join(row) + "|" for row in (head, ruler, *body)] + [""]


def ns(value: float | None, step: float = 0.0) -> str:
    if value is None:
        return ABSENT
    text = duration(step if value < step else value).replace(".00 ", " ").replace(".0 ", " ")
    return f"<{text}" if value < step else text


def us(value: float | None, step_ns: float = 0.0) -> str:
    """Nanoseconds as microseconds, without the unit: three digits."""
    if value is None:
        return ABSENT
    shown = max(value, step_ns) / 1000
    text = f"{shown:.3f}" if shown < 1 else three(shown)
    return f"<{text}" if value < step_ns else text


def mib(value: float | None) -> str:
    return ABSENT if value is None else f"{value / MIB:.0f}"


def percent(share: float | None) -> str:
    if share is None:
        return ABSENT
    value = 100 * share
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def ratio(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}"


def three(value: float | None) -> str:
    """Three digits."""
    if value is None:
        return ABSENT
    places = 0 if value >= 99.5 else 1 if value >= 9.95 else 2 if value >= 0.0995 or value == 0 else 3
    return f"{value:,.{places}f}"


def worse(claim: Claim | None) -> bool:
    """In both views, beyond noise."""
    return claim is not None and noise.together(claim)[0] is Verdict.WORSE


def better(claim: Claim | None) -> bool:
    return claim is not None and noise.together(claim)[0] is Verdict.BETTER


def words(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def machine(told: dict[str, Any]) -> str:
    memory = told.get("memory_bytes")
    pages = told.get("transparent_huge_pages")
    return ", ".join(
        part
        for part in (
            told["cpu"],
            f"{told['cores']} cores",
            f"{memory / (1 << 30):.0f} GiB" if memory else None,
            "virtual machine" if told.get("virtualised") else None,
            told.get("distribution"),
            f"Linux {told['kernel']}" if told.get("kernel") else None,
            f"huge pages {pages}" if pages else None,
        )
        if part
    )
