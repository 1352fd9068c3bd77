"""blockyard sites: who allocates, on journals whose every figure is known."""

import csv
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from small_game import DRAW, LOAD
from stacked import Journal
from the_command import blockyard, refusal, sentence, success, told

from blockyard import native
from blockyard.units import size


def sites(path: Path, *arguments: object) -> dict:
    return told("sites", path, "--limit", "0", *arguments)


def by_name(path: Path, *arguments: object) -> dict[str, dict]:
    result = sites(path, *arguments)
    return {site.get("function", site.get("tag", site.get("module"))): site for site in result["sites"]}


def test_functions_are_counted_and_the_standard_library_does_not_speak(game):
    found = by_name(game)
    assert {name: (site["allocations"], site["bytes"]) for name, site in found.items()} == {
        "app::load()": (1, 1000),
        "app::spawn(int)": (6, 420),
        "app::batch()": (3, 1500),
    }
    assert "std::vector" in str(by_name(game, "--wrappers").keys())


def test_a_long_module_name_takes_no_room_from_other_rows(tmp_path):
    journal = Journal()
    module = journal.module(f"/opt/lib{'Plugin' * 12}.so")
    functions = (
        "app::load(int, std::string const&)",
        "app::draw(float, float, float)",
        journal.frame("tick()", module),
    )
    for number, function in enumerate(functions):
        journal.allocate(8, 0x10 + number, 1 + number, journal.stack("main", function))
    said = blockyard("sites", journal.write(tmp_path / "game.txt")).stdout
    for name in functions[:2]:
        assert f"\n{name} (libgame.so)" in said
    assert "\ntick() (libPlugin" in said


def test_deeply_nested_template_names_are_read(tmp_path):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", f"app::f<{'v<' * 600}int{'>' * 600}>(int)"))
    game = journal.write(tmp_path / "game.txt")
    success(blockyard("sites", game))
    success(blockyard("diff", game, game))


def test_a_function_without_a_name_says_what_gives_it_one(tmp_path):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", ""))
    game = journal.write(tmp_path / "game.txt")
    said = " ".join(blockyard("sites", game).stdout.split())
    assert (
        f"install debug symbols (the distribution's -dbgsym package) and run 'blockyard names {game}' "
        "(--debug-dir DIR for symbols elsewhere), or build with -g and record again." in said
    )


def test_sizes_take_at_most_nine_letters():
    units = [2.0**power for power in range(49)]
    assert max(len(size(number * unit)) for unit in units for number in (1, 1.4, 1.99)) <= 9
    assert [size(1_000 * 2**30), size(1_400), size(-1023 * 2**10)] == ["1000 GiB", "1.37 KiB", "-1023 KiB"]


def test_a_site_that_is_called_an_allocator_may_be_the_programs_own(tmp_path):
    journal = Journal()
    for number, caller in enumerate(("load", "load", "draw")):
        journal.allocate(8, 0x10 + number, 1 + number, journal.stack("main", caller, "pool_alloc(unsigned long)"))
    game = journal.write(tmp_path / "game.txt")
    said = " ".join(blockyard("sites", game).stdout.split())
    assert "If pool_alloc is the program's own malloc, --skip 'pool_alloc' names its callers." in said
    skipped = blockyard("sites", game, "--skip", "pool_alloc").stdout
    assert skipped.startswith("load allocates most often")
    assert "--skip" not in skipped


def test_a_programs_own_wrappers_can_be_skipped_and_its_operator_new_is_one(game, tmp_path):
    assert set(by_name(game, "--skip", "spawn")) == {"app::load()", "app::update(float)", "app::batch()"}
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", LOAD, "app::Thing::operator new(unsigned long)"))
    assert set(by_name(journal.write(tmp_path / "new.txt"))) == {"app::load()"}


