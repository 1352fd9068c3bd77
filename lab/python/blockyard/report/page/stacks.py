"""The call stacks of a section for the page: a tree of functions, and what each stack did in short stretches of time.

A cell is one stack in one stretch. Cells of mallocs, of frees (by the stack that freed) and of deaths (by the stack
that allocated) are the same for all allocators; each allocator has its times of them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockyard.analysis import passes, samples, sites, stack_tree, tiles, timeline
from blockyard.analysis.figures import SLOWEST, AllocatorFigures, open_rows
from blockyard.analysis.frames import SHARES_OVER, FrameCut
from blockyard.analysis.latency import View
from blockyard.analysis.passes import ALL, FREE
from blockyard.analysis.sections import Section
from blockyard.analysis.sites import NONE, Sites
from blockyard.analysis.stack_tree import Tree
from blockyard.report.page import changes
from blockyard.report.page.changes import Changes
from blockyard.report.page.pack import packed

MISSING = (
    "No call stacks: record the program with blockyard record, without --no-stacks, and replay the new journal; "
    "journals and campaigns of older versions have none."
)
SUM_STEPS = 32
"""A sum of latencies is kept in steps of this many an octave: within 1.1 %."""
OVER = SHARES_OVER[0]
"""Share of a frame: what the allocator takes beyond it is over budget."""
_TREES = ((20_000, 1024), (6000, 256), (3000, 256), (1500, 128), (700, 64), (300, 64), (100, 32))
"""How many nodes have figures, and into how many stretches time is cut at least: the first that fits is taken."""
_MOST_SINGLES = 6000
"""So many more nodes show the stacks of slow events in full."""
_BYTES_A_CELL, _BYTES_A_TIME, _BYTES_A_NODE = 3.0, 1.6, 1.8
"""What these take once compressed: a cell, its times of one allocator, and the stack of a slow event."""
_VIEWS = {View.AS_RUN: passes.AS_RUN, View.INHERENT: passes.INHERENT, View.ATTRIBUTED: passes.ATTRIBUTED}


@dataclass(frozen=True)
class Stacks:
    """`columns` belong in the pack of each allocator."""

    facts: dict[str, Any]
    pack: str
    columns: list[dict[str, np.ndarray]]
    _found: Sites
    _exact: np.ndarray
    _seen: "_Seen"
    _change: np.ndarray | None

    def of_events(self, events: np.ndarray) -> dict[str, np.ndarray]:
        """By event number the node of its whole stack, counted from 1, and the change that it belongs to."""
        made = {"node": self._exact[stack_tree.leaves(self._found, events)] + np.uint32(1)}
        if self._change is not None:
            made["change"] = self._change[np.searchsorted(self._seen.event, events)]
        return made


def prepare(
    section: Section,
    members: Sequence[AllocatorFigures],
    end_ns: float,
    room: int,
    jobs: int,
    skip: str | None = None,
    advised: dict[str, Any] | None = None,
) -> Stacks | None:
    """In at most `room` bytes, compressed, unless there is little of it. None where the journal has no stacks.
    Functions that match `skip` do not stand for a stack; `advised` is advice about this journal."""
    found = sites.of(section)
    if found is None or not members:
        return None
    seen = _Seen(section, found, end_ns)
    change = seen.changes(found, Changes(advised, found)) if advised else None
    slow, slow_ns = _slow(found, seen, members)
    weights = np.stack([*seen.weights(found), slow_ns])
    grown = stack_tree.Grown(found, weights, slow, skip)
    for most, least in _TREES:
        tree = grown.cut(most, _MOST_SINGLES)
        cells = _Cells(seen, tree)
        parts = {} if change is None else _parts(seen, tree, change)
        table = len(_pack(tree, parts, np.zeros(0), slow[:0])) * 3 // 4  # of names, which may be long
        if columns := cells.fitting(room - table, len(members), least):
            break
    shared, group, groups = cells.columns(columns or least)
    shared |= parts
    frame = _frame_of_rows(members[0], seen)
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        times = list(pool.map(lambda one: _times(one, group, groups, frame), members))
    pack = _pack(tree, shared, seen.alive_at_start(found, tree), np.union1d(seen.used, slow))
    facts = {
        "columns": columns or least,
        "without": float((seen.leaf == len(found.parent)).mean()) if len(seen.leaf) else 0.0,
        "named": found.has_names,
        "joined": any(label.function == stack_tree.OTHERS for label in tree.labels),
        "alive": seen.pair is not None,
        "over": None if frame is None else {"share": OVER, "phase": members[0].cuts.judged_phase or ""},
    }
    return Stacks(facts, pack, times, found, tree.exact, seen, change)


class _Seen:
    """The journal's events at the times of the reference run. `died` are rows of allocations whose end was seen, in the
    column `died_column`."""

    def __init__(self, section: Section, found: Sites, end_ns: float) -> None:
        rows = samples.rows(timeline.reference(section).folder / "samples.npy")
        self.event = np.ascontiguousarray(rows["event"])
        self.free = rows["kind"] == FREE
        self.mallocs, self.frees = np.flatnonzero(~self.free), np.flatnonzero(self.free)
        self.size = rows["size"].astype(np.float64)
        self.leaf = stack_tree.leaves(found, self.event)
        self.used = np.flatnonzero(np.bincount(self.leaf))
        self.requested = stack_tree.by_node(found, self.leaf[self.mallocs], self.size[self.mallocs])
        self.thread = rows["thread"]
        self.column = np.minimum(rows["start"] * (tiles.COLUMNS / end_ns), tiles.COLUMNS - 1).astype(np.uint32)
        self.pair = section.arrays().get("pair")
        self.died, self.died_column = self._deaths()

    def _deaths(self) -> tuple[np.ndarray, np.ndarray]:
        born = self.mallocs
        if self.pair is None or not len(self.event):
            return born[:0], self.column[:0]
        born = born[self.event[born] < len(self.pair)]
        ends = self.pair[self.event[born]]
        row_of_event = np.full(int(self.event[-1]) + 1, NONE, np.uint32)
        row_of_event[self.event] = np.arange(len(self.event), dtype=np.uint32)
        known = ends < len(row_of_event)
        row = np.where(known, row_of_event[np.where(known, ends, 0)], np.uint32(NONE))
        known = row != NONE
        return born[known], self.column[row[known]]

    def changes(self, found: Sites, of: Changes) -> np.ndarray:
        """Of each event the change that its block belongs to: a free has that of its allocation."""
        pair = np.zeros(0, np.uint32) if self.pair is None else self.pair
        source = self.event.copy()
        known = self.free & (source < len(pair))
        source[known] = pair[source[known]]
        leaf = stack_tree.leaves(found, source)
        leaf[self.free & ~known] = len(found.parent)
        return of.of_nodes(np.flatnonzero(np.bincount(leaf)))[leaf]

    def weights(self, found: Sites) -> list[np.ndarray]:
        """The figures that a node has to have much of to be shown."""
        nothing = np.zeros(1)
        return [
            stack_tree.by_node(found, self.leaf[self.mallocs]),
            self.requested,
            stack_tree.by_node(found, self.leaf[self.frees]),
            np.append(found.peak_bytes, nothing),
            np.append(found.end_bytes, nothing),
        ]

    def alive_at_start(self, found: Sites, tree: Tree) -> np.ndarray:
        """Bytes by node of the tree: those alive at the end less what came and went."""
        bytes_of = np.append(found.end_bytes, 0).astype(np.float64) - self.requested
        bytes_of += stack_tree.by_node(found, self.leaf[self.died], self.size[self.died])
        there = np.flatnonzero(bytes_of > 0)
        there = there[tree.site[there] != NONE]
        return np.bincount(tree.site[there], bytes_of[there], len(tree.parent))


class _Cells:
    """What each node that has figures did, by column."""

    def __init__(self, seen: _Seen, tree: Tree) -> None:
        self._nodes = np.unique(tree.site[seen.used])
        place = np.zeros(len(tree.site), np.uint32)  # of nodes that are not used anything
        place[seen.used] = np.searchsorted(self._nodes, tree.site[seen.used])
        self._rows = len(seen.leaf)
        here = place[seen.leaf]
        self._kinds = {
            "malloc": (seen.mallocs, seen.column[seen.mallocs], here[seen.mallocs], seen.size[seen.mallocs]),
            "free": (seen.frees, seen.column[seen.frees], here[seen.frees], seen.size[seen.frees]),
            "died": (seen.died, seen.died_column, here[seen.died], seen.size[seen.died]),
        }

    def fitting(self, room: int, allocators: int, least: int) -> int | None:
        """Into how many columns, `least` or more, time can be cut so that all takes no more than `room`."""
        occupied = []
        for _, column, place, _ in self._kinds.values():
            taken = np.zeros((tiles.COLUMNS, len(self._nodes)), bool)
            taken[column, place] = True
            occupied.append(taken)
        columns = tiles.COLUMNS
        while _size(*(int(np.count_nonzero(taken)) for taken in occupied), allocators) > room:
            columns //= 2
            if columns < least:
                return None
            occupied = [taken[0::2] | taken[1::2] for taken in occupied]
        return columns

    def columns(self, columns: int) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
        """For the pack; and of each row the number of its cell, mallocs' before frees', and how many there are."""
        made: dict[str, np.ndarray] = {}
        group, groups = np.full(self._rows, ALL, np.uint32), 0
        for kind, (rows, column, place, size) in self._kinds.items():
            keys = column // (tiles.COLUMNS // columns) * len(self._nodes) + place
            taken = np.zeros(columns * len(self._nodes), bool)
            taken[keys] = True
            cells = np.flatnonzero(taken)  # booleans: a quarter of the memory to look through
            number = np.empty(len(taken), np.uint32)
            number[cells] = np.arange(len(cells), dtype=np.uint32)
            cell = number[keys]
            in_column, node = cells // len(self._nodes), self._nodes[cells % len(self._nodes)].astype(np.int64)
            first = np.diff(in_column, prepend=-1) > 0
            made[f"{kind}.occupied"] = np.bincount(in_column, minlength=columns).astype(np.uint32)
            made[f"{kind}.gap"] = np.where(first, node, np.diff(node, prepend=0)).astype(np.uint32)
            _add_wide(made, f"{kind}.bytes", np.bincount(cell, size, len(cells)))
            if kind != "died":
                made[f"{kind}.calls"] = np.bincount(cell, minlength=len(cells)).astype(np.uint32)
                group[rows] = cell + np.uint32(groups)
                groups += len(cells)
        return made, group, groups


def _parts(seen: _Seen, tree: Tree, change: np.ndarray) -> dict[str, np.ndarray]:
    """Which part of a node's calls belongs to which change, in 255ths: a stack that frees, and what is joined for want
    of room, may have to do with several."""
    made: dict[str, np.ndarray] = {}
    for kind, chosen in (("malloc", ~seen.free), ("free", seen.free)):
        node = tree.site[seen.leaf[chosen]].astype(np.int64)
        width = changes.MOST + 1
        calls = np.bincount(node * width + change[chosen], minlength=len(tree.parent) * width).reshape(-1, width)
        node, one = np.nonzero(calls[:, 1:])
        part = np.ceil(255 * calls[node, one + 1] / calls.sum(axis=1)[node])
        made |= {
            f"{kind}.change.node": node.astype(np.uint32),
            f"{kind}.change": (one + 1).astype(np.uint8),
            f"{kind}.change.part": part.astype(np.uint8),
        }
    return made


def _size(mallocs: int, frees: int, deaths: int, allocators: int) -> float:
    """Of so many cells, once compressed, and of the stacks of slow events."""
    timed = (mallocs + frees) * _BYTES_A_TIME + SLOWEST * _BYTES_A_NODE
    return (mallocs + frees + deaths) * _BYTES_A_CELL + allocators * timed


def _slow(found: Sites, seen: _Seen, members: Sequence[AllocatorFigures]) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of the slowest events, that which took longest first; and by node the time they took."""
    total = np.zeros(len(found.parent) + 1)
    for one in members:
        slow = one.digest.slowest()
        total += stack_tree.by_node(found, seen.leaf[slow["row"]], slow["ticks"] / one.runs.ticks_per_ns)
    order = np.argsort(-total, kind="stable")
    return order[total[order] > 0], total


