"""Numbers as people read them: three significant digits and a unit."""

from blockyard.analysis.bootstrap import Interval
from blockyard.analysis.distribution import Nanoseconds

ABSENT = "–"
"""What stands where a sample cannot support a figure; every table that has one explains it in a footnote."""


def duration(ns: float) -> str:
    """`0 ns`, `8.46 ns`, `1.23 us`, `45.6 ms`, `2.10 s`."""
    if ns <= 0:
        return "0 ns"
    value, unit = ns, "ns"
    for larger in ("us", "ms", "s"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{_three_digits(value)} {unit}"


def latency(value: Nanoseconds | None) -> str:
    """A latency; `≥` before one that the sample's field could not hold, `<` before a step of the clock that it did not
    reach, a dash for an unsupported one."""
    if value is None:
        return ABSENT
    if value.value == 0 and value.step > 0:
        return f"<{duration(value.step)}"
    return f"≥{duration(value.value)}" if value.at_least else duration(value.value)


def interval(found: Interval | None) -> str:
    """`12.3–14.5 us`; each end with its own unit where they differ."""
    if found is None:
        return ABSENT
    return _joined(latency(found.low), latency(found.high))


def span(ends: tuple[float, float] | None) -> str:
    """The same of two durations in ns."""
    return ABSENT if ends is None else _joined(*map(duration, ends))


def _joined(low: str, high: str) -> str:
    if low == high:
        return low
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}')}–{high}"


def size(count: float | None) -> str:
    """Bytes in binary units."""
    if count is None:
        return ABSENT
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1023.5:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} B" if unit == "B" else f"{_three_digits(value)} {unit}"


def number(count: int | None) -> str:
    return ABSENT if count is None else f"{count:,}"


def rate(per_second: float | None) -> str:
    """Events a second."""
    if per_second is None:
        return ABSENT
    return "0" if per_second == 0 else f"{per_second:,.0f}" if per_second >= 100 else _three_digits(per_second)


def _three_digits(value: float) -> str:
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}"
