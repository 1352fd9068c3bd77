"""Runs real programs twice, on the C library's malloc and on libblockyard-malloc.so, and compares output and exit code.

What a program prints of times and the like is taken out of both first. That the heap is really under it is seen from
the settings that it prints on request. A program that is not installed is named as not tested, and fails nothing.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIBRARY = (
    Path(os.environ.get("BLOCKYARD_BUILD", ROOT / "build/release")) / "library/src/heap/malloc/libblockyard-malloc.so"
)
SEEN = "blockyard: heap settings"
HANGS = "hangs"
NOBODY = 65534
# Of Python's own test suite.
PYTHON_TESTS = (
    "test_threading",
    "test_thread",
    "test_threading_local",
    "test_ctypes",
    "test_json",
    "test_pickle",
    "test_multiprocessing_fork",
    "test_concurrent_futures",
)


@dataclasses.dataclass(frozen=True)
class Outcome:
    output: str
    code: int
    on_heap: bool


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    needs: tuple[str, ...]
    """Commands or files that must be there."""
    command: tuple[str, ...]
    """{here} is the folder of the scripts, {python} a Python with its tests. Run in a fresh, empty folder."""
    seconds: int = 120
    """Without any processor time for it or its children, after which it hangs. A busy machine, or one that stops it,
    makes it slow, and that is no difference."""
    normalise: Callable[[str], str] = str
    as_nobody: bool = False
    """It refuses to run as root."""
    silent: bool = False
    """It compares its own children's standard error: the heap must not tell its settings there."""


def python_result(text: str) -> str:
    """Which tests ran and how each ended, without their order and times."""
    failed = sorted(set(re.findall(r"\] (test\S+ (?:failed|crashed|timed out))", text)))
    result = re.findall(r"^Result: (\w+)", text, re.M) or re.findall(r"^Tests result: (\w+)", text, re.M)
    ok = re.findall(r"^All (\d+) tests OK|^(\d+) tests? OK", text, re.M)
    return f"failed: {failed}\nresult: {result}\nok: {ok}\n"


def without_clock(text: str) -> str:
    return re.sub(r"\b1[5-9]\d{8}\b", "TIME", re.sub(r"last_turn_change_time=\d+", "", text))


@functools.cache
def tested_python() -> str:
    """The first Python that has its own tests beside it, else whichever comes first; many are installed without."""
    found = [path for path in (shutil.which("python3"), "/usr/bin/python3") if path is not None and Path(path).exists()]
    for path in found:
        if (
            subprocess.run(
                [path, "-c", f"import test.{PYTHON_TESTS[-1]}, test.{PYTHON_TESTS[-2]}"],
                capture_output=True,
                check=False,
            ).returncode
            == 0
        ):
            return path
    return found[0] if found else "python3"


