"""How often a gate of `blockyard compare` is wrong: `bench/compare/run`.

Identical campaigns are replayed one after another. Then gates judge builds that changed nothing, and builds in which
one allocator takes longer by twice the limit: every campaign beside every other, and campaigns drawn from all repeats,
as where BASE and NEW are measured in turns. Prints one JSON object.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_result
import gate_repeats

from blockyard.analysis import gate

JOURNAL = Path("journals/godot-shooter.byj")
STRETCH = ("3", "4")
ALLOCATORS = "glibc,mimalloc,blockyard"
REPEATS = 5
DRAWN = (5, 7, 8, 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=8)
    parser.add_argument("--builds", type=int, default=200, help="drawn for each number of repeats")
    parser.add_argument("--gate", action="append", help="[p99.9:25%%]")
    parser.add_argument("--stored", action="store_true", help="replay nothing: the repeats that the tests have")
    parser.add_argument("--store", action="store_true", help="make these the repeats that the tests have")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if arguments.stored:
        repeats = gate_repeats.stored()
    else:
        with tempfile.TemporaryDirectory() as folder:
            repeats = gate_repeats.read(recorded(Path(folder), arguments.campaigns))
        if arguments.store:
            gate_repeats.store(gate_repeats.STORED, repeats)
    found = {text: rates(repeats, text, arguments.builds) for text in arguments.gate or ["p99.9:25%"]}
    if not arguments.stored:
        bench_result.write("compare", {"load": [load, os.getloadavg()[0]], "gates": found})
    print(json.dumps(found, indent=2))


def recorded(folder: Path, campaigns: int) -> list[Path]:
    cut = folder / "cut.byj"
    blockyard("cut", JOURNAL, "--from", STRETCH[0], "--to", STRETCH[1], "-o", cut)
    made = [folder / str(number) for number in range(campaigns)]
    for number, campaign in enumerate(made, 1):
        began = time.monotonic()
        blockyard("replay", cut, "-a", ALLOCATORS, "--repeats", REPEATS, "-o", campaign)
        print(f"campaign {number} of {campaigns}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return made


def blockyard(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "blockyard", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def rates(repeats: gate_repeats.Repeats, text: str, builds: int) -> dict[str, dict[str, int]]:
    """By how BASE and NEW came about."""
    one = gate.parse(text)
    pairs = {"each campaign beside each other": gate_repeats.whole(repeats)}
    pairs |= {
        f"{each} repeats drawn": gate_repeats.drawn(repeats, builds, each)
        for each in DRAWN
        if 2 * each <= repeats.rounds
    }
    return {
        how: dataclasses.asdict(gate_repeats.rates(repeats, chosen, (one,), 1 + 2 * one.limit))
        for how, chosen in pairs.items()
    }


main()
