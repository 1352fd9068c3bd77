"""What `blockyard record` says at its end: what it counted, which journal to look at, and what was not found."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from recorded import program, record, recording

from blockyard import native


def events(path: str) -> int:
    info = subprocess.run(
        [native.path("blockyard-journal"), "info", "--json", path], capture_output=True, text=True, check=True
    )
    facts = json.loads(info.stdout)
    return facts["events"] - facts["preamble"]["blocks"]


def test_the_summary_and_info_count_alike_and_say_that_a_realloc_is_in_both(tmp_path):
    done = recording(tmp_path / "c.byj", program("c-functions"))
    info = done.journal().info
    reallocs = info["kinds"]["reallocate"]
    assert reallocs > 0
    assert f"{info['allocations']:,} allocations, {info['frees']:,} frees ({reallocs:,} realloc" in done.stderr
    assert info["frees"] == info["kinds"]["free"] + reallocs


def test_of_many_journals_the_one_with_most_events_is_named_next(tmp_path):
    folder = tmp_path / "two words"
    folder.mkdir()
    script = "for i in 1 2 3 4 5; do (echo $i > /dev/null); /bin/true; done; ls -lR /usr/lib > /dev/null"
    done = record(folder / "shim.byj", "bash", "-c", script)
    largest = max(folder.rglob("*.byj"), key=lambda path: events(str(path)))
    assert done.stderr.splitlines()[-1] == f"next: blockyard info '{largest}'", "it can be pasted"
    assert re.search(r"^  \d+ journals of \d+ processes with [\d,]+ events in ", done.stderr, re.MULTILINE)
    assert len(done.stderr.splitlines()) < 20


def test_a_block_that_is_freed_twice_is_reported_in_the_singular(tmp_path):
    source = tmp_path / "twice.c"
    source.write_text(
        "#include <stdlib.h>\nint main(void) { void *volatile block = malloc(5000000); free(block); free(block); }\n"
    )
    subprocess.run(["cc", "-w", "-o", tmp_path / "twice", source], check=True)
    assert "\n  1 free was left out: " in recording(tmp_path / "twice.byj", str(tmp_path / "twice")).stderr


@pytest.mark.parametrize("symbol, sentences", [("no_such_function", 1), ("variadic", 0)])
def test_a_frame_symbol_without_calls_is_reported_in_one_sentence(tmp_path, symbol, sentences):
    done = record(tmp_path / "symbol.byj", program("signature"), options=("--frame-symbol", symbol))
    assert done.stderr.count(f"no frame was marked: {symbol} ") == done.stderr.count("no frame") == sentences


def test_what_is_left_at_the_end_is_merged_without_a_pause(tmp_path):
    """The collector is stopped while the program fills its ring, so that nearly all is left."""
    loop = "print(flush=True); input()\nfor _ in range(1_000_000): bytes(1000)"
    name = f"test-{os.getpid()}-left"
    journal = tmp_path / "left.byj"
    options = ["--socket", name, "--output", journal, "--stack-depth", "0", "--ring-kib", "131072", "--slots", "16"]
    collector = subprocess.Popen(
        [native.path("blockyard-collect"), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert collector.stdout.readline() == "ready\n"
    variables = {"BLOCKYARD_RECORD": name, "LD_PRELOAD": str(native.path("libblockyard-record.so"))}
    program = subprocess.Popen(
        [sys.executable, "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | variables,
    )  # fmt: skip
    program.stdout.readline()
    collector.send_signal(signal.SIGSTOP)
    program.communicate("\n")
    collector.send_signal(signal.SIGCONT)
    collector.stdin.close()
    [image] = json.loads(collector.stdout.readline())["images"]
    _, status, used = os.wait4(collector.pid, 0)
    collector.returncode = os.waitstatus_to_exitcode(status)
    assert image["journals"][0]["events"] > 2_000_000
    assert used.ru_nvcsw < 60  # it takes 120 rounds
