"""Many threads, and programs that lock their memory: the recorder takes what the threads use and no more."""

import json
import re
import subprocess
from pathlib import Path

from recorded import record, recording

from blockyard import native

LOCKS = """
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
int main(void) {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return errno;
  for (int i = 0; i < 1000; ++i) free(malloc(3333));
  char line[200];
  for (FILE *file = fopen("/proc/self/status", "r"); fgets(line, sizeof line, file) != NULL;)
    if (strncmp(line, "VmLck", 5) == 0) fputs(line, stdout);
  return 0;
}
"""
MANY = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *argument) {
  for (int i = 0; i < 1500; ++i) free(malloc(4444));
  return argument;
}
int main(int count, char **arguments) {
  int threads = atoi(arguments[1]);
  pthread_t *all = calloc(threads, sizeof *all);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (int i = 0; i < threads; ++i)
    if (pthread_create(&all[i], &small, work, NULL) != 0) return 1;
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  return 0;
}
"""


def built(folder: Path, name: str, source: str) -> str:
    (folder / f"{name}.c").write_text(source)
    command = ["cc", "-w", "-O1", "-fno-builtin", "-pthread", "-o", folder / name, folder / f"{name}.c"]
    subprocess.run(command, check=True)
    return str(folder / name)


def locked_kib(text: str) -> int:
    return int(re.search(r"VmLck:\s+(\d+) kB", text).group(1))


def test_a_program_that_locks_its_memory_locks_its_threads_rings_alone(tmp_path):
    program = built(tmp_path, "locks", LOCKS)
    plain = subprocess.run([program], capture_output=True, text=True, check=True)
    done = record(tmp_path / "locks.byj", program)
    assert len(done.journal().of_size(3333)) == 1000
    one_thread = 4 << 10  # its ring, its walker's tables and the recorder's code, KiB
    assert locked_kib(done.stdout) < locked_kib(plain.stdout) + one_thread


def test_a_program_may_lock_its_memory_under_the_usual_limit(tmp_path):
    program = built(tmp_path, "locks", LOCKS)
    done = recording(
        tmp_path / "limit.byj", "sh", "-c", f"ulimit -l 8192; exec setpriv --bounding-set=-ipc_lock {program}"
    )
    plain = subprocess.run(
        ["sh", "-c", f"ulimit -l 8192; exec setpriv --bounding-set=-ipc_lock {program}"],
        check=False,
        capture_output=True,
    )
    assert done.exit_code == plain.returncode


def test_a_coroutine_with_a_kilobyte_of_stack_allocates_under_the_recorder(tmp_path):
    source = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
static ucontext_t outside, inside;
static void body(void) {
  for (int i = 0; i < 50; ++i) free(malloc(5555));
  swapcontext(&inside, &outside);
}
int main(void) {
  free(malloc(10));
  char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(memory, 4096, PROT_NONE);
  getcontext(&inside);
  inside.uc_stack.ss_sp = memory + 4096;
  inside.uc_stack.ss_size = 1024;
  makecontext(&inside, body, 0);
  swapcontext(&outside, &inside);
  return 0;
}
"""
    done = record(tmp_path / "coroutine.byj", built(tmp_path, "coroutine", source))
    assert len(done.journal().of_size(5555)) == 50


def test_every_event_of_two_thousand_threads_is_recorded(tmp_path):
    done = record(tmp_path / "many.byj", built(tmp_path, "many", MANY), "2000", options=("--no-names",))
    assert "not recorded" not in done.stderr
    facts = json.loads(native.call("blockyard-journal", ["info", "--json", done.output]))
    workers = [thread for thread in facts["threads"][1:] if thread["allocations"] >= 1500]
    assert len(workers) == 2000
    assert all(thread["frees"] >= 1500 for thread in workers)
    native.call("blockyard-journal", ["check", done.output])
