"""Numbers as people read them: three significant digits and a unit."""

from blockyard import sizes
from blockyard.durations import Nanoseconds, duration, length, moment, three_digits

__all__ = ["ABSENT", "call", "duration", "latency", "length", "moment", "number", "rate", "share", "size"]

ABSENT = "–"
"""What stands where a sample cannot support a figure; every table that has one explains it in a footnote."""


_CALLS = ("malloc", "calloc", "aligned", "free", "realloc")
"""By the kind of an event."""


def latency(value: Nanoseconds | None) -> str:
    """A latency; `≥` before one that the sample's field could not hold, `<` before a step of the clock that it did not
    reach, a dash for an unsupported one."""
    if value is None:
        return ABSENT
    if value.value == 0 and value.step > 0:
        return f"<{duration(value.step)}"
    return f"≥{duration(value.value)}" if value.at_least else duration(value.value)


def size(count: float | None) -> str:
    return ABSENT if count is None else sizes.size(count)


def call(kind: int, size_bytes: int) -> str:
    """Of an event: `malloc 64.0 KiB`, `free 24 B`."""
    return f"{_CALLS[kind]} {size(size_bytes)}"


def number(count: int | None) -> str:
    return ABSENT if count is None else f"{count:,}"


def rate(per_second: float | None) -> str:
    """Events per second."""
    if per_second is None:
        return ABSENT
    return "0" if per_second == 0 else f"{per_second:,.0f}" if per_second >= 100 else three_digits(per_second)


def share(part: float | None, whole: float = 1) -> str:
    """`0.03 %`, `12 %`, `210 %`."""
    if part is None or not whole:
        return ABSENT
    percent = part / whole * 100
    if 0 < percent < 0.01:
        return "<.01 %"
    return f"{percent:.0f} %" if percent >= 99.5 else f"{percent:.2g} %"
