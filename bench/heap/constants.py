"""Each constant of the heap at half and at twice its value, beside the heap as it is shipped: what it changes.

Every variant is the shipped source with one text replaced (constants.toml), built in a copy of the sources. The shipped
heap runs several times under names of its own: what these differ by among themselves is chance, and the table says it
first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blockyard.analysis import samples

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = 4
"""How often the shipped heap runs among the others."""
_MIB = 1 << 20
_FREE = 3
"""The kind of a free in a samples.npy; smaller ones allocate."""
_THREADS = (("producer-consumer", 8), ("larson", 8), ("exchange", 8), ("churn", 8))


@dataclass(frozen=True)
class Variant:
    name: str  # of its files, and in campaigns
    title: str
    value: str
    file: str = ""
    text: str = ""
    instead: str = ""
    on: tuple[str, ...] = ("replay", "threads", "level")


def variants(path: Path) -> list[Variant]:
    return [
        Variant(
            _name(each["file"], instead), each["name"], value, each["file"], each["text"], instead, tuple(each["on"])
        )
        for each in tomllib.loads(path.read_text(encoding="utf-8"))["constant"]
        for value, instead in each["values"].items()
    ]


def _name(*what: str) -> str:
    """Another one whenever the heap's sources are others: what was built or measured of those does not stand in."""
    digest = hashlib.sha1(usedforsecurity=False)
    for source in sorted((ROOT / "library" / "src" / "heap").glob("*.[hc]pp")):
        digest.update(source.read_bytes())
    digest.update("\0".join(what).encode())
    return f"v{digest.hexdigest()[:10]}"


