"""Frames, audio buffers and phases of campaigns whose every event is known."""

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from synthetic import FREE, MALLOC, REALLOC, Campaign, lifelike, rows

from blockyard.analysis import cuts, figures, frames, sections, timeline, worst_frames
from blockyard.analysis.cuts import Cuts
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import FrameCut, NoFrames
from blockyard.analysis.latency import Operation, View
from blockyard.analysis.passes import ALL
from blockyard.errors import UserError
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

MS = 1_000_000
FRAME = 10 * MS


def game(campaign: Campaign, name: str, repeat: int = 1, seconds: int = 1, slow: dict[int, int] | None = None) -> None:
    """A malloc of 1 us (2000 ticks) and a free of 0.5 us in each 10 ms on thread 0, ten of 5 us on thread 1.

    `slow`: the malloc of that frame takes so many ns.
    """
    entries, threads = [], []
    for frame in range(100 * seconds):
        at, first = frame * FRAME, frame * 20
        ns = (slow or {}).get(frame, 1000)
        entries += [(first, MALLOC, 100, at + MS, 10 + 2 * ns, 0), (first + 1, FREE, 100, at + 2 * MS, 10 + 1000, 0)]
        entries += [(first + 2 + i, MALLOC, 64, at + 3 * MS + i, 10 + 10_000, 0) for i in range(10)]
        threads += [0, 0] + [1] * 10
    made = rows(entries)
    made["thread"] = threads
    campaign.run(name, made, repeat)


def cut(campaign: Campaign, **how: object) -> Cuts:
    return cuts.of(sections.read(campaign.directory).sections[0], **how)


def measured(campaign: Campaign, **how: object) -> AllocatorFigures:
    section = sections.read(campaign.directory).sections[0]
    return figures.measure(section.measured[0], cuts.of(section, **how))


@pytest.fixture
def marked(tmp_path: Path) -> Campaign:
    """100 frames of 10 ms whose ends thread 0 marks; event 20 k + 19 is the mark of frame k."""
    campaign = Campaign(tmp_path / "r", ["one"], repeats=2)
    campaign.journal_facts(thread_names=["main", "audio"], threads=2)
    for repeat in (1, 2):
        game(campaign, "one", repeat, slow={40: 3 * MS if repeat == 2 else 1000})
    marks = range(100)
    campaign.events(np.zeros(0), [(frame + 1) * FRAME for frame in marks], frame_events=[20 * k + 19 for k in marks])
    return campaign


def test_frames_go_from_mark_to_mark_of_the_thread_that_marks_them(marked: Campaign) -> None:
    found = measured(marked)
    assert found.frames.events.tolist() == [2] * 99  # what came before the first mark is no whole frame
    assert found.frames.as_run_ns[0].tolist() == [1500.0] * 99
    assert found.frames.as_run_ns[1][39] == 3 * MS + 500
    assert found.frames.inherent_ns.tolist() == [1500.0] * 99
    assert found.cuts.frames.words == "frames as marked by thread main, judged on thread main"
    assert found.cuts.frames.starts_ns[39] == 40 * FRAME


def test_another_thread_can_be_judged_and_is_never_summed_with_the_first(marked: Campaign) -> None:
    found = measured(marked, thread="audio")
    assert found.frames.events.tolist() == [10] * 99 and set(found.frames.as_run_ns[0]) == {50_000.0}
    assert measured(marked, thread="1").frames.events.tolist() == [10] * 99


def test_an_unknown_thread_is_refused_with_the_known_ones(marked: Campaign) -> None:
    with pytest.raises(UserError, match="journal game has no thread 'sound'; it has main, audio"):
        cut(marked, thread="sound")


def test_frames_can_be_cut_by_the_clock_instead(marked: Campaign) -> None:
    found = measured(marked, fps=50)
    assert found.frames.events.tolist() == [4] * 49
    assert "50 frames per second by the clock" in found.cuts.frames.words


