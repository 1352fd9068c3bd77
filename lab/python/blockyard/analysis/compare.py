"""Better, worse or inconclusive: two campaigns of the same journal, percentile by percentile.

The journal is the same in both, so its events are no sample of anything: the repeats are, and intervals are of them
(report's intervals answer another question and resample events as well). A claim needs more than an interval, because
two campaigns of the same thing differ too: see docs/compare.md.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from statistics import median

from blockyard.analysis import cuts, figures, student
from blockyard.analysis.distribution import Nanoseconds
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import WITH_INTERVAL, Operation, Part, Percentile, View
from blockyard.analysis.pairing import Pair, Pairing, Twins

MARGIN = 0.02
"""No claim is made of a smaller difference (docs/method.md, Claims)."""
LEAST_REPEATS = 3
"""From two repeats on a side no spread can be told: the interval of their ratio would span thousands."""
FALSE_ALARMS = 0.05
"""The chance of any wrong claim among all of a comparison, were repeats the only thing that differs."""
OPERATIONS = (Operation.MALLOC, Operation.FREE)


class Verdict(Enum):
    BETTER = "better"
    WORSE = "worse"
    INCONCLUSIVE = "inconclusive"


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
    """`confidence` of each interval is such that among all wanted claims a wrong one has a chance of FALSE_ALARMS."""

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
    confidence = 1 - FALSE_ALARMS / max(claims, 1)
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
                verdict, reason = _together({view: views[view] for view in one.views})
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
    part = Part.CALL if operation is Operation.FREE else Part.BOTH
    values = [found.distribution(view, operation, part).percentile(percentile) for found in (one.base, one.new)]
    if values[0] is None or values[1] is None:
        return Change(*values, None, None, None, Verdict.INCONCLUSIVE, "too few samples")
    step = max(found.step_ns for found in (one.base, one.new))
    base, new = (max(value.value, step / 2) for value in values)
    ratio = new / base
    ends = _interval(one, view, operation, part, percentile, confidence)
    verdict, reason = Verdict.INCONCLUSIVE, ""
    if one.twins.repeats < LEAST_REPEATS:
        reason = "too few repeats"
    elif abs(new - base) <= step:
        reason = "within a clock step"
    elif 1 / (1 + MARGIN) <= ratio <= 1 + MARGIN:
        reason = "within 2 %"
    elif ends is not None and ends[0] <= 1 <= ends[1]:
        reason = "repeats differ as much"
    else:
        verdict = Verdict.WORSE if ratio > 1 else Verdict.BETTER
    return Change(*values, ratio, *(ends or (None, None)), verdict, reason)


def _interval(
    one: _Measured, view: View, operation: Operation, part: Part, percentile: Percentile, confidence: float
) -> tuple[float, float] | None:
    if view is View.INHERENT or one.twins.repeats < 2:
        return None
    groups = []
    for found in (one.base, one.new):
        ranks = [found.distribution(view, operation, part, repeat=repeat) for repeat in range(one.twins.repeats)]
        # By rank, also where a single repeat has too few samples beyond: how little it then says, its spread tells.
        values = [rank.at_rank(percentile.rank(rank.samples)) / rank.ticks_per_ns for rank in ranks if rank.samples]
        if len(values) < 2:
            return None
        groups.append(student.Group([max(value, found.step_ns / 2) for value in values], found.step_ns))
    return student.ratio(groups[0], groups[1], confidence)


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


def _together(changes: dict[View, Change]) -> tuple[Verdict, str]:
    """What all of these views say; nothing where they don't agree, and then which of them holds it back."""
    first = next(iter(changes.values()))
    if all(change.verdict is first.verdict for change in changes.values()):
        return first.verdict, first.reason
    reasons = [f"{view.value} {change.reason}" for view, change in changes.items() if change.reason]
    return Verdict.INCONCLUSIVE, reasons[0] if reasons else "the views disagree"
