"""What each site's events took: samples joined with call stacks by event number. A free belongs to who freed."""

from dataclasses import dataclass

import numpy as np

from blockyard.analysis import samples, worst_frames
from blockyard.analysis.causes import MACHINE
from blockyard.analysis.figures import SLOWEST, AllocatorFigures, open_rows
from blockyard.analysis.latency import P50, P999, Percentile
from blockyard.analysis.passes import Rows
from blockyard.analysis.sites import Sites
from blockyard.analysis.worst_frames import WorstFrame

SLOW_NS = 10_000
"""An event that takes longer is slow: the middle one of the limits that reports count by."""
PAGE = 4096
_CHUNK = 1 << 16
"""Rows that are looked at together: their columns stay in the second-level cache."""


@dataclass(frozen=True)
class Part:
    """What one site has of a whole. `ns` is time in the allocator, of an allocation with its first touch."""

    site: int
    events: int
    ns: float
    share: float


@dataclass(frozen=True)
class Tail:
    """Latencies of one site's events, without those that the machine interrupted."""

    site: int
    events: int
    latencies_ns: tuple[float, float, float]
    """p50, p99.9 and the worst."""


@dataclass(frozen=True)
class Pinned:
    """Pages that hold blocks of one site and of nobody else: freeing them would free the pages. `free_bytes` of those
    pages nobody asked for."""

    site: int
    pages: int
    blocks: int
    bytes: int
    free_bytes: int


class BySite:
    """One journal's sites, joined with allocators that replayed it. Every run has the same events in the same rows."""

    def __init__(self, sites: Sites, skip: str | None = None) -> None:
        self.sites, self.skip = sites, skip
        self.groups = sites.groups(skip)
        self._of_rows: np.ndarray | None = None

    def of_events(self, events: np.ndarray) -> np.ndarray:
        """The site of each event number; the last one stands for events without a stack."""
        return self.groups.of(self.sites.nodes_of(events))

    def slow(self, one: AllocatorFigures) -> list[Part]:
        """Who waits in slow events, most time first, of all repeats together. Events that the machine interrupted are
        left out where that is known. O(rows)."""

        def find() -> list[Part]:
            found = [_slow_rows(one, run) for run in open_rows(one.runs, one.gross)]
            return self._parts(*(np.concatenate(column) for column in zip(*found, strict=True)))

        return one.once(("slow by site", self.skip), find)

    def in_frame(self, one: AllocatorFigures, frame: WorstFrame) -> list[Part]:
        """Who fills the frame, most time first."""
        key = ("frame by site", self.skip, frame.frame, frame.repeat)
        return one.once(key, lambda: self._parts(*worst_frames.events_of(one, frame)))

    def tails(self, one: AllocatorFigures, count: int) -> list[Tail]:
        """Of the sites with most events, as far as their events support a p99.9."""
        of_rows = self._sites_of_rows(one)
        events = np.bincount(of_rows, minlength=len(self.groups.names))
        repeats = len(one.runs.runs)
        busiest = [int(site) for site in np.argsort(-events, kind="stable")[:count] if events[site]]
        opened = open_rows(one.runs, one.gross)
        found = []
        for site in busiest:
            mine = np.flatnonzero(of_rows == site)
            if not P999.supported(len(mine) * repeats):
                continue
            each = [(run, run.rows[mine]) for run in opened]
            times = [(run.ticks(rows) / one.runs.ticks_per_ns)[_own(one, rows)] for run, rows in each]
            ns = np.sort(np.concatenate(times))
            if P999.supported(len(ns)):
                found.append(Tail(site, len(mine), (_at(ns, P50), _at(ns, P999), float(ns[-1]))))
        return found

    def pinned(self, one: AllocatorFigures) -> list[Pinned]:
        """Who keeps pages that are otherwise free, most free bytes first, at the end of the first repeat; empty where
        the run kept no addresses. Inner pages of large blocks are full, and left out."""
        path = next((run.folder / "blocks.npy" for run in one.runs.runs if run.repeat == 1), None)
        if path is None or not path.is_file():
            return []
        blocks = samples.columns(path, samples.BLOCK, "block")
        blocks = blocks[blocks["size"] > 0]
        pages, sites, sizes, begins = _in_pages(blocks, self.of_events(blocks["event"]))
        # One row a page: its bytes, and whether all of its blocks are of one site.
        order = np.argsort(pages, kind="stable")
        pages, sites, sizes, begins = pages[order], sites[order], sizes[order], begins[order]
        first = np.flatnonzero(np.diff(pages, prepend=pages[:1] ^ np.uint64(1)))
        if not len(first):
            return []
        alone = np.minimum.reduceat(sites, first) == np.maximum.reduceat(sites, first)
        used, counts = np.add.reduceat(sizes, first), np.add.reduceat(begins, first)
        owner, used, counts = sites[first][alone], used[alone], counts[alone]
        names = len(self.groups.names)
        found = [np.bincount(owner, weights, names) for weights in (None, counts, used)]
        free = found[0] * PAGE - found[2]
        return [
            Pinned(int(site), *(int(column[site]) for column in found), int(free[site]))
            for site in np.argsort(-free, kind="stable")
            if found[0][site]
        ]

    def _sites_of_rows(self, one: AllocatorFigures) -> np.ndarray:
        if self._of_rows is None:
            self._of_rows = self.of_events(open_rows(one.runs, one.gross)[0].rows["event"])
        return self._of_rows

    def _parts(self, events: np.ndarray, ns: np.ndarray) -> list[Part]:
        of_rows = self.of_events(events)
        names = len(self.groups.names)
        counts, times = np.bincount(of_rows, minlength=names), np.bincount(of_rows, ns, minlength=names)
        whole = float(times.sum())
        order = np.argsort(-times, kind="stable")
        return [Part(int(one), int(counts[one]), float(times[one]), times[one] / whole) for one in order if counts[one]]


