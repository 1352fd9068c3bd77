"""What the replayer costs: planning, memory, and its own time beside each event. Prints one JSON object."""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_result
import numpy as np
from scipy.stats import bootstrap

from blockyard import native

LINES = 11_000_000
REPEATS = 3
LOOKING_ROUNDS = {"1": {"godot": 25}, "max": {"godot": 30, "supertux": 30, "wesnoth": 30, "zeroad": 30}}
"""By pace and journal; at 1x single runs differ by a tenth, and the host's state by more."""
LOOKING_SECONDS = {"godot": (20, 23), "supertux": (12, 15), "wesnoth": (14, 17), "zeroad": (3, 6)}
PARTS = ("planning", "overhead", "pace", "looking")
SOURCES = ("godot", "supertux", "warzone2100")


def tool(*arguments: str | Path) -> str:
    return subprocess.run(
        [native.path("blockyard-replay"), *arguments], check=True, capture_output=True, text=True
    ).stdout


def replay(plan: Path, folder: Path, allocator: str, *options: str) -> dict[str, Any]:
    adapter = native.path(f"blockyard-adapter-{allocator}.so")
    tool("run", plan, "--adapter", adapter, "--allocator", allocator, "-o", folder, *options)
    return json.loads((folder / "run.json").read_text())


