"""The call stacks of a section for the page: a tree of functions, and what each stack did in short stretches of time.

A cell is one stack in one stretch. Cells of mallocs, of frees (by the stack that freed) and of deaths (by the stack
that allocated) are the same for all allocators; each allocator has its times of them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blockyard.advise.document import Advice
from blockyard.analysis import passes, samples, stack_tree, tiles, timeline
from blockyard.analysis.figures import SLOWEST, VIEWS, AllocatorFigures, bad_rows, open_rows
from blockyard.analysis.frames import SHARES_OVER, FrameCut
from blockyard.analysis.latency import View
from blockyard.analysis.passes import ALL, FREE
from blockyard.analysis.sections import Section
from blockyard.analysis.sites import NONE, Sites
from blockyard.analysis.stack_cells import Cells, Stacked
from blockyard.analysis.stack_tree import Tree
from blockyard.report.page import changes
from blockyard.report.page.pack import packed

MISSING = "No call stacks: record the program with blockyard record, without --no-stacks, and replay the new journal."
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
    found: Sites | None,
    members: Sequence[AllocatorFigures],
    end_ns: float,
    room: int,
    jobs: int,
    skip: str | None = None,
    advised: Advice | None = None,
) -> Stacks | None:
    """In at most `room` bytes, compressed, unless there is little of it. None where the journal has no stacks.
    Functions that match `skip` do not stand for a stack; `advised` is advice about this journal."""
    if found is None or not members:
        return None
    seen = _Seen(section, found, end_ns)
    change = seen.changes(changes.of_events(advised)) if advised else None
    slow, slow_ns = _slow(found, seen, members)
    weights = np.stack([*seen.weights(found), slow_ns])
    grown = stack_tree.Grown(found, weights, slow, skip)
    for most, least in _TREES:
        tree = grown.cut(most, _MOST_SINGLES)
        cells = _Cells(seen, tree)
        parts = {} if change is None else _parts(seen, tree, change)
        names, table = _functions(tree)
        table |= parts
        taken = len(packed(names, table)) * 3 // 4  # names may be long
        if columns := cells.fitting(room - taken, len(members), least):
            break
    shared, group, groups = cells.columns()
    frame = _frame_of_rows(members[0], seen)
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        times = list(pool.map(lambda one: _times(one, group, groups, frame), members))
    start = seen.alive_at_start(found, tree)
    pack = packed(names, table | _ends(tree, start, seen.used, slow) | shared)
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
    """The journal's events at the times of the reference run."""

    def __init__(self, section: Section, found: Sites, end_ns: float) -> None:
        run = timeline.reference(section)
        rows = samples.rows(run.folder / "samples.npy")
        self.event = np.ascontiguousarray(rows["event"])
        self.thread = rows["thread"]
        self.pair = section.pairs()
        try:
            self.stacked = Stacked(rows, found, self.pair, end_ns, tiles.COLUMNS)
        except passes.BadRows as error:
            raise bad_rows([run], error) from None
        self.leaf = self.stacked.node
        self.used = np.flatnonzero(self.stacked.calls + self.stacked.frees)

    @cached_property
    def free(self) -> np.ndarray:
        return self.stacked.rows["kind"] == FREE

    def changes(self, of_events: np.ndarray) -> np.ndarray:
        """Of each event the change that its block belongs to: a free has that of its allocation."""
        pair = np.zeros(0, np.uint32) if self.pair is None else self.pair
        source = self.event.copy()
        known = self.free & (source < len(pair))
        source[known] = pair[source[known]]
        inside = (source < len(of_events)) & ~(self.free & ~known)
        found = np.zeros(len(source), np.uint8)
        found[inside] = of_events[source[inside]]
        return found

    def weights(self, found: Sites) -> list[np.ndarray]:
        """The figures that a node has to have much of to be shown."""
        by_node, nothing = self.stacked, np.zeros(1)
        held = (np.append(of, nothing) for of in (found.peak_bytes, found.end_bytes))
        return [by_node.calls, by_node.bytes, by_node.frees, *held]

    def alive_at_start(self, found: Sites, tree: Tree) -> np.ndarray:
        """Bytes by node of the tree: those alive at the end less what came and went."""
        bytes_of = np.append(found.end_bytes, 0).astype(np.float64) - self.stacked.bytes + self.stacked.died_bytes
        there = np.flatnonzero(bytes_of > 0)
        there = there[tree.site[there] != NONE]
        return np.bincount(tree.site[there], bytes_of[there], len(tree.parent))


