"""The words in which latencies are looked at: views, operations, parts, size classes and percentiles."""

from dataclasses import dataclass
from enum import Enum


class View(Enum):
    """How the repeats of one event are looked at."""

    AS_RUN = "as-run"
    ATTRIBUTED = "attributed"
    """As-run without the events that the machine interrupted (those that it interrupted in every one of two or more
    repeats count with their least); there where slow events were looked into."""
    INHERENT = "inherent"


BY_TRUST = (View.ATTRIBUTED, View.AS_RUN, View.INHERENT)


class Operation(Enum):
    """What was called. MALLOC is every call that gives a block, reallocations included; REALLOC shows those apart."""

    MALLOC = "malloc"
    REALLOC = "realloc"
    FREE = "free"


class Part(Enum):
    """What of an operation was timed. A free has only its call."""

    CALL = "call"
    TOUCH = "touch"
    BOTH = "call+touch"


class Sum(Enum):
    """What is no operation's alone."""

    TOTAL = "all calls"


def paid(operation: Operation) -> Part:
    """What the program pays: of a malloc the call and the touch, of a free the call."""
    return Part.CALL if operation is Operation.FREE else Part.BOTH


SIZE_CLASSES = ("up to 64 B", "up to 1 KiB", "up to 32 KiB", "up to 1 MiB", "above 1 MiB")
"""In the order of the native passes (lab/src/samples/latency.hpp)."""


@dataclass(frozen=True)
class Percentile:
    """A share of the samples as an exact fraction, so that a rank never suffers from rounding."""

    label: str
    numerator: int
    denominator: int

    def rank(self, samples: int) -> int:
        """Nearest rank: the place (from 1) of the smallest sample that at least this share of samples do not exceed."""
        return max(1, -(-samples * self.numerator // self.denominator))

    def supported(self, samples: int) -> bool:
        """Whether enough samples lie beyond it to say anything."""
        return samples * (self.denominator - self.numerator) >= SAMPLES_BEYOND * self.denominator


SAMPLES_BEYOND = 10
"""A percentile is printed only when at least so many samples lie beyond it: with ten, the number beyond has a standard
error of a third; with one, the percentile would be the worst event under another name."""


def _percentile(text: str) -> Percentile:
    whole = 100 * 10 ** len(text.partition(".")[2])
    return Percentile(f"p{text}", int(text.replace(".", "")), whole)


PERCENTILES = tuple(map(_percentile, "1 10 25 50 75 90 95 98 99 99.9 99.99 99.999".split()))
"""The study's list, between Best and Worst."""
P50, P99, P999, P9999, P99999 = WITH_INTERVAL = (PERCENTILES[3], *PERCENTILES[-4:])
"""Those whose interval is given: the median and every tail percentile."""
TOTAL = Percentile("total", 1, 1)
"""Stands where a claim is of the sum of all calls."""
