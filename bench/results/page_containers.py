"""containers.md: containers and block allocators beside their peers."""

from collections.abc import Iterator
from statistics import geometric_mean
from typing import Any

from common import ABSENT, Data, ratio, table, three

PHASES = {
    "list": ("insert", "iterate", "clear", "bytes"),
    "hash-map": ("insert", "find", "iterate", "clear", "bytes"),
    "hash-map-string": ("insert", "find", "iterate", "clear", "bytes"),
    "ordered-map": ("insert", "find", "iterate", "clear", "bytes"),
    "blocks": ("allocate", "walk", "free", "free_random", "reallocate", "pair"),
}

KEYS = {
    "dense": "integers 0 to N-1, in order",
    "random": "random 64-bit integers",
    "addresses": "addresses of blocks of 48 bytes",
    "strings": "random strings of 16 to 31 bytes",
    "paths": "strings with a common prefix (`res://scenes/...`)",
}
_KEY_PHASES = ("insert", "find", "miss", "dependent_find", "erase", "iterate", "bytes")

_ANSWER = (
    ("list", "insert", "std/glibc"),
    ("hash-random-1000", "find", "absl::node_hash_map"),
    ("hash-strings-1000", "find", "absl::node_hash_map"),
    ("ordered-map", "find", "absl::btree_map"),
)
"""What the first sentence tells: workload, phase and peer."""


def write(data: Data) -> list[str]:
    figures = data.figures("container")
    ratios = [(row, value) for row in figures["ratios"] for value in (row["cold"], row["warm"]) if value is not None]
    met = sum(value <= row["target"] for row, value in ratios)
    missed = [row for row, value in ratios if value > row["target"]]
    told = [
        f"{_name(row)} {row['cold']:.2f} of `{row['peer']}`"
        for row in figures["ratios"]
        if (row["workload"], row["phase"], row["peer"]) in _ANSWER
    ]
    answer = f"{met} of {len(ratios)} ratios to the peers meet their targets: {'; '.join(told)}."
    if missed:
        most = max(100 * (value / row["target"] - 1) for row, value in ratios if value > row["target"])
        answer += f" The others are up to {most:.0f} % above."
    for workload in figures["workloads"].values():
        rows = workload["rows"].values()
        if any(row.get("bytes", 1) < 1 for row in rows):  # what set the case up had freed the memory that the map took
            for row in rows:
                row.pop("bytes", None)
    shown = [row for row in figures["ratios"] if not _is_own(row) and key_case(row["workload"]) is None]
    return [
        "# Containers and block allocators",
        "",
        answer,
        "",
        f"Processor time, medians of up to {figures['processes']} processes each. *Cold* is a process's first filling, "
        "*warm* the second of the same container. Blockyard's memory is in huge pages beyond 2 MiB, the peers' is as "
        "they ask for it.",
        "",
        "## Ratios",
        "",
        "Ours to the peer's; lower is better, bold is above the target.",
        "",
        *table(["", "", "keys", "peer", "target", "cold", "warm"], [_ratio(row) for row in shown]),
        *_own(figures["ratios"]),
        *table(
            ["size", "target", "measured"],
            (
                [name, f"{one['target']:g}", _bold(one["value"], one["target"])]
                for name, one in figures["sizes"].items()
            ),
        ),
        *_better(figures["workloads"]),
        *[line for key, phases in PHASES.items() for line in _peers(figures["workloads"].get(key), phases)],
        *_keys(figures["workloads"], figures["ratios"]),
    ]


def key_case(name: str) -> tuple[str, str, int] | None:
    """The container, the keys and the number of entries of a workload of one distribution of keys."""
    container, _, rest = name.partition("-")
    keys, _, entries = rest.partition("-")
    return (container, keys, int(entries)) if keys in KEYS and entries.isdigit() else None


def _keys(workloads: dict[str, Any], ratios: list[dict[str, Any]]) -> list[str]:
    """A table for each container: all distributions of keys at all sizes."""
    missed = {(row["workload"], row["ours"], row["phase"]) for row in ratios if (row["cold"] or 0) > row["target"]}
    tables: dict[str, list[list[str]]] = {}
    for name, workload in workloads.items():
        if (case := key_case(name)) is None:
            continue
        container, keys, entries = case
        for number, (row, values) in enumerate(workload["rows"].items()):
            cells = [ABSENT if values.get(phase) is None else three(values[phase]) for phase in _KEY_PHASES]
            marked = [
                f"**{cell}**" if (name, row, phase) in missed else cell
                for phase, cell in zip(_KEY_PHASES, cells, strict=True)
            ]
            first = [keys, f"{entries:,}"] if number == 0 else ["", ""]
            tables.setdefault(container, []).append([*first, row, *marked])
    if not tables:
        return []
    head = ["keys", "entries", "ns", "insert", "find", "miss", "dependent", "erase", "iterate", "bytes"]
    return [
        "## Keys",
        "",
        "; ".join(f"*{name}*: {told}" for name, told in KEYS.items())
        + ". A *dependent* find looks for the key that the "
        "one before returned. Bytes are of an entry, with its string. Bold is above a target.",
        "",
        *[line for rows in tables.values() for line in table(head, rows)],
    ]