@pytest.mark.parametrize(
    "function",
    [
        "__GI___strdup",
        "__strdup",
        "__GI___strndup",
        "__GI___libc_malloc",
        "__GI_strdup",
        "__libc_memalign",
        "xmalloc(unsigned long)",
        "void* operator new[]<app::Pool>(unsigned long)",
        "decltype (app::first({parm#1})) std::invoke<int>(int)",
        "(anonymous namespace)::Pool::operator new(unsigned long)",
        "hashbrown::raw::RawTableInner::resize_inner<alloc::alloc::Global>",
        "by_temp_allocate_slow",
        "by_static_block_allocate_typed",
        "blockyard::lifetime::temp_reallocate(void*, unsigned long, unsigned long, unsigned long)",
        "blockyard::record::(anonymous namespace)::present(char const*)",
        "void* [System.Private.CoreLib] System.Runtime.InteropServices.NativeMemory::Alloc(native uint)[Optimized]",
    ],
)
def test_what_only_passes_an_allocation_on_does_not_speak(tmp_path, function):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", LOAD, function))
    assert set(by_name(journal.write(tmp_path / "game.txt"))) == {"app::load()"}


@pytest.mark.parametrize(
    "function",
    [
        "app::strdup(char const*)",
        "app::operators::make(int)",
        "app::Call::operator()(std::string)",
        "app::each(void* (*)(unsigned long) = &::operator new)",
        "void app::fill<&app::Thing::operator new>(int)",
        "decltype (std::declval<int>()) app::add<int>(int)",
        "my__libc_malloc",
        "by_temperature(int)",
        "blockyard::locks::take()",
    ],
)
def test_what_only_mentions_an_allocator_speaks(tmp_path, function):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack("main", LOAD, function))
    assert set(by_name(journal.write(tmp_path / "game.txt"))) == {function}


def test_memory_at_the_peak_is_that_of_one_moment(tmp_path):
    random = Random(7)
    journal = Journal()
    stacks = {f"app::site{i}()": journal.stack("main", f"app::site{i}()") for i in range(5)}
    live: dict[int, tuple[str, int]] = {}
    held, most, at_peak = Counter(), -1, {}
    for now in range(2000):
        if live and random.random() < 0.5:
            address = random.choice(list(live))
            name, size = live.pop(address)
            journal.free(address, now, stacks[name])
            held[name] -= size
        else:
            name, size = random.choice(list(stacks)), random.randrange(1000)
            live[0x1000 + now] = name, size
            journal.allocate(size, 0x1000 + now, now, stacks[name])
            held[name] += size
        if held.total() > most:
            most, at_peak = held.total(), dict(held)
    found = by_name(journal.write(tmp_path / "game.txt"))
    assert {name: site["peak_bytes"] for name, site in found.items()} == {name: at_peak.get(name, 0) for name in found}
    assert {name: site["end_bytes"] for name, site in found.items()} == {name: held[name] for name in found}


def test_lines_modules_tags_and_stacks_are_other_ways_to_group(game):
    lines = {(site["function"], site["line"]): site["allocations"] for site in sites(game, "--by", "line")["sites"]}
    assert lines == {
        ("app::load()", 10): 1, ("app::spawn(int)", 30): 3, ("app::spawn(int)", 33): 3, ("app::batch()", 5): 3,
    }  # fmt: skip
    assert {name: site["allocations"] for name, site in by_name(game, "--by", "module").items()} == {"libgame.so": 10}
    assert {name: site["allocations"] for name, site in by_name(game, "--by", "tag").items()} == {
        "loading": 1, "play/spawn": 6, "": 3,
    }  # fmt: skip
    stacks = sites(game, "--by", "stack")["sites"]
    assert len(stacks) == 4
    grown = next(site for site in stacks if "vector" in site["stack"][0]["function"])
    assert [frame["function"] for frame in grown["stack"]][1:] == ["app::spawn(int)", "app::update(float)", "main"]


def test_what_happens_within_frames_is_counted_per_frame(game):
    result = sites(game)
    assert result["marked_frames"] and result["frame_count"] == 3
    found = by_name(game)
    assert found["app::load()"]["frame_allocations"] == 0
    spawn = found["app::spawn(int)"]
    assert (spawn["frame_allocations"], spawn["worst_frame_allocations"], spawn["frames"]) == (6, 2, 3)


def test_a_frame_without_a_mark_at_its_end_is_none(tmp_path):
    journal = Journal()
    site = journal.stack("main", LOAD)
    journal.mark(10)
    journal.allocate(8, 0x10, 11, site)
    journal.mark(20)
    journal.allocate(8, 0x20, 21, site)
    found = by_name(journal.write(tmp_path / "game.txt"))["app::load()"]
    assert found["allocations"] == 2 and found["frame_allocations"] == 1


