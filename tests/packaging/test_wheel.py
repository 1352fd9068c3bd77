"""`pip install .` gives a blockyard that works from any folder, native parts included."""

import os
import platform
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

#: Each builds the whole project anew.
pytestmark = [pytest.mark.timeout(1500), pytest.mark.slow]

ROOT = Path(__file__).parents[2]
JOURNAL = "".join(
    f"a {16 + number % 400} {4096 * number + 4096:x} 1 {1000 * number}\n" for number in range(200)
) + "".join(f"f {4096 * number + 4096:x} 1 {1000 * (200 + number)}\n" for number in range(200))


def environment() -> dict[str, str]:
    """The user's, without what would lead the installed package back to this checkout."""
    hidden = {"BLOCKYARD_BUILD", "PYTHONPATH", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name not in hidden}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=cwd, timeout=1500)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(ROOT / "scripts" / "build-wheel", folder, cwd=folder)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def blockyard(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in a fresh virtual environment outside of the tree, with the dependencies that the wheel names."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "bin" / "blockyard"


def test_the_wheel_serves_every_python_3_and_names_its_platform(wheel: Path) -> None:
    glibc = os.confstr("CS_GNU_LIBC_VERSION").removeprefix("glibc ").replace(".", "_")
    assert f"-py3-none-manylinux_{glibc}_{platform.machine()}" in wheel.name


def test_auditwheel_finds_nothing_that_the_wheels_tag_does_not_promise(wheel: Path, tmp_path: Path) -> None:
    said = run(sys.executable, "-m", "auditwheel", "show", wheel, cwd=tmp_path)
    name = re.compile(r"manylinux_(\d+)_(\d+)_")
    needed = name.search(said.split("following platform tag", 1)[1])
    stated = name.search(wheel.name)
    assert needed and stated
    assert tuple(map(int, needed.groups())) <= tuple(map(int, stated.groups()))


def test_the_wheel_holds_every_native_part_and_every_adapter(wheel: Path) -> None:
    names = {Path(name).name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("blockyard/native/")}
    assert {
        "blockyard-journal",
        "blockyard-replay",
        "blockyard-attach",
        "blockyard-collect",
        "blockyard-probe",
        "libblockyard-record.so",
        "libblockyard-samples.so",
        "libblockyard-malloc.so",
        "allocators.toml",
        "run_options.def",
    } <= names
    adapters = {path.stem for path in (ROOT / "lab" / "adapters").glob("*.cpp")} - {"probe"}
    adapters |= {path.parent.name for path in (ROOT / "lab" / "adapters" / "crates").glob("*/Cargo.toml")} - {
        "support",
        "lock",
    }
    for adapter in adapters:
        file = f"blockyard-adapter-{adapter}.so"
        assert file in names or f"{file}.missing" in names


def test_the_wheel_holds_what_the_reports_page_carries_with_its_licence(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("blockyard/native/page/")}
    assert {"blockyard/native/page/uPlot.iife.min.js", "blockyard/native/page/uPlot.LICENSE"} <= names
    assert "blockyard/native/page/missing.txt" not in names


def test_the_wheel_holds_no_tests_and_no_build_leftovers(wheel: Path) -> None:
    for name in zipfile.ZipFile(wheel).namelist():
        assert name.startswith("blockyard"), name
        assert not name.endswith((".a", ".o", ".log", ".rs", ".pyc")), name


def test_help_lists_the_verbs(blockyard: Path, tmp_path: Path) -> None:
    words = run(blockyard, "--help", cwd=tmp_path).split()
    for verb in sorted(path.stem for path in (ROOT / "lab" / "python" / "blockyard" / "commands").glob("[a-z]*.py")):
        assert verb.replace("_", "-") in words


def test_version_says_what_the_wheel_carries(blockyard: Path, tmp_path: Path) -> None:
    said = run(blockyard, "--version", cwd=tmp_path)
    assert str(blockyard.parents[1]) in re.search("native parts +(.*)", said)[1]
    assert "missing" not in said
    assert {"blockyard", "glibc", "jemalloc"} <= set(re.search("adapters +(.*)", said)[1].split(", "))


@pytest.mark.parametrize("part", ["malloc", "record", "replay"])
def test_path_leads_into_the_installed_package(blockyard: Path, tmp_path: Path, part: str) -> None:
    path = Path(run(blockyard, "path", part, cwd=tmp_path).strip())
    assert path.is_file()
    assert path.is_relative_to(blockyard.parents[1])


def test_allocators_can_be_had_from_any_folder(blockyard: Path, tmp_path: Path) -> None:
    listing = run(blockyard, "allocators", cwd=tmp_path)
    glibc = os.confstr("CS_GNU_LIBC_VERSION").removeprefix("glibc ")
    assert any(line.split()[:2] == ["glibc", glibc] for line in listing.splitlines())


def test_a_journal_is_replayed_and_reported_from_any_folder(blockyard: Path, tmp_path: Path) -> None:
    (tmp_path / "tiny.txt").write_text(JOURNAL)
    run(
        blockyard,
        "replay",
        "tiny.txt",
        "-a",
        "glibc,null",
        "--repeats",
        "1",
        "--pace",
        "max",
        "-o",
        "results",
        cwd=tmp_path,
    )
    assert len(list((tmp_path / "results" / "runs").rglob("samples.npy"))) == 2
    assert "glibc" in run(blockyard, "report", "results", "--html", cwd=tmp_path)
    assert (tmp_path / "results" / "report" / "report.html").stat().st_size > 50_000