def is_under(interpreter: str, environment: dict[str, str]) -> bool:
    """Whether a Python that is started so has the heap under it."""
    done = subprocess.run(
        [interpreter, "-c", "print(open('/proc/self/maps').read())"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return LIBRARY.name in done.stdout


def shell(script: str) -> tuple[str, ...]:
    return ("{here}/" + script,)


PROGRAMS = (
    Program("bash", ("bash",), shell("bash.sh")),
    Program("git", ("git",), shell("git.sh")),
    Program("gcc", ("g++",), shell("gcc.sh"), seconds=300),
    Program(
        "python",
        ("python3", *(f"python:test.{name}" for name in PYTHON_TESTS)),
        ("{python}", "-m", "test", "-j2", "--timeout", "3000", *PYTHON_TESTS),
        seconds=900,
        normalise=python_result,
        silent=True,
    ),
    Program("perl", ("perl",), ("perl", "{here}/words.pl")),
    Program("node", ("node",), ("node", "{here}/work.js")),
    Program("java", ("java", "javac"), ("java", "-Xmx256m", "{here}/Work.java"), seconds=180),
    Program("sqlite3", ("sqlite3",), shell("sqlite.sh")),
    Program("redis", ("redis-server", "redis-benchmark", "redis-cli"), shell("redis.sh"), seconds=180),
    Program(
        "freeciv",
        ("/usr/games/freeciv-server", "xz", "setpriv"),
        shell("freeciv.sh"),
        seconds=300,
        normalise=without_clock,
        as_nobody=True,
    ),
    Program(
        "supertux",
        ("/usr/games/supertux2", "xvfb-run"),
        ("xvfb-run", "-a", "-s", "-screen 0 800x600x24 +extension GLX", "{here}/supertux.sh"),
        seconds=60,
    ),
)


def missing(program: Program) -> list[str]:
    def there(need: str) -> bool:
        if need.startswith("python:"):
            return (
                subprocess.run(
                    [tested_python(), "-c", f"import {need.removeprefix('python:')}"], capture_output=True, check=False
                ).returncode
                == 0
            )
        return Path(need).exists() if need.startswith("/") else shutil.which(need) is not None

    return [need for need in program.needs if not there(need)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(program: Program, with_heap: bool) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="blockyard-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        work = folder / "work"
        work.mkdir()
        # Another user may not be let into a checkout: what it needs lies here.
        scripts = folder / "programs"
        shutil.copytree(HERE, scripts)
        library = folder / LIBRARY.name
        shutil.copy(LIBRARY, library)
        environment = {
            **os.environ,
            "HOME": str(work),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PORT": str(free_port()),
            "ROOT": str(ROOT),
            "PYTHONHASHSEED": "0",
        }
        if with_heap:
            environment |= {"LD_PRELOAD": str(library)} | ({} if program.silent else {"BLOCKYARD_HEAP_SHOW": "1"})
        command = [word.format(here=scripts, python=tested_python()) for word in program.command]
        if program.as_nobody and os.geteuid() == 0:
            os.chown(work, NOBODY, NOBODY)
            command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
        errors = folder / "errors"
        with errors.open("wb") as error_file:
            process = subprocess.Popen(
                command,
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=error_file,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=_interruptible,
            )
            output = _output_of(process, program.seconds)
            if output is None:
                return Outcome(f"{HANGS}: it took no processor time for {program.seconds} s\n", -1, with_heap)
        said = errors.read_text(errors="replace")
        if process.returncode != 0:
            output += said[-2000:]
        # Where a script joins standard error to its output, the settings are in there.
        on_heap = SEEN in said or SEEN in output or (program.silent and is_under(command[0], environment))
        output = "".join(
            line for line in output.splitlines(keepends=True) if SEEN not in line and "  BLOCKYARD_HEAP_" not in line
        )
        return Outcome(program.normalise(output), process.returncode, on_heap)


def _output_of(process: subprocess.Popen[str], seconds: int) -> str | None:
    """What it prints until it ends; None, and it is ended, when it hangs."""
    idle, before, slice_s = 0.0, 0.0, 0.5
    while True:
        begun = time.monotonic()
        try:
            return process.communicate(timeout=slice_s)[0]
        except subprocess.TimeoutExpired:
            now = _processor_seconds(process.pid)
        # A slice that took much longer is time in which everything here was stopped.
        idle = 0.0 if now != before else idle + min(time.monotonic() - begun, 2 * slice_s)
        before = now
        if idle > seconds:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None


def _processor_seconds(session: int) -> float:
    """Of all processes of a session that live now, their ended children included."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            ticks += sum(int(part) for part in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _interruptible() -> None:
    """A shell has what it starts in the background ignore SIGINT, and tests of Python's own interrupt themselves."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run_up_to_twice(program: Program, with_heap: bool) -> Outcome:
    """Tests among them, Python's own, wait for one another so long and no longer: on a busy machine one may fail once.
    What fails twice has failed, and what passed only then is said."""
    first = run(program, with_heap)
    if first.code == 0:
        return first
    second = run(program, with_heap)
    if second.code == 0:
        side = "with" if with_heap else "without"
        print(f"{program.name}: FAILED ONCE {side} the heap, and passed when it was run again; the first time:")
        for line in first.output.splitlines()[-20:]:
            print(f"    {line[:160]}")
    return second


def compare(program: Program) -> bool:
    begun = time.monotonic()
    without, with_heap = (_run_up_to_twice(program, one) for one in (False, True))
    took = time.monotonic() - begun
    if not with_heap.on_heap:
        print(f"{program.name}: FAILED, the heap was not under it")
        return False
    if (without.output, without.code) == (with_heap.output, with_heap.code):
        if without.code != 0:  # the same failure twice can be a program that never began its work
            print(f"{program.name}: FAILED without the heap too, exit code {without.code}: nothing was compared")
            for line in without.output.splitlines()[:20]:
                print(f"    {line[:160]}")
            return False
        lines = len(without.output.splitlines())
        print(f"{program.name}: the same with the heap ({lines} lines, {took:.0f} s)")
        return True
    print(f"{program.name}: FAILED, exit code {without.code} without the heap and {with_heap.code} with it")
    difference = difflib.unified_diff(
        without.output.splitlines(), with_heap.output.splitlines(), "without", "with", lineterm="", n=1
    )
    for _, line in zip(range(20), difference, strict=False):
        print(f"    {line[:160]}")
    return False


def main() -> int:
    if not LIBRARY.is_file():
        print(f"blockyard: {LIBRARY} was not built", file=sys.stderr)
        return 1
    wanted = sys.argv[1:]
    unknown = set(wanted) - {program.name for program in PROGRAMS}
    if unknown:
        print(
            f"blockyard: there is no program {', '.join(sorted(unknown))} here; there are "
            f"{', '.join(program.name for program in PROGRAMS)}",
            file=sys.stderr,
        )
        return 2
    failed = []
    skipped = []
    for program in PROGRAMS:
        if wanted and program.name not in wanted:
            continue
        lacking = missing(program)
        if lacking:
            skipped.append(program.name)
            print(
                f"SKIPPED: {program.name} was NOT tested: {', '.join(lacking)} is missing "
                "(scripts/install-packages programs)"
            )
        elif not compare(program):
            failed.append(program.name)
        sys.stdout.flush()
    if failed:
        print(f"blockyard: failed: {', '.join(failed)}", file=sys.stderr)
    if skipped:
        print(f"not tested: {', '.join(skipped)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