def _frame_of_rows(one: AllocatorFigures, seen: _Seen) -> np.ndarray | None:
    """Of each event the judged frame that it is in; ALL where it is in none, as on other threads. None where there are
    no frames."""
    cut = one.cuts.frames
    if not isinstance(cut, FrameCut) or not cut.frames or one.frames is None:
        return None
    edges = np.searchsorted(seen.event, cut.edges)
    frame = np.arange(cut.frames, dtype=np.uint32)
    if one.cuts.judged_phase is not None:
        frame[~one.cuts.frames_in(one.cuts.judged_phase)] = ALL
    found = np.full(len(seen.event), ALL, np.uint32)
    found[edges[0] : edges[-1]] = np.repeat(frame, np.diff(edges))
    if cut.thread != ALL:
        found[seen.thread != cut.thread] = ALL
    return found


def _times(one: AllocatorFigures, group: np.ndarray, groups: int, frame: np.ndarray | None) -> dict[str, np.ndarray]:
    """By cell, of one repeat on average. Attributed and inherent are what as-run has more, in steps."""
    opened, weights = open_rows(one.runs, one.gross), None
    if frame is not None and one.frames is not None:
        excess = {view: _excess(one, view) for view in View}
        weights = passes.Weights(frame, excess[View.AS_RUN], excess[View.INHERENT], excess[View.ATTRIBUTED])
    sums, over = passes.group_times(opened, group, groups, weights)
    made = {}
    known = [view for view in View if one.looked_into or view is not View.ATTRIBUTED]
    found = {view: _steps(sums[_VIEWS[view]], one, view) for view in known}
    for view in known:
        values = found[view] if view is View.AS_RUN else np.maximum(found[View.AS_RUN], found[view]) - found[view]
        made[f"time.{view.value}"] = values
        if over is not None:
            cells = np.flatnonzero(over[_VIEWS[view]] > 0)
            made[f"over.{view.value}.cell"] = cells.astype(np.uint32)
            made[f"over.{view.value}"] = _steps(over[_VIEWS[view]][cells], one, view)
    return made


