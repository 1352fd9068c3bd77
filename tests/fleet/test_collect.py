"""`blockyard collect`: many journals become one data set, whatever happens on the way."""

import fcntl
import json
import shutil
import subprocess
from pathlib import Path

import planted_fleet
import pyarrow.parquet as pq
import pytest
from the_command import blockyard, refusal, sentence, success


def collect(folder: Path, fleet: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return blockyard("collect", folder, "-o", fleet, *options)


def rows(fleet: Path, table: str) -> list[dict]:
    """Of all parts, in an order of their own, with the folders' build and machine."""
    found = []
    for part in (fleet / table).glob("build=*/machine=*/*.parquet"):
        place = dict(folder.split("=") for folder in part.relative_to(fleet / table).parts[:-1])
        found += [{**row, **place} for row in pq.read_table(part, partitioning=None).to_pylist()]
    return sorted(found, key=lambda row: json.dumps(row))


def all_rows(fleet: Path) -> dict[str, list[dict]]:
    return {table: rows(fleet, table) for table in ("journals", "sites", "frames", "sizes", "lifetimes")}


@pytest.fixture
def journals(tmp_path: Path) -> Path:
    folder = tmp_path / "journals"
    planted_fleet.game(folder / "1.0" / "kit-3" / "a.journal", frames=3, slow_bursts=1)
    planted_fleet.game(folder / "1.0" / "kit-4" / "b.journal", frames=5)
    return folder


def test_a_journal_becomes_rows_of_every_table_by_build_and_machine(journals: Path, tmp_path: Path) -> None:
    success(collect(journals, tmp_path / "fleet"))
    found = all_rows(tmp_path / "fleet")
    assert {(row["build"], row["machine"], Path(row["path"]).name) for row in found["journals"]} == {
        ("1.0", "kit-3", "a.journal"),
        ("1.0", "kit-4", "b.journal"),
    }
    frames = sorted((row for row in found["frames"] if row["machine"] == "kit-3"), key=lambda row: row["frame"])
    assert [row["allocations"] for row in frames] == [1, 1, 1, 41]
    assert [row["events"] for row in frames] == [2, 2, 2, 82]
    assert [row["length_ns"] // planted_fleet.MS for row in frames] == [10, 10, 10, 30]
    sites = {row["function"]: row for row in found["sites"] if row["machine"] == "kit-3"}
    assert sites["app::burst()"]["allocations"] == 40 and sites["app::burst()"]["end_blocks"] == 0
    assert sites["app::load()"]["end_blocks"] == 1 and sites["app::load()"]["freed"] == 19
    own = next(row for row in found["journals"] if row["machine"] == "kit-3")
    for table in ("sizes", "lifetimes"):
        of_it = [row for row in found[table] if row["machine"] == "kit-3"]
        assert sum(row["blocks"] for row in of_it) == own["allocations" if table == "sizes" else "frees"]


def test_a_second_run_adds_only_what_is_new_and_a_copy_is_not(journals: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    collect(journals, fleet)
    before = all_rows(fleet)
    planted_fleet.game(journals / "1.1" / "kit-3" / "c.journal", frames=4)
    shutil.copy(journals / "1.0" / "kit-3" / "a.journal", journals / "1.1" / "kit-3" / "a-again.journal")
    done = collect(journals, fleet)
    assert done.stdout.startswith("1 journal added") and "3 there already" in done.stdout
    after = all_rows(fleet)
    assert [row for row in after["frames"] if row["build"] == "1.0"] == before["frames"]
    assert [Path(row["path"]).name for row in after["journals"] if row["build"] == "1.1"] == ["c.journal"]
    assert collect(journals, fleet).stdout.startswith("0 journals added")
    assert all_rows(fleet) == after


def test_a_bad_journal_is_named_and_the_others_are_collected(journals: Path, tmp_path: Path) -> None:
    whole = (journals / "1.0" / "kit-3" / "a.journal").read_text()
    (journals / "1.0" / "kit-3" / "torn.journal").write_text(whole[: len(whole) // 2] + "\nf nonsense")
    (journals / "empty.byj").touch()
    done = collect(journals, tmp_path / "fleet")
    assert done.returncode == 0 and done.stdout.startswith("2 journals added") and "2 left out" in done.stdout
    assert sorted(line.split(":")[0] for line in done.stderr.splitlines()) == ["left out", "left out"]
    assert "torn.journal" in done.stderr and "empty.byj" in done.stderr
    assert len(rows(tmp_path / "fleet", "journals")) == 2


def test_where_no_journal_can_be_read_it_fails(tmp_path: Path) -> None:
    (tmp_path / "journals").mkdir()
    assert "holds no journal" in refusal(collect(tmp_path / "journals", tmp_path / "fleet"))
    (tmp_path / "journals" / "a.byj").write_text("nothing")
    assert "no journal below" in refusal(collect(tmp_path / "journals", tmp_path / "fleet"))


def test_a_run_that_was_killed_within_a_part_leaves_nothing_twice(journals: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    collect(journals, fleet)
    before = all_rows(fleet)
    (committed,) = (fleet / "journals").glob("build=1.0/machine=kit-3/*.parquet")
    committed.unlink()
    partial = fleet / "sites" / "build=1.0" / "machine=kit-3" / "x.parquet.partial"
    partial.write_text("half")
    done = collect(journals, fleet)
    assert done.stdout.startswith("1 journal added")
    assert all_rows(fleet) == before and not partial.exists()


def test_a_damaged_part_is_refused_by_questions_and_put_right_by_collect(journals: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    collect(journals, fleet)
    before = all_rows(fleet)
    (part,) = (fleet / "frames").glob("build=1.0/machine=kit-3/*.parquet")
    part.write_bytes(part.read_bytes()[:-20])
    asked = blockyard("fleet", fleet, "frame")
    assert part.name in sentence(asked)
    done = collect(journals, fleet)
    assert "is damaged" in done.stderr and done.stdout.startswith("1 journal added")
    assert all_rows(fleet) == before


def test_options_name_the_build_and_the_machine(journals: Path, tmp_path: Path) -> None:
    collect(journals / "1.0" / "kit-3", tmp_path / "fleet", "--build", "night 7", "--machine", "kit=3")
    (row,) = rows(tmp_path / "fleet", "journals")
    assert (row["build"], row["machine"]) == ("night-7", "kit-3")


def test_a_folder_of_something_else_and_a_second_collect_are_refused(journals: Path, tmp_path: Path) -> None:
    assert "holds something else" in refusal(collect(journals, journals))
    fleet = tmp_path / "fleet"
    collect(journals, fleet)
    with (fleet / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another collect is working" in refusal(collect(journals, fleet))
