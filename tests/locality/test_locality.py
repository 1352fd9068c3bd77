"""`blockyard locality`: files as the study wrote them, and placements that are facts of our design."""

import csv
import resource
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.backends.backend_agg import FigureCanvasAgg
from the_command import blockyard, sentence

from blockyard import native
from blockyard.commands.locality import command
from blockyard.errors import UserError
from blockyard.locality import pictures, tables
from blockyard.locality.measure import Measured, Test

pytestmark = pytest.mark.skipif(
    native.find("blockyard-locality") is None,
    reason="SKIPPED: blockyard-locality was not built, nothing of it was tested",
)


def run(folder: Path, *arguments: str) -> str:
    done = CliRunner().invoke(command, [*arguments, "-o", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("study")
    return folder, run(folder, "-a", "temp,temp-job,persistent,block,glibc", "--preset", "study", "--repeats", "2")


@pytest.mark.parametrize("name", ["Temp", "TempJob", "Persistent", "Block", "glibc"])
def test_each_allocator_has_the_studys_three_files(study: tuple[Path, str], name: str) -> None:
    times = rows(study[0] / f"{name}_times.csv")
    assert times[0] == ["Operation", "Ticks"]
    assert [line[0] for line in times[1:]] == ["Allocate", "Deallocate"]
    assert all(int(line[1]) >= 0 for line in times[1:])
    apart = rows(study[0] / f"{name}_distances.csv")
    assert apart[0] == ["Distance"]
    assert len(apart) == 1000
    buckets = rows(study[0] / f"{name}_buckets.csv")
    assert buckets[0] == ["Distance", "Count"]
    assert sum(int(line[1]) for line in buckets[1:]) == 999


def test_temp_is_constant_until_it_is_full_then_jumps_once_and_goes_on_as_temp_job(study: tuple[Path, str]) -> None:
    temp = [int(line[0]) for line in rows(study[0] / "Temp_distances.csv")[1:]]
    job = [int(line[0]) for line in rows(study[0] / "TempJob_distances.csv")[1:]]
    # Distance 817 lies between the blocks 818 and 819, counted from 1.
    assert set(temp[:817]) == {0}
    assert abs(temp[817]) > 4096
    assert set(temp[818:]) == {8}
    assert set(job) == {8}


@pytest.mark.parametrize("name", ["Persistent", "glibc"])
def test_a_heap_that_has_been_in_use_scatters_persistent_blocks(study: tuple[Path, str], name: str) -> None:
    assert len(rows(study[0] / f"{name}_buckets.csv")) > 50


def test_a_fresh_heap_does_not(tmp_path: Path) -> None:
    run(tmp_path, "-a", "persistent", "--repeats", "1")
    assert rows(tmp_path / "Persistent_buckets.csv")[1:] == [["12", "999"]]


def test_the_table_names_the_jump_and_the_studys_ratios(study: tuple[Path, str]) -> None:
    said = " ".join(study[1].split())
    assert "temp 0 bytes until block 819, which jumps by" in said and "temp-job always 8 bytes" in said
    assert "persistent / temp-job, allocate 5.00 " in said and "temp-job / temp, free 5.00 " in said


def test_the_table_fits_80_columns(study: tuple[Path, str]) -> None:
    table = study[1].split("Distances, in the order")[0]
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize("picture", ["times", "distances", "buckets"])
def test_pictures_are_written_as_png_and_svg(study: tuple[Path, str], picture: str) -> None:
    assert (study[0] / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (study[0] / f"{picture}.svg").read_text()[:2000]


def test_without_a_small_region_temp_never_jumps(tmp_path: Path) -> None:
    run(tmp_path, "-a", "temp", "--repeats", "1", "--count", "2000", "--size", "16", "--align", "16")
    assert rows(tmp_path / "Temp_buckets.csv")[1:] == [["0", "1999"]]


def full(folder: Path, *arguments: str) -> str:
    """Runs it where no file can grow beyond 20 KB, as no picture fits on a disk that is nearly full: what it says."""
    limited = ("prlimit", "--fsize=20000:20000")
    return sentence(blockyard("locality", *arguments, "-o", folder, under=limited))


def test_a_full_disk_leaves_nothing_that_a_second_call_refuses(tmp_path: Path) -> None:
    arguments = "-a", "block", "--repeats", "1"
    assert str(tmp_path) in full(tmp_path / "result", *arguments)
    assert not (tmp_path / "result").exists()
    run(tmp_path / "result", *arguments)


def test_a_full_disk_leaves_an_earlier_result_as_it_was(tmp_path: Path) -> None:
    run(tmp_path, "-a", "block", "--repeats", "1")
    (tmp_path / "my notes").write_text("precious")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for arguments in (("-a", "temp", "--repeats", "1"), ("--draw", str(tmp_path))):
        assert "what is there is as it was" in full(tmp_path, *arguments)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_a_killed_call_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".locality.partial").mkdir()
    (tmp_path / ".locality.partial" / "times.png").write_text("half")
    run(tmp_path, "-a", "block", "--repeats", "1")
    assert not (tmp_path / ".locality.partial").exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--align", "12"), "--align 12 is not a power of two"),
        (("-a", "temp-job", "--temp-region", "4096"), "--temp-region is the size of temp's region, and temp is not"),
        (("-a", f"temp,Temp={native.find('libblockyard-malloc.so')}"), "Temp is what the files of temp are called"),
        (
            ("-a", "tmep"),
            r"there is no allocator 'tmep' \(there are temp, temp-job, persistent, block, null, glibc,.*, all\): "
            r"did you mean temp\?",
        ),
        *(
            (("--preset", "study", *beside), f"--preset sets {beside[0]} itself")
            for beside in (("--count", "9"), ("--size", "8"), ("--align", "8"), ("--temp-region", "64"), ("--aged",))
        ),
    ],
)
def test_a_wrong_request_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        CliRunner().invoke(command, [*arguments, "-o", str(tmp_path / "x")], catch_exceptions=False)
    assert not (tmp_path / "x").exists()