def _better(workloads: dict[str, Any]) -> list[str]:
    """For each container, the peers that are faster or smaller, and at what."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for name, workload in workloads.items():
        if (case := key_case(name)) is not None:
            phases, size = _KEY_PHASES, _SIZES[case[2] >= _LARGE]
        elif name in _NODES:
            phases, size = PHASES[name], _SIZES[True]
        else:
            continue
        (ours, mine), *rest = workload["rows"].items()
        for peer, phase, value in _figures_of_peers(rest, phases):
            if value > 0 and mine.get(phase, 0) > 0:
                found.setdefault((ours, size, peer), {}).setdefault(phase, []).append(mine[phase] / value)
    rows = []
    for (ours, size, peer), ratios in sorted(found.items()):
        means = {phase: geometric_mean(values) for phase, values in ratios.items()}
        if max(means.values()) > _BEYOND:
            shown = (ratio(means[phase]) if means.get(phase, 0) > _BEYOND else "" for phase in _TOLD)
            rows.append([ours, size, peer, *shown])
    return [
        "## When a peer is the better choice",
        "",
        "Ours to the peer's, the geometric mean of all keys and sizes below, where it is above "
        f"{_BEYOND:g}. *Few* entries are less than {_LARGE:,}. Of the peers, `absl::flat_hash_map` and "
        "`absl::btree_map` move their elements; ours never move.",
        "",
        *table(["ours", "entries", "peer", *(phase.replace("_find", "") for phase in _TOLD)], rows),
    ]


_TOLD = ("insert", "find", "miss", "dependent_find", "erase", "iterate", "clear", "bytes")
_NODES = ("list", "hash-map", "hash-map-string", "ordered-map")
_LARGE = 100_000
_SIZES = {False: "few", True: "many"}
_BEYOND = 1.05


def _figures_of_peers(
    rows: list[tuple[str, dict[str, float]]], phases: tuple[str, ...]
) -> Iterator[tuple[str, str, float]]:
    """The peer, the phase and the figure; of the standard's containers those on glibc."""
    for row, figures in rows:
        peer = row.removesuffix("/glibc")
        if "/" not in peer and not peer.endswith(("-direct", *_COMPARISONS)):
            for phase in phases:
                if phase in figures:
                    yield peer, phase, figures[phase]


def _is_own(row: dict[str, Any]) -> bool:
    """Static pools beside an allocator of the container's own."""
    return row["peer"].endswith("-direct")


def _own(ratios: list[dict[str, Any]]) -> list[str]:
    values = [(row[how], row) for row in ratios if _is_own(row) for how in _HOW if row[how] is not None]
    if not values:
        return []
    missed = [value for value, row in values if value > row["target"]]
    told = f" The others take up to {max(missed):.2f}." if missed else ""
    return [
        f"Containers on static pools take at most {values[0][1]['target']:g} of the time on an allocator of their own "
        f"in {len(values) - len(missed)} of {len(values)} figures.{told}",
        "",
    ]


def _ratio(row: dict[str, Any]) -> list[str]:
    peer = row["peer"] if row["peer_phase"] == row["phase"] else f"{row['peer']} {row['peer_phase']}".replace("_", " ")
    name = [row["ours"], row["phase"].replace("_", " "), _KINDS.get(row["workload"], "")]
    return [*name, peer, f"{row['target']:g}", *(_bold(row[how], row["target"]) for how in _HOW)]


def _name(row: dict[str, Any]) -> str:
    kind = _KINDS.get(row["workload"], "")
    if (case := key_case(row["workload"])) is not None:
        kind = f"{case[2]:,} {case[1]}"
    return f"{row['ours']} {row['phase'].replace('_', ' ')}{', ' if kind else ''}{kind}"


_KINDS = {"hash-map": "dense", "hash-map-string": "dense to strings", "ordered-map": "random"}
"""What the rows of a workload of one kind of keys say of them."""
_COMPARISONS = ("-malloc", "-paged")
"""Our containers on another's nodes: they explain, but nobody chooses them."""
_HOW = ("cold", "warm")


def _bold(value: float | None, target: float) -> str:
    return "" if value is None else ratio(value) if value <= target else f"**{ratio(value)}**"


def _peers(workload: dict[str, Any] | None, phases: tuple[str, ...]) -> list[str]:
    if not workload:
        return []
    rows = [
        [name, *(ABSENT if (value := row.get(phase)) is None else three(value) for phase in phases)]
        for name, row in workload["rows"].items()
        if not name.endswith(_COMPARISONS)
    ]
    return [
        f"## {workload['title']}".replace("<", "\\<"),
        "",
        *table(["ns per operation", *(phase.replace("_", " ") for phase in phases)], rows),
    ]
