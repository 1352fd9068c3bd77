"""blockyard export: other tools read what it writes."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from stacked import Journal
from the_command import blockyard, sentence, success


def export(journal: Path, name: str, *arguments: object) -> Path:
    output = journal.parent / name
    success(blockyard("export", journal, "-o", output, *arguments))
    return output


def test_folded_stacks_are_lines_from_root_to_leaf(game):
    lines = dict(line.rsplit(" ", 1) for line in export(game, "game.folded").read_text().splitlines())
    assert lines["main;app::load()"] == "1"
    assert lines["main;app::update(float);app::spawn(int)"] == "3"
    assert lines["main;app::draw();app::batch()"] == "3"
    assert sum(map(int, lines.values())) == 10


def test_folded_stacks_can_count_bytes_and_what_is_alive(game):
    total = {
        weight: sum(int(line.rsplit(" ", 1)[1]) for line in output.read_text().splitlines())
        for weight in ("bytes", "end-blocks", "end-bytes")
        for output in [export(game, f"{weight}.folded", "--weight", weight)]
    }
    assert total == {"bytes": 1000 + 420 + 1500, "end-blocks": 2, "end-bytes": 1100}


def test_a_semicolon_in_a_name_parts_no_function(tmp_path):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", "lambda;1"))
    assert export(journal.write(tmp_path / "game.txt"), "game.folded").read_text() == "main;lambda:1 1\n"


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    found, at = [], 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            found.append((key >> 3, data[at : at + value]))
            at += value
        else:
            assert key & 7 == 0
            found.append((key >> 3, value))
    return found


def test_a_pprof_profile_adds_up(game):
    profile = fields(gzip.decompress(export(game, "game.pb.gz").read_bytes()))
    strings = [value.decode() for field, value in profile if field == 6]
    assert strings[0] == ""
    types = [strings[dict(fields(value))[1]] for field, value in profile if field == 1]
    assert types == ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    sums = [0, 0, 0, 0]
    for field, value in profile:
        if field == 2:
            packed, at = dict(fields(value))[2], 0
            for i in range(4):
                number, at = varint(packed, at)
                sums[i] += number
    assert sums == [10, 2920, 2, 1100]


def test_the_real_pprof_reads_it(game):
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go, whose distribution holds pprof")
    profile = export(game, "game.pb.gz")
    top = subprocess.run(
        [go, "tool", "pprof", "-top", "-sample_index=alloc_space", "-unit=B", profile],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "no such tool" in top.stderr:
        pytest.skip("a Go without pprof")
    assert top.returncode == 0, top.stderr
    flat = {line.split()[-1]: line.split()[0] for line in top.stdout.splitlines() if "app::" in line}
    assert flat["app::load()"] == "1000B" if "app::load()" in flat else flat["app::load"] == "1000B"
    lines = subprocess.run(
        [go, "tool", "pprof", "-traces", "-lines", "-sample_index=alloc_objects", profile],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "app::draw" in lines.stdout and "draw.cpp:50" in lines.stdout and "draw.h:5" in lines.stdout


def test_speedscope_gets_a_profile_for_each_weight(game):
    document = json.loads(export(game, "game.speedscope.json").read_text())
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    names = [frame["name"] for frame in document["shared"]["frames"]]
    profiles = {profile["name"]: profile for profile in document["profiles"]}
    assert [profile["endValue"] for profile in document["profiles"]] == [10, 2920, 2, 1100]
    for profile in profiles.values():
        assert sum(profile["weights"]) == profile["endValue"] and len(profile["samples"]) == len(profile["weights"])
    stacks = [[names[index] for index in sample] for sample in profiles["allocations"]["samples"]]
    assert ["main", "app::draw()", "app::batch()"] in stacks


def test_a_trace_holds_frames_and_memory_over_time_and_needs_no_stacks(tmp_path):
    path = tmp_path / "game.txt"
    path.write_text(
        "# blockyard journal text 1\n"
        "# frame 1 1000000\na 100 10 1 2000000\nf 10 1 12000000\n# frame 1 17000000\n# frame 1 18000000\n"
    )
    events = json.loads(export(path, "game.trace.json").read_text())["traceEvents"]
    frames = [event for event in events if event["ph"] == "X"]
    assert [(frame["ts"], frame["dur"], frame["args"]["allocations"]) for frame in frames] == [
        (1000, 16000, 1), (17000, 1000, 0),
    ]  # fmt: skip
    memory = [event["args"]["bytes"] for event in events if event["name"] == "memory"]
    assert 100 in memory and memory[-1] == 0


def test_what_is_alive_at_a_second_can_be_exported(game):
    output = export(game, "game.folded", "--weight", "end-bytes", "--to", "0.0155")
    assert dict(line.rsplit(" ", 1) for line in output.read_text().splitlines()) == {
        "main;app::load()": "1000",
        "main;app::update(float);app::spawn(int)": "100",
        "main;app::draw();app::batch()": "500",
    }


def test_mistakes_get_one_sentence_and_leave_no_file(game, tmp_path):
    before = sorted(tmp_path.iterdir())
    for arguments, part in (
        (("-o", tmp_path / "game.xyz"), "--as"),
        (("-o", game, "--as", "folded", "--force"), "game.txt"),
        (("-o", tmp_path / "no" / "game.folded"), "game.folded"),
    ):
        assert part in sentence(blockyard("export", game, *arguments))
    bare = tmp_path / "bare.txt"
    bare.write_text("a 8 10 1 1\n")
    assert str(bare) in sentence(blockyard("export", bare, "-o", tmp_path / "game.folded"))
    assert sorted(tmp_path.iterdir()) == sorted([*before, bare])
    export(game, "game.folded")
    assert "--force" in sentence(blockyard("export", game, "-o", tmp_path / "game.folded"))