def test_a_folder_that_holds_something_else_is_refused_and_an_earlier_result_is_replaced(tmp_path: Path) -> None:
    run(tmp_path / "ours", "-a", "temp", "--repeats", "1")
    run(tmp_path / "ours", "-a", "temp", "--repeats", "1")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match="thesis"):
        CliRunner().invoke(command, ["-a", "temp", "-o", str(tmp_path / "theirs")], catch_exceptions=False)
    with pytest.raises(UserError, match="is a file; -o needs a folder"):
        CliRunner().invoke(command, ["-a", "temp", "-o", str(tmp_path / "theirs/thesis.txt")], catch_exceptions=False)
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["thesis.txt"]


def test_an_earlier_results_files_do_not_stay_beside_the_new_ones(tmp_path: Path) -> None:
    run(tmp_path, "-a", "temp,glibc", "--repeats", "1")
    run(tmp_path, "-a", "glibc,temp-job", "--repeats", "1")
    assert {path.name.split("_")[0] for path in tmp_path.glob("*_*.csv")} == {"glibc", "TempJob"}


def test_an_allocator_that_cannot_be_measured_is_left_out_and_the_others_are_shown(tmp_path: Path) -> None:
    # tlsf wants a pool of twice the blocks.
    large = ("--count", "1200", "--size", str(1 << 20), "--repeats", "2")
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, limit[1]))
    try:
        text = run(tmp_path / "some", "-a", "glibc,tlsf", *large)
        with pytest.raises(UserError, match="tlsf: "):
            CliRunner().invoke(command, ["-a", "tlsf", *large, "-o", str(tmp_path / "none")], catch_exceptions=False)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    assert "tlsf is left out: " in text
    assert {path.name.split("_")[0] for path in (tmp_path / "some").glob("*_*.csv")} == {"glibc"}


def test_an_empty_folder_name_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["-a", "temp", "-o", ""])
    assert done.exit_code == 2
    assert "the folder's name is empty" in done.output
    assert list(tmp_path.iterdir()) == []


def measured(addresses: list[int]) -> Measured:
    return Measured("1", 1000.0, 500.0, np.array([800.0, 900.0, 2000.0]), np.array([400.0]), np.array(addresses))


def test_a_row_counts_distances_lines_and_pages() -> None:
    found = tables.row("some", [measured([0, 8, 16, 4096 + 60])], Test(4, 8, 4, None))
    assert (found.common_distance, found.distinct) == (0, 2)
    assert found.common_share == pytest.approx(2 / 3)
    # Four blocks lie in line 0 and, the last one astride, in two lines of the second page.
    assert (found.lines, found.pages) == (750, 500)
    assert (found.allocate_cold, found.allocate_warm) == (250, 225)


def test_lines_and_pages_of_many_large_blocks_in_any_order_are_counted() -> None:
    size, count = 1 << 20, 200_000
    addresses = np.random.default_rng(1).permutation(count) * (size + 64) + 64
    found = tables.row("some", [measured(addresses.tolist())], Test(count, size, 4, None))
    assert found.lines == 1000 * size / 64
    # The gaps of a line are smaller than a page, so that every page from the first to the last is touched.
    last = count * (size + 64) - 1
    assert found.pages == pytest.approx((last // 4096 + 1) * 1000 / count)


def test_a_placement_without_a_pattern_is_said_as_a_share() -> None:
    assert tables.placement(np.array([3, 9, 3, -40, 7])) == "3 bytes for 40%, 4 distances"


def test_no_distance_is_called_common_where_none_is() -> None:
    scattered = np.arange(400) ** 2
    assert tables.placement(scattered) == "scattered: 400 distances, none of them for 1 % of the blocks"
    found = tables.row("some", [measured(list(np.cumsum(scattered)))], Test(400, 8, 4, None))
    assert tables.shown([found]).rows[0].cells[4:6] == [None, None]


def test_labels_of_far_jumps_stay_short() -> None:
    assert [pictures._short(apart) for apart in (-24_580, 9_999_999, -(1177 << 20), 130 << 30)] == [
        "-24,580",
        "9,999,999",
        "-1,177 MiB",
        "130 GiB",
    ]


@pytest.mark.parametrize("reach", [40, 9_000_000, 12_000_000, 3 << 30, 70 << 40])
def test_an_axis_of_distances_has_short_labels_and_its_name_stands_beside_them_on_the_page(reach: int) -> None:
    apart = np.random.default_rng(1).integers(-reach, reach, 999)
    addresses = np.cumsum(np.append(reach * 1000, apart)).tolist()
    page = pictures._distances({name: [measured(addresses)] for name in "abcd"}, Test(1000, 0, 4, None))
    pen = FigureCanvasAgg(page).get_renderer()
    page.draw(pen)
    for axis in page.axes:
        name = axis.yaxis.label.get_window_extent(pen)
        assert name.x0 >= 0
        low, high = axis.get_ylim()
        ticks = zip(axis.get_yticks(), axis.get_yticklabels(), strict=True)
        labels = [label.get_window_extent(pen) for at, label in ticks if low <= at <= high]
        assert max(label.width for label in labels) < 115
        assert name.x1 <= min(label.x0 for label in labels)
