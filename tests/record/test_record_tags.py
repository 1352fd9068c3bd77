"""Every event has the tags that its thread had at that moment, whatever the program does with them."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from recorded import PROGRAMS, program, read, record, recording, started

from blockyard import native


def tags_of(path: Path) -> dict[str, set[str]]:
    """The tags of a journal's allocations by their size, and of the frees of such blocks under "free SIZE"."""
    text = path.with_suffix(".tags.txt")
    native.call("blockyard-journal", ["check", path])
    native.call("blockyard-journal", ["convert", path, "-o", text, "--force"])
    names = [""]
    live: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    tag = ""
    realloc = False  # one event in two lines
    for line in text.read_bytes().decode("latin-1").split("\n"):
        word, _, rest = line.removeprefix("# ").partition(" ")
        if word == "name":
            names.append(rest)
        elif word == "tag":
            tag = names[int(rest)]
        elif word == "realloc":
            realloc = True
        elif word == "a":
            size, address, *_ = rest.split(" ")
            live[address] = size
            found.setdefault(size, set()).add(tag)
            tag, realloc = "", False
        elif word == "f":
            found.setdefault(f"free {live.pop(rest.split(' ')[0], '')}", set()).add(tag)
            if not realloc:
                tag = ""
    text.unlink()
    return found


def tags(tmp_path: Path, *arguments: str, name: str = "tags", options: tuple[str, ...] = ()) -> dict[str, set[str]]:
    done = record(tmp_path / "t.byj", program(name), *arguments, options=options)
    return {key: found for key, found in tags_of(done.output).items() if key.removeprefix("free ").startswith("60")}


def allocated(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """The tags of allocations, without those of frees."""
    return {key: tags for key, tags in found.items() if "free" not in key}


NESTED = {
    "600001": {""},
    "600002": {"physics"},
    "600003": {"physics/broadphase"},
    "600004": {"physics/broadphase"},
    "600005": {"physics"},
    "600006": {"physics/narrowphase"},
    "600007": {""},
}


# Clang makes no program at fixed addresses that finds a recorder.
FORMS = [
    name for name in ("tags", "tags-fixed", "tags-static", "tags-shared") if (PROGRAMS / f"record-{name}").exists()
]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("options", [(), ("--no-stacks",)])
def test_events_have_the_whole_path_of_their_tags(tmp_path, name, options):
    found = tags(tmp_path, "nested", name=name, options=options)
    assert {key: found[key] for key in NESTED} == NESTED
    # A realloc ends the old block under its own tag, as a free does.
    assert (found["free 600003"], found["free 600004"], found["free 600005"]) == (
        {"physics/broadphase"},
        {"physics"},
        {""},
    )


@pytest.mark.parametrize("name", FORMS)
def test_a_program_with_tags_runs_without_a_recorder(name):
    done = subprocess.run([program(name), "nested"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_sites_by_tag_add_up_what_a_program_tagged(tmp_path):
    done = recording(tmp_path / "t.byj", program("tags"), "nested", options=("--no-names",))
    listed = json.loads(native.call("blockyard-sites", ["list", done.output, "--by", "tag", "--match", "physics"]))
    assert {site["tag"]: (site["allocations"], site["bytes"]) for site in listed["sites"]} == {
        "physics": (2, 600_002 + 600_005),
        "physics/broadphase": (2, 600_003 + 600_004),
        "physics/narrowphase": (1, 600_006),
    }


def test_unbalanced_tags_stay_within_their_thread_and_surplus_pops_do_nothing(tmp_path):
    found = tags(tmp_path, "unbalanced")
    assert allocated(found) == {
        "600001": {""},
        "600002": {"two"},
        "600003": {""},
        "600004": {"left/behind"},
        "600005": {""},
        "600006": {"two"},
    }


def test_odd_names_are_kept_split_left_out_or_cut(tmp_path):
    found = tags(tmp_path, "odd-names")
    assert [found[str(600_001 + i)] for i in range(9)] == [
        {"outer/\xff\xfe"},
        {"outer/a/b"},
        {"outer/c/d"},
        {"outer"},
        {"outer"},
        {"outer"},
        {"outer/two words\\nhere"},
        {"outer/" + 232 * "x"},
        {"outer/" + 231 * "y"},
    ]


def test_ten_thousand_levels_keep_their_first_64_and_stay_balanced(tmp_path):
    found = tags(tmp_path, "deep")
    whole = "/".join(64 * ["down"])
    assert (found["600001"], found["600002"]) == ({whole}, {whole})
    assert (found["600003"], found["600004"]) == ({"/".join(63 * ["down"])}, {""})


def test_more_paths_than_there_is_room_for_have_the_tag_around_them(tmp_path):
    found = tags(tmp_path, "many")
    assert len(found["600001"]) > 10_000
    assert found["600002"] <= {"assets", "assets/asset 39999"}
    assert found["600003"] == {""}


def test_a_task_carries_its_tags_to_a_worker(tmp_path):
    found = tags(tmp_path, "carried")
    assert allocated(found) == {
        "600001": {"loading/textures"},
        "600002": {"loading/textures/mips"},
        "600003": {""},
        "600004": {""},
        "600005": {"worker"},
    }


def test_a_forked_child_keeps_its_tags_and_adds_its_own(tmp_path):
    done = record(tmp_path / "f.byj", program("tags"), "forked")
    parent = tags_of(done.output)
    assert (parent["600001"], parent["600005"]) == ({"parent"}, {"parent/waiting"})
    [child] = [tags_of(journal.path) for journal in done.others()]
    assert child["600002"] == {"parent"}  # inherited
    assert child["free 600002"] == child["600003"] == {"parent/child"}
    assert child["600004"] == {"parent/again"}


def test_a_signal_handler_adds_to_the_tags_that_it_interrupts(tmp_path):
    found = tags(tmp_path, "interrupted")
    assert allocated(found) == {"600001": {"interrupted"}, "600002": {"interrupted/handler"}, "600003": {"interrupted"}}


def test_signals_at_any_moment_leave_the_interrupted_tags_as_they_were(tmp_path):
    found = tags(tmp_path, "hammered")
    assert (found["600001"], found["600003"]) == ({"outer"}, {"outer/inner"})


def test_a_loaded_module_tags_its_own_events_and_its_names_may_go_away(tmp_path):
    found = tags(tmp_path, "plugged", str(PROGRAMS / "librecord-tagged-plugin.so"))
    assert (found["600001"], found["600002"]) == ({"host"}, {"host/plugin"})


def test_blocks_that_are_alive_when_the_window_opens_have_their_tags(tmp_path):
    output = tmp_path / "kept.byj"
    process = started(output, program("tags"), "kept", options=("--after", "0.3"))
    assert process.stdout.readline() == "step\n"
    while not output.exists():  # the window opens
        os.sched_yield()
    _, stderr = process.communicate("\n", timeout=60)
    assert process.returncode == 0, stderr
    found = tags_of(output)
    assert (found["600001"], found["600002"], found["free 600001"]) == ({"loading"}, {"playing"}, {"playing"})
    assert read(output).preamble > 0


def test_tags_from_before_the_recording_are_those_of_its_first_events(tmp_path):
    paths = [tmp_path / name for name in ("first.byj", "second.byj")]
    done = subprocess.run([program("tags-late"), *map(str, paths)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, second = map(tags_of, paths)
    still = "early/still there"
    assert (first["10"], first["11"], first["12"], first["13"]) == ({still}, {"early"}, {""}, {still})
    assert first["free 10"] == {still}
    assert (second["14"], second["15"]) == ({"second"}, {still})
