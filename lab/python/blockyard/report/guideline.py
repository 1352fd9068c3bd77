"""The study's closing guideline, worded from this data: minimum, median, worst 0.1 %, absolute worst."""

from collections.abc import Callable, Iterator, Sequence

from blockyard.analysis.distribution import Distribution, Nanoseconds
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import P50, P999, Operation, View
from blockyard.report import units
from blockyard.report.lineup import Lineup, short_name

_VIEW_WORDS = {
    View.AS_RUN: "As it ran",
    View.ATTRIBUTED: "Attributed (without the events that the machine interrupted)",
    View.INHERENT: "Inherent (with the machine's noise gone)",
}


def lines(lineup: Lineup) -> list[str]:
    """Over the allocators of one variant, a finding a line, view by view; `null` is no allocator and left out."""
    contenders = lineup.competing
    if not contenders:
        return ["No guideline: nothing but null was measured."]
    several = {"defaults": "allocators in their defaults", "prefaulted": "allocators, each prefaulted"}
    who = (
        f"{len(contenders)} {several[lineup.variant]}"
        if len(contenders) > 1
        else f"{contenders[0].name}, {lineup.variant}"
    )
    found = [f"As a guideline for {lineup.section.journal} ({who}):"]
    for view in lineup.of.views:
        touch = ", malloc with its first touch" if any(one.touched for one in contenders) else ""
        found.append(f"{_VIEW_WORDS[view]}{touch}:")
        for operation in (Operation.MALLOC, Operation.FREE):
            found += _operation(contenders, view, operation)
    return found


def _operation(contenders: Sequence[AllocatorFigures], view: View, operation: Operation) -> Iterator[str]:
    known = [(short_name(one), one.whole(view, operation)) for one in contenders]
    known = [(name, distribution) for name, distribution in known if distribution.samples]
    if not known:
        return
    for words, pick, tail in (
        ("at the least", lambda one: one.best, ""),
        ("median", lambda one: one.percentile(P50), ""),
        ("worst 0.1 %", lambda one: one.percentile(P999), " or more"),
        ("absolute worst", lambda one: one.worst, ""),
    ):
        span = _range(known, pick)
        yield f"{operation.value}, {words}: {span + tail if span else 'unknown (too few events)'}"


def _range(found: list[tuple[str, Distribution]], pick: Callable[[Distribution], Nanoseconds | None]) -> str:
    """`12 ns`, or `12 ns (mimalloc) to 45 ns (dlmalloc)`; empty when no allocator supports it."""
    values = sorted(
        ((value, name) for name, one in found if (value := pick(one)) is not None), key=lambda pair: pair[0].value
    )
    if not values:
        return ""
    (least, first), (most, last) = values[0], values[-1]
    low, high = units.latency(least), units.latency(most)
    return low if low == high else f"{low} ({first}) to {high} ({last})"
