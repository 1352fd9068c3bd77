"""What changes gain, measured: the variants, their interleaving, ends of frames, and going on after an interruption."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from replay_lab import MS, Journal, Route, write_routes

from blockyard.advise import measure
from blockyard.campaign import runner
from blockyard.campaign.facts import RunFacts
from blockyard.errors import UserError

FRAMES = 40


def game(folder: Path) -> tuple[Path, Path]:
    """A journal of 2 ms frames in which eight blocks live, and routes: half of them temp (3), half in a pool (5)."""
    journal, events = Journal(), []
    for frame in range(FRAMES):
        at = frame * 2 * MS
        for block in range(8):
            events.append(journal.events)
            journal.allocate(f"b{block}", 200 + block, at)
        for block in range(8):
            journal.free(f"b{block}", at + MS)
        journal.frame(at + MS)
    routes = write_routes(
        folder / "routes.byr",
        journal.events,
        Route("temp", tuple(events[::2]), 16 << 10, group=3),
        Route("pool", tuple(events[1::2]), 256, group=5),
    )
    return journal.write(folder / "game.txt"), routes


def gains(folder: Path, groups: tuple[int, ...] = (3, 5), **keywords: Any) -> list[measure.Gain]:
    keywords = {"folder": folder / "replays", "repeats": 3, **keywords}
    return measure.measure(*game(folder), groups, **keywords)


def test_each_group_is_measured_alone_and_all_together_beside_the_plain_replay(tmp_path: Path) -> None:
    found = gains(tmp_path)
    assert [(one.name, one.groups) for one in found] == [
        ("plain", ()),
        ("group-3", (3,)),
        ("group-5", (5,)),
        ("together", (3, 5)),
    ]
    for one in found:
        assert one.frames == FRAMES - 1  # from the first mark to the last
        for figure in (one.p50_ns, one.worst_ns, one.total_ns, one.slow_calls, one.peak_bytes):
            assert figure is not None and figure.low <= figure.value <= figure.high
        assert one.p99_ns is None  # 117 frames support none
        assert one.p50_ns.value <= one.worst_ns.value
    plain, temp, pool, together = found
    assert plain.routes == ()
    assert [(one.kind, one.blocks) for one in temp.routes] == [("temp", 4 * FRAMES)]
    assert [(one.kind, one.blocks) for one in pool.routes] == [("pool", 4 * FRAMES)]
    assert [one.group for one in together.routes] == [3, 5]
    assert 0 < temp.routes[0].region_peak_bytes <= 16 << 10


def test_frames_of_loading_do_not_count(tmp_path: Path) -> None:
    path, routes = game(tmp_path)
    signature, *lines = path.read_text().splitlines()
    half = [place for place, line in enumerate(lines) if line.startswith("# frame ")][FRAMES // 2 - 1]
    thread, time = lines[half].split()[2:4]
    names = ["# name load", "# name play", f"# phase 1 {thread} 0"]
    lines = [signature, *names, *lines[:half], f"# phase 2 {thread} {time}", *lines[half:]]
    path.write_text("\n".join(lines) + "\n")
    (plain,) = measure.measure(path, routes, (), folder=tmp_path / "replays", repeats=2)
    assert plain.frames == FRAMES // 2


def test_variants_take_turns_and_every_byte_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = watched(monkeypatch, lambda number: None)
    gains(tmp_path, (3,), repeats=2)
    timed = [run for run in ran if "/1x-all/" in run]
    assert timed == ["plain/glibc/1x-all/1", "group-3/glibc/1x-all/1", "group-3/glibc/1x-all/2", "plain/glibc/1x-all/2"]
    assert "plain/null/1x-all-untimed/2" in ran and not any(run.startswith("group-3/null") for run in ran)


def watched(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None]) -> list[str]:
    """The runs that are made from now on; `before` is called with each one's number."""
    ran: list[str] = []
    real = runner.run_once

    def run_once(request: runner.Request, *arguments: Any, **keywords: Any) -> RunFacts:
        before(len(ran))
        ran.append(request.run.id)
        return real(request, *arguments, **keywords)

    monkeypatch.setattr(runner, "run_once", run_once)
    return ran


