"""engines.md: what libraries pay for allocation on their own allocator and behind their hook, and what a frame sees."""

import re
from typing import Any

from common import ABSENT, MIB, Data, machine, ns, table, three, words

NAMES = {"lua": "Lua", "luajit": "LuaJIT", "enet": "ENet"}
OWN, OURS = "unchanged", "blockyard"


def write(data: Data) -> list[str]:
    told = data.documents["engines"]
    found = told["figures"]
    runs = words(sorted({str(one["trial"]["runs"]) for one in found.values()}))
    return [
        "# Libraries on the heap",
        "",
        _answer(found),
        "",
        "The three libraries whose examples allocate most, with [the files that put the heap behind their "
        "hooks](../guide/engines.md#engines-and-libraries). Lua and LuaJIT run a script that makes 200 objects a "
        "frame, ENet sends 64 packets there and back.",
        "",
        "*Calls*: microseconds that all allocation of a frame takes in a [replay](../guide/replay.md) of what came "
        "through the hook, with the ends of its interval. *Frame*: of the program itself, in a "
        f"[trial](../guide/trial.md) of {runs} runs each.",
        "",
        *table(
            ["", "allocations per frame", "calls, glibc", "calls, ours"]
            + [f"{what}, {whose}" for what in ("frame p50", "frame p99", "peak memory") for whose in ("own", "ours")],
            [_row(name, one) for name, one in found.items()],
        ),
        "Own is glibc's malloc for Lua and ENet, and an allocator built into LuaJIT. What the trials claim:",
        "",
        *(f"- **{NAMES[name]}**: {_claims(one)}" for name, one in found.items()),
        "",
        f"Measured {told['measured_at']}, {machine(told['machine'])}{_busy(found)}: `make bench PARTS=engines`.",
    ]


def _answer(found: dict[str, Any]) -> str:
    seen: dict[str, list[str]] = {"faster": [], "slower": [], "no": []}
    for name, one in found.items():
        text = " ".join(one["trial"]["claims"])
        way = next((way for way in ("faster", "slower") if re.search(rf"is {way} by .* at frame", text)), "no")
        seen[way].append(NAMES[name])
    parts = [f"faster for {words(seen['faster'])}"] if seen["faster"] else []
    parts += [f"slower for {words(seen['slower'])}"] if seen["slower"] else []
    parts += [f"no different, as far as these runs can show, for {words(seen['no'])}"] if seen["no"] else []
    return f"With the heap behind the hook, frame times are {'; '.join(parts)}; processor time and memory stand below."


def _busy(found: dict[str, Any]) -> str:
    most = max(one["busy_cores"] for one in found.values())
    return f", *busy machine*, where others used up to {most:g} cores" if most else ""


def _row(name: str, one: dict[str, Any]) -> list[str]:
    calls = [one["replay_us_a_frame"].get(which) for which in ("glibc", OURS)]
    figures = [one["trial"]["figures"][which] for which in (OWN, OURS)]
    return [
        NAMES[name],
        f"{one['allocations_a_frame']:,.0f}",
        *(_range(each) for each in calls),
        *(ns(each[what]) for what in ("frame p50", "frame p99") for each in figures),
        *(f"{three(each['peak memory'] / MIB)} MiB" for each in figures),
    ]


def _range(total: list[float | None] | None) -> str:
    if not total or total[0] is None:
        return ABSENT
    value, *ends = total
    return three(value) + (f" ({three(ends[0])} to {three(ends[1])})" if None not in ends else "")


def _claims(one: dict[str, Any]) -> str:
    return " ".join(one["trial"]["claims"])
