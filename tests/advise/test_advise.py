"""What is advised for which behaviour, and what a few blocks change about it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import UNSET, structs
from played import FRAMES, Game, advise, at, play, routed
from the_command import blockyard, refusal, sentence, told

from blockyard.advise import code
from blockyard.report import advice as text
from blockyard.report import blocks

LIBRARY = ("glDraw()", 1, "libGL.so.1")
SHARED = ("glAlloc()", 1, "libGL.so.1")


def temp(game: Game) -> None:
    game.brief(4, 100, "update()", "shade()")


def scope(game: Game) -> None:
    for _ in range(4):
        blocks = [game.allocate(50 + i, "update()", ("search()", 5)) for i in range(8)]
        game.free_all(blocks, "update()", ("search()", 9))


def job() -> Callable[[Game], None]:
    waiting: list[int] = []

    def each_frame(game: Game) -> None:
        waiting.append(game.allocate(300 + game.frame, "update()", "decode()"))
        waiting.append(game.allocate(200 + game.frame, "update()", "decode()"))
        while len(waiting) > 4:
            game.free(waiting.pop(0), "mix()", thread=2)

    return each_frame


def pool() -> Callable[[Game], None]:
    alive: list[int] = []

    def each_frame(game: Game) -> None:
        for caller in ("explode()", "fire()"):
            for _ in range(5):
                alive.append(game.allocate(48, caller, "particle()"))
        game.thin_out(alive, 100, "thin_out()")

    return each_frame


def level() -> Callable[[Game], None]:
    loaded: list[int] = []

    def each_frame(game: Game) -> None:
        if game.frame % 20 == 0:
            loaded.extend(game.allocate(100 * (i % 9 + 1), "load()") for i in range(50))
        if game.frame % 20 == 19:
            game.free_all(loaded, "unload()")

    return each_frame


def growing(game: Game) -> None:
    block = game.allocate(32, "record()")
    for size in (64, 128, 256, 512, 1024):
        block = game.grow(block, size, "record()")
    game.free(block, "flush()")


def copied(game: Game) -> None:
    """As a std::vector grows."""
    block = game.allocate(32, "collect()", "std::vector<int>::push_back()")
    for size in (64, 128, 256, 512, 1024):
        larger = game.allocate(size, "collect()", "std::vector<int>::push_back()")
        game.free(block, "collect()", "std::vector<int>::push_back()")
        block = larger
    game.free(block, "flush()")


def kept(game: Game) -> None:
    game.free(game.allocate(100_000, "draw()", "interface()"), "end_frame()")


@pytest.mark.parametrize(
    "each_frame, what, function",
    [
        (temp, "temp", "shade()"),
        (scope, "temp_scope", "search()"),
        (job(), "temp_job", "decode()"),
        (pool(), "pool", "particle()"),
        (level(), "rewindable", "load()"),
        (growing, "reserve", "record()"),
        (copied, "reserve", "collect()"),
        (kept, "keep", "interface()"),
    ],
)
def test_every_behaviour_has_its_advice(tmp_path, each_frame, what, function):
    report = advise(play(tmp_path / "game.txt", each_frame))
    assert [(one.what, one.where.function) for one in report.advice] == [(what, function)]
    assert report.advice[0].held.broken == 0


def test_figures_of_pool_and_reserve_are_those_of_the_blocks(tmp_path):
    assert advise(play(tmp_path / "pool.txt", pool())).advice[0].bytes == 48
    reserve = advise(play(tmp_path / "reserve.txt", growing)).advice[0]
    assert reserve.bytes == 1024
    assert reserve.evidence.reallocations == 5 * FRAMES


def test_a_buffer_that_grows_by_allocations_and_frees_is_one_life(tmp_path):
    report = advise(play(tmp_path / "game.txt", copied))
    reserve = report.advice[0]
    assert (reserve.bytes, reserve.evidence.lives, reserve.evidence.copies) == (1024, FRAMES, 5 * FRAMES)
    assert len(routed(report)) == FRAMES * (1 + 2 * 5)


def test_values_replaced_by_a_larger_one_at_times_grow_no_buffer(tmp_path):
    last: list[int] = []

    def each_frame(game: Game) -> None:
        for size in (100, 300, 200, 250):
            last.append(game.allocate(size, "assign()"))
            if len(last) > 1:
                game.free(last.pop(0), "assign()")

    site = at(advise(play(tmp_path / "game.txt", each_frame)), "assign()")
    assert site.what != "reserve" and site.evidence.copies == 0


def test_of_a_librarys_own_functions_the_nearest_caller_of_the_program_is_named(tmp_path):
    def each_frame(game: Game) -> None:
        game.brief(4, 100, "render()", LIBRARY)
        for _ in range(4):
            held = [game.allocate(50 + i, "render()", LIBRARY, "compile()", SHARED) for i in range(8)]
            game.free_all(held, "render()", LIBRARY, "compile()", SHARED)

    report = advise(play(tmp_path / "game.txt", each_frame), "--all")
    found = {one.what: (one.where.function, one.where.through.function) for one in report.advice}
    assert found == {"temp": ("render()", "glDraw()"), "temp_scope": ("compile()", "glAlloc()")}
    page = (Path(report.folder) / "advice.md").read_text()
    assert "glDraw() of libGL.so.1 allocates these. render() can call it less often" in page


def test_of_a_program_that_only_starts_its_library_the_librarys_functions_are_named(tmp_path):
    starts = [("__libc_start_main", 1, "libc.so.6"), ("main()", 1, "libgame.so")]

    def play_below(path: Path, *own: tuple) -> dict:
        game = Game(path, marks=False)
        game.journal.module("/usr/lib/x86_64-linux-gnu/libc.so.6")
        for _ in range(4 * FRAMES):
            held = [game.allocate(50 + i, *starts, *own, LIBRARY, SHARED) for i in range(8)]
            game.free_all(held, *starts, *own, LIBRARY)
        return advise(game.write(), "--all")

    found = play_below(tmp_path / "library.txt").advice
    assert [(one.where.function, one.where.through is not UNSET) for one in found] == [("glDraw()", False)]
    (called,) = play_below(tmp_path / "game.txt", ("render()", 1, "libgame.so")).advice
    assert (called.where.function, called.where.through.function) == ("render()", "glDraw()")


def test_the_recorders_hook_of_a_buffer_swap_is_no_place_to_change(tmp_path):
    hook = ("blockyard::record::present()", 1, "libblockyard-record.so")

    def each_frame(game: Game) -> None:
        if game.frame == 0:
            game.journal.module("/opt/blockyard/libblockyard-record.so")
        game.brief(4, 100, "render()", hook, LIBRARY)

    advice = advise(play(tmp_path / "game.txt", each_frame), "--all").advice
    (where,) = [one.where for one in advice]
    assert (where.function, where.through.function) == ("render()", "glDraw()")


def test_what_a_library_does_for_one_function_tells_nothing_of_another(tmp_path):
    def drawing(game: Game) -> None:
        game.brief(4, 100, "render()", LIBRARY, SHARED)

    def loading(game: Game) -> None:
        drawing(game)
        game.allocate(100, "load()", LIBRARY, SHARED)

    other = play(tmp_path / "other.txt", loading)
    (advice,) = advise(play(tmp_path / "game.txt", drawing), "--all", "--on", other).advice
    assert [step.function for step in advice.contexts[0]] == ["glAlloc()", "glDraw()", "render()"]
    assert (advice.on[0].holds, advice.on[0].broken) == (4 * FRAMES, 0)


def test_changes_of_one_kind_at_one_place_are_one_row(tmp_path):
    def each_frame(game: Game) -> None:
        for library in (LIBRARY, SHARED):
            game.brief(4, 100, "render()", library)

    (advice,) = advise(play(tmp_path / "game.txt", each_frame), "--all").advice
    assert (advice.what, advice.where.function, len(advice.contexts)) == ("temp", "render()", 2)
    assert advice.evidence.lives == 8 * FRAMES


def test_without_a_function_of_the_program_on_the_stack_that_is_said(tmp_path):
    game = Game(tmp_path / "game.txt")
    for _ in range(FRAMES):
        game.brief(4, 100, LIBRARY)
        game.end_frame()
    report = advise(game.write(), "--all")
    assert report.advice[0].where.through is None
    assert "and no function of the program calls it" in (Path(report.folder) / "advice.md").read_text()


def test_one_buffer_in_a_hundred_does_not_set_the_reserve_but_is_shown(tmp_path):
    def each_frame(game: Game) -> None:
        growing(game)
        growing(game)
        if game.frame == 30:
            block = game.grow(game.grow(game.allocate(32, "record()"), 512, "record()"), 70_000, "record()")
            game.free(block, "flush()")

    advice = advise(play(tmp_path / "game.txt", each_frame)).advice[0]
    assert (advice.what, advice.bytes) == ("reserve", 1024)
    assert [one.bytes for one in advice.held.counterexamples] == [70_000]


def test_a_free_by_another_thread_makes_it_no_temp(tmp_path):
    def each_frame(game: Game) -> None:
        for _ in range(4):
            game.free(game.allocate(100 + game.frame, "update()", "command()"), "mix()", thread=2)

    advice = at(advise(play(tmp_path / "game.txt", each_frame)), "command()")
    assert (advice.what, advice.near) == ("temp_job", "temp")
    assert advice.near_held.broken == 4 * FRAMES
    assert "freed by thread 1" in advice.near_held.counterexamples[0].why


def test_one_block_of_many_that_outlives_its_frame_makes_it_no_temp(tmp_path):
    late: list[int] = []

    def each_frame(game: Game) -> None:
        game.free_all(late, "end_frame()")
        blocks = [game.allocate(64 + game.frame % 2 * 32 + i, "update()", "event()") for i in range(170)]
        if game.frame == 41:
            late.append(blocks.pop())
        game.free_all(blocks, "end_frame()")

    site = at(advise(play(tmp_path / "game.txt", each_frame)), "event()")
    assert site.what != "temp" and site.near == "temp"
    assert site.near_held.broken == 1 and site.near_held.holds == 170 * FRAMES - 1
    example = site.near_held.counterexamples[0]
    assert example.why == "is freed 1 frame later"
    assert 41 * 16_000_000 <= example.time_ns < example.freed_ns
    assert example.bytes == 64 + 32 + 169


def test_blocks_of_a_frame_that_loads_are_no_temp(tmp_path):
    def each_frame(game: Game) -> None:
        temp(game)
        if game.frame in (30, 31, 32):
            loaded = [game.allocate(20 + i, "load()") for i in range(100)]
            game.free_all(loaded, "end_frame()")

    report = advise(play(tmp_path / "game.txt", each_frame))
    assert [one.where.function for one in report.advice if one.what.startswith("temp")] == ["shade()"]


def test_a_buffer_that_stays_makes_it_nothing_to_keep(tmp_path):
    def each_frame(game: Game) -> None:
        block = game.allocate(100_000, "draw()", "map()")
        if game.frame != 20:
            game.free(block, "end_frame()")

    site = at(advise(play(tmp_path / "game.txt", each_frame)), "map()")
    assert (site.what, site.reason, site.near) == ("leave", "near_miss", "keep")
    assert site.near_held.counterexamples[0].why == "is never freed"


def test_a_value_that_a_call_keeps_makes_it_no_scope(tmp_path):
    def each_frame(game: Game) -> None:
        for turn in range(4):
            blocks = [game.allocate(50 + 20 * i, "update()", ("script()", 5)) for i in range(8)]
            if game.frame == 10 and turn == 0:
                blocks.pop()
            game.free_all(blocks, "update()", ("script()", 9))

    site = at(advise(play(tmp_path / "game.txt", each_frame)), "script()")
    assert site.what == "leave" and site.near == "temp_scope"
    assert site.near_held.broken == 1


def test_blocks_of_one_size_among_others_of_a_site_are_a_pool_and_the_others_stay(tmp_path):
    alive: list[int] = []

    def each_frame(game: Game) -> None:
        for i in range(10):
            alive.append(game.allocate(1400 if i == 3 and game.frame % 10 == 0 else 92, "send()", "packet()"))
        game.thin_out(alive, 100, "thin_out()")

    report = advise(play(tmp_path / "game.txt", each_frame))
    (pool,) = report.advice
    assert (pool.what, pool.bytes, pool.where.function) == ("pool", 92, "packet()")
    assert (pool.evidence.lives, pool.evidence.other_sizes) == (10 * FRAMES - 6, 6)
    assert len(routed(report)) == 10 * FRAMES - 6
    said = text.evidence(report, pool)
    assert "6 blocks of other sizes, asked for at the same place, stay where they are." in said


def test_blocks_of_a_site_that_asks_for_any_size_are_no_pool(tmp_path):
    alive: list[int] = []

    def each_frame(game: Game) -> None:
        for i in range(40):
            alive.append(game.allocate(16 * (1 + i % 10), "update()", "string()"))
        game.thin_out(alive, 100, "thin_out()")

    assert not advise(play(tmp_path / "game.txt", each_frame)).advice


def test_one_line_that_asks_through_two_functions_of_the_library_is_judged_for_each(tmp_path):
    """As particles.push_back(std::make_unique<Particle>()) does: the vector's buffer grows beside the particles."""
    alive: list[int] = []
    buffer: list[int] = []

    def each_frame(game: Game) -> None:
        for i in range(20):
            alive.append(game.allocate(32, ("spawn()", 8), "std::make_unique<Particle>()"))
            if i % 2:
                buffer.append(
                    game.allocate(32 << (game.frame + i) % 5, ("spawn()", 8), "std::vector<int>::push_back()")
                )
        game.thin_out(alive, 60, "clear()")

    report = advise(play(tmp_path / "game.txt", each_frame))
    (pool,) = [one for one in report.advice if one.what == "pool"]
    assert (pool.bytes, pool.asker, pool.where.line) == (32, "std::make_unique<Particle>()", 8)
    assert pool.evidence.lives == 20 * FRAMES
    assert any("through std::make_unique<Particle>() come and go" in one for one in text.evidence(report, pool))


