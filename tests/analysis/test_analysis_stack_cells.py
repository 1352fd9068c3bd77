"""Call stacks in short stretches of time: each event is in the cell of its stack and time, and nothing else is."""

from types import SimpleNamespace

import numpy as np
import pytest

from blockyard.analysis.passes import FREE, ROW, BadRows
from blockyard.analysis.samples import NO_EVENT
from blockyard.analysis.sites import NONE
from blockyard.analysis.stack_cells import KINDS, Cells, Stacked

EVENTS, NODES, COLUMNS, END_NS, PLACES = 5000, 300, 256, 1e6, 90


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Event numbers have gaps, as frame marks are no rows; some events started before the one in front of them."""
    random = np.random.default_rng(5)
    made = np.zeros(EVENTS, ROW)
    made["event"] = np.cumsum(random.integers(1, 4, EVENTS))
    made["kind"] = random.choice([0, 1, 2, FREE, 4], EVENTS)
    made["size"] = random.integers(0, 1 << 40, EVENTS)
    made["start"] = np.clip(np.linspace(0, 1.01 * END_NS, EVENTS) + random.integers(-900, 900, EVENTS), 0, None)
    return made


@pytest.fixture(scope="module")
def pair(rows: np.ndarray) -> np.ndarray:
    """Ends that are later rows, that are no rows, and none; the last events are not in it."""
    random = np.random.default_rng(6)
    made = np.full(int(rows["event"][-100]), NO_EVENT, np.uint32)
    made[rows["event"][:2000]] = rows["event"][random.integers(2000, EVENTS, 2000)]
    made[rows["event"][2000:2500]] += np.uint32(1) + rows["event"][2000:2500]
    return made


@pytest.fixture(scope="module")
def found(rows: np.ndarray) -> SimpleNamespace:
    nodes = np.random.default_rng(7).integers(0, NODES, rows["event"][-1] + 1).astype(np.uint32)
    nodes[::11] = NONE
    return SimpleNamespace(by_event=nodes, parent=np.zeros(NODES, np.uint32))


def expected(
    rows: np.ndarray, pair: np.ndarray, found: SimpleNamespace
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """By row the node, the column and the column of the block's end (-1: unknown); by kind the rows that are of it."""
    node = [min(int(found.by_event[e]), NODES) for e in rows["event"]]
    column = np.minimum(rows["start"] * (COLUMNS / END_NS), COLUMNS - 1).astype(int)
    column_of = dict(zip(rows["event"].tolist(), column.tolist(), strict=True))
    free = rows["kind"] == FREE
    died = np.array(
        [
            -1 if freed or event >= len(pair) else column_of.get(int(pair[event]), -1)
            for event, freed in zip(rows["event"].tolist(), free, strict=True)
        ]
    )
    return np.array(node), column, died, {"malloc": ~free, "free": free, "died": died >= 0}


def test_sums_by_node_are_those_of_its_rows(rows: np.ndarray, pair: np.ndarray, found: SimpleNamespace) -> None:
    node, _, _, chosen = expected(rows, pair, found)
    stacked = Stacked(rows, found, pair, END_NS, COLUMNS)
    assert np.array_equal(stacked.node, node)
    assert 0 < chosen["died"].sum() < 2500
    for name, sums, weight in (
        ("malloc", stacked.calls, np.ones(EVENTS)),
        ("malloc", stacked.bytes, rows["size"]),
        ("free", stacked.frees, np.ones(EVENTS)),
        ("died", stacked.died_bytes, rows["size"]),
    ):
        assert np.array_equal(sums, np.bincount(node[chosen[name]], weight[chosen[name]], NODES + 1)), name


@pytest.mark.parametrize("joins", [0, 3])
def test_each_row_is_in_the_cell_of_its_place_and_time(
    rows: np.ndarray, pair: np.ndarray, found: SimpleNamespace, joins: int
) -> None:
    node, column, died, chosen = expected(rows, pair, found)
    place_of = np.random.default_rng(8).integers(0, PLACES, NODES + 1)
    stacked = Stacked(rows, found, pair, END_NS, COLUMNS)
    cells = Cells(stacked, place_of, PLACES)
    for _ in range(joins):
        cells.join()
    assert cells.columns == COLUMNS >> joins
    counts, (kinds, group) = cells.counts(), cells.copy()
    first = 0
    for kind, count in zip(KINDS, counts, strict=True):
        mine = chosen[kind]
        keys = ((died if kind == "died" else column)[mine] >> joins) * PLACES + place_of[node[mine]]
        distinct, cell = np.unique(keys, return_inverse=True)
        assert len(distinct) == count
        assert np.array_equal(kinds[kind].occupied, np.bincount(distinct // PLACES, minlength=cells.columns))
        assert np.array_equal(kinds[kind].place, distinct % PLACES)
        assert np.array_equal(kinds[kind].calls, np.bincount(cell))
        assert np.array_equal(kinds[kind].bytes, np.bincount(cell, rows["size"][mine]).astype(np.uint64))
        if kind != "died":
            assert np.array_equal(group[mine], cell + first)
            first += count


def test_event_numbers_that_do_not_rise_are_refused(rows: np.ndarray, found: SimpleNamespace) -> None:
    damaged = rows.copy()
    damaged["event"][70] = 1 << 24
    with pytest.raises(BadRows, match="do not rise at row 71"):
        Stacked(damaged, found, None, END_NS, COLUMNS)


def test_an_event_that_the_journal_does_not_have_is_refused_before_memory_is_asked_for_it(
    rows: np.ndarray, found: SimpleNamespace
) -> None:
    damaged = rows.copy()
    damaged["event"][-1] = 0xFFFFFFF0
    with pytest.raises(BadRows, match="has event 4,294,967,280, while the journal has"):
        Stacked(damaged, found, None, END_NS, COLUMNS)


def test_an_odd_number_of_columns_is_not_joined(rows: np.ndarray, found: SimpleNamespace) -> None:
    cells = Cells(Stacked(rows, found, None, END_NS, 15), np.zeros(NODES + 1), PLACES)
    with pytest.raises(ValueError, match="odd number of columns"):
        cells.join()


def test_a_campaign_without_pairs_or_rows_has_no_ends(rows: np.ndarray, found: SimpleNamespace) -> None:
    assert not Stacked(rows, found, None, END_NS, COLUMNS).died_bytes.any()
    none = Cells(Stacked(rows[:0], found, None, END_NS, COLUMNS), np.zeros(NODES + 1), PLACES)
    assert none.counts() == [0, 0, 0]
    assert len(none.copy()[1]) == 0
