"""A section as it was measured, and what its tables and pictures put side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from blockyard.allocators import DEFAULTS, PREFAULTED
from blockyard.analysis import sites, syscalls
from blockyard.analysis.by_site import BySite
from blockyard.analysis.cuts import Cuts
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import BY_TRUST, P50, P99, P999, SAMPLES_BEYOND, Operation, Part, View
from blockyard.analysis.sections import Results, Section
from blockyard.analysis.syscalls import Trace
from blockyard.report.header import Header
from blockyard.report.options import ReportOptions
from blockyard.report.table import Cell, Column, Row, Table

UNSUPPORTED = f"fewer than {SAMPLES_BEYOND} samples lie beyond this percentile: it is not printed"

Figure = tuple[Column, Callable[[Any], Cell]]
"""A column, and its cell of what a row is about."""


@dataclass(frozen=True)
class MeasuredSection:
    """One section with the figures of all its allocators, the shortest tail first and `null` last."""

    results: Results
    section: Section
    figures: list[AllocatorFigures]
    header: Header
    folder: Path
    options: ReportOptions

    @property
    def all_views(self) -> tuple[View, ...]:
        """Those that there are: attributed needs causes."""
        looked = all(one.looked_into for one in self.figures)
        return tuple(view for view in View if looked or view is not View.ATTRIBUTED)

    @property
    def views(self) -> tuple[View, ...]:
        """Of those that were asked for."""
        return tuple(view for view in self.all_views if view in (self.options.views or View))

    @property
    def shown(self) -> tuple[View, ...]:
        """The views that tables and pictures have: unless asked otherwise the one that is trusted most."""
        if self.options.views or self.options.everything:
            return self.views
        return (next(view for view in BY_TRUST if view in self.views),)

    @cached_property
    def by_site(self) -> BySite | None:
        """None where the journal has no call stacks."""
        found = sites.of(self.section)
        return BySite(found, self.options.skip) if found is not None else None

    @property
    def own(self) -> AllocatorFigures | None:
        """That with which the program was recorded, where the campaign has it."""
        return next((one for one in self.figures if one.name == self.options.own), None)

    @property
    def asked(self) -> list[AllocatorFigures]:
        """Whose figures are written down: all, or those asked for by name and the program's own."""
        wanted = {*self.options.allocators, self.options.own}
        return [one for one in self.figures if one.name in wanted] if self.options.allocators else self.figures

    @property
    def emphasised(self) -> list[str]:
        """Whom pictures bring out: the program's own, the one with the shortest tail, and those asked for by name."""
        best = [one.name for one in self.figures if not one.runs.is_null][:1]
        return list(dict.fromkeys((self.options.own, *best, *self.options.allocators)))

    def lineups(self) -> list["Lineup"]:
        """By variant; of the defaults alone unless everything is wanted or some are asked for by name."""
        shown, there = _by_variant(self.asked), _by_variant(self.figures)
        found = [Lineup(self, variant, members, there[variant]) for variant, members in shown.items()]
        return found if self.options.everything or self.options.allocators else found[:1]


@dataclass(frozen=True)
class Lineup:
    """The allocators of one variant. `members` are the rows of tables, `everyone` what pictures draw."""

    of: MeasuredSection
    variant: str
    members: list[AllocatorFigures]
    everyone: list[AllocatorFigures]

    @property
    def cuts(self) -> Cuts:
        return self.members[0].cuts

    @property
    def competing(self) -> list[AllocatorFigures]:
        """All but `null`, whose memory is a buffer of the lab."""
        return [one for one in self.members if not one.runs.is_null]

    @property
    def looked_into(self) -> bool:
        return any(one.looked_into for one in self.members)

    @property
    def touched(self) -> bool:
        return any(one.touched for one in self.members)

    def part(self, operation: Operation) -> Part:
        """What a program pays for one: a free has no touch."""
        return Part.BOTH if self.touched and operation is not Operation.FREE else Part.CALL

    def trace(self, one: AllocatorFigures) -> Trace | None:
        """The allocator's traced run, where there is one."""
        return syscalls.read(one.runs, self.of.results.machine)

    def table(
        self,
        name: str,
        columns: Sequence[Column],
        cells: Callable[[AllocatorFigures], Sequence[Cell] | None],
        *circumstances: str,
        **how: Any,
    ) -> Table:
        """A row an allocator; those of which nothing is known have none. `how` is for the table."""
        rows = [row(one, found) for one in self.members if (found := cells(one)) is not None]
        return self.rows(name, columns, rows, *circumstances, **how)

    def figures(
        self,
        name: str,
        figures: Sequence[Figure],
        of: Callable[[AllocatorFigures], Any],
        *circumstances: str,
        **how: Any,
    ) -> Table:
        """The same of what is known of each allocator, None for nothing: each column says what it takes of it."""

        def cells(one: AllocatorFigures) -> list[Cell] | None:
            found = of(one)
            return None if found is None else [pick(found) for _, pick in figures]

        return self.table(name, [column for column, _ in figures], cells, *circumstances, **how)

    def rows(
        self,
        name: str,
        columns: Sequence[Column],
        rows: Sequence[Row],
        *circumstances: str,
        absent: str = UNSUPPORTED,
        **how: Any,
    ) -> Table:
        stated = (*filter(None, circumstances), self.variant)
        own = self.of.own.name if self.of.own is not None else ""
        return Table(name, columns, rows, stated, absent=absent, own=own, **how)


def short_name(one: AllocatorFigures) -> str:
    """The name within its variant's own table; `*` for one that took a lock around every call."""
    name = one.name.removesuffix(f"@{PREFAULTED}")
    return f"{name}*" if one.runs.needs_lock else name


def row(one: AllocatorFigures, cells: Sequence[Cell]) -> Row:
    """An allocator's, in a table of its variant."""
    return Row(short_name(one), cells, one.name, one.runs.is_null)


def ranked(figures: Sequence[AllocatorFigures]) -> list[AllocatorFigures]:
    """By the as-run malloc's p99.9 (a lower percentile where that is not supported), `null` last: one order for all."""
    wholes = [one.whole(View.AS_RUN, Operation.MALLOC) for one in figures]
    by = next((p for p in (P999, P99, P50) if all(whole.percentile(p) is not None for whole in wholes)), None)

    def key(one: AllocatorFigures) -> tuple[bool, float]:
        value = one.whole(View.AS_RUN, Operation.MALLOC).percentile(by) if by else None
        return one.runs.is_null, value.value if value else 0.0

    return sorted(figures, key=key)


def _by_variant(figures: Sequence[AllocatorFigures]) -> dict[str, list[AllocatorFigures]]:
    """The allocators in their defaults, and their prefaulted variants. `null` stands in both."""
    found = {
        DEFAULTS: [one for one in figures if one.runs.variant != PREFAULTED],
        PREFAULTED: [one for one in figures if one.runs.variant == PREFAULTED],
    }
    if found[PREFAULTED]:
        found[PREFAULTED] += [one for one in found[DEFAULTS] if one.runs.is_null]
    return {variant: members for variant, members in found.items() if members}
