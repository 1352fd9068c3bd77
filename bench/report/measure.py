"""How fast results become tables and pictures: `bench/report/run`.

Three figures on synthetic campaigns, whose rows are laid out as the replayer writes them, and one on a real one:
  density   the picture of 11 million points, from mapped rows to a PNG on disk, beside matplotlib's own scatter and
            mpl-scatter-density (bench/requirements.txt)
  report    `blockyard report` over 8 allocators x 5 repeats of a 3.5-million-event journal: tables, Parquet, pictures
  digest    its exact percentiles alone, in events per second
  sites     what call stacks take, on the bundled journal repeated: `blockyard sites`, and what `blockyard report` takes
            with them as a ratio of without, with pictures and with the page, measured in turn

Prints one JSON object.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bench_result
import numpy as np
import synthetic

from blockyard.analysis import cuts, figures, passes, sections
from blockyard.analysis.distribution import Distribution
from blockyard.report import header, pictures, scatter, style

POINTS = 11_000_000
EVENTS, REPEATS = 3_500_000, 5
SITES_EVENTS = 10_000_000
JOURNAL = Path(__file__).parents[2] / "journals" / "godot-shooter.byj"
ALLOCATORS = synthetic.SPEEDS


def seconds(work: Callable[[], object], times: int) -> float:
    """The median of several goes."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def density(folder: Path, with_peer: bool) -> dict[str, float]:
    """One allocator's mallocs, 11 million of them. The percentiles that the picture shows are part of the time."""
    campaign = synthetic.Campaign(folder, ["glibc"])
    made = synthetic.latencies(synthetic.lifelike(POINTS, seconds=420)[0], 1.1, 1.2, 1001)
    made["kind"] = synthetic.MALLOC
    campaign.run("glibc", made)
    results = sections.read(folder)
    section = results.sections[0]
    one = figures.measure(section.measured[0], cuts.of(section), threads=2)  # what a report has by then: axes, caption
    edges, rate = pictures.latency_edges([one]), one.runs.ticks_per_ns

    def ours() -> None:
        rows = figures.open_rows(one.runs, False)
        found = Distribution(
            *passes.Digest(rows, 2).distribution(passes.AS_RUN, (passes.MALLOC_BOTH, passes.REALLOC_BOTH)),
            rate,
            one.step_ticks,
        )
        frame = passes.Frame(
            scatter.COLUMNS,
            scatter.ROWS,
            0,
            420e9,
            edges[0] * rate,
            edges[1] * rate,
            one.step_ticks,
            (scatter.marks_from(found),) * passes.PLANES,
        )
        plane = passes.bins(rows, frame, 2)[passes.MALLOC_AS_RUN]
        caption = header.of(results, section, [one], False).caption(one.runs)
        sheet = style.Sheet(folder / "density", "glibc", "", caption, (".png",))
        scatter.draw(scatter.Scatter(sheet, plane, found, (0, 420), edges, one.step_ns))

    ours()  # the first go also loads fonts
    taken = {"points": POINTS, "density_s": round(seconds(ours, 5), 3)}
    if with_peer:
        taken["matplotlib_scatter_s"] = round(seconds(lambda: plain_scatter(folder, made), 1), 2)
        taken["ratio"] = round(taken["matplotlib_scatter_s"] / taken["density_s"], 1)
        if importlib.util.find_spec("mpl_scatter_density") is None:
            taken["mpl_scatter_density_s"] = "NOT MEASURED: bench/requirements.txt is not installed"
        else:
            binned(folder, made)  # loads its projection
            taken["mpl_scatter_density_s"] = round(seconds(lambda: binned(folder, made), 5), 3)
            taken["ratio_mpl_scatter_density"] = round(taken["mpl_scatter_density_s"] / taken["density_s"], 2)
    return taken


def plain_scatter(folder: Path, made: np.ndarray) -> None:
    """The same points by matplotlib's own means, at the same size."""
    from matplotlib.figure import Figure

    page = Figure(figsize=(16, 9), dpi=100)
    axis = page.add_subplot()
    axis.set_yscale("log")
    axis.scatter(
        made["start"] / 1e9,
        np.maximum(made["call"] + made["touch"], 1),
        s=1,
        c=np.log2(made["size"] + 1.0),
        linewidths=0,
    )
    page.savefig(folder / "plain.png")


