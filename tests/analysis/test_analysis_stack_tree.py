"""The tree of functions that a page shows: what it joins, and that nothing is lost."""

from types import SimpleNamespace

import numpy as np

from blockyard.analysis import stack_tree
from blockyard.analysis.sites import LABEL, NONE

TEXTS = ["", "main", "update", "spawn", "make_unique", "operator new", "a.cpp", "game", "draw"]
MAIN, UPDATE, SPAWN, MAKE, NEW, FILE, GAME, DRAW = range(1, 9)


def stacks(frames: list[list[tuple[int, int]]], nodes: list[tuple[int, int]], speakers: list[int]) -> SimpleNamespace:
    """`frames`: (function, line) of each, innermost first. `nodes`: (parent, frame). `speakers`: a label each."""
    labels = [label for frame in frames for label in frame]
    table = np.zeros(len(labels), LABEL)
    for place, (function, line) in enumerate(labels):
        table[place] = (function, FILE, line, GAME)
    return SimpleNamespace(
        parent=np.array([NONE if parent < 0 else parent for parent, _ in nodes], np.uint32),
        frame=np.array([frame for _, frame in nodes], np.uint32),
        first_label=np.cumsum([0, *map(len, frames)]).astype(np.uint32),
        label=table,
        speakers=lambda _skip: np.array(speakers, np.uint32),
        texts=TEXTS,
    )


def path(tree: stack_tree.Tree, node: int) -> list[str]:
    """Outermost first."""
    found = []
    while node != NONE:
        found.insert(0, tree.labels[tree.label[node]].function)
        node = int(tree.parent[node])
    return found


def weights(*by_node: float) -> np.ndarray:
    """One figure; the last is of events without a stack."""
    return np.array([by_node], float)


def test_a_stack_ends_in_the_function_that_speaks_for_it_and_has_its_inlined_ones() -> None:
    # main calls update, into which spawn and make_unique were inlined; make_unique calls operator new.
    found = stacks(
        [[(MAIN, 1)], [(MAKE, 9), (SPAWN, 5), (UPDATE, 2)], [(NEW, 0)]], [(-1, 0), (0, 1), (1, 2)], [0, 2, 2]
    )
    tree = stack_tree.Grown(found, weights(0, 0, 7, 0), np.zeros(0, np.int64)).cut(100, 0)
    assert path(tree, int(tree.site[2])) == ["main", "update", "spawn"]


def test_frames_of_one_function_and_line_are_one_node() -> None:
    found = stacks([[(MAIN, 1)], [(SPAWN, 5)], [(SPAWN, 5)], [(SPAWN, 6)]], [(-1, 0), (0, 1), (0, 2), (0, 3)], range(4))
    tree = stack_tree.Grown(found, weights(0, 1, 1, 1, 0), np.zeros(0, np.int64)).cut(100, 0)
    assert tree.site[1] == tree.site[2] != tree.site[3]
    assert len(tree.parent) == 3


def test_what_is_small_is_joined_below_its_caller_and_counted_there() -> None:
    found = stacks([[(MAIN, 1)], [(UPDATE, 1)], [(SPAWN, 1)], [(DRAW, 1)]], [(-1, 0), (0, 1), (1, 2), (1, 3)], range(4))
    by_node = weights(0, 0, 990, 10, 0)
    tree = stack_tree.Grown(found, by_node, np.zeros(0, np.int64)).cut(3, 0)
    assert path(tree, int(tree.site[2])) == ["main", "update", "spawn"]
    assert path(tree, int(tree.site[3])) == ["main", "update", stack_tree.OTHERS]
    assert np.array_equal(tree.site, tree.exact)
    sums = np.bincount(tree.site, by_node[0], len(tree.parent))
    assert sums.sum() == by_node.sum()
    assert (tree.parent[tree.parent != NONE] < np.flatnonzero(tree.parent != NONE)).all()


def test_a_slow_event_keeps_its_whole_stack_though_its_site_is_small() -> None:
    found = stacks([[(MAIN, 1)], [(UPDATE, 1)], [(SPAWN, 1)], [(DRAW, 1)]], [(-1, 0), (0, 1), (1, 2), (1, 3)], range(4))
    for room, last in ((1, "draw"), (0, stack_tree.OTHERS)):
        tree = stack_tree.Grown(found, weights(0, 0, 990, 10, 0), np.array([3])).cut(3, room)
        assert path(tree, int(tree.exact[3])) == ["main", "update", last]
        assert path(tree, int(tree.site[3])) == ["main", "update", stack_tree.OTHERS]


def test_what_has_most_of_any_figure_is_shown() -> None:
    found = stacks([[(MAIN, 1)], [(UPDATE, 1)], [(SPAWN, 1)], [(DRAW, 1)]], [(-1, 0), (0, 1), (0, 2), (0, 3)], range(4))
    calls, peak = [0, 100, 1, 50, 0], [0, 1, 100, 0, 0]
    tree = stack_tree.Grown(found, np.array([calls, peak], float), np.zeros(0, np.int64)).cut(3, 0)
    shown = {path(tree, int(tree.site[node]))[-1] for node in (1, 2, 3)}
    assert shown == {"update", "spawn", stack_tree.OTHERS}


def test_events_without_a_stack_have_a_node_of_their_own() -> None:
    found = stacks([[(MAIN, 1)]], [(-1, 0)], [0])
    tree = stack_tree.Grown(found, weights(5, 5), np.zeros(0, np.int64)).cut(10, 0)
    assert path(tree, int(tree.site[1])) == ["(no call stack)"]


def test_labels_that_differ_in_their_last_member_alone_are_two_nodes() -> None:
    found = stacks([[(MAIN, 1)], [(SPAWN, 1 << 30)], [(SPAWN, 1 << 30)]], [(-1, 0), (0, 1), (0, 2)], range(3))
    found.label["module"][2] = GAME + 1
    tree = stack_tree.Grown(found, weights(0, 1, 1, 0), np.zeros(0, np.int64)).cut(100, 0)
    assert tree.site[1] != tree.site[2]
