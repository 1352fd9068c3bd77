"""Nothing is said to be clean that was not seen: what the recorder can't hook, it names, and what it can, it hooks."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from recorded import blockyard, record, recording
from the_command import success

# A malloc of a program's own, as a statically linked allocator has it: PREFIX is what its names begin with.
ALLOCATOR = """
#include <stddef.h>
#include <string.h>
static char pool[1 << 24];
static size_t at;
void *PREFIX(malloc)(size_t size) {
  at = (at + 31) & ~(size_t)15;
  if (at + size > sizeof pool) at = 16;
  void *block = pool + at;
  memcpy((char *)block - 8, &size, sizeof size);
  at += size;
  return block;
}
void PREFIX(free)(void *block) { (void)block; }
void *PREFIX(calloc)(size_t count, size_t size) { return memset(PREFIX(malloc)(count * size), 0, count * size); }
void *PREFIX(realloc)(void *block, size_t size) {
  void *moved = PREFIX(malloc)(size);
  return block == NULL ? moved : memmove(moved, block, size);
}
"""
USER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *PREFIX(malloc)(size_t size);
void PREFIX(free)(void *block);
int main(void) {
  for (int i = 0; i < 4000; ++i) PREFIX(free)(PREFIX(malloc)(1234));
  for (int i = 0; i < 10; ++i) free(strdup("by the C library"));
  return 0;
}
"""


def built(folder: Path, name: str, source: str, *options: str, compiler: str = "cc") -> str:
    """Of translation units that stand between lines of dashes."""
    files = []
    for number, unit in enumerate(source.split("\n----\n")):
        files.append(folder / f"{name}{number}.c")
        files[-1].write_text(unit)
    subprocess.run([compiler, "-w", "-O2", "-g", "-fno-builtin", *options, "-o", folder / name, *files], check=True)
    return str(folder / name)


@pytest.mark.parametrize("prefix", ["", "mi_", "_rjem_", "je_"])
@pytest.mark.parametrize("options", [(), ("-no-pie",)])
def test_an_allocator_in_the_program_is_recorded(tmp_path, prefix, options):
    define = f"-DPREFIX(name)={prefix}##name" if prefix else "-DPREFIX(name)=name"
    program = built(tmp_path, "own", ALLOCATOR + "\n----\n" + USER, define, *options)
    done = record(tmp_path / "own.byj", program)
    journal = done.journal()
    assert journal.kinds(1234) == Counter(allocate=4000)
    assert journal.frees_of(1234) == 4000
    assert len(journal.of_size(len("by the C library") + 1)) == 10, "also what libraries ask for"
    assert "own has an allocator of its own" in done.stderr


def test_operators_of_an_allocator_in_the_program_are_recorded_with_the_size_asked_for(tmp_path):
    operators = """
#include <cstddef>
#include <new>
extern "C" void *malloc(std::size_t size);
static inline void *give(std::size_t size) { static char pool[1 << 24]; static std::size_t at;
  at = (at + 15) & ~std::size_t{15}; void *block = pool + at; at += size; return block; }
extern "C" { void *malloc(std::size_t size) { return give(size); } void free(void *) {}
void *calloc(std::size_t count, std::size_t size) { return give(count * size); }
void *realloc(void *, std::size_t size) { return give(size); } }
void *operator new(std::size_t size) { return give(size); }
void *operator new[](std::size_t size) { return give(size); }
void *operator new(std::size_t size, const std::nothrow_t &) noexcept { return give(size); }
void *operator new[](std::size_t size, const std::nothrow_t &) noexcept { return give(size); }
void operator delete(void *) noexcept {}
void operator delete(void *, std::size_t) noexcept {}
void operator delete[](void *) noexcept {}
"""
    user = """
#include <new>
int main() {
  for (int i = 0; i < 300; ++i) ::operator delete(::operator new(1234), 1234ul);
  for (int i = 0; i < 200; ++i) ::operator delete[](::operator new[](2345));
  return 0;
}
"""
    program = built(tmp_path, "operators", operators + "\n----\n" + user, "-x", "c++", compiler="g++")
    journal = record(tmp_path / "operators.byj", program).journal()
    assert journal.kinds(1234, 2345) == Counter(allocate=500)
    assert (journal.frees_of(1234), journal.frees_of(2345)) == (300, 200)


NOTHROW = "void *operator new(std::size_t size, const std::nothrow_t &) noexcept { return give(size); }"


