"""What `blockyard live` costs while a journal grows: `bench/live/run`. Prints one JSON object.

The processor time is that of all its processes, of a longer journal less that of a shorter one: what they take to
start, and to name functions when they first come, is left out, and is `first_cpu_s`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_result
import growing

from blockyard import native

SHORTER, LONGER = 5, 25
EVENTS_PER_S = 1_000_000


def watched(whole: bytes, blocks: list[tuple[int, int]], path: Path) -> dict[str, float]:
    """Writes the journal at the pace; what the view took until it had ended."""
    # To a file: a pipe that nobody reads meanwhile would hold the view up.
    told = path.with_suffix(".json")
    with path.open("wb", buffering=0) as file, told.open("wb") as lines:
        view = subprocess.Popen([sys.executable, "-P", "-m", "blockyard", "live", "--json", path], stdout=lines)
        begun, written = time.monotonic(), 0
        for (_, end), (following, _) in zip(blocks, [*blocks[1:], (None, 0)], strict=True):
            file.write(whole[written:end])
            written = end
            if following is not None:
                time.sleep(max(0.0, begun + following / EVENTS_PER_S - time.monotonic()))
        seconds = time.monotonic() - begun
        file.write(whole[written:])
    _, status, used = os.wait4(view.pid, 0)
    if status != 0:
        raise SystemExit("bench/live: the view failed")
    events = json.loads(told.read_text(encoding="utf-8").splitlines()[-1])["events"]
    return {"events": events, "seconds": seconds, "cpu_s": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss}


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        found = []
        for repeats in (SHORTER, LONGER):
            long, growing_one = folder / f"{repeats}.byj", folder / f"{repeats}-growing.byj"
            native.call("blockyard-journal", ["repeat", growing.JOURNAL, str(repeats), "-o", long])
            whole = long.read_bytes()
            found.append(watched(whole, growing.blocks(whole), growing_one))
    shorter, longer = found
    ns = (longer["cpu_s"] - shorter["cpu_s"]) / (longer["events"] - shorter["events"]) * 1e9
    figures = {
        "events": longer["events"],
        "seconds": round(longer["seconds"], 2),
        "cpu_ns_an_event": round(ns, 1),
        "share_at_a_million": round(ns * EVENTS_PER_S / 1e9, 3),
        "first_cpu_s": round(shorter["cpu_s"] - shorter["events"] * ns / 1e9, 2),
        "peak_mb": round(longer["peak"] / 1000),
    }
    print(json.dumps(figures, indent=2))
    bench_result.write("live", figures)


if __name__ == "__main__":
    main()
