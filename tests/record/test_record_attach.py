"""A program that runs already is recorded from now on, counts what it does, and runs on as if nothing had been."""

import contextlib
import ctypes
import ctypes.util
import datetime
import functools
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import the_command
from attach_soak import soak
from recorded import PROGRAMS, blockyard, command_line, environment, open_files, program, read
from test_record_unseen import built

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="attaching works on x86-64 only")


class Running:
    """A program that does what it is told, a line each."""

    def __init__(self, *command: str, **more):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
        )
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def tell(self, *lines: str) -> None:
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        stdout, stderr = self.process.communicate(timeout=60)
        assert (self.process.returncode, stdout, stderr) == (0, "", "")


@functools.cache
def sibling_may_be_traced() -> bool:
    """What Yama's ptrace_scope of 1, and many a container, forbid to who is not root."""
    seize = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None) != 0)"
    with subprocess.Popen(["sleep", "60"]) as sibling:
        tried = subprocess.run([sys.executable, "-c", seize, str(sibling.pid)], check=False)
        sibling.kill()
    return tried.returncode == 0


def skip_where_tracing_is_forbidden() -> None:
    if not sibling_may_be_traced():
        pytest.skip("SKIPPED LOUDLY: this system lets nobody trace another's child, so attaching is not tested")


def commands(**more) -> Running:
    return Running(program("attached"), "commands", **more)


def recorder_of(pid: int, output: Path, *options: str, **env: str) -> subprocess.Popen[str]:
    line = the_command.line("record", "--pid", pid, "-o", output, "--addresses", *options)
    return subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment(**env))


@contextlib.contextmanager
def attached(pid: int, output: Path, *options: str, wake=None, **env: str):
    """Recorded while the block runs."""
    if wake is None:
        skip_where_tracing_is_forbidden()
    recorder = recorder_of(pid, output, *options, **env)
    if wake is not None:
        wake(recorder)
    line = recorder.stderr.readline()
    assert f"recording process {pid} from now on" in line, line + recorder.stderr.read()
    yield
    recorder.send_signal(signal.SIGINT)
    _, stderr = recorder.communicate(timeout=60)
    assert recorder.returncode == 0, stderr
    assert "hooks stay" not in stderr


def woken(running: Running, output: Path):
    """The same of a program whose hooks sleep: it has to call something to wake."""

    def wake(recorder: subprocess.Popen[str]) -> None:
        while not select.select([recorder.stderr], [], [], 0.01)[0]:
            running.tell("allocate 1 99")

    return attached(running.pid, output, wake=wake)


def refusal(pid: int, tmp_path: Path) -> str:
    said = the_command.sentence(blockyard("record", "--pid", pid, "-o", tmp_path / "refused.byj", "--for", "1"))
    assert not (tmp_path / "refused.byj").exists()
    return said


def traces(pid: int) -> tuple[set[str], set[str], int]:
    """What a recorder could leave behind: open files, threads, shared memory."""
    folder = Path(f"/proc/{pid}")
    return (
        set(os.listdir(folder / "fd")),
        set(os.listdir(folder / "task")),
        (folder / "maps").read_text().count("rw-s"),
    )


def test_every_call_from_now_on_is_recorded_and_nothing_is_left_behind(tmp_path):
    running = commands()
    running.tell("allocate 50 777")
    before = traces(running.pid)
    for round_number in (1, 2):
        output = tmp_path / f"{round_number}.byj"
        with attached(running.pid, output):
            running.tell("allocate 100 4321", "grow 10 54321", "free 60", "free 40")
        journal = read(output)
        assert journal.kinds(4321) == {"allocate": 100}
        assert journal.kinds(54321) == {"realloc": 10}
        assert journal.frees_of(4321, 54321) == 110
        assert traces(running.pid) == before
        # Unseen, and not missed: it was not recorded.
        running.tell("allocate 7 4321", "free 7")
    running.end()