def test_what_a_library_asks_for_on_its_own_behalf_is_one_sentence(tmp_path):
    def each_frame(game: Game) -> None:
        game.brief(4, 100, "render()", LIBRARY)
        game.brief(4, 100, "update()", "shade()")

    path = play(tmp_path / "game.txt", each_frame)
    report = advise(path)
    assert [one.where.function for one in report.advice] == ["shade()"]
    assert text.answer(report).endswith(
        "50 % of the allocator time is inside libGL.so.1, which only its authors can change; --all shows it."
    )
    everything = advise(path, "--all")
    assert {one.where.function for one in everything.advice} == {"shade()", "render()"}
    assert not everything.inside


def test_the_worst_frame_is_none_of_loading(tmp_path):
    def each_frame(game: Game) -> None:
        temp(game)
        loading = game.frame < 60
        for i in range(400 if loading else 10):
            game.free(game.allocate(100 + i, "load()" if loading else "play()"), "end_frame()")
        if game.frame == 150:
            game.brief(40, 64, "explode()")

    path = play(tmp_path / "game.txt", each_frame, frames=240)
    assert 150 * 16_000_000 <= advise(path).worst_frame_ns < 152 * 16_000_000


def test_the_headline_names_the_first_rows_of_the_table(tmp_path):
    def each_frame(game: Game) -> None:
        for place in range(6):
            game.brief(4, 100, f"often_{place}()")
        if game.frame % 10 == 5:
            for place in range(3):
                game.brief(100, 100, f"seldom_{place}()")

    report = advise(play(tmp_path / "game.txt", each_frame))
    first = [text.change(one) for one in report.advice[:3]]
    assert [one.id for one in report.advice] == list(range(1, 10))
    assert all("seldom" in one for one in first)
    assert text.answer(report).endswith(f"{first[0]}, {first[1]} and {first[2]}.")


