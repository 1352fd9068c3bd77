"""Repeats of a joined campaign ran on several machines: reports say how far these disagree, and leave outliers out."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from in_process import blockyard
from synthetic import MACHINE, MALLOC, Campaign, rows

from blockyard.analysis import sections
from blockyard.analysis.samples import NO_EVENT


def joined(folder: Path, factors: Mapping[str, float]) -> Campaign:
    """A share and a repeat for each machine, whose calls take that many times as long."""
    made = Campaign(folder / "r", ["one", "two"], repeats=len(factors))
    made.events(np.array([NO_EVENT]))
    parts = []
    for place, (node, factor) in enumerate(factors.items()):
        for name, usual in (("one", 1000), ("two", 3000)):
            made.run(name, rows([(0, MALLOC, 64, 0, 210, 0)]), place + 1, timed_ns=usual * factor)
        share = f"{place + 1}/{len(factors)}"
        parts.append({"share": share, "runs": 2, "machine": {**MACHINE, "node": node}})
    (made.directory / "machine.json").write_text(json.dumps({**MACHINE, "joined": parts}))
    return made


def test_a_machine_far_from_all_others_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    made = joined(tmp_path, {"n1": 1.0, "n2": 1.01, "n3": 0.99, "n4": 1.0, "slow": 1.4})
    (section,) = sections.read(made.directory).sections
    left = {run.repeat for one in section.allocators for run in one.runs}
    assert left == {1, 2, 3, 4}
    [left_out] = [
        words for words in section.machines if words.startswith("slow was left out: its calls take 40 % more")
    ]
    assert left_out in " ".join(blockyard("report", made.directory, "--no-pictures").stdout.split())


def test_machines_that_differ_by_their_usual_spread_are_all_kept_and_the_disagreement_is_said(tmp_path: Path) -> None:
    made = joined(tmp_path, {"n1": 1.0, "n2": 1.05, "n3": 0.96, "n4": 1.03})
    (section,) = sections.read(made.directory).sections
    assert all(len(one.runs) == 4 for one in section.allocators)
    assert section.machines == ("the machines disagree: on n2 all calls take 9 % more time than on n3",)


def test_of_three_machines_none_can_be_called_the_odd_one(tmp_path: Path) -> None:
    made = joined(tmp_path, {"n1": 1.0, "n2": 1.0, "n3": 2.0})
    (section,) = sections.read(made.directory).sections
    assert all(len(one.runs) == 3 for one in section.allocators)
    assert "on n3 all calls take 100 % more time" in section.machines[0]


def test_a_campaign_of_one_machine_says_nothing_of_machines(tmp_path: Path) -> None:
    made = joined(tmp_path, {"n1": 1.0, "n2": 3.0})
    (made.directory / "machine.json").write_text(json.dumps(MACHINE))
    (section,) = sections.read(made.directory).sections
    assert section.machines == () and all(len(one.runs) == 2 for one in section.allocators)