def _excess(one: AllocatorFigures, view: View) -> np.ndarray:
    """The share of each frame's allocator time that is over budget, [repeat, frame]."""
    assert one.frames is not None
    times = one.frames.of(view)
    if times is None:
        return np.zeros_like(one.frames.as_run_ns)
    budget = OVER * 1e9 / one.frames.cut.rate_hz
    return np.maximum(0.0, 1 - budget / np.maximum(times, 1.0))


def _steps(ticks: np.ndarray, one: AllocatorFigures, view: View) -> np.ndarray:
    repeats = 1 if view is View.INHERENT else len(one.runs.runs)
    return np.round(np.log2(ticks / (one.runs.ticks_per_ns * repeats) + 1.0) * SUM_STEPS).astype(np.uint16)


def _pack(tree: Tree, cells: dict[str, np.ndarray], start: np.ndarray, leaves: np.ndarray) -> str:
    """`end` marks the nodes that a stack ends in."""
    end = np.zeros(len(tree.parent), np.uint8)
    end[tree.site[leaves]] = end[tree.exact[leaves]] = 1
    end[np.flatnonzero(start)] = 1
    texts: dict[str, int] = {}
    numbers = [
        (texts.setdefault(one.function, len(texts)), texts.setdefault(one.file, len(texts)), one.line,
         texts.setdefault(one.module, len(texts)))
        for one in tree.labels
    ]  # fmt: skip
    label = np.array(numbers, np.uint32).reshape(len(numbers), 4)
    columns = {
        "parent": tree.parent + np.uint32(1),  # NONE becomes 0
        "label": tree.label,
        "end": end,
        **{name: label[:, place] for place, name in enumerate(("function", "file", "line", "module"))},
        **cells,
    }
    _add_wide(columns, "start", start)
    return packed({"texts": list(texts)}, columns)


def _add_wide(columns: dict[str, np.ndarray], name: str, values: np.ndarray) -> None:
    """Whole numbers of more than 32 bits: the higher ones in a column of their own, where there are any."""
    whole = np.round(values).astype(np.uint64)
    columns[name] = (whole & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    if (high := (whole >> np.uint64(32)).astype(np.uint32)).any():
        columns[f"{name}.high"] = high
