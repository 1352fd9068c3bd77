"""The view, driven by keys on a stream of which every figure is known; its screen is compared as text."""

import asyncio
import json
import queue

import pytest
from screen import text_of

pytest.importorskip("textual")
from blockyard.live.app import LiveApp

_MS = 1_000_000


def calls(allocations: int, size: int, frees: int) -> dict:
    return {"allocations": allocations, "bytes": size, "frees": frees}


def held(blocks: int, size: int) -> dict:
    return {"blocks": blocks, "bytes": size}


def site(number: int, function: str, allocations: int, size: int, live: int, **more) -> dict:
    known = {"site": number, "function": function, "module": "game", "allocations": allocations, "bytes": size}
    return known | {"live": held(live // 100, live)} | more


SPAWN = site(1, "app::spawn(int)", 120, 12_288, 4096)
DRAW = site(2, "app::draw()", 60, 30_720, 0)
LEAK = site(3, "app::Log::add(std::string const&)", 6, 600, 9000, grown=8400, for_ns=12_000 * _MS)


def line(second: int, **more) -> dict:
    """Second by second: 60 frames of 10 ms with 3 allocations each; the fifth takes 40 ms and 50 allocations."""
    times = [10 * _MS] * 60
    counts = [3] * 60
    times[4], counts[4] = 40 * _MS, 50
    return {
        "program": "/usr/games/shooter",
        "time_ns": second * 1000 * _MS,
        "window_ns": 1000 * _MS,
        "events": 400 * second,
        "all": calls(227 * second, 50_000 * second, 180 * second),
        "last": calls(227, 51_200, 180),
        "live": held(47 * second, 20_480 * second),
        "peak_bytes": 30_720 * second,
        "frames": {
            "marked": True,
            "budget_ns": 16_666_666,
            "count": 60 * second,
            "over_budget": second,
            "first": 60 * (second - 1) + 1,
            "ns": times,
            "allocations": counts,
            "bytes": [300] * 60,
        },
        "sites": [SPAWN, DRAW],
        "worst_frame": {
            "number": 5,
            "sites": [DRAW | {"allocations": 48, "bytes": 24_576}],
            "begin_ns": 40 * _MS,
            "ns": 40 * _MS,
            "allocations": 50,
            "bytes": 300,
        },
        "growing": [LEAK],
        "mark": None,
        "threads": [
            calls(200, 51_100, 170) | {"id": 1, "name": "main"},
            calls(27, 100, 10) | {"id": 2, "name": "audio"},
        ],
        "tags": [calls(27, 100, 10) | {"name": "sound", "live": held(3, 300)}],
        "ended": False,
    } | more


class Stream:
    """What a follower would say, and what was asked of it."""

    def __init__(self) -> None:
        self._said: queue.Queue[bytes | None] = queue.Queue()
        self.asked: list[str] = []

    def say(self, what: dict) -> None:
        self._said.put(json.dumps(what, separators=(",", ":")).encode())

    def texts(self):
        while (text := self._said.get()) is not None:
            yield text

    def ask(self, question: str) -> None:
        self.asked.append(question)

    def close(self) -> None:
        self._said.put(None)


class Viewer:
    def __init__(self, app, pilot, stream) -> None:
        self.app, self.pilot, self.stream = app, pilot, stream

    @property
    def rows(self) -> list[str]:
        return text_of(self.app)

    def shows(self, part: str) -> bool:
        """Whether a row has it, however wide its columns are."""
        return any(part in " ".join(row.split()) for row in self.rows)

    async def say(self, what: dict, until: str) -> None:
        self.stream.say(what)
        await self.until(until)

    async def until(self, until: str) -> None:
        while not self.shows(until):
            await self.pilot.pause(0.05)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()


def viewed(test):
    """Runs the test with the view at 80 by 24, after its first second."""

    def run() -> None:
        async def view() -> None:
            stream = Stream()
            app = LiveApp(stream)
            async with app.run_test(size=(80, 24)) as pilot:
                viewer = Viewer(app, pilot, stream)
                await viewer.say(line(1), "1.00 s")
                await viewer.until("q Quit")
                await test(viewer)

        asyncio.run(view())

    run.__name__ = test.__name__
    return run


@viewed
async def test_the_screen_at_80_by_24(viewer):
    assert viewer.rows == [
        "shooter  1.00 s  recording",
        "holds 20.0 KiB in 47 blocks, at most 30.0 KiB so far",
        "227 allocations/s, 50.0 KiB/s;  60 frames, 1 over 16.7 ms",
        "    █",
        "▂▂▂▂█" + "▂" * 55,
        "█" * 60,
        "    █",
        "▁▁▁▁█" + "▁" * 55,
        "allocations per frame, 50 at most",
        " Last second  Frame  Only grow  Since mark  Threads  Tags",
        "╸━━━━━━━━━━━╺" + "━" * 67,
        " site                                      allocs/s      bytes/s        holds",
        " app::spawn(int)                                120     12.0 KiB     4.00 KiB",
        " app::draw()                                   60.0     30.0 KiB          0 B",
        " ← → Frame  ⏎ Stacks  tab List  space Pause  m Mark  q Quit",
    ]


@viewed
async def test_space_pauses_and_goes_on(viewer):
    before = viewer.rows
    await viewer.press("space")
    assert viewer.shows("paused")
    await viewer.say(line(2), "paused")
    await viewer.press("5", "1")
    assert viewer.rows[1:] == before[1:]
    while viewer.app.newest_ns < 2000 * _MS:
        await viewer.pilot.pause(0.01)
    await viewer.press("space")
    assert viewer.shows("2.00 s recording")


@viewed
async def test_arrow_keys_walk_frames_and_show_their_sites(viewer):
    await viewer.press(*["left"] * 57)
    assert viewer.stream.asked == [f"frame {number}" for number in range(60, 3, -1)]
    assert viewer.shows("frame 4: 10.0 ms, 3 allocations, 300 B")
    await viewer.press("right")
    assert viewer.shows("frame 5: 40.0 ms, 50 allocations, 300 B")
    await viewer.say({"frame": line(1)["worst_frame"]}, "app::draw()")
    assert viewer.shows("site in this frame")
    assert viewer.shows("app::draw() 48 24.0 KiB")
    await viewer.say(line(2), "2.00 s")
    assert viewer.shows("frame 5: 40.0 ms")
    await viewer.press("escape")
    assert not viewer.shows("frame 5: 40.0 ms")


@viewed
async def test_a_frame_that_is_not_walked_to_is_the_slowest_one(viewer):
    await viewer.press("2")
    assert viewer.shows("site in the slowest frame of the last 1,024")
    assert viewer.stream.asked == []


@viewed
async def test_enter_shows_the_stacks_of_the_chosen_site(viewer):
    await viewer.press("down", "enter")
    assert viewer.stream.asked == ["stacks 2"]
    functions = [
        {"function": "app::draw()", "file": "/src/draw.cpp", "line": 50, "module": "game"},
        {"function": "main", "file": "", "line": 0, "module": "game"},
    ]
    stack = {"allocations": 60, "live": held(0, 0), "left": held(0, 0), "functions": functions}
    await viewer.say({"stacks": {"site": 2, "count": 1, "stacks": [stack]}}, "1 call stack")
    assert viewer.shows("60 allocations in the last second; holds 0 B in 0 blocks")
    assert viewer.shows("app::draw() draw.cpp:50")
    assert viewer.shows("main game")
    await viewer.press("enter")
    assert not viewer.shows("1 call stack")
    assert viewer.stream.asked == ["stacks 2"]


@viewed
async def test_m_marks_and_what_stays_since_then_is_listed(viewer):
    await viewer.press("m")
    assert viewer.stream.asked == ["mark"]
    assert viewer.shows("what stays from now on comes here")
    left = SPAWN | {"left": held(7, 700)}
    mark = {"at_ns": 1200 * _MS, "left": held(9, 900), "older_freed": held(1, 2048), "sites": [left]}
    await viewer.say(line(2, mark=mark), "since 1.20 s: 900 B in 9 blocks left; 2.00 KiB from before are gone")
    assert viewer.shows("app::spawn(int) 7 700 B")


@viewed
async def test_lists_of_what_only_grows_of_threads_and_of_tags(viewer):
    await viewer.press("3")
    assert viewer.shows("app::Log::add(std::string const&) 8.20 KiB 12.0 s 8.79 KiB")
    await viewer.press("tab", "tab")
    assert viewer.shows("main 200 49.9 KiB 170")
    assert viewer.shows("audio 27.0 100 B 10.0")
    await viewer.press("tab")
    assert viewer.shows("sound 27.0 100 B 300 B")


@viewed
async def test_another_program_of_the_recording_begins_a_new_strip(viewer):
    await viewer.say(line(1, program="/usr/games/engine", time_ns=500 * _MS), "engine")
    await viewer.press("left")
    assert viewer.stream.asked == ["frame 60"]


@viewed
async def test_q_ends_the_view(viewer):
    await viewer.press("q")
    await viewer.pilot.pause()
    assert viewer.app.return_code == 0
