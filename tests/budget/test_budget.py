"""`blockyard budget`: what is planted is found, what is kept passes, what can't be judged is said in one sentence."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import the_command
from recorded import BUILD
from the_command import refusal, sentence, success

PROGRAM = str(BUILD / "tests" / "budget" / "budget-audio")
AUDIO = "thread=audio* allocations=0 per=frame after=play"


def budget(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return the_command.blockyard("budget", *arguments, columns=120, **options)


def judged(limit: str, *arguments: object, program: str = PROGRAM, code: int = 0) -> dict:
    done = budget("--json", "--limit", limit, "--", program, *arguments)
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout)["limits"][0]


@pytest.mark.parametrize("frame", [1, 7, 10])
def test_one_planted_allocation_fails_the_limit_and_is_shown_with_its_stack(frame: int) -> None:
    done = budget("--limit", AUDIO, "--", PROGRAM, frame)
    assert done.returncode == 3
    assert f"malloc of 4.22 KiB by audio-1 in frame {frame}" in done.stdout
    assert "mix" in done.stdout
    assert "audio.cpp:" in done.stdout


def test_runs_without_one_pass_each_time() -> None:
    for _ in range(5):
        assert judged(AUDIO, 0)["passed"]


@pytest.mark.parametrize(
    ("limit", "worst"),
    [
        ("allocations=9 per=frame", 2),
        ("allocated-bytes=9K per=frame", 4_421),
        ("frees=9 per=frame", 2),
        ("reallocations=0", 0),
        ("outliving-blocks=1", 1),
        ("thread=audio* allocated-bytes=1M after=play", 4_321),
        ("site=*mix* allocations=9 after=play", 1),
        ("site=*mix* live-bytes=1M", 4_321),
        ("thread=audio* live-bytes=1M after=play", 34_321),
    ],
)
def test_each_quantity_is_counted_exactly(limit: str, worst: int) -> None:
    assert judged(limit, 3)["worst"] == worst


def test_limits_begin_after_frames_seconds_and_phases() -> None:
    assert judged("thread=audio* allocations=0 after=7frames per=frame", 7)["passed"]
    assert not judged("thread=audio* allocations=0 after=6frames per=frame", 7, code=3)["passed"]


@pytest.mark.parametrize(("phase", "frames", "outliving"), [(0, 10, 1), (5, 6, 0), (6, 5, 0)])
def test_a_limit_after_a_phase_counts_no_frame_and_no_block_from_before_it(
    phase: int, frames: int, outliving: int
) -> None:
    assert judged("allocations=9 per=frame after=play", 0, 0, phase)["judged"] == frames
    assert judged("outliving-blocks=9 after=play", 0, 0, phase)["worst"] == outliving


def test_what_is_alive_when_its_limit_begins_exceeds_it_by_the_call_that_made_it_too_much() -> None:
    found = judged("thread=audio* live-bytes=15K after=play", 0, code=3)
    assert (found["worst"], found["events_over"]) == (30_000, 1)
    assert (found["first"]["call"], found["first"]["bytes"]) == ("malloc", 10_000)
    assert judged("thread=audio* live-bytes=30K after=play", 0)["passed"]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("thread=video* allocations=0", "no thread is called 'video*'"),
        ("allocations=0 after=pause", "pause, never came"),
        ("allocations=0 after=3600s", "3600 s, never came"),
        ("live-bytes=1M after=3600s", "3600 s, never came"),
        ("outliving-blocks=0 after=99frames", "99 frames, never came"),
        ("allocations=0 per=frame after=10frames", "no whole frame"),
    ],
)
def test_what_cannot_be_judged_fails_and_says_why(limit: str, reason: str) -> None:
    assert reason in judged(limit, 0, code=3)["reason"]


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("thread=x frees=0", "no thread is called 'x'; none allocated"),
        ("allocations=0 per=frame", "no frame was marked"),
    ],
)
def test_a_program_that_does_nothing_is_not_judged(limit: str, reason: str) -> None:
    assert reason in judged(limit, program="true", code=3)["reason"]


def test_sites_to_ignore_are_left_out_and_counted_and_one_that_fits_nothing_is_said(tmp_path: Path) -> None:
    known = tmp_path / "known"
    known.write_text("*mix*  # goes with the new mixer\nnowhere  # was mended\n")
    done = success(budget("--limit", AUDIO, "--ignore", known, "--", PROGRAM, 7))
    assert "4 calls (8.44 KiB) of *mix*: goes with the new mixer" in done.stdout
    assert "nothing of nowhere" in done.stdout


def test_a_limits_file_junit_annotations_and_the_journal_are_as_the_options_say(tmp_path: Path) -> None:
    limits = tmp_path / "budget.toml"
    limits.write_text('[[limit]]\nthread = "audio*"\nafter = "play"\nallocations = 0\nper = "frame"\n')
    xml, journal = tmp_path / "gate.xml", tmp_path / "kept.byj"
    done = budget(
        *("--limits", limits, "--warn", "--export-junit", xml, "--record", journal, "--", PROGRAM, 7),
        more={"GITHUB_ACTIONS": "true"},
    )
    assert done.returncode == 0
    assert [one.tag for one in ElementTree.parse(xml).iter("failure")] == ["failure"]
    assert "::error file=" in done.stdout
    assert the_command.blockyard("check", journal).returncode == 0


def test_learned_limits_hold_for_the_program_that_they_were_learned_from(tmp_path: Path) -> None:
    limits = tmp_path / "budget.toml"
    assert budget("--learn", limits, "--", PROGRAM, 3).returncode == 0
    assert budget("--limits", limits, "--", PROGRAM, 3).returncode == 0


def test_no_limits_are_learned_from_a_program_that_fails(tmp_path: Path) -> None:
    limits = tmp_path / "budget.toml"
    assert " 5" in refusal(budget("--learn", limits, "--", PROGRAM, 0, 5))
    assert not limits.exists()


@pytest.mark.parametrize("option", ["--learn", "--export-json", "--export-junit"])
def test_a_file_that_cannot_be_written_is_refused_before_the_program_runs(option: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file" / "limits"):
        said = refusal(budget(option, path, "--", "touch", tmp_path / "ran"))
        assert f"{path} can't be written; name another file" in said
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "there is no limit"),
        (("--stop", "--limit", "live-bytes=1M"), "--stop can't watch"),
        (("--stop", "--limit", "site=mix allocations=0"), "--stop can't watch"),
        (("--limit", "allocation=0"), "'allocation' means nothing here"),
        (("--limit", "allocations=-1"), "takes a whole number"),
        (("--limit", "per=frame"), "limits nothing"),
        (("--limit", "allocations=0 per=hour"), "per is one of"),
        (("--limit", "live-bytes=1 per=frame"), "at every moment only"),
        (("--limits", "/no/such/file"), "there is no file of limits"),
        (("--limit", "allocations=0 thread='audio"), "no closing quotation"),
        (("--learn", "x", "--limit", "allocations=0"), "leave --limit out"),
        (("--learn", "x", "--warn", "--json"), "leave --warn and --json out"),
        (("--learn", "x", "--export-json", "y"), "leave --export-json out"),
        (("--learn", "x", "--export-junit", "y"), "leave --export-junit out"),
    ],
)
def test_limits_that_are_none_are_refused_in_one_sentence(arguments: tuple, words: str) -> None:
    assert words in sentence(budget(*arguments, "--", PROGRAM))


def test_a_program_that_fails_or_is_not_there_ends_with_1() -> None:
    assert "itself ended with exit code 5" in budget("--limit", AUDIO, "--", PROGRAM, 0, 5).stderr
    assert "no-such-program" in refusal(budget("--limit", AUDIO, "--", "./no-such-program"))


FORBIDDEN = str(BUILD / "tests" / "budget" / "budget-forbidden")


@pytest.mark.parametrize(("calls", "code", "passed"), [(0, 0, True), (2, 3, False)])
def test_what_the_code_forbids_is_reported_under_its_name_without_any_limit(
    calls: int, code: int, passed: bool
) -> None:
    done = budget("--json", "--", FORBIDDEN, calls)
    assert done.returncode == code, done.stderr
    audio, kept = json.loads(done.stdout)["limits"]
    assert audio["name"] == "audio callback: no allocation, says the code"
    assert (audio["passed"], audio["events_over"], audio["worst"]) == (passed, calls, calls)
    assert kept["passed"]
    assert not calls or audio["first"]["stack"][0]["function"].endswith("mix")


def test_limits_by_tag_do_not_see_the_levels_that_forbid() -> None:
    done = budget("--json", "--limit", "tag=physics frees=0", "--warn", "--", FORBIDDEN, 0)
    assert json.loads(done.stdout)["limits"][0]["worst"] == 3
    done = budget("--json", "--limit", "tag='*no allocation/audio*' frees=0", "--warn", "--", FORBIDDEN, 0)
    assert json.loads(done.stdout)["limits"][0]["worst"] == 1


def test_what_happens_in_the_first_of_several_runs_only_is_told_apart(tmp_path: Path) -> None:
    done = budget("--again", 2, "--", FORBIDDEN, 2, tmp_path / "cache")
    assert done.returncode == 3
    assert "in run 1 of 3 only: " in done.stdout
    assert "in each of 3 runs: " in budget("--again", 2, "--", FORBIDDEN, 2).stdout


def test_a_site_says_in_how_many_frames_it_exceeded_the_limit() -> None:
    done = budget("--limit", "allocations=0 per=frame after=play", "--", PROGRAM, 7)
    assert "main (11 in 10 frames)" in done.stdout
    assert "mix (1 in 1 frame)" in done.stdout


@pytest.mark.parametrize(
    "limit", [AUDIO, "thread=audio* allocated-bytes=4K after=play", "thread=audio* frees=0 after=play"]
)
def test_stop_raises_sigtrap_where_the_limit_is_exceeded_and_shows_that_call(limit: str) -> None:
    done = budget("--stop", "--limit", limit, "--", PROGRAM, 7)
    assert done.returncode == 3
    assert "this thread gets SIGTRAP" in done.stderr
    assert "was stopped by SIGTRAP there" in done.stderr
    assert "in frame 7" in done.stdout


def test_stop_in_a_debugger_stops_the_program_and_not_the_debugger() -> None:
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    command = ("gdb", "-nx", "-batch", "-ex", "run", "-ex", "backtrace", "--args", PROGRAM, 7)
    done = budget("--stop", "--limit", AUDIO, "--", *command)
    assert done.returncode == 3
    assert "Judged is budget-audio, a child of gdb." in done.stdout
    assert re.search(r"#\d+ .* in .*mix", done.stdout), done.stdout


def test_stop_leaves_a_program_alone_that_keeps_to_its_limits() -> None:
    assert budget("--stop", "--limit", AUDIO, "--", PROGRAM, 0).returncode == 0
    assert budget("--stop", "--", FORBIDDEN, 0).returncode == 0


def test_a_program_whose_own_malloc_hands_calls_on_is_judged(tmp_path: Path) -> None:
    counted, found = BUILD / "tests" / "budget" / "expect_allocations_test", tmp_path / "found.json"
    success(budget("--limit", "allocations=100000", "--export-json", found, "--", counted, "--gtest_list_tests"))
    assert json.loads(found.read_text())["limits"][0]["worst"] > 0