def test_another_threads_allocations_are_in_no_frame(tmp_path):
    journal = Journal()
    site = journal.stack("main", LOAD)
    journal.mark(10)
    journal.allocate(8, 0x10, 11, site, thread=2)
    journal.mark(20)
    assert by_name(journal.write(tmp_path / "game.txt"))["app::load()"]["frame_allocations"] == 0


@pytest.mark.parametrize("name", ["game.txt", "game.byj"])
def test_frames_are_those_of_the_thread_that_marks_most_though_another_marks_first(tmp_path, name):
    journal = Journal()
    load = journal.stack("load")
    journal.allocate(8, 0x10, 1, load)
    journal.free(0x10, 2, load)  # before any frame
    journal.mark(5, thread=2)
    journal.allocate(8, 0x20, 6, load, thread=2)
    for time in (10, 20, 30):
        journal.mark(time)
        journal.allocate(8, time, time + 1, load)
        journal.free(time, time + 2, load)
    text = journal.write(tmp_path / "game.txt")
    if name != text.name:
        assert blockyard("convert", text, "-o", tmp_path / name).returncode == 0
    result = sites(tmp_path / name)
    site = result["sites"][0]
    assert (result["marked_frames"], result["frame_count"]) == (True, 2)
    assert (site["allocations"], site["frame_allocations"], site["freed_same_frame"]) == (5, 2, 3)


def test_progress_of_several_passes_is_one_that_never_goes_back(tmp_path):
    journal = Journal()
    load = journal.stack("load")
    for round in range(700_000):  # each pass takes several times the tenth of a second between two reports
        journal.line(f"# site {load}\na 8 10 1 {round}\nf 10 1 {round}")
    shares: list[float] = []
    text = journal.write(tmp_path / "game.txt")
    native.call("blockyard-sites", ["list", text], on_progress=lambda share, _: shares.append(share))
    assert shares == sorted(shares) and all(0 <= share <= 1 for share in shares)


def test_memory_at_the_peak_and_at_the_end_adds_up(game):
    result = sites(game)
    found = by_name(game)
    assert result["all"]["peak_bytes"] == 1000 + 100 + 500
    assert sum(site["peak_bytes"] for site in result["sites"]) == result["all"]["peak_bytes"]
    assert {name: site["peak_bytes"] for name, site in found.items()} == {
        "app::load()": 1000, "app::spawn(int)": 100, "app::batch()": 500,
    }  # fmt: skip
    assert {name: site["end_bytes"] for name, site in found.items()} == {
        "app::load()": 1000, "app::spawn(int)": 100, "app::batch()": 0,
    }  # fmt: skip


def test_blocks_that_die_in_the_frame_they_were_born_in(game):
    found = by_name(game)
    assert (found["app::batch()"]["freed"], found["app::batch()"]["freed_same_frame"]) == (3, 3)
    assert (found["app::spawn(int)"]["freed"], found["app::spawn(int)"]["freed_same_frame"]) == (5, 3)


def test_the_deepest_function_that_allocation_and_free_share(game):
    lines = {(site["function"], site["line"]): site for site in sites(game, "--by", "line")["sites"]}
    assert lines["app::spawn(int)", 33]["shared_function"] == "app::spawn(int)"
    assert lines["app::spawn(int)", 30]["shared_function"] == "app::update(float)"
    assert lines["app::batch()", 5]["shared_function"] == "app::draw()"
    assert lines["app::batch()", 5]["freed_shared"] == 3


def test_stacks_of_two_threads_share_nothing(tmp_path):
    journal = Journal()
    here, there = journal.stack("main", LOAD), journal.stack("worker", DRAW)
    journal.allocate(8, 0x10, 1, here)
    journal.free(0x10, 2, there, thread=2)
    found = by_name(journal.write(tmp_path / "game.txt"))["app::load()"]
    assert found["freed"] == 1 and found["freed_shared"] == 0


@pytest.mark.parametrize(
    "sort, first",
    [
        ("allocations", "app::spawn(int)"),
        ("bytes", "app::batch()"),
        ("frame", "app::spawn(int)"),
        ("peak", "app::load()"),
        ("end", "app::load()"),
        ("same-frame", "app::batch()"),
        ("shared", "app::batch()"),
    ],
)
def test_the_answer_comes_first_and_everything_fits_80_columns(game, sort, first):
    result = success(blockyard("sites", game, "--sort", sort))
    lines = result.stdout.splitlines()
    assert lines[0].startswith(first)
    assert max(map(len, lines)) <= 80


