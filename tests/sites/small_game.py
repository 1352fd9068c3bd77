"""A small game whose every figure is known, and the command that the tests run on it."""

from pathlib import Path

from stacked import Journal

LOAD = [("app::load()", "load.cpp", 10)]
UPDATE = [("app::update(float)", "update.cpp", 20)]
SPAWN = [("app::spawn(int)", "spawn.cpp", 30)]
SPAWN_AGAIN = [("app::spawn(int)", "spawn.cpp", 33)]
SPAWN_FREES = [("app::spawn(int)", "spawn.cpp", 39)]
GROW = [("std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)", "vector.tcc", 450)]
DRAW = [("app::batch()", "draw.h", 5), ("app::draw()", "draw.cpp", 50)]
DESTROY = [("app::destroy(app::Thing*)", "update.cpp", 25)]


def write(path: Path) -> Path:
    """Three frames of 10 ms after 10 ms of loading, in which load() keeps 1000 bytes.

    In each frame update() has spawn() allocate twice, once by a vector; draw() frees in itself what it allocated.
    destroy() ends spawn()'s first block in the next frame.
    """
    journal = Journal()
    load = journal.stack("main", LOAD)
    spawn = journal.stack("main", UPDATE, SPAWN)
    grow = journal.stack("main", UPDATE, SPAWN_AGAIN, GROW)
    batch = journal.stack("main", DRAW)
    shrink = journal.stack("main", UPDATE, SPAWN_FREES)
    done = journal.stack("main", [("app::draw()", "draw.cpp", 58)])
    destroy = journal.stack("main", UPDATE, DESTROY)
    ms = 1_000_000
    journal.allocate(1000, 0x10, 1 * ms, load, tag="loading")
    journal.mark(10 * ms)
    for frame in range(3):
        begin = (10 + 10 * frame) * ms
        if frame:
            journal.free(0x100 + frame - 1, begin + 1 * ms, destroy)
        journal.allocate(100, 0x100 + frame, begin + 2 * ms, spawn, tag="play/spawn")
        journal.allocate(40, 0x200, begin + 3 * ms, grow, tag="play/spawn")
        journal.free(0x200, begin + 4 * ms, shrink)
        journal.allocate(500, 0x300, begin + 5 * ms, batch)
        journal.free(0x300, begin + 6 * ms, done)
        journal.mark(begin + 10 * ms)
    return journal.write(path)
