"""The tables of docs/results, as Markdown, out of what a report says (published.py)."""

from collections.abc import Callable, Iterable, Sequence

from published import NAMES, Published, Row, value

from blockyard.report import units

PERCENTILES = ("p50", "p99", "p99.9", "p99.99", "worst")
PREFAULTED = "@prefaulted"
OURS, RIVAL = "blockyard", "tlsf@prefaulted"
_WITHIN = 1.02
"""Within so much of the least, or one step of the clock, is level with it (docs/reference/method.md)."""


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], ruler: str = "--:") -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|---|" + f"{ruler}|" * (len(head) - 1),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def shown(found: Published, journal: str, name: str, variant: str) -> str:
    star = "*" if (journal, name) in found.locked else ""
    base = name.removesuffix(PREFAULTED)
    if variant == "populated" and name == RIVAL:
        return f"{base}{star}, populated"
    return f"{base}{star}{PREFAULTED}" if name.endswith(PREFAULTED) else f"{base}{star}"


def members(found: Published, journal: str, variant: str) -> list[str]:
    names = found.allocators(journal)
    if variant == "prefaulted":
        return [name for name in names if name.endswith(PREFAULTED) or name == "null"]
    defaults = [name for name in names if not name.endswith(PREFAULTED)]
    return (
        defaults
        if variant == "defaults"
        else [name for name in defaults if name != "tlsf"] + [name for name in names if name == RIVAL]
    )


def figure(row: Row | None, percentile: str) -> float | None:
    text = row.get(f"{percentile}_ns") if row else None
    return float(text) if text else None


def latency(found: Published, journal: str, view: str, variant: str) -> list[str]:
    names = members(found, journal, variant)
    columns = [(operation, percentile) for operation in ("malloc", "free") for percentile in PERCENTILES]

    def of(name: str, column: tuple[str, str]) -> float | None:
        return figure(found.latencies.get((journal, name, view, column[0])), column[1])

    rivals = [name for name in names if name != "null"]
    least = {
        column: min((known for name in rivals if (known := of(name, column)) is not None), default=None)
        for column in columns
    }

    def cell(name: str, column: tuple[str, str]) -> str:
        known, best = of(name, column), least[column]
        if known is None:
            return units.ABSENT
        text = units.duration(known) if known > 0 else f"<{units.duration(found.step_ns)}"
        level = best is not None and (known <= best * _WITHIN or known <= best + found.step_ns * 1.01)
        return f"**{text}**" if level and name != "null" else text

    def order(name: str) -> tuple[bool, float]:
        return name == "null", of(name, ("malloc", "p99.9")) or 0

    head = ["allocator", "malloc p50", *PERCENTILES[1:], "free p50", *PERCENTILES[1:]]
    return markdown(
        head,
        (
            [shown(found, journal, name, variant), *(cell(name, column) for column in columns)]
            for name in sorted(names, key=order)
        ),
    )


def peaks(found: Published, variant: str) -> list[str]:
    """Medians of the repeats, MiB."""
    names = [name for name in members(found, found.journals[0], variant) if name != "null"]

    def cell(journal: str, name: str) -> str:
        kind = "prefaulted" if name.endswith(PREFAULTED) else "defaults"
        for row in found.table(journal, f"memory, {kind}"):
            if row["allocator"].rstrip("*") == name.removesuffix(PREFAULTED):
                bytes_ = value(row["peak resident"])
                return units.ABSENT if bytes_ is None else f"{bytes_ / 2**20:.0f}"
        return units.ABSENT

    return markdown(
        ["journal", *("TLSF, populated" if variant == "populated" and name == RIVAL else name for name in names)],
        ([NAMES.get(journal, journal), *(cell(journal, name) for name in names)] for journal in found.journals),
    )


def machine(found: Published) -> list[str]:
    done = len(found.runs)
    lines = [*found.header[:2], f"{done} runs, {found.header[2].removeprefix('Runs: ').split(';')[0]}."]
    for journal in found.journals:
        lines += [f"{NAMES.get(journal, journal)}: {note}" for note in found.notes(journal)]
    return [f"- {line}" for line in lines]