class Workshop:
    """A copy of the sources, in which one text at a time is replaced, and what was built of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._source = folder / "source"
        self._build = folder / "build"
        self._ready = False

    def adapter(self, variant: str) -> Path:
        return self._folder / f"{variant}.so"

    def preload(self, variant: str) -> Path:
        return self._folder / f"{variant}-malloc.so"

    def build(self, wanted: Sequence[Variant]) -> None:
        missing = [each for each in wanted if not self.preload(each.name).is_file()]
        for done, variant in enumerate(missing):
            _say(f"building {done + 1} of {len(missing)}: {variant.title} {variant.value}")
            if not self._ready:
                self._prepare()
            self._build_one(variant)

    def level(self) -> Path:
        """The program of tests/heap/level_given_back."""
        program = self._folder / "level"
        if not program.is_file():
            folder = ROOT / "tests" / "heap"
            _run(
                [
                    "c++",
                    "-std=c++20",
                    "-O2",
                    "-fno-builtin",
                    "-pthread",
                    f"-I{ROOT / 'library' / 'include'}",
                    f"-I{folder}",
                    folder / "level_given_back" / "main.cpp",
                    "-o",
                    program,
                ]
            )
        return program

    def _prepare(self) -> None:
        for name in ("cmake", "lab", "library"):
            shutil.copytree(ROOT / name, self._source / name, dirs_exist_ok=True)
        shutil.copy(ROOT / "CMakeLists.txt", self._source)
        _run(
            [
                "cmake",
                "-S",
                self._source,
                "-B",
                self._build,
                "-G",
                "Ninja",
                "-DCMAKE_BUILD_TYPE=Release",
                "-DBLOCKYARD_TESTS=OFF",
                "-DBLOCKYARD_CRATES=OFF",
            ]
        )
        self._ready = True

    def _build_one(self, variant: Variant) -> None:
        where = self._source / "library" / "src" / "heap" / variant.file
        before = where.read_text(encoding="utf-8") if variant.text else ""
        if variant.text:
            if before.count(variant.text) != 1:
                raise SystemExit(f"blockyard: constants.toml: '{variant.text}' does not stand once in {variant.file}")
            where.write_text(before.replace(variant.text, variant.instead), encoding="utf-8")
        try:
            _run(
                [
                    "cmake",
                    "--build",
                    self._build,
                    "--parallel",
                    "2",
                    "--target",
                    "blockyard-adapter-blockyard",
                    "blockyard_malloc",
                ]
            )
        finally:
            if variant.text:
                where.write_text(before, encoding="utf-8")
        shutil.copy(next(self._build.rglob("blockyard-adapter-blockyard.so")), self.adapter(variant.name))
        shutil.copy(next(self._build.rglob("libblockyard-malloc.so")), self.preload(variant.name))


def replay(workshop: Workshop, wanted: Sequence[Variant], journals: Sequence[dict], folder: Path, repeats: int) -> None:
    chosen = ",".join(f"{each.name}={workshop.adapter(each.name)}" for each in wanted)
    home = Path(os.environ["BLOCKYARD_JOURNALS"])
    for journal in journals:
        _say(f"replaying {journal['name']} on {len(wanted)} heaps")
        there = folder / journal["name"]
        resume = ["--resume"] if there.exists() else []
        _run(
            [
                sys.executable,
                "-m",
                "blockyard",
                "replay",
                home / journal["path"],
                "-a",
                chosen,
                "--repeats",
                repeats,
                "--from",
                journal["from"],
                "--to",
                journal["to"],
                "-o",
                there,
                *resume,
            ]
        )


def replayed(folder: Path, journals: Sequence[dict], variant: str) -> Iterator[dict[str, float]]:
    """A journal's figures, medians over its repeats."""
    for journal in journals:
        runs = [_of_run(path) for path in sorted((folder / journal["name"]).rglob(f"{variant}/*/*/run.json"))]
        yield {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _of_run(path: Path) -> dict[str, float]:
    facts = json.loads(path.read_text())
    rows = samples.rows(path.with_name("samples.npy"))
    took = (rows["call"].astype(np.int64) + rows["touch"]) / facts["ticks_per_ns"]
    malloc = took[(rows["kind"] < _FREE) & (rows["size"] <= _MIB)]
    free = took[rows["kind"] == _FREE]
    counters = facts["counters"]
    return {
        "malloc p99": float(np.percentile(malloc, 99)),
        "malloc p99.9": float(np.percentile(malloc, 99.9)),
        "free p99.9": float(np.percentile(free, 99.9)),
        "janitor ms": facts["background"]["cpu_ns"] / 1e6,
        "populated MiB": counters["populated_by_janitor_bytes"]["during"] / _MIB,
        "peak MiB": facts["peak_resident_bytes"] / _MIB,
        "misses": float(counters["ready_misses_small"]["during"] + counters["ready_misses_medium"]["during"]),
    }


def driven(workshop: Workshop, wanted: Sequence[Variant], repeats: int, seconds: float) -> dict[str, dict[str, float]]:
    program = Path(os.environ["BLOCKYARD_BUILD"]) / "bench" / "heap" / "bench_heap"
    figures: dict[str, dict[str, list[float]]] = {each.name: {} for each in wanted}
    for repeat in range(repeats):
        _say(f"threads, {repeat + 1} of {repeats}")
        for each in wanted if repeat % 2 == 0 else wanted[::-1]:
            for workload, threads in _THREADS:
                lines = _run([program, workshop.adapter(each.name), workload, threads, seconds]).splitlines()
                value = float(dict(line.split() for line in lines)["millions_a_second"])
                figures[each.name].setdefault(workload, []).append(value)
    return {
        name: {workload: statistics.median(values) for workload, values in of.items()} for name, of in figures.items()
    }


def freed(workshop: Workshop, wanted: Sequence[Variant]) -> dict[str, dict[str, float]]:
    """Seconds until a freed level has gone back, idle and in play; nothing where it did not within the test's time."""
    program = workshop.level()
    found = {}
    for number, each in enumerate(wanted):
        _say(f"a level freed, {number + 1} of {len(wanted)}")
        done = subprocess.run(
            [program],
            env={**os.environ, "LD_PRELOAD": str(workshop.preload(each.name))},
            capture_output=True,
            text=True,
            check=False,
        )
        took = [float(value) for value in re.findall(r"live ([0-9.]+) s after", done.stdout)]
        found[each.name] = dict(zip(("idle", "in play"), took, strict=False))
    return found


def show_replays(folder: Path, journals: Sequence[dict], wanted: Sequence[Variant]) -> None:
    all_of = {each.name: list(replayed(folder, journals, each.name)) for each in wanted}
    shipped = [all_of[each.name] for each in wanted if not each.text]
    base = [
        {name: statistics.median(run[at][name] for run in shipped) for name in shipped[0][at]}
        for at in range(len(journals))
    ]
    ratios = ("malloc p99", "malloc p99.9", "free p99.9", "peak MiB")
    print(
        f"\nReplayed ({', '.join(journal['name'] for journal in journals)}): of the shipped heap's, geometric means; "
        "janitor and populated: sums; misses while the clock ran\n"
    )
    print("| constant | value | malloc p99 | p99.9 | free p99.9 | peak | janitor, ms | populated, MiB | misses |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for each in wanted:
        of = all_of[each.name]
        means = [
            statistics.geometric_mean(of[at][name] / base[at][name] for at in range(len(journals))) for name in ratios
        ]
        sums = [sum(one[name] for one in of) for name in ("janitor ms", "populated MiB", "misses")]
        print(
            f"| {each.title} | {each.value} | "
            + " | ".join(f"{mean:.2f}" for mean in means)
            + f" | {sums[0]:.0f} | {sums[1]:.0f} | {sums[2]:.0f} |"
        )


def show_ratios(title: str, figures: dict[str, dict[str, float]], wanted: Sequence[Variant]) -> None:
    shipped = [figures[each.name] for each in wanted if not each.text]
    names = list(shipped[0])
    base = {name: statistics.median(one[name] for one in shipped) for name in names}
    print(f"\n{title}\n\n| constant | value | {' | '.join(names)} |\n|---|---|{'--:|' * len(names)}")
    for each in wanted:
        print(
            f"| {each.title} | {each.value} | "
            + " | ".join(f"{figures[each.name][name] / base[name]:.2f}" for name in names)
            + " |"
        )


def show_level(figures: dict[str, dict[str, float]], wanted: Sequence[Variant]) -> None:
    print(
        "\nA level of 256 MiB freed among 128 that stay: seconds until what is resident is above what lives by a "
        "quarter at most\n\n| constant | value | idle | in play |\n|---|---|--:|--:|"
    )
    for each in wanted:
        took = figures[each.name]
        print(
            f"| {each.title} | {each.value} | "
            + " | ".join(f"{took[name]:.2f}" if name in took else "never" for name in ("idle", "in play"))
            + " |"
        )


def _run(command: Sequence[object]) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"blockyard: {' '.join(str(part) for part in command[:4])} ... failed:\n"
            f"{(done.stderr or done.stdout).strip()[-2000:]}"
        )
    return done.stdout


def _say(what: str) -> None:
    print(f"constants: {what}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "constants" / "results")
    parser.add_argument("--journals", default="godot,supertux,zeroad", help="of bench/campaigns/standard.toml")
    parser.add_argument("--repeats", type=int, default=1, help="of each replay (default 1); threads take three times")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each threaded case (default 0.3)")
    parser.add_argument("--only", action="append", default=[], help="constants whose name has these words")
    parser.add_argument(
        "--part", action="append", choices=("build", "replay", "threads", "level"), help="not all; may be repeated"
    )
    options = parser.parse_args()
    parts = options.part or ["build", "replay", "threads", "level"]
    if "BLOCKYARD_JOURNALS" not in os.environ and "replay" in parts:
        raise SystemExit("blockyard: bench/heap/constants: set BLOCKYARD_JOURNALS to where the journals lie")
    campaign = tomllib.loads((ROOT / "bench" / "campaigns" / "standard.toml").read_text(encoding="utf-8"))
    journals = [each for each in campaign["journal"] if each["name"] in options.journals.split(",")]
    found = variants(ROOT / "bench" / "heap" / "constants.toml")
    found = [each for each in found if not options.only or any(words in each.title for words in options.only)]
    if not found or not journals:
        raise SystemExit("blockyard: bench/heap/constants: no such constant, or no such journal")

    def on(part: str) -> list[Variant]:
        some = [each for each in found if part in each.on]
        # The shipped heap at even distances among them: drift hits all of them equally.
        for turn in range(SHIPPED):
            shipped = Variant(_name(f"shipped {turn}"), "as shipped", str(turn + 1))
            some.insert(turn * len(some) // (SHIPPED - 1), shipped)
        return some

    workshop = Workshop(ROOT / "build" / "constants")
    (ROOT / "build" / "constants").mkdir(parents=True, exist_ok=True)
    if "build" in parts:
        workshop.build([*on("none"), *found])
    if any(not workshop.preload(each.name).is_file() for each in [*on("none"), *found]):
        raise SystemExit("blockyard: bench/heap/constants: not all is built of the heap as it is now (--part build)")
    if "replay" in parts and on("replay")[SHIPPED:]:
        replay(workshop, on("replay"), journals, options.output, options.repeats)
        show_replays(options.output, journals, on("replay"))
    if "threads" in parts and on("threads")[SHIPPED:]:
        figures = driven(workshop, on("threads"), 3 * options.repeats, options.seconds)
        show_ratios("Eight threads: throughput, of the shipped heap's", figures, on("threads"))
    if "level" in parts and on("level")[SHIPPED:]:
        show_level(freed(workshop, on("level")), on("level"))


if __name__ == "__main__":
    main()