def test_the_first_sentence_says_what_is_at_stake(tmp_path):
    def costly(game: Game) -> None:
        for i in range(40_000):
            game.free(game.allocate(64 + i % 2 * 64, "spawn()"), "end_frame()")

    report = advise(play(tmp_path / "game.txt", costly, frames=8))
    assert text.answer(report).startswith("Allocation takes 7.2 % of the worst frame at 60 per second and ")
    assert "nothing to gain" not in text.answer(report)
    report = advise(play(tmp_path / "little.txt", temp))
    assert text.answer(report).startswith(
        "Allocation takes <.01 % of the worst frame at 60 per second and <.01 % of the run (estimated): nothing to "
        "gain here. "
    )


def test_the_function_that_asks_its_callers_and_where_blocks_are_freed_are_told(tmp_path):
    waiting: list[int] = []

    def each_frame(game: Game) -> None:
        for caller in ("say()", "move()"):
            for _ in range(4):
                waiting.append(game.allocate(64, (caller, 12), ("write()", 7)))
        game.thin_out(waiting, 40, ("packet_sent()", 33))

    report = advise(play(tmp_path / "game.txt", each_frame))
    (pool,) = report.advice
    said = " ".join(text.evidence(report, pool))
    assert "write() is called at move.cpp:12 (move()) and say.cpp:12 (say()); what it does changes for all" in said
    assert "The blocks are freed at packet_sent.cpp:33 (packet_sent()): change both." in said


