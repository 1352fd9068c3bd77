"""Synthetic campaign folders as the replayer writes them: exact ones from given rows, and large lifelike ones."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from blockyard.analysis import samples
from blockyard.analysis.passes import ROW
from blockyard.analysis.samples import NO_EVENT
from blockyard.analysis.totals import BURST

MACHINE = json.loads("""{
  "cpu": "Test Processor 9000", "architecture": "x86_64", "cores": 2, "memory_bytes": 8589934592, "kernel": "6.1.0",
  "libc": "glibc 2.36", "distribution": "Debian GNU/Linux 12", "clock": "tsc", "ticks_per_ns": null,
  "transparent_huge_pages": "madvise", "governor": "performance", "virtualised": false, "warnings": [], "kind": "test"
}""")
PLAN = json.loads("""{
  "format": 1, "name": "synthetic", "created_at": "2025-01-01T00:00:00+00:00", "blockyard": "0.1.0", "shard": null,
  "runs": []
}""")
JOURNAL = json.loads("""{
  "sha256": "0", "from_s": null, "to_s": null, "events": 0, "measured_events": 0, "duration_s": 1.0, "blocks": 0
}""")
RUN = json.loads("""{
  "format": 1, "status": "ok", "reason": "", "version": "1.0", "adapter": "adapter.so", "needs_lock": false,
  "needs_pool": false, "threads": "journal", "wall_ns": 1000000000, "cpu_ns": 500000000, "user_ns": 400000000,
  "system_ns": 100000000, "minor_faults": 1234, "major_faults": 0, "voluntary_switches": 1, "involuntary_switches": 1,
  "peak_resident_bytes": 67108864, "lab_resident_bytes": 1048576, "teardown_resident_bytes": 1048576,
  "lateness_ns": {"p50": 50, "p99": 2000, "p999": 9000, "max": 20000}, "order_waits": 0, "environment": {},
  "started_at": "2025-01-01T00:00:00+00:00"
}""")
LOOKING = {"threshold_ns": 270, "events": 0, "ns_a_look": 250, "source": "getrusage", "reason": ""}
SPEEDS = [
    *(("null", 0.05, 0.0), ("glibc", 1.1, 1.2), ("dlmalloc", 1.9, 1.6), ("jemalloc", 0.9, 0.8)),
    *(("mimalloc", 0.7, 0.5), ("tlsf", 1.6, 0.1), ("snmalloc", 0.72, 0.7), ("scudo", 2.6, 1.4)),
]
"""Allocators as benchmarks make them up: name, typical speed and weight of the tail, for `latencies`."""
MALLOC, ZEROED, ALIGNED, FREE, REALLOC = range(5)


def named(allocator: str) -> dict[str, str]:
    base, _, variant = allocator.partition("@")
    return {"base": base, "variant": variant or "defaults", "version": "1.0"}


class Campaign:
    """Writes one campaign's folder, run by run. Floors are 10 ticks a call and 4 a touch, 2 ticks a nanosecond."""

    def __init__(
        self,
        directory: Path,
        allocators: Sequence[str],
        *,
        journals: Sequence[str] = ("game",),
        paces: Sequence[str] = ("1x",),
        touches: Sequence[str] = ("page",),
        repeats: int = 1,
        threads: str = "journal",
        missing: Sequence[tuple[str, str]] = (),
        totals: bool = False,
        peak_bytes: int = 1 << 20,
    ) -> None:
        self.directory = directory
        self.ticks_per_ns = 2.0
        self.floors = (10, 4)
        directory.mkdir(parents=True, exist_ok=True)
        plan = {
            **PLAN,
            "journals": [
                {**JOURNAL, "name": name, "path": f"{name}.byj", "peak_bytes": peak_bytes} for name in journals
            ],
            "allocators": [{**named(name), "name": name} for name in allocators],
            "missing": [{"name": name, "reason": why} for name, why in missing],
            "paces": list(paces),
            "touches": list(touches),
            "repeats": repeats,
            "threads": threads,
            "totals": totals,
        }
        (directory / "campaign.json").write_text(json.dumps(plan))
        (directory / "machine.json").write_text(json.dumps(MACHINE))

    def folder(
        self, allocator: str, repeat: int = 1, journal: str = "game", pace: str = "1x", touch: str = "page"
    ) -> Path:
        return self.directory / "runs" / journal / allocator / f"{pace}-{touch}" / str(repeat)

    def bursts(self, allocator: str, rows: Sequence[tuple[int, ...]], repeat: int = 1, **more: Any) -> None:
        """An untimed run whose bursts are (last event, thread, ns), and then ns away, cause and events where they are
        not 0."""
        made = np.zeros(len(rows), BURST)
        for place, (event, thread, ns, *more_of_it) in enumerate(rows):
            away, cause, events = (*more_of_it, 0, 0, 0)[:3]
            made[place] = (event, events, 0, thread, cause, 0, ns, away)
        np.save(self.run(allocator, None, repeat, touch="page-untimed", **more) / "bursts.npy", made)

    def run(
        self,
        allocator: str,
        rows: np.ndarray | None,
        repeat: int = 1,
        journal: str = "game",
        pace: str = "1x",
        touch: str = "page",
        **facts: Any,
    ) -> Path:
        """One finished run; without rows an untimed or failed one."""
        folder = self.folder(allocator, repeat, journal, pace, touch)
        folder.mkdir(parents=True, exist_ok=True)
        fields = {
            **RUN,
            "journal": journal,
            "allocator": allocator,
            "variant": named(allocator)["variant"],
            "pace": pace,
            "touch": touch,
            "repeat": repeat,
            "untimed": touch.endswith("-untimed"),
            "events": 0 if rows is None else len(rows),
            "ticks_per_ns": self.ticks_per_ns,
            "floor_call_ticks": self.floors[0],
            "floor_touch_ticks": self.floors[1],
            **facts,
        }
        (folder / "run.json").write_text(json.dumps(fields))
        if rows is not None and fields["status"] == "ok":
            np.save(folder / "samples.npy", rows)
            np.save(
                folder / "memory.npy",
                np.array([(0, 1 << 20, *[0] * 5), (10**9, 64 << 20, 1 << 20, *[0] * 4)], samples.MEMORY),
            )
        return folder

    def events(
        self,
        pair: np.ndarray,
        frame_times: Sequence[int] = (),
        journal: str = "game",
        frame_events: Sequence[int] = (),
        frame_threads: Sequence[int] | None = None,
    ) -> None:
        """Frame marks are of thread 0 unless others are given."""
        folder = self.directory / "runs" / journal
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "pairs.npy", pair.astype(np.uint32))
        threads = [0] * len(frame_times) if frame_threads is None else frame_threads
        marks = list(zip(frame_times, frame_events, threads, strict=True))
        np.save(folder / "frames.npy", np.array(marks, samples.MARK))

    def journal_facts(self, **facts: Any) -> None:
        """More of what the plan told of the first journal (`thread_names`, `phases`, ...)."""
        path = self.directory / "campaign.json"
        plan = json.loads(path.read_text())
        plan["journals"][0].update(facts)
        path.write_text(json.dumps(plan))


