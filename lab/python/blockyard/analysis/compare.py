"""Better, worse or inconclusive: two campaigns of the same journal, percentile by percentile.

What varies is what a report says varies (analysis/noise.py), and the machine between the two: see
docs/guide/compare.md.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from blockyard.analysis import cuts, figures, noise
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import TOTAL, WITH_INTERVAL, Operation, Percentile, Sum, View
from blockyard.analysis.noise import LEAST_REPEATS, UNMOVED, Movement, Verdict
from blockyard.analysis.pairing import Pair, Pairing, Twins
from blockyard.terminal import Progress
from blockyard.units import Nanoseconds

OPERATIONS = (Operation.MALLOC, Operation.FREE)


@dataclass(frozen=True)
class Change:
    """One percentile in one view. `ratio` is NEW / BASE; `low` and `high` are the ends of its interval over the
    repeats, None where the samples support none, and in the inherent view, which has no repeats. `beside` is the ratio
    with the machine's movement taken off, where other allocators tell it. `reason` says why it is inconclusive. A ratio
    of `shows` would probably have been claimed."""

    base: Nanoseconds | None
    new: Nanoseconds | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str
    beside: float | None = None
    shows: float | None = None


@dataclass(frozen=True)
class Claim:
    """One allocator, operation and percentile, or the sum of all its calls: what each view says, and what they say
    together."""

    allocator: str
    operation: Operation | Sum
    percentile: Percentile
    views: dict[View, Change]
    verdict: Verdict
    reason: str
    is_null: bool

    def change(self, view: View | None) -> Change | None:
        """Of a view; of none in particular, the one whose interval is given beside the verdict of all."""
        return self.views.get(view) if view is not None else next(iter(self.views.values()))


@dataclass(frozen=True)
class Section:
    """All claims of one journal, pace and touch, allocator by allocator. `totals` are of all calls with first touch,
    from untimed repeats, where both have some."""

    pair: Pair
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    totals: tuple[Claim, ...] = ()

    @property
    def title(self) -> str:
        return self.pair.new.title


@dataclass(frozen=True)
class Comparison:
    """`confidence` is that of each interval."""

    pairing: Pairing
    sections: tuple[Section, ...]
    confidence: float


@dataclass(frozen=True, eq=False)
class Measured:
    twins: Twins
    base: AllocatorFigures
    new: AllocatorFigures

    @property
    def is_null(self) -> bool:
        """`null` does not compete."""
        return self.base.runs.is_null

    @property
    def views(self) -> tuple[View, ...]:
        """Those that must agree, the one to be shown first. Attributed stands for as-run where both know causes."""
        looked = self.base.looked_into and self.new.looked_into
        return (View.ATTRIBUTED, View.INHERENT) if looked else (View.AS_RUN, View.INHERENT)


@dataclass(frozen=True)
class Measurements:
    """The samples of both campaigns, digested; opaque but for compare()."""

    pairing: Pairing
    members: tuple[tuple[Measured, ...], ...]


LEAST_OTHERS = 2
"""From one other allocator nobody can tell whether the machine moved or that one did."""

Wanted = Callable[[Operation | Sum, Percentile], bool]


def measure(pairing: Pairing, on_progress: Progress | None = None, jobs: int = 2) -> Measurements:
    """Digests the samples of both campaigns; some seconds for 20 allocators of 3.5 million events."""
    tell = on_progress or (lambda fraction, text: None)
    total = sum(len(pair.twins) for pair in pairing.pairs)
    done = 0
    measured: list[tuple[Measured, ...]] = []
    with ThreadPoolExecutor(jobs) as pool:
        for pair in pairing.pairs:
            members: list[Measured] = []
            for one in pool.map(_measure, pair.twins):
                members.append(one)
                done += 1
                tell(done / total, f"read {pair.new.journal}, {one.twins.name}")
            measured.append(tuple(members))
    return Measurements(pairing, tuple(measured))


def compare(
    measured: Measurements,
    wanted: Wanted = lambda operation, percentile: True,
    false_alarms: float = noise.FALSE_ALARMS,
) -> Comparison:
    """Every claim, with intervals for those that are `wanted`: the fewer, the less evidence each one needs. A wrong one
    among them has the chance `false_alarms`."""
    claims = sum(_supported(one, wanted) for members in measured.members for one in members)
    confidence = noise.confidence(claims, false_alarms)
    found = tuple(
        _section(pair, members, confidence)
        for pair, members in zip(measured.pairing.pairs, measured.members, strict=True)
    )
    return Comparison(measured.pairing, found, confidence)


def _measure(twins: Twins) -> Measured:
    base, new = (figures.measure(one, cuts.uncut(), threads=1) for one in (twins.base, twins.new))
    return Measured(twins, base, new)


def _supported(one: Measured, wanted: Wanted) -> int:
    """How many of the claims could be made of an allocator; none of `null`, which does not compete, and of one that is
    there for the others' sake."""
    if one.is_null or not one.twins.asked_for:
        return 0
    samples = {
        operation: min(found.whole(View.AS_RUN, operation).samples for found in (one.base, one.new))
        for operation in OPERATIONS
    }
    return (wanted(Sum.TOTAL, TOTAL) and _totals_of(one) is not None) + sum(
        wanted(operation, percentile) and percentile.supported(samples[operation])
        for operation in OPERATIONS
        for percentile in WITH_INTERVAL
    )


