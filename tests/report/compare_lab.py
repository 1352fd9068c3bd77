"""Pairs of synthetic campaigns for `blockyard compare`: the same allocators, some of them faster or slower in NEW."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from in_process import blockyard
from synthetic import Campaign, latencies, lifelike

ALLOCATORS = ("glibc", "jemalloc", "mimalloc", "mine", "null")
EVENTS = 40_000


def campaign(
    directory: Path,
    *,
    seed: int,
    allocators: Sequence[str] = ALLOCATORS,
    repeats: int = 5,
    slower: Mapping[str, float] | None = None,
    events: int = EVENTS,
    drift: float = 1.0,
    **settings: Any,
) -> Campaign:
    """`seed` is the machine's noise, which is another in each campaign; `slower` factors stretch latencies beyond the
    floor, `drift` those of all allocators."""
    made = Campaign(directory, list(allocators), repeats=repeats, **settings)
    made.ticks_per_ns, made.floors = 2.6, (36, 30)
    base, pair = lifelike(events)
    for name in allocators:
        place = ALLOCATORS.index(name.partition("@")[0]) + 1
        factor = drift * (slower or {}).get(name, 1.0)
        for repeat in range(1, repeats + 1):
            rows = latencies(base, 1, 1, place * 1000 + seed * 20 + repeat)
            for column, floor in (("call", 36), ("touch", 30)):
                beyond = np.maximum(rows[column].astype(float) - floor, 0) * factor
                rows[column] = np.where(rows[column] > 0, np.minimum(beyond + floor, 4e9), 0)
            made.run(name, rows, repeat)
    made.events(pair)
    return made


@dataclass
class Compared:
    """What the command said, and its JSON."""

    code: int
    text: str
    error: str
    facts: dict[str, Any]

    def claim(self, allocator: str, operation: str, percentile: str) -> dict[str, Any]:
        [found] = [
            claim
            for section in self.facts["sections"]
            for claim in section["claims"]
            if (claim["allocator"], claim["operation"], claim["percentile"]) == (allocator, operation, percentile)
        ]
        return found

    @property
    def notes(self) -> list[str]:
        """Those of the whole, then of the one section."""
        [section] = self.facts["sections"]
        return self.facts["notes"] + section["notes"]

    def failed(self) -> list[tuple[str, str, str]]:
        """Gates that did not pass, each with allocator and operation."""
        return [(one["gate"], one["allocator"], one["operation"]) for one in self.facts["gates"] if not one["passed"]]

    def verdicts(self, *allocators: str) -> set[str]:
        return {
            claim["verdict"]
            for section in self.facts["sections"]
            for claim in section["claims"]
            if claim["allocator"] in allocators
        }


def compare(base: Path, new: Path, *arguments: object) -> Compared:
    target = new.parent / "compared.json"
    target.unlink(missing_ok=True)
    done = blockyard("compare", base, new, "--export-json", target, *arguments)
    facts = json.loads(target.read_text()) if target.is_file() else {}
    return Compared(done.returncode, done.stdout, done.stderr, facts)


def change_json(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
