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
        "Each program runs with each allocator under it by `LD_PRELOAD`, in turns.",
        "",
        *table(
            ["column", "seconds of"],
            [
                ["CPU", "the program's processor time, without perf"],
                ["perf", "samples in the allocator, what it calls of the C library, and the kernel on its behalf"],
                ["replay", "the [total](../reference/method.md#totals) of the journal's replay"],
                ["touch", "page faults on fresh memory, whoever takes them: the host's slowness more than anything"],
                ["own", "the allocator's own threads"],
                ["added up", "all timed calls"],
                ["rest", "the program's own code, which the placement of blocks changes and no replay sees"],
            ],
        ),
        *(line for one in found for line in _program(one)),
        *_tried(found),
        f"Measured {told['measured_at']}, {machine(told['machine'])}: `make bench-fidelity`.",
    ]


def _answer(found: list[dict[str, Any]], target: dict[str, Any]) -> str:
    ratios = [_ratio(one) for program in found for one in program["allocators"].values()]
    known = [each for each in ratios if each is not None]
    within = sum(1 / target["within"] <= each <= target["within"] for each in known)
    same, pairs = _order(found, target["differ"])
    earlier = [one["program"] for one in found if _is_earlier(one)]
    caveat = (
        f"Measure {', '.join(earlier)} again before you rely on them: *perf* and *replay* still hold page faults of "
        "the allocator and its own threads. "
    )
    return (caveat if earlier else "") + (
        f"Of {len(known)} totals {within} are within a factor of {target['within']:g} of perf's. Of {pairs} pairs of "
        f"allocators that differ by more than {percent(target['differ'])} % in the program, {same} stand in the same "
        f"order in the replay: {percent(same / pairs if pairs else None)} % (target {percent(target['order'])} %)."
    )


def _is_earlier(program: dict[str, Any]) -> bool:
    """Whether the figures are of a measure that told less apart."""
    return any("perf_own_threads_s" not in each for each in program["allocators"].values())


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
    return [f"## {told['program']}", "", f"{told['events']:,} events at {_pace(told['pace'])}.", "", *table(head, rows)]


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