@pytest.mark.parametrize("nothrow, size", [(NOTHROW, 1234), ("", 1234 + 64)])
def test_operators_of_a_program_with_a_malloc_of_its_own_are_called(tmp_path, nothrow, size):
    operators = f"""
#include <cstddef>
#include <new>
extern "C" {{ void *malloc(std::size_t size); void free(void *block); }}
long news, deletes;
static void *give(std::size_t size) {{ ++news; return (char *)malloc(size + 64) + 64; }}
void *operator new(std::size_t size) {{ return give(size); }}
{nothrow}
void operator delete(void *block) noexcept {{ ++deletes; free((char *)block - 64); }}
void operator delete(void *block, std::size_t) noexcept {{ ++deletes; free((char *)block - 64); }}
"""
    user = """
#include <new>
extern long news, deletes;
int main() {
  for (int i = 0; i < 300; ++i) ::operator delete(::operator new(1234), 1234ul);
  return news == 300 && deletes == 300 ? 0 : 1;
}
"""
    allocator = tmp_path / "allocator.o"
    (tmp_path / "allocator.c").write_text(ALLOCATOR)
    options = ("-w", "-O2", "-fno-builtin", "-DPREFIX(name)=name")
    subprocess.run(["cc", *options, "-c", tmp_path / "allocator.c", "-o", allocator], check=True)
    link = ("-x", "c++", "-Wl," + str(allocator))
    program = built(tmp_path, "counts", operators + "\n----\n" + user, *link, compiler="g++")
    journal = record(tmp_path / "counts.byj", program).journal()
    assert (journal.kinds(size), journal.frees_of(size)) == (Counter(allocate=300), 300)
    assert len([event for event in journal.events if event.size in (1234, 1234 + 64)]) == 300


def test_an_object_that_looks_functions_up_at_their_first_call_reaches_the_hooks(tmp_path):
    define = "-DPREFIX(name)=name"
    library = "void *malloc(unsigned long); void free(void *); void use(void) { free(malloc(4321)); }"
    lazy = built(tmp_path, "liblazy.so", library, "-shared", "-fPIC", "-Wl,-z,lazy", "-Wl,-z,norelro", "-fno-builtin")
    user = "void use(void); int main(void) { for (int i = 0; i < 500; ++i) use(); return 0; }"
    link = ("-rdynamic", "-Wl,-z,lazy,--no-as-needed,-rpath," + str(tmp_path), lazy)
    program = built(tmp_path, "lazy", ALLOCATOR + "\n----\n" + user, define, *link)
    journal = record(tmp_path / "lazy.byj", program).journal()
    assert (journal.kinds(4321), journal.frees_of(4321)) == (Counter(allocate=500), 500)


def test_an_allocator_that_is_linked_in_is_recorded_under_all_its_names(tmp_path):
    more = """
void *malloc(size_t size) __attribute__((alias("mi_malloc")));
void free(void *block) __attribute__((alias("mi_free")));
void *mi_malloc_aligned(size_t size, size_t alignment) { (void)alignment; return mi_malloc(size); }
"""
    user = """
#include <stdlib.h>
void *mi_malloc_aligned(size_t size, size_t alignment);
void mi_free(void *block);
int main(void) {
  for (int i = 0; i < 100; ++i) mi_free(mi_malloc_aligned(7777, 64));
  for (int i = 0; i < 100; ++i) free(malloc(8888));
  return 0;
}
"""
    program = built(tmp_path, "names", ALLOCATOR + more + "\n----\n" + user, "-DPREFIX(name)=mi_##name")
    journal = record(tmp_path / "names.byj", program).journal()
    assert (journal.kinds(7777), journal.kinds(8888)) == (Counter(aligned=100), Counter(allocate=100))
    assert (journal.frees_of(7777), journal.frees_of(8888)) == (100, 100)


def test_an_allocator_that_calls_the_one_behind_it_is_recorded_once(tmp_path):
    wrapper = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
