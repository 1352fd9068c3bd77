"""However a process ends, forks or becomes another program, its journal is there and right."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from recorded import command, environment, program, read, record, recording, started

from blockyard import native, recording_summary
from blockyard import recording as recording_module

ROUNDS = 3000


@pytest.mark.parametrize(
    "ending, code", [("return", 7), ("_exit", 8), ("abort", 128 + signal.SIGABRT), ("kill", 128 + signal.SIGKILL)]
)
def test_nothing_is_lost_however_the_program_ends(tmp_path, ending, code):
    done = recording(tmp_path / "end.byj", program("endings"), ending)
    assert done.exit_code == code
    journal = done.journal()
    assert journal.kinds(900_001) == Counter(allocate=ROUNDS)
    assert journal.frees_of(900_001) == ROUNDS


@pytest.mark.parametrize("mode, code", [("wait", 128 + signal.SIGTERM), ("handle", 9)])
def test_sigterm_ends_the_program_as_it_would_without_a_recorder(tmp_path, mode, code):
    process = started(tmp_path / "term.byj", program("endings"), mode)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == code
    assert read(tmp_path / "term.byj").kinds(900_001) == Counter(allocate=ROUNDS)


def test_no_signal_is_lost_between_two_waits_or_before_the_first(tmp_path):
    record(tmp_path / "echoes.byj", program("echoes"), "2000")


def test_the_recorder_installs_no_signal_handler(tmp_path):
    assert record(tmp_path / "handlers.byj", program("endings"), "default-handlers").exit_code == 0


def test_a_journal_grows_while_the_program_runs_and_survives_the_collectors_death(tmp_path):
    output = tmp_path / "killed.byj"
    process = started(output, program("endings"), "churn")
    assert process.stdout.readline() == "ready\n"
    collector = child_named(process.pid, "blockyard-colle")
    deadline = time.monotonic() + 60
    while not (output.exists() and output.stat().st_size > 4096):
        assert time.monotonic() < deadline, "the journal did not grow"
        time.sleep(0.05)
    os.kill(collector, signal.SIGKILL)
    os.kill(child_named(process.pid, "record-endings"), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)
    assert "collector ended early" in stderr
    assert read(output).kinds(900_001)["allocate"] > ROUNDS


def test_a_file_that_has_the_name_of_an_earlier_image_is_not_replaced(tmp_path):
    output = tmp_path / "game.byj"
    done = record(output, "sh", "-c", f"echo precious > {tmp_path}/game.$$.byj; exec sort /etc/passwd")
    journals = {Path(read(path).info["program"]).name: path.name for path in tmp_path.glob("game.byj")}
    own, later = sorted(tmp_path.glob("game.*.byj"), key=lambda path: len(path.name))
    assert own.read_text() == "precious\n"
    assert "sort" not in journals and Path(read(later).info["program"]).name == "sort"
    assert later.name in done.stderr


def child_named(parent: int, name: str) -> int:
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        if Path(f"/proc/{child}/comm").read_text().strip().startswith(name[:15]):
            return int(child)
    raise AssertionError(f"no child {name} of {parent}")


def test_a_program_outlives_its_collector(tmp_path):
    process = started(tmp_path / "orphan.byj", program("endings"), "wait")
    assert process.stdout.readline() == "ready\n"
    os.kill(child_named(process.pid, "blockyard-colle"), signal.SIGKILL)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert "blockyard: " in stderr and "Traceback" not in stderr


def test_exec_gives_the_new_program_a_journal_of_its_own(tmp_path):
    done = recording(tmp_path / "exec.byj", program("endings"), "exec")
    assert done.exit_code == 7
    assert done.journal().kinds(900_001) == Counter(allocate=ROUNDS)
    assert [journal.kinds(900_001) for journal in done.others()] == [Counter(allocate=ROUNDS)]


def test_the_file_that_was_named_is_the_last_program_that_the_first_process_became(tmp_path):
    shims = ["sh", "-c", 'exec env sh -c \'exec "$0" return\' "$0"', program("endings")]
    done = recording(tmp_path / "game.byj", *shims)
    assert done.exit_code == 7
    journal = done.journal()
    assert journal.info["program"].endswith("record-endings")
    assert journal.kinds(900_001) == Counter(allocate=ROUNDS)
    assert len(done.others()) == 3, "two shells and env"


def test_the_name_goes_back_to_the_last_program_that_recorded_anything(tmp_path):
    static = tmp_path / "static"
    (tmp_path / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", static, tmp_path / "static.c"], check=True)
    done = record(tmp_path / "game.byj", "sh", "-c", f"exec {static}")
    assert Path(done.journal().info["program"]).name in ("dash", "bash", "sh")
    assert f"{static} began without the recorder" in done.stderr and "statically" in done.stderr
    # One that attaches and records nothing, because no window opens.
    done = record(tmp_path / "short.byj", "sh", "-c", f"sleep 1.2; exec {program('endings')} wait & sleep 0.1; kill $!")
    assert done.output.exists()


def test_children_are_recorded_as_asked(tmp_path):
    script = ["sh", "-c", "seq 3 > /dev/null; expr 1 + 1 > /dev/null; true"]
    assert record(tmp_path / "all.byj", *script).others()
    assert record(tmp_path / "no.byj", *script, options=("--children", "no")).others() == []
    some = record(tmp_path / "some.byj", *script, options=("--children", "seq"))
    assert [Path(journal.info["program"]).name for journal in some.others()] == ["seq"]


def test_more_than_a_few_processes_have_a_folder(tmp_path):
    done = record(tmp_path / "few.byj", "sh", "-c", "for i in 1 2 3; do (seq $i > /dev/null); done")
    assert len(list(tmp_path.glob("few*.byj"))) == 1 + len(done.others()) and not (tmp_path / "few.processes").exists()
    done = record(tmp_path / "many.byj", "sh", "-c", "for i in $(seq 30); do seq $i > /dev/null; done")
    assert [path.name for path in tmp_path.glob("many*")] in (
        ["many.byj", "many.processes"],
        ["many.processes", "many.byj"],
    )
    journals = list((tmp_path / "many.processes").iterdir())
    assert len(journals) >= 30
    for path in journals[::20]:
        read(path)
    assert (
        re.search(r"^  \d+ journals of 32 processes with ", done.stderr, re.MULTILINE)
        or "processes that" in done.stderr
    )


def test_processes_are_counted_also_when_their_numbers_come_round(tmp_path):
    summary = {
        "images": [
            {"pid": 7, "process": process, "program": "/bin/seq", "running": False, "journals": [journal(process)]}
            for process in range(5)
        ],
        "unseen": [],
        "clock": "cycles",
    }
    request = recording_module.Request(["seq"], tmp_path / "x.byj")
    found = msgspec.convert(summary, recording_module.Summary)
    said = "\n".join(recording_summary.describe(recording_module.Outcome(request, 0, found)))
    assert "5 journals of 5 processes" in said


def journal(number: int) -> dict:
    counts = dict.fromkeys(("preamble", "allocations", "frees", "reallocates", "frames", "threads", "bytes"), 0)
    return {"path": f"/x.{number}.byj", "events": 5, "seconds": 1.0, "error": "", **counts}


def test_the_names_of_many_journals_are_found_together(tmp_path):
    done = record(tmp_path / "named.byj", "sh", "-c", "for i in 1 2 3; do seq $i > /dev/null; done")
    for one in [done.journal(), *done.others()]:
        if one.info["stacks"]["sites"]:
            assert one.info["stacks"]["named_addresses"], one.path


def test_each_forked_child_gets_a_journal_that_begins_with_its_parents_blocks(tmp_path):
    done = record(tmp_path / "server.byj", program("server"))
    inherited = [120_000 + number for number in range(50)]
    parent = done.journal()
    assert parent.kinds(*inherited) == Counter(allocate=50)
    assert parent.frees_of(*inherited) == 50
    children = [journal for journal in done.others() if "/record-server" in journal.info["program"]]
    assert len(children) == 4
    for journal in children:
        assert journal.preamble >= 50
        assert [event.size for event in journal.events[: journal.preamble] if event.size in inherited] == inherited
        assert journal.frees_of(*inherited) == 50
    worked = sorted(
        size for journal in children for size in {event.size for event in journal.events} if 110_000 <= size < 110_004
    )
    assert worked == [110_000, 110_001, 110_002, 110_003]
    assert "left out" not in done.stderr and "can't be seen" not in done.stderr


@pytest.mark.parametrize("ending", ["orphan", "daemon"])
def test_a_child_whose_first_event_comes_when_all_others_have_ended_is_recorded(tmp_path, ending):
    process = started(tmp_path / "orphan.byj", program("endings"), ending)
    assert process.wait(timeout=60) == 7
    announced = next(line for line in iter(process.stderr.readline, "") if "has recorded nothing yet" in line)
    path = Path(announced.rstrip("\n").partition("its journal will be ")[2])
    assert not path.exists()
    process.communicate("go", timeout=60)  # to the child, and until it has ended, too
    deadline = time.monotonic() + 60
    while not is_complete(path):
        assert time.monotonic() < deadline, "the journal was not completed"
        time.sleep(0.05)
    journal = read(path)
    assert journal.kinds(900_001) == Counter(allocate=ROUNDS // 3)
    assert journal.preamble > 0


def test_more_processes_at_a_time_are_recorded_than_the_shells_limit_has_files_for(tmp_path):
    files = 40
    sleeping = ["bash", "-c", f"for i in {{1..{files}}}; do sleep 2 & done; wait"]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = subprocess.run(
        command(tmp_path / "many.byj", *sleeping),
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard)),
        check=False,
    )
    assert done.returncode == 0 and "Too many open files" not in done.stderr, done.stderr
    assert len(list(tmp_path.rglob("many*.byj"))) >= 1 + files


def is_complete(path: Path) -> bool:
    found = path.exists() and native.call("blockyard-journal", ["info", "--json", path])
    return bool(found) and not json.loads(found)["notes"]


REAL = {
    "bash": ["bash", "-c", 'for i in 1 2 3; do x=$(echo "$i" | tr 1 2); y="$y$x"; done; echo "$y"; (exit 3)'],
    "python": [
        sys.executable,
        "-c",
        """
