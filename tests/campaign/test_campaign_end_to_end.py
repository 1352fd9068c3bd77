"""Campaigns with the real replayer, on a journal of a few hundred events."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from stack_paths import name_of
from stacked import Journal
from the_command import blockyard, refusal, sentence, success

from blockyard import allocators, native
from blockyard.analysis.sites import Sites
from blockyard.campaign import demo
from blockyard.commands import demo as demo_command
from blockyard.errors import UserError

EVENTS = 400

pytestmark = pytest.mark.skipif(
    native.find("blockyard-replay") is None or native.find("blockyard-adapter-foreign.so") is None,
    reason="SKIPPED LOUDLY: the native programs are not built (make build), so no real campaign is tested",
)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """200 blocks of two threads within 4 ms, every fourth freed by the thread that did not allocate it."""
    lines = []
    for number in range(EVENTS // 2):
        owner = 1 + number % 2
        freer = 3 - owner if number % 4 == 0 else owner
        begin = 1_000 + 20_000 * number  # what is allocated at 0 is preamble
        lines.append((begin, f"a {16 + number * 40} {0x1000 + number:x} {owner} {begin}"))
        lines.append((begin + 30_000, f"f {0x1000 + number:x} {freer} {begin + 30_000}"))
    path = tmp_path / "tiny.txt"
    path.write_text("".join(f"{line}\n" for _, line in sorted(lines)))
    return path


def allocator(folder: Path, name: str, malloc: str) -> str:
    """Compiles a shared object whose malloc is `malloc`, and returns how -a names it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("SKIPPED LOUDLY: there is no C compiler, so allocators of one's own are not tested")
    source = folder / f"{name}.c"
    # Each block is cut from a buffer that is never given back: the least that can be called an allocator.
    source.write_text(f"""
#include <stddef.h>
static char pool[64 << 20] __attribute__((aligned(16)));
static size_t used, calls;
static void* cut(size_t size) {{
  size_t at = __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
  return pool + at;
}}
__attribute__((visibility("default"))) void* malloc(size_t size) {{
  calls++;
  {malloc}
}}
__attribute__((visibility("default"))) void free(void* block) {{ (void)block; }}
""")
    library = folder / f"{name}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", library, source], check=True)
    return f"{name}={library}"


def test_every_event_of_a_journal_becomes_a_sample(journal: Path, tmp_path: Path) -> None:
    options = ("-a", "glibc,null", "--repeats", 2, "--touch", "none,all")
    success(blockyard("replay", journal, *options, "-o", tmp_path / "r"))
    for run in json.loads((tmp_path / "r/campaign.json").read_text())["runs"]:
        folder = tmp_path / "r/runs" / run["id"]
        if run["untimed"]:
            assert int(np.load(folder / "bursts.npy")["events"].sum()) == EVENTS
            continue
        rows = np.load(folder / "samples.npy")
        assert len(rows) == EVENTS
        assert bool(rows["touch"].any()) == (run["touch"] == "all")


def test_a_journals_call_stacks_are_kept_beside_its_runs(journal: Path, tmp_path: Path) -> None:
    stacked = Journal()
    for number in range(50):
        stacked.allocate(100, 0x1000 + number, 1_000 + 20_000 * number, stacked.stack("main", "load()"))
    path = stacked.write(tmp_path / "stacked.txt")
    options = ("-a", "null", "--repeats", 1, "--to", "0.0005")
    success(blockyard("replay", path, journal, *options, "-o", tmp_path / "r"))
    facts = {one["name"]: one for one in json.loads((tmp_path / "r/campaign.json").read_text())["journals"]}
    assert facts["stacked"]["stacks"] and not facts["tiny"]["stacks"]
    kept = Sites(tmp_path / "r/runs/stacked/sites.bys")
    assert {name_of(kept, int(node)) for node in kept.by_event} == {"load()"}
    assert len(kept.by_event) == facts["stacked"]["events"] < 50, "the stretch that was replayed, and no more"
    assert not (tmp_path / "r/runs/tiny/sites.bys").exists()


