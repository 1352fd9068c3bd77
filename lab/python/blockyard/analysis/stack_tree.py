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
    nodes of the sites whose stacks are shown in full, the most important first."""

    def __init__(self, found: Sites, weights: np.ndarray, singles: np.ndarray) -> None:
        self._full = _Full(found)
        self._used = np.union1d(np.flatnonzero(weights.any(axis=0)), singles)
        self._singles = singles
        self._ends = self._full.ends(self._used)
        self._shares = self._full.shares(self._ends, weights)

    def cut(self, most: int, most_singles: int) -> Tree:
        """What is kept is the `most` nodes with the largest share of any figure, and the stacks of the singles while
        they are no more than `most_singles` nodes."""
        full, used, ends, shares = self._full, self._used, self._ends, self._shares
        order = np.argsort(-shares, kind="stable")[
            :most
        ]  # a parent has no smaller share, and stands before its children
        counted = np.zeros(len(shares), bool)
        counted[order[shares[order] > 0]] = True
        kept = counted.copy()
        full.keep(kept, ends[self._singles], most_singles)

        nearest = full.nearest(counted)
        parents, labels = list(full.parent), list(full.label)
        others: dict[int, int] = {}
        site, exact = ends.copy(), ends.copy()
        for node in used.tolist():
            end = int(ends[node])
            if counted[end]:
                continue
            above = int(nearest[end])
            if above not in others:
                others[above] = len(parents)
                parents.append(above if above >= 0 else NONE)
                labels.append(full.others)
            site[node] = others[above]
            if not kept[end]:
                exact[node] = others[above]
        return _numbered(parents, labels, np.append(kept, np.ones(len(others), bool)), full, site, exact)


def _numbered(
    parents: list[int], labels: list[int], kept: np.ndarray, full: "_Full", site: np.ndarray, exact: np.ndarray
) -> Tree:
    """With numbers that have no gaps, and only the labels that are left."""
    number = np.full(len(parents) + 1, NONE, np.uint32)
    old = np.flatnonzero(kept)
    number[old] = np.arange(len(old), dtype=np.uint32)
    parent = np.array(parents, np.int64)[old]
    used, label = np.unique(np.array(labels, np.int64)[old], return_inverse=True)
    return Tree(
        np.where(parent == NONE, NONE, number[np.where(parent == NONE, len(parents), parent)]).astype(np.uint32),
        label.astype(np.uint32),
        [full.words(int(one)) for one in used],
        number[site],
        number[exact],
    )


class _Full:
    """The whole tree: a node of the sites becomes one node for each of its functions."""

    def __init__(self, found: Sites) -> None:
        self._sites = found
        rows, unified = np.unique(np.asarray(found.label), return_inverse=True)
        self._rows = rows.tolist()
        self.others = len(rows)
        self._no_stack = self.others + 1
        known: dict[tuple[int, int], int] = {}
        self.parent: list[int] = []
        self.label: list[int] = []
        self._inner: list[list[int]] = []
        first = found.first_label.tolist()
        unified = unified.tolist()
        for parent, frame in zip(found.parent.tolist(), found.frame.tolist(), strict=True):
            above = NONE if parent == NONE else self._inner[parent][-1]
            nodes = []
            for place in range(first[frame + 1] - 1, first[frame] - 1, -1):
                above = self._child(known, above, unified[place])
                nodes.append(above)
            self._inner.append(nodes)
        self._inner.append([self._child(known, NONE, self._no_stack)])
        depth = np.zeros(len(self.parent), np.int32)
        for node, above in enumerate(self.parent):
            depth[node] = 0 if above == NONE else depth[above] + 1
        order = np.argsort(depth, kind="stable")
        self._levels = np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)
        self._parents = np.array(self.parent, np.int64)

    def _child(self, known: dict[tuple[int, int], int], above: int, label: int) -> int:
        node = known.get((above, label))
        if node is None:
            node = known[above, label] = len(self.parent)
            self.parent.append(above)
            self.label.append(label)
        return node

    def ends(self, used: np.ndarray) -> np.ndarray:
        """By node of the sites the node of the function that speaks for it; of those that are not used, anything."""
        found = self._sites
        first, frames, parents, speakers = (
            of.tolist() for of in (found.first_label, found.frame, found.parent, found.speaker)
        )
        ends = np.zeros(len(self._inner), np.int64)
        for node in used.tolist():
            if node == len(parents):
                ends[node] = self._inner[node][-1]
                continue
            speaker, at = speakers[node], node
            while not first[frames[at]] <= speaker < first[frames[at] + 1] and parents[at] != NONE:
                at = parents[at]
            inner = self._inner[at]
            ends[node] = inner[min(first[frames[at] + 1] - 1 - speaker, len(inner) - 1)]
        return ends

    def shares(self, ends: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Of each node the largest share, with all below it, that it has of any figure."""
        largest = np.zeros(len(self.parent))
        for figure in weights:
            sums = np.bincount(ends, figure, len(self.parent))
            for level in reversed(self._levels[1:]):
                np.add.at(sums, self._parents[level], sums[level])
            total = figure.sum()
            if total > 0:
                # Sums of the same numbers in another order differ in the last digits; ties go to the parent.
                largest = np.maximum(largest, np.round(sums / total, 12))
        return largest

    def keep(self, kept: np.ndarray, ends: np.ndarray, most: int) -> None:
        """Marks these nodes and all above them, in their order, while there is room for a whole stack."""
        room = most
        for end in ends.tolist():
            path = []
            at = end
            while at != NONE and not kept[at]:
                path.append(at)
                at = self.parent[at]
            if len(path) <= room:
                kept[path] = True
                room -= len(path)

    def nearest(self, kept: np.ndarray) -> np.ndarray:
        """Of each node the innermost kept one that it is or lies below; -1 for none."""
        found = np.full(len(self.parent), -1, np.int64)
        for level in self._levels:
            parents = self._parents[level]
            above = np.where(parents == NONE, -1, found[np.where(parents == NONE, 0, parents)])
            found[level] = np.where(kept[level], level, above)
        return found

    def words(self, label: int) -> Label:
        if label == self.others:
            return Label(OTHERS, "", 0, "")
        if label == self._no_stack:
            return Label(NO_STACK, "", 0, "")
        texts = self._sites.texts
        function, file, line, module = self._rows[label]
        return Label(texts[function], texts[file], line, texts[module])


def by_node(found: Sites, leaves: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Sums by node of the sites, and one more for events without a stack."""
    return np.bincount(leaves, weights, len(found.parent) + 1).astype(np.float64)


def leaves(found: Sites, events: np.ndarray) -> np.ndarray:
    """Of each event its node, or one more than there are."""
    return np.minimum(found.nodes_of(events), len(found.parent)).astype(np.uint32)