class _Cells:
    """What each node that has figures did, by column."""

    def __init__(self, seen: _Seen, tree: Tree) -> None:
        site = tree.site[seen.used]
        counted = np.zeros(len(tree.parent), bool)
        counted[site] = True
        self._nodes = np.flatnonzero(counted)
        place = np.zeros(len(tree.site), np.uint32)  # of nodes that are not used anything
        place[seen.used] = (np.cumsum(counted) - 1)[site]
        self._cells = Cells(seen.stacked, place, len(self._nodes))

    def fitting(self, room: int, allocators: int, least: int) -> int | None:
        """Cuts time into as many columns, `least` or more, as fit into `room`, and returns how many."""
        while _size(*self._cells.counts(), allocators) > room:
            if self._cells.columns // 2 < least:
                return None
            self._cells.join()
        return self._cells.columns

    def columns(self) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
        """For the pack; and of each row the number of its cell, mallocs' before frees', and how many there are."""
        made: dict[str, np.ndarray] = {}
        kinds, group = self._cells.copy()
        for kind, cells in kinds.items():
            node = self._nodes[cells.place]
            first = np.zeros(len(node), bool)
            first[(np.cumsum(cells.occupied) - cells.occupied)[cells.occupied > 0]] = True
            made[f"{kind}.occupied"] = cells.occupied
            made[f"{kind}.gap"] = np.where(first, node, np.diff(node, prepend=0)).astype(np.uint32)
            _add_wide(made, f"{kind}.bytes", cells.bytes)
            if kind != "died":
                made[f"{kind}.calls"] = cells.calls
        return made, group, len(kinds["malloc"].place) + len(kinds["free"].place)


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
        total += np.bincount(seen.leaf[slow["row"]], slow["ticks"] / one.runs.ticks_per_ns, len(total))
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
    found = {view: _steps(sums[VIEWS[view]], one, view) for view in known}
    for view in known:
        values = found[view] if view is View.AS_RUN else np.maximum(found[View.AS_RUN], found[view]) - found[view]
        made[f"time.{view.value}"] = values
        if over is not None:
            cells = np.flatnonzero(over[VIEWS[view]] > 0)
            made[f"over.{view.value}.cell"] = cells.astype(np.uint32)
            made[f"over.{view.value}"] = _steps(over[VIEWS[view]][cells], one, view)
    return made


def _excess(one: AllocatorFigures, view: View) -> np.ndarray:
    """The share of each frame's allocator time that is over budget, [repeat, frame]."""
    assert one.frames is not None
    timed = one.frames.timed or one.frames  # what is weighed are timed calls
    times = timed.of(view)
    if times is None:
        return np.zeros_like(timed.as_run_ns)
    budget = OVER * 1e9 / one.frames.cut.rate_hz
    return np.maximum(0.0, 1 - budget / np.maximum(times, 1.0))


def _steps(ticks: np.ndarray, one: AllocatorFigures, view: View) -> np.ndarray:
    repeats = 1 if view is View.INHERENT else len(one.runs.runs)
    return np.round(np.log2(ticks / (one.runs.ticks_per_ns * repeats) + 1.0) * SUM_STEPS).astype(np.uint16)


def _functions(tree: Tree) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """For the pack: names, and what has them."""
    texts: dict[str, int] = {}
    numbers = [
        (texts.setdefault(one.function, len(texts)), texts.setdefault(one.file, len(texts)), one.line,
         texts.setdefault(one.module, len(texts)))
        for one in tree.labels
    ]  # fmt: skip
    label = np.array(numbers, np.uint32).reshape(len(numbers), 4)
    return {"texts": list(texts)}, {
        "parent": tree.parent + np.uint32(1),  # NONE becomes 0
        "label": tree.label,
        **{name: label[:, place] for place, name in enumerate(("function", "file", "line", "module"))},
    }


def _ends(tree: Tree, start: np.ndarray, *leaves: np.ndarray) -> dict[str, np.ndarray]:
    """`end` marks the nodes that a stack ends in, `start` has the bytes alive at the start."""
    end = np.zeros(len(tree.parent), np.uint8)
    for nodes in leaves:
        end[tree.site[nodes]] = end[tree.exact[nodes]] = 1
    end[np.flatnonzero(start)] = 1
    made = {"end": end}
    _add_wide(made, "start", start)
    return made


def _add_wide(columns: dict[str, np.ndarray], name: str, values: np.ndarray) -> None:
    """Whole numbers of more than 32 bits: the higher ones in a column of their own, where there are any."""
    whole = np.round(values).astype(np.uint64)
    columns[name] = (whole & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    if (high := (whole >> np.uint64(32)).astype(np.uint32)).any():
        columns[f"{name}.high"] = high