void *malloc(size_t size) {
  static void *(*behind)(size_t);
  if (behind == NULL) behind = dlsym(RTLD_NEXT, "malloc");
  return behind(size);
}
void free(void *block) {
  static void (*behind)(void *);
  if (behind == NULL) behind = dlsym(RTLD_NEXT, "free");
  behind(block);
}
"""
    program = built(tmp_path, "wrapper", wrapper + "\n----\n" + USER, "-DPREFIX(name)=name")
    journal = record(tmp_path / "wrapper.byj", program).journal()
    assert journal.kinds(1234) == Counter(allocate=4000)
    assert journal.frees_of(1234) == 4000


def test_an_allocator_without_symbols_is_named_by_record_info_and_every_verb(tmp_path):
    message = '\nconst char *message(void) { return "<jemalloc>: out of memory"; }\n'
    source = (
        ALLOCATOR
        + message
        + "\n----\n"
        + USER.replace("int main", "const char *message(void);\nint main").replace(
            "return 0", "return message()[0] != 60"
        )
    )
    program = built(tmp_path, "stripped", source, "-DPREFIX(name)=own_##name", "-s")
    output = tmp_path / "stripped.byj"
    done = record(output, program)
    assert "stripped carries jemalloc: what is allocated there was not recorded; build it without" in done.stderr
    for verb in (["info", output], ["check", output], ["sites", output], ["convert", output, "-o", tmp_path / "x.txt"]):
        said = success(blockyard(*verb))
        assert said.stderr.startswith("Note: ") and "jemalloc" in said.stderr, verb
    assert "jemalloc" in (tmp_path / "x.txt").read_text(), "a text journal says it, too"


def test_a_preloaded_allocator_is_known_by_its_file_whatever_links_lead_to_it(tmp_path):
    (tmp_path / "inner").mkdir()
    source = ALLOCATOR + "void *mi_malloc(size_t size) { return malloc(size); }"
    library = built(tmp_path / "inner", "liballocator.so.2.0", source, "-DPREFIX(name)=name", "-shared", "-fPIC")
    link = tmp_path / "libother.so"
    link.symlink_to(library)
    program = built(tmp_path, "user", USER, "-DPREFIX(name)=name")
    done = record(tmp_path / "linked.byj", "env", f"LD_PRELOAD={link}", program)
    assert done.journal().kinds(1234) == Counter(allocate=4000)
    assert done.journal().info["unseen"] == []


def test_a_program_that_never_allocates_is_not_said_to_be_clean(tmp_path):
    program = built(tmp_path, "silent", "int main(void) { return 0; }")
    unseen = record(tmp_path / "silent.byj", program).journal().info["unseen"]
    assert unseen == ["no call of malloc was seen: this says nothing of how silent allocates"]


def test_memory_that_did_not_come_from_malloc_is_reported(tmp_path):
    source = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  free(malloc(100));
  size_t bytes = (size_t)200 << 20;
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 1, bytes);
  sleep(2);
  return 0;
}
"""
    (sentence,) = record(tmp_path / "mapped.byj", built(tmp_path, "mapped", source)).journal().info["unseen"]
    assert "the rest came from elsewhere than malloc" in sentence


def test_an_ordinary_program_gets_no_warning(tmp_path):
    done = record(tmp_path / "plain.byj", "sort", "/etc/passwd")
    assert done.journal().info["unseen"] == []
    assert "own" not in done.stderr and "began without" not in done.stderr


def test_frees_behind_deepbind_are_seen(tmp_path):
    plugin = built(tmp_path, "plugin.so", "void free(void *); void give_back(void *b) { free(b); }", "-shared", "-fPIC")
    source = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **arguments) {
  void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
  void (*give_back)(void *) = (void (*)(void *))dlsym(plugin, "give_back");
  void *blocks[3000];
  for (int i = 0; i < 3000; ++i) blocks[i] = malloc(77777);
  for (int i = 0; i < 3000; ++i) give_back(blocks[i]);
  return 0;
}
"""
    done = record(tmp_path / "deep.byj", built(tmp_path, "deep", source, "-ldl"), plugin)
    assert done.journal().frees_of(77777) == 3000


@pytest.mark.parametrize(
    "compiler, option, name",
    [
        ("gcc", "-fsanitize=address", "AddressSanitizer"),
        ("gcc", "-fsanitize=thread", "ThreadSanitizer"),
        ("clang", "-fsanitize=address", "AddressSanitizer"),
        ("clang", "-fsanitize=memory", "MemorySanitizer"),
    ],
)
def test_a_sanitized_program_is_refused_before_it_starts(tmp_path, compiler, option, name):
    more = ["-static-libasan"] if (compiler, name) == ("gcc", "AddressSanitizer") else []
    program = built(
        tmp_path,
        "sanitized",
        '#include <stdio.h>\nint main(void) { puts("ran"); return 0; }',
        option,
        *more,
        compiler=compiler,
    )
    done = recording(tmp_path / "x.byj", program)
    assert done.exit_code == 1 and done.stdout == ""
    assert f"is built with {name}" in done.stderr


@pytest.mark.parametrize("option", ["-fsanitize=address", "-fsanitize=thread"])
def test_a_sanitized_program_runs_unharmed_when_a_recorded_one_starts_it(tmp_path, option):
    program = built(
        tmp_path, "inner", '#include <stdio.h>\nint main(void) { puts("ran"); return 0; }', option, compiler="clang"
    )
    done = recording(tmp_path / "outer.byj", "sh", "-c", f"{program}; exit $?")
    assert (done.exit_code, done.stdout) == (0, "ran\n"), done.stderr


def test_a_musl_program_is_refused(tmp_path):
    # Only the header is looked at, so that the test needs no other C library.
    program = tmp_path / "musl"
    real = bytearray(Path("/bin/true").resolve().read_bytes())
    at = real.find(b"/lib64/ld-linux-x86-64.so.2\0")
    if at < 0:
        pytest.skip("A MUSL PROGRAM WAS NOT TESTED: /bin/true has another dynamic linker")
    real[at : at + 28] = b"/lib/ld-musl-x86_64.so.1".ljust(28, b"\0")
    program.write_bytes(real)
    program.chmod(0o755)
    done = recording(tmp_path / "x.byj", str(program))
    assert done.exit_code == 1 and "musl" in done.stderr


def test_a_program_that_forbids_the_cycle_counter_runs_on_and_is_recorded_so_far(tmp_path):
    source = """
