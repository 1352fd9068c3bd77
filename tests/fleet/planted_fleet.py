"""Journals of a game whose sites, frames and faults are known, written as text."""

from pathlib import Path

from stacked import Journal

MS = 1_000_000
_LOAD = [("app::load()", "load.cpp", 10)]
_UPDATE = [("app::update()", "update.cpp", 20)]
_CACHE = [("app::cache()", "cache.cpp", 30)]
_BURST = [("app::burst()", "burst.cpp", 40)]


def game(
    path: Path,
    *,
    frames: int = 20,
    bytes_a_frame: int = 100,
    leak: int = 0,
    slow_bursts: int = 0,
    quick_bursts: int = 0,
    started: str = "2026-01-01T00:00:00Z",
) -> Path:
    """Each frame of 10 ms allocates and frees a block in update(); cache() keeps `leak` bytes a frame. The last frames
    are bursts of forty blocks, which take 10 ms each, the slow ones 30 ms; load() keeps one block of ten that it
    allocates."""
    journal = Journal()
    journal.line(f"# started-at {started}")
    load, update, cache, burst = (journal.stack("main", one) for one in (_LOAD, _UPDATE, _CACHE, _BURST))
    now = 1 * MS
    for block in range(20):
        journal.allocate(32, 0x1000 + block, now, load)
    for block in range(1, 20):
        journal.free(0x1000 + block, now, load)
    now = 10 * MS
    journal.mark(now)
    for frame in range(frames + slow_bursts + quick_bursts):
        journal.allocate(bytes_a_frame, 0x20, now + MS, update)
        journal.free(0x20, now + 2 * MS, update)
        if leak:
            journal.allocate(leak, 0x100000 + frame, now + 3 * MS, cache)
        if frame >= frames:
            for block in range(40):
                journal.allocate(8, 0x5000 + block, now + 4 * MS, burst)
            for block in range(40):
                journal.free(0x5000 + block, now + 5 * MS, burst)
        now += (30 if frame >= frames + quick_bursts else 10) * MS
        journal.mark(now)
    path.parent.mkdir(parents=True, exist_ok=True)
    return journal.write(path)