def test_the_facts_of_a_run_agree_with_the_plan_of_the_campaign(journal: Path, tmp_path: Path) -> None:
    blockyard(
        "replay", journal, "-a", "null", "-o", tmp_path / "r", "--repeats", 1, "--pace", "10,max", "--threads", "one"
    )
    runs = json.loads((tmp_path / "r/campaign.json").read_text())["runs"]
    assert len(runs) == 4
    for run in runs:
        facts = json.loads((tmp_path / "r/runs" / run["id"] / "run.json").read_text())
        told = [facts[name] for name in ("journal", "allocator", "pace", "touch", "repeat", "threads", "untimed")]
        assert told == [
            run["journal"],
            run["allocator"],
            run["pace"],
            run["touch"],
            run["repeat"],
            "one",
            run["untimed"],
        ]


def test_an_allocator_of_ones_own_is_replayed_beside_the_others(journal: Path, tmp_path: Path) -> None:
    own = allocator(tmp_path, "own", "return cut(size);")
    success(blockyard("replay", journal, "-a", f"null,{own}", "-o", tmp_path / "r", "--repeats", 1))
    assert (tmp_path / "r/runs/tiny/own/1x-page/1/samples.npy").is_file()


@pytest.mark.parametrize(
    ("malloc", "when_tried", "words"),
    [
        ("__builtin_trap();", True, "crashed (SIG"),
        ("if (calls > 2) *(volatile int*)0 = 1; return cut(size);", True, "crashed (SIGSEGV)"),
        ("if (calls > 50) *(volatile char*)8 = 0; return cut(size);", False, "crashed (SIGSEGV)"),
        ("return calls > 50 ? 0 : cut(size);", False, "memory"),
    ],
    ids=["crashes at once", "crashes when tried", "crashes", "runs out of memory"],
)
def test_an_allocator_that_fails_is_reported_and_the_others_go_on(
    journal: Path, tmp_path: Path, malloc: str, when_tried: bool, words: str
) -> None:
    bad = allocator(tmp_path, "bad", malloc)
    done = success(blockyard("replay", journal, "-a", f"{bad},null", "-o", tmp_path / "r", "--repeats", 1))
    failed = json.loads((tmp_path / "r/runs/tiny/bad/1x-page/1/run.json").read_text())
    assert failed["status"] == "failed"
    assert words in failed["reason"]
    assert "tiny/bad/1x-page/1" in done.stderr
    assert "2 of 4 runs failed" in done.stderr and "missing" not in done.stderr
    assert ("bad: it crashed (SIG" in done.stderr) == when_tried
    assert json.loads((tmp_path / "r/runs/tiny/null/1x-page/1/run.json").read_text())["status"] == "ok"


def test_a_line_that_does_not_parse_is_named_and_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("a 16 1000 1 10\na sixteen 2000 1 20\n")
    said = refusal(blockyard("replay", tmp_path / "bad.txt", "-a", "null", "-o", tmp_path / "r"))
    assert "2" in said.splitlines()[-1]
    assert not (tmp_path / "r").exists()


