"""What the report's page costs: `bench/page/run`.

Two synthetic campaigns whose rows are laid out as the replayer writes them, opened in a real headless Chromium:
  page      8 allocators x 5 repeats of a 3.5-million-event journal with 20,000 functions in its call stacks: bytes
            of the page, ms to the first picture (median of 5 loads) and of a zoom's redraw, all charts included
            (median of 60, by the page's own marks); also from the wheel's event until the frame is finished, which
            adds layout and what the browser itself paints, without a graphics processor on the same thread
  pipeline  11 million events x 9 allocators: seconds from samples on disk to the finished page, prompt to prompt

Prints one JSON object.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_result
import browser
import numpy as np
import stack_files
import synthetic

ALLOCATORS = [*synthetic.SPEEDS, ("rpmalloc", 0.8, 0.9)]
LOADS, ZOOMS = 5, 60
FUNCTIONS, DEEPEST = 20_000, 40
# Messages wait until the frame whose callbacks sent them is finished.
WATCH_FRAMES = """window.frames_ms = []; addEventListener('wheel', () => { const begun = performance.now();
    requestAnimationFrame(() => { const channel = new MessageChannel();
        channel.port1.onmessage = () => frames_ms.push(performance.now() - begun); channel.port2.postMessage(0); }); },
    { capture: true, passive: true })"""


def report(folder: Path, *options: str) -> float:
    """Seconds of the command as a user runs it."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "blockyard", "report", str(folder), "--html", *options],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return time.perf_counter() - begun


def stacks(campaign: synthetic.Campaign) -> None:
    """A tree of calls, of which a few do most, as programs' are; who is busy changes from second to second."""
    random = np.random.default_rng(3)
    functions, depth = [("main", "main.cpp", 1, -1)], [0]
    for number in range(1, FUNCTIONS):
        caller = int(random.integers(max(0, number - 400), number))
        while depth[caller] >= DEEPEST:
            caller = functions[caller][3]
        depth.append(depth[caller] + 1)
        functions.append((f"module{number % 23}::Class{number % 997}::work_{number}(int, char const*)",
                          f"file{number % 300}.cpp", number % 900 + 1, caller))  # fmt: skip
    rows = np.load(campaign.folder("null") / "samples.npy", mmap_mode="r")
    popular = (FUNCTIONS * random.random(len(rows)) ** 4).astype(np.int64)
    shifted = (popular * 7919 + (rows["start"] // 1_000_000_000).astype(np.int64) * 37) % FUNCTIONS
    modules = [f"libpart{number % 9}.so" for number in range(FUNCTIONS)]
    stack_files.write(campaign.directory / "runs" / "game", shifted, None, functions, modules)


PAGE_ALONE = ("--no-pictures", "--no-samples-parquet")


def page(folder: Path, events: int, repeats: int) -> dict[str, float]:
    stacks(synthetic.lifelike_campaign(folder, ALLOCATORS[:8], events, repeats, 30))
    report(folder, *PAGE_ALONE)
    return {"allocators": 8, "repeats": repeats, "events": events, **opened(folder / "report" / "report.html")}


def opened(file: Path) -> dict[str, float]:
    """Loads the page, zooms in and out by the wheel's step, and reads the page's own marks."""
    program = browser.executable()
    if program is None:
        raise SystemExit("bench/page: Chromium is not installed (scripts/install-packages test)")
    first, everything = [], []
    with browser.chromium(program) as tab:
        tab.size(1440, 1000)
        for _ in range(LOADS):
            tab.open(file)
            first.append(tab.evaluate("performance.getEntriesByName('blockyard:first-picture')[0].startTime"))
            everything.append(tab.evaluate("performance.getEntriesByName('blockyard:all-decoded')[0].startTime"))
        took = []
        tab.evaluate(WATCH_FRAMES)
        for zoom in range(ZOOMS):
            tab.evaluate("performance.clearMeasures()")
            tab.wheel("#scatter", 0.2 + 0.6 * (zoom % 7) / 6, -240 if zoom % 12 < 9 else 700)
            tab.settle()
            took += tab.evaluate(
                "performance.getEntriesByType('measure').filter(m => m.name.includes('range')).map(m => m.duration)"
            )
        frames = tab.evaluate("frames_ms")
        problems = tab.problems
    if problems:
        raise SystemExit(f"bench/page: the page complained: {problems[0]}")
    took = took[:ZOOMS]
    return {
        "page_bytes": file.stat().st_size,
        "first_picture_ms": round(statistics.median(first)),
        "all_decoded_ms": round(statistics.median(everything)),
        "zooms": len(took),
        "zoom_ms_median": round(statistics.median(took), 1),
        "zoom_ms_worst": round(max(took), 1),
        "zoom_frame_ms_median": round(statistics.median(frames), 1),
        "zoom_frame_ms_worst": round(max(frames), 1),
    }


def pipeline(folder: Path, events: int) -> dict[str, float]:
    synthetic.lifelike_campaign(folder, ALLOCATORS, events, 1, 420)
    return {
        "allocators": len(ALLOCATORS),
        "repeats": 1,
        "events": events,
        "page_alone_s": round(report(folder, *PAGE_ALONE), 2),
        "whole_report_s": round(report(folder), 2),
        "page_bytes": (folder / "report" / "report.html").stat().st_size,
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--folder", type=Path, help="where the synthetic campaigns go while it runs")
    options.add_argument("--only", choices=["page", "pipeline"])
    options.add_argument("--small", action="store_true", help="a hundredth of the events, to try the bench itself")
    chosen = options.parse_args()
    share = 100 if chosen.small else 1
    found = {}
    for name, work in (
        ("page", lambda at: page(at, 3_500_000 // share, 5)),
        ("pipeline", lambda at: pipeline(at, 11_000_000 // share)),
    ):
        if chosen.only in (None, name):
            with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
                found[name] = work(Path(scratch))
    print(json.dumps(found, indent=2))
    if share == 1:
        bench_result.write("page", found)


if __name__ == "__main__":
    main()
