"""info, check, cut, convert and repeat as a user meets them: what they print, and one sentence for each mistake."""

import filecmp
import json
import os
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from the_command import ROOT, blockyard, refusal, success, told

from blockyard import native

LINES = "a 100 A0 7 1000\na 20 B0 9 2000\nf A0 9 3000\na 50 C0 7 2000000000\nf B0 7 2000000010\n"


STACKS = """\
# blockyard journal text 1
# program /studio/secret-game
# argument secret-game
# argument --level=secret
# thread 7 7 secret thread
# name secret tag
# module 1000 3000 1000 0 0badc0de /studio/secret-game
# module 5000 6000 5000 0 - /studio/libsecret.so
# address 0 10
# address 1 20
# stack-end 2
# node - 0
# node 0 1
# node - 2
# node 2 1
# tag 1
# site 1
a 100 A0 7 1000
# site 3
f A0 7 2000
a 50 A0 7 3000
# function 0 12 secret::main
# file /studio/secret.cpp
"""


def tool(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The native half alone: its sentences are the command's (one test below shows it), and it starts in no time."""
    return subprocess.run(
        [native.path("blockyard-journal"), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "game.txt"
    path.write_text(LINES)
    return path


@pytest.fixture
def byj(text: Path) -> Path:
    path = text.with_suffix(".byj")
    assert tool("convert", text, "-o", path, "--addresses").returncode == 0
    return path


def expect_sentence(result: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert result.returncode == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("blockyard: ")
    for part in parts:
        assert part in lines[0]


def test_info_prints_what_the_study_prints_within_80_columns(byj):
    result = success(blockyard("info", byj))
    words = "mallocs,frees,total allocation,max live bytes,average,median,leaked,Threads,Lifetimes,Sizes,Frames"
    for what in words.split(","):
        assert what in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_info_leaves_no_letter_of_a_figure_out_in_a_narrow_terminal(byj):
    assert blockyard("info", byj, columns=20).stdout == blockyard("info", byj).stdout


def test_info_json_is_json(byj):
    facts = told("info", byj)
    assert (facts["allocations"], facts["frees"], facts["remote_frees"], facts["total_bytes"]) == (3, 2, 2, 170)
    assert (facts["max_live_bytes"], facts["max_live_bytes_at_ns"], facts["duration_ns"]) == (120, 2000, 2_000_000_010)
    assert facts["live_at_end"] == {"blocks": 1, "bytes": 50}


def test_the_programs_allocator_is_kept_and_shown(tmp_path):
    note = "# allocator libjemalloc.so.2\n"
    (tmp_path / "game.txt").write_text("# blockyard journal text 1\n" + note + LINES)
    for source, target in (("game.txt", "game.byj"), ("game.byj", "back.txt"), ("game.byj", "anonymous.txt")):
        more = ["--anonymous"] if target == "anonymous.txt" else []
        tool("convert", tmp_path / source, "-o", tmp_path / target, *more)
    assert "; malloc of libjemalloc.so.2)" in blockyard("check", tmp_path / "game.byj").stdout
    assert re.search(r"malloc of +libjemalloc\.so\.2 *\n", blockyard("info", tmp_path / "game.byj").stdout)
    assert note in (tmp_path / "back.txt").read_text()
    assert "jemalloc" not in (tmp_path / "anonymous.txt").read_text()


@pytest.fixture
def with_stacks(tmp_path: Path) -> Path:
    (tmp_path / "stacks.txt").write_text(STACKS)
    path = tmp_path / "stacks.byj"
    assert tool("convert", tmp_path / "stacks.txt", "-o", path).returncode == 0
    return path


def test_info_says_what_call_stacks_a_journal_has(byj, with_stacks):
    words = " ".join(blockyard("info", with_stacks).stdout.split())
    assert (
        "call stacks 2 different ones on 2 events; incomplete: outside the thread's stack 50.00 %; "
        "1 of 2 modules without names; 1 event tagged" in words
    )
    assert "call stacks none: recorded without them" in " ".join(blockyard("info", byj).stdout.split())
    assert told("info", with_stacks)["stacks"]["sites"] == 2


def test_check_says_what_it_checked(byj, with_stacks, tmp_path):
    found = "no violation in 5 events (3 blocks, 1 live at the end; 2 threads; 0 frame marks; no call stacks; "
    assert found in success(blockyard("check", byj)).stdout
    twice = tmp_path / "twice.byj"
    assert tool("repeat", with_stacks, 2, "-o", twice).returncode == 0
    assert "; 2 different call stacks on 4 events; " in blockyard("check", twice).stdout


def test_cut_takes_the_stretch_with_its_preamble(byj, tmp_path):
    result = success(blockyard("cut", byj, "--from", "1", "-o", tmp_path / "cut.byj"))
    assert "3 events, of them 1 preamble" in result.stdout


def test_repeat_makes_one_sound_journal_of_several(byj, tmp_path):
    written = told("repeat", byj, 3, "-o", tmp_path / "long.byj")
    assert written["events"] == 17 and [note.partition(" that")[0] for note in written["notes"]] == ["2 blocks"]
    checked = json.loads(tool("check", tmp_path / "long.byj", "--json").stdout)
    assert checked["violations"] == 0 and checked["blocks_given"] == 9 and checked["live_at_end"] == 1


def test_repeat_refuses_what_can_be_no_number_of_times(byj, tmp_path):
    for times in ("0", "-1", "2000000", "many"):
        assert tool("repeat", byj, times, "-o", tmp_path / "long.byj").returncode == 2
    assert not (tmp_path / "long.byj").exists()


def test_repeat_of_a_damaged_journal_leaves_nothing(byj, tmp_path):
    data = bytearray(byj.read_bytes())
    data[len(data) // 2] ^= 16
    byj.write_bytes(data)
    expect_sentence(tool("repeat", byj, "3", "-o", tmp_path / "long.byj"), "game.byj", "damaged")
    assert {path.name for path in tmp_path.iterdir()} == {"game.byj", "game.txt"}


def test_the_command_shows_the_native_sentence_and_nothing_else(text):
    text.write_text(LINES + "nonsense\n")
    for verb in (["info"], ["check"], ["cut", "-o", "out.byj"], ["convert", "-o", "out.byj"]):
        shown = blockyard(*verb, text, cwd=text.parent)
        expect_sentence(shown, "game.txt, line 6")
        assert shown.stderr == tool(*verb, text, cwd=text.parent).stderr


@pytest.mark.parametrize("verb", [["info"], ["check"], ["cut", "-o", "out.byj"], ["convert", "-o", "out.byj"]])
class TestBadInput:
    def test_a_missing_file(self, verb, tmp_path):
        expect_sentence(tool(*verb, "nowhere.byj", cwd=tmp_path), "nowhere.byj", "No such file")

    def test_an_empty_file(self, verb, tmp_path):
        (tmp_path / "empty").touch()
        expect_sentence(tool(*verb, "empty", cwd=tmp_path), "empty", "0 bytes")

    def test_a_folder(self, verb, tmp_path):
        (tmp_path / "folder").mkdir()
        expect_sentence(tool(*verb, "folder", cwd=tmp_path), "folder", "directory")

    def test_a_flipped_bit(self, verb, byj, tmp_path):
        data = bytearray(byj.read_bytes())
        data[len(data) // 2] ^= 16
        (tmp_path / "bad.byj").write_bytes(data)
        expect_sentence(tool(*verb, "bad.byj", cwd=tmp_path), "bad.byj", "byte", "damaged")
        assert not (tmp_path / "out.byj").exists()


@pytest.mark.parametrize("verb", ["info", "check", "convert"])
def test_a_file_cut_short_is_refused_and_cut_is_named_to_save_it(verb, byj, tmp_path):
    assert tool("repeat", byj, 20_000, "-o", tmp_path / "long.byj").returncode == 0
    extra = ["-o", "out.byj"] if verb == "convert" else []
    for journal, what in (("long.byj", "blockyard cut"), ("game.byj", "no event before it is whole")):
        (tmp_path / "short.byj").write_bytes((tmp_path / journal).read_bytes()[:-200])
        expect_sentence(tool(verb, "short.byj", *extra, cwd=tmp_path), "cut short", what)


class TestCutOfADamagedJournal:
    """What comes before the damage is saved, with an error that says so."""

    @pytest.fixture
    def long(self, byj, tmp_path):
        assert tool("repeat", byj, 30_000, "-o", tmp_path / "long.byj").returncode == 0
        return tmp_path / "long.byj"

    def damaged(self, long, at):
        data = bytearray(long.read_bytes())
        data[at] ^= 16
        (long.parent / "bad.byj").write_bytes(data)

    def text(self, journal):
        """Its events as a file."""
        path = journal.with_suffix(".txt")
        assert tool("convert", journal, "-o", path, "--plain").returncode == 0
        return path

    def test_in_the_middle(self, long, tmp_path):
        self.damaged(long, long.stat().st_size // 2)
        expect_sentence(tool("check", "bad.byj", cwd=tmp_path), "damaged", "`blockyard cut` saves them")
        result = tool("cut", "bad.byj", "-o", "saved.byj", cwd=tmp_path)
        expect_sentence(result, "bad.byj, byte", "damaged here", "what comes before it, up to ", "is in saved.byj")
        facts = json.loads(tool("info", "saved.byj", "--json", cwd=tmp_path).stdout)
        assert 0 < facts["events"] < 150_000 and facts["events"] % 65_536 == 0 and facts["cut_at_end"]
        assert tool("check", "saved.byj", cwd=tmp_path).returncode == 0
        saved = self.text(tmp_path / "saved.byj").read_bytes()
        assert saved.count(b"\n") >= facts["events"]
        with self.text(long).open("rb") as whole:
            assert whole.read(len(saved)) == saved

    @pytest.mark.parametrize("from_end, words", [(40, "damaged"), (16, "tail")])
    def test_in_the_footer_or_the_tail(self, long, tmp_path, from_end, words):
        self.damaged(long, long.stat().st_size - from_end)
        expect_sentence(tool("cut", "bad.byj", "-o", "saved.byj", cwd=tmp_path), words, "is in saved.byj")
        assert filecmp.cmp(self.text(tmp_path / "saved.byj"), self.text(long), shallow=False)

    def test_behind_the_stretch_it_is_no_error(self, long, tmp_path):
        self.damaged(long, long.stat().st_size // 2)
        result = tool("cut", "bad.byj", "--to", "3", "-o", "saved.byj", cwd=tmp_path)
        assert (result.returncode, result.stderr) == (0, "")

    def test_before_the_stretch_there_is_nothing_to_save(self, long, tmp_path):
        self.damaged(long, long.stat().st_size // 2)
        last = json.loads(tool("info", long, "--json").stdout)["duration_ns"] / 1e9
        result = tool("cut", "bad.byj", "--from", last * 0.9, "-o", "saved.byj", cwd=tmp_path)
        expect_sentence(result, "damaged here", "nothing to save")
        assert not (tmp_path / "saved.byj").exists()

    def test_before_the_first_whole_event_there_is_nothing_to_cut(self, long, tmp_path):
        (tmp_path / "bad.byj").write_bytes(long.read_bytes()[:2000])
        result = tool("cut", "bad.byj", "--to", "3", "-o", "saved.byj", cwd=tmp_path)
        expect_sentence(result, "bad.byj holds no whole event, so there is nothing to cut")
        assert not (tmp_path / "saved.byj").exists()


class TestOutput:
    def test_an_existing_file_is_kept_unless_forced(self, byj, tmp_path):
        (tmp_path / "precious.byj").write_text("precious")
        expect_sentence(tool("convert", byj, "-o", "precious.byj", cwd=tmp_path), "exists already", "--force")
        assert (tmp_path / "precious.byj").read_text() == "precious"
        assert tool("convert", byj, "-o", "precious.byj", "--force", cwd=tmp_path).returncode == 0

    def test_the_input_itself_is_refused(self, byj, tmp_path):
        before = byj.read_bytes()
        (tmp_path / "alias.byj").symlink_to(byj)
        expect_sentence(tool("cut", byj, "-o", "alias.byj", "--force", cwd=tmp_path), "is the input itself")
        assert byj.read_bytes() == before

    def test_a_full_disk_is_a_sentence(self, byj):
        expect_sentence(tool("convert", byj, "-o", "/dev/full"), "/dev/full", "No space left")

    @pytest.mark.parametrize("name", ["out.byj", "out.txt", "out.txt.zst", "out.txt.gz"])
    @pytest.mark.parametrize("verb", [["convert"], ["cut", "--from", "1"]])
    def test_a_file_that_may_not_grow_is_named_as_asked_for_and_nothing_is_left(self, verb, name, tmp_path):
        journal = ROOT / "journals" / "small" / "godot-start.byj"
        verb = [part if part != "1" else "0.001" for part in verb]
        done = subprocess.run(
            [native.path("blockyard-journal"), *verb, journal, "-o", tmp_path / name],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
            capture_output=True,
            text=True,
            check=False,
        )
        expect_sentence(done, f"{tmp_path / name}: ", "File too large")
        assert ".part" not in done.stderr
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["out.zip", "out.csv.gz", "out.parquet"])
    def test_an_ending_that_says_nothing_is_refused(self, name, byj, tmp_path):
        for verb in (["convert"], ["cut"]):
            expect_sentence(tool(*verb, byj, "-o", tmp_path / name), name, "its ending", ".journal")
        assert not (tmp_path / name).exists()

    @pytest.mark.parametrize("name", ["out", "out.log", "v1.2.journal.zst"])
    def test_text_has_its_usual_endings_or_none(self, name, byj, tmp_path):
        assert tool("convert", byj, "-o", tmp_path / name).returncode == 0
        assert tool("check", tmp_path / name).returncode == 0

    def test_a_missing_folder_is_a_sentence(self, byj, tmp_path):
        expect_sentence(tool("convert", byj, "-o", tmp_path / "no" / "out.byj"), "out.byj", "No such file")

    def test_a_byj_is_not_compressed_again(self, byj, tmp_path):
        expect_sentence(tool("convert", byj, "-o", tmp_path / "out.byj.zst"), "compressed already")

    def test_an_empty_stretch_is_a_sentence(self, byj, tmp_path):
        expect_sentence(tool("cut", byj, "--from", "99", "-o", tmp_path / "out.byj"), "no event")
        expect_sentence(tool("cut", byj, "--from", "2", "--to", "1", "-o", tmp_path / "out.byj"), "empty")
        assert not (tmp_path / "out.byj").exists()

    def test_an_interrupt_leaves_nothing_behind(self, tmp_path):
        fifo = tmp_path / "endless.txt"
        os.mkfifo(fifo)
        output = tmp_path / "out.byj"
        process = subprocess.Popen([native.path("blockyard-journal"), "convert", fifo, "-o", output])
        with fifo.open("w") as lines:
            for number in range(600_000):  # more than are read ahead
                lines.write(f"a 1 {16 * number + 16:X} 7 {number + 1}\n")
            lines.flush()
            deadline = time.monotonic() + 60
            while not list(tmp_path.glob("out.byj.part-*")) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert list(tmp_path.glob("out.byj.part-*")), "the output was never begun"
            process.send_signal(signal.SIGINT)
            process.wait()
        assert process.returncode == -signal.SIGINT
        assert [path.name for path in tmp_path.iterdir()] == ["endless.txt"]


def test_wrong_usage_exits_with_2():
    assert blockyard("cut").returncode == 2
    assert blockyard("convert", "x", "--nonsense").returncode == 2


READERS = ["info %", "check %", "cut % -o x.byj", "convert % -o x.byj", "repeat % 2 -o x.byj", "names %", "sites %"]
READERS += ["diff % %", "advise % --no-replay -o x", "export % -o x.folded", "replay % -a glibc -o x", "live --json %"]


@pytest.mark.parametrize("line", READERS)
def test_a_journal_that_cant_be_read_is_bad_input_as_a_missing_one_is(line, tmp_path):
    journal = "/proc/sys/vm/drop_caches"  # of which root may read nothing either
    assert journal in refusal(blockyard(*line.replace("%", journal).split(), cwd=tmp_path))


def test_info_of_a_recording_without_times_and_threads_shows_no_lifetimes_no_frames_and_no_threads():
    shown = blockyard("info", ROOT / "journals/small/ls.heaptrack.zst").stdout
    assert "unknown (unpaced: order only)" in shown
    assert "on another thread  unknown: the recording has no threads" in shown
    assert "Threads" not in shown
    assert "Lifetimes" not in shown
    assert "Frames" not in shown


def test_a_file_that_is_no_program_is_not_run(tmp_path):
    file = tmp_path / "picture"
    file.write_bytes(b"PNG")
    file.chmod(0o755)
    done = blockyard("run", "--", file)
    assert (done.returncode, done.stderr) == (1, f"blockyard: {file} can't be started: Exec format error\n")


@pytest.mark.parametrize("output", ["-", "/dev/stdout"])
@pytest.mark.parametrize("verb", ["convert", "cut"])
def test_a_journal_to_standard_output_is_refused(verb, output, text, tmp_path):
    done = blockyard(verb, text, "-o", output, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"blockyard: {output} can't take a journal: standard output has the command's own words; name a file\n"
    )
    assert not (tmp_path / "-").exists()


def test_a_text_journal_comes_through_a_pipe_of_the_shell(text):
    ours, theirs = os.pipe()
    os.write(theirs, text.read_bytes())
    os.close(theirs)
    done = blockyard("check", f"/dev/fd/{ours}", "--json", pass_fds=[ours])
    os.close(ours)
    assert (done.returncode, done.stderr, json.loads(done.stdout)["events"]) == (0, "", 5)


@pytest.mark.parametrize("verb", ["info", "check"])
def test_a_full_standard_output_is_one_sentence(verb, text):
    with open("/dev/full", "w") as full:
        done = blockyard(verb, text, stdout=full)
    assert (done.returncode, done.stderr) == (
        1,
        "blockyard: the output can't be read or written: No space left on device\n",
    )
