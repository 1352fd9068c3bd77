"""`blockyard trial` on small programs with frames, and on every input that it refuses."""

import html
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import the_command
from recorded import BUILD
from replay_lab import sooner_or_later

from blockyard.trial.run import Run

PROGRAMS = BUILD / "tests" / "trial"
FRAMES = str(PROGRAMS / "trial-frames")


def trial(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return the_command.blockyard("trial", *arguments, columns=120, **options)


def told(*arguments: object) -> dict:
    return the_command.told("trial", *arguments, columns=120)


def one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith(("blockyard: ", "Error: "))]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_frames_are_counted_and_timed_as_the_program_marks_them() -> None:
    found = told("-a", "glibc,blockyard", "--runs", 3, "--", FRAMES, 400, 200)
    for one in found["contenders"]:
        assert one["runs"] == 3
        assert {"frame p50", "frame p99", "elapsed", "CPU time", "peak memory", "page faults"} <= {
            name for name, figure in one["figures"].items() if figure
        }
        # 399 frames lie between 400 marks.
        assert one["figures"]["elapsed"]["value"] > 399 * one["figures"]["frame p50"]["value"] * 0.5
        # What Python has resident is no part of it.
        assert one["figures"]["peak memory"]["value"] < 2 * 16 * 2**20


def test_buffer_swaps_of_an_unmodified_program_are_its_frames() -> None:
    program = BUILD / "tests" / "record" / "record-frames"
    found = told("--with", "again=A=1", "--runs", 3, "--", program, "glXSwapBuffers")
    assert found["contenders"][0]["figures"]["worst frame"]


def test_the_function_of_frame_symbol_ends_frames() -> None:
    program = BUILD / "tests" / "record" / "record-signature"
    arguments = ("--with", "again=A=1", "--runs", 3)
    assert told(*arguments, "--frame-symbol", "variadic", "--", program)["contenders"][0]["figures"]["worst frame"]
    assert not told(*arguments, "--", program)["contenders"][0]["figures"]["worst frame"]


def test_a_slower_build_is_called_slower_and_the_first_is_what_it_differs_from(tmp_path: Path) -> None:
    slower = tmp_path / "slower"
    slower.write_text(f"#!/bin/sh\nexec {FRAMES} 400 600\n")
    slower.chmod(0o755)

    def is_found() -> bool:
        found = told("--build", f"slower={slower}", "--runs", 4, "--", FRAMES, 400, 200)
        assert found["against"] == "unchanged"
        return "slower by" in found["sentences"][0]

    assert sooner_or_later(is_found)


def test_whole_runs_are_compared_where_no_frame_is_seen() -> None:
    found = told("--with", "again=A=1", "--runs", 3, "--", FRAMES, 100, 100, "none")
    assert found["contenders"][1]["figures"]["elapsed"]["value"] > 0
    assert any("No frames were seen" in warning for warning in found["warnings"])


def test_frames_of_a_child_process_are_taken_and_said_to_be_a_child_s() -> None:
    found = told("--with", "again=A=1", "--runs", 3, "--", FRAMES, 100, 100, "child")
    assert found["contenders"][0]["figures"]["worst frame"]
    assert any("a child of" in warning for warning in found["warnings"])


def test_a_program_that_waits_for_the_screen_is_recognised() -> None:
    vsync = ("--with", "again=A=1", "--runs", 3, "--", FRAMES, 40, 200, "vsync")
    assert sooner_or_later(lambda: told(*vsync)["held_to_frames_per_second"] == 60)


def test_an_allocator_that_crashes_is_left_out_with_its_signal() -> None:
    crasher = PROGRAMS / "libtrial-crasher.so"
    found = told("-a", f"glibc,bad={crasher}", "--with", "again=A=1", "--runs", 3, "--", FRAMES, 100, 100)
    assert "bad failed in the warm-up and was left out: SIGABRT ended it." in found["sentences"]
    assert found["contenders"][2]["runs"] == 3


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def test_a_program_that_is_ended_has_time_to_clean_up(tmp_path: Path) -> None:
    program = script(
        tmp_path / "cleans-up", f"trap 'sleep 0.3; touch {tmp_path}/cleaned; exit' TERM", "while :; do sleep 0.1; done"
    )
    trial("--with", "again=A=1", "--timeout", 1, "--", program)
    assert (tmp_path / "cleaned").exists()


def test_another_output_is_told_only_where_it_is_asked_for() -> None:
    arguments = ("--with", "again=A=1", "--runs", 3, "--", FRAMES, 10, 10, "differs")
    [warning, *_] = [one for one in told("--same-output", *arguments)["warnings"] if "another output" in one]
    assert f"! {warning}" in " ".join(trial("--same-output", *arguments).stdout.split())
    assert "another output" not in str(told(*arguments)["warnings"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-a", "glibc,null", "--", FRAMES, 1, 1), "null can't be preloaded into a program"),
        (("-a", "glibc,glibc@prefaulted", "--", FRAMES, 1, 1), "only a replay can populate"),
        (("-a", "glibc,libm=/lib/x86_64-linux-gnu/libm.so.6", "--", FRAMES, 1, 1), "libm"),
        (("-a", "glibc", "--", FRAMES, 1, 1), "nothing to compare with"),
        (("-a", "glibc,blockyard", "--", "./no-such-program"), "is not a program that can be run"),
        (("--with", "again", "--", FRAMES, 1, 1), "--with takes NAME="),
        (("--with", "again=A", "--", FRAMES, 1, 1), "is not a setting"),
        (("--with", "again=A='1", "--", FRAMES, 1, 1), "is left open"),
        (("--with", "a=A=1", "--with", "a=A=2", "--", FRAMES, 1, 1), "rename one of them"),
        (("--with", "a=A=1", "--runs", 0, "--", FRAMES, 1, 1), "0 runs can't be made"),
        (("--with", "again=A=1", "--", FRAMES, 10, 10, "fails"), "exit code 3 (no level was found)"),
        (("--with", "again=A=1", "--timeout", 1, "--", FRAMES, 10, 10, "hangs"), "did not end within 1 s"),
        (("--resume", "--", FRAMES), "--resume needs -o"),
        (("-a", "glibc"), "no program was given"),
    ],
)
def test_what_cannot_be_tried_is_refused_in_one_sentence(arguments: tuple, words: str) -> None:
    assert words in one_sentence(trial(*arguments))