def test_groups_that_are_never_dead_all_at_once_share_no_arena(tmp_path):
    maps: list[int] = []
    units: list[int] = []

    def each_frame(game: Game) -> None:
        if game.frame % 20 == 0:
            maps.extend(game.allocate(40 + i, "load_map()") for i in range(60))
            game.free_all(units, "unload()")
        if game.frame % 20 == 1:
            units.extend(game.allocate(40 + i, "load_units()") for i in range(60))
        if game.frame % 20 == 19:
            game.free_all(maps, "unload()")
        if game.frame == 99:
            game.free_all(units, "unload()")

    report = advise(play(tmp_path / "game.txt", each_frame, frames=100))
    for loader, groups in (("load_map()", 5), ("load_units()", 5)):
        site = at(report, loader)
        assert (site.what, site.evidence.periods) == ("rewindable", groups)


def test_a_member_that_outlives_its_group_makes_it_not_rewindable(tmp_path):
    loaded: list[int] = []

    def each_frame(game: Game) -> None:
        if game.frame % 20 == 0:
            loaded.extend(game.allocate(100 * (i % 9 + 1), "textures()") for i in range(60))
            loaded.pop()
        if game.frame % 20 == 19:
            game.free_all(loaded, "unload()")

    site = at(advise(play(tmp_path / "game.txt", each_frame)), "textures()")
    assert (site.what, site.near) == ("leave", "rewindable")
    assert site.near_held.broken == 3