def test_stretches_and_filters_choose_what_is_counted(game):
    assert by_name(game, "--from", "0.02", "--to", "0.03")["app::spawn(int)"]["allocations"] == 2
    assert set(by_name(game, "--match", "spawn")) == {"app::spawn(int)"}
    assert set(by_name(game, "--through", "update")) == {"app::spawn(int)"}
    assert blockyard("sites", game, "--match", "nowhere").stderr == f"blockyard: no site of {game} matches\n"
    for option in ("--match", "--through", "--skip"):
        assert "is no regular expression" in blockyard("sites", game, option, "(").stderr


def test_csv_has_a_row_for_each_site(game):
    rows = list(csv.DictReader(blockyard("sites", game, "--csv").stdout.splitlines()))
    assert (rows[0]["function"], rows[0]["allocations"]) == ("app::spawn(int)", "6")
    assert len(rows) == 3
    stacks = list(csv.DictReader(blockyard("sites", game, "--csv", "--by", "stack").stdout.splitlines()))
    assert any(row["stack"].startswith("main;app::update(float) update.cpp:20") for row in stacks)


def test_addresses_without_names_are_called_by_module_and_offset(tmp_path):
    journal = Journal()
    journal.allocate(8, 0x10, 1, journal.stack(journal.frame("")))
    path = journal.write(tmp_path / "game.txt")
    assert set(by_name(path)) == {"libgame.so+0x100"}
    assert "blockyard names" in blockyard("sites", path).stdout


def test_calls_of_a_function_without_a_name_are_one_site_and_lines_tell_them_apart(tmp_path):
    journal = Journal()
    update = journal.frame("+0x80"), journal.frame([("+0x80", "", 0)])
    for number, frame in enumerate((*update, journal.frame("+0x90"))):
        journal.allocate(8, 0x10 + number, 1 + number, journal.stack("main", frame))
    game = journal.write(tmp_path / "game.txt")
    assert {name: site["allocations"] for name, site in by_name(game).items()} == {
        "libgame.so+0x80": 2,
        "libgame.so+0x90": 1,
    }
    lines = {(site["function"], site["file"]): site["allocations"] for site in sites(game, "--by", "line")["sites"]}
    assert lines == {
        ("libgame.so+0x80", "libgame.so+0x100"): 1,
        ("libgame.so+0x80", "libgame.so+0x101"): 1,
        ("libgame.so+0x90", "libgame.so+0x102"): 1,
    }
    assert "libgame.so+0x80 libgame.so+0x101" in blockyard("sites", game, "--by", "line").stdout
    said = " ".join(blockyard("sites", game).stdout.split())
    assert "Functions of libgame.so have addresses instead of names" in said
    assert r"If libgame.so+0x80 is the program's own malloc, --skip 'libgame\.so\+0x80$' names its callers." in said
    assert set(by_name(game, "--skip", r"libgame\.so\+0x80$")) == {"main", "libgame.so+0x90"}
    anonymous = tmp_path / "anonymous.byj"
    assert blockyard("convert", game, "--anonymous", "-o", anonymous).returncode == 0
    assert set(by_name(anonymous)) == {"module-0+0x80", "module-0+0x90"}
    assert blockyard("export", game, "-o", tmp_path / "game.folded").returncode == 0
    folded = (tmp_path / "game.folded").read_text().splitlines()
    assert folded == ["main;libgame.so+0x80 2", "main;libgame.so+0x90 1"]


def test_a_journal_without_stacks_or_tags_says_how_to_get_them(tmp_path):
    path = tmp_path / "game.txt"
    path.write_text("a 8 10 1 1\n")
    said = sentence(blockyard("sites", path))
    assert "has no call stacks" in said and "blockyard record" in said
    assert "blockyard::tag" in blockyard("sites", path, "--by", "tag").stderr


def test_a_byj_says_the_same_as_the_text_it_was_made_of(game):
    byj = game.with_suffix(".byj")
    assert blockyard("convert", game, "-o", byj).returncode == 0
    for by in ("function", "line", "stack", "tag"):
        assert sites(byj, "--by", by)["sites"] == sites(game, "--by", by)["sites"]


def test_a_journal_of_a_program_that_allocated_nothing_says_so(tmp_path):
    journal = Journal()
    journal.mark(1)
    said = refusal(blockyard("sites", journal.write(tmp_path / "game.txt")))
    assert said.endswith("game.txt holds no allocation\n")


