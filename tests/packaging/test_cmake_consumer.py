"""Another project can use the library without what the lab needs: by find_package, by pkg-config, or as a folder of its
own tree, which may be fetched."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Each builds the whole project anew.
pytestmark = [pytest.mark.timeout(1500), pytest.mark.slow]

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("BLOCKYARD_BUILD") or ROOT / "build" / "release")
HERE = Path(__file__).parent


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=600)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--component", "library", "--prefix", prefix)
    return prefix


def test_find_package_gives_static_and_shared_libraries_that_allocate(installed: Path, tmp_path: Path) -> None:
    run("cmake", "-S", HERE / "consumer", "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path)
    for kind in ("static", "shared", "blockyard"):
        assert run(tmp_path / f"consumer-{kind}") == "a block of 100 bytes\n"


def pkg_config(installed: Path, *arguments: str) -> list[str]:
    [folder] = {path.parent for path in installed.rglob("*.pc")}
    return run("pkg-config", *arguments, env={"PKG_CONFIG_PATH": str(folder)}).split()


@pytest.mark.parametrize("kind", ["static", "shared"])
def test_pkg_config_gives_a_c_program_either_library(installed: Path, tmp_path: Path, kind: str) -> None:
    flags = pkg_config(installed, "--cflags", "--libs", *(["--static"] if kind == "static" else []), "blockyard")
    if kind == "static":
        flags = [flag.replace("-lblockyard", "-l:libblockyard.a") for flag in flags]
    [library] = installed.rglob("libblockyard.so")
    program = tmp_path / "consumer"
    run("cc", HERE / "consumer" / "main.c", *flags, f"-Wl,-rpath,{library.parent}", "-o", program)
    assert run(program) == "a block of 100 bytes\n"
    assert ("libblockyard.so" in run("readelf", "-d", program)) == (kind == "shared")


def test_pkg_config_puts_the_heap_in_the_place_of_malloc(installed: Path, tmp_path: Path) -> None:
    flags = pkg_config(installed, "--cflags", "--libs", "blockyard-malloc")
    [library] = installed.rglob("libblockyard-malloc.so")
    program = tmp_path / "consumer"
    run("c++", "-std=c++20", HERE / "consumer" / "malloc.cpp", *flags, f"-Wl,-rpath,{library.parent}", "-o", program)
    said = run(program).splitlines()
    assert said[-1] == "the heap is sound"
    assert all(line.endswith("on the heap") for line in said[:-1])


def test_pkg_configs_paths_move_with_the_folder(installed: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(installed, moved, symlinks=True)
    [include] = pkg_config(moved, "--cflags-only-I", "blockyard")
    assert (Path(include.removeprefix("-I")) / "blockyard" / "heap.h").is_file()
    assert Path(include.removeprefix("-I")).resolve().is_relative_to(moved)


@pytest.mark.parametrize("standard", ["c99", "c17"])
def test_every_c_header_compiles_by_itself_in_c(installed: Path, standard: str) -> None:
    headers = sorted((installed / "include" / "blockyard").glob("*.h"))
    assert headers
    for header in headers:
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        include = f"-I{installed / 'include'}"
        run("cc", f"-std={standard}", *warnings, include, "-fsyntax-only", "-x", "c", header)


def test_a_program_that_links_blockyard_malloc_has_the_heap_in_the_place_of_malloc(
    installed: Path, tmp_path: Path
) -> None:
    run("cmake", "-S", HERE / "consumer", "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path, "--target", "consumer-malloc")
    assert run(tmp_path / "consumer-malloc").splitlines() == [
        "malloc: on the heap",
        "calloc: on the heap",
        "realloc: on the heap",
        "aligned_alloc: on the heap",
        "new: on the heap",
        "new[]: on the heap",
        "strdup, from inside the C library: on the heap",
        "a thread: on the heap",
        "the heap is sound",
    ]


def test_a_program_that_links_blockyard_malloc_may_have_operators_of_its_own(installed: Path, tmp_path: Path) -> None:
    run("cmake", "-S", HERE / "consumer", "-B", tmp_path, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}")
    run("cmake", "--build", tmp_path, "--target", "consumer-replaced")
    assert run(tmp_path / "consumer-replaced") == "1 made, 1 gone\n"


def test_the_installed_headers_are_all_that_the_sources_have(installed: Path) -> None:
    there = {
        path.relative_to(headers)
        for headers in (ROOT / "library/include/blockyard", ROOT / "lab/include/blockyard")
        for path in headers.rglob("*.h*")
    }
    assert {path.relative_to(installed / "include" / "blockyard") for path in installed.rglob("*.h*")} == there


def test_an_installed_library_records_an_engines_own_blocks(installed: Path, tmp_path: Path) -> None:
    source = tmp_path / "engine.c"
    source.write_text("""