#include <stdlib.h>
#include <sys/prctl.h>
int main(void) {
  for (int i = 0; i < 100; ++i) free(malloc(1111));
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  for (int i = 0; i < 100; ++i) free(malloc(2222));
  return 0;
}
"""
    done = record(tmp_path / "tsc.byj", built(tmp_path, "tsc", source))
    assert done.journal().kinds(1111) == Counter(allocate=100)
    assert "1 thread was not recorded to the end" in done.stderr


def test_what_a_vfork_child_forbids_itself_is_not_forbidden_its_parent(tmp_path):
    source = """
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  free(malloc(1111));
  const pid_t child = vfork();
  if (child == 0) {
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
    _exit(0);
  }
  waitpid(child, 0, 0);
  for (int i = 0; i < 100; ++i) free(malloc(2222));
  return 0;
}
"""
    done = record(tmp_path / "vfork.byj", built(tmp_path, "vfork", source))
    assert done.journal().kinds(2222) == Counter(allocate=100)
    assert "not recorded to the end" not in done.stderr


def test_a_program_that_is_refused_strict_mode_is_recorded_to_its_end(tmp_path):
    source = """
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
int main(void) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  struct { unsigned short count; void *steps; } filter;
  struct { unsigned short code; unsigned char jt, jf; unsigned k; } allow = {6, 0, 0, 0x7fff0000};
  filter.count = 1;
  filter.steps = &allow;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) return 2;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0) return 3;
  for (int i = 0; i < 100; ++i) free(malloc(2222));
  return 0;
}
"""
    done = record(tmp_path / "strict.byj", built(tmp_path, "strict", source))
    assert done.journal().kinds(2222) == Counter(allocate=100)
    assert "not recorded to the end" not in done.stderr


def test_strict_mode_is_entered_and_what_came_before_is_recorded(tmp_path):
    source = """
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
  for (int i = 0; i < 100; ++i) free(malloc(1111));
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) != 0) return 2;
  for (int i = 0; i < 100; ++i) free(malloc(2222));
  write(1, "lives", 5);
  syscall(SYS_exit, 0);
}
"""
    done = record(tmp_path / "strict.byj", built(tmp_path, "strict", source))
    assert done.stdout == "lives"
    assert done.journal().kinds(1111) == Counter(allocate=100)


def test_a_signal_handler_on_the_smallest_stack_allocates(tmp_path):
    source = """
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
static void handle(int number) { (void)number; for (int i = 0; i < 10; ++i) free(malloc(3333)); }
int main(void) {
  free(malloc(1));
  char *pages = mmap(0, 12288, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);  // a fault below and above
  mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE);
  stack_t stack = {.ss_sp = pages + 4096, .ss_size = 4096};
  if (sigaltstack(&stack, 0) != 0) return 2;
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, 0);
  for (int i = 0; i < 100; ++i) raise(SIGUSR1);
  return 0;
}
"""
    done = record(tmp_path / "small.byj", built(tmp_path, "small", source))
    assert done.journal().kinds(3333) == Counter(allocate=1000)


def test_a_program_that_only_asks_for_a_sanitizer_is_recorded(tmp_path):
    source = """
#include <stdlib.h>
void __asan_init(void) __attribute__((weak));
int main(void) { free(malloc(4444)); return __asan_init != 0; }
"""
    done = record(tmp_path / "asks.byj", built(tmp_path, "asks", source))
    assert done.journal().kinds(4444) == Counter(allocate=1)


def test_a_folder_that_is_not_text_takes_journals_and_names(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    done = record(folder / "x.byj", "sort", "/etc/passwd")
    assert "without names" not in done.stderr
    assert done.journal().info["stacks"]["named_addresses"]