def rows(entries: Sequence[tuple[int, int, int, int, int, int]]) -> np.ndarray:
    """(event, kind, size, start, call, touch) each, one thread and frame."""
    made = np.zeros(len(entries), ROW)
    columns = ("event", "kind", "size", "start", "call", "touch")
    for name, column in zip(columns, zip(*entries, strict=True), strict=True):
        made[name] = column
    return made


def lifelike(events: int, seed: int = 1, seconds: float = 20.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows without latencies (kind, thread, size, start of a game's bursts) and their `pair`."""
    random = np.random.default_rng(seed)
    half = events // 2
    rhythm = random.gamma(0.6, 1.0, max(int(seconds * 60), 1))
    rhythm[: len(rhythm) // 12] *= 6
    frames = random.choice(len(rhythm), events, p=rhythm / rhythm.sum())
    starts = np.sort((frames + random.beta(1.2, 4, events)) / 60 * 1e9).astype(np.uint64)
    sizes = np.exp2(np.clip(random.normal(6.2, 1.6, half), 0, 16)).astype(np.uint64)
    sizes[random.random(half) < 0.02] = 65552
    sizes[random.random(half) < 3e-5] = 8 << 20
    lifetime = np.minimum(random.pareto(0.5, half) * 6 + 1, events)
    order = np.concatenate([np.arange(half) * 2.0, np.arange(half) * 2.0 + lifetime * 2 + 1])
    places = np.empty(2 * half, np.int64)
    places[np.argsort(order, kind="stable")] = np.arange(2 * half)
    made = np.zeros(2 * half, ROW)
    made["event"] = np.arange(2 * half)
    made["kind"][places[half:]] = FREE
    made["kind"][places[:half]] = random.choice([MALLOC, ZEROED, ALIGNED, REALLOC], half, p=[0.9, 0.03, 0.01, 0.06])
    made["size"][places[:half]] = sizes
    made["size"][places[half:]] = sizes
    made["thread"] = random.choice([0, 1, 2, 3], 2 * half, p=[0.8, 0.15, 0.04, 0.01])
    made["start"] = starts[: 2 * half]
    made["frame"] = made["start"] // 16_666_667
    pair = np.full(2 * half, NO_EVENT, np.uint32)
    pair[places[:half]] = places[half:]
    pair[places[half:]] = places[:half]
    return made, pair


def latencies(made: np.ndarray, speed: float, tail: float, seed: int, touch: bool = True) -> np.ndarray:
    """A copy of the rows with an allocator's latencies: `speed` scales its median, `tail` how often it asks the system.

    What the allocator itself does is the same for every `seed // 1000`; the rest of the seed is the machine's noise.
    """
    own, noise = np.random.default_rng(seed // 1000), np.random.default_rng(seed)
    found = made.copy()
    count = len(found)
    size = found["size"].astype(np.float32)
    call = 16 * speed * np.exp(0.35 * own.standard_normal(count, np.float32)) * (1 + size / 3e5)
    slow = own.random(count, np.float32)
    call = np.where(slow < 0.02 * tail, call * 8, call)
    call = np.where(slow < 0.0012 * tail, 6000 * own.random(count, np.float32) * tail + 900, call)
    call = np.where(slow < 0.00002 * tail, 300_000 * own.random(count, np.float32) * tail + 9000, call)
    call *= np.exp(0.06 * noise.standard_normal(count, np.float32))
    interrupted = noise.random(count, np.float32) < 8e-6
    call = np.where(interrupted, call + noise.exponential(400_000, count), call)
    found["cause"] = np.where(interrupted, 1 | 8, np.where(call > 700, 1, 0))
    found["call"] = np.minimum(call + 36, 4e9).astype(np.uint32)
    if touch:
        gives = (found["kind"] != FREE) & (found["size"] > 0)
        fresh = gives & (own.random(count, np.float32) < 0.02 * tail)
        pages = np.where(fresh, (size / 4096 + 1) * 1900, 3 + size / 900)
        found["cause"] |= np.where(fresh, 1 | 4, 0).astype(np.uint8)
        found["touch"] = np.where(gives, np.minimum(pages + 30, 4e9), 0).astype(np.uint32)
    found["start"] += (1000 * noise.random(count, np.float32)).astype(np.uint64)
    return found


def lifelike_campaign(
    directory: Path, allocators: Sequence[tuple[str, float, float]], events: int, repeats: int, seconds: float = 20.0
) -> Campaign:
    """A whole campaign; each allocator is a name, a speed and a tail."""
    campaign = Campaign(directory, [name for name, _, _ in allocators], repeats=repeats, peak_bytes=220 << 20)
    campaign.ticks_per_ns, campaign.floors = 2.6, (36, 30)
    base, pair = lifelike(events, seconds=seconds)
    for place, (name, speed, tail) in enumerate(allocators, start=1):
        for repeat in range(1, repeats + 1):
            campaign.run(name, latencies(base, speed, tail, place * 1000 + repeat), repeat, looking=LOOKING)
    campaign.events(pair)
    return campaign


def known_rows(repeat: int, slower: int = 0) -> np.ndarray:
    """1000 mallocs of 100 B, one a millisecond: calls of 1 to 1000 ns (1001 to 2000 in repeat 2) and touches of 100 ns,
    each freed 0.5 ms later in 50 ns."""
    entries = []
    for i in range(1000):
        call = i + 1 + 1000 * (repeat - 1) + slower
        entries.append((2 * i, MALLOC, 100, i * 1_000_000, 10 + 2 * call, 4 + 2 * 100))
        entries.append((2 * i + 1, FREE, 100, i * 1_000_000 + 500_000, 10 + 2 * 50, 0))
    return rows(entries)


def known_campaign(directory: Path, **settings: object) -> Campaign:
    """Allocators `quick` and `slow` (500 ns slower), two repeats each."""
    campaign = Campaign(directory, ["quick", "slow"], repeats=2, **settings)
    for repeat in (1, 2):
        campaign.run("quick", known_rows(repeat), repeat)
        campaign.run("slow", known_rows(repeat, 500), repeat)
    pair = np.arange(2000) ^ 1
    campaign.events(pair)
    return campaign