def claims(found: Published) -> list[str]:
    """`ours / theirs`, and whether ours is at or below: within 2 % or a step, or with overlapping intervals."""
    rows = []
    for journal in found.journals:
        for operation in ("malloc", "free"):
            general = [name for name in members(found, journal, "defaults") if name not in (OURS, "tlsf", "null")]
            rows.append(
                [
                    NAMES.get(journal, journal),
                    operation,
                    *(
                        _claim(found, journal, operation, view, percentile, rivals)
                        for percentile, rivals in (("p99", general), ("p99.9", [RIVAL]), ("p99.99", [RIVAL]))
                        for view in ("inherent", "attributed")
                    ),
                ]
            )
    return markdown(
        [
            "journal",
            "",
            "p99, inherent",
            "attributed",
            "p99.9, inherent",
            "attributed",
            "p99.99, inherent",
            "attributed",
        ],
        rows,
    )


def _claim(found: Published, journal: str, operation: str, view: str, percentile: str, rivals: list[str]) -> str:
    ours = found.latencies.get((journal, OURS, view, operation))
    known = [
        (figure_, name, row)
        for name in rivals
        if (row := found.latencies.get((journal, name, view, operation)))
        and (figure_ := figure(row, percentile)) is not None
    ]
    mine = figure(ours, percentile)
    if ours is None or mine is None or not known:
        return units.ABSENT
    best, name, row = min(known, key=lambda one: one[0])
    words = f"{units.duration(mine)} / {units.duration(best)}" + ("" if name == RIVAL else f" ({name})")
    if mine <= best * _WITHIN or mine <= best + found.step_ns * 1.01:
        return words
    low, high = ours.get(f"{percentile}_low_ns"), row.get(f"{percentile}_high_ns")
    if low and high and float(low) <= float(high):
        return f"{words}, intervals overlap"
    return f"**{words}, above**"


def rates(found: Published) -> list[str]:
    rows = []
    for journal in found.journals:
        told = {
            variant: {
                row["allocator"].rstrip("*"): row
                for row in found.table(
                    journal, f"slow events a second: attributed, mallocs with touch and frees, {variant}"
                )
            }
            for variant in ("defaults", "prefaulted")
        }
        cells = []
        for variant, name in (("defaults", OURS), ("prefaulted", "tlsf"), ("defaults", "null")):
            row = told[variant].get(name)
            cells.append(
                units.ABSENT if row is None else " / ".join(row[f"above {limit} us"] for limit in (1, 10, 100))
            )
        rows.append([NAMES.get(journal, journal), *cells])
    return markdown(["journal", OURS, "TLSF, populated", "null"], rows)


def frames(found: Published, *rate: str) -> list[str]:
    budget = " ".join(rate)
    told: dict[str, dict[str, Row]] = {}
    play = {
        journal
        for journal in found.journals
        if any(row["journal"] == journal and row["phase"] == "play" for row in found.frames)
    }
    for row in found.frames:
        journal = row["journal"]
        if (
            row["budget"] == budget
            and row["view"] == "attributed"
            and row["phase"] == ("play" if journal in play else "all")
        ):
            told.setdefault(journal, {})[row["allocator"]] = row
    names = members(found, found.journals[0], "defaults")

    def cell(row: Row | None) -> str:
        if row is None:
            return units.ABSENT
        p99 = _percent(float(row["p99_share"])) if row["p99_share"] else units.ABSENT
        return f"{p99}; {_percent(float(row['worst_share']))}; {row['over_5_percent']}"

    return markdown(
        ["allocator", *(NAMES.get(journal, journal) + (" (play)" if journal in play else "") for journal in told)],
        (
            [shown(found, found.journals[0], name, "defaults"), *(cell(rows.get(name)) for rows in told.values())]
            for name in [*(name for name in names if name != "null"), *(["null"] if "null" in names else [])]
        ),
    )