import threading, queue
q = queue.Queue()
def work(n):
    for i in range(200): q.put([str(j) * 50 for j in range(n)])
threads = [threading.Thread(target=work, args=(n,)) for n in (5, 50, 100)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sum(len(q.get()) for _ in range(600)))""",
    ],
    "gcc": ["gcc", "-O2", "-c", "-o", "hello.o", "hello.c"],
}


@pytest.mark.parametrize("name, code, stdout", [("bash", 3, "223\n"), ("python", 0, "31000\n"), ("gcc", 0, "")])
def test_journals_of_real_programs_have_no_violation(tmp_path, monkeypatch, name, code, stdout):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n')
    done = recording(tmp_path / f"{name}.byj", *REAL[name])
    assert (done.exit_code, done.stdout) == (code, stdout), done.stderr
    journals = [done.journal(), *done.others()]
    assert all(journal.events for journal in journals)
    assert {journal.info["allocator"] for journal in journals} == {"libc.so.6"}
    assert "can't be seen" not in done.stderr and "left out" not in done.stderr


def test_another_preloaded_allocator_works_under_the_recorder(tmp_path):
    jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    if not os.path.exists(jemalloc):
        pytest.skip(f"RECORDING OVER ANOTHER ALLOCATOR WAS NOT TESTED: {jemalloc} is missing")
    done = record(tmp_path / "je.byj", program("operators"), LD_PRELOAD=jemalloc)
    assert done.journal().frees_of(*range(500_001, 500_013)) == 12
    assert done.journal().info["allocator"] == "libjemalloc.so.2"
