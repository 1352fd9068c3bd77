"""The machine that a campaign runs on: described for the reader, and examined for what would spoil figures."""

import os
import platform
import time
from pathlib import Path

import msgspec

from blockyard.campaign import facts
from blockyard.campaign.facts import MachineFacts
from blockyard.campaign.folder import MACHINE
from blockyard.errors import UserError
from blockyard.files import whole_text

_GIB = 1 << 30

# Share of one core that may be in use by others before a campaign warns. The probe itself and an idle desktop stay
# below; a compiler or a browser playing anything is far above.
_BUSY_CORES = 0.15
_PROBE_S = 0.2


def describe() -> MachineFacts:
    cpu = _fields("/proc/cpuinfo", ":")
    found = MachineFacts(
        cpu=_cpu_words(cpu),
        architecture=platform.machine(),
        cores=os.cpu_count() or 1,
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=platform.release(),
        libc=" ".join(platform.libc_ver()).strip(),
        distribution=_fields("/etc/os-release", "=").get("PRETTY_NAME", "unknown").strip('"'),
        clock=_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown",
        transparent_huge_pages=transparent_huge_pages(),
        governor=governor(),
        virtualised="hypervisor" in (cpu.get("flags") or cpu.get("Features", "")).split(),
    )
    return msgspec.structs.replace(found, kind=kind(found))


def read(folder: Path) -> MachineFacts:
    """What a campaign's folder holds of it."""
    try:
        found = facts.read(folder / MACHINE, MachineFacts)
    except (FileNotFoundError, UserError):
        found = MachineFacts()
    if not found.kind:
        raise UserError(
            f"{folder / MACHINE} is missing or damaged, so nobody can tell which machine the runs in {folder} come "
            "from; measure them again in another folder"
        )
    return found


def write(folder: Path, found: MachineFacts) -> None:
    whole_text(folder / MACHINE, msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")


def refuse_another(folder: Path) -> None:
    """Refuses to go on with a folder that another kind of machine began."""
    before, now = read(folder), describe()
    if before.kind != now.kind:
        raise UserError(
            f"the finished runs in {folder} come from another kind of machine "
            f"({', then '.join(kind_differences(before, now))} now), and one comparison never mixes machines; measure "
            "again in another folder"
        )


def kind(of: MachineFacts) -> str:
    """Everything known to move a latency. Memory is rounded: firmware takes its bite out of equal machines."""
    parts = [
        of.cpu,
        of.architecture,
        f"{of.cores} cores",
        f"{round(of.memory_bytes / _GIB)} GiB",
        f"Linux {of.kernel}",
        of.libc,
        of.distribution,
        f"clock {of.clock}",
        f"transparent huge pages {of.transparent_huge_pages}",
        f"governor {of.governor}",
        "virtual" if of.virtualised else "bare metal",
    ]
    return ", ".join(parts)


def kind_differences(one: MachineFacts, other: MachineFacts) -> list[str]:
    """How two machines of different kinds differ, each difference a phrase."""
    keys = "cpu architecture cores kernel libc distribution clock transparent_huge_pages governor virtualised".split()
    said = {"cpu": "processor", "libc": "C library", "virtualised": "virtualisation"}
    pairs = {said.get(key, key.replace("_", " ")): (getattr(one, key), getattr(other, key)) for key in keys}
    found = [f"{name} {here} and {there}" for name, (here, there) in pairs.items() if here != there]
    memory = [round(machine.memory_bytes / _GIB) for machine in (one, other)]
    if memory[0] != memory[1]:
        found.append(f"memory {memory[0]} and {memory[1]} GiB")
    return found or [f"kind '{one.kind}' and '{other.kind}'"]


def busy_cores(seconds: float = _PROBE_S) -> float:
    """How many cores' worth of work others do right now, from two looks at /proc/stat."""
    before, after = _busy_and_all_ticks(), (time.sleep(seconds), _busy_and_all_ticks())[1]
    passed = after[1] - before[1]
    return (after[0] - before[0]) / passed * (os.cpu_count() or 1) if passed > 0 else 0.0


def is_busy(busy: float) -> bool:
    """Whether others use so many cores that figures suffer."""
    return busy > _BUSY_CORES


def microcode() -> str:
    """Of the processor, as the kernel names it; empty where it doesn't."""
    return _fields("/proc/cpuinfo", ":").get("microcode", "")


def warnings(of: MachineFacts, busy: float) -> list[str]:
    """What the reader of the figures must know, or better put right first; each a sentence that says what to do."""
    found = []
    if is_busy(busy):
        found.append(
            f"the machine is busy ({busy:.1f} of its {of.cores} cores are in use by others), which "
            "raises every latency; stop what else is running and start again"
        )
    if of.cores < 2:
        found.append(
            "the machine has a single core, so an allocator's background work interrupts the program; "
            "compare only with figures from one core"
        )
    if of.governor not in ("performance", "unknown"):
        found.append(
            f"the processor's governor is '{of.governor}', so its clock changes during a run; "
            "'cpupower frequency-set -g performance' holds it"
        )
    if of.transparent_huge_pages == "always":
        found.append(
            "transparent huge pages are 'always', so single first touches take hundreds of microseconds; "
            "'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled' is Debian's own setting"
        )
    if of.clock not in ("tsc", "arch_sys_counter", "unknown"):
        found.append(
            f"the kernel distrusts the cycle counter and keeps time by '{of.clock}', so latencies may "
            "be wrong; measure on another machine"
        )
    return found


def governor() -> str:
    """The governors of all cores; `unknown` where the machine doesn't say, as most virtual ones don't."""
    found = {_first_line(path) for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return "+".join(sorted(name for name in found if name)) or "unknown"


def transparent_huge_pages() -> str:
    """`always`, `madvise` or `never`: the bracketed word of the kernel's setting."""
    line = _first_line("/sys/kernel/mm/transparent_hugepage/enabled")
    return line.partition("[")[2].partition("]")[0] or "unknown"


def _first_line(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""


def _fields(path: str, separator: str) -> dict[str, str]:
    """Of a file with a key and a value a line, the first value of each."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    parted = (line.partition(separator) for line in reversed(lines))
    return {key.strip(): value.strip() for key, found, value in parted if found}


def _cpu_words(fields: dict[str, str]) -> str:
    if "model name" in fields:
        numbers = " ".join(fields[key] for key in ("cpu family", "model", "stepping") if key in fields)
        return f"{fields['model name']} ({numbers})" if numbers else fields["model name"]
    # aarch64 names no model; the numbers still tell machines apart.
    parts = [
        f"{key.removeprefix('CPU ')} {fields[key]}"
        for key in ("CPU implementer", "CPU part", "CPU variant")
        if key in fields
    ]
    return ", ".join(parts) or platform.machine()


def _busy_and_all_ticks() -> tuple[int, int]:
    numbers = [int(word) for word in _first_line("/proc/stat").split()[1:9]]
    if len(numbers) < 5:
        return 0, 0
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, sum(numbers)