def test_blocks_from_before_are_counted_with_the_allocators_sizes(tmp_path):
    running = commands()
    running.tell("allocate 30 100000")
    output = tmp_path / "before.byj"
    with attached(running.pid, output):
        running.tell("free 20", "grow 5 777777")
    journal = read(output)
    assert journal.kinds(777777) == {"allocate": 5}
    (sentence,) = [text for text in journal.info["unseen"] if "began while the program ran" in text]
    count, size = map(int, re.search(r"(\d+) such blocks of (\d+) bytes", sentence).groups())
    assert count == 25
    assert 25 * 100_000 <= size < 25 * 100_100
    running.tell("free 10")
    running.end()


def test_a_library_that_is_loaded_meanwhile_is_recorded(tmp_path):
    running = commands()
    with attached(running.pid, tmp_path / "plugin.byj"):
        running.tell(f"load {PROGRAMS / 'librecord-plugin.so'}", "call 3")
    assert read(tmp_path / "plugin.byj").kinds(810_004) == {"allocate": 3}
    running.tell("call 2")
    running.end()


@pytest.mark.parametrize("name", ["game", "game-shared"])
def test_a_games_frames_are_recorded_and_everybody_says_that_it_ran_before(tmp_path, name):
    running = Running(program(name))
    running.tell("20")
    output = tmp_path / "game.byj"
    with attached(running.pid, output):
        running.tell("30")
    running.tell("5")
    running.end()
    journal = read(output)
    assert journal.count("frame") == 30
    assert journal.info["frames"]["marked"] and journal.info["frames"]["count"] == 30
    assert journal.kinds(4321) == {"allocate": 30}
    assert journal.frees_of(4321) == 20
    if name != "game":
        return
    before = re.compile(
        r"the recording began while the program ran, at \S+Z, \d+ s after its start, "
        "so what lived before is in no figure: 10 such blocks of "
    )
    results = tmp_path / "results"
    page = results / "report" / "report.html"
    for words in (
        ("info", output),
        ("sites", output),
        ("replay", output, "-a", "null", "--repeats", "1", "--no-totals", "-o", results),
        ("report", results, "--html", "--no-pictures", "--no-samples-parquet"),
    ):
        done = subprocess.run(
            the_command.line(*words), capture_output=True, text=True, env=environment(COLUMNS="80"), check=True
        )
        assert before.search(" ".join((done.stdout + done.stderr).split())), words[0]
    assert before.search(page.read_text())


def test_the_journal_says_when_the_recording_began_and_how_long_the_program_had_run(tmp_path):
    started = time.time()
    running = commands()
    time.sleep(2)
    attaching = time.time()
    with attached(running.pid, tmp_path / "began.byj"):
        within = time.time()
    (sentence,) = [text for text in read(tmp_path / "began.byj").info["unseen"] if "while the program ran" in text]
    at, age = re.search(r"ran, at (\S+), (\d+) s after its start, so", sentence).groups()
    # Both are whole seconds.
    assert int(attaching) <= datetime.datetime.fromisoformat(at).timestamp() <= within
    assert int(attaching - started) - 1 <= int(age) <= int(within - started) + 1
    running.end()


