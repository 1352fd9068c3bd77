"""The call stacks of a section as one tree of functions and lines that is small enough to be shown."""

from dataclasses import dataclass

import numpy as np

from blockyard.analysis.sites import NO_STACK, NONE, Label, Sites

OTHERS = "(smaller sites)"
"""Stands below a function for all that it calls and that is too small to be shown."""


@dataclass(frozen=True)
class Tree:
    """Nodes from the thread's first function inwards: a parent comes before its children.

    A node is a function at a line, inlined ones included. Each stack ends in the function that speaks for it, as in
    `blockyard sites`.
    """

    parent: np.ndarray
    """NONE for the outermost functions."""
    label: np.ndarray
    labels: list[Label]
    site: np.ndarray
    """By node of the sites (and one more, for events without a stack), the node whose figures its events count to."""
    exact: np.ndarray
    """The same for showing one stack: the nodes of `singles` are there in full, as far as there is room."""


class Grown:
    """The tree in full, which then is cut to any size. `weights` is [figure, node of the sites + 1]; `singles` are
    nodes of the sites whose stacks are shown in full, the most important first. Functions that match `skip` do not
    speak for a stack."""

    def __init__(self, found: Sites, weights: np.ndarray, singles: np.ndarray, skip: str | None = None) -> None:
        self._full = _Full(found, skip)
        used = weights.any(axis=0)
        used[singles] = True
        self._used = np.flatnonzero(used)
        self._singles = singles
        self._ends = self._full.ends(self._used)
        self._shares = self._full.shares(self._ends, weights)

    def cut(self, most: int, most_singles: int) -> Tree:
        """What is kept is the `most` nodes with the largest share of any figure, and the stacks of the singles while
        they are no more than `most_singles` nodes."""
        full, ends, shares = self._full, self._ends, self._shares
        # A parent has no smaller share, and stands before its children.
        order = np.argsort(-shares, kind="stable")[:most]
        counted = np.zeros(len(shares), bool)
        counted[order[shares[order] > 0]] = True
        kept = counted.copy()
        full.keep(kept, ends[self._singles], most_singles)

        joined = self._used[~counted[ends[self._used]]]
        above, others = np.unique(full.nearest(counted)[ends[joined]], return_inverse=True)
        site, exact = ends.copy(), ends.copy()
        site[joined] = len(shares) + others
        exact[joined] = np.where(kept[ends[joined]], ends[joined], site[joined])
        return _numbered(
            np.append(full.parent, above),
            np.append(full.label, np.full(len(above), full.others)),
            np.append(kept, np.ones(len(above), bool)), full, site, exact,
        )  # fmt: skip


def _numbered(
    parents: np.ndarray, labels: np.ndarray, kept: np.ndarray, full: "_Full", site: np.ndarray, exact: np.ndarray
) -> Tree:
    """With numbers that have no gaps, and only the labels that are left."""
    number = np.full(len(parents) + 1, NONE, np.uint32)  # the last one is for -1
    old = np.flatnonzero(kept)
    number[old] = np.arange(len(old), dtype=np.uint32)
    used, label = np.unique(labels[old], return_inverse=True)
    return Tree(number[parents[old]], label.astype(np.uint32), full.words(used), number[site], number[exact])