def planning(journals: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Seconds to parse and plan the text, pairs.npy included, beside reading the same bytes with `cat`."""
    text, plan = folder / "study.txt", folder / "study.plan"
    maker = Path(os.environ["BLOCKYARD_BUILD"]) / "bench" / "journal" / "bench_journal"
    subprocess.run(
        [maker, "--make-log", "text", text, str(LINES), *(journals / f"{name}.journal.zst" for name in SOURCES)],
        check=True,
        capture_output=True,
    )
    took, reading = [], []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        facts = json.loads(tool("plan", text, "-o", plan, "--events-dir", folder / "shared"))
        took.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        subprocess.run(["wc", "-l", text], check=True, capture_output=True)
        reading.append(time.perf_counter() - begun)
    text_bytes = text.stat().st_size
    text.unlink()
    return plan, {
        "text_bytes": text_bytes,
        "events": facts["measured_events"],
        "seconds": statistics.median(took),
        "seconds_wc_l": statistics.median(reading),
        "ns_an_event": statistics.median(took) / facts["measured_events"] * 1e9,
        "plan_bytes_an_event": facts["plan_bytes"] / facts["events"],
    }


def memory(plan: Path, folder: Path) -> dict[str, float]:
    facts = replay(plan, folder / "memory", "null", "--pace", "max", "--touch", "none")
    return {
        "lab_resident_bytes": facts["lab_resident_bytes"],
        "bytes_an_event": facts["lab_resident_bytes"] / facts["events"],
    }


def overhead(journals: Path, folder: Path) -> dict[str, float]:
    """On one thread, as fast as possible, on the allocator that does nothing: all the time is the replayer's."""
    plan = folder / "one.plan"
    tool("plan", journals / "godot.journal.zst", "-o", plan, "--threads", "one")
    figures = {}
    for name, options in {"timed": (), "untimed": ("--untimed",)}.items():
        runs = [
            replay(plan, folder / name, "null", "--pace", "max", "--touch", "none", *options) for _ in range(REPEATS)
        ]
        figures[f"{name}_ns_an_event"] = statistics.median(run["wall_ns"] / run["events"] for run in runs)
    figures["floor_ns"] = runs[0]["floor_call_ticks"] / runs[0]["ticks_per_ns"]
    figures["clock_step_ns"] = runs[0]["clock_step_ticks"] / runs[0]["ticks_per_ns"]
    return figures


def latencies(folder: Path, floors: tuple[int, int], rate: float) -> np.ndarray:
    """Call and touch of every event in ns, net of the floors."""
    rows = np.load(folder / "samples.npy", mmap_mode="r")
    touched = rows["touch"] > 0
    ticks = np.maximum(rows["call"].astype(float) - floors[0], 0)
    ticks[touched] += np.maximum(rows["touch"][touched].astype(float) - floors[1], 0)
    return ticks / rate


def looking(journals: Path, folder: Path) -> dict[str, Any]:
    """What looking for causes does to the figures: the same replay with it and without, in turn, page touch. At 1x as
    published figures are; finer at full speed in the journal's order, where every run does the same work."""
    figures: dict[str, Any] = {}
    for pace, rounds in LOOKING_ROUNDS.items():
        found, least = {}, {}
        for name, number in rounds.items():
            found[name], least[name] = rounds_of_looking(journals, folder, name, pace, number)
        figures[pace] = {name: what_looking_does(found[name], least[name], pace) for name in rounds}
        if len(rounds) > 1:
            figures[pace]["all"] = {
                way: over_journals(list(found.values()), list(least.values()), way) for way in WAYS if way != "off"
            }
    return figures


def over_journals(found: list["Rounds"], least: list["Least"], way: str) -> dict[str, Any]:
    """The geometric mean of the journals' ratios to none: as-run with its interval, and of each event's minimum."""
    runs = [tuple([run["p999_ns"] for run in one[name]] for name in (way, "off")) for one in found]
    spread = np.exp(np.mean([np.log(resampled_ratios(*both, seed)) for seed, both in enumerate(runs)], axis=0))
    plain = [statistics.median(ours) / statistics.median(theirs) for ours, theirs in runs]
    minima = [tail(least_of(one, way)) / tail(least_of(one, "off")) for one in least]
    return {
        "p999_ratio": statistics.geometric_mean(plain),
        "p999_ratio_90_percent_interval": [float(np.percentile(spread, end)) for end in (5, 95)],
        "inherent_p999_ratio": statistics.geometric_mean(minima),
    }


def least_of(least: "Least", way: str) -> np.ndarray:
    return np.minimum(least[way, 0], least[way, 1])


Rounds = dict[str, list[dict[str, float]]]
"""By way, a row a round."""
Least = dict[tuple[str, int], np.ndarray]
"""Each event's minimum over one half of a way's rounds."""
WAYS = {"perf": ("--look-with", "perf"), "getrusage": ("--look-with", "getrusage"), "off": ("--causes-above", "0")}


def rounds_of_looking(journals: Path, folder: Path, name: str, pace: str, rounds: int) -> tuple[Rounds, Least]:
    plan, (begin, end) = folder / "looking.plan", LOOKING_SECONDS[name]
    tool("plan", journals / f"{name}.journal.zst", "-o", plan, "--from", str(begin), "--to", str(end))
    found: Rounds = {way: [] for way in WAYS}
    least: Least = {}
    options = ("--pace", pace, "--touch", "page", *(["--in-order"] if pace == "max" else []))
    for number, ways in zip(range(rounds), itertools.cycle(itertools.permutations(WAYS)), strict=False):
        facts = {way: replay(plan, folder / way, "glibc", *options, *WAYS[way]) for way in ways}
        # One floor for a round, as a report has one for a section: that of a single run may come out too high.
        floors = tuple(min(told[f"floor_{part}_ticks"] for told in facts.values()) for part in ("call", "touch"))
        for way, told in facts.items():
            net = latencies(folder / way, floors, told["ticks_per_ns"])
            half = (way, number // 6 % 2)  # each with all orders
            least[half] = np.minimum(least[half], net) if half in least else net
            found[way].append(
                {
                    "p50_ns": median_within_step(net, told["clock_step_ticks"] / told["ticks_per_ns"]),
                    "mean_below_p99_ns": trimmed(net),
                    "p999_ns": tail(net),
                    "looked_at": told["looking"]["events"] / told["events"],
                    "ns_a_look": told["looking"]["ns_a_look"],
                }
            )
    return found, least


def what_looking_does(found: Rounds, least: Least, pace: str) -> dict[str, Any]:
    """Medians over the rounds, and each way beside none. Where every run does the same work, also the p99.9 of each
    event's minimum: of all rounds, and of either half of them, which tells how well it is known."""
    figures: dict[str, Any] = {
        way: {name: statistics.median(run[name] for run in runs) for name in runs[0]} for way, runs in found.items()
    }
    without = figures["off"]
    for way in ("perf", "getrusage"):
        for name in ("p50_ns", "mean_below_p99_ns"):
            figures[way][f"{name}_added"] = figures[way][name] - without[name]
        figures[way]["p999_ratio"] = figures[way]["p999_ns"] / without["p999_ns"]
        figures[way]["p999_ratio_90_percent_interval"] = ratio_interval(
            [run["p999_ns"] for run in found[way]], [run["p999_ns"] for run in found["off"]]
        )
        if pace == "max":
            whole = [tail(least_of(least, one)) for one in (way, "off")]
            figures[way] |= {
                "inherent_p999_ns": whole[0],
                "inherent_p999_ratio": whole[0] / whole[1],
                "inherent_p999_ratio_of_halves": [tail(least[way, half]) / tail(least["off", half]) for half in (0, 1)],
            }
    return figures


def tail(values: np.ndarray) -> float:
    return float(np.percentile(values, 99.9, method="inverted_cdf"))


def resampled_ratios(ours: list[float], theirs: list[float], seed: int = 1) -> np.ndarray:
    """The ratio of medians in 2000 bootstrap samples of the rounds. A round's runs stay together, because the machine's
    state is common to them."""

    def ratio(over: np.ndarray, under: np.ndarray, axis: int) -> np.ndarray:
        return np.median(over, axis) / np.median(under, axis)

    found = bootstrap((ours, theirs), ratio, n_resamples=2000, paired=True, method="percentile", random_state=seed)
    return found.bootstrap_distribution


def ratio_interval(ours: list[float], theirs: list[float]) -> list[float]:
    """Between the 5th and the 95th percentile of these."""
    return [float(np.percentile(resampled_ratios(ours, theirs), end)) for end in (5, 95)]


def pace(journals: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """Eight seconds of play at 1x: how late events are, and medians of the calls, net of the floor."""
    plan = folder / "stretch.plan"
    tool("plan", journals / "godot.journal.zst", "-o", plan, "--from", "20", "--to", "28")
    figures = {}
    for allocator in ("null", "glibc"):
        facts = replay(plan, folder / allocator, allocator, "--pace", "1", "--touch", "page")
        rows = np.load(folder / allocator / "samples.npy", mmap_mode="r")
        net = (rows["call"].astype(float) - facts["floor_call_ticks"]) / facts["ticks_per_ns"]
        frees = rows["kind"] == 3
        figures[allocator] = {
            "malloc_p50_ns": float(np.median(net[~frees])),
            "malloc_mean_below_p99_ns": trimmed(net[~frees]),
            "free_p50_ns": float(np.median(net[frees])),
            "free_mean_below_p99_ns": trimmed(net[frees]),
            "lateness_ns": facts["lateness_ns"],
            "order_waits": facts["order_waits"],
            "processor_share": facts["cpu_ns"] / facts["wall_ns"],
        }
    return figures


def median_within_step(values: np.ndarray, step: float) -> float:
    """The median, within the clock's step where its rank lies among the equal values."""
    value = np.percentile(values, 50, method="inverted_cdf")
    below, equal = (values < value - step / 2).sum(), (np.abs(values - value) <= step / 2).sum()
    return float(value + step * ((len(values) / 2 - below) / equal - 0.5))


def trimmed(values: np.ndarray) -> float:
    """The mean of the lower 99 %: finer than a median where the clock counts in steps."""
    return float(np.sort(values)[: int(len(values) * 0.99)].mean())


def main() -> None:
    journals = Path(sys.argv[1]).resolve()
    wanted = sys.argv[2:] or PARTS
    if unknown := set(wanted) - set(PARTS):
        raise SystemExit(f"bench/replay: there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result: dict[str, Any] = {}
        if "planning" in wanted:
            plan, result["plan"] = planning(journals, folder)
            result["memory"] = memory(plan, folder)
        for part, measure in (("overhead", overhead), ("pace", pace), ("looking", looking)):
            if part in wanted:
                result[part] = measure(journals, folder)
    print(json.dumps(result, indent=2))
    bench_result.write("replay", result)


if __name__ == "__main__":
    main()