#include <blockyard/journal.h>
#include <stdlib.h>
int main(void) {
  by_journal_open("engine.byj");
  void *block = malloc(64);
  by_journal_alloc(block, 64, 16);
  by_journal_free(block);
  free(block);
  return 0;
}
""")
    [library] = installed.rglob("libblockyard-record.so")
    run("cc", source, f"-I{installed / 'include'}", library, f"-Wl,-rpath,{library.parent}", "-o", tmp_path / "engine")
    subprocess.run([tmp_path / "engine"], cwd=tmp_path, check=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "engine.byj").exists():
        assert time.monotonic() < deadline, "no journal was written"
        time.sleep(0.05)


@pytest.fixture
def beside_release() -> Iterator[Path]:
    """A build folder that only this test has, as deep in the tree as build/release, so that ccache has the objects."""
    with tempfile.TemporaryDirectory(prefix="subproject-", dir=ROOT / "build") as folder:
        yield Path(folder)


def test_add_subdirectory_gives_a_library_that_allocates_and_asks_for_nothing_of_the_lab(
    beside_release: Path, tmp_path: Path
) -> None:
    build = beside_release
    # pkg-config finds nothing at all here, as on a machine that never heard of the lab.
    run(
        "cmake",
        "-S",
        HERE / "subproject",
        "-B",
        build,
        "-G",
        "Ninja",
        f"-DBLOCKYARD_SOURCE={ROOT}",
        "-DBLOCKYARD_WERROR=ON",
        env={"PKG_CONFIG_LIBDIR": str(tmp_path / "nothing"), "PKG_CONFIG_PATH": ""},
    )
    sought = [
        line.split(":")[0].lower()
        for line in (build / "CMakeCache.txt").read_text().splitlines()
        if not line.startswith(("#", "//"))
    ]
    for dependency in ("zstd", "xxhash", "cli11", "nlohmann", "gtest", "blockyard_cargo"):
        assert [name for name in sought if dependency in name] == []
    targets = run("cmake", "--build", build, "--target", "help")
    for target in ("blockyard-replay", "blockyard-journal", "blockyard-adapter-glibc", "blockyard_record"):
        assert target not in targets
    run("cmake", "--build", build)
    assert run(build / "subproject") == "42\n"


def test_fetch_content_takes_the_library_from_a_clone(beside_release: Path, tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("NOT TESTED: the tree is no clone")
    commit = run("git", "-C", ROOT, "rev-parse", "HEAD").strip()
    run("git", "clone", "--quiet", "--no-checkout", ROOT, tmp_path / "clone")
    run(
        "cmake",
        "-S",
        HERE / "fetched",
        "-B",
        beside_release,
        "-G",
        "Ninja",
        f"-DBLOCKYARD_CLONE={tmp_path / 'clone'}",
        f"-DBLOCKYARD_COMMIT={commit}",
    )
    run("cmake", "--build", beside_release, "--target", "fetched-static", "fetched-shared")
    for kind in ("static", "shared"):
        assert run(beside_release / f"fetched-{kind}") == "a block of 100 bytes\n"