class _Full:
    """The whole tree. `parent` is -1 for the outermost functions."""

    def __init__(self, found: Sites, skip: str | None) -> None:
        self._sites = found
        self._speaker = found.speakers(skip)
        self._rows, label_number = _distinct(found.label)
        self.others = len(self._rows)
        # A node of the sites becomes a place for each of its functions, outermost first; events without a stack get
        # one behind them all.
        first_label, parent = found.first_label.astype(np.int64), found.parent.astype(np.int64)
        self._outermost = first_label[found.frame.astype(np.int64) + 1] - 1
        self._functions = np.append(np.diff(first_label)[found.frame], 1)
        innermost = np.cumsum(self._functions) - 1
        self._begins = innermost - self._functions + 1
        above = np.arange(-1, innermost[-1])
        above[self._begins] = -1
        inner = np.flatnonzero(parent != NONE)
        above[self._begins[inner]] = innermost[parent[inner]]
        distance = np.arange(len(above)) - np.repeat(self._begins, self._functions)
        label = np.full(len(above), self.others + 1)
        label[:-1] = label_number[np.repeat(self._outermost, self._functions[:-1]) - distance[:-1]]
        # Places with the same functions above them are one node, which has the number of the first.
        same = np.append(np.arange(len(above)), -1)  # the last one is for -1
        levels = _levels(above)
        for depth, level in enumerate(levels):
            keys = (same[above[level]] + 1) * (self.others + 2) + label[level]
            _, first, which = np.unique(keys, return_index=True, return_inverse=True)
            same[level] = level[first][which]
            levels[depth] = level[np.sort(first)]
        nodes = np.flatnonzero(same[:-1] == np.arange(len(above)))
        number = np.full(len(same), -1)
        number[nodes] = np.arange(len(nodes))
        self._node = number[same]
        self.parent = self._node[above[nodes]]
        self.label = label[nodes]
        self._levels = [number[level] for level in levels]

    def ends(self, used: np.ndarray) -> np.ndarray:
        """By node of the sites the node of the function that speaks for it; of those that are not used, anything."""
        parent, frame, first = self._sites.parent, self._sites.frame, self._sites.first_label.astype(np.int64)
        node = used[used < len(parent)]
        speaker, at = self._speaker[node].astype(np.int64), node.copy()
        searching = np.arange(len(node))
        while len(searching):
            here, wanted = at[searching], speaker[searching]
            lacks = (wanted < first[frame[here]]) | (wanted > self._outermost[here])
            searching = searching[lacks & (parent[here] != NONE)]
            at[searching] = parent[at[searching]]
        distance = np.clip(self._outermost[at] - speaker, 0, self._functions[at] - 1)
        ends = np.zeros(len(parent) + 1, np.int64)
        ends[node] = self._node[self._begins[at] + distance]
        ends[used[used == len(parent)]] = self._node[self._begins[-1]]
        return ends

    def shares(self, ends: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Of each node the largest share, with all below it, that it has of any figure."""
        largest = np.zeros(len(self.parent))
        for figure in weights:
            sums = np.bincount(ends, figure, len(self.parent))
            for level in reversed(self._levels[1:]):
                np.add.at(sums, self.parent[level], sums[level])
            total = figure.sum()
            if total > 0:
                # Sums of the same numbers in another order differ in the last digits; ties go to the parent.
                largest = np.maximum(largest, np.round(sums / total, 12))
        return largest

    def keep(self, kept: np.ndarray, ends: np.ndarray, most: int) -> None:
        """Marks these nodes and all above them, in their order, while there is room for a whole stack."""
        room, parent = most, self.parent.tolist()
        for end in ends.tolist():
            if not room:
                break
            path = []
            at = end
            while at >= 0 and not kept[at]:
                path.append(at)
                at = parent[at]
            if len(path) <= room:
                kept[path] = True
                room -= len(path)

    def nearest(self, kept: np.ndarray) -> np.ndarray:
        """Of each node the innermost kept one that it is or lies below; -1 for none."""
        found = np.full(len(self.parent) + 1, -1)  # the last one is for -1
        for level in self._levels:
            found[level] = np.where(kept[level], level, found[self.parent[level]])
        return found

    def words(self, labels: np.ndarray) -> list[Label]:
        """Of labels that rise: those of no function are the last."""
        texts = self._sites.texts
        found = [
            Label(texts[function], texts[file], line, texts[module])
            for function, file, line, module in self._rows[labels[labels < self.others]].tolist()
        ]
        return found + [
            Label(text, "", 0, "") for at, text in ((0, OTHERS), (1, NO_STACK)) if self.others + at in labels
        ]


def _levels(above: np.ndarray) -> list[np.ndarray]:
    """Nodes by how many stand above them. `above` is -1 for none."""
    depth, at = (above >= 0).astype(np.int32), above.astype(np.int32)
    deeper = np.flatnonzero(depth)
    while len(deeper):  # each time twice as far
        there = at[deeper]
        depth[deeper] += depth[there]
        at[deeper] = at[there]
        deeper = deeper[at[deeper] >= 0]
    # NumPy sorts numbers of 16 bits by counting them.
    order = np.argsort(depth.astype(np.uint16) if depth.max(initial=0) < 1 << 16 else depth, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)


def _distinct(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each label once, and which of them each is. As numpy.unique, which compares rows byte by byte."""
    high, low = (
        labels[first].astype(np.uint64) << np.uint64(32) | labels[second]
        for first, second in (("function", "file"), ("line", "module"))
    )
    order = np.lexsort((low, high))
    high, low = high[order], low[order]
    new = np.ones(len(order), bool)
    new[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    return np.asarray(labels)[order[new]], number


def leaves(found: Sites, events: np.ndarray) -> np.ndarray:
    """Of each event its node, or one more than there are."""
    return np.minimum(found.nodes_of(events), np.uint32(len(found.parent)))
