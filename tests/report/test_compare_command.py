"""`blockyard compare` as a user and a CI server meet it: what it refuses, what it writes, how its gates end."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from compare_lab import campaign, change_json, compare
from in_process import blockyard
from the_command import sentence

from blockyard.analysis import gate
from blockyard.errors import UserError

SMALL = {"allocators": ("glibc", "mine"), "events": 4_000}
STREAM = {"outruns": 0, "waited_ns": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    campaign(folder / "base", seed=0, **SMALL)
    campaign(folder / "new", seed=1, slower={"mine": 1.5}, **SMALL)
    return folder / "base", folder / "new"


@pytest.fixture
def copies(made: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    for one in made:
        shutil.copytree(one, tmp_path / one.name)
    return tmp_path / "base", tmp_path / "new"


def refused(base: Path, new: Path, *arguments: object) -> str:
    found = blockyard("compare", base, new, *arguments)
    assert found.stdout == ""
    return sentence(found)


def test_the_text_says_what_got_worse_within_80_columns(made: tuple[Path, Path]) -> None:
    found = compare(*made)
    assert found.code == 0
    assert "malloc and first touch: NEW against BASE" in found.text
    assert "worse +50 %" in found.text
    assert re.search(r"^\d+ comparisons: 0 better, \d+ worse, \d+ inconclusive$", found.text, re.MULTILINE)
    assert max(len(line.rstrip()) for line in found.text.splitlines() if "/" not in line) <= 80


def test_a_campaign_beside_itself_is_refused_however_it_is_named(made: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(made[0])
    for again in (made[0], tmp_path / "link"):
        assert "BASE and NEW are one campaign" in refused(made[0], again, "--gate", "p50:1%")


def test_a_copy_of_a_campaign_is_refused_and_one_copied_allocator_is_said(copies: tuple[Path, Path]) -> None:
    same = copies[0].with_name("same")
    shutil.copytree(copies[0], same)
    assert "are copies of one another" in refused(copies[0], same)
    shutil.rmtree(copies[1] / "runs/game/glibc")
    shutil.copytree(copies[0] / "runs/game/glibc", copies[1] / "runs/game/glibc")
    found = compare(*copies)
    assert found.code == 0
    assert ": the runs of glibc are the same ones in BASE and NEW, so" in "".join(found.notes)


@pytest.mark.parametrize(
    "files, change, words",
    [
        ("machine.json", {"kind": "other", "kernel": "6.9"}, "machines of different kinds (kernel 6.1.0 and 6.9)"),
        ("campaign.json", {"threads": "one"}, "--threads journal and NEW with --threads one"),
        ("campaign.json", {"causes_above_ns": 0}, "--causes-above 250 and NEW with --causes-above 0"),
        ("campaign.json", {"keep_awake": True}, "NEW was replayed with --keep-awake and BASE without"),
        ("campaign.json", {"in_order": True}, "NEW was replayed with --in-order and BASE without"),
        ("campaign.json", {"pollute_bytes": 65536}, "BASE was replayed with --pollute 0 and NEW with --pollute 65536"),
        ("runs/*/*/*/*/run.json", {"stream": STREAM}, "BASE was replayed from memory and NEW was streamed"),
    ],
)
def test_what_is_measured_otherwise_is_refused(
    copies: tuple[Path, Path], files: str, change: dict[str, Any], words: str
) -> None:
    for path in copies[1].glob(files):
        change_json(path, **change)
    assert words in refused(*copies)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"sha256": "1"}, "the journal game of NEW is another file than that of BASE"),
        ({"to_s": 5.0}, "another stretch"),
    ],
)
def test_another_journal_or_stretch_is_refused(copies: tuple[Path, Path], change: dict, words: str) -> None:
    plan = json.loads((copies[1] / "campaign.json").read_text())
    change_json(copies[1] / "campaign.json", journals=[{**plan["journals"][0], **change}])
    assert words in refused(*copies)


def test_a_library_is_another_one_by_its_contents_and_not_by_its_path(copies: tuple[Path, Path]) -> None:
    def library(folder: Path, path: str, digest: str | None) -> None:
        plan = json.loads((folder / "campaign.json").read_text())
        for entry in plan["allocators"]:
            if entry["name"] == "mine":
                entry |= {"environment": {"BLOCKYARD_ALLOCATOR_LIBRARY": path}}
                entry |= {"file": path, "sha256": digest} if digest is not None else {}
        change_json(folder / "campaign.json", allocators=plan["allocators"])

    library(copies[0], "/base/libmine.so", None)  # as one of the catalogue's
    library(copies[1], "/new/libmine.so", None)
    assert "mine is another one in NEW: its environment changed" in compare(*copies).notes
    library(copies[0], "/base/libmine.so", "1")
    library(copies[1], "/new/libmine.so", "1")
    assert compare(*copies).notes == []
    library(copies[1], "/new/libmine.so", "2")
    assert "mine is another one in NEW: its library is another file" in compare(*copies).notes


def test_another_touch_has_nothing_in_common(made: tuple[Path, Path], tmp_path: Path) -> None:
    other = campaign(tmp_path / "all", seed=2, touches=("all",), **{**SMALL, "repeats": 0})
    base = json.loads((made[0] / "campaign.json").read_text())
    assert base["touches"] == ["page"]
    other.run("glibc", None, 1, touch="all", status="failed", reason="it crashed (SIGSEGV)")
    change_json(tmp_path / "all" / "campaign.json", repeats=1)
    assert "nothing in common that could be compared" in refused(made[0], tmp_path / "all")


@pytest.mark.parametrize("damage", ["no folder", "no campaign", "no machine", "no runs", "half a run.json"])
def test_what_is_no_campaign_is_one_sentence(copies: tuple[Path, Path], damage: str) -> None:
    new = copies[1]
    if damage == "no folder":
        shutil.rmtree(new)
    elif damage == "no campaign":
        (new / "campaign.json").unlink()
    elif damage == "no machine":
        (new / "machine.json").unlink()
    elif damage == "no runs":
        shutil.rmtree(new / "runs")
    else:
        path = new / "runs/game/mine/1x-page/1/run.json"
        path.write_text(path.read_text()[:40])
    refused(*copies)


def test_a_half_campaign_is_compared_as_far_as_it_goes_and_said_to_be(copies: tuple[Path, Path]) -> None:
    for repeat in (4, 5):
        shutil.rmtree(copies[1] / f"runs/game/mine/1x-page/{repeat}")
    found = compare(*copies)
    assert found.code == 0
    assert [words.partition(",")[0] for words in found.notes[:2]] == [
        "NEW is not finished (8 of 10 runs are there)",
        "mine has 5 repeats in BASE and 3 in NEW: the first 3 of each are compared",
    ]
    said = " ".join(found.text.split())
    assert all(f"! {words}" in said for words in found.notes)


def test_an_allocator_in_one_campaign_only_is_named(made: tuple[Path, Path], tmp_path: Path) -> None:
    campaign(tmp_path / "new", seed=1, allocators=("glibc", "jemalloc"), events=4_000)
    found = compare(made[0], tmp_path / "new", "--gate", "p50:100%")
    assert found.code == 0
    assert [words.partition(":")[0] for words in found.notes] == [
        "mine is in BASE only",
        "only NEW has finished runs of jemalloc",
    ]


def test_an_allocator_that_fails_in_new_fails_every_gate(copies: tuple[Path, Path]) -> None:
    for repeat in range(1, 6):
        folder = copies[1] / f"runs/game/mine/1x-page/{repeat}"
        change_json(folder / "run.json", status="failed", reason="it crashed (SIGABRT)")
        (folder / "samples.npy").unlink()
    found = compare(*copies, "--gate", "p50:100%")
    assert found.code == 3
    assert [one["reason"] for one in found.facts["lost"]] == ["mine failed in every run of NEW: it crashed (SIGABRT)"]
    assert compare(*copies).code == 0  # without a gate it is said, and no more


def test_a_gate_ends_with_3_and_names_what_broke_it(made: tuple[Path, Path]) -> None:
    found = compare(*made, "--gate", "malloc/p50:20%", "--gate", "free/p99:500%")
    assert found.code == 3
    assert "gate malloc/p50:20% FAILED: mine, malloc: +" in " ".join(found.text.split())
    assert [one["passed"] for one in found.facts["gates"]] == [True, False, True, True]


def test_a_gate_on_a_percentile_without_samples_does_not_pass(made: tuple[Path, Path]) -> None:
    found = compare(*made, "--gate", "p99.999:5%")
    assert found.code == 3
    assert "can't be judged" in found.text


def test_strict_fails_what_can_not_be_ruled_out(made: tuple[Path, Path]) -> None:
    assert compare(*made, "-a", "glibc", "--gate", "p99:0.1%").code == 0
    found = compare(*made, "-a", "glibc", "--gate", "p99:0.1%", "--strict")
    assert found.code == 3
    words = [one["words"] for one in found.facts["gates"] if not one["passed"]]
    assert words and all(one.endswith(": a rise of more than 0.1 % can't be ruled out") for one in words)


def test_a_gate_may_name_a_view(made: tuple[Path, Path]) -> None:
    assert compare(*made, "--gate", "inherent/p50:20%").code == 3
    found = compare(*made, "--gate", "attributed/p50:20%")
    assert found.code == 3
    assert {(one["passed"], one["words"]) for one in found.facts["gates"]} == {
        (None, "there is no attributed view: the runs did not look for causes")
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p99.9", "is not a gate"),
        ("p99.9:5", "is not a gate"),
        ("p98:5%", "there are p50"),
        ("calloc/p99:5%", "'calloc'"),
        ("free/malloc/p99:5%", "'malloc'"),
        ("", "is not a gate"),
        ("p99:-5%", "is not a gate"),
    ],
)
def test_what_is_no_gate_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        gate.parse(text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_junit_has_a_test_case_for_each_gate_and_allocator(made: tuple[Path, Path], tmp_path: Path) -> None:
    blockyard("compare", *made, "--gate", "malloc/p50:20%", "--export-junit", tmp_path / "gate.xml")
    [suite] = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["mine malloc p50:20%"]


def test_junit_without_a_gate_lists_the_claims_and_fails_nothing(made: tuple[Path, Path]) -> None:
    done = blockyard("compare", *made, "--export-junit", "-")
    [suite] = ElementTree.fromstring(done.stdout)
    assert suite.get("failures") == "0"
    assert int(suite.get("tests")) == 20
    assert int(suite.get("skipped")) > 0


def test_json_is_printed_in_place_of_the_text(made: tuple[Path, Path]) -> None:
    assert json.loads(blockyard("compare", "--json", *made).stdout)["format"] == 1
    assert json.loads(blockyard("compare", *made, "--json").stdout)["format"] == 1


def test_markdown_goes_where_it_is_asked_for(made: tuple[Path, Path]) -> None:
    done = blockyard("compare", *made, "--export-markdown", "-")
    assert done.returncode == 0
    assert done.stdout.startswith("# Blockyard compare\n")
    assert "| mine | " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["-a", "nosuch"],
        ["--export-json", "x", "--export-junit", "x"],
        ["--json", "--export-junit", "-"],
        ["--strict"],
        ["--export-json", ""],
        ["--export-markdown", "/proc/nowhere/out.md"],
    ],
)
def test_a_wrong_request_is_one_sentence(made: tuple[Path, Path], arguments: list[str]) -> None:
    sentence(blockyard("compare", *made, *arguments))
