"""What replays measured comes first in the words of advice, with its doubts."""

import json

import pytest
from played import Game, advise, blockyard, play

from blockyard.advise import gain, text
from blockyard.advise.measure import Figure, Gain


def shade(game: Game) -> None:
    for _ in range(4):
        game.free(game.allocate(100, "update()", "shade()"), "end_frame()")
    game.free(game.allocate(100_000, "draw()", "interface()"), "end_frame()")


def measured(name: str, groups: tuple[int, ...], worst: tuple[float, float, float], whole: float) -> Gain:
    same = Figure(whole, whole, whole)
    return Gain(name, groups, 60, Figure(9, 8, 10), None, Figure(*worst), same, Figure(0, 0, 0), same, ())


@pytest.fixture
def report(tmp_path) -> dict:
    return advise(play(tmp_path / "game.txt", shade))


def test_a_gain_beyond_the_intervals_is_the_answer_and_ranks(report):
    plain = measured("plain", (), (1000, 900, 1100), 5000)
    alone = [measured("group-0", (0,), (900, 800, 1000), 4800), measured("group-1", (1,), (500, 400, 600), 4000)]
    gain.put(report, [plain, *alone, measured("together", (0, 1), (400, 300, 500), 3000)])
    assert text.answer(report).startswith(
        "Two changes take 60 % of the allocator time out of the worst frame (measured"
    )
    assert [advice["group"] for advice in report["advice"]] == [1, 0]
    rows = "\n".join(text.measured(report))
    assert "together" in rows and "300 ns-500 ns" in rows


def test_a_gain_within_the_noise_is_not_claimed(report):
    plain = measured("plain", (), (1000, 500, 1100), 5000)
    gain.put(report, [plain, measured("group-0", (0,), (900, 800, 1000), 5000)])
    assert text.answer(report).startswith("Replays show no gain")


def test_a_loss_beyond_the_intervals_is_not_kept_quiet(report):
    plain = measured("plain", (), (1000, 900, 1100), 5000)
    gain.put(report, [plain, measured("group-0", (0,), (500, 400, 600), 15000)])
    assert "out of the worst frame, but the whole replay takes 200 % longer" in text.answer(report)
    gain.put(report, [plain, measured("group-0", (0,), (1000, 900, 1100), 15000)])
    assert text.answer(report).startswith("Leave these allocations as they are: in replays")


@pytest.mark.parametrize(
    "duration_s, worst_s, expected",
    [(8, 3, (None, None)), (100, 50, (45.0, 55.0)), (100, 1, (0.0, 10.0)), (100, 99, (90.0, 100.0))],
)
def test_ten_seconds_around_the_worst_frame_are_replayed(duration_s, worst_s, expected):
    report = {"duration_ns": duration_s * 1e9, "worst_frame_ns": worst_s * 1e9, "estimated_worst_frame_ns": 1}
    assert gain.stretch(report) == expected


def test_a_short_game_is_replayed_with_and_without_each_change(tmp_path):
    out = tmp_path / "out"
    path = play(tmp_path / "game.txt", shade, frames=20)
    done = blockyard("advise", path, "--json", "-o", out)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["measured"]["plain"]["frames"] > 0
    assert all(advice["gain"]["timed_ns"]["value"] > 0 for advice in report["advice"])
    assert report == json.loads((out / "advice.json").read_text())
    again = blockyard("advise", path, "-o", out)
    assert again.returncode == 1 and "exists already" in again.stderr


def test_an_interrupted_measurement_goes_on(tmp_path):
    out = tmp_path / "out"
    path = play(tmp_path / "game.txt", shade, frames=20)
    assert blockyard("advise", path, "--no-replay", "-o", out).returncode == 0
    done = blockyard("advise", path, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "Measured by replay" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(f"blockyard report {out}")
