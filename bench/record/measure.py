"""What recording costs: one loop of malloc and free by itself, recorded, and under heaptrack, in turn, in one run."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_result

BUILD = Path(os.environ["BLOCKYARD_BUILD"])
LOOP = BUILD / "bench" / "record" / "record-loop"
TAG_LOOP = BUILD / "bench" / "record" / "tag-loop"
MOST_NS_A_PUSH = 2.0  # while nothing records


def time_of(command: list[str]) -> tuple[float, str]:
    """Nanoseconds per event that the loop printed, and everything else that was printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    printed = done.stdout + done.stderr
    return float(re.search(r"^\d+\.\d{3}$", printed, re.MULTILINE).group()), printed


def measure_tags(repeats: int) -> dict[str, float]:
    """Nanoseconds that a push or a pop of a tag takes: without a recorder, with one that does not record, recorded."""
    [recorder] = BUILD.rglob("libblockyard-record.so")
    loop = [str(TAG_LOOP)]
    with tempfile.TemporaryDirectory(prefix="blockyard-bench-") as folder:
        record = [
            sys.executable,
            "-m",
            "blockyard",
            "record",
            "--force",
            "--no-names",
            "-o",
            f"{folder}/tags.byj",
            "--",
        ]
        commands = {
            "no recorder": loop,
            "a recorder that is off": ["env", f"LD_PRELOAD={recorder}", *loop],
            "recorded": [*record, *loop],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats):
            for name, command in commands.items():
                taken[name].append(time_of(command)[0])
    found = {name: statistics.median(values) for name, values in taken.items()}
    print(f"A tag's push or pop, of the {MOST_NS_A_PUSH:g} ns that it may take while nothing records:")
    for name, ns in found.items():
        print(f"  {name:<24}{ns:6.2f} ns  {ns / MOST_NS_A_PUSH:5.2f}")
    return found


def measure_attaching(repeats: int) -> dict[str, float]:
    """Milliseconds that a thread of a program with 20 threads stands still, of 20 times that it is attached to."""
    attach, recorder = (next(iter(BUILD.rglob(name))) for name in ("blockyard-attach", "libblockyard-record.so"))
    stopped: list[float] = []
    called: list[float] = []
    with tempfile.TemporaryDirectory(prefix="blockyard-bench-") as folder:
        copy, socket = Path(folder) / recorder.name, Path(folder) / "socket"
        shutil.copy(recorder, copy)
        for _ in range(4 * repeats):
            collector = subprocess.Popen(
                [recorder.parent / "blockyard-collect", "--socket", socket, "--output", Path(folder) / "a.byj"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            collector.stdout.readline()
            program = subprocess.Popen([BUILD / "bench" / "record" / "record-many-threads", "20", str(10**12)])
            time.sleep(0.2)
            call = [attach, str(program.pid), "--library", recorder]
            for words in (["--as", copy, "--socket", socket], ["--detach"]):
                done = subprocess.run([*call, *words], capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    print(f"  an attempt to attach was refused: {done.stderr.strip()}")
                    continue
                found = json.loads(done.stdout)
                stopped.append(found["stopped_ms"])
                called.append(found["in_call_ms"])
            program.kill()
            program.wait()
            collector.communicate()
            for left in (socket, Path(folder) / "a.byj"):
                left.unlink(missing_ok=True)
    if len(stopped) < 2:
        return {}
    found = {
        "stopped_p95_ms": statistics.quantiles(stopped, n=20)[-1],
        "in_call_p95_ms": statistics.quantiles(called, n=20)[-1],
    }
    print(f"Attaching to a program with 20 threads, and detaching, {4 * repeats} times each, 95th percentile:")
    print(
        f"  a thread is held by ptrace for {found['stopped_p95_ms']:.2f} ms; the one that calls for the recorder, and"
    )
    print(f"  does nothing else meanwhile, for {found['in_call_p95_ms']:.2f} ms. All others run on. Aim: 20 ms.")
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pairs", type=int, default=5_000_000, help="pairs of malloc and free [default: 5,000,000]")
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    events = 2 * options.pairs
    loop = [str(LOOP), str(options.pairs)]
    times: dict[str, list[float]] = {"alone": [], "without stacks": [], "recorded": []}
    times["hooks asleep"] = []
    times["another thread limited"] = []
    if shutil.which("heaptrack"):
        times["heaptrack"] = []
    else:
        print("bench/record: heaptrack is missing, so nothing stands beside the recorder", file=sys.stderr)
    sizes: dict[str, float] = {}
    waited: list[str] = []
    with tempfile.TemporaryDirectory(prefix="blockyard-bench-") as folder:
        journal, bare, heaptrack = (Path(folder) / name for name in ("loop.byj", "bare.byj", "heaptrack"))
        record = [sys.executable, "-m", "blockyard", "record", "--force", "--no-names"]
        commands = {
            "alone": loop,
            "recorded": [*record, "-o", str(journal), "--", *loop],
            "hooks asleep": [*record[:4], "--asleep", "--", *loop],
            "another thread limited": [
                *[*record[:3], "budget", "--warn", "--limit", "thread=audio allocations=0", "--"],
                *loop,
            ],
            "without stacks": [*record, "--no-stacks", "-o", str(bare), "--", *loop],
            "heaptrack": ["heaptrack", "-o", str(heaptrack), *loop],
        }
        for repeat in range(options.repeats):
            order = list(times) if repeat % 2 == 0 else list(reversed(times))
            for name in order:
                taken, printed = time_of(commands[name])
                times[name].append(taken)
                waited += re.findall(r"waited [\d.]+ ms", printed)
        sizes["recorded"] = journal.stat().st_size / events
        sizes["without stacks"] = bare.stat().st_size / events
        written = list(Path(folder).glob("heaptrack*"))
        if written:
            sizes["heaptrack"] = written[0].stat().st_size / events
    alone = statistics.median(times["alone"])
    print(f"{events:,} events on one thread, 4096 blocks live, median of {options.repeats} runs, taken in turn:")
    print(f"  {'':<23}{'ns per event':>12}{'lowest':>9}{'highest':>9}{'added':>9}{'bytes per event':>16}")
    for name, taken in times.items():
        middle = statistics.median(taken)
        added = f"{middle - alone:9.1f}" if name != "alone" else f"{'':>9}"
        size = f"{sizes[name]:16.2f}" if name in sizes else ""
        print(f"  {name:<23}{middle:12.1f}{min(taken):9.1f}{max(taken):9.1f}{added}{size}")
    if "heaptrack" in sizes:
        added = {name: statistics.median(times[name]) - alone for name in ("recorded", "heaptrack")}
        print(
            f"  recorded / heaptrack: {added['recorded'] / added['heaptrack']:.3f} of the time added, "
            f"{sizes['recorded'] / sizes['heaptrack']:.3f} of the bytes"
        )
    tags = measure_tags(options.repeats)
    stands = measure_attaching(options.repeats)
    bench_result.write(
        "record",
        {
            "tag_ns": tags,
            "attaching": stands,
            "events": events,
            "repeats": options.repeats,
            "added_ns": {name: statistics.median(taken) - alone for name, taken in times.items() if name != "alone"},
            "bytes_an_event": sizes,
        },
    )
    print(
        f"  the recorded loop waited for the collector in {len(waited)} of {options.repeats} runs"
        + (f" ({', '.join(waited)})" if waited else "")
    )


if __name__ == "__main__":
    main()
