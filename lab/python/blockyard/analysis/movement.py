"""How the machine moved between two campaigns, as the allocators tell that are the same in both.

Repeats a few seconds apart do not know what another minute brings: other guests of the host, the clock's speed, other
programs. The allocators that nobody changed do. Where they moved by more than their repeats explain, their median
change is the machine's. Where they scatter around it by more than that, so may any other, and its interval is widened
as much: the scale factor with which the Particle Data Group averages measurements that disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import median

from blockyard.analysis.noise import MARGIN, Difference

LEAST_OTHERS = 2
"""From one other allocator nobody can tell whether the machine moved or that one did."""


@dataclass(frozen=True)
class Movement:
    """`shift` is the logarithm of the machine's change, `variance` that of the shift, `scatter` the factor of 1 or more
    by which intervals are widened."""

    shift: float = 0.0
    variance: float = 0.0
    scatter: float = 1.0

    def beside(self, ratio: float) -> float:
        """A change with the machine's taken off."""
        return ratio / exp(self.shift)

    def bears(self, found: Difference) -> bool:
        """Whether this change is one beside the machine's as well."""
        beside = log(self.beside(found.ratio))
        if abs(beside) <= log(1 + MARGIN) or (beside > 0) != (found.ratio > 1):
            return False
        if found.low is None or found.high is None or not found.variance:
            return True
        half = log(found.high / found.low) / 2
        return abs(beside) > half * self.scatter * sqrt(1 + self.variance / found.variance)


UNMOVED = Movement()


def of(changes: Sequence[Difference]) -> Movement:
    """From the changes of one percentile, malloc's and free's, of the other allocators that are the same in both."""
    shift = median(log(one.ratio) for one in changes)
    known = [(log(one.ratio), one.variance) for one in changes if one.variance]
    if len(known) < 2:
        return Movement(shift)
    if sum(change**2 / variance for change, variance in known) <= len(known):
        return UNMOVED
    disagreement = sum((change - shift) ** 2 / variance for change, variance in known) / (len(known) - 1)
    return Movement(shift, 1 / sum(1 / variance for _, variance in known), max(1.0, sqrt(disagreement)))
