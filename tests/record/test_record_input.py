"""Bad input to `blockyard record`: one sentence, a non-zero exit code, nothing lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recorded import command, environment, program, record, recording

from blockyard import native


def sentence(done) -> str:
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == 1 and lines[0].startswith("blockyard: "), done.stderr
    assert done.exit_code == 1
    return lines[0]


def test_what_draws_is_not_loaded_before_the_program_starts():
    look = "import sys, blockyard.cli, blockyard.commands.record; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look]).returncode == 0


@pytest.mark.parametrize(
    "content, mode, words",
    [
        (None, 0, "was not found"),
        (b"hello", 0o644, "not executable"),
        # Only the header is looked at, so that the test needs no 32-bit compiler.
        (b"\x7fELF\x01\x01\x01" + bytes(100), 0o755, "32-bit"),
        (b"#!/no/such/shell\n", 0o755, "/no/such/shell"),
    ],
    ids=["missing", "no program", "32-bit", "no interpreter"],
)
def test_what_can_not_be_started_is_refused(tmp_path, content, mode, words):
    file = tmp_path / "game"
    if content is not None:
        file.write_bytes(content)
        file.chmod(mode)
    assert words in sentence(recording(tmp_path / "x.byj", str(file)))


def test_an_output_that_exists_is_kept(tmp_path):
    (tmp_path / "x.byj").write_text("precious")
    assert "--force" in sentence(recording(tmp_path / "x.byj", "true"))
    assert (tmp_path / "x.byj").read_text() == "precious"


def test_force_replaces_an_output(tmp_path):
    (tmp_path / "x.byj").write_text("worthless")
    done = record(tmp_path / "x.byj", "true", options=("--force",))
    assert done.journal().info["program"].endswith("true")


@pytest.mark.parametrize(
    "output, words", [("{}/no/x.byj", "does not exist"), ("{}", "is a folder"), ("-", "standard output")]
)
def test_an_output_that_can_not_be_written_is_refused(tmp_path, output, words):
    assert words in sentence(recording(Path(output.format(tmp_path)), "true"))


def test_an_output_in_a_folder_that_takes_no_file():
    # Who asks whether it permits one is told so.
    assert "/proc/x.byj can't be created: No such file" in sentence(recording(Path("/proc/x.byj"), "true"))


def compiled(tmp_path, *options):
    source = tmp_path / "tiny.c"
    source.write_text("int main(void) { return 0; }\n")
    program = tmp_path / "tiny"
    built = subprocess.run(["cc", *options, "-o", program, source], capture_output=True, text=True)
    if built.returncode != 0:
        pytest.skip(f"A TINY PROGRAM WITH {options} COULD NOT BE BUILT: {built.stderr.splitlines()[-1]}")
    return str(program)


@pytest.mark.parametrize("options", [("-static",), ("-static-pie",)])
def test_a_static_program_is_refused(tmp_path, options):
    assert "linked statically" in sentence(recording(tmp_path / "x.byj", compiled(tmp_path, *options)))


def test_a_frame_symbol_without_a_name_is_refused(tmp_path):
    assert "--frame-symbol" in sentence(recording(tmp_path / "x.byj", "true", options=("--frame-symbol", "")))


def test_a_setuid_program_of_another_user_is_refused(tmp_path):
    program = tmp_path / "other"
    shutil.copy(shutil.which("true"), program)
    if os.geteuid() != 0:
        pytest.skip("SETUID PROGRAMS WERE NOT TESTED: only root can make one of another user")
    os.chown(program, 12345, 12345)
    program.chmod(0o4755)
    assert "setuid" in sentence(recording(tmp_path / "x.byj", str(program)))


def test_a_program_of_another_user_says_why_it_is_not_recorded(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("ANOTHER USER'S PROGRAM WAS NOT TESTED: only root can start one")
    collect = native.path("blockyard-collect")
    if subprocess.run(["test", "-x", collect], user=12345, check=False).returncode:
        pytest.skip("ANOTHER USER'S PROGRAM WAS NOT TESTED: the checkout's folder is closed to other users")
    socket = f"blockyard-test-{os.getpid()}"
    collector = subprocess.Popen(
        [collect, "--socket", socket, "--output", tmp_path / "x.byj"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        user=12345,
    )
    assert collector.stdout.readline() == "ready\n"
    library = str(native.path("libblockyard-record.so"))
    subprocess.run(["true"], env=environment(BLOCKYARD_RECORD=socket, LD_PRELOAD=library), check=True)
    _, said = collector.communicate()
    assert "it runs as user 0, and the recorder as user 12345" in said


def test_an_engine_without_a_collector_hears_why_it_has_no_journal(tmp_path):
    library = tmp_path / "libblockyard-record.so"
    shutil.copy(native.path("libblockyard-record.so"), library)
    engine = subprocess.run(
        [program("engine"), tmp_path / "x.byj"],
        env=environment(LD_PRELOAD=str(library)),
        capture_output=True,
        text=True,
    )
    assert engine.returncode == 2
    assert "no journal is written: blockyard-collect can't be started; it must lie beside" in engine.stderr
    assert str(tmp_path) in engine.stderr


def test_a_ring_that_is_no_power_of_two_is_wrong_usage():
    collect = [native.path("blockyard-collect"), "--socket", "none", "--ring-kib", "100"]
    done = subprocess.run(collect, capture_output=True, text=True)
    assert done.returncode == 2 and "100 is no power of two" in done.stderr


def test_a_program_that_clears_its_environment_says_why_nothing_was_recorded(tmp_path):
    script = tmp_path / "static.sh"
    static = compiled(tmp_path, "-static")
    script.write_text(f"#!{static}\n")
    script.chmod(0o755)
    done = recording(tmp_path / "x.byj", str(script))
    assert "linked statically" in done.stderr


def test_a_full_disk_is_said_and_the_program_goes_on(tmp_path):
    # The kernel's device that is always full stands in for the disk.
    done = recording(
        tmp_path / "x.byj",
        sys.executable,
        "-c",
        "print(sum(range(10)))",
        BLOCKYARD_COLLECT_OPTIONS="--output /dev/full --overwrite",
    )
    assert (done.exit_code, done.stdout) == (1, "45\n")
    assert "No space left on device" in done.stderr
    assert all(line.count("/dev/full") == 1 for line in done.stderr.splitlines() if "/dev/full" in line)


def test_one_journal_of_several_that_can_not_be_written_fails_the_recording(tmp_path):
    (tmp_path / "here").mkdir()
    script = f"mv {tmp_path}/here {tmp_path}/there; ( exec /bin/true )"
    done = recording(tmp_path / "here" / "x.byj", "bash", "-c", script)
    assert done.exit_code == 1
    assert "can't be created: No such file or directory" in done.stderr
    assert (tmp_path / "there" / "x.byj").is_file()


def test_the_programs_streams_and_exit_code_are_its_own(tmp_path):
    done = recording(
        tmp_path / "x.byj", "sh", "-c", "read line; echo got $line; echo problem >&2; exit 42", stdin="words\n"
    )
    assert (done.exit_code, done.stdout) == (42, "got words\n")
    assert done.stderr.startswith("problem\n")


@pytest.mark.parametrize(
    "options, word",
    [
        (("--signal", "NOSUCH"), "is not a signal"),
        (("--signal", "KILL"), "can't be caught"),
        (("--signal", "0"), "is not a signal"),
        (("--signal", "99"), "is not a signal"),
        (("--for", "0"), "--for"),
        (("--after", "-1"), "--after"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, word):
    done = subprocess.run(
        command(tmp_path / "x.byj", "true", options=options), capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "options, words",
    [
        ("--quit", "give --for S"),
        ("--quit --for 1 --wait", "give --for S"),
        ("--signal USR1 --wait", "--signal and --wait both say when to begin"),
        ("--after 1 --wait", "--after can't be combined"),
        ("--no-stacks --stack-depth 5", "give one of them"),
        ("--no-stacks --verify-stacks", "leaves nothing to verify"),
    ],
)
def test_options_that_contradict_one_another_are_refused(tmp_path, options, words):
    assert words in sentence(recording(tmp_path / "x.byj", "true", options=options.split()))


@pytest.mark.parametrize("options", [(), ("--frame-symbol", "no_such_function")])
def test_folders_with_a_space_in_their_names_serve(tmp_path, options):
    folder = tmp_path / "two words: one colon"
    folder.mkdir()
    for name in ("libblockyard-record.so", "libblockyard-frame-stub.so", "blockyard-collect", "blockyard-journal"):
        shutil.copy(native.path(name), folder)
    done = record(tmp_path / "x.byj", "true", options=options, BLOCKYARD_BUILD=str(folder), TMPDIR=str(folder))
    assert "can't be preloaded" not in done.stderr and "cannot be preloaded" not in done.stderr
    assert done.journal().info["program"].endswith("true")
    assert not list(folder.glob("blockyard-?*/")), "nothing stays behind"
