"""Numbers as people read them: times and bytes with three significant digits and a unit, counts with what they count.
Imports nothing that is slow to load: small verbs start fast."""

from collections.abc import Sequence
from dataclasses import dataclass

ABSENT = "–"
"""What stands where a sample cannot support a figure; every table that has one explains it in a footnote."""

# From two minutes on a person thinks in minutes.
_MINUTES_FROM_S = 120
_CALLS = ("malloc", "calloc", "aligned", "free", "realloc")
"""By the kind of an event."""


@dataclass(frozen=True)
class Nanoseconds:
    """A latency; `at_least` when the measurement was saturated. A value of 0 means less than `step`, the clock's."""

    value: float
    at_least: bool = False
    step: float = 0.0


def three_digits(value: float) -> str:
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}"


def duration(ns: float) -> str:
    """`0 ns`, `8.46 ns`, `1.23 us`, `45.6 ms`, `2.10 s`, `5:14 min`, `1:12 h`."""
    if ns <= 0:
        return "0 ns"
    if ns >= (_MINUTES_FROM_S - 0.5) * 1e9:
        return clock_text(ns / 1e9)
    value, unit = ns, "ns"
    for larger in ("us", "ms", "s"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{three_digits(value)} {unit}"


def span(low: str, high: str, between: str = " to ") -> str:
    """`1.37 to 20.6 ms`; each end with its own unit where they differ."""
    return low if low == high else f"{low.removesuffix(' ' + high.rpartition(' ')[2])}{between}{high}"


def moment(ns: float) -> str:
    """A place in a journal: in seconds however far, which is what --from and --to take."""
    return f"{ns / 1e9:.1f} s" if ns >= 99.95e9 else duration(ns)


def length(ns: float) -> str:
    """Of a journal: `45.6 s`, and `5:14 min (313.5 s)`, for --from and --to again."""
    words, seconds = duration(ns), moment(ns)
    return words if words.endswith("s") else f"{words} ({seconds})"


def clock_text(seconds: float) -> str:
    """`41 s`, `3:07 min`, `1:12 h`: whole seconds."""
    whole = max(int(seconds + 0.5), 0)  # a half goes up, as on the page
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def latency(value: Nanoseconds | None) -> str:
    """A latency; `≥` before one that the sample's field could not hold, `<` before a step of the clock that it did not
    reach, a dash for an unsupported one."""
    if value is None:
        return ABSENT
    if value.value == 0 and value.step > 0:
        return f"<{duration(value.step)}"
    return f"≥{duration(value.value)}" if value.at_least else duration(value.value)


def size(count: float) -> str:
    """`12 B`, `64.0 KiB`, `1.50 GiB`, `-421 MiB`: binary units, at most nine characters."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1023.5:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} B" if unit == "B" else f"{three_digits(value)} {unit}"


def call(kind: int, size_bytes: int) -> str:
    """Of an event: `malloc 64.0 KiB`, `free 24 B`."""
    return f"{_CALLS[kind]} {size(size_bytes)}"


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


def counted(number: int, noun: str) -> str:
    """As a sentence has it: "1 block", "2,000 processes"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def first_listed(words: Sequence[str], most: int, last: str = "and", more: str = "more") -> str:
    """So many of them: `a, b and 3 more`."""
    rest = [f"{len(words) - most:,} {more}"] if len(words) > most else []
    return listed([*words[:most], *rest], last)
