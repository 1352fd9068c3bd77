"""The demonstration: a stretch of the bundled journal on five allocators and none, in about two minutes; or on all of
them in every variant, in four."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from blockyard import allocators, journal_tool, native
from blockyard.campaign import document, drive
from blockyard.campaign.drive import Outcome
from blockyard.campaign.folder import LOCK, MACHINE, PLANS, RUNS
from blockyard.campaign.progress import Display
from blockyard.campaign.settings import Settings, Stretch, journal_name
from blockyard.errors import UserError

NAME = "demo"
STORED = "demo.txt"
REPORT = "report"
JOURNAL = "godot-shooter.byj"


@dataclass(frozen=True)
class Extent:
    """What a demonstration measures, for how long, and how long a user expects it to take. At `limit_s` no further
    repeat is begun."""

    allocators: tuple[str, ...]
    planned_s: float
    limit_s: float
    words: str


DEFAULTS = Extent(("null", "glibc", "jemalloc", "mimalloc", "tcmalloc", "blockyard"), 110.0, 130.0, "two minutes")
"""Few, so that each gets the repeats that a second demonstration's claims need to be the first's. What a second of a
game can't show: memory that grows over minutes, and what happens once in thousands of frames."""
ALL = Extent(("all",), 210.0, 230.0, "four minutes")
"""The crates and the prefaulted variants too."""

# What a run needs beyond its stretch of the journal: process start, populating, writing samples.
_OVERHEAD_S = 0.4
# A shorter stretch than this would hold too few frames to look like a game.
_SHORTEST_S = 0.9
_REPEATS = (7, 5, 3, 2)


def journal() -> Path:
    """The bundled journal: in the checkout, or in the wheel."""
    checkout = native.checkout()
    places = [Path(document.__file__).resolve().parents[1] / "journals" / JOURNAL]
    if checkout is not None:
        places.insert(0, checkout / "journals" / JOURNAL)
    for place in places:
        if place.is_file():
            return place
    raise UserError(
        f"the bundled journal {JOURNAL} is not here; take a checkout of Blockyard that has it, or record a "
        "program of your own with 'blockyard record'"
    )


def default_folder() -> Path:
    checkout = native.checkout()
    return checkout / "demo" if checkout is not None else Path("blockyard-demo")


def plan(path: Path, extent: Extent) -> Settings:
    """As long a stretch around the journal's busiest frame, and as many repeats of it, as the time allows."""
    facts = journal_tool.facts(native.call("blockyard-journal", ["info", path, "--json"]))
    known = allocators.load().values()
    variants = sum(1 if allocator.absent else 2 for allocator in known) if extent is ALL else len(extent.allocators)
    repeats, length = fit(facts.duration_ns / 1e9, variants, extent.planned_s)
    start = around(facts.frames.most_events.at_ns / 1e9, length, facts.duration_ns / 1e9)
    return Settings(
        (Stretch(journal_name(path), path, start, round(start + length, 3)),),
        extent.allocators,
        repeats=repeats,
        name=NAME,
    )


def fit(duration_s: float, variants: int, planned_s: float) -> tuple[int, float]:
    """The most repeats, each timed and untimed, whose stretch isn't too short, and that stretch's seconds; one repeat
    where nothing fits."""
    for repeats in _REPEATS:
        length = min(planned_s / (variants * repeats * 2) - _OVERHEAD_S, duration_s)
        if length >= min(_SHORTEST_S, duration_s):
            return repeats, length
    return 1, min(max(planned_s / variants / 2 - _OVERHEAD_S, _SHORTEST_S), duration_s)


def around(busiest_s: float, length_s: float, duration_s: float) -> float:
    """Where a stretch begins that has the busiest frame in its second half: play first, then the burst."""
    return round(min(max(busiest_s - 0.6 * length_s, 0.0), duration_s - length_s), 3)


def measure(folder: Path, show: Display, extent: Extent) -> Outcome:
    """Runs the demonstration, or what an interrupted one has left of it."""
    if (folder / document.FILE).is_file():
        _refuse_another(folder)
        refuse_less(folder, extent)
        try:
            return drive.resume(folder, show, within_s=extent.limit_s)
        except UserError as error:
            raise UserError(f"{error}; 'blockyard demo --again' measures again") from None
    return drive.start(plan(journal(), extent), folder, show, within_s=extent.limit_s)


def is_stored(folder: Path) -> bool:
    return (folder / STORED).is_file() and _is_demo(folder) and drive.is_complete(folder)


def forget(folder: Path) -> None:
    """Removes an earlier demonstration, and nothing that isn't one."""
    if not (folder / document.FILE).is_file():
        return
    _refuse_another(folder)
    for name in (RUNS, PLANS, REPORT):
        shutil.rmtree(folder / name, ignore_errors=True)
    # The plan last: until then an interrupted removal is still known for what it is.
    for name in (STORED, MACHINE, document.FILE, LOCK):
        (folder / name).unlink(missing_ok=True)


def refuse_less(folder: Path, extent: Extent) -> None:
    """A demonstration of some allocators can't become one of all variants: its stretch is another."""
    if extent is ALL and not any("@" in one.name for one in document.read(folder).allocators):
        raise UserError(
            f"{folder} holds a demo of some allocators in their defaults; 'blockyard demo --all --again' measures "
            "the others and all variants too"
        )


def _refuse_another(folder: Path) -> None:
    if not _is_demo(folder):
        raise UserError(f"{folder} holds a campaign that is not the demo; choose another folder")


def _is_demo(folder: Path) -> bool:
    return (folder / document.FILE).is_file() and document.read(folder).name == NAME
