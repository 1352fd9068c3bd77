"""Logs that real tools write of a program made here, and logs of every form made of a game's recording, become what the
program did."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from blockyard import native

ROOT = Path(__file__).parents[2]

PROGRAM = r"""
#include <malloc.h>
#include <mcheck.h>
#include <pthread.h>
#include <stdlib.h>
static void *work(void *blocks) {
  for (int i = 0; i < 1000; ++i) ((void **)blocks)[i] = realloc(malloc(i + 1), 5000 + i);
  for (int i = 0; i < 1000; ++i) free(((void **)blocks)[i]);
  return 0;
}
int main(int count, char **arguments) {
  static void *blocks[4][1000];
  pthread_t threads[4];
  free(malloc(1));
  void *before = malloc(77);
  mtrace();
  void *zeroed = calloc(3, 5), *aligned = memalign(64, 10);
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], 0, work, blocks[i]);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], 0);
  free(before);
  free(zeroed);
  free(aligned);
  void *volatile failed = malloc((size_t)-4096 * (count > 0));
  free(failed);
  free(malloc(123456));
  muntrace();
  return arguments[0] == 0;
}
"""


def tool(*arguments: object) -> dict:
    done = subprocess.run(
        [native.path("blockyard-journal"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(
        ["cc", "-O1", "-g", "-fno-builtin", "-w", "program.c", "-o", "program", "-pthread"], cwd=folder, check=True
    )
    return folder / "program"


def test_a_real_mtrace_log_becomes_what_the_program_did(program: Path) -> None:
    log = program.parent / "mtrace.log"
    subprocess.run(
        [program], env={"MALLOC_TRACE": str(log), "LD_PRELOAD": "libc_malloc_debug.so.0"}, timeout=60, check=True
    )
    journal = program.parent / "mtrace.byj"
    tool("convert", log, "-o", journal, "--force")
    tool("check", journal)
    facts = tool("info", journal)
    assert facts["kinds"]["reallocate"] == 4000
    assert facts["sizes"]["largest"] == 123456
    # What else allocates is the C library: threads, and the log itself.
    assert 4003 <= facts["kinds"]["allocate"] <= 4050
    assert not facts["paced"] and not facts["threads_known"]
    assert "1 call that failed was left out" in facts["repairs"]
    assert any("1 free or realloc names a block whose allocation is missing" in one for one in facts["repairs"])
    assert facts["stacks"]["modules"] >= 1


def test_a_real_heaptrack_recording_becomes_what_the_program_did_in_both_its_forms(program: Path) -> None:
    if shutil.which("heaptrack") is None:
        pytest.skip("NOT TESTED: heaptrack is not installed (apt-get install heaptrack)")
    both = []
    for name, options in (("seen", []), ("raw", ["--raw"])):
        recorder = ["heaptrack", *options, "-o", program.parent / name]
        subprocess.run([*recorder, program], capture_output=True, timeout=120, check=True)
        [recording] = [path for path in program.parent.glob(f"{name}.*") if path.suffix in (".zst", ".gz")]
        journal = program.parent / f"{name}.byj"
        tool("convert", recording, "-o", journal, "--force")
        tool("check", journal)
        facts = tool("info", journal)
        # A realloc is a free and an allocation there.
        assert facts["allocations"] >= 8000 and facts["frees"] >= 8000
        assert facts["sizes"]["largest"] >= 123456
        assert not facts["threads_known"] and not facts["paced"]
        assert facts["program"].endswith("program") and facts["recorder"].startswith("heaptrack 1.")
        assert facts["stacks"]["events"] == facts["allocations"] and facts["stacks"]["sites"] > 3
        both.append(facts)
    seen, raw = both
    assert raw["repairs"]
    assert seen["stacks"]["named_addresses"] > 3 and raw["stacks"]["named_addresses"] == 0


def test_a_log_made_of_a_real_recording_comes_back_the_same(program: Path) -> None:
    """Android's form, written from a recording and read again."""
    log = program.parent / "again.txt"
    journal = program.parent / "mtrace.byj"
    if not journal.exists():
        test_a_real_mtrace_log_becomes_what_the_program_did(program)
    tool("convert", journal, "-o", log, "--to", "aosp", "--force")
    tool("convert", log, "-o", program.parent / "again.byj", "--rate", "1000000", "--frames-of", "100", "--force")
    before, after = tool("info", journal), tool("info", program.parent / "again.byj")
    for key in ("allocations", "frees", "total_bytes", "max_live_bytes", "sizes", "live_at_end"):
        assert before[key] == after[key], key
    assert after["paced"] and after["frames"]["marked"]
    assert any("the pace is made up" in one for one in after["repairs"])


HEADS = {"unreal": "Operation ResultPointer PointerIn SizeIn AlignmentIn\n", "mtrace": "= Start\n"}
MALLOCS = {
    "unreal": "Malloc {address} 0 {size} 0\t# {number}\n",
    "aosp": "{thread}: malloc {address:#x} {size} {time} {time}\n",
    "logalloc": "12 {thread} malloc({size})={address:#x}\n",
    "mtrace": "@ ./game:[0x11ce] + {address:#x} {size:#x}\n",
}
FREES = {
    "unreal": "Free 0 {address} 0 0\t# {number}\n",
    "aosp": "{thread}: free {address:#x} {time} {time}\n",
    "logalloc": "12 {thread} free({address:#x})\n",
    "mtrace": "@ ./game:[0x11cf] - {address:#x}\n",
}


@pytest.mark.parametrize("form", MALLOCS)
def test_a_games_recording_in_another_tools_form_has_the_same_blocks(form: str, tmp_path: Path) -> None:
    text, log = tmp_path / "game.txt", tmp_path / "game.log"
    tool("convert", ROOT / "journals/small/godot-start.byj", "-o", text, "--plain")
    with log.open("w") as out:
        out.write(HEADS.get(form, ""))
        for number, line in enumerate(text.read_text().splitlines(), start=1):
            kind, *size, address, thread, time = line.split()
            out.write(
                (FREES if kind == "f" else MALLOCS)[form].format(
                    size=int(size[0]) if size else 0, address=int(address, 16), thread=thread, time=time, number=number
                )
            )
        out.write("\nGracefully closed\n" if form == "unreal" else "")
    before, after = tool("info", text), tool("info", log)
    assert after["form"] == form
    assert before["events"] == after["events"]
    # The text's preamble is of ordinary allocations in a log.
    assert before["allocations"] + before["preamble"]["blocks"] == after["allocations"]
    for key in ("frees", "max_live_bytes", "max_live_blocks", "live_at_end"):
        assert before[key] == after[key], key
    if form in ("aosp", "logalloc"):
        assert before["remote_frees"] == after["remote_frees"]
    assert not [one for one in after["repairs"] if any(word in one for word in ("missing", "failed", "stood"))]