def _percent(share: float) -> str:
    value_ = 100 * share
    return f"{value_:.0f}" if value_ >= 9.95 else f"{value_:.1f}" if value_ >= 0.995 else f"{value_:.2f}"


def causes(found: Published) -> list[str]:
    told = {
        journal: {
            row["allocator"].rstrip("*"): row
            for row in found.table(journal, "time of the slowest 0.1 % of mallocs by cause, as-run, defaults")
        }
        for journal in found.journals
    }
    names = [name for name in members(found, found.journals[0], "defaults") if name != "null"]
    return markdown(
        ["allocator", *(NAMES.get(journal, journal) for journal in told)],
        (
            [
                shown(found, found.journals[0], name, "defaults"),
                *(
                    units.ABSENT
                    if (row := rows.get(name)) is None
                    else f"{row['page fault'].removesuffix(' %')} / {row['own work'].removesuffix(' %')}"
                    for rows in told.values()
                ),
            ]
            for name in names
        ),
    )


def _range(rows: list[Row], column: str, ours: str = OURS) -> tuple[str, str, str]:
    """(least and whose, ours, most and whose) of a column of a table of report.md."""
    known = [
        (number, row["allocator"].rstrip("*"), row[column])
        for row in rows
        if row["allocator"] != "null" and (number := value(row[column])) is not None
    ]
    mine = next((cell for _, name, cell in known if name == ours), units.ABSENT)
    if not known:
        return units.ABSENT, mine, units.ABSENT
    (_, least, low), (_, most, high) = min(known), max(known)
    return f"{least} {low}", mine, f"{most} {high}"


def _three_rows(found: Published, wanted: Sequence[tuple[str, str, str]]) -> list[list[str]]:
    """Of each (what, table, column) of report.md three rows: the least, Blockyard's and the most, journals across."""
    rows = []
    for what, title, column in wanted:
        told = [_range(found.table(journal, title), column) for journal in found.journals]
        if any(least != units.ABSENT for least, _, _ in told):
            rows += [
                [f"{what}: {whose}", *(one[place] for one in told)]
                for place, whose in enumerate(("least", OURS, "most"))
            ]
    return rows


def memory(found: Published) -> list[str]:
    blocks = "internal fragmentation, a live block, defaults"
    return markdown(
        ["", *(NAMES.get(journal, journal) for journal in found.journals)],
        _three_rows(
            found,
            [
                ("internal, a live block", blocks, "all of it"),
                ("of it rounding", blocks, "rounding"),
                ("internal, of live bytes", "memory, defaults", "internal"),
                ("external, most seen", "memory, defaults", "external"),
                (
                    "given back after the largest fall",
                    "given back after the largest fall of live bytes, defaults",
                    "share",
                ),
                ("page faults a second", "memory, defaults", "faults/s"),
                ("left when all was freed", "memory, defaults", "teardown"),
            ],
        ),
    )


def deferred(found: Published) -> list[str]:
    time = "processor time, medians over repeats, defaults"
    after, threads = "after the last free, defaults", "threads and placement, defaults"
    return markdown(
        ["", *(NAMES.get(journal, journal) for journal in found.journals)],
        _three_rows(
            found,
            [
                ("sum of the timed calls", time, "timed calls"),
                ("whole process", time, "whole process"),
                ("CPU of own threads", time, "their CPU"),
                ("after the last free", after, "CPU of own threads"),
                ("a thread's start", threads, "a thread's start"),
                ("its end", threads, "its end"),
                ("walk a fresh block", threads, "walk a fresh block"),
            ],
        ),
    )


TABLES: dict[str, Callable[..., list[str]]] = {
    "machine": machine,
    "peaks": peaks,
    "latency": latency,
    "claims": claims,
    "rates": rates,
    "frames": frames,
    "causes": causes,
    "memory": memory,
    "deferred": deferred,
}
