"""Stretches of time as people read them. Imports nothing that is slow to load: small verbs start fast."""

from dataclasses import dataclass

# From two minutes on a person thinks in minutes.
_MINUTES_FROM_S = 120


@dataclass(frozen=True)
class Nanoseconds:
    """A latency; `at_least` when the measurement was saturated. A value of 0 means less than `step`, the clock's."""

    value: float
    at_least: bool = False
    step: float = 0.0


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


def span(low_ns: float, high_ns: float) -> str:
    """`1.37 to 20.6 ms`; each end with its own unit where they differ."""
    low, high = duration(low_ns), duration(high_ns)
    return low if low == high else f"{low.removesuffix(' ' + high.rpartition(' ')[2])} to {high}"


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


def three_digits(value: float) -> str:
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}"
