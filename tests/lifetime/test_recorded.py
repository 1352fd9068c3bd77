"""A program on Blockyard can be recorded: blocks of temp, temp job and pools stand in its journal."""

from pathlib import Path

import pytest
from recorded import BUILD, Journal, record


def recorded(folder: Path, **environment: str) -> Journal:
    program = BUILD / "tests" / "lifetime" / "lifetime_recorded_program"
    assert program.is_file(), f"{program} is missing: build with BLOCKYARD_TESTS=ON"
    done = record(folder / "program.byj", str(program), **environment)
    assert done.exit_code == 0, done.stderr
    return done.journal()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    return recorded(tmp_path_factory.mktemp("recorded"))


def test_temp_blocks_are_recorded_and_end_with_their_frame(journal: Journal) -> None:
    assert (len(journal.of_size(7001)), journal.frees_of(7001)) == (30, 30)


def test_temp_job_blocks_are_recorded(journal: Journal) -> None:
    assert (len(journal.of_size(7003)), journal.frees_of(7003)) == (15, 15)


def test_blocks_of_a_pool_are_recorded_and_end_with_the_pool(journal: Journal) -> None:
    [size] = {event.size for event in journal.events if 7004 <= event.size <= 8192 and event.kind != "free"}
    assert (len(journal.of_size(size)), journal.frees_of(size)) == (4, 4)


def test_a_programs_frame_is_marked_once(journal: Journal) -> None:
    assert journal.count("frame") == 3


def test_a_setting_leaves_the_blocks_out_and_keeps_the_frames(tmp_path: Path) -> None:
    journal = recorded(tmp_path, BLOCKYARD_OBSERVED="0")
    assert [event for event in journal.events if 7000 < event.size <= 8192] == []
    assert journal.count("frame") == 3