def test_blocks_that_a_later_call_of_the_function_frees_have_no_scope(tmp_path):
    last: list[int] = []

    def each_frame(game: Game) -> None:
        for _ in range(10):
            if last:
                game.free(last.pop(), ("update()", 2), ("step()", 3))
            last.append(game.allocate(40 + game.frame, ("update()", 2), ("step()", 9)))
            game.free(game.allocate(8, ("update()", 7), "other()"), "end_frame()")

    site = at(advise(play(tmp_path / "game.txt", each_frame)), "step()")
    assert site.what != "temp_scope" and site.near != "temp_scope"


def test_the_caller_decides_where_a_helper_serves_two_lifetimes_and_is_told_what_to_hand_down(tmp_path):
    def each_frame(game: Game) -> None:
        for i in range(4):
            game.free(game.allocate(20 + i, "label()", "copy_text()"), "end_frame()")
        game.allocate(20 + game.frame, "rename()", "copy_text()")

    report = advise(play(tmp_path / "game.txt", each_frame))
    advice = at(report, "label()")
    assert advice.what == "temp"
    assert [step.function for step in advice.contexts[0]] == ["copy_text()", "label()"]
    said = " ".join(text.evidence(report, advice))
    assert "label() asks through copy_text() (copy_text.cpp:1), which asks for 60 blocks elsewhere as well" in said
    assert at(report, "rename()").reason == "long_lived"


def test_a_line_decides_where_a_function_allocates_for_two_lifetimes(tmp_path):
    def each_frame(game: Game) -> None:
        for i in range(4):
            game.free(game.allocate(20 + i, ("load()", 10)), "end_frame()")
        game.allocate(30 + game.frame, ("load()", 20))

    report = advise(play(tmp_path / "game.txt", each_frame))
    assert [(one.what, one.where.line) for one in report.advice] == [("temp", 10)]


def test_a_pool_belongs_into_the_wrapper_of_many_callers(tmp_path):
    advice = advise(play(tmp_path / "game.txt", pool())).advice[0]
    assert [step.function for step in advice.contexts[0]] == ["particle()"]


def test_without_marks_scopes_pools_and_reserves_are_advised_and_marks_are_explained(tmp_path):
    make = pool()

    def each_frame(game: Game) -> None:
        temp(game)
        scope(game)
        growing(game)
        make(game)

    path = play(tmp_path / "game.txt", each_frame, marks=False)
    report = advise(path)
    assert {one.what for one in report.advice} == {"temp_scope", "pool", "reserve"}
    done = blockyard("advise", path, "--no-replay", "-o", tmp_path / "text")
    assert "by_frame_mark()" in done.stdout
    assert done.stdout.startswith("Allocation takes 0.0")


