"""A program on Blockyard can be recorded: blocks of temp, temp job and pools stand in its journal."""

import pytest
from recorded import BUILD, Journal, record


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    program = BUILD / "tests" / "lifetime" / "lifetime_recorded_program"
    assert program.is_file(), f"{program} is missing: build with BLOCKYARD_TESTS=ON"
    done = record(tmp_path_factory.mktemp("recorded") / "program.byj", str(program))
    assert done.exit_code == 0, done.stderr
    return done.journal()


def test_temp_blocks_are_recorded_and_end_with_their_frame(journal: Journal) -> None:
    assert (len(journal.of_size(7001)), journal.frees_of(7001)) == (30, 30)


def test_temp_job_blocks_are_recorded(journal: Journal) -> None:
    assert (len(journal.of_size(7003)), journal.frees_of(7003)) == (15, 15)


def test_blocks_of_a_pool_are_recorded_and_end_with_the_pool(journal: Journal) -> None:
    [size] = {event.size for event in journal.events if 7004 <= event.size <= 8192 and event.kind != "free"}
    assert (len(journal.of_size(size)), journal.frees_of(size)) == (4, 4)


def test_a_programs_frame_is_marked_once(journal: Journal) -> None:
    assert journal.count("frame") == 3
