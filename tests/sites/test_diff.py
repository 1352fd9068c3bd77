"""blockyard diff: what two recordings of a program have in common, and what not."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from stacked import Journal
from the_command import blockyard, refusal, sentence, told

MS = 1_000_000


def record(path: Path, frames: int, sites: dict[str, int], *, marked: bool = True) -> Path:
    """`frames` frames, in each of which a site allocates so many blocks of 10 bytes and frees them."""
    journal = Journal()
    stacks = {name: journal.stack("main", name) for name in sites}
    for frame in range(frames):
        begin = (1 + frame) * 10 * MS
        if marked:
            journal.mark(begin)
        for place, (name, count) in enumerate(sites.items()):
            now = begin + place * 2000
            for i in range(count):
                journal.allocate(10, 0x1000 + i, now + 1000, stacks[name])
            for i in range(count):
                journal.free(0x1000 + i, now + 2000, stacks[name])
    if marked:
        journal.mark((1 + frames) * 10 * MS)
    return journal.write(path)


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return record(tmp_path / "before.txt", 4, {"app::same()": 100, "app::grows()": 10, "app::vanishes()": 5})


@pytest.fixture
def after(tmp_path: Path) -> Path:
    """Twice as long as `before`."""
    return record(tmp_path / "after.txt", 8, {"app::same()": 100, "app::grows()": 30, "app::appears()": 7})


def difference(*arguments: object) -> dict:
    return told("diff", *arguments)


def words(result: dict) -> dict[str, str]:
    return {site["name"]: site["change"] for site in result["sites"]}


def test_sites_that_appeared_vanished_or_grew_per_frame(before, after):
    result = difference(before, after)
    assert result["per_frame"]
    assert words(result) == {"app::grows()": "grew", "app::appears()": "appeared", "app::vanishes()": "vanished"}
    assert (result["before"]["allocations"], result["after"]["allocations"]) == (115, 137)
    grown = next(site for site in result["sites"] if site["name"] == "app::grows()")
    assert (grown["before"]["bytes"], grown["after"]["bytes"]) == (100, 300)


def test_whole_recordings_are_compared_on_demand_and_without_frames(before, after, tmp_path):
    assert words(difference(before, after, "--totals"))["app::same()"] == "grew"
    bare = record(tmp_path / "bare.txt", 4, {"app::same()": 100}, marked=False)
    result = difference(bare, bare)
    assert not result["per_frame"] and result["before"]["allocations"] == 400 and result["sites"] == []


def test_the_answer_comes_first_and_everything_fits_80_columns(before, after):
    text = blockyard("diff", before, after).stdout
    assert text.startswith("AFTER has 19 % more: 137 against 115, allocations per frame.\n")
    assert next(line.split() for line in text.splitlines() if line.startswith("app::")) == [
        "app::grows()", "10.0", "30.0", "+200", "%"
    ]  # fmt: skip
    assert "4 sites: 1 appeared, 1 vanished, 1 grew, 0 shrank." in text
    assert max(map(len, text.splitlines())) <= 80
    assert blockyard("diff", before, before).stdout.startswith("AFTER and BEFORE are equal")


def test_recordings_of_two_programs_are_told_first(before, tmp_path):
    for program, other, sites, first in (
        ("/opt/a/game", "/opt/b/tool", {"app::same()": 100}, "These are recordings of two programs, game and tool."),
        ("/opt/a/game", "/opt/a/game", {"app::other()": 100}, "These recordings of game have hardly a site in common"),
        ("/opt/a/game", "/opt/b/game", {"app::same()": 100}, "AFTER has "),
    ):
        paths = [
            record(tmp_path / "one.txt", 4, {"app::same()": 100, "x()": 1}),
            record(tmp_path / "two.txt", 4, sites),
        ]
        for path, name in zip(paths, (program, other), strict=True):
            head, *rest = path.read_text().splitlines(keepends=True)
            path.write_text("".join([head, f"# program {name}\n", *rest]))
        assert blockyard("diff", *paths).stdout.startswith(first)


@pytest.mark.parametrize(
    "gate, code",
    [
        ("allocations:20%", 0),
        ("allocations:19%", 3),
        ("bytes:0%", 3),
        ("worst-frame:25%", 0),
        ("peak:0%", 0),
        ("end:0%", 0),
        ("site/allocations:18%", 0),
        ("site/allocations:17%", 3),
    ],
)
def test_a_gate_fails_the_build_when_its_figure_rose_beyond_the_limit(before, after, gate, code):
    done = blockyard("diff", before, after, "--gate", gate)
    assert done.returncode == code, done.stdout


def test_junit_has_a_test_case_for_each_gate(before, after, tmp_path):
    gates = [text for gate in ("allocations:19%", "site/allocations:18%") for text in ("--gate", gate)]
    done = blockyard("diff", before, after, *gates, "--export-junit", tmp_path / "gate.xml")
    assert done.returncode == 3 and "FAILED  allocations:19%" in done.stdout
    [suite] = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert suite.get("name") == f"{before} against {after}"
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    failed = {case.get("name"): case.find("failure") for case in suite if case.find("failure") is not None}
    assert list(failed) == ["allocations:19%"]
    assert failed["allocations:19%"].get("message") == "+19 % against before"


def test_junit_without_a_gate_lists_what_changed_and_fails_nothing(before, after):
    done = blockyard("diff", before, after, "--export-junit", "-")
    [suite] = ElementTree.fromstring(done.stdout)
    assert (suite.get("tests"), suite.get("failures")) == ("3", "0")
    assert {case.get("name"): case.findtext("system-out") for case in suite} == {
        "app::grows()": "+200 % allocations per frame",
        "app::appears()": "appeared allocations per frame",
        "app::vanishes()": "vanished allocations per frame",
    }


def test_junit_is_xml_whatever_a_site_is_called(before, tmp_path):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", "odd\x01<name>&"))
    odd = journal.write(tmp_path / "odd.txt")
    [suite] = ElementTree.fromstring(blockyard("diff", before, odd, "--export-junit", "-").stdout)
    assert "odd\N{REPLACEMENT CHARACTER}<name>&" in {case.get("name") for case in suite}


def test_json_and_junit_can_not_both_be_printed(before, after):
    said = refusal(blockyard("diff", before, after, "--json", "--export-junit", "-"))
    assert said == "blockyard: two forms can't both go to standard output\n"


def test_a_gate_never_fails_what_shrank_or_stayed(before, after):
    assert blockyard("diff", before, before, "--gate", "allocations:0%", "--gate", "site/bytes:0%").returncode == 0
    assert blockyard("diff", after, before, "--gate", "allocations:0%").returncode == 0


def test_a_rise_from_nothing_fails_every_gate(before, tmp_path):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", "app::leaks()"))
    leaking = journal.write(tmp_path / "leaking.txt")
    assert blockyard("diff", before, leaking, "--gate", "end:1000%").returncode == 3
    said = blockyard("diff", before, leaking, "--of", "end", "--gate", "site/end:1000%").stdout
    assert "has some, and there was nothing before" in said


def test_stacks_are_alike_when_their_functions_are(tmp_path):
    journals = []
    for name, line in (("old", 10), ("new", 99)):
        journal = Journal()
        journal.allocate(8, 0x10, 1, journal.stack("main", [("app::load()", "load.cpp", line)]))
        journals.append(journal.write(tmp_path / f"{name}.txt"))
    assert difference(*journals, "--by", "stack")["sites"] == []
    assert set(words(difference(*journals, "--by", "line")).values()) == {"appeared", "vanished"}


def test_functions_of_one_name_in_two_modules_or_files_are_two_sites(tmp_path):
    journals = []
    for name, second in (("old", 1), ("new", 100)):
        journal = Journal()
        other = journal.module("/usr/games/libother.so")
        stacks = [
            journal.stack(journal.frame([("init", "/src/a/util.c", 10)])),
            journal.stack(journal.frame([("init", "/src/a/util.c", 10)], other)),
            journal.stack(journal.frame([("init", "/src/b/util.c", 10)])),
        ]
        for place, (stack, count) in enumerate(zip(stacks, (100, second, second), strict=True)):
            for i in range(count):
                journal.allocate(8, 0x1000 * (place + 1) + i, 1 + place, stack)
        journals.append(journal.write(tmp_path / f"{name}.txt"))
    assert words(difference(*journals)) == {"init (libother.so)": "grew", "init (libgame.so)": "grew"}
    lines = words(difference(*journals, "--by", "line"))
    assert lines == {"init /src/a/util.c:10 (libother.so)": "grew", "init /src/b/util.c:10 (libgame.so)": "grew"}
    assert words(difference(*journals, "--by", "stack")) == {"init (libother.so)": "grew", "init (libgame.so)": "grew"}
    assert "init (libother.so)" in blockyard("diff", *journals).stdout


def test_a_function_alone_of_its_name_is_the_same_in_a_module_of_another_name(tmp_path):
    journals = []
    for name in ("game-1.0", "game-1.1"):
        journal = Journal()
        journal.allocate(8, 0x10, 1, journal.stack(journal.frame("app::load()", journal.module(f"/usr/games/{name}"))))
        journals.append(journal.write(tmp_path / f"{name}.txt"))
    assert difference(*journals)["sites"] == []


def test_the_worst_frame_of_stacks_that_are_alike_is_one_frame(tmp_path):
    journal = Journal()
    stacks = [journal.stack([("app::load()", "load.cpp", line)]) for line in (10, 20)]
    for frame, stack in enumerate(stacks):
        journal.mark((1 + frame) * 10 * MS)
        for i in range(5):
            journal.allocate(8, 0x100 * (frame + 1) + i, (1 + frame) * 10 * MS + 1, stack)
    journal.mark(30 * MS)
    before = record(tmp_path / "before.txt", 4, {"app::other()": 1})
    after = journal.write(tmp_path / "after.txt")
    result = difference(before, after, "--by", "stack", "--of", "worst-frame")
    assert {site["name"]: site["after"]["worst-frame"] for site in result["sites"] if site["after"]} == {
        "app::load()": 5
    }


@pytest.mark.parametrize("gate", ["bytes", "bytes:5", "p99:5%", "site/:5%", "bytes:-1%"])
def test_what_is_no_gate_is_refused(before, after, gate):
    assert "is no gate" in sentence(blockyard("diff", before, after, "--gate", gate))


def test_a_journal_without_stacks_is_refused(before, tmp_path):
    bare = tmp_path / "bare.txt"
    bare.write_text("a 8 10 1 1\n")
    assert str(bare) in refusal(blockyard("diff", before, bare))


def test_long_names_keep_their_function_and_stay_apart(tmp_path):
    def recording(path: Path, counts: tuple[int, int]) -> Path:
        journal = Journal()
        for number, name in enumerate(("Chunk*", "std::pair<Object, int>")):
            stack = journal.stack("main", f"heap::base::Worklist<{name}, (unsigned short)64>::Local::Publish(int)")
            for repeat in range(counts[number]):
                journal.allocate(8, 0x1000 * number + repeat + 1, 1 + number, stack)
        return journal.write(path)

    old, new = recording(tmp_path / "old.txt", (2, 3)), recording(tmp_path / "new.txt", (4, 5))
    said = blockyard("diff", old, new).stdout
    assert max(map(len, said.splitlines())) <= 80
    assert "Worklist<Chunk*" in said and "Worklist<std::pair<Object" in said


def test_little_is_not_called_nothing(tmp_path):
    def recording(path: Path, count: int) -> Path:
        journal = Journal()
        for number in range(count):
            journal.allocate(8, 0x1000 + number, 1 + number, journal.stack("main", "load()"))
        return journal.write(path)

    said = blockyard("diff", recording(tmp_path / "old.txt", 3000), recording(tmp_path / "new.txt", 3001)).stdout
    assert said.splitlines() == [
        "AFTER is within 0.1 % of BEFORE: 3,001 against 3,000, allocations.",
        "",
        "1 site: 0 appeared, 0 vanished, 0 grew, 0 shrank.",
    ]