def test_frames_are_judged_by_the_budget_of_the_rate_that_they_were_cut_at(marked: Campaign) -> None:
    """120 frames a second have 8.3 ms each: as shares of 16.7 ms all were half of what they are."""
    assert cut(marked).frames.rate_hz == 60
    by_clock = cut(marked, fps=50).frames
    assert by_clock.rate_hz == 50
    assert by_clock.rates_hz == (30, 50, 60, 90, 120, 144, 240)
    assert cut(marked, fps=120).frames.rates_hz == (30, 60, 90, 120, 144, 240)


def test_a_journal_without_marks_is_cut_at_sixty_and_says_so(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    game(campaign, "one")
    found = cut(campaign).frames
    assert found.frames == 59 and "no frame marks in the journal: cut into 60 per second" in found.words
    assert "judged on thread 1" in found.words  # the busiest


def test_frames_at_another_pace_are_those_of_the_program(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], paces=("10x",))
    made = rows([(i, MALLOC, 8, i * MS, 10, 0) for i in range(101)])
    campaign.run("one", made, pace="10x")
    assert cut(campaign, fps=100).frames.frames == 100
    assert measured(campaign, fps=100).frames.events.tolist() == [1] * 100


@pytest.mark.parametrize(
    "facts, pace, reason",
    [({}, "max", "at full speed there is no clock"), ({"paced": False}, "1x", "neither frame marks nor times")],
)
def test_without_a_clock_and_marks_there_are_no_frames_and_it_says_why(
    tmp_path: Path, facts: dict[str, object], pace: str, reason: str
) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], paces=(pace,))
    campaign.journal_facts(**facts)
    campaign.run("one", rows([(0, MALLOC, 8, 0, 10, 0)]), pace=pace)
    found = cut(campaign)
    assert isinstance(found.frames, NoFrames) and reason in found.frames.reason
    assert isinstance(found.audio, NoFrames)


def test_a_replay_on_one_thread_is_judged_on_all_events(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], threads="one")
    game(campaign, "one")
    assert measured(campaign, fps=100).frames.events.tolist() == [12] * 98 + [12]


