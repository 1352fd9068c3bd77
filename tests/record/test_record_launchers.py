"""Launchers and sandboxes don't lose the program, and what begins without the recorder is named."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from recorded import blockyard, program, record, recording
from the_command import success

ROUNDS = 3000


def launched(tmp_path: Path, *command: str) -> None:
    """The program that such a launcher starts is in the journal that was named."""
    done = recording(tmp_path / "launched.byj", *command, program("endings"), "return")
    assert done.exit_code == 7, done.stderr
    assert done.journal().kinds(900_001) == Counter(allocate=ROUNDS)


@pytest.mark.parametrize(
    "change",
    [
        'LD_PRELOAD="libm.so.6"; export LD_PRELOAD; exec "$@"',
        'unset LD_PRELOAD; exec "$@"',
        'exec env -i "$@"',
        'exec env -u LD_PRELOAD -u BLOCKYARD_RECORD "$@"',
    ],
)
def test_a_launcher_that_changes_what_is_preloaded_keeps_the_recorder(tmp_path, change):
    launched(tmp_path, "sh", "-c", change, "launcher")


def test_what_a_launcher_preloads_is_preloaded(tmp_path):
    done = record(
        tmp_path / "x.byj", "sh", "-c", "LD_PRELOAD=libm.so.6; export LD_PRELOAD; exec grep libm /proc/self/maps"
    )
    assert "libm.so.6" in done.stdout
    assert done.journal().info["program"].endswith("grep")


@pytest.mark.parametrize("call", ["posix_spawn", "execle", "execvp"])
def test_each_way_to_start_a_program_keeps_the_recorder(tmp_path, call):
    source = tmp_path / "starts.c"
    source.write_text("""
#define _GNU_SOURCE
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **arguments) {
  char *none[] = {NULL};
  if (strcmp(arguments[1], "posix_spawn") == 0) {
    pid_t child;
    int status;
    if (posix_spawn(&child, arguments[2], NULL, NULL, arguments + 2, none) != 0) return 1;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  if (strcmp(arguments[1], "execle") == 0) execle(arguments[2], arguments[2], arguments[3], NULL, none);
  clearenv();
  execvp(arguments[2], arguments + 2);
  return 1;
}
""")
    subprocess.run(["cc", "-w", "-o", tmp_path / "starts", source], check=True)
    done = recording(tmp_path / "spawned.byj", str(tmp_path / "starts"), call, program("endings"), "return")
    assert done.exit_code == 7
    assert Counter(allocate=ROUNDS) in [one.kinds(900_001) for one in (done.journal(), *done.others())]


def test_a_program_in_another_network_is_recorded(tmp_path):
    if subprocess.run(["unshare", "-rn", "true"], check=False).returncode:
        pytest.skip("ANOTHER NETWORK WAS NOT TESTED: this system lets no program make one")
    launched(tmp_path, "unshare", "-rn")


def test_a_program_in_a_sandbox_of_bubblewrap_is_recorded(tmp_path):
    sandbox = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    if shutil.which("bwrap") is None or subprocess.run([*sandbox, "true"], check=False).returncode:
        pytest.skip("A SANDBOX WAS NOT TESTED: bubblewrap is missing, or this system lets no program make namespaces")
    done = recording(tmp_path / "sandboxed.byj", *sandbox, program("endings"), "return")
    assert done.exit_code == 7, done.stderr
    # bubblewrap forks: the program is a child's.
    assert Counter(allocate=ROUNDS) in [one.kinds(900_001) for one in (done.journal(), *done.others())]


def test_a_program_in_another_process_namespace_is_recorded_beyond_a_full_ring(tmp_path):
    if subprocess.run(["unshare", "-rpf", "true"], check=False).returncode:
        pytest.skip("ANOTHER PROCESS NAMESPACE WAS NOT TESTED: this system lets no program make one")
    source = tmp_path / "busy.c"
    source.write_text(
        "#include <stdlib.h>\nint main(void) { for (int i = 0; i < 900000; ++i) free(malloc(4321)); return 0; }\n"
    )
    subprocess.run(["cc", "-fno-builtin", "-o", tmp_path / "busy", source], check=True)
    options = {"BLOCKYARD_COLLECT_OPTIONS": "--ring-kib 64"}
    done = record(tmp_path / "busy.byj", "unshare", "-rpf", str(tmp_path / "busy"), options=("--no-stacks",), **options)
    assert 900_000 in [len(one.of_size(4321)) for one in (done.journal(), *done.others())]


def test_a_journal_says_when_a_sibling_has_more(tmp_path):
    output = tmp_path / "game.byj"
    record(output, "sh", "-c", f"{program('endings')} return; exit 0")
    for verb in ("info", "sites", "check"):
        said = success(blockyard(verb, output))
        assert "is of the same recording and has more: " in said.stderr and "record-endings" in said.stderr, verb
    [largest] = tmp_path.glob("game.*.byj")
    said = success(blockyard("info", largest))
    assert said.stderr == ""
    apart = tmp_path / "game.processes"
    apart.mkdir()
    largest.rename(apart / largest.name)
    beside = tmp_path / "game.2.byj"
    beside.write_bytes(output.read_bytes())
    said = success(blockyard("info", beside))
    assert str(apart / largest.name) in said.stderr
    beside.unlink()
    (apart / largest.name).rename(largest)
    other = tmp_path / "game.1.byj"
    other.write_bytes(largest.read_bytes())
    record(output, "true", options=("--force",))
    said = success(blockyard("info", output))
    assert "same recording" not in said.stderr, "an older recording's journal is no sibling"