def test_what_comes_before_the_first_mark_or_after_the_last_is_no_frame_for_sites_and_advice(tmp_path):
    game = Game(tmp_path / "game.txt")
    for _ in range(FRAMES):
        game.brief(400 if game.frame == 0 else 4, 100, "update()", "shade()")
        game.end_frame()
    game.brief(300, 100, "update()", "shade()")
    path = game.write()
    sites = told("sites", path)
    report = advise(path)
    assert sites["frame_count"] == report.frames == FRAMES - 1
    assert sites["sites"][0]["frames"] == at(report, "shade()").evidence.frames == FRAMES - 1
    said = " ".join(text.evidence(report, at(report, "shade()")))
    assert "936 blocks end on their thread in the frame that they began in." in said
    assert report.worst_frame_ns > game_frame_ends(path)[0]
    assert report.estimated_worst_frame_ns == pytest.approx(report.estimated_ns * 4 / (400 + 300 + 59 * 4))


def game_frame_ends(path: Path) -> list[int]:
    return [int(line.split()[3]) for line in path.read_text().splitlines() if line.startswith("# frame ")]


def test_routes_hold_the_blocks_that_keep_the_advice_and_no_others(tmp_path):
    def each_frame(game: Game) -> None:
        growing(game)
        if game.frame == 59:
            growing(game)
            block = game.grow(game.grow(game.allocate(32, "record()"), 64, "record()"), 9000, "record()")
            game.free(block, "flush()")

    report = advise(play(tmp_path / "game.txt", each_frame, frames=200))
    blocks = routed(report)
    assert [event for event, _ in blocks] == sorted({event for event, _ in blocks})
    # Each of the 201 buffers has an allocation and five reallocations; the one that outgrows the reserve has no route.
    assert len(blocks) == 201 * 6
    assert {route for _, route in blocks} == {0}
    assert report.advice[0].held.broken == 1


def test_another_recording_that_contradicts_the_advice_says_by_how_much(tmp_path):
    def worse(game: Game) -> None:
        blocks = [game.allocate(100, "update()", "shade()") for _ in range(4)]
        if game.frame % 10 == 0:
            blocks.pop()
        game.free_all(blocks, "end_frame()")

    other = play(tmp_path / "other.txt", worse)
    report = advise(play(tmp_path / "game.txt", temp), "--on", other)
    held = report.advice[0].on[0]
    assert (held.holds, held.broken) == (4 * FRAMES - 6, 6)
    assert held.counterexamples[0].why == "is never freed"
    assert report.on[0].precision == pytest.approx(1 - 6 / (4 * FRAMES))
    assert report.on[0].baseline.broken == 6


def test_halves_are_judged_on_each_other_beside_the_baseline(tmp_path):
    make = pool()

    def each_frame(game: Game) -> None:
        make(game)
        blocks = [game.allocate(100, "update()", "shade()") for _ in range(4)]
        if game.frame == 50:
            blocks.pop()
        game.free_all(blocks, "end_frame()")

    halves = advise(play(tmp_path / "game.txt", each_frame)).halves
    # The first half advises temp, which one block of the second breaks; the second half does not.
    assert halves.broken == 1
    assert halves.baseline.broken == 1
    assert halves.coverage > halves.baseline.coverage


def test_a_half_counts_no_frame_that_began_before_it(tmp_path):
    def each_frame(game: Game) -> None:
        game.wait(15_000_000)
        temp(game)
        temp(game)

    # The half begins within a frame, and has three whole ones: too few for a temp.
    report = advise(play(tmp_path / "game.txt", each_frame, frames=7))
    assert at(report, "shade()").what == "temp"
    assert report.halves is None


def test_apply_judges_what_the_user_wants(tmp_path):
    path = play(tmp_path / "game.txt", pool())
    advice = advise(path, "--apply", "particle=pool").advice
    assert [(one.what, one.bytes, one.held.broken) for one in advice] == [("pool", 48, 0)]
    wrong = advise(path, "--apply", "particle()=temp").advice[0]
    assert wrong.what == "temp" and wrong.held.broken > 500