def _section(pair: Pair, members: Sequence[Measured], confidence: float) -> Section:
    few = min((one.twins.repeats for one in members), default=0)
    notes = list(pair.notes)
    if members and few < LEAST_REPEATS:
        notes.append(
            f"fewer than {LEAST_REPEATS} repeats: nothing can be claimed, whatever the figures; replay both "
            "with --repeats 5 or more"
        )
    changes = {key: change for percentile in WITH_INTERVAL for key, change in _changes(members, percentile, confidence)}
    null = next((one.twins.name for one in members if one.is_null), None)
    claims, null_moved = [], []
    for one in members:
        name, is_null = one.twins.name, one.is_null
        for operation in OPERATIONS:
            if not (one.twins.asked_for or is_null) or not one.base.whole(View.AS_RUN, operation).samples:
                continue
            for percentile in WITH_INTERVAL:
                moved = {} if is_null else _movements(members, one, changes, percentile)
                views = {
                    view: _beside_the_others(
                        changes[name, operation, percentile, view],
                        moved.get(view),
                        None if is_null else changes.get((null, operation, percentile, view)),
                    )
                    for view in _views(one)
                }
                verdict, reason = noise.together({view: views[view] for view in one.views})
                if one.twins.asked_for:
                    claims.append(Claim(name, operation, percentile, views, verdict, reason, is_null))
                if is_null and verdict is not Verdict.INCONCLUSIVE:
                    null_moved.append(f"{operation.value} {percentile.label}")
    if null_moved:
        notes.append(
            f"null, which calls no allocator, is not the same in both ({', '.join(null_moved)}): the machine or "
            "its load differed between the campaigns; measure them again, one right after the other"
        )
    return Section(pair, tuple(claims), tuple(notes), tuple(_totals(members, confidence)))


def _totals_of(one: Measured) -> list[noise.Figure] | None:
    """Of all calls with first touch, in BASE and in NEW."""
    found = [each.runs.totals for each in (one.base, one.new)]
    if one.is_null or None in found:
        return None
    return [noise.Figure.of_each(each.each_ns, one.base.step_ns) for each in found]


