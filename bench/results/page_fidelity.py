"""fidelity.md: what replays say of allocators beside what the running programs spend in them."""

from itertools import combinations
from typing import Any

from common import ABSENT, Data, machine, percent, ratio, table, three

TOUCH = "page"
"""As replays touch unless told otherwise."""


def write(data: Data, target: dict[str, Any]) -> list[str]:
    told = data.documents["fidelity"]
    found = list(told["figures"].values())
    return [
        "# Replays held against programs",
        "",
        _answer(found, target),
        "",
        "Each program runs with each allocator under it by `LD_PRELOAD`, in turns; *CPU* is its processor time without "
        "perf. *perf* is what samples of the clock say that the program's threads spend in the allocator: its module, "
        "what it calls of the C library, and the kernel on its behalf. *Replay* is the "
        "[total](../reference/method.md#totals) of the journal's replay. Two things stand apart in both: *touch*, page "
        "faults on fresh memory, whoever takes them, and *own*, the allocator's own threads, which populate memory "
        "ahead when a core is free. *Added up* is what timed calls come to. *Rest* is the program's own code: an "
        "allocator that places blocks well makes it faster, which no replay sees. A host gives its guest some pages at "
        "once and others a hundred times later, so *touch* says more of the host than of the allocator.",
        "",
        *_earlier(found),
        *(line for one in found for line in _program(one)),
        *_tried(found),
        f"Measured {told['measured_at']}, {machine(told['machine'])}: `make bench-fidelity`.",
    ]


def _answer(found: list[dict[str, Any]], target: dict[str, Any]) -> str:
    ratios = [_ratio(one) for program in found for one in program["allocators"].values()]
    known = [each for each in ratios if each is not None]
    within = sum(1 / target["within"] <= each <= target["within"] for each in known)
    same, pairs = _order(found, target["differ"])
    return (
        f"Of {len(known)} totals {within} are within a factor of {target['within']:g} of perf's. Of {pairs} pairs of "
        f"allocators that differ by more than {percent(target['differ'])} % in the program, {same} stand in the same "
        f"order in the replay: {percent(same / pairs if pairs else None)} % (target {percent(target['order'])} %)."
    )


def _earlier(found: list[dict[str, Any]]) -> list[str]:
    """A caveat where figures are of a measure that told less apart."""
    names = [
        one["program"] for one in found if any("perf_own_threads_s" not in each for each in one["allocators"].values())
    ]
    if not names:
        return []
    return [
        f"The figures of {', '.join(names)} are of an earlier measure: page faults that the allocator takes and its "
        "own threads are within *perf* and *replay*, and replays touched memory that the host had not given yet. They "
        "say little until they are measured again.",
        "",
    ]


def _program(told: dict[str, Any]) -> list[str]:
    rows = []
    for name, one in told["allocators"].items():
        replay = one["replay"][TOUCH] or {}
        own = one.get("perf_own_threads_s")
        rest = one["cpu_s"] - one["perf_s"] - one["perf_touch_s"] - (own or 0.0)
        seconds = [one["cpu_s"], rest, one["perf_s"], replay.get("total_s")]
        touch = [one["perf_touch_s"], replay.get("touch_s")]
        others = [replay.get("timed_s"), *touch, own, replay.get("own_threads_s")]
        rows.append([name, *map(three, seconds), _range(replay), ratio(_ratio(one)), *map(three, others)])
    apart = ["touch, perf", "touch, replay", "own, perf", "own, replay"]
    head = ["allocator", "CPU", "rest", "perf", "replay", "interval", "ratio", "added up", *apart]
    return [
        f"## {told['program']}",
        "",
        f"{told['events']:,} events, seconds; the journal replayed at {_pace(told['pace'])}.",
        "",
        *table(head, rows),
        *_symbols(told),
    ]


def _symbols(told: dict[str, Any]) -> list[str]:
    """Where perf found each allocator most."""
    found = []
    for name, one in told["allocators"].items():
        if one["symbols"]:
            found.append(f"{name}: " + ", ".join(f"`{symbol.split()[-1]}`" for symbol in list(one["symbols"])[:2]))
    return [f"Most of perf's samples: {'; '.join(found)}.", ""] if found else []


def _pace(pace: float | None) -> str:
    return f"{pace:.3g} times its pace" if pace else "full speed"


def _range(replay: dict[str, float]) -> str:
    if replay.get("low_s") is None:
        return ABSENT
    return f"{three(max(replay['low_s'], 0))} to {three(replay['high_s'])}"


def _ratio(one: dict[str, Any], touch: str = TOUCH) -> float | None:
    replay = one["replay"].get(touch)
    return replay["total_s"] / one["perf_s"] if replay and one["perf_s"] else None


def _order(found: list[dict[str, Any]], differ: float) -> tuple[int, int]:
    """How many pairs stand in the same order, and how many there are."""
    same = pairs = 0
    for program in found:
        members = [one for one in program["allocators"].values() if _ratio(one) is not None]
        for one, two in combinations(members, 2):
            least, most = sorted((one, two), key=lambda each: each["perf_s"])
            if most["perf_s"] <= (1 + differ) * least["perf_s"]:
                continue
            pairs += 1
            same += least["replay"][TOUCH]["total_s"] < most["replay"][TOUCH]["total_s"]
    return same, pairs


def _tried(found: list[dict[str, Any]]) -> list[str]:
    """How far other ways to touch are from perf, of the programs that were replayed with them."""
    several = [one for one in found if len(next(iter(one["allocators"].values()))["replay"]) > 1]
    rows = []
    for touch in ("first", "page", "all"):
        members = [one for program in several for one in program["allocators"].values()]
        if ratios := sorted(known for one in members if (known := _ratio(one, touch)) is not None):
            rows.append([touch, str(len(ratios)), *map(ratio, (ratios[0], ratios[len(ratios) // 2], ratios[-1]))])
    if not rows:
        return []
    return [
        "## Which touch",
        "",
        f"Ratios of {', '.join(one['program'] for one in several)} by what a replay writes into a block.",
        "",
        *table(["touch", "totals", "lowest", "middle", "highest"], rows),
    ]