def test_events_that_the_machine_interrupted_are_no_part_of_attributed_frames(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    made = rows([(i, MALLOC, 8, i * FRAME, 10 + 2000, 0) for i in range(51)])
    made["cause"][[3, 4]] = [1 | 8, 1 | 2]
    campaign.run("one", made, looking={"source": "perf", "threshold_ns": 500, "events": 2, "ns_a_look": 1})
    found = measured(campaign, fps=100).frames
    assert found.of(View.ATTRIBUTED)[0].tolist() == [1000.0] * 3 + [0.0] + [1000.0] * 46
    assert found.of(View.AS_RUN)[0].tolist() == [1000.0] * 50


def test_without_causes_there_are_no_attributed_frames(marked: Campaign) -> None:
    assert measured(marked).frames.of(View.ATTRIBUTED) is None


def test_a_verdict_is_the_share_of_the_budget_at_each_percentile() -> None:
    found = frames.verdict(np.arange(1, 1001) * 1000.0, 1e6 * 10)
    assert found.shares == {"p50": 0.05, "p99": 0.099, "p99.9": None} and found.worst == 0.1
    assert found.over == {0.01: 900, 0.05: 500, 0.1: 0} and found.frames == 1000


PERIOD = 64 / 48_000 * 1e9


@pytest.mark.parametrize("stall_periods, buffers", [(0, 2), (0.5, 2), (0.6, 3), (1.4, 3), (1.6, 4), (10.5, 12)])
def test_each_period_that_a_buffer_is_late_needs_one_more_in_the_queue(stall_periods: float, buffers: int) -> None:
    stretches = np.zeros((2, 100))
    stretches[1, 50] = stall_periods * PERIOD
    found = frames.audio_verdict(stretches, 64)
    assert found.buffers == buffers and found.latency_ns == pytest.approx(buffers * PERIOD)


def test_stalls_that_follow_one_another_add_up_and_far_ones_do_not() -> None:
    near, far = np.zeros((1, 100)), np.zeros((1, 100))
    near[0, [10, 11, 12]] = 2 * PERIOD
    far[0, [10, 40, 70]] = 2 * PERIOD
    assert frames.audio_verdict(near, 64).buffers == 2 + 5  # 4.5 periods behind at the end
    assert frames.audio_verdict(far, 64).buffers == 2 + 2


def test_a_longer_buffer_holds_the_time_of_its_stretches() -> None:
    found = frames.audio_verdict(frames.in_buffers(np.full((1, 64), PERIOD / 10), 1024), 1024)
    assert found.verdict.frames == 4 and found.verdict.worst == pytest.approx(0.1)


@pytest.mark.parametrize("buffers, use", [(1, "games"), (15, "music"), (200, "streaming"), (2000, "none")])
def test_the_latency_of_a_queue_is_told_by_the_rule_of_thumb(buffers: int, use: str) -> None:
    stretches = np.zeros((1, 10))
    stretches[0, 0] = buffers * PERIOD
    assert frames.audio_verdict(stretches, 64).use == use


def test_the_worst_frames_say_when_in_which_repeat_and_what_filled_them(marked: Campaign) -> None:
    worst = worst_frames.of(measured(marked), 2)[0]
    assert (worst.frame, worst.start_ns, worst.repeat, worst.events) == (39, 40 * FRAME, 2, 2)
    assert (worst.allocator_ns, worst.slowest_ns) == (3 * MS + 500, 3 * MS)
    assert (worst.slowest_kind, worst.slowest_size) == (MALLOC, 100)
    assert (worst.mallocs_ns, worst.frees_ns, worst.slowest_event) == (3 * MS, 500, 800)


def load_and_play(campaign: Campaign) -> None:
    """2 s that allocate and keep 1000 a 10 ms, 6 s of one malloc and free a ms, 1 s of frees alone."""
    entries = []
    for i in range(20_000):
        entries.append((len(entries), MALLOC, 64, i * 100_000, 10 + 200, 0))
    for i in range(6000):
        entries.append((len(entries), MALLOC, 64, 2000 * MS + i * MS, 10 + 100, 0))
        entries.append((len(entries), FREE, 64, 2000 * MS + i * MS + 1000, 10 + 100, 0))
    for i in range(20_000):
        entries.append((len(entries), FREE, 64, 8000 * MS + i * 50_000, 10 + 100, 0))
    campaign.run("one", rows(entries))


def test_load_play_and_teardown_are_told_apart_by_what_is_allocated(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    load_and_play(campaign)
    found = cut(campaign)
    assert [phase.name for phase in found.phases.phases] == ["load", "play", "teardown"]
    assert [phase.begin_ns / 1e9 for phase in found.phases.phases] == [0, 2, 8]
    assert [phase.begin_event for phase in found.phases.phases] == [0, 20_000, 32_000]


def test_latencies_and_frames_of_a_phase_are_its_own(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    load_and_play(campaign)
    found = measured(campaign, fps=10)
    assert found.whole(View.AS_RUN, Operation.MALLOC, "load").samples == 20_000
    assert found.whole(View.INHERENT, Operation.FREE, "play").samples == 6000
    assert found.whole(View.AS_RUN, Operation.FREE, "teardown").samples == 20_000
    assert found.phases.as_run_ns[0].tolist() == [2e6, 6e5, 1e6]
    assert np.count_nonzero(found.cuts.frames_in("play")) == 60


def test_phases_that_the_program_named_are_taken_as_they_are(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.journal_facts(
        phases=[{"name": "menu", "time_ns": 0, "event": 5}, {"name": "level", "time_ns": 3000 * MS, "event": 22_000}]
    )
    load_and_play(campaign)
    found = cut(campaign).phases
    assert found.named and [(phase.name, phase.begin_event) for phase in found.phases] == [
        ("menu", 0),
        ("level", 22_000),
    ]


def test_even_allocation_is_play_alone(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(i, FREE if i % 2 else MALLOC, 64, i * MS, 10, 0) for i in range(5000)]))
    assert cut(campaign).phases.names == ["play"]


def test_an_event_alone_has_a_frame_of_its_own(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(7, MALLOC, 8, 100, 10 + 20, 0)]))
    found = measured(campaign)
    assert isinstance(found.cuts.frames, FrameCut) and found.frames.as_run_ns.tolist() == [[10.0]]