def test_an_interrupted_measurement_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(number: int) -> None:
        if number == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        first = watched(patch, interrupt)
        with pytest.raises(KeyboardInterrupt):
            gains(tmp_path)
    assert len(first) == 3
    second = watched(monkeypatch, lambda number: None)
    seen: list[float] = []
    found = gains(tmp_path, progress=lambda fraction, text: seen.append(fraction))
    whole = 4 * (3 + 3) + 3  # timed and untimed, and those of null
    assert len(second) == whole - 3 and not set(first) & set(second)
    assert len(found) == 4
    assert seen == sorted(seen) and seen[0] == 3 / whole and seen[-1] == 1
    assert gains(tmp_path) == found and len(second) == whole - 3


@pytest.mark.parametrize("change", [{"repeats": 4}, {"allocator": "null"}, {"groups": (3,)}])
def test_a_folder_of_another_measurement_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    gains(tmp_path, repeats=1)
    with pytest.raises(UserError, match="holds another measurement"):
        gains(tmp_path, **{"repeats": 1, **change})


def test_the_end_of_a_frame_counts_to_the_frame_that_it_ends(tmp_path: Path) -> None:
    before = gains(tmp_path, (3,), repeats=2)[1]
    for path in (tmp_path / "replays").glob("runs/group-3/*/1x-all-untimed/*/bursts.npy"):
        rows = np.load(path)
        mine = np.flatnonzero(rows["frame"] == 7)[-1]  # it ends with the end of that frame
        rows["ns"][mine] += MS
        np.save(path, rows)
    after = measure.read(tmp_path / "replays")[1]
    assert after.worst_ns.low >= MS
    assert after.p50_ns.value == pytest.approx(before.p50_ns.value, rel=0.2)


def test_a_replay_that_fails_is_one_sentence_and_the_rest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> RunFacts:
        return RunFacts("failed", "it ran out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_once", fail)
        with pytest.raises(UserError, match=r"the replay plain/glibc/1x-all/1 failed: it ran out of memory"):
            gains(tmp_path)
    assert len(gains(tmp_path)) == 4


def test_a_journal_without_times_is_replayed_at_full_speed_and_has_no_frames(tmp_path: Path) -> None:
    journal, events = Journal(), []
    journal.lines.append("# unpaced")
    for _ in range(40):
        events.append(journal.events)
        journal.allocate("x", 64).free("x")
    routes = write_routes(tmp_path / "routes.byr", journal.events, Route("pool", tuple(events), 64))
    found = measure.measure(journal.write(tmp_path / "a.txt"), routes, (0,), folder=tmp_path / "replays", repeats=1)
    assert [(one.frames, one.p50_ns, one.worst_ns) for one in found] == [(0, None, None)] * 2
    assert found[1].routes[0].blocks == 40
    assert len(list((tmp_path / "replays" / "runs").glob("*/*/max-all/1/run.json"))) == 2


def test_rerouting_nothing_gives_the_plain_replays_figures_within_their_interval(tmp_path: Path) -> None:
    journal = Path(__file__).parents[2] / "journals" / "small" / "godot-start.byj"
    routes = write_routes(tmp_path / "routes.byr", 52_166, Route("pool", (), 64))

    def agree(attempt: int) -> bool:
        plain, nothing = measure.measure(journal, routes, (0,), folder=tmp_path / f"replays-{attempt}")
        assert plain.frames > 0 and nothing.routes == ()
        pairs = [(plain.total_ns, nothing.total_ns), (plain.p50_ns, nothing.p50_ns), (plain.worst_ns, nothing.worst_ns)]
        return all(one is None or (one.low <= two.high and two.low <= one.high) for one, two in pairs)

    # Of intervals of 95 %, one in some dozens misses by chance; three times in a row none does.
    assert any(agree(attempt) for attempt in range(3))
