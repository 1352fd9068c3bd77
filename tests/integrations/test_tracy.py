"""A program instrumented for Tracy records its frames, zones and blocks, with Tracy itself in it and without."""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import the_command
from integration import Event, crate_source, events_of
from recorded import record

ROOT = Path(__file__).parents[2]
FLAGS = ["-std=c++20", "-O1", "-pthread", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
INCLUDES = [f"-I{ROOT / folder}" for folder in ("library/include", "lab/include", "integrations/tracy")]
#: Tracy without its broadcasts, on loopback, and silent while no profiler is connected.
TRACY = ["-DTRACY_ENABLE", "-DTRACY_NO_BROADCAST", "-DTRACY_ONLY_LOCALHOST", "-DTRACY_ON_DEMAND", "-DTRACY_NO_SAMPLING"]

pytestmark = pytest.mark.slow


def compiled(*arguments: object) -> None:
    launcher = ["ccache"] if shutil.which("ccache") else []
    line = [*launcher, "g++", *map(str, arguments)]
    environment = {**os.environ, "CCACHE_NOHASHDIR": "1"}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Traced:
    """What was recorded: of malloc, and of what the program announced to Tracy."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.announced = folder / "announced.byj"
        done = record(folder / "malloc.byj", str(program), BLOCKYARD_TRACY_JOURNAL=str(self.announced))
        self.count = int(done.stdout)
        self.summary = done.stderr
        self.events: list[Event] = events_of(self.announced)


@pytest.fixture(scope="module", params=["with Tracy", "without Tracy"])
def traced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("tracy")
    source = crate_source(folder, "tracy-client-sys", "0.30.1") / "tracy"
    program, objects, flags = folder / "game", [], []
    if request.param == "with Tracy":
        flags, objects = TRACY, [folder / "client.o"]
        # As it is compiled by those who use it: its warnings are not ours.
        compiled("-std=c++20", "-w", *TRACY, "-c", source / "TracyClient.cpp", "-o", objects[0])
    example = ROOT / "integrations" / "tracy" / "example.cpp"
    compiled(*FLAGS, *flags, *INCLUDES, "-isystem", source, "-c", example, "-o", folder / "game.o")
    compiled("-pthread", folder / "game.o", *objects, "-ldl", "-o", program)
    return Traced(folder, program)


def test_everything_that_was_announced_is_recorded_and_ends(traced: Traced) -> None:
    kinds = Counter(event.kind for event in traced.events)
    assert traced.count >= 15
    assert (kinds["allocate"], kinds["free"]) == (traced.count, traced.count)


def test_zones_are_tags_and_the_name_of_a_pool_is_the_last(traced: Traced) -> None:
    tags = {event.size: set[str]() for event in traced.events if event.kind == "allocate"}
    for event in traced.events:
        if event.kind == "allocate":
            tags[event.size].add(event.tag)
    assert tags[1234] == {"physics"}
    assert tags[2345] == {"physics/solver"}
    assert tags[4096] == {f"draw/pass {frame}/shaders" for frame in range(3)}
    assert tags[512] == {f"draw/pass {frame}/network" for frame in range(3)}


MANY_POOLS = """
#include "blockyard_tracy.hpp"
static char names[300][8], memory[16];
int main() {
  for (int i = 0; i < 300; ++i) {
    std::snprintf(names[i], sizeof names[i], "pool%d", i);
    TracyAllocN(memory, 100 + i, names[i]);
  }
  for (int i = 0; i < 300; ++i) TracyFreeN(memory, names[i]);
  std::puts("0");
}
"""


def test_no_two_pools_are_taken_for_one_and_those_that_find_no_number_are_left_out(tmp_path: Path) -> None:
    source = crate_source(tmp_path, "tracy-client-sys", "0.30.1") / "tracy"
    (tmp_path / "pools.cpp").write_text(MANY_POOLS)
    program = tmp_path / "pools"
    compiled(*FLAGS, *INCLUDES, "-isystem", source, tmp_path / "pools.cpp", "-o", program)
    traced = Traced(tmp_path, program)
    allocated = [(event.size, event.tag, event.block) for event in traced.events if event.kind == "allocate"]
    assert [(size, tag) for size, tag, _ in allocated] == [(100 + i, f"pool{i}") for i in range(255)]
    assert Counter(event.block for event in traced.events if event.kind == "free") == Counter(
        block for *_, block in allocated
    )
    assert traced.summary.count("of more than 255 pools, the first 255 are recorded") == 1


def test_frames_are_those_of_framemark_alone(traced: Traced) -> None:
    assert sum(event.kind == "frame" for event in traced.events) == 3


def test_a_free_that_matches_nothing_is_counted_and_shown(traced: Traced) -> None:
    assert "1 free " in traced.summary
    shown = the_command.blockyard("info", traced.announced).stderr
    assert "1 free matches no block and is left out" in shown


def test_without_a_recorder_the_program_runs_and_writes_nothing(traced: Traced, tmp_path: Path) -> None:
    program = traced.announced.parent / "game"
    done = subprocess.run([program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == traced.count
    assert list(tmp_path.iterdir()) == []
