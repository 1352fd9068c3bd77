"""`blockyard fleet`: planted faults are the answers."""

from pathlib import Path

import planted_fleet
import pytest
from the_command import blockyard, sentence, success, told


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build 1.1 allocates more in update() than 1.0 and leaks in cache(); on kit-4 bursts make frames late. The two
    machines' journals of 1.0 have the same contents, so they count once."""
    root = tmp_path_factory.mktemp("fleet")
    for machine in ("kit-3", "kit-4"):
        slow, quick = (2, 0) if machine == "kit-4" else (0, 2)
        for frames in (10, 30, 60):
            planted_fleet.game(
                root / f"journals/1.0/{machine}/{frames}.journal", frames=frames, started="2026-01-01T00:00Z"
            )
            planted_fleet.game(
                root / f"journals/1.1/{machine}/{frames}.journal",
                frames=frames,
                bytes_a_frame=5000,
                leak=700,
                slow_bursts=slow,
                quick_bursts=quick,
                started="2026-02-01T00:00Z",
            )
    success(blockyard("collect", root / "journals", "-o", root / "fleet"))
    return root / "fleet"


def test_each_question_finds_what_was_planted(fleet: Path) -> None:
    found = told("fleet", fleet)
    assert found["grew"]["answer"].startswith("app::update() update.cpp grew most from 1.0 to 1.1")
    assert [row["name"] for row in found["late"]["rows"]] == ["kit-4"]
    (late,) = found["late"]["rows"]
    assert late["cells"][1:5] == [6, 6, 1, 0]
    assert [row["name"] for row in found["frame"]["rows"]] == ["1.1", "1.0"]
    assert found["frame"]["rows"][0]["cells"][1] == 2 and found["frame"]["rows"][0]["cells"][4] == 42
    assert "up to 40 in one frame come from app::burst()" in found["frame"]["answer"]
    assert [(row["name"], row["cells"][0]) for row in found["leaks"]["rows"]] == [("app::cache() cache.cpp", "1.1")]
    assert [row["name"] for row in found["fragmentation"]["rows"]] == ["app::load() load.cpp"]
    assert found["fragmentation"]["rows"][0]["cells"] == [1, 32, 0.95, 4064]


def test_the_answer_comes_before_its_table(fleet: Path) -> None:
    done = blockyard("fleet", fleet, "leaks")
    lines = done.stdout.splitlines()
    assert lines[0] == "What leaks over hours" and lines[1].startswith("app::cache() cache.cpp holds")
    assert max(map(len, lines)) <= 80


def test_sql_of_ones_own_and_that_of_the_questions_runs(fleet: Path) -> None:
    found = told("fleet", fleet, "--sql", "SELECT build, count(*) AS n FROM journals GROUP BY 1 ORDER BY 1")
    assert found["rows"] == [{"build": "1.0", "n": 3}, {"build": "1.1", "n": 6}]
    shown = blockyard("fleet", fleet, "late", "--show-sql").stdout
    assert told("fleet", fleet, "--sql", shown)["rows"][0]["machine"] == "kit-4"
    table = blockyard(
        "fleet", fleet, "--sql", "SELECT build, sum(events) AS events FROM journals GROUP BY 1 ORDER BY 1"
    )
    assert table.stdout.splitlines()[0].split() == ["build", "events"]


def test_what_is_no_fleet_and_wrong_sql_are_refused_in_a_sentence(fleet: Path, tmp_path: Path) -> None:
    assert "is no fleet" in sentence(blockyard("fleet", tmp_path))
    said = sentence(blockyard("fleet", fleet, "--sql", "SELECT nothing FROM nowhere"))
    assert said.startswith("blockyard: DuckDB refuses the SQL: ")


def test_a_fleet_without_faults_is_said_to_have_none(tmp_path: Path) -> None:
    planted_fleet.game(tmp_path / "journals" / "a.journal")
    blockyard("collect", tmp_path / "journals", "-o", tmp_path / "fleet")
    found = told("fleet", tmp_path / "fleet")
    for name in ("grew", "late", "leaks"):
        assert found[name]["answer"].startswith(("No site", "On no machine")) and not found[name]["rows"]