def test_a_window_opens_when_its_time_has_come_after_attaching(tmp_path):
    skip_where_tracing_is_forbidden()
    running = commands()
    output = tmp_path / "window.byj"
    recorder = subprocess.Popen(
        the_command.line("record", "--pid", running.pid, "-o", output, "--addresses", "--after", "1", "--for", "0.5"),
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    size, attached_at = 5000, None
    while recorder.poll() is None:
        running.tell(f"allocate 1 {size}", "free 1")
        size += 1
        if attached_at is None and select.select([recorder.stderr], [], [], 0)[0]:
            attached_at = size
    assert recorder.returncode == 0, recorder.stderr.read()
    recorder.stderr.close()
    sizes = sorted({event.size for event in read(output).events if 5000 <= event.size < size})
    assert attached_at < sizes[0]
    assert sizes == list(range(sizes[0], sizes[-1] + 1))
    assert sizes[-1] < size - 1
    running.end()


def test_a_signal_to_the_program_opens_and_closes_the_window(tmp_path):
    running = commands()
    output = tmp_path / "signal.byj"
    caught = handled_signals(running.pid)
    with attached(running.pid, output, "--signal", "USR2"):
        (collector,) = (
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if str(output).encode() in command_line(path) and b"blockyard-collect" in command_line(path)
        )
        for is_open, size in ((True, 2222), (False, 3333)):
            running.tell("allocate 10 1111")
            os.kill(running.pid, signal.SIGUSR2)
            while (str(output) in open_files(collector)) != is_open:
                running.tell("allocate 1 99", "free 1")
            running.tell(f"allocate 20 {size}")
    assert handled_signals(running.pid) == caught
    journal = read(output)
    assert [event.size for event in journal.events[: journal.preamble] if event.size == 1111] == [1111] * 10
    assert journal.kinds(2222) == {"allocate": 20}
    assert journal.kinds(3333) == {}
    running.end()


def handled_signals(pid: int) -> str:
    (line,) = re.findall("SigCgt:.*", Path(f"/proc/{pid}/status").read_text())
    return line


def test_a_program_that_runs_is_watched_until_the_view_is_interrupted(tmp_path):
    skip_where_tracing_is_forbidden()
    running = commands()
    running.tell("allocate 30 100000")
    output = tmp_path / "live.byj"
    view = subprocess.Popen(
        the_command.line("live", "--json", "--pid", running.pid, "-o", output),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )

    def allocations() -> int:
        line = view.stdout.readline()
        assert line, view.stderr.read()
        return json.loads(line)["all"]["allocations"]

    while allocations() == 0:  # it is not attached yet
        running.tell("allocate 1 99")
    running.tell("allocate 100 4321", "free 40")
    while allocations() < 101:
        pass
    view.send_signal(signal.SIGINT)
    lines, told = view.communicate()
    assert view.returncode == 0, told
    last = json.loads(lines.splitlines()[-1])
    journal = read(output)
    assert last["ended"] and last["events"] == journal.info["events"]
    assert last["live"]["blocks"] == journal.info["live_at_end"]["blocks"] >= 60
    assert journal.kinds(4321) == {"allocate": 100}
    running.tell("free 90", "allocate 7 4321")
    running.end()


def test_what_a_crashed_program_with_sleeping_hooks_left_does_not_mislead(tmp_path):
    running = commands()
    page = tmp_path / f"blockyard-asleep.{running.pid}"
    page.write_bytes(struct.pack("=Ii", 1, running.pid).ljust(4096, b"\0"))
    with attached(running.pid, tmp_path / "other.byj", TMPDIR=str(tmp_path)):
        running.tell("allocate 3 4321")
    assert read(tmp_path / "other.byj").kinds(4321) == {"allocate": 3}
    running.end()


def test_a_window_closes_by_time(tmp_path):
    skip_where_tracing_is_forbidden()
    running = commands()
    options = ("-o", tmp_path / "window.byj", "--addresses", "--for", "0.2")
    the_command.success(blockyard("record", "--pid", running.pid, *options))
    running.tell("allocate 5 4321")
    assert read(tmp_path / "window.byj").of_size(4321) == []
    running.end()


def test_a_thread_that_waits_for_others_to_end_takes_the_call_where_these_have_no_room(tmp_path):
    running = Running(program("attached"), "join")
    with attached(running.pid, tmp_path / "join.byj"):
        pass
    assert running.process.poll() is None
    running.process.kill()
    running.process.communicate()
    assert read(tmp_path / "join.byj").of_size(48) != []


def test_a_wait_is_not_interrupted(tmp_path):
    running = commands()
    running.process.stdin.write("wait 3000\n")
    running.process.stdin.flush()
    with attached(running.pid, tmp_path / "wait.byj"):
        pass
    assert running.process.stdout.readline() == "done\n"
    running.end()


def test_a_program_on_jemalloc_is_recorded(tmp_path):
    found = ctypes.util.find_library("jemalloc")
    if found is None:
        pytest.skip("libjemalloc is not installed")
    running = commands(env=dict(os.environ, LD_PRELOAD=found))
    with attached(running.pid, tmp_path / "jemalloc.byj"):
        running.tell("allocate 100 4321", "free 100")
    journal = read(tmp_path / "jemalloc.byj")
    assert journal.kinds(4321) == {"allocate": 100}
    assert journal.frees_of(4321) == 100
    running.end()


RUNTIMES = {
    "python3": (
        [
            sys.executable,
            "-c",
            "import sys\nprint('ready', flush=True)\nfor line in sys.stdin:\n"
            "  for _ in range(20): bytearray(1000003)\n  print('done', flush=True)",
        ],
        {1_000_004},
    ),
    "node": (
        [
            "node",
            "-e",
            "console.log('ready'); require('readline').createInterface({input: process.stdin}).on('line', () => {"
            "for (let i = 0; i < 20; ++i) Buffer.allocUnsafeSlow(1000003); console.log('done') })",
        ],
        {1_000_003},
    ),
    "java": (["java", "-cp", "{folder}", "Counted"], set(range(1_000_003, 1_000_100))),
}
JAVA = """
import java.io.*;
import java.nio.*;

public class Counted {
  public static void main(String[] arguments) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    System.out.println("ready");
    while (input.readLine() != null) {
      for (int i = 0; i < 20; ++i) ByteBuffer.allocateDirect(1000003);
      System.out.println("done");
    }
  }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNTIMES)
def test_a_runtime_is_recorded_and_its_counts_are_right(tmp_path, name):
    command, sizes = RUNTIMES[name]
    if name != "python3" and shutil.which(command[0]) is None:
        pytest.skip(f"{name} is not installed")
    if name == "java":
        if shutil.which("javac") is None:
            pytest.skip("javac is not installed")
        (tmp_path / "Counted.java").write_text(JAVA)
        subprocess.run(["javac", "-d", tmp_path, tmp_path / "Counted.java"], check=True)
    running = Running(*(word.format(folder=tmp_path) if "{folder}" in word else word for word in command))
    running.tell("go")
    with attached(running.pid, tmp_path / "runtime.byj"):
        running.tell("go", "go")
    journal = read(tmp_path / "runtime.byj")
    assert sum(event.size in sizes for event in journal.events if event.kind != "free") == 40
    running.tell("go")
    running.end()


def test_sleeping_hooks_record_nothing_until_they_are_woken_and_nothing_afterwards(tmp_path):
    running = Running(
        *the_command.line("record", "--asleep", "--", program("attached"), "commands"),
        env=environment(TMPDIR=str(tmp_path)),
    )
    page = tmp_path / f"blockyard-asleep.{running.pid}"
    assert page.exists()
    running.tell("allocate 30 4321")
    for round_number in (1, 2):
        output = tmp_path / f"woken-{round_number}.byj"
        with woken(running, output):
            running.tell("allocate 100 4321", "free 60")
            assert "it is being recorded already" in refusal(running.pid, tmp_path)
            running.tell("free 40")
        journal = read(output)
        assert journal.kinds(4321) == {"allocate": 100}
        assert journal.frees_of(4321) == 100
        running.tell("allocate 7 4321", "free 7")
    running.end()
    assert not page.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may act for other users")
def test_another_users_program_is_recorded(tmp_path):
    copy = tmp_path / "attached"
    shutil.copy(program("attached"), copy)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    running = Running(str(copy), "commands", user=65534, group=65534, extra_groups=[])
    with attached(running.pid, tmp_path / "other.byj"):
        running.tell("allocate 3 4321")
    assert read(tmp_path / "other.byj").kinds(4321) == {"allocate": 3}
    running.end()


def test_a_program_that_sees_other_files_is_recorded(tmp_path):
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may make no namespace of mounts")
    if program("attached").startswith("/tmp/"):
        pytest.skip("NOT TESTED: this checkout lies in /tmp, which the program would not see")
    running = Running(
        "unshare", "--mount", "sh", "-c", f"mount -t tmpfs none /tmp && cd / && exec {program('attached')} commands"
    )
    with attached(running.pid, tmp_path / "namespace.byj"):
        running.tell("allocate 3 4321")
    assert read(tmp_path / "namespace.byj").kinds(4321) == {"allocate": 3}
    running.end()


@pytest.mark.parametrize("name", ["attached", "attached-own"])
def test_a_program_that_allocates_throws_forks_and_loads_survives(tmp_path, name):
    skip_where_tracing_is_forbidden()
    done = soak(8, tmp_path, name)
    assert (done.exit_code, done.stdout, done.stderr, done.mappings) == (0, "0 failures\n", "", 0)
    assert done.attached >= 4, done.refusals


def test_a_stopped_program_is_refused_and_stays_stopped(tmp_path):
    running = commands()
    os.kill(running.pid, signal.SIGSTOP)
    os.waitpid(running.pid, os.WUNTRACED)
    assert f"process {running.pid} is stopped" in refusal(running.pid, tmp_path)
    os.kill(running.pid, signal.SIGCONT)
    running.tell("allocate 1 100")
    running.end()


def test_a_traced_program_is_refused(tmp_path):
    running = commands()
    libc = ctypes.CDLL(None, use_errno=True)
    seize, interrupt, detach = 0x4206, 0x4207, 17
    assert libc.ptrace(seize, running.pid, None, None) == 0
    assert f"is traced by process {os.getpid()}" in refusal(running.pid, tmp_path)
    libc.ptrace(interrupt, running.pid, None, None)
    os.waitpid(running.pid, 0)
    libc.ptrace(detach, running.pid, None, None)
    running.end()


def test_a_program_that_filters_its_system_calls_is_refused(tmp_path):
    allow_all = (
        "import ctypes, sys\n"
        "libc = ctypes.CDLL(None)\n"
        "code = (ctypes.c_uint64 * 1)(0x7fff0000_0000_0006)\n"
        "class Program(ctypes.Structure): _fields_ = [('count', ctypes.c_ushort), ('code', ctypes.c_void_p)]\n"
        "libc.prctl(38, 1, 0, 0, 0)\n"
        "assert libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.addressof(code)))) == 0\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    running = Running(sys.executable, "-c", allow_all)
    assert "restricts its system calls" in refusal(running.pid, tmp_path)
    running.end()


def test_a_static_program_is_refused(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source = tmp_path / "static.c"
    source.write_text(
        '#include <unistd.h>\nint main(void) { char c; write(1, "ready\\n", 6); return (int)read(0, &c, 1); }\n'
    )
    subprocess.run([compiler, "-static", "-w", "-o", tmp_path / "static", source], check=True)
    running = Running(str(tmp_path / "static"))
    assert "is linked statically" in refusal(running.pid, tmp_path)
    running.end()


@pytest.mark.parametrize("pid", [4194303, 1 << 40])
def test_no_such_process_is_refused(tmp_path, pid):
    assert f"there is no process {pid}" in refusal(pid, tmp_path)


def test_a_program_whose_recorder_was_killed_runs_on_and_can_be_recorded_again(tmp_path):
    skip_where_tracing_is_forbidden()
    running = commands()
    recorder = recorder_of(running.pid, tmp_path / "killed.byj")
    assert str(running.pid) in recorder.stderr.readline()
    (collector,) = map(int, Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split())
    ended = os.pidfd_open(collector)
    recorder.kill()
    recorder.communicate()
    select.select([ended], [], [])
    os.close(ended)
    running.tell("allocate 7 4321", "free 7")
    with attached(running.pid, tmp_path / "again.byj"):
        running.tell("allocate 3 4321")
    assert read(tmp_path / "again.byj").kinds(4321) == {"allocate": 3}
    running.end()


def test_a_program_or_a_process_is_to_be_given(tmp_path):
    for words in ((), ("--pid", "1", "--", "true")):
        said = the_command.refusal(blockyard("record", "-o", tmp_path / "x.byj", *words))
        assert "give either a program to start" in said


@pytest.mark.parametrize("option", [("-o", "x.byj"), ("--for", "3"), ("--no-stacks",), ("--children", "no")])
def test_sleeping_hooks_take_no_options_of_a_recording(tmp_path, option):
    said = the_command.refusal(blockyard("record", "--asleep", *option, "--", "true", cwd=tmp_path))
    assert "give the other options to 'blockyard record --pid'" in said


#: glibc's, under other names; one thread allocates all the time.
LINKED_IN = """
#include <stddef.h>
void *__libc_malloc(size_t);
void __libc_free(void *);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *PREFIX(malloc)(size_t size) { return __libc_malloc(size); }
void PREFIX(free)(void *block) { __libc_free(block); }
void *PREFIX(calloc)(size_t count, size_t size) { return __libc_calloc(count, size); }
void *PREFIX(realloc)(void *block, size_t size) { return __libc_realloc(block, size); }
----
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *PREFIX(malloc)(size_t size);
void PREFIX(free)(void *block);
static void *always(void *nothing) {
  for (;; usleep(50)) PREFIX(free)(PREFIX(malloc)(777));
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, always, NULL);
  void *block = PREFIX(malloc)(5000);
  char line[8];
  for (write(1, "ready\\n", 6); read(0, line, sizeof line) > 0; write(1, "done\\n", 5)) {
    PREFIX(free)(block);
    block = PREFIX(malloc)(1234);
    free(strdup("by the C library"));
  }
  return 0;
}
"""


@pytest.mark.parametrize("prefix", ["", "mi_", "_rjem_"])
@pytest.mark.parametrize("options", [(), ("-no-pie",)])
def test_an_allocator_that_is_linked_in_is_recorded_and_its_callers_get_their_code_back(tmp_path, prefix, options):
    define = f"-DPREFIX(name)={prefix}##name" if prefix else "-DPREFIX(name)=name"
    running = Running(built(tmp_path, "own", LINKED_IN, define, "-pthread", *options))
    before = code(running.pid)
    for name in ("first", "second"):
        with attached(running.pid, tmp_path / f"{name}.byj"):
            assert code(running.pid) != before
            running.tell("go", "go", "go")
        assert code(running.pid) == before
        running.tell("go")
        journal = read(tmp_path / f"{name}.byj")
        assert journal.kinds(1234) == {"allocate": 3}
        assert journal.frees_of(1234) == 2
        assert journal.kinds(777)["allocate"] > 0
        assert len(journal.of_size(17)) == 3
        # And perhaps one of the other thread's.
        assert any(re.search(" [12] such blocks? of (unknown|at least)", text) for text in journal.info["unseen"])
        assert any(re.match("own .*: what calls it was recorded", text) for text in journal.info["unseen"])
        assert not any("was not recorded" in text for text in journal.info["unseen"])
    running.end()


def code(pid: int) -> bytes:
    """The program's own, as it is in memory."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    begin, end = re.search(r"^(\w+)-(\w+) r-xp .*/own$", maps, re.MULTILINE).groups()
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        memory.seek(int(begin, 16))
        return memory.read(int(end, 16) - int(begin, 16))
