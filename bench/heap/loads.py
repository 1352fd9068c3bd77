"""Loads and programs on which the heap once fell behind: time, and how much is resident at most, beside its peers.

Blockyard's heap is preloaded, as other people's programs have it. The loads are bench_heap's; peers run them through
their adapters. Programs run on preloaded libraries, which two of the peers do not have.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from blockyard import allocators, native

OURS = "blockyard"
PEERS = ("glibc", "mimalloc", "jemalloc", "tcmalloc", "snmalloc", "rpmalloc")
SMALL_PAGES = "small pages"
"""Blockyard's own, which the worst call on huge pages is held against."""

Figures = dict[str, float]
Run = Callable[[], Figures]


@dataclass(frozen=True)
class Row:
    """One figure of a load, the less the better."""

    load: str
    figure: str
    title: str
    unit: str
    threads: int = 1

    @property
    def key(self) -> str:
        return f"{self.load}-{self.figure.removesuffix('_mib')}"


LOADS = (
    Row("handoff-64", "peak_mib", "One thread allocates 64 bytes, another frees: peak", "MiB"),
    Row("handoff-64", "ms", "The same: time", "ms"),
    Row("handoff-mixed", "peak_mib", "The same with mixed sizes: peak", "MiB"),
    Row("handoff-mixed", "ms", "The same: time", "ms"),
    Row("exchange", "peak_mib", "Random exchange, 8 threads: peak", "MiB", threads=8),
    Row("large-touch", "worst_ms", "1 to 8 MiB allocated and touched: the worst", "ms"),
    Row("large-random", "ms", "5 to 25 MiB at random, 500 MB live: time", "ms"),
    Row("large-random", "system_ms", "The same: in the kernel", "ms"),
    Row("fifo-lifo", "ns_a_block", "25 to 1,600 blocks of a size, freed FIFO and LIFO", "ns"),
)
PROGRAMS = (
    Row("true", "peak_mib", "`true`: peak", "MiB"),
    Row("sqlite3", "peak_mib", "SQLite, a table of 60,000 rows: peak", "MiB"),
    Row("git", "peak_mib", "`git log -p`, 400 commits: peak", "MiB"),
    Row("g++", "peak_mib", "A compiler: peak", "MiB"),
    Row("g++", "ms", "The same: time", "ms"),
)
NAMES = tuple(dict.fromkeys(row.load for row in (*LOADS, *PROGRAMS)))

_SQL = """\
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, weight REAL, data BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO item SELECT i, 'name' || (i * 7919 % 10007), i * 0.25, zeroblob(i % 200) FROM n;
CREATE INDEX by_name ON item(name);
SELECT count(DISTINCT name), sum(weight) FROM item;
SELECT a.name, count(*) FROM item a JOIN item b ON a.name = b.name GROUP BY a.name ORDER BY 2 DESC, 1 LIMIT 5;
UPDATE item SET name = upper(name) WHERE id % 3 = 0;
SELECT json_group_array(json_object('id', id, 'name', name)) FROM item WHERE id < 10000;
"""
_SOURCE = """\
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <ranges>
#include <regex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
template <int N> int work(const std::string& text) {
  std::map<std::string, std::vector<int>> words;
  std::unordered_map<int, std::function<int(int)>> functions;
  std::regex pattern("(a|b)*" + std::to_string(N));
  for (std::sregex_iterator each(text.begin(), text.end(), pattern), end; each != end; ++each) {
    words[each->str()].push_back(N);
  }
  functions[N] = [&](int more) { return more + static_cast<int>(words.size()) + N; };
  std::vector<std::string> keys;
  for (const auto& key : words | std::views::keys) keys.push_back(key);
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.size() + N < b.size(); });
  return functions[N](static_cast<int>(keys.size()));
}
int main(int count, char** texts) {
  return work<1>(texts[0]) + work<2>(texts[0]) + work<3>(texts[0]) + work<4>(texts[0]) + count;
}
"""


