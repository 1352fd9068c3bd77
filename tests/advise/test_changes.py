"""The report's page finds the stacks whose blocks a change is about: those that its routes lead elsewhere."""

import numpy as np
from played import Game, advise, play, routed
from stack_paths import path_of

from blockyard import native
from blockyard.analysis.sites import Sites
from blockyard.report.page.changes import Changes


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


def test_each_stack_belongs_to_the_change_that_routes_its_blocks(tmp_path):
    path = play(tmp_path / "game.txt", several)
    report = advise(path)
    assert len({advice["what"] for advice in report["advice"]}) > 1
    native.call("blockyard-sites", ["events", path, "-o", tmp_path / "sites.bys"])
    found = Sites(tmp_path / "sites.bys")
    change = Changes(report, found).of_nodes(np.arange(len(found.parent)))
    routes = routed(report)
    assert {route for _, route in routes} == {advice["group"] for advice in report["advice"]}
    for event, route in routes:
        number = change[found.by_event[event]]
        assert number and report["advice"][number - 1]["group"] == route
    loaded = [
        node for node in range(len(found.parent)) if [one.function for one in path_of(found, node)][1:2] == ["load()"]
    ]
    assert loaded and not change[loaded].any()
