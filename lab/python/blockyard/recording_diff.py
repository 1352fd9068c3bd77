"""What changed between two recordings, site by site, and gates on it."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from blockyard import sites_tool
from blockyard.errors import UserError
from blockyard.sites_tool import Listing, Site, Totals

METRICS = ("allocations", "bytes", "worst-frame", "peak", "end")
_PER_FRAME = {"allocations": "frame_allocations", "bytes": "frame_bytes"}
_FIELDS = {
    "allocations": "allocations",
    "bytes": "bytes",
    "worst-frame": "worst_frame_allocations",
    "peak": "peak_bytes",
    "end": "end_bytes",
}
_LEAST_CHANGE = 0.02
"""A smaller change of a site is called none: two recordings of one program differ as much."""

_LEAST_COMMON = 0.01
"""Of the allocations: recordings of one program have more in common, whatever was changed."""

_GATE = re.compile(r"(?P<site>site/)?(?P<metric>[a-z-]+):(?P<limit>\d+(?:\.\d+)?)%")


@dataclass(frozen=True)
class Gate:
    """`metric:limit%` for the recording as a whole, `site/metric:limit%` for what each site adds to it."""

    text: str
    metric: str
    limit: float
    """A share of BEFORE's total."""
    each_site: bool


@dataclass(frozen=True)
class Outcome:
    gate: Gate
    passed: bool
    reason: str


@dataclass(frozen=True)
class Change:
    """One site. Its name has the module where a recording has several of the name. Figures are by metric; allocations
    and bytes per frame where the difference says so."""

    name: str
    before: dict[str, float] | None
    after: dict[str, float] | None

    def rise(self, metric: str) -> float:
        return (self.after or {}).get(metric, 0) - (self.before or {}).get(metric, 0)

    def moved(self, metric: str) -> str:
        """`appeared`, `vanished`, or by how much."""
        word = self.word(metric)
        return word if word in ("appeared", "vanished") else share(self.rise(metric), (self.before or {})[metric])

    def word(self, metric: str) -> str:
        old, new = (self.before or {}).get(metric, 0), (self.after or {}).get(metric, 0)
        if old == new or abs(new - old) <= _LEAST_CHANGE * old:
            return "same"
        if not old:
            return "appeared"
        if not new:
            return "vanished"
        return "grew" if new > old else "shrank"


@dataclass(frozen=True)
class Difference:
    per_frame: bool
    before: dict[str, float]
    after: dict[str, float]
    changes: list[Change]
    remarks: list[str] = field(default_factory=list)
    warning: str = ""
    """Why the two may not be comparable at all; else empty."""

    def ordered(self, metric: str) -> list[Change]:
        """Sites that changed, those that changed most first."""
        changed = [change for change in self.changes if change.word(metric) != "same"]
        return sorted(changed, key=lambda change: (-abs(change.rise(metric)), change.name))


def parse_gate(text: str) -> Gate:
    found = _GATE.fullmatch(text)
    if found is None or found["metric"] not in METRICS:
        raise UserError(
            f"'{text}' is no gate; one is METRIC:LIMIT% or site/METRIC:LIMIT%, with {', '.join(METRICS[:-1])} or "
            f"{METRICS[-1]}, such as bytes:5%"
        )
    return Gate(text, found["metric"], float(found["limit"]) / 100, found["site"] is not None)


def difference(before: Listing, after: Listing, totals: bool) -> Difference:
    """Compares two listings of blockyard-sites that were grouped alike and not limited."""
    per_frame = not totals and all(one.marked_frames and one.frame_count for one in (before, after))
    shared = _shared_names(before.sites) | _shared_names(after.sites)
    old, new = (_by_name(one.sites, shared, one, per_frame) for one in (before, after))
    names = dict.fromkeys([*old, *new])
    changes = [Change(name, old.get(name), new.get(name)) for name in names]
    totals_of = [_figures(one.all, one, per_frame) for one in (before, after)]
    return Difference(
        per_frame, *totals_of, changes, list(_remarks(before, after)), _two_programs(before, after, changes)
    )