def measure(
    program: Path, choices: Sequence[allocators.Choice], wanted: Callable[[str], bool], repeats: int, seconds: float
) -> dict[str, object]:
    """By Row.key what the result file keeps; shown as it comes."""
    named = {choice.name: choice for choice in choices if choice.name in PEERS}
    if "glibc" in named:  # its adapter calls whatever malloc the process has
        ours = named["glibc"].environment | _preloaded()
        named = {OURS: replace(named["glibc"], environment=ours)} | named
    found: dict[str, object] = {}
    for load in dict.fromkeys(row.load for row in LOADS if wanted(row.load)):
        rows = [row for row in LOADS if row.load == load]
        some = dict(named)
        if load == "large-touch" and OURS in named:
            small = named[OURS].environment | {"BLOCKYARD_HEAP_HUGE_PAGES": "0"}
            some[SMALL_PAGES] = replace(named[OURS], environment=small)
        runs = {name: _load(program, choice, rows[0], seconds) for name, choice in some.items()}
        found |= _kept(rows, _interleaved(runs, repeats))
    with tempfile.TemporaryDirectory() as folder:
        preloads = dict(_preloads(named))
        for name, command, environment in _programs(Path(folder), wanted):
            if shutil.which(command[0]) is None:
                print(f"NOT MEASURED: {command[0]} is not installed")
                continue
            runs = {who: _launch(program, command, environment | with_it) for who, with_it in preloads.items()}
            found |= _kept([row for row in PROGRAMS if row.load == name], _interleaved(runs, repeats))
    return found


def _load(program: Path, choice: allocators.Choice, row: Row, seconds: float) -> Run:
    command = [str(program), str(choice.adapter), row.load, str(row.threads), str(seconds), choice.options]
    return lambda: _lines(command, choice.environment)


def _launch(program: Path, command: Sequence[str], environment: Mapping[str, str]) -> Run:
    return lambda: _lines([str(program.with_name("bench_heap_launch")), *command], environment)


def _lines(command: Sequence[str], environment: Mapping[str, str]) -> Figures:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"blockyard: {' '.join(command[:4])} failed: {done.stderr.strip() or done.returncode}")
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def _interleaved(runs: Mapping[str, Run], repeats: int) -> dict[str, list[Figures]]:
    """Every other round goes through the allocators in the reverse order, so that drift hits all of them equally."""
    found: dict[str, list[Figures]] = {name: [] for name in runs}
    for repeat in range(repeats):
        for name in runs if repeat % 2 == 0 else reversed(runs):
            found[name].append(runs[name]())
    return found


def _kept(rows: Sequence[Row], results: Mapping[str, Sequence[Figures]]) -> dict[str, object]:
    found = {}
    for row in rows:
        values = {name: sorted(each[row.figure] for each in figures) for name, figures in results.items()}
        print(f"\n{row.title}, {row.unit}")
        for name, each in sorted(values.items(), key=lambda item: item[1][len(item[1]) // 2]):
            print(f"  {name:<12} {each[len(each) // 2]:9.2f}   {each[0]:.2f} to {each[-1]:.2f}")
        found[row.key] = {
            "title": row.title,
            "unit": row.unit,
            "more_is_better": False,
            "allocators": {name: {"values": each} for name, each in values.items()},
        }
    return found


def _preloaded() -> dict[str, str]:
    return {"LD_PRELOAD": str(native.path("libblockyard-malloc.so"))}


def _preloads(named: Mapping[str, allocators.Choice]) -> Iterator[tuple[str, dict[str, str]]]:
    """What a program's environment has for each allocator that can be preloaded."""
    yield OURS, _preloaded()
    for name, choice in named.items():
        library = choice.environment.get(allocators.LIBRARY_VARIABLE)
        if name == "glibc":
            yield name, {}
        elif library is not None:
            yield name, {"LD_PRELOAD": library}


def _programs(folder: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Name, command and environment of each; what it works on is made in `folder`."""
    if wanted("true"):
        yield "true", ["true"], {}
    if wanted("sqlite3"):
        (folder / "load.sql").write_text(_SQL, encoding="utf-8")
        yield "sqlite3", ["sqlite3", str(folder / "data"), f".read {folder / 'load.sql'}", "DROP TABLE item"], {}
    if wanted("git"):
        if shutil.which("git") is not None:
            _make_repository(folder / "repository")
        none = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        yield "git", ["git", "-C", str(folder / "repository"), "log", "-p"], none
    if wanted("g++"):
        (folder / "work.cpp").write_text(_SOURCE, encoding="utf-8")
        yield "g++", ["g++", "-std=c++20", "-O2", "-c", str(folder / "work.cpp"), "-o", str(folder / "work.o")], {}


def _make_repository(folder: Path) -> None:
    stream = []
    for commit in range(1, 401):
        stream.append(f"commit refs/heads/main\ncommitter a <a@b> {1_700_000_000 + commit} +0000\ndata 6\nchange\n")
        for file in range(1, 5):
            text = "".join(f"{line * commit % (97 * file)}\n" for line in range(400 * file))
            stream.append(f"M 100644 inline file{file}\ndata {len(text)}\n{text}\n")
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    import_it = ["git", "-C", str(folder), "fast-import", "--quiet"]
    subprocess.run(import_it, input="".join(stream), text=True, check=True)
