"""The report's page marks the events that a change is about: those whose blocks its routes lead elsewhere."""

from pathlib import Path

import numpy as np
import pytest
from played import Game, advise, play, routed

from blockyard.advise import routes, tool
from blockyard.errors import UserError
from blockyard.report.page import changes


def several(game: Game) -> None:
    """Two lines of one function that go different ways, a function that asks for others, and one that is left alone."""
    for _ in range(4):
        game.free(game.allocate(100, "update()", ("shade()", 5)), "end_frame()")
        game.free(game.allocate(80, ("draw()", 3), "text()"), "draw()", "clear()")
    block = game.allocate(32, "update()", ("shade()", 9))
    for size in (64, 128, 256, 512, 1024):
        block = game.grow(block, size, "update()", ("shade()", 9))
    game.free(block, "flush()")
    game.allocate(16 + game.frame, "load()", "text()")


def test_each_event_belongs_to_the_change_that_routes_its_block(tmp_path):
    report = advise(play(tmp_path / "game.txt", several))
    assert len({advice.what for advice in report.advice}) > 1
    change = changes.of_events(report)
    assert len(change) == report.events
    expected = dict(routed(report))
    assert set(expected.values()) == {advice.group for advice in report.advice}
    for event, number in enumerate(change):
        assert (report.advice[number - 1].group if number else None) == expected.get(event)
    assert np.count_nonzero(change) == len(expected)


@pytest.mark.parametrize(
    "spoil, sentence",
    [
        (lambda data: data[:-4], "was cut or added to"),
        (lambda data: b"BYROUTE\n" + data[8:-8] + b"\xff" * 8, "was damaged"),
        (lambda data: b"nothing", "holds no routes"),
    ],
)
def test_routes_that_are_no_longer_whole_are_refused_in_a_sentence(tmp_path, spoil, sentence):
    path = Path(advise(play(tmp_path / "game.txt", several)).folder) / tool.ROUTES
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(UserError, match=sentence):
        routes.by_event(path)
