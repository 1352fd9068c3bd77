"""Call stacks: what one costs beside libunwind's, and what recording with stacks adds to real programs beside what
heaptrack adds, as shares of what is wanted. All of a table is measured in turn, in one run; medians."""

import argparse
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

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ["BLOCKYARD_BUILD"])
FOLDER = BUILD / "bench" / "unwind"

# Of libunwind's time for a stack of about 20 frames, and of what heaptrack adds in time and writes.
MOST_OF_LIBUNWIND = {"no frame pointers": 0.5, "frame pointers": 0.2}
MOST_OF_HEAPTRACK = 0.6
MOST_OF_ITS_BYTES = 1.0
PYTHON = "import json\nfor i in range(40): json.loads(json.dumps([{str(j): [j] * 20} for j in range(4000)]))"


def stacks() -> dict[str, dict[str, float]]:
    """Ratios to libunwind of stacks of about 20 frames, by how many calls a function makes: with 1, each event's path
    is new from the top on."""
    bench = FOLDER / "bench_unwind"
    if not bench.exists():
        sys.exit(f"bench/unwind: NOT MEASURED: {bench} was not built; libunwind-dev is needed")
    printed = subprocess.run([bench], capture_output=True, text=True, check=True).stdout
    print(printed, end="")
    found: dict[str, dict[str, float]] = {}
    for name, frames, calls, ratio in re.findall(r"^  (\S.*?)  +([\d.]+) +(\d) .* ([\d.]+)$", printed, re.MULTILINE):
        if 16 <= float(frames) <= 24:
            found.setdefault(name, {})[calls] = max(float(ratio), found.get(name, {}).get(calls, 0))
    for name, most in MOST_OF_LIBUNWIND.items():
        shared, new = found[name]["2"], found[name]["1"]
        print(
            f"  {name}, 17 to 24 frames: {shared:.2f} of libunwind, {shared / most:.2f} of the {most:g} wanted; "
            f"{new:.2f} where no path comes twice"
        )
    return found


# What the compiler compiles, and what the linker optimises.
SOURCES = [ROOT / "lab/src" / name for name in ("sites/sites_json.cpp", "sites/labels.cpp", "sites/export_trace.cpp")]
INCLUDES = [f"-I{ROOT / place}" for place in ("lab/src", "lab/include", "library/include", "library/src")]
MADE = "random calls that throw, 2 threads"


def programs(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Commands and their environments: three real programs, and one made to have as many different stacks as it can."""
    source = folder / "large.ii"
    subprocess.run(["g++", "-std=c++20", "-E", *INCLUDES, "-o", source, SOURCES[0]], check=True)
    compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True)
    options = ["-quiet", "-std=c++20", "-fpreprocessed", "-o", "/dev/null"]
    objects = [str(folder / f"{path.stem}.o") for path in SOURCES]
    for path, made in zip(SOURCES, objects, strict=True):
        bitcode = ["-std=c++20", "-O2", "-fPIC", "-flto=thin", *INCLUDES, "-c", path, "-o", made]
        subprocess.run(["clang++", *bitcode], check=True)
    link = ["ld.lld", "-shared", "--lto-O2", "--thinlto-jobs=2", "-o", str(folder / "linked.so"), *objects]
    return {
        "compiler": ([compiler.stdout.strip(), *options, str(source)], {}),
        "linker, 2 threads": (link, {}),
        "Python": ([sys.executable, "-c", PYTHON], {"PYTHONMALLOC": "malloc"}),
        MADE: ([str(FOLDER / "throwing"), "2", "1000000"], {}),
    }


def measure(command: list[str], more: dict[str, str], folder: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Seconds of each way to run the program, and bytes of what it wrote."""
    record = [sys.executable, "-m", "blockyard", "record", "--force", "--no-names"]
    ways = {
        "alone": command,
        "without stacks": [*record, "--no-stacks", "-o", str(folder / "bare.byj"), "--", *command],
        "with stacks": [*record, "-o", str(folder / "stacks.byj"), "--", *command],
        "heaptrack": ["heaptrack", "-o", str(folder / "heaptrack"), *command],
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for repeat in range(repeats):
        for way in list(ways) if repeat % 2 == 0 else reversed(ways):
            begin = time.monotonic()
            subprocess.run(ways[way], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=os.environ | more)  # fmt: skip
            seconds[way].append(time.monotonic() - begin)
    [written] = folder.glob("heaptrack*")
    sizes = {"with stacks": folder / "stacks.byj", "without stacks": folder / "bare.byj", "heaptrack": written}
    return {
        "seconds": {way: statistics.median(taken) for way, taken in seconds.items()},
        "bytes": {way: path.stat().st_size for way, path in sizes.items()},
    }


def recordings(repeats: int) -> dict[str, dict[str, dict[str, float]]]:
    for tool in ("heaptrack", "clang++", "ld.lld"):
        if shutil.which(tool) is None:
            sys.exit(f"bench/unwind: NOT MEASURED beside heaptrack: {tool} is missing")
    print(f"Recording, seconds of the whole command, median of {repeats}; shares of what heaptrack adds and writes:")
    print(f"  {'':<35}{'alone':>7}{'bare':>7}{'stacks':>8}{'heaptr.':>8}{'bare':>7}{'stacks':>8}{'bytes':>7}")
    found = {}
    with tempfile.TemporaryDirectory(prefix="blockyard-bench-") as name:
        for program, (command, more) in programs(Path(name)).items():
            folder = Path(name) / program.replace(" ", "-")
            folder.mkdir()
            figures = found[program] = measure(command, more, folder, repeats)
            seconds, sizes = figures["seconds"], figures["bytes"]
            added = {way: taken - seconds["alone"] for way, taken in seconds.items()}
            figures["of_heaptrack"] = {
                way: added[way] / added["heaptrack"] for way in ("without stacks", "with stacks")
            }
            figures["of_heaptrack"]["bytes"] = sizes["with stacks"] / sizes["heaptrack"]
            shares = figures["of_heaptrack"]
            print(
                f"  {program:<35}{seconds['alone']:7.2f}{seconds['without stacks']:7.2f}{seconds['with stacks']:8.2f}"
                f"{seconds['heaptrack']:8.2f}{shares['without stacks']:7.2f}{shares['with stacks']:8.2f}"
                f"{shares['bytes']:7.2f}"
            )
    real = [figures["of_heaptrack"] for program, figures in found.items() if program != MADE]
    worst = {way: max(shares[way] for shares in real) for way in shares}
    print(
        f"  of the real programs at worst {worst['with stacks']:.2f} of heaptrack's time, "
        f"{worst['with stacks'] / MOST_OF_HEAPTRACK:.2f} of the {MOST_OF_HEAPTRACK:g} wanted; "
        f"{worst['bytes']:.2f} of its bytes, {worst['bytes'] / MOST_OF_ITS_BYTES:.2f} of what is wanted"
    )
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    of_libunwind, found = stacks(), recordings(options.repeats)
    made = found.pop(MADE)
    bench_result.write("unwind", {"of_libunwind": of_libunwind, "recordings": found, "recording_of_random_calls": made})


if __name__ == "__main__":
    main()
