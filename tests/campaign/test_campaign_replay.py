"""`blockyard replay` as a user meets it: what it runs, what it keeps, what it refuses."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from campaign_lab import Lab
from the_command import refusal, success


def test_every_allocator_is_run_in_every_repeat_in_interleaved_order(lab: Lab) -> None:
    success(lab.replay(lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 3))
    assert lab.calls() == [
        "game glibc 1 page 1",
        "game null 1 page 1",
        "game null 1 page 2",
        "game glibc 1 page 2",
        "game glibc 1 page 3",
        "game null 1 page 3",
    ]


def test_lists_of_paces_and_touches_make_all_their_combinations(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1, "--pace", "1,10,max", "--touch", "none,all")
    assert lab.runs() == {f"game/null/{pace}-{touch}/1" for pace in ("1x", "10x", "max") for touch in ("none", "all")}


def test_untimed_runs_stand_beside_the_timed_ones(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "glibc", "--repeats", 2, "--touch", "all", totals=True)
    assert lab.calls() == [
        "game glibc 1 all 1",
        "game null 1 all 1 untimed",
        "game glibc 1 all 1 untimed",
        "game glibc 1 all 2",
        "game glibc 1 all 2 untimed",
        "game null 1 all 2 untimed",
    ]
    assert {"game/glibc/1x-all-untimed/2", "game/null/1x-all-untimed/1"} <= lab.runs()


def test_journals_of_the_same_name_get_results_of_their_own(lab: Lab) -> None:
    (lab.folder / "other").mkdir()
    lab.replay(lab.journal("game.txt"), lab.journal("other/game.txt"), "-a", "null", "--repeats", 1)
    assert lab.runs() == {"game/null/1x-page/1", "game-2/null/1x-page/1"}


def test_the_plan_of_the_campaign_has_one_line_a_run(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 2)
    text = (lab.folder / "results/campaign.json").read_text()
    ids = [re.search(r'"id": "([^"]+)"', line)[1] for line in text.splitlines() if '"order":' in line]
    assert ids == [run["id"] for run in json.loads(text)["runs"]]
    assert set(ids) == lab.runs()


def test_the_machine_is_described_with_its_kind_and_the_rate_of_its_clock(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1)
    machine = json.loads((lab.folder / "results/machine.json").read_text())
    assert machine["ticks_per_ns"] == 2.5
    assert machine["cpu"] in machine["kind"] and machine["kernel"] in machine["kind"]


def test_plans_are_dropped_when_the_campaign_is_complete(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1)
    assert not (lab.folder / "results/plans").exists()


def test_a_run_inherits_nothing_that_could_tune_an_allocator(lab: Lab) -> None:
    lab.behave(log_environment=True)
    lab.blockyard(
        "replay",
        lab.journal("game.txt"),
        "-a",
        "null",
        "--repeats",
        1,
        "-o",
        lab.folder / "results",
        MALLOC_ARENA_MAX="1",
        LD_BIND_NOW="1",
        MALLOC_CONF="dirty_decay_ms:0",
        GLIBC_TUNABLES="glibc.malloc.arena_max=1",
    )
    environment = json.loads((lab.build / "environment.json").read_text())
    assert not {"MALLOC_ARENA_MAX", "LD_BIND_NOW", "MALLOC_CONF"} & environment.keys()
    assert environment["GLIBC_TUNABLES"].startswith("glibc.rtld.optional_static_tls")
    assert "arena_max" not in environment["GLIBC_TUNABLES"]


def test_an_allocator_that_is_missing_is_named_with_the_reason_and_the_rest_run(lab: Lab) -> None:
    (lab.build / "blockyard-adapter-glibc.so").unlink()
    done = success(lab.replay(lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 1))
    assert "missing: glibc: blockyard-adapter-glibc.so was not built" in done.stderr
    assert lab.runs() == {"game/null/1x-page/1"}


def test_it_fails_when_every_allocator_is_missing(lab: Lab) -> None:
    (lab.build / "blockyard-adapter-null.so").unlink()
    assert "none of the allocators" in refusal(lab.replay(lab.journal("game.txt"), "-a", "null"))
    assert not (lab.folder / "results").exists()


@pytest.mark.parametrize(
    ("fate", "reason"),
    [
        ("crash", "it crashed (SIGSEGV)"),
        ("killed", "it was killed (SIGKILL), most likely because the machine ran out of memory"),
        ("sentence", "the allocator returned no block for 64 bytes at event 7"),
        ("silent", "it ended with exit code 0 but without a result"),
    ],
)
def test_a_failed_run_is_reported_with_its_reason_and_the_others_go_on(lab: Lab, fate: str, reason: str) -> None:
    lab.behave(fail={"glibc": fate})
    done = success(lab.replay(lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 2))
    assert f"game/glibc/1x-page/1: {reason}" in done.stderr
    (left,) = (lab.folder / "results/runs/game/glibc/1x-page/1").iterdir()  # and no samples
    failed = json.loads(left.read_text())
    assert (left.name, failed["status"], failed["reason"]) == ("run.json", "failed", reason)
    assert "2 of 4 runs measured" in done.stdout


def test_it_fails_when_no_run_succeeded(lab: Lab) -> None:
    lab.behave(fail={"null": "crash"})
    said = refusal(lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1))
    assert said.splitlines()[-1] == "blockyard: no run succeeded; the reasons stand above"


def test_a_journal_that_is_refused_leaves_no_folder_behind(lab: Lab) -> None:
    lab.behave(bad_journal="game.txt line 3: 'x' is neither an allocation nor a free")
    done = lab.replay(lab.journal("game.txt"), "-a", "null")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        1,
        "blockyard: game.txt line 3: 'x' is neither an allocation nor a free",
    )
    assert not (lab.folder / "results").exists()


def test_a_journal_without_times_is_refused_at_any_pace_but_max(lab: Lab) -> None:
    lab.behave(paced=False)
    journal = lab.journal("game.txt")
    said = refusal(lab.replay(journal, "-a", "null", "--repeats", 1, "--pace", "max,1"))
    assert "has no times of its own to be replayed at 1x; use --pace max" in said
    assert lab.replay(journal, "-a", "null", "--repeats", 1, "--pace", "max").returncode == 0


def test_what_was_put_right_in_a_journal_is_said(lab: Lab) -> None:
    done = lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1)
    assert "game: 3 events were put in order" in done.stderr


def test_a_stretch_without_events_is_refused(lab: Lab) -> None:
    lab.behave(events=0)
    said = refusal(lab.replay(lab.journal("game.txt"), "-a", "null", "--from", 1, "--to", 2))
    assert "holds no events to measure" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-a", "null", "--pace", "fast"], "'fast' is not a pace"),
        (["-a", "null", "--pace", "0"], "'0' is not a pace"),
        (["-a", "null", "--touch", "some"], "'some' is not a touch"),
        (["-a", "null", "--repeats", "0"], "0 repeats measure nothing"),
        (["-a", "null", "--repeats", "99999999999"], "99999999999 repeats are too many; ask for at most 1,000"),
        (["-a", "null", "--from", "3", "--to", "2"], "--to must lie after --from"),
        (["-a", "null", "--shard", "3/2"], "'3/2' is not a share"),
        (["-a", "null", "--shard", "1/9", "--repeats", "2"], "can't be shared by 9"),
        (["-a", "null", "--shard", ""], "'' is not a share"),
        (["-a", "null", "--pace", ""], "'' names nothing"),
        (["-a", "null", "--touch", ""], "'' names nothing"),
        (["-a", "null", "--pollute", ""], "'' is not a number of bytes"),
        (["-a", "null", "--pollute", "lots"], "'lots' is not a number of bytes; write 262144, 256K or 8M"),
        (["-a", "null", "--pollute", "2G"], "--pollute takes 0 to 1,073,741,824, and not 2,147,483,648"),
        (["-a", "nul"], "there is no allocator 'nul'"),
        ([], "no allocator was named"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_makes_no_folder(lab: Lab, arguments: list[str], sentence: str) -> None:
    said = refusal(lab.replay(lab.journal("game.txt"), *arguments))
    assert sentence in said
    assert said.splitlines()[-1].startswith("blockyard: ")
    assert not (lab.folder / "results").exists()


def test_a_folder_with_other_files_is_refused_and_left_alone(lab: Lab) -> None:
    (lab.folder / "results").mkdir()
    (lab.folder / "results/thesis.tex").write_text("years of work")
    assert "already holds other files (thesis.tex)" in refusal(lab.replay(lab.journal("game.txt"), "-a", "null"))
    assert [path.name for path in (lab.folder / "results").iterdir()] == ["thesis.tex"]


def test_a_folder_with_a_campaign_is_refused_without_resume(lab: Lab) -> None:
    journal = lab.journal("game.txt")
    lab.replay(journal, "-a", "null", "--repeats", 1)
    assert "already holds a campaign" in refusal(lab.replay(journal, "-a", "null", "--repeats", 1))


def test_resume_runs_only_what_is_missing(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 2)
    (lab.folder / "results/runs/game/null/1x-page/2/run.json").unlink()
    before = len(lab.calls())
    success(lab.replay("--resume"))
    assert lab.calls()[before:] == ["game null 1 page 2"]


def test_resume_runs_again_what_has_lost_its_samples(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 2)
    (lab.folder / "results/runs/game/null/1x-page/1/samples.npy").unlink()
    before = len(lab.calls())
    lab.replay("--resume")
    assert lab.calls()[before:] == ["game null 1 page 1"]


def test_resume_with_the_same_options_is_accepted(lab: Lab) -> None:
    journal = lab.journal("game.txt")
    lab.replay(journal, "-a", "null", "--repeats", 2, "--pace", "max")
    assert lab.replay(journal, "-a", "null", "--repeats", 2, "--pace", "max", "--resume").returncode == 0


def test_resume_adds_repeats(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 1)
    before = len(lab.calls())
    success(lab.replay("--resume", "--repeats", 2))
    assert lab.calls()[before:] == ["game null 1 page 2", "game glibc 1 page 2"]
    lab.replay("--resume")
    assert len(lab.calls()) == before + 2


def test_resume_takes_no_repeats_away_and_adds_none_to_a_share(lab: Lab) -> None:
    journal = lab.journal("game.txt")
    lab.replay(journal, "-a", "null", "--repeats", 2)
    assert "has 2 repeats already" in refusal(lab.replay("--resume", "--repeats", 1))
    shutil.rmtree(lab.folder / "results")
    lab.replay(journal, "-a", "null", "--repeats", 2, "--shard", "1/2")
    assert "is a share of a campaign" in refusal(lab.replay("--resume", "--repeats", 3))


@pytest.mark.parametrize(
    ("arguments", "difference"),
    [
        (["-a", "null", "--repeats", "3"], "its repeats are 2 there and 3 here"),
        (["-a", "glibc", "--repeats", "2"], "its allocators are null there and glibc here"),
        (["-a", "null", "--repeats", "2", "--pace", "max"], "its paces are 1x there and max here"),
        (["-a", "null", "--repeats", "2", "--touch", "all"], "its touches are page there and all here"),
        (["-a", "null", "--repeats", "2", "--threads", "one"], "--threads is journal there and one here"),
        (["-a", "null", "--repeats", "2", "--totals"], "its untimed runs are off there and on here"),
        (["-a", "null", "--repeats", "2", "--causes-above", "0"], "--causes-above is 250 there and 0 here"),
        (["-a", "null", "--repeats", "2", "--pollute", "64K"], "--pollute is 0 there and 65536 here"),
        (["-a", "null", "--repeats", "2", "--in-order"], "--in-order is off there and on here"),
        (["-a", "null", "--repeats", "2", "--keep-awake"], "--keep-awake is off there and on here"),
        (["-a", "null", "--repeats", "2", "--trace"], "its traced runs are off there and on here"),
        (["-a", "null", "--repeats", "2", "--from", "0.5"], "its stretch of game is - - there and 0.5 - here"),
        (["-a", "null", "--repeats", "2", "--shard", "1/2"], "its share is the whole there and 1/2 here"),
    ],
)
def test_resume_refuses_another_campaign_and_says_what_differs(lab: Lab, arguments: list[str], difference: str) -> None:
    journal = lab.journal("game.txt")
    lab.replay(journal, "-a", "null", "--repeats", 2)
    assert difference in refusal(lab.replay(journal, *arguments, "--resume"))


def test_what_runs_look_for_and_walk_stays_with_the_campaign(lab: Lab) -> None:
    journal = lab.journal("game.txt")
    lab.replay(
        journal, "-a", "null", "--repeats", 1, "--causes-above", 700, "--pollute", "1M", "--in-order", "--keep-awake"
    )
    shutil.rmtree(lab.folder / "results/runs/game/null/1x-page/1")
    lab.replay("--resume")
    assert [line.split("--")[1:] for line in lab.command_lines()] == 2 * [
        ["causes-above 700 ", "pollute 1048576 ", "in-order ", "keep-awake"]
    ]


def test_traced_runs_come_last_and_lie_in_a_folder_of_their_own(lab: Lab) -> None:
    success(lab.replay(lab.journal("game.txt"), "-a", "null,glibc", "--repeats", 1, "--trace"))
    assert lab.calls() == [
        "game null 1 page 1",
        "game glibc 1 page 1",
        "game null 1 page 0 traced",
        "game glibc 1 page 0 traced",
    ]
    assert {"game/null/1x-page/trace", "game/glibc/1x-page/trace"} < lab.runs()
    fields = json.loads((lab.folder / "results/campaign.json").read_text())
    assert [run["id"] for run in fields["traces"]] == ["game/null/1x-page/trace", "game/glibc/1x-page/trace"]
    assert len(fields["runs"]) == 2, "traced runs measure nothing"


def test_an_unfinished_traced_run_is_run_again(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1, "--trace")
    (lab.folder / "results/runs/game/null/1x-page/trace/syscalls.npy").unlink()
    lab.replay("--resume")
    assert lab.calls()[2:] == ["game null 1 page 0 traced"]


def test_resume_refuses_a_journal_that_has_changed(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 2)
    said = refusal(lab.replay(lab.journal("game.txt", "a 32 1000 1 10\n"), "-a", "null", "--repeats", 2, "--resume"))
    assert "its journal game has other contents" in said


def test_resume_refuses_another_version_of_an_allocator(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1)
    lab.behave(versions={"null": "2.0"})
    assert "null was 1.0 in the campaign" in refusal(lab.replay("--resume"))


def test_resume_refuses_another_build_of_a_library(lab: Lab) -> None:
    library = lab.folder / "libmine.so"
    library.write_bytes(b"one build")
    (lab.build / "blockyard-adapter-foreign.so").touch()
    success(lab.replay(lab.journal("game.txt"), "-a", f"mine={library}", "--repeats", 1))
    library.write_bytes(b"another build")
    assert f"{library} has changed since the campaign" in refusal(lab.replay("--resume", "--repeats", 2))


def test_resume_refuses_another_kind_of_machine(lab: Lab) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1)
    path = lab.folder / "results/machine.json"
    machine = json.loads(path.read_text())
    kind = machine["kind"].replace(machine["cpu"], "another")
    path.write_text(json.dumps({**machine, "cpu": "another", "kind": kind}))
    assert "processor another and" in refusal(lab.replay("--resume"))


@pytest.mark.parametrize("option", ["--from", "--to"])
@pytest.mark.parametrize("value", ["nan", "inf", "1e300"])
def test_seconds_that_are_no_number_are_refused_before_anything_runs(lab: Lab, option: str, value: str) -> None:
    done = lab.replay(lab.journal("game.txt"), "-a", "null", option, value)
    assert done.returncode == 2
    assert f"'{option}': {value} is not a number of seconds" in done.stderr


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e300"])
def test_memory_that_no_machine_has_is_refused_before_anything_runs(lab: Lab, value: str) -> None:
    done = lab.replay(lab.journal("game.txt"), "-a", "null", "--stream-above", value)
    assert done.returncode == 2
    assert "'--stream-above'" in done.stderr


def test_resume_of_nothing_says_how_to_begin(lab: Lab) -> None:
    assert "blockyard replay" in refusal(lab.replay("--resume"))


@pytest.mark.parametrize("damage", [{"journals": 3}, {"repeats": 10**30}, {"repeats": 0}, {"touches": [True]}])
def test_a_plan_that_is_json_and_yet_none_is_refused(lab: Lab, damage: dict[str, object]) -> None:
    lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1)
    path = lab.folder / "results/campaign.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    assert "campaign.json" in refusal(lab.replay("--resume"))


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_an_interrupt_while_a_journal_is_planned_leaves_nothing_behind(lab: Lab) -> None:
    lab.behave(slow_plan=600)
    process = lab.start("replay", lab.journal("game.txt"), "-a", "null", "--no-totals", "-o", "results")
    wait_for((lab.build / "planning").exists, process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert not (lab.folder / "results").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_campaign_keeps_finished_runs_and_says_how_to_go_on(lab: Lab, number: signal.Signals) -> None:
    lab.behave(fail={"null": "hang"})
    process = lab.start(
        "replay", lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 1, "--no-totals", "-o", "results"
    )
    wait_for((lab.build / "hanging").exists, process)
    process.send_signal(number)
    _, messages = process.communicate()
    assert process.returncode == 130
    assert "interrupted after 1 of 2 runs" in messages and "--resume -o results" in messages
    assert lab.runs() == {"game/glibc/1x-page/1"}
    assert not list((lab.folder / "results").rglob("*.partial"))
    lab.behave()
    assert lab.replay("--resume").returncode == 0
    assert lab.runs() == {"game/glibc/1x-page/1", "game/null/1x-page/1"}


def test_a_second_replay_into_the_same_folder_is_refused(lab: Lab) -> None:
    lab.behave(fail={"null": "hang"})
    process = lab.start("replay", lab.journal("game.txt"), "-a", "null", "--repeats", 1, "--no-totals", "-o", "results")
    wait_for((lab.build / "hanging").exists, process)
    done = lab.replay("--resume")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert "another replay is working in" in refusal(done)


def test_a_campaign_that_the_disk_has_no_room_for_is_refused_before_it_starts(lab: Lab) -> None:
    lab.behave(events=10**13)
    said = refusal(lab.replay(lab.journal("game.txt"), "-a", "null", "--repeats", 1))
    assert "need about" in said and "free" in said
    assert not (lab.folder / "results").exists()


def test_a_disk_that_fills_up_ends_the_campaign_in_a_sentence_and_keeps_finished_runs(
    lab: Lab, a_full_disk: list[str]
) -> None:
    small = lab.folder / "small"
    lab.behave(slow=0.3)
    journal = lab.journal("game.txt")
    # Five runs of 1 MB fit until somebody else takes the space after the first.
    script = (
        f"{sys.executable} -m blockyard replay {journal} -a null --repeats 5 --no-totals -o {small}/results & "
        f"while [ ! -e {small}/results/runs/game/null/1x-page/1 ] && kill -0 $!; do sleep 0.01; done; "
        f"head -c 100m /dev/zero > {small}/others 2>/dev/null; wait $!; code=$?; "
        f"ls {small}/results/runs/game/null/1x-page; exit $code"
    )
    done = subprocess.run(
        [*a_full_disk, "sh", "-c", script], env=lab.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith("blockyard: the disk that holds") and "--resume" in sentence
    assert "1" in done.stdout.split()
    assert not [name for name in done.stdout.split() if name.endswith(".partial")]


def test_output_that_is_no_terminal_gets_plain_lines_that_say_what_is_left(lab: Lab) -> None:
    done = lab.replay(lab.journal("game.txt"), "-a", "glibc,null", "--repeats", 1)
    assert "[1/2] game/glibc/1x-page/1  " in done.stderr
    assert "\x1b" not in done.stderr and "\r" not in done.stderr


def test_the_bars_on_a_terminal_fit_80_columns(lab: Lab) -> None:
    lab.behave(slow=1.2)
    leader, follower = pty.openpty()
    journal = lab.journal("a-rather-long-name-of-a-game.txt")
    process = subprocess.Popen(
        [sys.executable, "-m", "blockyard", "replay", journal, "-a", "null", "--repeats", "1", "-o", "results"],
        cwd=lab.folder,
        env=lab.environment(COLUMNS="80", TERM="xterm"),
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            shown += (piece := os.read(leader, 65536))
        except OSError:
            break
        if not piece:
            break
    process.wait()
    os.close(leader)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    rows = [row.rstrip() for row in re.split(r"[\r\n]+", text)]
    bars = [row for row in rows if row.startswith(("campaign", "allocator", "repeat"))]
    assert {row.split()[0] for row in bars} == {"campaign", "allocator", "repeat"}
    assert max(map(len, bars)) <= 80
    assert any("left" in row for row in bars)
