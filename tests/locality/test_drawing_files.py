"""`blockyard locality --draw`: the study's files of another program, such as the C# test, become the same pictures."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from blockyard.commands.locality import command
from blockyard.errors import UserError


def write(folder: Path, stem: str, distances: list[int], ticks: tuple[int, int] = (250, 120)) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{stem}_times.csv").write_text(f"Operation,Ticks\nAllocate,{ticks[0]}\nDeallocate,{ticks[1]}\n")
    (folder / f"{stem}_distances.csv").write_text("Distance\n" + "".join(f"{value}\n" for value in distances))
    counts = "".join(f"{value},{distances.count(value)}\n" for value in sorted(set(distances)))
    (folder / f"{stem}_buckets.csv").write_text("Distance,Count\n" + counts)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    write(folder, "Temp", [0] * 817 + [70_000] + [8] * 181)
    write(folder, "TempJob", [8] * 999)
    write(folder, "Persistent", [28, 44] * 499 + [28], (90_000, 60_000))
    return folder


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_files_of_another_program_become_pictures_and_sentences(files: Path, tmp_path: Path) -> None:
    said = run("--draw", str(files), "-o", str(tmp_path / "pictures"))
    assert re.search(r"temp +25.0 ns +12.0 ns\n", said)
    assert re.search(r"temp +0 bytes until block 819, which jumps by 70,000 bytes; then 8", said)
    assert re.search(r"temp-job +always 8 bytes\n", said)
    assert said.index("temp-job") < said.index("persistent")
    for name in ("times", "distances", "buckets"):
        assert (tmp_path / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / "pictures" / f"{name}.svg").read_text()[:2000]


def test_pictures_may_go_beside_the_files_and_replace_earlier_ones(files: Path) -> None:
    run("--draw", str(files), "-o", str(files))
    run("--draw", str(files), "-o", str(files))
    assert len(list(files.iterdir())) == 9 + 6


def test_a_folder_that_holds_something_else_is_refused(files: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match=r"already holds other files \(thesis\.txt\)"):
        run("--draw", str(files), "-o", str(tmp_path / "theirs"))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("Temp_times.csv", "Operation,Ticks\nAllocate,1\n", "needs a row for Allocate and one for Deallocate"),
        ("Temp_times.csv", "Operation,Ticks\nAllocate,fast\nDeallocate,1\n", "line 2: 'fast' is not 1 whole number"),
        ("Temp_times.csv", "", "does not begin with Operation,Ticks"),
        ("Temp_distances.csv", "Distance\n", "holds no distance"),
        ("Temp_distances.csv", "Distance\n1,2\n", "line 2: '1,2' is not 1 whole number"),
        ("Temp_buckets.csv", "Distance,Count\n0,999\n", "does not count the distances in Temp_distances.csv"),
        ("Temp_buckets.csv", None, "can't be read: No such file"),
    ],
)
def test_a_broken_file_is_one_sentence(
    files: Path, tmp_path: Path, name: str, content: str | None, sentence: str
) -> None:
    if content is None:
        (files / name).unlink()
    else:
        (files / name).write_text(content)
    with pytest.raises(UserError, match=sentence):
        run("--draw", str(files), "-o", str(tmp_path / "pictures"))


def test_a_folder_without_such_files_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no NAME_distances\.csv"):
        run("--draw", str(tmp_path), "-o", str(tmp_path / "pictures"))


def test_what_to_measure_can_not_be_said_beside_it(files: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--draw measures nothing, so --count can't go with it"):
        run("--draw", str(files), "--count", "10", "-o", str(tmp_path / "pictures"))
