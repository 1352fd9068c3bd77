"""Measures the gain of advice by replays, and puts it into the report."""

from pathlib import Path
from typing import Any

from blockyard import allocators, terminal
from blockyard.advise import measure, tool

ASSUMED = "glibc"
REPEATS = 5
_MOST_S = 10.0
"""A longer stretch tells little more of the same frames, and each change costs as many seconds five times."""


def add(report: dict[str, Any], folder: Path, top: int) -> None:
    """Fills report["measured"] and the gain of each measured change, and ranks by what was measured."""
    chosen = report["advice"][:top]
    from_s, to_s = stretch(report)
    own = allocator(report.get("allocator", ""))
    with terminal.reading_bar() as tell:
        gains = measure.measure(
            Path(report["request"]["journal"]),
            folder / tool.ROUTES,
            [advice["group"] for advice in chosen],
            folder=folder / tool.REPLAYS,
            allocator=own,
            repeats=REPEATS,
            stretch=(from_s, to_s),
            fps=None if report["marked_frames"] else report["fps"],
            progress=tell,
        )
    put(report, gains, (from_s, to_s), own)


def allocator(library: str) -> str:
    """The program's own, which the journal names by its library, if replays drive it and this machine has it."""
    own = allocators.of_library(library)
    if own is None:
        return ASSUMED
    (choice,) = allocators.resolve([own])
    return own if choice.missing is None else ASSUMED


def stretch(report: dict[str, Any]) -> tuple[float | None, float | None]:
    """All of a short journal; of a long one what surrounds the worst frame, or its middle."""
    whole_s = report["duration_ns"] / 1e9
    if whole_s <= _MOST_S:
        return None, None
    middle_s = report["worst_frame_ns"] / 1e9 if report["estimated_worst_frame_ns"] else whole_s / 2
    from_s = min(max(0.0, middle_s - _MOST_S / 2), whole_s - _MOST_S)
    return from_s, from_s + _MOST_S


def put(
    report: dict[str, Any],
    gains: list[measure.Gain],
    replayed: tuple[float | None, float | None] = (None, None),
    on: str = ASSUMED,
) -> None:
    plain = next(gain for gain in gains if gain.name == measure.PLAIN)
    together = next((gain for gain in gains if gain.name == measure.TOGETHER), None)
    report["measured"] = {
        "allocator": on,
        "repeats": REPEATS,
        "from_s": replayed[0],
        "to_s": replayed[1],
        "plain": plain.to_json(),
        "together": together.to_json() if together else None,
    }
    alone = {gain.groups[0]: gain for gain in gains if len(gain.groups) == 1}
    for advice in report["advice"]:
        found = alone.get(advice["group"])
        advice["gain"] = found.to_json() if found else None
    report["advice"].sort(key=lambda advice: advice["gain"]["timed_ns"]["value"] if advice["gain"] else float("inf"))
    for number, advice in enumerate(report["advice"], start=1):
        advice["id"] = number
