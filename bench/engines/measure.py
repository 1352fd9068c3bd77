"""What allocation costs a library on its own allocator and behind its hook: `bench/engines/run`. Prints JSON.

Of each library's program in this folder:
  replay  what came through the hook, replayed on glibc and on the heap: microseconds that all calls of a frame take
  trial   the program itself, on the library's own allocator and with the adapter of integrations/: frames, and what is
          claimed
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import bench_result

from blockyard.analysis import sections

LIBRARIES = ("lua", "luajit", "enet")
"""Those of integrations/ whose examples allocate most."""
REPEATS, RUNS = 3, 10


def blockyard(*words: object, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "blockyard", *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, **more})
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        raise SystemExit(f"bench/engines: {' '.join(command)} ended with {done.returncode}")
    return done


def microseconds_a_frame(folder: Path, frames: int) -> dict[str, list[float | None]]:
    """By allocator the total, and the ends of its interval."""
    (section,) = sections.read(folder).sections
    found = {}
    for runs in section.allocators:
        if not runs.is_null and runs.totals is not None:
            total = runs.totals.all
            found[runs.name] = [
                None if ns is None else ns / 1e3 / frames for ns in (total.ns, total.low_ns, total.high_ns)
            ]
    return found


def measure(program: Path, folder: Path) -> dict[str, Any]:
    journal, replays = folder / "journal.byj", folder / "replays"
    blockyard("record", "--no-stacks", "-o", journal, "--", program, ENGINE_ON="blockyard")
    facts = json.loads(blockyard("info", journal, "--json").stdout)
    frames = facts["kinds"]["frame_mark"]
    replay = blockyard("replay", journal, "-a", "glibc,blockyard,null", "--repeats", REPEATS, "-o", replays)
    trial = blockyard("trial", "--with", "blockyard=ENGINE_ON=blockyard", "--runs", RUNS, "--json", "--", program)
    told = json.loads(trial.stdout)
    return {
        "allocations_a_frame": facts["allocations"] / frames,
        "busy_cores": max(map(float, re.findall(r"machine is busy \((\d+\.\d+) of", replay.stderr)), default=0.0),
        "replay_us_a_frame": microseconds_a_frame(replays, frames),
        "trial": {
            "runs": RUNS,
            "claims": told["sentences"],
            "figures": {
                one["name"]: {name: figure and figure["value"] for name, figure in one["figures"].items()}
                for one in told["contenders"]
            },
        },
    }


def main() -> None:
    figures = {}
    for name in sys.argv[1:] or LIBRARIES:
        program = Path(os.environ["BLOCKYARD_BUILD"]) / f"bench/engines/bench-engine-{name}"
        if not program.is_file():
            raise SystemExit(
                f"bench/engines: {name} was not built: scripts/install-packages engines, scripts/build bench"
            )
        with tempfile.TemporaryDirectory(prefix="bench-engines-") as folder:
            figures[name] = measure(program, Path(folder))
    bench_result.write("engines", figures)
    json.dump(figures, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
