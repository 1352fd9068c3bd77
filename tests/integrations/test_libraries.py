"""Behind its hook a library allocates on the heap, with its tag, and what it takes past the hook is known."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from integration import Heard, heard

#: The software driver alone, of those that are installed.
LAVAPIPE = {"VK_ICD_FILENAMES": "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json", "NODEVICE_SELECT": "1"}
#: Instead of a package.
FROM_CRATES = "its source by tests/integrations/run-programs"


@dataclass(frozen=True, eq=False)
class Library:
    name: str
    package: str
    code: str  # a regular expression of what modules or functions of it are called
    tags: str  # all that its blocks have, program's before library's
    said: str = ""  # by the example, at the end of what it prints
    elsewhere: dict[str, int] = field(default_factory=dict)
    within: str | None = None  # `elsewhere` is of what the program does below this tag
    environment: dict[str, str] = field(default_factory=dict)


REAL = [
    Library("lua", "liblua5.4-dev", "liblua", "lua telling/lua", "13936 characters"),
    # One for the table by which exceptions pass through compiled code.
    Library("luajit", "libluajit-5.1-dev", "libluajit", "lua telling/lua", "characters", {"libgcc_s.so.1": 1}),
    Library("sdl2", "libsdl2-dev", "libSDL2", "sdl sprites/sdl", "every event", within="sprites"),
    Library("bullet", "libbullet-dev", "libBullet|libLinear|^bt", "bullet level/bullet", "lies on the ground"),
    # Debian's ImGui has fonts drawn by a library of their own.
    Library(
        "imgui", "libimgui-dev", "^Im", "imgui inventory/imgui", "many triangles", {"libstb.so.0": 1072, "libc.so.6": 2}
    ),
    Library("enet", "libenet-dev", "libenet", "enet server/enet", "200 packets came back"),
    Library("box2d", "libbox2d-dev", "libbox2d|^b2", "box2d level/box2d", "the top is up"),
    # The driver has one part of a buffer, and of its memory, from a library that knows no Vulkan.
    Library(
        "vulkan",
        "libvulkan-dev and mesa-vulkan-drivers",
        "libvulkan",
        "vulkan/instance vulkan/device vulkan/object vulkan/command level/vulkan/object",
        "50 buffers filled",
        {"libvulkan_lvp.so": 100},
        within="level",
        environment=LAVAPIPE,
    ),
    # Too long to build for each test run: tests/integrations/run-programs.
    # Before main(), and any tag, it fills tables. Here: what the C library keeps for destructors, a thread, and the
    # list of the example itself.
    Library(
        "jolt",
        FROM_CRATES,
        "^JPH::",
        "jolt game/jolt game/level/jolt",
        "lies on the floor",
        {"integration-jolt": 2, "ld-linux-x86-64.so.2": 1, "libc.so.6": 3},
        within="game",
    ),
    # What the dynamic linker keeps for a thread.
    Library(
        "physx",
        FROM_CRATES,
        "^physx::|^Px",
        "physx level/physx worker/physx",
        "6000 bodies held",
        {"ld-linux-x86-64.so.2": 2},
    ),
    Library("sdl3", FROM_CRATES, "^SDL_", "sdl sprites/sdl", "every event", within="sprites"),
    Library("pmr", "g++", "^main$", "world frame things"),
]
#: Compiled against headers of ours that have the shape of the real ones, which cannot be had.
SHAPES = [
    Library("unreal", "g++", "^main$", "unreal"),
    Library("fmod", "g++", "^main$", "fmod fmod/stream"),
    Library("wwise", "g++", "^main$", "wwise"),
    Library("eastl", "g++", "^main$", "numbers lines"),
]
EACH = pytest.mark.parametrize("library", REAL + SHAPES, ids=lambda library: library.name)
Run = Callable[[Library], Heard]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs each example once."""

    @cache
    def once(library: Library) -> Heard:
        if library.name == "vulkan" and not Path(LAVAPIPE["VK_ICD_FILENAMES"]).is_file():
            pytest.skip("NOT TESTED: Vulkan has no software driver here; install mesa-vulkan-drivers")
        folder = tmp_path_factory.mktemp(library.name)
        return heard(folder, library.name, package=library.package, **library.environment)

    return once


def named(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("library", [one for one in REAL if one.name in names], ids=lambda one: one.name)


@EACH
def test_it_does_its_work(library: Library, run: Run) -> None:
    assert run(library).stdout.strip().endswith(library.said)


@EACH
def test_what_went_elsewhere_is_known(library: Library, run: Run) -> None:
    heard = run(library)
    assert heard.elsewhere(library.code, library.tags, within=library.within) == library.elsewhere
    # With another tag all of it is elsewhere: the library's code was found on the stacks.
    assert sum(heard.elsewhere(library.code, "no/such", within=library.within).values()) > sum(
        library.elsewhere.values()
    )


@EACH
def test_blocks_have_its_tag_below_those_of_the_program(library: Library, run: Run) -> None:
    assert run(library).tags(library.tags) == set(library.tags.split())


@EACH
def test_its_end_leaks_nothing(library: Library, run: Run) -> None:
    assert run(library).live(library.tags) == []


@named("lua", "luajit")
def test_lua_holds_as_many_bytes_as_were_recorded(library: Library, run: Run) -> None:
    bytes_by_lua = int(run(library).stdout.split()[0])
    assert bytes_by_lua > 100_000
    assert sum(run(library).live(library.tags, phase="counted")) == bytes_by_lua


@named("sdl2", "imgui")
def test_it_holds_as_many_blocks_as_were_recorded(library: Library, run: Run) -> None:
    assert len(run(library).live(library.tags, phase="counted")) == int(run(library).stdout.split()[0])


@named("sdl2")
def test_sdl_itself_takes_two_blocks_from_malloc_for_its_error_texts(library: Library, run: Run) -> None:
    """Others are of libraries that it loads: the system's for devices and messages."""
    assert run(library).elsewhere(library.code, library.tags)["libSDL2-2.0.so.0"] == 2
