"""The native passes over sample rows, held against the same sums done by numpy."""

import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from synthetic import FREE, REALLOC, latencies, lifelike, rows

from blockyard.analysis import passes, samples_library
from blockyard.analysis.distribution import SATURATED

ROOT = Path(__file__).resolve().parents[2]
FLOORS = (10, 4)
CLASS_EDGES = (64, 1 << 10, 1 << 15, 1 << 20)


def repeats(count: int, events: int = 20_000) -> list[passes.Rows]:
    base, _ = lifelike(events)
    return [passes.Rows(latencies(base, 1.0, 3.0, 1000 + repeat), *FLOORS) for repeat in range(count)]


def expanded(found: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    ticks, counts = found
    return np.repeat(ticks, counts.astype(np.int64))


def net(raw: np.ndarray, floor: int) -> np.ndarray:
    return np.maximum(raw.astype(np.int64) - floor, 0)


def parts(run: passes.Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    call = net(run.rows["call"], FLOORS[0])
    touch = np.where(run.rows["touch"] > 0, net(run.rows["touch"], FLOORS[1]), 0)
    return call, touch, call + touch


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "metric, kinds, part",
    [
        (passes.MALLOC_CALL, (0, 1, 2), 0),
        (passes.MALLOC_TOUCH, (0, 1, 2), 1),
        (passes.MALLOC_BOTH, (0, 1, 2), 2),
        (passes.REALLOC_CALL, (REALLOC,), 0),
        (passes.REALLOC_BOTH, (REALLOC,), 2),
        (passes.FREE_CALL, (FREE,), 0),
    ],
)
def test_distributions_hold_every_latency_of_their_metric_and_size_class(
    threads: int, metric: int, kinds: tuple[int, ...], part: int
) -> None:
    runs = repeats(3)
    found = passes.Digest(runs, threads)
    first = runs[0].rows
    classes = np.searchsorted(CLASS_EDGES, first["size"])
    picked = np.isin(first["kind"], kinds) & ((first["touch"] > 0) | (part != 1))
    for klass in range(5):
        here = picked & (classes == klass)
        each = [parts(run)[part][here] for run in runs]
        for view, expected in ((passes.AS_RUN, np.concatenate(each)), (passes.INHERENT, np.minimum.reduce(each))):
            assert np.array_equal(expanded(found.distribution(view, [metric], [klass])), np.sort(expected))
        for repeat, expected in enumerate(each):
            alone = found.distribution(passes.AS_RUN, [metric], [klass], repeat)
            assert np.array_equal(expanded(alone), np.sort(expected))


@pytest.mark.parametrize("most", [0, 100, 70_000, 1 << 31])  # few and many different ones
def test_latencies_beyond_the_tables_are_counted_exactly(most: int) -> None:
    made = np.zeros(200_000, passes.ROW)
    made["event"] = np.arange(len(made))
    made["call"] = 20_000_000 + np.random.default_rng(7).integers(0, most + 1, len(made))
    found = passes.Digest([passes.Rows(made, 0, 0)], 3)
    assert np.array_equal(expanded(found.distribution(passes.AS_RUN, [passes.MALLOC_CALL])), np.sort(made["call"]))


@pytest.mark.parametrize(
    "size, klass",
    [
        (0, 0),
        (64, 0),
        (65, 1),
        (1024, 1),
        (1025, 2),
        (32768, 2),
        (32769, 3),
        (1 << 20, 3),
        ((1 << 20) + 1, 4),
        (2**64 - 1, 4),
    ],
)
def test_a_size_belongs_to_the_class_that_ends_at_or_above_it(size: int, klass: int) -> None:
    found = passes.Digest([passes.Rows(rows([(0, 0, size, 0, 20, 0)]), *FLOORS)], 1)
    classes = [len(found.distribution(passes.AS_RUN, [passes.MALLOC_CALL], [other])[0]) for other in range(5)]
    assert classes.index(1) == klass


def test_a_latency_below_the_floor_is_nothing_and_never_negative() -> None:
    found = passes.Digest([passes.Rows(rows([(0, 0, 8, 0, 3, 2)]), *FLOORS)], 1)
    assert found.distribution(passes.AS_RUN, [passes.MALLOC_BOTH], [0])[0].tolist() == [0]


def test_a_saturated_call_stays_saturated_whatever_is_taken_off_or_added() -> None:
    found = passes.Digest([passes.Rows(rows([(0, 0, 8, 0, SATURATED, 50)]), *FLOORS, scale=1.001)], 1)
    assert found.distribution(passes.AS_RUN, [passes.MALLOC_CALL], [0])[0].tolist() == [SATURATED]
    assert found.distribution(passes.AS_RUN, [passes.MALLOC_BOTH], [0])[0].tolist() == [SATURATED]


def test_a_sum_too_large_for_its_field_saturates() -> None:
    found = passes.Digest([passes.Rows(rows([(0, 0, 8, 0, SATURATED - 5, SATURATED - 5)]), 0, 0)], 1)
    assert found.distribution(passes.AS_RUN, [passes.MALLOC_BOTH], [0])[0].tolist() == [SATURATED]


def test_the_inherent_sum_is_one_that_occurred() -> None:
    runs = [passes.Rows(rows([(0, 0, 8, 0, call, touch)]), 0, 0) for call, touch in ((10, 90), (70, 20))]
    found = passes.Digest(runs, 1)
    assert [found.distribution(passes.INHERENT, [metric], [0])[0].tolist() for metric in range(3)] == [[10], [20], [90]]


def test_ticks_of_a_run_with_another_calibration_are_converted() -> None:
    found = passes.Digest([passes.Rows(rows([(0, 0, 8, 0, 1010, 0)]), 10, 0, scale=1.5)], 1)
    assert found.distribution(passes.AS_RUN, [passes.MALLOC_CALL], [0])[0].tolist() == [1500]


@pytest.mark.parametrize(
    "field, value, sentence", [("kind", 9, "unknown kind in row 7000"), ("event", 3, "do not rise at row 7000")]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_no_replay_writes_are_refused(field: str, value: int, sentence: str, threads: int) -> None:
    runs = repeats(1)
    runs[0].rows[field][7000] = value
    with pytest.raises(passes.BadRows, match=sentence):
        passes.Digest(runs, threads)


@pytest.mark.parametrize("field", ["event", "kind", "size"])
def test_a_repeat_with_another_event_is_refused_by_name(field: str) -> None:
    runs = repeats(3)
    runs[2].rows[field][15_000] += 1
    with pytest.raises(passes.BadRows, match="another event in row 15000 than the first repeat") as caught:
        passes.Digest(runs, 2)
    assert caught.value.run == 2


def test_repeats_of_different_lengths_are_refused() -> None:
    runs = repeats(2)
    short = [runs[0], passes.Rows(runs[1].rows[:-1], *FLOORS)]
    with pytest.raises(passes.BadRows, match="as many rows") as caught:
        passes.Digest(short, 1)
    assert caught.value.run == 1


def frame(**changed: object) -> passes.Frame:
    return passes.Frame(
        **{
            "width": 100,
            "height": 40,
            "begin_ns": 0.0,
            "end_ns": 1000.0,
            "low_ticks": 1.0,
            "high_ticks": 1e4,
            "step_ticks": 1,
            "marks_from": (SATURATED,) * 6,
            **changed,
        }
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_every_event_within_the_times_is_binned_once(threads: int) -> None:
    runs = repeats(3)
    inside = [(run.rows["start"] < 5e9) & (run.rows["kind"] != FREE) for run in runs]
    planes = passes.bins(runs, frame(end_ns=5e9), threads)
    assert planes[passes.MALLOC_AS_RUN].counts.sum() == sum(map(np.count_nonzero, inside))
    assert planes[passes.MALLOC_INHERENT].counts.sum() == np.count_nonzero(inside[0])


def test_an_event_falls_into_the_cell_of_its_time_and_log_latency() -> None:
    found = passes.bins([passes.Rows(rows([(0, 0, 8, 255, 1000, 0), (1, FREE, 8, 999, 500, 0)]), 0, 0)], frame(), 1)
    assert np.argwhere(found[passes.MALLOC_AS_RUN].counts).tolist() == [[30, 25]]
    assert np.argwhere(found[passes.FREE_AS_RUN].counts).tolist() == [[26, 99]]


@pytest.mark.parametrize("ticks, lowest, highest", [(26, 11.1, 15.9), (0, 0, 11.1)])
def test_where_the_clock_steps_events_are_spread_over_the_step(ticks: int, lowest: float, highest: float) -> None:
    entries = [(event, 0, 8, 0, ticks, 0) for event in range(1000)]
    found = passes.bins([passes.Rows(rows(entries), 0, 0)], frame(step_ticks=26), 1)[passes.MALLOC_AS_RUN]
    filled = np.flatnonzero(found.counts[:, 0])
    assert found.counts.sum() == 1000
    assert filled.tolist() == list(range(int(lowest), int(highest) + 1))


@pytest.mark.parametrize("ticks, row", [(0, 0), (10**9, 39)])
def test_latencies_outside_the_frame_stand_at_its_edge(ticks: int, row: int) -> None:
    found = passes.bins([passes.Rows(rows([(0, 0, 8, 0, ticks, 0)]), 0, 0)], frame(), 1)
    assert np.argwhere(found[passes.MALLOC_AS_RUN].counts)[0][0] == row


def test_a_cell_knows_the_mean_logarithm_of_its_sizes() -> None:
    entries = [(0, 0, 16, 0, 1000, 0), (1, 0, 1024, 1, 1000, 0)]
    found = passes.bins([passes.Rows(rows(entries), 0, 0)], frame(), 1)[passes.MALLOC_AS_RUN]
    assert found.mean_log2_size[found.counts > 0].tolist() == [7.0]


def test_marks_are_the_events_at_or_above_their_threshold() -> None:
    entries = [(0, 0, 8, 1, 99, 0), (1, 0, 16, 2, 100, 0), (2, FREE, 16, 3, 500, 0), (3, 0, 32, 4, 101, 7)]
    found = passes.bins(
        [passes.Rows(rows(entries), 0, 0)], frame(marks_from=(100, SATURATED, 108, SATURATED, 100, SATURATED)), 2
    )
    assert found[passes.MALLOC_AS_RUN].marks.tolist() == [(2, 16, 100, 1, 0, 0), (4, 32, 108, 3, 0, 0)]
    assert found[passes.MALLOC_INHERENT].marks.tolist() == [(4, 32, 108, 3, 0, 0)]
    assert len(found[passes.FREE_AS_RUN].marks) == 0


OWN, PREEMPTED, MIGRATED, HOST = 1, 1 | 8, 1 | 32, 1 | 128


def with_causes(runs: list[passes.Rows]) -> list[passes.Rows]:
    """In each repeat some events preempted, migrated, paused by the host, and some their allocator's own doing. One in
    fifty is interrupted in every repeat."""
    for seed, run in enumerate(runs):
        random = np.random.default_rng(seed)
        run.rows["cause"] = random.choice(
            [0, OWN, PREEMPTED, MIGRATED, HOST, 1 | 16], len(run.rows), p=[0.9, 0.05, 0.02, 0.01, 0.01, 0.01]
        )
        run.rows["cause"][random.integers(0, 2) + 3 :: 50] = random.choice([PREEMPTED, MIGRATED, HOST])
        run.rows["cause"][7::50] = random.choice([PREEMPTED, MIGRATED, HOST])
    return runs


def interrupted(runs: list[passes.Rows]) -> np.ndarray:
    """[repeat, row]."""
    return np.stack([(run.rows["cause"] & (8 | 32 | 128)) != 0 for run in runs])


def every_time(runs: list[passes.Rows]) -> np.ndarray:
    """By row: with two repeats and more, what the machine interrupted in all of them."""
    return interrupted(runs).all(axis=0) & (len(runs) > 1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "metrics, kinds, part",
    [((passes.MALLOC_BOTH, passes.REALLOC_BOTH), (0, 1, 2, 4), 2), ((passes.FREE_CALL,), (FREE,), 0)],
)
def test_attributed_leaves_out_what_the_machine_interrupted_unless_it_did_every_time(
    threads: int, count: int, metrics: tuple[int, ...], kinds: tuple[int, ...], part: int
) -> None:
    runs = with_causes(repeats(count))
    # In two phases, which are one again when all are asked for.
    found = passes.Digest(runs, threads, phases=[(0, 0), (5000, 1)])
    picked = np.isin(runs[0].rows["kind"], kinds)
    returned = np.minimum.reduce([parts(run)[part] for run in runs])[picked & every_time(runs)]
    assert (len(returned) > 0) == (count > 1)
    kept = [
        np.concatenate([parts(run)[part][picked & ~struck], returned])
        for run, struck in zip(runs, interrupted(runs), strict=True)
    ]
    assert np.array_equal(expanded(found.distribution(passes.ATTRIBUTED, metrics)), np.sort(np.concatenate(kept)))
    for repeat, expected in enumerate(kept):
        alone = found.distribution(passes.ATTRIBUTED, metrics, run=repeat)
        assert np.array_equal(expanded(alone), np.sort(expected))


@pytest.mark.parametrize("slow", [9_000, 12_000_000])  # in a table, and above all tables
def test_an_event_that_is_interrupted_every_time_counts_with_its_least(slow: int) -> None:
    """A long call is nearly always interrupted: the allocator's own 5 ms, there in every repeat, stay its own."""

    def attributed(*causes: int) -> list[int]:
        runs = [
            passes.Rows(rows([(0, 0, 8, 0, 50, 0), (1, 0, 8, 1, slow + 100 * place, 0)]), 0, 0)
            for place in range(len(causes))
        ]
        for run, cause in zip(runs, causes, strict=True):
            run.rows["cause"][1] = cause
        found = passes.Digest(runs, 1)
        worst = {
            view: expanded(found.distribution(view, [passes.MALLOC_BOTH])).max()
            for view in (passes.ATTRIBUTED, passes.INHERENT)
        }
        assert len(runs) == 1 or worst[passes.ATTRIBUTED] >= worst[passes.INHERENT]
        return [ticks for ticks in expanded(found.distribution(passes.ATTRIBUTED, [passes.MALLOC_BOTH])) if ticks > 50]

    assert attributed(PREEMPTED, MIGRATED, HOST) == [slow] * 3
    assert attributed(PREEMPTED, OWN, HOST) == [slow + 100]
    assert attributed(PREEMPTED, 0, 0) == [slow + 100, slow + 200]
    assert attributed(PREEMPTED) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_every_event_that_was_looked_at_is_counted_by_its_cause(threads: int) -> None:
    runs = with_causes(repeats(2))
    found = passes.Digest(runs, threads)
    for operation, kinds in enumerate(((0, 1, 2), (REALLOC,), (FREE,))):
        for cause in (OWN, PREEMPTED, 1 | 16, 64):
            expected = [parts(run)[2][np.isin(run.rows["kind"], kinds) & (run.rows["cause"] == cause)] for run in runs]
            assert np.array_equal(expanded(found.by_cause(operation, cause)), np.sort(np.concatenate(expected)))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_slowest_events_come_once_each_with_their_slowest_repeat(threads: int) -> None:
    runs = repeats(3)
    both = np.stack([parts(run)[2] for run in runs])
    order = np.lexsort((np.arange(both.shape[1]), -both.max(axis=0)))[:50]
    found = passes.Digest(runs, threads, 50).slowest()
    assert found["row"].tolist() == order.tolist()
    assert found["ticks"].tolist() == both.max(axis=0)[order].tolist()
    assert found["run"].tolist() == both.argmax(axis=0)[order].tolist()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_attributed_plane_has_the_events_of_its_distribution(count: int) -> None:
    runs = with_causes(repeats(count))
    found = passes.bins(runs, frame(end_ns=21e9, marks_from=(1, 1, 1, 1, 1, 1)), 2)
    digest = passes.Digest(runs, 2)
    least, every = np.minimum.reduce([parts(run)[2] for run in runs]), every_time(runs)
    for plane, metrics in (
        (passes.MALLOC_ATTRIBUTED, (passes.MALLOC_BOTH, passes.REALLOC_BOTH)),
        (passes.FREE_ATTRIBUTED, (passes.FREE_CALL,)),
    ):
        expected = expanded(digest.distribution(passes.ATTRIBUTED, metrics))
        assert found[plane].counts.sum() == len(expected)
        marks = found[plane].marks
        assert np.array_equal(np.sort(marks["ticks"]), expected[expected >= 1])
        crossed = marks[(marks["cause"] & 168) != 0]
        assert every[crossed["event"]].all() and np.array_equal(crossed["ticks"], least[crossed["event"]])


def test_an_event_that_is_interrupted_every_time_stands_in_the_cell_of_its_least() -> None:
    runs = [passes.Rows(rows([(0, 0, 8, 255, ticks, 0)]), 0, 0) for ticks in (1000, 110, 500)]
    for run in runs:
        run.rows["cause"] = PREEMPTED
    found = passes.bins(runs, frame(), 1)[passes.MALLOC_ATTRIBUTED]
    assert np.argwhere(found.counts).tolist() == [[20, 25]] and found.counts.sum() == 3
    assert found.mean_log2_size[20, 25] == 3 and found.mean_log2_size.sum() == 3


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("count", [1, 3])
def test_frames_hold_the_time_of_their_own_events_on_their_own_thread(threads: int, count: int) -> None:
    runs = with_causes(repeats(count))
    first = runs[0].rows
    cuts = [
        (np.array([100, 5000, 5000, 17_000]), 1),
        (np.arange(0, 20_001, 7), passes.ALL),
        (np.array([3]), passes.ALL),
    ]
    for (edges, thread), found in zip(cuts, passes.frame_times(runs, cuts, threads), strict=True):
        frame = np.searchsorted(edges, first["event"], side="right") - 1
        inside = (frame >= 0) & (frame < len(edges) - 1)
        inside &= (thread == passes.ALL) | (first["thread"] == thread)

        def total(
            ticks: np.ndarray, inside: np.ndarray = inside, frame: np.ndarray = frame, frames: int = len(edges) - 1
        ) -> np.ndarray:
            return np.bincount(frame[inside], ticks[inside], frames).astype(np.uint64)

        each = [parts(run)[2] for run in runs]
        assert np.array_equal(found.events, total(np.ones(len(first))))
        assert np.array_equal(found.inherent, total(np.minimum.reduce(each)))
        for repeat, (run, ticks) in enumerate(zip(runs, each, strict=True)):
            assert np.array_equal(found.as_run[repeat], total(ticks))
            own = np.where(run.rows["cause"] & (8 | 32 | 128), 0, ticks)
            assert len(runs) == 1 or every_time(runs).any()
            own = np.where(every_time(runs), np.minimum.reduce(each), own)
            assert np.array_equal(found.attributed[repeat], total(own))


@pytest.mark.parametrize("count", [1, 3])
def test_groups_hold_the_time_of_their_own_events_and_weigh_it_by_frame(count: int) -> None:
    runs = with_causes(repeats(count))
    rows = len(runs[0].rows)
    random = np.random.default_rng(1)
    group = random.integers(0, 50, rows).astype(np.uint32)
    group[random.random(rows) < 0.1] = passes.ALL
    frame = (np.arange(rows) // 100).astype(np.uint32)
    frame[random.random(rows) < 0.2] = passes.ALL
    frames = rows // 100 + 1
    weights = passes.Weights(
        frame, random.random((count, frames)), random.random(frames), random.random((count, frames))
    )
    sums, weighted = passes.group_times(runs, group, 50, weights)

    each = [parts(run)[2].astype(float) for run in runs]
    least = np.minimum.reduce(each)
    own = [np.where(run.rows["cause"] & (8 | 32 | 128), 0, ticks) for run, ticks in zip(runs, each, strict=True)]
    own = [np.where(every_time(runs), least, ticks) for ticks in own] if count > 1 else own
    for view, of_view, ticks in (
        (passes.AS_RUN, weights.as_run, each),
        (passes.INHERENT, weights.inherent[None, :], [least]),
        (passes.ATTRIBUTED, weights.attributed, own),
    ):
        there, framed = group != passes.ALL, (group != passes.ALL) & (frame != passes.ALL)
        assert np.allclose(sums[view], sum(np.bincount(group[there], one[there], 50) for one in ticks))
        parts_of = [
            np.bincount(group[framed], one[framed] * weight[frame[framed]], 50)
            for one, weight in zip(ticks, of_view, strict=True)
        ]
        assert np.allclose(weighted[view], sum(parts_of))


def test_the_number_of_the_interface_goes_up_with_it() -> None:
    """A library that was not built anew is told by this number alone. Who changes samples.h, or what a call of it
    returns, raises both numbers, then writes the new pair here."""
    header = (ROOT / "lab" / "src" / "samples" / "samples.h").read_text()
    declarations = " ".join(re.sub(r"//.*", "", header).split())
    assert f"BY_SAMPLES_ABI {samples_library.ABI}u" in declarations
    assert (samples_library.ABI, zlib.crc32(declarations.encode())) == (7, 1894075840)