@pytest.mark.parametrize("name", ["particle", "emitter::particle", "particle(int)"])
def test_apply_takes_as_much_of_a_functions_name_as_is_needed(tmp_path, name):
    def each_frame(game: Game) -> None:
        game.free(game.allocate(48, "fire()", "app::emitter::particle(int)"), "fire()")

    advice = advise(play(tmp_path / "game.txt", each_frame), "--apply", f"{name}=pool").advice
    assert [(one.what, one.bytes) for one in advice] == [("pool", 48)]


@pytest.mark.parametrize(
    "options, words",
    [
        (["--apply", "nobody=temp"], "has a function 'nobody'"),
        (["--apply", "particle=heap"], "KIND one of temp"),
        (["--apply", "particle"], "SITE=KIND"),
        (["--apply", "particle=pool,particle=temp"], "names 'particle' twice"),
        (["--apply", "particle=reserve"], "none of its blocks grows"),
        (["--apply", "particle=temp_scope"], "no function holds a temp_scope"),
        (["--on", "missing.byj"], "missing.byj"),
        (["--on", "{alien}"], "shares no function that allocates"),
    ],
)
def test_a_wrong_option_is_one_sentence(tmp_path, options, words):
    alien = play(tmp_path / "alien.txt", lambda game: game.free(game.allocate(9, "zap()"), "zap()"))
    path = play(tmp_path / "game.txt", pool())
    chosen = [one.format(alien=alien) for one in options]
    assert words in sentence(blockyard("advise", path, "--no-replay", "-o", tmp_path / "out", *chosen))
    assert not list(tmp_path.glob("out*"))


