"""The study's closing guideline, worded from the data at hand: minimum, median, worst 0.1 %, absolute worst."""

from collections.abc import Callable, Sequence

from blockyard.analysis.distribution import Distribution, Nanoseconds
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import P50, P999, Operation, View
from blockyard.analysis.sections import Section
from blockyard.report import units
from blockyard.report.comparison import short_name


def paragraph(section: Section, figures: Sequence[AllocatorFigures], views: Sequence[View], variant: str) -> str:
    """One paragraph over the allocators of one variant; `null` is no allocator and left out."""
    contenders = [one for one in figures if not one.runs.is_null]
    if not contenders:
        return "No guideline: nothing but null was measured."
    count = f"{len(contenders)} allocators" if len(contenders) > 1 else contenders[0].name
    several = {"defaults": "in their defaults", "favoured": "each favoured"}
    setting = several[variant] if len(contenders) > 1 else variant
    sentences = []
    for view in views:
        told = [_operation(contenders, view, operation) for operation in (Operation.MALLOC, Operation.FREE)]
        words = f"{_VIEW_WORDS[view]} {'; '.join(words for words in told if words)}."
        sentences.append(words[0].upper() + words[1:] if sentences else words)
    return f"As a guideline from {section.title} ({count}, {setting}): {' '.join(sentences)}"


_VIEW_WORDS = {View.AS_RUN: "as it ran,",
               View.ATTRIBUTED: "without the events that the machine interrupted (attributed),",
               View.INHERENT: "with the machine's noise gone (inherent),"}


def _operation(contenders: Sequence[AllocatorFigures], view: View, operation: Operation) -> str:
    found = [(short_name(one), one.whole(view, operation)) for one in contenders]
    found = [(name, distribution) for name, distribution in found if distribution.samples]
    if not found:
        return ""
    touch = " with its first touch" if operation is Operation.MALLOC and any(one.touched for one in contenders) else ""
    median = _range(found, lambda one: one.percentile(P50))
    tail = _range(found, lambda one: one.percentile(P999))
    return (f"a {operation.value}{touch} takes {_range(found, lambda one: one.best)} at the least, "
            + (f"{median} at the median, " if median else "an unknown time at the median (too few events), ")
            + (f"{tail} or more in the worst 0.1 %" if tail else "an unknown time in the worst 0.1 % (too few events)")
            + f", and {_range(found, lambda one: one.worst)} at the absolute worst")


def _range(found: list[tuple[str, Distribution]], pick: Callable[[Distribution], Nanoseconds | None]) -> str:
    """`12 ns`, or `12 ns (mimalloc) to 45 ns (dlmalloc)`; empty when no allocator supports it."""
    values = sorted(((value, name) for name, one in found if (value := pick(one)) is not None),
                    key=lambda pair: pair[0].value)
    if not values:
        return ""
    (least, first), (most, last) = values[0], values[-1]
    low, high = units.latency(least), units.latency(most)
    return low if low == high else f"{low} ({first}) to {high} ({last})"