def test_a_time_that_no_replay_writes_is_refused_by_name(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.run("one", rows([(7, MALLOC, 8, 2**63, 10 + 20, 0)]))
    with pytest.raises(UserError, match=r"samples\.npy has an event that began after .* it was damaged"):
        cut(campaign)


def test_a_thread_whose_name_others_have_too_is_asked_for_by_number(marked: Campaign) -> None:
    marked.journal_facts(thread_names=["main", "worker", "worker"], threads=3)
    with pytest.raises(UserError, match="2 threads named 'worker', and threads are never summed"):
        cut(marked, thread="worker")
    assert measured(marked, thread="1").frames.events.tolist() == [10] * 99


def test_of_a_program_with_many_phases_the_later_ones_are_told_together(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.journal_facts(phases=[{"name": f"level {i}", "time_ns": i * 100 * MS, "event": i * 10} for i in range(40)])
    campaign.run("one", rows([(i, MALLOC, 8, i * 10 * MS, 10, 0) for i in range(400)]))
    found = cut(campaign).phases
    assert len(found.names) == 12 and found.names[-1] == "other phases" and len(found.phases) == 40


@pytest.mark.parametrize("thread", [ALL, 0, 1, 77])
def test_a_timeline_has_every_event_at_its_time_though_threads_come_out_of_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thread: int
) -> None:
    monkeypatch.setattr(timeline, "_ROWS_AT_ONCE", 999)  # several parts, one of which begins with the late event
    campaign = Campaign(tmp_path / "r", ["one"])
    made, _ = lifelike(4000, seconds=3)
    made["start"][[999, 1000]] = 0  # they count as at the time of the event before them
    made["event"] = made["event"] * 2 + 5
    campaign.run("one", made)
    section = sections.read(campaign.directory).sections[0]
    line = timeline.read(section)
    starts = np.maximum.accumulate(made["start"])
    bins, kinds = (starts // timeline.BIN_NS).astype(int), made["kind"]
    assert (line.duration_ns, line.end_event) == (starts[-1], made["event"][-1] + 1)
    for counts, counted in ((line.mallocs, kinds != FREE), (line.frees, (kinds == FREE) | (kinds == REALLOC))):
        assert counts.tolist() == np.bincount(bins[counted], minlength=bins.max() + 1).tolist()
    assert line.by_thread.tolist() == np.bincount(made["thread"]).tolist()
    places = np.searchsorted(starts, np.arange(len(line.first_event)) * timeline.BIN_NS)
    assert line.first_event.tolist() == made["event"][places].tolist()
    boundaries = np.arange(0, 4e9, 7e6)  # the last ones behind the last event
    mine = made[made["thread"] == thread] if thread != ALL else made
    places = np.searchsorted(np.maximum.accumulate(mine["start"]), boundaries)
    wanted = np.append(mine["event"], made["event"][-1] + 1)[places]
    assert timeline.edges(section, thread, boundaries).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "phases",
    [
        [{"name": "a", "time_ns": "soon", "event": 1}],
        [{"name": "a", "event": 1}],
        [{"name": "a", "time_ns": 9, "event": 5}, {"name": "b", "time_ns": 3, "event": 7}],
    ],
)
def test_phases_that_no_plan_tells_are_refused(tmp_path: Path, phases: list[dict[str, object]]) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.journal_facts(phases=phases)
    campaign.run("one", rows([(i, MALLOC, 8, i, 10, 0) for i in range(9)]))
    with pytest.raises(UserError, match=r"campaign\.json"):
        cut(campaign)


def test_frame_marks_out_of_order_are_refused_by_name(marked: Campaign) -> None:
    marked.events(np.zeros(0), [1, 2, 3], frame_events=[19, 59, 39])
    with pytest.raises(UserError, match=r"frames\.npy has frame marks out of order"):
        cut(marked)


def test_tail_percentiles_of_frames_have_intervals_of_repeats_and_frames() -> None:
    calm, spiky = np.full(1500, 1000.0), np.concatenate([np.full(1400, 1000.0), np.full(100, 9000.0)])
    found = frames.tails(np.stack([calm, calm, spiky]), 1.0, 3)
    low, high = found["p99"].interval(0.95)
    assert low < 1000 and found["p99"].value == 9000 < high and "p99.9" not in found
    assert frames.tails(calm[None, :], 1.0, 3)["p99"].interval(0.95) is None
    assert "p99" not in frames.tails(calm[None, :900], 1.0, 3)


def rows_of(campaign: Campaign, **wanted: object) -> list[dict[str, object]]:
    result = build(campaign.directory, options=ReportOptions(everything=True, pictures=False, thread="0"))
    found = pyarrow.csv.read_csv(result.out / "frames.csv").to_pylist()
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def many_frames(campaign: Campaign) -> None:
    """1200 frames of the clock, ten of which, in one of three repeats, take 5 ms of thread 0."""
    campaign.journal_facts(threads=2)
    for repeat in (1, 2, 3):
        slow = dict.fromkeys(range(100, 110), 5 * MS) if repeat == 2 else {}
        game(campaign, "one", repeat, seconds=20, slow=slow)


def test_frames_csv_has_the_interval_of_a_share_beside_it(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=3)
    many_frames(campaign)
    row = rows_of(campaign, budget="60 Hz", view="as-run")[0]
    assert row["p99_share_low"] <= row["p99_share"] <= row["p99_share_high"] < row["worst_share"]
    assert row["p99.9_share"] is None and row["p99.9_share_low"] is None
    assert all(row["p99_share_low"] is not None for row in rows_of(campaign, budget="64 samples", view="as-run"))


def test_an_audio_buffer_has_its_shares_and_queue_in_the_report(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"], repeats=3)
    many_frames(campaign)
    found = tables(campaign, thread="0")
    for view, queue, latency_ms in (("as-run", 6, 8), ("inherent", 2, 8 / 3)):
        shares = [one for title, one in found.items() if "audio" in title and title.endswith(f"): {view}, defaults")]
        assert len(shares) == len(frames.AUDIO_SAMPLES)
        assert shares[0]["rows"][0]["cells"][4:] == [queue, pytest.approx(latency_ms * MS), "games"]
        rule = "pro audio up to 2 ms, games up to 20 ms, music up to 200 ms, streaming up to 2000 ms"
        assert shares[0]["notes"][0].endswith(rule)


def tables(campaign: Campaign, **options: object) -> dict[str, dict]:
    """Of the whole report, by title."""
    result = build(campaign.directory, options=ReportOptions(everything=True, pictures=False, **options))
    return {one["title"]: one for one in result.json["sections"][0]["tables"]}


def test_a_phase_in_which_no_frame_begins_has_no_table_of_frames(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "r", ["one"])
    campaign.journal_facts(
        phases=[
            {"name": name, "time_ns": at * MS, "event": event}
            for name, at, event in (("menu", 0, 0), ("load", 500, 1000), ("play", 501, 1001))
        ]
    )
    game(campaign, "one")
    titles = " ".join(tables(campaign))
    judged = {name: f"share of a frame at 60 Hz (16.7 ms) in {name}" in titles for name in ("menu", "load", "play")}
    assert judged == {"menu": True, "load": False, "play": True}
    assert "load, time in the allocator on all threads" in titles
