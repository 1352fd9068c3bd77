"""Every allocation and every free carries the stack on which it happened, wherever that is."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from recorded import PROGRAMS, Recording, program, record, recording

from blockyard import native, sites_tool


def stacks_of(path: Path) -> dict[str, list[list[str]]]:
    """The stacks of a journal's allocations by their size, and of the frees of such blocks under "free SIZE": names of
    functions from the one that asked on, and "end N" last where a stack could not be walked to its thread's beginning.
    """
    text = path.with_suffix(".stacks.txt")
    native.call("blockyard-journal", ["check", path])
    native.call("blockyard-journal", ["convert", path, "-o", text, "--force"])
    lines = text.read_text().splitlines()
    frames: list[str] = []
    names: dict[int, str] = {}
    nodes: list[tuple[str, int]] = []
    for line in lines:
        word, *rest = line.removeprefix("# ").split(" ")
        if word == "address":
            frames.append("?")
        elif word == "stack-end":
            frames.append(f"end {rest[0]}")
        elif word == "node":
            nodes.append((rest[0], int(rest[1])))
        elif word == "function":
            # The last function of a frame is the one that the machine called.
            names[int(rest[0])] = rest[2]
    stacks: dict[str, list[list[str]]] = {}
    live: dict[str, str] = {}
    site = None
    is_realloc = False  # one event in two lines
    for line in lines:
        if line.startswith("# realloc"):
            is_realloc = True
        elif line.startswith("# site "):
            site = line.removeprefix("# site ")
        elif event := re.match(r"([af]) (?:(\d+) )?([0-9A-F]+) ", line):
            kind, size, address = event.groups()
            if kind == "a":
                live[address] = size
            stack = []
            node = site
            while node not in (None, "-"):
                parent, frame = nodes[int(node)]
                stack.append(names.get(frame, frames[frame]))
                node = parent
            stacks.setdefault(size if kind == "a" else f"free {live.pop(address, '')}", []).append(stack)
            if kind == "a" or not is_realloc:
                site, is_realloc = None, False
    text.unlink()
    return stacks


def recorded(tmp_path: Path, *arguments: str, options: tuple[str, ...] = ()) -> Recording:
    return record(tmp_path / "s.byj", program("stacks"), *arguments, options=options)


def the_stack(stacks: dict[str, list[list[str]]], key: str) -> list[str]:
    """The one stack that all events of this key have."""
    assert key in stacks
    assert len({tuple(stack) for stack in stacks[key]}) == 1
    return stacks[key][0]


def begins_at_main(stack: list[str]) -> bool:
    """From main on come the C library's and the program's first functions."""
    return "main" in stack and not stack[-1].startswith("end")


def test_an_allocation_and_its_free_have_their_stacks(tmp_path):
    stacks = stacks_of(recorded(tmp_path, "nested").output)
    assert the_stack(stacks, "705001")[:3] == ["innermost", "middle", "main"]
    assert the_stack(stacks, "free 705001")[:2] == ["releasing", "main"]
    assert begins_at_main(stacks["705001"][0])


def test_the_caller_of_every_function_is_the_last_frame(tmp_path):
    stacks = stacks_of(recorded(tmp_path, "functions").output)
    sizes = [str(size) for size in (*range(700_001, 700_011), 700_032)]
    for size in sizes:
        assert the_stack(stacks, size)[:2] == ["every_function", "main"], size
    for size in sizes:
        if size != "700003":  # its end is a realloc
            assert the_stack(stacks, f"free {size}")[:2] == ["every_function", "main"], size


def test_no_stacks_records_none(tmp_path):
    assert stacks_of(recorded(tmp_path, "nested", options=("--no-stacks",)).output)["705001"] == [[]]


def test_a_cut_stack_keeps_the_nearest_calls_and_says_so(tmp_path):
    stacks = stacks_of(recorded(tmp_path, "deep", options=("--stack-depth", "5")).output)
    assert the_stack(stacks, "710001") == ["innermost", "middle", "recursing", "recursing", "recursing", "end 0"]


def test_a_deep_stack_is_kept_whole_where_that_is_asked_for(tmp_path):
    stacks = stacks_of(recorded(tmp_path, "deep", "3000", options=("--stack-depth", "4096")).output)
    stack = the_stack(stacks, "710001")
    assert stack.count("recursing") == 3001
    assert begins_at_main(stack)


def test_a_signal_handlers_stack_goes_on_to_what_it_interrupted(tmp_path):
    stack = the_stack(stacks_of(recorded(tmp_path, "signal").output), "720001")
    assert stack[:3] == ["innermost", "middle", "handler"]
    assert "on_a_signal" in stack
    assert begins_at_main(stack)


def test_exceptions_and_jumps_leave_nothing_behind(tmp_path):
    stacks = stacks_of(recorded(tmp_path, "exception").output)
    assert the_stack(stacks, "730001")[1:4] == ["middle", "throwing", "catching"]
    assert the_stack(stacks, "730002")[1:4] == ["middle", "catching", "main"]
    assert the_stack(stacks, "730003")[1:4] == ["middle", "catching", "main"]
    stacks = stacks_of(recorded(tmp_path, "jump", options=("--force",)).output)
    assert the_stack(stacks, "740001")[1:4] == ["middle", "jumping", "over_a_jump"]
    assert the_stack(stacks, "740002")[1:4] == ["middle", "over_a_jump", "main"]


def test_a_threads_stack_begins_where_the_thread_does(tmp_path):
    stack = the_stack(stacks_of(recorded(tmp_path, "thread").output), "750001")
    assert stack[:3] == ["innermost", "middle", "in_a_thread"]
    assert "main" not in stack
    assert not stack[-1].startswith("end")


def test_a_fibers_stack_begins_where_the_fiber_does(tmp_path):
    stacks = stacks_of(recorded(tmp_path, "fiber").output)
    stack = the_stack(stacks, "760001")
    assert stack[:3] == ["innermost", "middle", "fiber_body"]
    assert "main" not in stack
    assert not stack[-1].startswith("end")
    assert begins_at_main(the_stack(stacks, "760002"))


def test_generated_code_ends_a_stack_and_a_perf_map_names_it(tmp_path):
    done = recorded(tmp_path, "generated")
    pid = next(iter(done.journal().threads))
    Path(f"/tmp/perf-{pid}.map").unlink()
    stack = the_stack(stacks_of(done.output), "770001")
    assert stack == ["innermost", "middle", "allocate_below_generated_code", "generated_function", "end 1"]


def test_a_forked_child_has_stacks_of_its_own_and_those_of_the_blocks_it_inherits(tmp_path):
    done = recorded(tmp_path, "fork")
    (child,) = (path for path in tmp_path.glob("s.*.byj"))
    stacks = stacks_of(child)
    assert the_stack(stacks, "780001")[:4] == ["innermost", "middle", "forking", "main"]
    assert the_stack(stacks, "free 780001")[:4] == ["releasing", "in_the_child", "forking", "main"]
    assert the_stack(stacks, "780002")[:3] == ["innermost", "middle", "in_the_child"]
    assert the_stack(stacks_of(done.output), "780001")[2] == "forking"


def test_a_library_where_another_lay_is_told_apart(tmp_path):
    """Both have the same code at the same addresses, so only the time says which one allocated."""
    source = "void* malloc(unsigned long); void free(void*); void* volatile s; static void* NAME(void) {"
    source += "void* b = malloc(SIZE); s = b; return b; } void plugin_work(void) { free(NAME()); s = 0; }"
    paths = []
    for name, size in (("first", 790_001), ("second", 790_002)):
        path = tmp_path / f"lib{name}.so"
        flags = [f"-DNAME=in_{name}", f"-DSIZE={size}", "-O0", "-fno-builtin", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, "-x", "c", "-", "-o", path], input=source, text=True, check=True)
        paths.append(str(path))
    stacks = stacks_of(recorded(tmp_path, "load", *paths, *paths).output)
    for name, size in (("first", 790_001), ("second", 790_002)):
        assert len(stacks[str(size)]) == 2
        assert the_stack(stacks, str(size))[:4] == [f"in_{name}", "plugin_work", "loading", "main"]


def test_no_names_leaves_them_for_later(tmp_path):
    done = recorded(tmp_path, "nested", options=("--no-names",))
    assert the_stack(stacks_of(done.output), "705001")[:2] == ["?", "?"]
    native.call("blockyard-names", [done.output])
    assert the_stack(stacks_of(done.output), "705001")[:2] == ["innermost", "middle"]


def test_a_stripped_programs_functions_are_told_apart_by_where_they_begin(tmp_path):
    source = "void* malloc(unsigned long); void* volatile s; static void twice(void) { s = malloc(1); s = malloc(2); }"
    source += "static void once(void) { s = malloc(3); } int main(void) { twice(); once(); }"
    flags = ["-O0", "-fno-builtin", "-s", "-x", "c", "-"]
    subprocess.run(["cc", *flags, "-o", tmp_path / "bare"], input=source, text=True, check=True)
    done = record(tmp_path / "bare.byj", str(tmp_path / "bare"))

    def counts(by: str) -> list[int]:
        found = sites_tool.listing(done.output, {"--by": by, "--match": r"^bare\+0x"})[0].sites
        return sorted(site.allocations for site in found)

    assert counts("function") == [1, 2]
    assert counts("line") == [1, 1, 1]


@pytest.mark.parametrize("what", ["functions", "signal", "exception", "jump", "thread", "fiber", "deep"])
def test_no_stack_differs_from_libunwinds(tmp_path, what):
    done = recorded(tmp_path, what, options=("--verify-stacks", "--no-names"))
    verified = re.search(r"([\d,]+) stacks? walked again with libunwind: ([\d,]+) differ", done.stderr)
    assert verified, done.stderr
    assert (verified[1] != "0", verified[2]) == (True, "0"), done.stderr


@pytest.mark.parametrize("options", [("--stack-depth", "0"), ("--stack-depth", "10000"), ("--stack-depth", "x")])
def test_a_bad_depth_is_refused_in_one_sentence_before_anything_runs(tmp_path, options):
    done = recording(tmp_path / "s.byj", program("stacks"), "nested", options=options)
    assert done.exit_code == 2
    assert "--stack-depth" in done.stderr
    assert not done.output.exists()


def test_an_engines_events_have_stacks_too(tmp_path):
    path = tmp_path / "engine.byj"
    done = subprocess.run(
        [PROGRAMS / "record-engine", path], env=os.environ, capture_output=True, text=True, check=False
    )
    assert path.exists(), done.stderr
    assert any(stack for stacks in stacks_of(path).values() for stack in stacks)