def test_shares_that_were_run_apart_report_as_one(journal: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        options = ("-a", "glibc,null", "--repeats", 2, "--shard", f"{number}/2")
        success(blockyard("replay", journal, *options, "-o", tmp_path / f"share{number}"))
    success(blockyard("merge", "-o", tmp_path / "whole", tmp_path / "share1", tmp_path / "share2"))
    done = success(blockyard("report", tmp_path / "whole", "--no-pictures", "--no-samples-parquet"))
    assert "2 repeats" in done.stdout


@pytest.mark.parametrize(
    ("duration", "variants", "extent", "repeats"),
    [
        (60.0, len(demo.DEFAULTS.allocators), demo.DEFAULTS, 7),
        (60.0, 9, demo.DEFAULTS, 3),
        (60.0, 22, demo.ALL, 3),
        (60.0, 40, demo.ALL, 2),
        (0.5, 22, demo.ALL, 5),
    ],
)
def test_the_demo_takes_as_many_repeats_as_its_time_allows(
    duration: float, variants: int, extent: demo.Extent, repeats: int
) -> None:
    found, length = demo.fit(duration, variants, extent.planned_s)
    assert found == repeats
    assert 0 < length <= duration
    assert 2 * variants * found * length < extent.planned_s


def test_the_first_demo_asks_for_no_crate_and_all_of_them_for_every_allocator() -> None:
    known = allocators.load()
    crates = {name for name, allocator in known.items() if allocator.origin.startswith("crate ")}
    assert crates and set(demo.DEFAULTS.allocators) <= set(known) - crates
    assert demo.ALL.allocators == ("all",)


def test_the_first_demo_has_the_repeats_that_make_its_claims_come_again() -> None:
    assert demo.plan(demo.journal(), demo.DEFAULTS).repeats == 7


@pytest.mark.parametrize(("busiest", "begin"), [(0.0, 0.0), (10.0, 8.8), (20.0, 18.0)])
def test_the_demo_shows_the_journals_busiest_frame(busiest: float, begin: float) -> None:
    assert demo.around(busiest, 2.0, 20.0) == begin


@pytest.fixture
def small_demo(journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo's folder, with a journal of 4 ms, two allocators and a single repeat."""
    monkeypatch.setattr(demo, "journal", lambda: journal)
    monkeypatch.setattr(demo, "DEFAULTS", replace(demo.DEFAULTS, allocators=("glibc", "null")))
    monkeypatch.setattr(demo, "fit", lambda duration, variants, planned_s: (1, duration))
    return tmp_path / "demo"


def test_the_demo_measures_once_and_then_shows_what_is_stored(small_demo: Path) -> None:
    first = CliRunner().invoke(demo_command.command, ["-o", str(small_demo)])
    assert first.exit_code == 0, first.output
    assert "against glibc" in first.stdout and "Verdict" in first.stdout
    assert str(small_demo / "report/report.md") in first.stdout
    assert list((small_demo / "report").rglob("*.png"))
    assert len(first.stdout.splitlines()) <= 24 and max(map(len, first.stdout.splitlines()[:-3])) <= 80
    measured_at = (small_demo / "campaign.json").stat().st_mtime_ns
    second = CliRunner().invoke(demo_command.command, ["-o", str(small_demo)])
    assert second.exit_code == 0, second.output
    assert second.stdout == first.stdout
    assert (small_demo / "campaign.json").stat().st_mtime_ns == measured_at


def test_a_stored_demo_of_the_defaults_is_not_shown_as_one_of_all_variants(small_demo: Path) -> None:
    assert CliRunner().invoke(demo_command.command, ["-o", str(small_demo)]).exit_code == 0
    refused = CliRunner().invoke(demo_command.command, ["--all", "-o", str(small_demo)])
    assert isinstance(refused.exception, UserError)
    assert "'blockyard demo --all --again' measures the others and all variants too" in str(refused.exception)


def test_the_demo_refuses_a_wrong_place_before_it_says_how_long_it_takes(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("precious")
    for place in (tmp_path / "notes", tmp_path / "notes/thesis.txt"):
        done = blockyard("demo", "-o", place)
        assert done.stdout == "" and "thesis.txt" in sentence(done)


def test_the_demo_does_not_take_over_another_campaign(journal: Path, tmp_path: Path) -> None:
    blockyard("replay", journal, "-a", "null", "-o", tmp_path / "mine", "--repeats", 1)
    for again in ([], ["--again"]):
        done = blockyard("demo", *again, "-o", tmp_path / "mine")
        assert done.stdout == "" and "holds a campaign that is not the demo" in refusal(done)
    assert (tmp_path / "mine/runs/tiny/null/1x-page/1/samples.npy").is_file()