def test_a_journal_without_stacks_says_how_to_get_them(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("a 24 A0 7 1000\nf A0 7 1250\n")
    said = refusal(blockyard("advise", path, "-o", tmp_path / "out"))
    assert str(path) in said and "blockyard record" in said


def test_a_folder_that_exists_is_left_as_it_is(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    said = refusal(blockyard("advise", play(tmp_path / "game.txt", temp), "-o", out))
    assert "exists already" in said
    assert not list(out.iterdir())


def test_a_folder_that_cannot_be_made_is_named_as_it_was_asked_for(tmp_path):
    out = tmp_path / ("long" * 63)
    said = refusal(blockyard("advise", play(tmp_path / "game.txt", temp), "--no-replay", "-o", out))
    assert f"{out.name} can't be made: File name too long; name another folder with -o" in said


def test_a_folder_of_another_recording_is_not_gone_on_with(tmp_path):
    path = play(tmp_path / "game.txt", lambda game: game.free(game.allocate(100, "draw()"), "draw()"))
    assert blockyard("advise", path, "--no-replay", "-o", tmp_path / "out").returncode == 0
    path.write_text(path.read_text() + "# a note\n")
    for _ in range(2):
        assert str(tmp_path / "out") in refusal(blockyard("advise", path, "--no-replay", "-o", tmp_path / "out"))
        (tmp_path / "out" / "advice.json").write_text("[]")


def test_the_answer_comes_first_and_fits_eighty_columns(tmp_path):
    def each_frame(game: Game) -> None:
        temp(game)
        kept(game)

    done = blockyard("advise", play(tmp_path / "game.txt", each_frame), "--no-replay", "-o", tmp_path / "out")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Allocation takes ") and "Two changes take " in done.stdout
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 80
    page = (tmp_path / "out" / "advice.md").read_text()
    assert "temp in shade()" in page and "```cpp" in page


def test_a_long_name_keeps_its_function_beside_what_to_do(tmp_path):
    def each_frame(game: Game) -> None:
        game.free(game.allocate(64, template.format("Chunk*")), "end_frame()")

    template = "void heap::base::Worklist<std::pair<{}, int>, (unsigned short)64>::Local::Publish(std::vector<int>&)"
    done = blockyard("advise", play(tmp_path / "game.txt", each_frame), "--no-replay", "-o", tmp_path / "out")
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("    ")) <= 80
    assert "heap::base::Worklist<…>::Local::Publish()" in " ".join(done.stdout.split())
    assert "keep the buffer of …::Local::Publish()" in " ".join(done.stdout.split())
    assert template.format("Chunk*") in (tmp_path / "out" / "advice.md").read_text()


def test_of_a_deep_stack_both_ends_are_told(tmp_path):
    report = advise(play(tmp_path / "game.txt", lambda game: game.free(game.allocate(64, "draw()"), "end_frame()")))
    (change,) = report.advice
    change.contexts = [[structs.replace(change.where, function=f"step_{i}(int)") for i in range(9)]]
    assert text.evidence(report, change)[0] == (
        "Allocates: step_0() < step_1() < step_2() < step_3() < 4 more < step_8()."
    )
    del change.contexts[0][6:]
    assert text.evidence(report, change)[0].endswith("step_4() < step_5().")


def test_where_nothing_is_worth_a_change_it_says_so(tmp_path):
    def each_frame(game: Game) -> None:
        game.allocate(10 + 7 * game.frame, "keep_all()")

    done = blockyard("advise", play(tmp_path / "game.txt", each_frame), "--no-replay", "-o", tmp_path / "out")
    assert "No change is worth making" in " ".join(done.stdout.split())
    assert "keep_all(): its blocks live long" in done.stdout


def test_of_sites_to_leave_alone_each_function_is_one_line_and_rare_ones_none(tmp_path):
    report = advise(play(tmp_path / "game.txt", lambda game: game.allocate(10 + 7 * game.frame, "keep_all()")))
    (site,) = report.leave
    report.leave, report.left_count, report.estimated_ns = [site, structs.replace(site, reason="few"), site], 3, 4e9
    site.estimate.cost_ns = 1e9
    said = blocks.text(text.said(report))
    assert said.count("keep_all()") == 1 and "(50 % of the time)" in " ".join(said.split())
    assert "1 further site" in said


def test_a_program_without_names_says_how_to_get_them(tmp_path):
    def each_frame(game: Game) -> None:
        game.free(game.allocate(64, "game+0x1234"), "end_frame()")

    done = blockyard("advise", play(tmp_path / "game.txt", each_frame), "--no-replay", "-o", tmp_path / "out")
    assert "blockyard names" in done.stdout and "libgame.so" in done.stdout


def test_compiled_code_without_names_says_how_to_get_them(tmp_path):
    report = advise(play(tmp_path / "game.txt", lambda game: game.free(game.allocate(64, "draw()"), "end_frame()")))
    where = report.advice[0].where
    where.function, where.module = "0x7f1634edf674", "[generated code]"
    said = " ".join(text.remarks(report))
    assert "a perf map names it" in said and "-dbgsym" not in said


def test_a_block_that_the_calling_call_of_a_recursive_function_frees_has_no_scope_in_it(tmp_path):
    def each_frame(game: Game) -> None:
        for i in range(8):
            block = game.allocate(40 + 20 * i, "update()", ("walk()", 5), ("walk()", 7))
            game.free(block, "update()", ("walk()", 6))

    site = at(advise(play(tmp_path / "game.txt", each_frame)), "walk()")
    assert site.what == "temp"


def test_sites_that_take_turns_have_a_scope_each(tmp_path):
    alive: list[int] = []

    def each_frame(game: Game) -> None:
        for i in range(20):
            for site in ("read()", "write()"):
                if len(alive) == 2:
                    game.free(alive.pop(0), "update()", ("serve()", 9))
                alive.append(game.allocate(1000 + 50 * i, "update()", "serve()", site))
        while alive and game.frame % 2:
            game.free(alive.pop(), "update()", ("serve()", 9))

    report = advise(play(tmp_path / "game.txt", each_frame, marks=False))
    assert [one.what for one in report.advice] == ["temp_scope"] * 2
    assert all(one.evidence.region_bytes < 10_000 for one in report.advice)


@pytest.mark.parametrize("other, include", [("/lib/libz.so.1", "block.h"), ("/lib/libstdc++.so.6", "static_block")])
def test_a_stripped_program_without_the_cpp_library_gets_c(tmp_path, other, include):
    game = Game(tmp_path / "game.txt")
    module = game.journal.module(other)
    game.journal.allocate(72_704, 0x100, 0, game.journal.stack(game.journal.frame("", module)))
    make = destroy = game.journal.frame("")
    alive: list[int] = []
    for i in range(2000):
        game.journal.allocate(48, 0x1000 * (i + 1), 10 * i + 1, game.journal.stack(make))
        alive.append(0x1000 * (i + 1))
        if len(alive) > 100:
            game.journal.free(alive.pop(i * 7 % 100), 10 * i + 2, game.journal.stack(destroy))
    report = advise(game.write())
    (change,) = report.advice
    assert change.what == "pool" and include in code.native(change, report.cpp)
