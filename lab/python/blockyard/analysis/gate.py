"""Limits on how much worse a percentile may become, and whether a comparison keeps them."""

import re
from dataclasses import dataclass

from blockyard.analysis.compare import OPERATIONS, Change, Claim, Comparison, Measurements, Section, compare
from blockyard.analysis.latency import TOTAL, WITH_INTERVAL, Operation, Percentile, Sum, View
from blockyard.analysis.noise import LEAST_REPEATS, Verdict
from blockyard.errors import UserError

FALSE_FAILURES = 1 / 200
"""The chance that a build that changed nothing fails any gate, if only the repeats differ, and the machine as the
other allocators show it."""

_OPERATIONS = {operation.value: operation for operation in OPERATIONS}
_VIEWS = {view.value: view for view in View}
_PERCENTILES = {percentile.label: percentile for percentile in WITH_INTERVAL}


@dataclass(frozen=True)
class Gate:
    """`limit` is the share by which the percentile may rise; without operation each of them, without view attributed,
    or where the runs did not look for causes what as-run and inherent agree on."""

    text: str
    percentile: Percentile
    limit: float
    operation: Operation | None = None
    view: View | None = None


@dataclass(frozen=True)
class Outcome:
    """One gate on one allocator and operation of one section. `passed` is None where it could not be judged; with
    `unproven` it passed though the figure itself lies beyond the limit, because the repeats differ as much."""

    gate: Gate
    section: Section
    allocator: str
    operation: Operation | Sum
    passed: bool | None
    words: str
    unproven: bool = False


def parse(text: str) -> Gate:
    """`p99.9:5%`, `free/p99:10%`, `attributed/malloc/p99.9:5%`, `total:5%`."""
    match = re.fullmatch(r"\s*((?:[a-z-]+/)*)(p[0-9.]+|total)\s*:\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*", text)
    if match is None:
        raise UserError(
            f"'{text}' is not a gate; write p99.9:5% or total:5%, or with an operation and a view free/p99:10% and "
            "attributed/malloc/p99.9:5%"
        )
    if match[2] == TOTAL.label and not match[1]:
        return Gate(text.strip(), TOTAL, float(match[3]) / 100)
    if match[2] not in _PERCENTILES:
        raise UserError(f"the gate '{text}' names {match[1]}{match[2]}; there are {', '.join(_PERCENTILES)}, and total")
    operation, view = None, None
    for word in filter(None, match[1].split("/")):
        if word in _OPERATIONS and operation is None:
            operation = _OPERATIONS[word]
        elif word in _VIEWS and view is None:
            view = _VIEWS[word]
        else:
            raise UserError(
                f"the gate '{text}' names '{word}'; operations are {', '.join(_OPERATIONS)}, views "
                f"{', '.join(_VIEWS)}, each once at most"
            )
    return Gate(text.strip(), _PERCENTILES[match[2]], float(match[3]) / 100, operation, view)


def judge(measured: Measurements, gates: tuple[Gate, ...], strict: bool = False) -> list[Outcome]:
    """Every gate on everything it applies to: among one another, and not among all that there is to compare. With
    `strict` a rise that can't be ruled out is a failure as well."""

    def asked(operation: Operation | Sum, percentile: Percentile) -> bool:
        return any(gate.percentile == percentile and gate.operation in (None, operation) for gate in gates)

    # An interval has two ends, and a gate fails beyond one of them.
    comparison = compare(measured, asked, 2 * FALSE_FAILURES)
    return [
        _judge(gate, section, claim, strict)
        for gate in gates
        for section in comparison.sections
        for claim in (*section.claims, *section.totals)
        if not claim.is_null and claim.percentile == gate.percentile and gate.operation in (None, claim.operation)
    ]


def losses(comparison: Comparison) -> list[tuple[Section, str]]:
    """Allocators that came through in BASE and not in NEW: no gate passes with one."""
    return [(section, words) for section in comparison.sections for words in section.pair.lost]


def _judge(gate: Gate, section: Section, claim: Claim, strict: bool) -> Outcome:
    change = claim.change(gate.view)
    passed, words = _verdict(gate, section, claim, change, strict)
    beyond = change is not None and change.ratio is not None and change.ratio > 1 + gate.limit
    return Outcome(gate, section, claim.allocator, claim.operation, passed, words, passed is True and beyond)


def _verdict(
    gate: Gate, section: Section, claim: Claim, change: Change | None, strict: bool
) -> tuple[bool | None, str]:
    if change is None:
        return None, f"there is no {gate.view.value if gate.view else ''} view: the runs did not look for causes"
    if change.ratio is None:
        return None, f"too few samples for {gate.percentile.label}: replay a longer stretch or more repeats"
    if next(twins.repeats for twins in section.pair.twins if twins.name == claim.allocator) < LEAST_REPEATS:
        return None, f"fewer than {LEAST_REPEATS} repeats: replay with --repeats 5 or more"
    # Inherent, a minimum, has no interval and is no better than its noisiest repeats: it keeps no false alarm from a
    # view that does without the machine's interruptions, and misses slowdowns on a busy machine.
    alone = gate.view is not None or change is claim.views.get(View.ATTRIBUTED)
    verdict = change.verdict if alone else claim.verdict
    low, high = change.low or change.ratio, change.high or change.ratio
    moved = percent(change.ratio)
    if change.low is not None:
        moved += f" (interval {percent(low)} to {percent(high)})"
    if verdict is Verdict.WORSE and min(change.ratio, change.beside or change.ratio) > 1 + gate.limit:
        return False, f"{moved}, more than {_limit(gate)}"
    if strict and verdict is not Verdict.BETTER and high > 1 + gate.limit:
        return False, f"{moved}: a rise of more than {_limit(gate)} can't be ruled out"
    if change.ratio > 1 + gate.limit:
        why = change.reason or claim.reason or f"{percent(change.beside or 1)} beside the others"
        return True, f"{moved}: above {_limit(gate)}, and not proven ({why})"
    return True, moved


def _limit(gate: Gate) -> str:
    return f"{gate.limit * 100:.3g} %"


def percent(ratio: float) -> str:
    """`+12 %`, `-3.4 %`, `x 3.2` from a doubling on."""
    if ratio >= 2:
        return f"x {ratio:.3g}"
    change = (ratio - 1) * 100
    return f"{change:+.0f} %" if abs(change) >= 9.95 else f"{change:+.1f} %"
