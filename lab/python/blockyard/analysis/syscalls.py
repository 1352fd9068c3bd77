"""System calls of a traced run, by event: what the allocator's own work was. Its latencies are never looked at."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from blockyard.analysis import samples, sections
from blockyard.analysis.samples_library import fields
from blockyard.analysis.sections import AllocatorRuns
from blockyard.campaign.facts import MachineFacts

ROW = np.dtype(fields(("<u4", "event"), ("<u2", "thread call"), ("<u4", "errors count"), ("<u8", "ns")))
OUTSIDE = 4294967295
"""As `event`: a background thread, a thread's start."""
OWN_THREAD = 65535
"""As `thread`, outside any event: one that the allocator started."""
FOLDER = "trace"

# Numbers from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h): those
# that an allocator or a thread's start is known to make.
_CALLS = """
read 0 63, write 1 64, close 3 57, fstat 5 80, mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214,
rt_sigaction 13 134, rt_sigprocmask 14 135, pread64 17 67, sched_yield 24 124, mremap 25 216, mincore 27 232,
madvise 28 233, nanosleep 35 101, getpid 39 172, clone 56 220, exit 60 93, uname 63 160, readlink 89 -,
getrusage 98 165, sysinfo 99 179, sigaltstack 131 132, mlock 149 228, munlock 150 229, prctl 157 167, arch_prctl 158 -,
gettid 186 178, futex 202 98, sched_setaffinity 203 122, sched_getaffinity 204 123, set_tid_address 218 96,
clock_gettime 228 113, clock_nanosleep 230 115, tgkill 234 131, mbind 237 235, set_mempolicy 238 237,
get_mempolicy 239 236, openat 257 56, newfstatat 262 79, set_robust_list 273 99, prlimit64 302 261, getcpu 309 168,
getrandom 318 278, memfd_create 319 279, membarrier 324 283, mlock2 325 284, rseq 334 293, clone3 435 435,
process_madvise 440 440, readlinkat - 78
"""
"""With their numbers on x86-64 and on aarch64."""
_NAMES = {
    architecture: {words[place]: words[0] for words in map(str.split, _CALLS.split(","))}
    for place, architecture in enumerate(("x86_64", "aarch64"), start=1)
}


def name(call: int, architecture: str) -> str:
    """`mmap`; a number without a name here is `call 123`."""
    return _NAMES.get(architecture, {}).get(str(call), f"call {call}")


@dataclass(frozen=True)
class Trace:
    """One allocator's traced run. `rows` are in order of event, those outside any event last."""

    rows: np.ndarray
    architecture: str

    def of_event(self, event: int) -> list[tuple[str, int]]:
        """(name, how often) of the calls that this event made; empty where it made none."""
        begin, end = np.searchsorted(self.rows["event"], [event, event + 1]) if event != OUTSIDE else (0, 0)
        return [(name(int(row["call"]), self.architecture), int(row["count"])) for row in self.rows[begin:end]]

    def totals(self) -> Counter[str]:
        """Calls in measured events, by name."""
        return self._counted(self.rows[self.rows["event"] != OUTSIDE])

    def outside(self) -> Counter[str]:
        """Calls of the program's threads outside any event: they start, end, and free what is left."""
        return self._counted(self.rows[(self.rows["event"] == OUTSIDE) & (self.rows["thread"] != OWN_THREAD)])

    def own_threads(self) -> Counter[str]:
        """Calls of threads that the allocator started."""
        return self._counted(self.rows[(self.rows["event"] == OUTSIDE) & (self.rows["thread"] == OWN_THREAD)])

    def _counted(self, rows: np.ndarray) -> Counter[str]:
        found: Counter[str] = Counter()
        for call in np.unique(rows["call"]):
            found[name(int(call), self.architecture)] += int(rows["count"][rows["call"] == call].sum())
        return found


def read(allocator: AllocatorRuns, machine: MachineFacts) -> Trace | None:
    """The traced run beside the allocator's repeats; None where there is none (`blockyard replay --trace` makes it)."""
    folder = allocator.runs[0].folder.parent / FOLDER
    run = sections.run_in(folder, 1)
    if run is None or not run.ok:
        return None
    rows = np.array(samples.columns(folder / "syscalls.npy", ROW, "system call"))
    return Trace(rows[np.argsort(rows["event"], kind="stable")], machine.architecture or "x86_64")


def phrase(calls: list[tuple[str, int]]) -> str:
    """`mmap, madvise x3`."""
    return ", ".join(f"{call} x{count}" if count > 1 else call for call, count in calls)