def binned(folder: Path, made: np.ndarray) -> None:
    """The same points by mpl-scatter-density, which bins as ours does: density alone, no sizes, marks or percentiles.

    It bins in data coordinates only, so the logarithm is taken of the data.
    """
    import mpl_scatter_density  # noqa: F401  # registers the projection
    from matplotlib.figure import Figure

    page = Figure(figsize=(16, 9), dpi=100)
    axis = page.add_subplot(projection="scatter_density")
    latency = np.log10(np.maximum(made["call"] + made["touch"], 1))
    start = made["start"] / 1e9
    axis.set(xlim=(0, start.max()), ylim=(0, latency.max()))
    axis.scatter_density(start, latency, cmap="viridis")
    page.savefig(folder / "binned.png")


def report(folder: Path) -> dict[str, float]:
    """The command as a user runs it, from the shell's prompt to the shell's prompt."""
    synthetic.lifelike_campaign(folder, ALLOCATORS, EVENTS, REPEATS, 30)

    def command(*options: str) -> Callable[[], object]:
        return lambda: subprocess.run(
            [sys.executable, "-m", "blockyard", "report", str(folder), "--all", *options],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    section = sections.read(folder).sections[0]
    cut = cuts.of(section)
    digest = seconds(lambda: [figures.measure(one, cut, threads=2) for one in section.measured], 1)
    samples = len(ALLOCATORS) * REPEATS * EVENTS
    return {
        "allocators": len(ALLOCATORS),
        "repeats": REPEATS,
        "events": EVENTS,
        "report_s": round(seconds(command(), 2), 2),
        "report_without_samples_parquet_s": round(seconds(command("--no-samples-parquet"), 1), 2),
        "tables_alone_s": round(seconds(command("--no-samples-parquet", "--no-pictures"), 1), 2),
        "digest_events_per_s": round(samples / digest),
    }


def sites(folder: Path) -> dict[str, float]:
    """Names and call stacks are the bundled journal's; the report's journal has as many events as that of `report`."""
    long, short, results = folder / "long.byj", folder / "short.byj", folder / "results"
    facts = json.loads(blockyard("info", JOURNAL, "--json"))
    each = facts["events"] + facts["live_at_end"]["blocks"]  # which are freed before the next repetition
    for path, events in ((long, SITES_EVENTS), (short, EVENTS)):
        blockyard("repeat", JOURNAL, -(-events // each), "-o", path)
    events = json.loads(blockyard("info", long, "--json"))["events"]
    taken = {"events": events, "sites_s": round(seconds(lambda: blockyard("sites", long), 5), 2)}
    blockyard("replay", short, "-a", "glibc,mimalloc,blockyard,null", "--repeats", 2, "--pace", "max", "-o", results)
    [stacks] = results.glob("runs/*/sites.bys")
    ratios: dict[str, list[float]] = {"report_ratio": [], "page_ratio": []}
    for _ in range(3):
        for name, options in (("report_ratio", ()), ("page_ratio", ("--html",))):
            took = [seconds(lambda: blockyard("report", results, *options), 1)]  # noqa: B023  # called at once
            hidden = stacks.rename(folder / stacks.name)
            took.append(seconds(lambda: blockyard("report", results, *options), 1))  # noqa: B023
            hidden.rename(stacks)
            ratios[name].append(took[0] / took[1])
    return taken | {name: round(statistics.median(found), 2) for name, found in ratios.items()}


def blockyard(*arguments: object) -> str:
    command = [sys.executable, "-m", "blockyard", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--density-only", action="store_true")
    options.add_argument("--no-peer", action="store_true", help="leave the peers out (half a minute)")
    options.add_argument("--folder", type=Path, help="where the synthetic campaigns go while it runs")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        found = {"density": density(Path(scratch) / "density", not chosen.no_peer)}
        if not chosen.density_only:
            found["report"] = report(Path(scratch) / "campaign")
            (Path(scratch) / "sites").mkdir()
            found["sites"] = sites(Path(scratch) / "sites")
    print(json.dumps(found, indent=2))
    bench_result.write("report", found)


if __name__ == "__main__":
    main()