def test_a_stretch_behind_the_last_allocation_is_refused_in_one_sentence(game):
    result = blockyard("sites", game, "--from", "5")
    assert result.stdout == "" and "has no allocation at or after 5 s" in sentence(result)
    assert blockyard("sites", game, "--from", "5", "--sort", "end").returncode == 0


def test_a_second_out_of_range_is_refused_with_the_range(game):
    assert "-1.0 is not in the range x>=0." in blockyard("sites", game, "--from", "-1").stderr
    assert "0.0 is not in the range x>0." in blockyard("sites", game, "--to", "0").stderr


@pytest.mark.parametrize("incomplete, said", [(2, True), (1, False)])
def test_incomplete_stacks_are_mentioned_when_they_are_many(tmp_path, incomplete, said):
    journal = Journal()
    journal.line("# stack-end 0")
    journal._frames["end"] = 0
    broken = journal.stack(0, "app::load()")
    whole = journal.stack("main", "app::load()")
    for i in range(20):
        journal.allocate(8, 0x100 + i, 1 + i, broken if i < incomplete else whole)
    path = journal.write(tmp_path / "game.txt")
    assert sites(path)["incomplete_stacks"] == incomplete
    assert ("have an incomplete stack" in blockyard("sites", path).stdout) == said


def test_long_names_keep_their_function_and_stay_apart(tmp_path):
    template = "void app::Pool<std::pair<int, {}> >::grow(std::vector<std::pair<int, std::string> > const&)"
    journal = Journal()
    names = [
        "app::walk(app::Node*, app::Node* (*)(app::Node*, int*, void*), void*, std::set<app::Node*>*)",
        *(template.format(element) for element in ("std::vector<std::string, app::Allocator<int> > ", "float")),
    ]
    for number, name in enumerate(names):
        for repeat in range(3 - number):
            journal.allocate(8, 0x10 + 8 * number + repeat, 1 + number, journal.stack("main", name))
    said = blockyard("sites", journal.write(tmp_path / "game.txt")).stdout.splitlines()
    assert max(map(len, said)) <= 80
    assert said[0].startswith("app::walk(…) allocates most often")
    assert "app::walk(…) (libgame.so)" in said
    assert "app::Pool<std::pair<int, std::vector<…> > >::grow(…) (libgame.so)" in said
    assert "app::Pool<std::pair<int, float> >::grow(…) (libgame.so)" in said


def test_a_small_share_is_not_called_none(tmp_path):
    journal = Journal()
    for number in range(3000):
        journal.allocate(8, 0x10 + number, 1 + number, journal.stack("main", "load()" if number else "draw()"))
    assert " 0.033 %  " in blockyard("sites", journal.write(tmp_path / "game.txt")).stdout


@pytest.mark.parametrize("command", [("sites",), ("diff", "."), ("advise", "--no-replay")])
def test_a_folder_is_refused_as_one(tmp_path, command):
    verb, *rest = command
    said = sentence(blockyard(verb, tmp_path, *(tmp_path if one == "." else one for one in rest)))
    assert said.endswith(f"{tmp_path} can't be read: Is a directory\n")


def test_an_anonymous_journal_gives_the_same_answers(tmp_path):
    journal = Journal()
    library = journal.module("/usr/lib/libstdc++.so.6")
    grow = journal.frame("std::vector<app::Secret>::push_back(app::Secret const&)", library)
    for number in range(20):
        journal.allocate(8, 0x10 + number, 1 + number, journal.stack("__libc_start_main", "main", LOAD, grow))
    game, anonymous = journal.write(tmp_path / "game.txt"), tmp_path / "anonymous.byj"
    assert blockyard("convert", game, "--anonymous", "-o", anonymous).returncode == 0
    assert [site["allocations"] for site in sites(anonymous)["sites"]] == [20]
    assert sites(anonymous)["sites"][0]["function"].startswith("function-")
    assert sites(anonymous, "--wrappers")["sites"][0]["function"].startswith("wrapper-")
    back = tmp_path / "back.txt"
    assert blockyard("convert", anonymous, "-o", back).returncode == 0
    assert not {"Secret", "load", "game", "libstdc"} & set(re.findall(r"[A-Za-z]+", back.read_text()))
