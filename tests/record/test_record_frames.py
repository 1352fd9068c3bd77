"""Frames are marked by whatever route a program presents them, and nested presents count once."""

import pytest
from recorded import BUILD, program, record, recording

FRAMES = 5


def library(name: str) -> str:
    return str(BUILD / "tests" / "record" / f"librecord-fake-{name}.so")


PLAIN = "SDL_GL_SwapWindow SDL_RenderPresent glXSwapBuffers dlsym glXGetProcAddressARB glXGetProcAddress"
LIBRARIES = {"eglSwapBuffers": ["EGL"], "eglGetProcAddress": ["EGL"], "vkGetDeviceProcAddr": ["vulkan"]}
"""What a route needs beside the program."""


@pytest.mark.parametrize(
    "route, libraries", [*((route, []) for route in (*PLAIN.split(), "SDL_GL_GetProcAddress")), *LIBRARIES.items()]
)
def test_a_frame_is_marked_once_by_route(tmp_path, route, libraries):
    done = record(tmp_path / "frames.byj", program("frames"), route, *map(library, libraries))
    assert done.journal().count("frame") == FRAMES


@pytest.mark.parametrize("route", ["SDL_RenderPresent", "glXSwapBuffers", "dlsym"])
def test_the_real_function_is_called_each_time(tmp_path, route):
    assert recording(tmp_path / "frames.byj", program("frames"), route).stdout == f"{FRAMES}\n"


@pytest.mark.parametrize("route", ["none", "absent", "dlvsym-missing"])
def test_no_frame_is_marked_where_none_is_presented(tmp_path, route):
    done = record(tmp_path / "frames.byj", program("frames"), route)
    assert done.journal().count("frame") == 0


@pytest.mark.parametrize("name, frames", [("many_arguments", 4), ("variadic", 5), ("throws_when", 8)])
def test_a_frame_symbol_of_any_signature_marks_and_is_not_disturbed(tmp_path, name, frames):
    done = recording(tmp_path / "symbol.byj", program("signature"), options=("--frame-symbol", name))
    assert (done.exit_code, done.stdout) == (0, "done\n"), done.stderr
    assert done.journal().count("frame") == frames


def test_a_frame_symbol_switches_the_automatic_marks_off(tmp_path):
    done = recording(
        tmp_path / "symbol.byj",
        program("frames"),
        "SDL_RenderPresent",
        options=("--frame-symbol", "SDL_GL_GetProcAddress"),
    )
    assert done.journal().count("frame") == 0


def test_a_frame_symbol_may_be_a_known_one(tmp_path):
    done = recording(
        tmp_path / "symbol.byj", program("frames"), "glXSwapBuffers", options=("--frame-symbol", "glXSwapBuffers")
    )
    assert done.journal().count("frame") == FRAMES


def test_the_programs_own_marks_arrive_through_a_static_library(tmp_path):
    done = record(tmp_path / "marks.byj", program("marks"))
    journal = done.journal()
    order = [event.kind for event in journal.events if event.kind in ("frame", "phase") or event.size == 150_001]
    assert order == ["phase"] + ["allocate", "frame"] * 4 + ["phase"] + ["frame"] * 3
