"""The call stack of each event, as reports read it: on journals whose every stack is known."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from stack_paths import name_of, path_of
from stacked import Journal
from the_command import told

from blockyard import native
from blockyard.analysis.sites import NONE, Sites
from blockyard.errors import UserError


def events(journal: Path, target: Path, *arguments: object) -> bool:
    return json.loads(native.call("blockyard-sites", ["events", journal, "-o", target, *arguments]))["stacks"]


def read(journal: Path, *arguments: object) -> Sites:
    target = journal.with_suffix(".bys")
    assert events(journal, target, *arguments)
    return Sites(target)


def names(sites: Sites) -> list[str]:
    return [name_of(sites, int(node)) for node in sites.by_event]


def test_each_event_has_the_function_that_asked_or_freed_and_marks_have_none(game):
    sites = read(game)
    none, load, spawn = "(no call stack)", "app::load()", "app::spawn(int)"
    frame = [spawn, spawn, spawn, "app::batch()", "app::draw()", none]
    later = ["app::destroy(app::Thing*)", *frame]
    assert names(sites) == [load, none, *frame, *later, *later]
    assert sites.nodes_of(np.array([0, 1, 999])).tolist() == [sites.by_event[0], NONE, NONE]


def test_a_path_has_inlined_functions_lines_and_modules_innermost_first(game):
    sites = read(game)
    path = [(one.function, one.file, one.line, one.module) for one in path_of(sites, int(sites.by_event[5]))]
    assert path == [
        ("app::batch()", "draw.h", 5, "libgame.so"),
        ("app::draw()", "draw.cpp", 50, "libgame.so"),
        ("main", "", 0, "libgame.so"),
    ]


def test_sites_are_those_of_the_command(game):
    sites = read(game)
    groups = sites.groups()
    found = told("sites", game, "--limit", "0")
    held = [np.bincount(groups.by_node, column, len(groups.names)) for column in (sites.peak_bytes, sites.end_bytes)]
    mine = {name: (peak, end) for name, peak, end in zip(groups.names, *held, strict=True) if peak or end}
    assert mine == {
        site["function"]: (site["peak_bytes"], site["end_bytes"])
        for site in found["sites"]
        if site["peak_bytes"] or site["end_bytes"]
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stretch", [(), ("--from", "0.0002", "--to", "0.0007")])
def test_random_journals_agree_with_the_command(tmp_path, seed, stretch):
    random, journal, alive = Random(seed), Journal(), []
    for event in range(1000):
        node = journal.stack("main", f"f{random.randrange(4)}()", f"g{random.randrange(4)}()")
        if alive and random.random() < 0.45:
            journal.free(alive.pop(random.randrange(len(alive))), event * 1000, node)
        else:
            alive.append(0x1000 + event)
            journal.allocate(random.randrange(1, 5000), alive[-1], event * 1000, None if event % 9 == 0 else node)
    path = journal.write(tmp_path / "random.txt")
    sites = read(path, *stretch)
    groups = sites.groups()
    columns = (sites.peak_bytes, sites.peak_blocks, sites.end_bytes, sites.end_blocks)
    held = [np.bincount(groups.by_node, column, len(groups.names)) for column in columns]
    result = told("sites", path, "--limit", "0", *stretch)
    figures = ("peak_bytes", "peak_blocks", "end_bytes", "end_blocks")
    of = {site["function"]: [site[name] for name in figures] for site in result["sites"] if site["function"]}
    assert {name: values for name, *values in zip(groups.names, *held, strict=True) if any(values)} == {
        name: values for name, values in of.items() if any(values)
    }


def test_functions_can_be_passed_over_as_the_command_does(game, tmp_path):
    journal = Journal()
    marker = journal.frame("")
    journal.allocate(8, 0x10, 1, journal.stack("main", "app::load()", "app::pool_get()"))
    journal.allocate(8, 0x20, 2, journal.stack("app::pool_get()", "std::vector<int>::push_back(int)"))
    journal.allocate(8, 0x30, 3, journal.stack(marker, "app::pool_get()"))
    path = journal.write(tmp_path / "pool.txt")
    groups = read(path).groups("pool_get")
    of = groups.of(read(path).by_event)
    result = told("sites", path, "--limit", "0", "--skip", "pool_get")
    assert sorted(groups.names[one] for one in of) == sorted(site["function"] for site in result["sites"])


def test_a_stretch_keeps_the_journals_numbers_and_leaves_out_what_it_does_not_need(game):
    sites = read(game, "--from", "0.0205", "--to", "0.0295")
    whole = read(game)
    assert len(read(game, "--to", "0.009").parent) < len(whole.parent)
    found = names(sites)
    # Blocks that are alive when the stretch begins keep their stacks, what is over by then has none.
    assert found[0] == "app::load()" and found[2] == "app::spawn(int)" and found[3] == "(no call stack)"
    assert found[8:] == names(whole)[8 : len(found)]
    assert sites.peak_bytes.sum() == 1000 + 100 + 500


def test_a_journal_without_stacks_has_none(tmp_path):
    journal = Journal()
    journal.allocate(8, 0x10, 1)
    assert not events(journal.write(tmp_path / "plain.txt"), tmp_path / "plain.bys")
    assert not (tmp_path / "plain.bys").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda whole: whole[:40], "is too short"),
        (lambda whole: whole[:-1], "was cut or added to"),
        (lambda whole: b"BYSITES\r" + whole[8:], "was not written by this version"),
        (lambda whole: whole[:64] + b"\xfe" * 400 + whole[464:], "was damaged"),
    ],
)
def test_a_damaged_file_is_named(game, change, words):
    path = read(game).path
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=words):
        Sites(path)


@pytest.mark.parametrize("column", ["parent", "frame", "speaker", "first_label", "by_event"])
def test_the_walker_finds_an_index_that_names_nothing(game, column):
    sites = read(game)
    sites.check()
    wrong = np.array(getattr(sites, column))
    wrong[-1] = NONE - 1
    setattr(sites, column, wrong)
    with pytest.raises(UserError, match="was damaged"):
        sites.check()