def judge(found: Difference, gate: Gate) -> Outcome:
    base = found.before[gate.metric]

    def beyond(rise: float) -> bool:
        return rise > 0 and rise > gate.limit * base

    if gate.each_site:
        worst = max(found.changes, key=lambda change: change.rise(gate.metric), default=None)
        if worst is None or not beyond(worst.rise(gate.metric)):
            return Outcome(gate, True, "no site added more")
        added = share(worst.rise(gate.metric), base)
        words = f"added {added.removeprefix('+')} of all before" if base else "has some, and there was nothing before"
        return Outcome(gate, False, f"{worst.name} {words}")
    rise = found.after[gate.metric] - base
    return Outcome(gate, not beyond(rise), f"{share(rise, base)} against before")


def share(rise: float, base: float) -> str:
    """A rise as a signed percentage."""
    if not rise:
        return "+0 %"
    if not base:
        return "from nothing"
    percent = 100 * rise / base
    return f"{percent:+,.0f} %" if abs(percent) >= 9.95 else f"{percent:+.1f} %"


def _short(site: Site) -> str:
    """What one site is called in both recordings. Stacks are alike when their functions are: lines move when a file is
    edited. Modules and folders are left out: another build may have other ones."""
    if site.stack is not None:
        return " < ".join(frame.function for frame in site.stack) or sites_tool.name(site)
    return sites_tool.name(site)


def _full(site: Site) -> str:
    """The same with its module, and with the whole path of its file where lines are told apart."""
    modules = [frame.module for frame in site.stack or []] or [site.module]
    name = _short(site)
    if site.line is not None and site.stack is None:
        name = f"{site.function} {site.file}:{site.line}"
    return f"{name} ({', '.join(dict.fromkeys(modules))})"


def _shared_names(sites: Iterable[Site]) -> set[str]:
    """The short names that several sites of one recording have, in different modules or files."""
    full: dict[str, set[str]] = defaultdict(set)
    for site in sites:
        full[_short(site)].add(_full(site))
    return {name for name, several in full.items() if len(several) > 1}


def _by_name(sites: Iterable[Site], shared: set[str], recording: Listing, per_frame: bool) -> dict[str, dict]:
    found: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(METRICS, 0))
    for site in sites:
        name = _short(site)
        figures = found[_full(site) if name in shared else name]
        for metric, value in _figures(site, recording, per_frame).items():
            # The worst frames of two stacks may be two frames, so they can't be added.
            figures[metric] = max(figures[metric], value) if metric == "worst-frame" else figures[metric] + value
    return found


def _figures(totals: Totals, recording: Listing, per_frame: bool) -> dict[str, float]:
    figures: dict[str, float] = {metric: getattr(totals, name) for metric, name in _FIELDS.items()}
    if per_frame:
        for metric, name in _PER_FRAME.items():
            figures[metric] = getattr(totals, name) / recording.frame_count
    return figures


def _two_programs(before: Listing, after: Listing, changes: list[Change]) -> str:
    """Another folder is another build; another file name, or hardly a site in common, another program."""
    names = [os.path.basename(one.program) for one in (before, after)]
    common = sum(min(change.before["allocations"], change.after["allocations"]) for change in changes
                 if change.before and change.after)  # fmt: skip
    least = (
        min(
            sum(side["allocations"] for side in sides if side)
            for sides in zip(*((change.before, change.after) for change in changes), strict=True)
        )
        if changes
        else 0
    )
    named = before.has_names and after.has_names
    if names[0] != names[1]:
        known = [name or "one that is not named" for name in names]
        return f"These are recordings of two programs, {known[0]} and {known[1]}."
    if named and common < _LEAST_COMMON * least:
        of = f" of {names[0]}" if names[0] else ""
        return f"These recordings{of} have hardly a site in common: they may be of two programs."
    return ""


def _remarks(before: Listing, after: Listing) -> Iterable[str]:
    if before.marked_frames != after.marked_frames:
        yield "only one of them marked frames, so whole recordings are compared"
    if before.cut_at_end != after.cut_at_end:
        yield "only one of them ended with its program, so what is alive at the end can't be compared"
    if not (before.has_names and after.has_names):
        yield "without names, addresses of different builds differ; run 'blockyard names' on both"
