"""Better, worse or inconclusive: two campaigns of the same journal, percentile by percentile.

The journal is the same in both, so its events are no sample of anything: the repeats are, and intervals are of them
(report's intervals answer another question and resample events as well). A claim needs more than an interval, because
two campaigns of the same thing differ too: see docs/guide/compare.md.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from statistics import median

from blockyard.analysis import cuts, figures, noise
from blockyard.analysis.distribution import Nanoseconds
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import WITH_INTERVAL, Operation, Percentile, View
from blockyard.analysis.noise import LEAST_REPEATS, MARGIN, Verdict
from blockyard.analysis.pairing import Pair, Pairing, Twins

OPERATIONS = (Operation.MALLOC, Operation.FREE)


@dataclass(frozen=True)
class Change:
    """One percentile in one view. `ratio` is NEW / BASE; `low` and `high` are the ends of its interval over the
    repeats, None where the samples support none, and in the inherent view, which has no repeats. `reason` says why it
    is inconclusive."""

    base: Nanoseconds | None
    new: Nanoseconds | None
    ratio: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Claim:
    """One allocator, operation and percentile: what each view says, and what they say together."""

    allocator: str
    operation: Operation
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
    """All claims of one journal, pace and touch, allocator by allocator."""

    pair: Pair
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.pair.new.title


@dataclass(frozen=True)
class Comparison:
    """`confidence` of each interval is such that among all wanted claims a wrong one has a chance of 5 %."""

    pairing: Pairing
    sections: tuple[Section, ...]
    confidence: float


@dataclass(frozen=True)
class _Measured:
    twins: Twins
    base: AllocatorFigures
    new: AllocatorFigures

    @property
    def views(self) -> tuple[View, ...]:
        """Those that must agree, the one to be shown first. Attributed stands for as-run where both know causes."""
        looked = self.base.looked_into and self.new.looked_into
        return (View.ATTRIBUTED, View.INHERENT) if looked else (View.AS_RUN, View.INHERENT)


@dataclass(frozen=True)
class Measurements:
    """The samples of both campaigns, digested; opaque but for compare()."""

    pairing: Pairing
    members: tuple[tuple[_Measured, ...], ...]


Progress = Callable[[float, str], None]
Wanted = Callable[[Operation, Percentile], bool]


def measure(pairing: Pairing, on_progress: Progress | None = None, jobs: int = 2) -> Measurements:
    """Digests the samples of both campaigns; some seconds for 20 allocators of 3.5 million events."""
    tell = on_progress or (lambda fraction, text: None)
    total = sum(len(pair.twins) for pair in pairing.pairs)
    done = 0
    measured: list[tuple[_Measured, ...]] = []
    with ThreadPoolExecutor(jobs) as pool:
        for pair in pairing.pairs:
            members: list[_Measured] = []
            for one in pool.map(_measure, pair.twins):
                members.append(one)
                done += 1
                tell(done / total, f"read {pair.new.journal}, {one.twins.name}")
            measured.append(tuple(members))
    return Measurements(pairing, tuple(measured))


def compare(measured: Measurements, wanted: Wanted = lambda operation, percentile: True) -> Comparison:
    """Every claim, with intervals for those that are `wanted`: the fewer, the less evidence each one needs."""
    claims = sum(_supported(one, wanted) for members in measured.members for one in members)
    confidence = noise.confidence(claims)
    found = tuple(
        _section(pair, members, confidence)
        for pair, members in zip(measured.pairing.pairs, measured.members, strict=True)
    )
    return Comparison(measured.pairing, found, confidence)


def _measure(twins: Twins) -> _Measured:
    base, new = (figures.measure(one, cuts.uncut(), threads=1) for one in (twins.base, twins.new))
    return _Measured(twins, base, new)


def _supported(one: _Measured, wanted: Wanted) -> int:
    """How many of the claims could be made of an allocator; none of `null`, which does not compete."""
    if one.base.runs.is_null:
        return 0
    samples = {
        operation: min(found.whole(View.AS_RUN, operation).samples for found in (one.base, one.new))
        for operation in OPERATIONS
    }
    return sum(
        wanted(operation, percentile) and percentile.supported(samples[operation])
        for operation in OPERATIONS
        for percentile in WITH_INTERVAL
    )


def _section(pair: Pair, members: Sequence[_Measured], confidence: float) -> Section:
    few = min((one.twins.repeats for one in members), default=0)
    notes = list(pair.notes)
    if members and few < LEAST_REPEATS:
        notes.append(
            f"fewer than {LEAST_REPEATS} repeats: nothing can be claimed, whatever the figures; replay both "
            "with --repeats 5 or more"
        )
    claims, moved = [], []
    for operation in OPERATIONS:
        for percentile in WITH_INTERVAL:
            found = {
                one.twins.name: {view: _change(one, view, operation, percentile, confidence) for view in _views(one)}
                for one in members
            }
            common = {view: _common(members, found, view) for view in View}
            null = next((found[one.twins.name] for one in members if one.base.runs.is_null), {})
            for one in members:
                if not one.base.whole(View.AS_RUN, operation).samples:
                    continue
                is_null = one.base.runs.is_null
                views = {
                    view: change
                    if is_null
                    else _beside_the_others(change, common[view].get(one.twins.name), null.get(view))
                    for view, change in found[one.twins.name].items()
                }
                verdict, reason = noise.together({view: views[view] for view in one.views})
                claims.append(Claim(one.twins.name, operation, percentile, views, verdict, reason, is_null))
                if is_null and verdict is not Verdict.INCONCLUSIVE:
                    moved.append(f"{operation.value} {percentile.label}")
    if moved:
        notes.append(
            f"null, which calls no allocator, is not the same in both ({', '.join(moved)}): the machine or "
            "its load differed between the campaigns; measure them again, one right after the other"
        )
    order = {one.twins.name: place for place, one in enumerate(members)}
    return Section(
        pair,
        tuple(sorted(claims, key=lambda claim: (order[claim.allocator], OPERATIONS.index(claim.operation)))),
        tuple(notes),
    )


def _views(one: _Measured) -> tuple[View, ...]:
    return tuple(dict.fromkeys((*one.views, View.AS_RUN)))


def _change(one: _Measured, view: View, operation: Operation, percentile: Percentile, confidence: float) -> Change:
    values = [found.whole(view, operation).percentile(percentile) for found in (one.base, one.new)]
    if values[0] is None or values[1] is None:
        return Change(*values, None, None, None, Verdict.INCONCLUSIVE, "too few samples")
    sides = [found.figure(view, operation, percentile) for found in (one.base, one.new)]
    found = noise.difference(*sides, one.twins.repeats, confidence)
    return Change(*values, found.ratio, found.low, found.high, found.verdict, found.reason)


def _common(members: Sequence[_Measured], found: dict[str, dict[View, Change]], view: View) -> dict[str, float]:
    """For each allocator the median ratio of all others that are the same in both campaigns: how the machine moved.

    Below three of them there is no telling a machine that moved from an allocator that did.
    """
    same = {
        one.twins.name: found[one.twins.name][view].ratio
        for one in members
        if not one.twins.changed and not one.base.runs.is_null and view in found[one.twins.name]
    }
    result = {}
    for name in found:
        others = [ratio for other, ratio in same.items() if other != name and ratio is not None]
        if len(others) >= 3:
            result[name] = median(others)
    return result


def _beside_the_others(change: Change, common: float | None, null: Change | None) -> Change:
    """A change that all allocators share is the machine's: it must hold beside the others' too, or where these are too
    few, not be one that `null` made as well."""
    if change.verdict is Verdict.INCONCLUSIVE:
        return change
    if common is None:
        same = null is not None and null.verdict is change.verdict
        return replace(change, verdict=Verdict.INCONCLUSIVE, reason="null moved alike") if same else change
    assert change.ratio is not None
    low, high = change.low or change.ratio, change.high or change.ratio
    beside = change.ratio / common
    if (
        low > common and beside > 1 + MARGIN
        if change.verdict is Verdict.WORSE
        else high < common and beside < 1 / (1 + MARGIN)
    ):
        return change
    return replace(change, verdict=Verdict.INCONCLUSIVE, reason="the others moved alike")