def test_an_interrupt_keeps_what_was_measured_and_resume_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    process = the_command.started("trial", "--with", "again=A=1", "--runs", 4, "-o", folder, "--", FRAMES, 200, 1000)
    while len(list(folder.glob("runs/*/*.npz"))) < 3:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "go on with 'blockyard trial --resume -o" in errors
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*.npz")}
    assert len(kept) >= 3
    found = told("--resume", "-o", folder, "--runs", 5)
    assert [one["runs"] for one in found["contenders"]] == [5, 5]
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())
    assert {"report.txt", "report.json", "frames-by-percentile.png", "frames-along-time.png"} <= {
        path.name for path in folder.iterdir()
    }
    page = (folder / "report.html").read_text()
    assert all(html.escape(sentence) in page for sentence in found["sentences"])
    assert page.count("data:image/svg+xml;base64,") == 2
    assert not re.search(r'(?:src|href)="(?!data:)', page), "the page works offline"


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """The folder of a trial of tmp_path's script `game`, which fails under BAD once there is a file `broken`."""
    game = script(
        tmp_path / "game", f'test -z "$BAD" || ! test -e {tmp_path}/broken || exit 1', f"exec {FRAMES} 200 100"
    )
    told("--with", "bad=BAD=1", "--runs", 3, "-o", tmp_path / "results", "--", game)
    return tmp_path / "results"


def test_who_fails_in_the_warm_up_of_a_resumed_trial_keeps_its_runs(finished: Path) -> None:
    (finished.parent / "broken").touch()
    found = told("--resume", "-o", finished, "--runs", 4)
    assert [one["runs"] for one in found["contenders"]] == [4, 3]
    assert any("got no more runs" in warning for warning in found["warnings"])
    assert "bad failed in the warm-up" not in found["sentences"][0]


def test_an_interrupt_in_the_warm_up_of_a_resumed_trial_counts_the_saved_runs(tmp_path: Path) -> None:
    slow = script(tmp_path / "game", f"test -e {tmp_path}/wait && sleep 30", f"exec {FRAMES} 200 100")
    folder = tmp_path / "results"
    told("--with", "again=A=1", "--runs", 3, "-o", folder, "--", slow)
    (tmp_path / "wait").touch()
    process = the_command.started("trial", "--resume", "-o", folder, "--runs", 4)
    assert process.stderr is not None
    assert "warm-up" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "kept: 6 runs; go on with" in errors


def test_a_program_that_changed_is_not_mixed_with_what_it_was(finished: Path) -> None:
    with (finished.parent / "game").open("a") as game:
        game.write("# another\n")
    assert "game has changed since" in one_sentence(trial("--resume", "-o", finished, "--runs", 4))


def test_a_trial_goes_on_only_where_it_began(finished: Path) -> None:
    done = trial("--resume", "-o", finished, "--runs", 4, cwd=finished)
    assert "go on with it there" in one_sentence(done)


def test_a_run_whose_file_is_damaged_is_made_again(finished: Path) -> None:
    path = finished / "runs" / "bad" / "2.npz"
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:length])
        assert Run.load(path) is None
    for place in range(0, len(whole), max(len(whole) // 2_000, 1)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        Run.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    assert [one["runs"] for one in told("--resume", "-o", finished)["contenders"]] == [3, 3]
    assert Run.load(path) is not None


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    assert "is not empty" in one_sentence(trial("--with", "a=A=1", "-o", tmp_path, "--", FRAMES, 1, 1))


def replayed(folder: Path, *peaks: int) -> Path:
    """What 'blockyard replay' and 'report' leave, of an allocator that takes nothing."""
    report = folder / "replayed" / "report"
    report.mkdir(parents=True)
    places = ["game,1x,page,unchanged", "game,1x,page,again"]
    totals = [f"{place},all,1000,0" for place in places]
    memory = [f"{place},{peak}" for place, peak in zip(places, peaks, strict=True)]
    (report / "totals.csv").write_text(
        "\n".join(["journal,pace,touch,allocator,thread,total_ns,touch_ns", *totals]) + "\n"
    )
    (report / "memory.csv").write_text("\n".join(["journal,pace,touch,allocator,resident_bytes", *memory]) + "\n")
    return report.parent


def test_what_a_replay_predicted_stands_beside_what_was_found_with_the_reason_where_they_disagree(
    tmp_path: Path,
) -> None:
    results = replayed(tmp_path, 10_000_000, 900_000_000)
    done = trial("--with", "again=A=1", "--runs", 3, "--replayed", results, "--", FRAMES, 200, 100)
    assert done.returncode == 0, done.stderr
    words = done.stdout[done.stdout.index("Predicted by replay") :]
    assert re.search(r"again +\+0\S* ns, within +\+849 MiB, outside", words), words
    assert "peak memory: a replay's memory is" in words


def test_a_folder_without_a_report_of_a_replay_is_refused_before_anything_runs(tmp_path: Path) -> None:
    assert "has no report of a replay" in one_sentence(
        trial("--with", "again=A=1", "--replayed", tmp_path, "--", FRAMES, 200, 100)
    )