def _totals(members: Sequence[Measured], confidence: float) -> Iterator[Claim]:
    """As of percentiles. A burst has no view: what the machine took is not in it."""
    known = {one: figures for one in members if (figures := _totals_of(one)) is not None}
    spread = noise.Spread.of([each for both in known.values() for each in both])
    changes = {one: noise.difference(*map(spread.lent, both), confidence) for one, both in known.items()}
    for one, change in changes.items():
        if not one.twins.asked_for:
            continue
        others = [changes[other] for other in changes if other is not one and not other.twins.changed]
        moved = Movement.of(others) if len(others) >= LEAST_OTHERS else None
        base, new = (Nanoseconds(figure.value) for figure in known[one])
        found = _beside_the_others(_Found(base, new, change), moved, None)
        yield Claim(one.twins.name, Sum.TOTAL, TOTAL, {one.views[0]: found}, found.verdict, found.reason, False)


def _views(one: Measured) -> tuple[View, ...]:
    return tuple(dict.fromkeys((*one.views, View.AS_RUN)))


@dataclass(frozen=True)
class _Found:
    """A change before anybody looked at the other allocators; `difference` is None where the samples are too few."""

    base: Nanoseconds | None
    new: Nanoseconds | None
    difference: noise.Difference | None


_Changes = dict[tuple[str, Operation, Percentile, View], _Found]


def _changes(
    members: Sequence[Measured], percentile: Percentile, confidence: float
) -> Iterator[tuple[tuple[str, Operation, Percentile, View], _Found]]:
    """How much repeats vary, all allocators that compete tell together, of malloc and of free; `null` for itself."""
    for view in dict.fromkeys(view for one in members for view in _views(one)):
        sides = {
            (one, operation): [found.figure(view, operation, percentile) for found in (one.base, one.new)]
            for one in members
            if view in _views(one)
            for operation in OPERATIONS
        }
        spread = noise.Spread.of([each for (one, _), both in sides.items() if not one.is_null for each in both if each])
        for (one, operation), both in sides.items():
            values = [found.whole(view, operation).percentile(percentile) for found in (one.base, one.new)]
            base, new = (each if each is None or one.is_null else spread.lent(each) for each in both)
            found = noise.difference(base, new, confidence) if base is not None and new is not None else None
            yield (one.twins.name, operation, percentile, view), _Found(*values, found)


def _movements(
    members: Sequence[Measured], of: Measured, changes: _Changes, percentile: Percentile
) -> dict[View, Movement]:
    """By view, as the others tell that are the same in both campaigns; empty where they are too few. Inherent has no
    variance to tell a movement from noise by, and follows the view of the repeats."""
    others = [one for one in members if one is not of and not one.twins.changed and not one.is_null]
    found: dict[View, Movement] = {}
    for view in _views(of):
        known = [
            changes.get((one.twins.name, operation, percentile, view)) for one in others for operation in OPERATIONS
        ]
        differences = [each.difference for each in known if each is not None and each.difference is not None]
        if len(others) < LEAST_OTHERS or not differences:
            continue
        unmoved = view is View.INHERENT and found.get(_views(of)[0]) == UNMOVED
        found[view] = UNMOVED if unmoved else Movement.of(differences)
    return found


def _beside_the_others(change: _Found, moved: Movement | None, null: _Found | None) -> Change:
    """A change that all allocators share is the machine's: it must hold beside the others' too, or where these are too
    few, not be one that `null` made as well."""
    found = change.difference
    if found is None:
        return Change(change.base, change.new, None, None, None, Verdict.INCONCLUSIVE, "too few samples")
    verdict, reason = found.verdict, found.reason
    if verdict is not Verdict.INCONCLUSIVE:
        if moved is not None and not moved.bears(found):
            verdict, reason = Verdict.INCONCLUSIVE, "the others moved as much"
        elif moved is None and null is not None and null.difference and null.difference.verdict is verdict:
            verdict, reason = Verdict.INCONCLUSIVE, "null moved as well"
    beside = moved.beside(found.ratio) if moved else None
    shows = moved.shown(found) if moved else found.shows
    return Change(change.base, change.new, found.ratio, found.low, found.high, verdict, reason, beside, shows)
