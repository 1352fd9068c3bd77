"""Every row that was measured, peers without an aim included, as a page of tables."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

HEAD = """# Containers and block allocators beside all their peers

Written by `bench/container/run --tables`: every implementation, in one run, on the machine of
[containers.md](../containers.md). CPU nanoseconds an operation; *bytes* are resident bytes an element, *peak gb* is the
process's peak; *warm* is the second filling of the same process. What stands after a stroke is the malloc underneath.
Blockyard's memory is in huge pages beyond 2 MiB; peers' memory is as they ask for it.
"""


def table(title: str, rows: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
    """One workload: a line for each implementation, a column for each phase."""
    phases = list(dict.fromkeys(phase for phases in rows.values() for phase in phases))
    counts = [len(values) for phases in rows.values() for values in phases.values()]
    processes = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    lines = [
        f"## {title}".replace("<", "\\<"),
        "",
        f"Medians of {processes} processes each.",
        "",
        "| | " + " | ".join(phase.replace("_", " ") for phase in phases) + " |",
        "|---|" + "--:|" * len(phases),
    ]
    for row, values in rows.items():
        cells = (f"{statistics.median(values[phase]):.2f}" if phase in values else "" for phase in phases)
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def write(path: Path, workloads: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> None:
    lines = [line for title, rows in workloads.items() for line in table(title, rows)]
    path.write_text("\n".join([HEAD, *lines]).rstrip("\n") + "\n")
