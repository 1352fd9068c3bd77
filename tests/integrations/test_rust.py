"""The crate `blockyard` is the allocator of a program, marks its frames, and builds from what it packs alone."""

import os
import re
import shutil
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from integration import Heard, listened
from recorded import BUILD

CRATE = Path(__file__).parents[2] / "integrations" / "rust"
TARGET = BUILD / "integrations" / "cargo"
#: A debug build, without what only a debugger reads.
SETTINGS = {"CARGO_TARGET_DIR": str(TARGET), "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_TERM_COLOR": "never"}
LIBRARY = {"BLOCKYARD_LIB_DIR": str(BUILD / "library")}
#: The adapter, and the library's own first block.
ON_THE_HEAP = re.compile(r"blockyard.*Heap as .*GlobalAlloc|^by_lifetime_prepare$")
#: What the standard library takes from the system allocator, whatever the program's is: the handle of a thread.
BY_DESIGN = re.compile(r"std::thread::thread::Thread>::new$")

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]


def cargo(*arguments: object, folder: Path = CRATE, **environment: str) -> str:
    if shutil.which("cargo") is None:
        pytest.skip("NOT TESTED: the crate blockyard; install cargo")
    command = ["cargo", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **SETTINGS, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    cargo("build", "--quiet", "--example", "frames", **LIBRARY)
    return listened(tmp_path_factory.mktemp("rust") / "frames.byj", TARGET / "debug" / "examples" / "frames")


@pytest.fixture(scope="module")
def bevy(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    cargo("build", "--quiet", "--package", "blockyard-bevy-example", **LIBRARY)
    return listened(tmp_path_factory.mktemp("bevy") / "bevy.byj", TARGET / "debug" / "blockyard-bevy-example")


def not_on_the_heap(heard: Heard, program: str) -> list[str]:
    """Who in the program's own code got a block from another malloc against its will."""
    found = []
    for event in heard.events:
        names = [name for frame in event.stack if frame.module == program for name in frame.functions]
        # The C library allocates for a thread that starts, below the function that starts it.
        is_direct = event.kind == "allocate" and event.stack and event.stack[0].module == program
        if is_direct and not any(ON_THE_HEAP.search(name) for name in names) and not BY_DESIGN.search(names[0]):
            found.append(" < ".join(names))
    return found


def test_its_own_tests_and_what_its_documents_show_pass() -> None:
    cargo("test", "--quiet", "--package", "blockyard", **LIBRARY)


def test_everything_that_the_program_allocates_is_on_the_heap(frames: Heard) -> None:
    assert not_on_the_heap(frames, "frames") == []
    sizes = Counter(event.size for event in frames.events if event.kind == "allocate")
    assert (sizes[1234], sizes[192], sizes[4321]) == (300, 3, 3)


def test_tags_follow_scopes_and_go_to_other_threads(frames: Heard) -> None:
    tags = {(event.size, event.tag) for event in frames.events if event.size in (1234, 192, 4321)}
    assert tags == {(1234, "physics"), (192, "physics/solver"), (4321, "physics")}
    assert not set(frames.live("physics")) & {1234, 192, 4321}


def test_a_panic_ends_the_tags_that_it_passes(frames: Heard) -> None:
    tags = [(event.size, event.tag) for event in frames.events if event.size in (2345, 3456)]
    assert tags == [(2345, "ai/path"), (3456, "")]


def test_frames_and_phases_are_marked(frames: Heard) -> None:
    assert [event.kind for event in frames.events].count("frame") == 3
    assert [event.tag for event in frames.events if event.kind == "phase"] == ["level 1"]


def test_a_game_of_bevy_is_on_the_heap_with_its_systems_as_tags(bevy: Heard) -> None:
    assert not_on_the_heap(bevy, "blockyard-bevy-example") == []
    counts = Counter(event.tag for event in bevy.events if event.kind == "allocate")
    assert counts["loading"] >= 1000 and counts["trails"] > 1000 and counts["spawning"] >= 200
    assert [event.kind for event in bevy.events].count("frame") == 10


def test_the_packed_crate_can_be_published_and_builds_by_itself(tmp_path: Path) -> None:
    of_the_crate = ("--no-verify", "--allow-dirty", "--package", "blockyard")
    assert "aborting upload due to dry run" in cargo("publish", "--dry-run", *of_the_crate)
    cargo("package", *of_the_crate)
    [packed] = (TARGET / "package").glob("blockyard-*.crate")
    with tarfile.open(packed) as crate:
        crate.extractall(tmp_path)
    [folder] = tmp_path.iterdir()
    # From its sources, where nothing of this tree is beside it.
    compilers = {"CC": "ccache cc", "CXX": "ccache c++"} if shutil.which("ccache") else {}
    paths = {"CARGO_TARGET_DIR": str(tmp_path / "target"), "CCACHE_BASEDIR": str(tmp_path), "CCACHE_NOHASHDIR": "1"}
    cargo("build", "--quiet", "--locked", "--example", "frames", folder=folder, **compilers, **paths)
    subprocess.run([tmp_path / "target" / "debug" / "examples" / "frames"], check=True)