@dataclass(frozen=True)
class Held:
    """What one site's blocks take: alive at the stretch's peak of live bytes, and at its end."""

    site: int
    peak_bytes: int
    peak_blocks: int
    end_bytes: int
    end_blocks: int


def held(joined: BySite) -> list[Held]:
    """Who holds memory, most at the peak first."""
    sites, groups = joined.sites, joined.groups

    def summed(values: np.ndarray) -> np.ndarray:
        # In two halves, as bincount adds doubles: each half stays exact.
        halves = ((values >> np.uint64(32), 1 << 32), (values & np.uint64(0xFFFFFFFF), 1))
        return sum(np.bincount(groups.by_node, half, len(groups.names)).astype(np.int64) * of for half, of in halves)

    columns = [summed(one) for one in (sites.peak_bytes, sites.peak_blocks, sites.end_bytes, sites.end_blocks)]
    order = np.lexsort((-columns[2], -columns[0]))
    return [
        Held(int(one), *(int(column[one]) for column in columns)) for one in order if columns[0][one] or columns[2][one]
    ]


def _in_pages(blocks: np.ndarray, sites: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The first and the last page of each block, its site, how many of its bytes lie there, and 1 where it begins."""
    page = np.uint64(PAGE)
    begin, end = blocks["address"], blocks["address"] + blocks["size"]
    first, last = begin // page, (end - np.uint64(1)) // page
    several = last > first
    in_first = np.minimum(end, (first + np.uint64(1)) * page) - begin
    in_last = end[several] - last[several] * page
    sizes = np.concatenate([in_first, in_last]).astype(np.int64)
    begins = np.repeat([1, 0], [len(first), np.count_nonzero(several)])
    return np.concatenate([first, last[several]]), np.concatenate([sites, sites[several]]), sizes, begins


def _slow_rows(one: AllocatorFigures, run: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Event numbers and times of the slow events of one repeat."""
    kept, limit = one.digest.slowest(), SLOW_NS * one.runs.ticks_per_ns
    if len(kept) < SLOWEST or kept["ticks"][-1] + 1 < limit:  # the digest's ticks are rounded
        rows = run.rows[np.sort(kept["row"])]
    else:
        rows = _perhaps_slow(run, limit / run.scale)
    ns = run.ticks(rows) / one.runs.ticks_per_ns
    chosen = (ns > SLOW_NS) & _own(one, rows)
    return rows["event"][chosen], ns[chosen]


def _perhaps_slow(run: Rows, limit: float) -> np.ndarray:
    """Rows above the limit with the timer's floor. What is slow with it is few; only that is copied."""
    found = []
    for begin in range(0, len(run.rows), _CHUNK):
        chunk = run.rows[begin : begin + _CHUNK]
        found.append(chunk[np.flatnonzero(chunk["call"] + chunk["touch"].astype(np.uint64) > limit)])
    return np.concatenate(found) if found else run.rows[:0]


def _own(one: AllocatorFigures, rows: np.ndarray) -> np.ndarray:
    """Which rows the machine left alone, as far as is known."""
    return (rows["cause"] & MACHINE) == 0 if one.looked_into else np.ones(len(rows), bool)


def _at(ns: np.ndarray, percentile: Percentile) -> float:
    return float(ns[percentile.rank(len(ns)) - 1])
