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
        "Each program runs with each allocator under it by `LD_PRELOAD`, in turns. *perf* is what samples of the clock "
        "say that the program spends in the allocator: its module, what it calls of the C library, and the kernel on "
        "its behalf. *Replay* is the [total](../reference/method.md#totals) of the journal's replay, threads of the "
        "allocator included. First touch stands apart: page faults that the program takes on fresh memory, and what "
        "touching adds to the replay. *Added up* is what timed calls come to. *Rest* is the program's own code: an "
        "allocator that places blocks well makes it faster, which no replay sees. A host that gives its guest memory "
        "at the first touch makes whoever touches most seem slow; huge pages show it most.",
        "",
        *(line for one in found for line in _program(one)),
        "## Which touch",
        "",
        *_touches(found),
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


def _program(told: dict[str, Any]) -> list[str]:
    rows = []
    for name, one in told["allocators"].items():
        replay = one["replay"][TOUCH] or {}
        rest = one["cpu_s"] - one["perf_s"] - one["perf_touch_s"]
        seconds = [one["cpu_s"], rest, one["perf_s"], replay.get("total_s")]
        others = [replay.get("timed_s"), one["perf_touch_s"], replay.get("touch_s")]
        rows.append([name, *map(three, seconds), _range(replay), ratio(_ratio(one)), *map(three, others)])
    touch = ["touch, perf", "touch, replay"]
    head = ["allocator", "CPU", "rest", "perf", "replay", "interval", "ratio", "added up", *touch]
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


def _touches(found: list[dict[str, Any]]) -> list[str]:
    """How far each way of touching is from perf, first touch included on both sides."""
    rows = []
    for touch in ("first", "page", "all"):
        ratios = [
            (one["replay"][touch]["total_s"] + one["replay"][touch]["touch_s"]) / (one["perf_s"] + one["perf_touch_s"])
            for program in found
            for one in program["allocators"].values()
            if one["replay"].get(touch)
        ]
        if ratios:
            middle = sorted(ratios)[len(ratios) // 2]
            rows.append([touch, str(len(ratios)), ratio(min(ratios)), ratio(middle), ratio(max(ratios))])
    return [
        "Replay's calls with first touch, beside perf's with its page faults: the lowest, the middle and the highest "
        "ratio.",
        "",
        *table(["touch", "totals", "lowest", "middle", "highest"], rows),
    ]
