"""What replays measured comes first in the words of advice, with its doubts."""

import json
import signal
import time
from types import SimpleNamespace

import pytest
from played import Game, advise, play
from the_command import blockyard, refusal, started, success

from blockyard import terminal
from blockyard.advise import measure
from blockyard.advise.document import Advice, Figure, Gain
from blockyard.report import advice as text


def shade(game: Game) -> None:
    for _ in range(4):
        game.free(game.allocate(100, "update()", "shade()"), "end_frame()")
    game.free(game.allocate(100_000, "draw()", "interface()"), "end_frame()")


def draw(game: Game) -> None:
    for size in (40, 50):
        blocks = [game.allocate(size + i, "update()", ("search()", 5)) for i in range(8)]
        for block in blocks:
            game.free(block, "update()", ("search()", 9))


def measured(name: str, groups: tuple[int, ...], worst: tuple[float, float, float], whole: float) -> Gain:
    same = Figure(whole, whole, whole)
    return Gain(name, groups, 60, Figure(9, 8, 10), None, Figure(*worst), same, Figure(0, 0, 0), same, ())


@pytest.fixture
def report(tmp_path) -> Advice:
    return advise(play(tmp_path / "game.txt", shade))


def test_a_gain_beyond_the_intervals_is_the_answer_and_ranks(report):
    plain = measured("plain", (), (1000, 900, 1100), 5000)
    alone = [measured("group-0", (0,), (900, 800, 1000), 4800), measured("group-1", (1,), (500, 400, 600), 4000)]
    measure.put(report, [plain, *alone, measured("together", (0, 1), (400, 300, 500), 3000)])
    assert "Two changes take 60 % of the allocator time out of the worst frame (measured" in text.answer(report)
    assert [(advice.group, advice.id) for advice in report.advice] == [(1, 1), (0, 2)]
    assert [row.cells[3] for row in text.measured(report).rows if row.name == "together"] == ["300 to 500 ns"]


def test_a_gain_within_the_noise_is_not_claimed(report):
    plain = measured("plain", (), (1000, 500, 1100), 5000)
    measure.put(report, [plain, measured("group-0", (0,), (900, 800, 1000), 5000)])
    assert " Replays show no gain" in text.answer(report)


def test_a_loss_beyond_the_intervals_is_not_kept_quiet(report):
    plain = measured("plain", (), (1000, 900, 1100), 5000)
    measure.put(report, [plain, measured("group-0", (0,), (500, 400, 600), 15000)])
    assert "out of the worst frame, but the whole replay takes 200 % longer" in text.answer(report)
    measure.put(report, [plain, measured("group-0", (0,), (1000, 900, 1100), 15000)])
    assert " Leave these allocations as they are: in replays" in text.answer(report)


@pytest.mark.parametrize(
    "duration_s, worst_s, expected",
    [(8, 3, (None, None)), (100, 50, (45.0, 55.0)), (100, 1, (0.0, 10.0)), (100, 99, (90.0, 100.0))],
)
def test_ten_seconds_around_the_worst_frame_are_replayed(duration_s, worst_s, expected):
    ns = {"duration_ns": duration_s * 1e9, "worst_frame_ns": worst_s * 1e9, "estimated_worst_frame_ns": 1}
    report = SimpleNamespace(**ns)
    assert measure.stretch(report) == expected


def test_a_short_game_is_replayed_with_and_without_each_change(tmp_path):
    out = tmp_path / "out"
    path = play(tmp_path / "game.txt", shade, frames=20)
    done = success(blockyard("advise", path, "--json", "-o", out))
    report = json.loads(done.stdout)
    assert report["measured"]["plain"]["frames"] > 0
    assert all(advice["gain"]["total_ns"]["value"] > 0 for advice in report["advice"])
    assert report == json.loads((out / "advice.json").read_text())
    refusal(blockyard("advise", path, "-o", out))  # the folder is finished


def test_a_log_is_told_that_work_goes_on(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "_QUIET_S", 0)
    with terminal.reading_bar() as tell:
        tell(0.5, "replaying, 3 of 6")
    assert capsys.readouterr().err == "blockyard: replaying, 3 of 6, 50 %\n"


def test_an_interrupted_measurement_goes_on(tmp_path):
    out = tmp_path / "out"
    path = play(tmp_path / "game.txt", shade, frames=20)
    assert blockyard("advise", path, "--no-replay", "-o", out).returncode == 0
    done = success(blockyard("advise", path, "-o", out))
    assert "Measured by replay" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f"blockyard report {out}")


def test_frames_of_a_program_that_marks_none_are_those_of_fps(tmp_path):
    path = play(tmp_path / "game.txt", draw, frames=20, marks=False)
    done = success(blockyard("advise", path, "--fps", 25, "-o", tmp_path / "out"))
    assert "frames by the clock (25 per second)" in " ".join(done.stdout.split())
    report = json.loads((tmp_path / "out" / "advice.json").read_text())
    assert report["measured"]["plain"]["frames"] in (7, 8)  # of 0.3 s


def test_where_no_frame_is_marked_the_whole_replay_is_the_answer(report):
    report.marked_frames = False
    plain = measured("plain", (), (1000, 900, 1100), 5000)
    measure.put(report, [plain, measured("group-0", (0,), (500, 400, 600), 4000)])
    assert " One change takes 20 % of the allocator time out of the whole replay" in text.answer(report)


def test_ctrl_c_in_the_replays_says_how_to_go_on(tmp_path):
    path = play(tmp_path / "game.txt", shade, frames=20)
    with started("advise", path, "-o", tmp_path / "out") as running:
        runs = tmp_path / "out" / "replays" / "runs"
        while running.poll() is None and not list(runs.glob("*/*/*/*/run.json")):
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, error = running.communicate()
    assert running.returncode == 130 and "the replays made are kept; the same command goes on" in error
    assert blockyard("advise", path, "-o", tmp_path / "out").returncode == 0
