"""System calls of a traced run, by event: what the allocator's own work was. Its latencies are never looked at."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from blockyard.analysis import samples
from blockyard.analysis.facts import MachineFacts
from blockyard.analysis.sections import AllocatorRuns

ROW = np.dtype(
    [("event", "<u4"), ("thread", "<u2"), ("call", "<u2"), ("errors", "<u4"), ("count", "<u4"), ("ns", "<u8")]
)
OUTSIDE = 4294967295
"""As `event`: a background thread, a thread's start."""
OWN_THREAD = 65535
"""As `thread`, outside any event: one that the allocator started."""
FOLDER = "trace"

# Numbers from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h): those
# that an allocator or a thread's start is known to make.
_X86_64 = {
    0: "read",
    1: "write",
    3: "close",
    5: "fstat",
    9: "mmap",
    10: "mprotect",
    11: "munmap",
    12: "brk",
    13: "rt_sigaction",
    14: "rt_sigprocmask",
    17: "pread64",
    24: "sched_yield",
    25: "mremap",
    27: "mincore",
    28: "madvise",
    35: "nanosleep",
    39: "getpid",
    56: "clone",
    60: "exit",
    63: "uname",
    89: "readlink",
    98: "getrusage",
    99: "sysinfo",
    131: "sigaltstack",
    149: "mlock",
    150: "munlock",
    157: "prctl",
    158: "arch_prctl",
    186: "gettid",
    202: "futex",
    203: "sched_setaffinity",
    204: "sched_getaffinity",
    218: "set_tid_address",
    228: "clock_gettime",
    230: "clock_nanosleep",
    234: "tgkill",
    237: "mbind",
    238: "set_mempolicy",
    239: "get_mempolicy",
    257: "openat",
    262: "newfstatat",
    273: "set_robust_list",
    302: "prlimit64",
    309: "getcpu",
    318: "getrandom",
    319: "memfd_create",
    324: "membarrier",
    325: "mlock2",
    334: "rseq",
    435: "clone3",
    440: "process_madvise",
}
_AARCH64 = {
    56: "openat",
    57: "close",
    63: "read",
    64: "write",
    67: "pread64",
    78: "readlinkat",
    79: "newfstatat",
    80: "fstat",
    93: "exit",
    96: "set_tid_address",
    98: "futex",
    99: "set_robust_list",
    101: "nanosleep",
    113: "clock_gettime",
    115: "clock_nanosleep",
    122: "sched_setaffinity",
    123: "sched_getaffinity",
    124: "sched_yield",
    131: "tgkill",
    132: "sigaltstack",
    134: "rt_sigaction",
    135: "rt_sigprocmask",
    160: "uname",
    165: "getrusage",
    167: "prctl",
    168: "getcpu",
    172: "getpid",
    178: "gettid",
    179: "sysinfo",
    214: "brk",
    215: "munmap",
    216: "mremap",
    220: "clone",
    222: "mmap",
    226: "mprotect",
    228: "mlock",
    229: "munlock",
    232: "mincore",
    233: "madvise",
    235: "mbind",
    236: "get_mempolicy",
    237: "set_mempolicy",
    261: "prlimit64",
    278: "getrandom",
    279: "memfd_create",
    283: "membarrier",
    284: "mlock2",
    293: "rseq",
    435: "clone3",
    440: "process_madvise",
}


def name(call: int, architecture: str) -> str:
    """`mmap`; a number without a name here is `call 123`."""
    return {"x86_64": _X86_64, "aarch64": _AARCH64}.get(architecture, {}).get(call, f"call {call}")


@dataclass(frozen=True)
class Trace:
    """One allocator's traced run. `rows` are in order of event, those outside any event last."""

    rows: np.ndarray
    architecture: str

    def of_event(self, event: int) -> list[tuple[str, int]]:
        """(name, how often) of the calls that this event made; empty where it made none."""
        begin, end = np.searchsorted(self.rows["event"], [event, event + 1]) if event != OUTSIDE else (0, 0)
        return [(name(int(row["call"]), self.architecture), int(row["count"])) for row in self.rows[begin:end]]

    def totals(self, events: np.ndarray | None = None) -> Counter[str]:
        """Calls by name, of events in the sorted array (all measured events where None)."""
        inside = self.rows[self.rows["event"] != OUTSIDE]
        if events is not None and len(events):
            places = np.minimum(np.searchsorted(events, inside["event"]), len(events) - 1)
            inside = inside[events[places] == inside["event"]]
        return self._counted(inside if events is None or len(events) else inside[:0])

    def outside(self) -> Counter[str]:
        """Calls of the program's threads outside any event: they start, end, and free what is left."""
        return self._counted(self.rows[(self.rows["event"] == OUTSIDE) & (self.rows["thread"] != OWN_THREAD)])

    def own_threads(self) -> Counter[str]:
        """Calls of threads that the allocator started."""
        return self._counted(self.rows[(self.rows["event"] == OUTSIDE) & (self.rows["thread"] == OWN_THREAD)])

    def errors(self) -> int:
        return int(self.rows["errors"].sum())

    def _counted(self, rows: np.ndarray) -> Counter[str]:
        found: Counter[str] = Counter()
        for call in np.unique(rows["call"]):
            found[name(int(call), self.architecture)] += int(rows["count"][rows["call"] == call].sum())
        return found


def read(allocator: AllocatorRuns, machine: MachineFacts) -> Trace | None:
    """The traced run beside the allocator's repeats; None where there is none (`blockyard replay --trace` makes it)."""
    folder = allocator.runs[0].folder.parent / FOLDER
    facts = _facts(folder)
    if facts is None or facts.get("status") != "ok":
        return None
    rows = np.array(samples.columns(folder / "syscalls.npy", ROW, "system call"))
    return Trace(rows[np.argsort(rows["event"], kind="stable")], machine.architecture or "x86_64")


def phrase(calls: list[tuple[str, int]]) -> str:
    """`mmap, madvise x3`."""
    return ", ".join(f"{call} x{count}" if count > 1 else call for call, count in calls)


def _facts(folder: Path) -> dict[str, Any] | None:
    try:
        return samples.document(folder / "run.json")
    except FileNotFoundError:
        return None
