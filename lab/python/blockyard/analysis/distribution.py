"""An exact distribution of latencies: each distinct number of ticks, and how often it occurred."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from blockyard.analysis.latency import Percentile
from blockyard.units import Nanoseconds

SATURATED = 4294967295
"""Ticks of a call that took at least that long: the sample's field could hold no more."""


@dataclass(frozen=True)
class Distribution:
    """Distinct latencies in rising order with their counts; `ticks_per_ns` turns them into time.

    The clock advances by `step_ticks` at a time: differences below that cannot be seen.
    """

    ticks: np.ndarray
    counts: np.ndarray
    ticks_per_ns: float
    step_ticks: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cumulated", np.cumsum(self.counts, dtype=np.uint64))

    @classmethod
    def joined(cls, parts: Iterable["Distribution"]) -> "Distribution":
        """The distribution of all samples of several; all must have the same tick."""
        parts = list(parts)
        rates = {part.ticks_per_ns for part in parts}
        if len(rates) != 1:
            raise ValueError("distributions of different ticks cannot be joined")
        ticks, inverse = np.unique(np.concatenate([part.ticks for part in parts]), return_inverse=True)
        counts = np.zeros(len(ticks), np.uint64)
        np.add.at(counts, inverse, np.concatenate([part.counts for part in parts]))
        return cls(ticks, counts, rates.pop(), parts[0].step_ticks)

    def without_each(self, parts: Sequence["Distribution"], percentiles: Sequence[Percentile]) -> np.ndarray:
        """[percentile, part]: latencies, ns, among the samples of all parts, which this is, but one; by nearest rank.
        All parts must have the same tick."""
        rest = [self.samples - part.samples for part in parts]
        ranks = np.array([[percentile.rank(samples) for samples in rest] for percentile in percentiles])
        low, high = np.zeros(ranks.shape, np.int64), np.full(ranks.shape, len(self.ticks) - 1)
        while (low < high).any():
            middle = (low + high) // 2
            below = np.stack(
                [
                    self._cumulated[at].astype(np.int64) - part.samples + part.above_ticks(self.ticks[at])
                    for part, at in zip(parts, middle.T, strict=True)
                ],
                axis=1,
            )
            reached = below >= ranks
            low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
        return self.ticks[low] / self.ticks_per_ns

    @property
    def samples(self) -> int:
        return int(self._cumulated[-1]) if len(self._cumulated) else 0

    def percentile(self, percentile: Percentile) -> Nanoseconds | None:
        """By nearest rank; None when too few samples lie beyond it to support it."""
        if not percentile.supported(self.samples):
            return None
        return self.latency(self.at_rank(percentile.rank(self.samples)))

    def at_rank(self, rank: int) -> int:
        """Ticks of the sample in that place, from 1."""
        return int(self.ticks[np.searchsorted(self._cumulated, np.uint64(rank))])

    @property
    def step_ns(self) -> float:
        return self.step_ticks / self.ticks_per_ns

    @property
    def best(self) -> Nanoseconds | None:
        return self.latency(int(self.ticks[0])) if self.samples else None

    @property
    def worst(self) -> Nanoseconds | None:
        return self.latency(int(self.ticks[-1])) if self.samples else None

    @property
    def mean(self) -> Nanoseconds | None:
        """A mean with a saturated sample in it is a lower bound as well."""
        if not self.samples:
            return None
        total = float(np.dot(self.ticks.astype(np.float64), self.counts.astype(np.float64)))
        return Nanoseconds(total / self.samples / self.ticks_per_ns, self.worst.at_least)

    def above(self, ns: float) -> int:
        """How many samples took longer than that."""
        index = int(np.searchsorted(self.ticks, ns * self.ticks_per_ns, side="right"))
        return self.samples - (int(self._cumulated[index - 1]) if index else 0)

    def above_ticks(self, ticks: np.ndarray) -> np.ndarray:
        """For each of these how many samples took longer."""
        below = np.concatenate([np.zeros(1, np.uint64), self._cumulated])
        return (np.uint64(self.samples) - below[np.searchsorted(self.ticks, ticks, side="right")]).astype(np.int64)

    def latency(self, ticks: int) -> Nanoseconds:
        return Nanoseconds(ticks / self.ticks_per_ns, ticks == SATURATED, self.step_ns)
