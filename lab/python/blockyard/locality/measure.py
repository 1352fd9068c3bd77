"""Runs blockyard-locality: a process of its own for each allocator and repeat, interleaved."""

import dataclasses
import os
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from blockyard import allocators, native
from blockyard.errors import UserError

OURS = ("temp", "temp-job", "persistent", "block")
_PROGRAM = "blockyard-locality"


@dataclasses.dataclass(frozen=True)
class Test:
    """What every process does."""

    __test__ = False  # pytest takes the name for its own

    count: int
    size: int
    align: int
    temp_region: int | None
    aged: bool = False


@dataclasses.dataclass(frozen=True)
class Subject:
    """One allocator, ready to be driven."""

    name: str
    arguments: tuple[str, ...]
    environment: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Measured:
    """One process: nanoseconds of whole loops, and the addresses of the first pass."""

    version: str
    cold_allocate: float
    cold_free: float
    warm_allocate: np.ndarray
    warm_free: np.ndarray
    addresses: np.ndarray


class _Cold(msgspec.Struct):
    allocate_ns: float
    free_ns: float


class _Warm(msgspec.Struct):
    allocate_ns: list[float]
    free_ns: list[float]


class _Facts(msgspec.Struct):
    version: str
    cold: _Cold
    warm: _Warm
    addresses: list[int]


def subjects(spec: Sequence[str]) -> tuple[list[Subject], list[str]]:
    """What `-a` names: our lifetimes and the lab's allocators; and a sentence for each that can't be had."""
    words = [word.strip() for part in spec for word in part.split(",") if word.strip()]
    result = [Subject(word, (word,), {}) for word in dict.fromkeys(words) if word in OURS]
    missing = []
    others = [word for word in words if word not in OURS]
    for choice in allocators.resolve(others, also=OURS) if others else []:
        if choice.missing:
            missing.append(f"{choice.name} is left out: {choice.missing}")
            continue
        given = native.arguments({"--options": choice.options or None, "--populate": choice.populate})
        result.append(Subject(choice.name, (str(choice.adapter), *given), dict(choice.environment)))
    return result, missing


def measure(
    chosen: Sequence[Subject], test: Test, repeats: int, on_run: Callable[[str, int], None]
) -> tuple[dict[str, list[Measured]], dict[str, str]]:
    """All repeats of all subjects: A B C, C B A, so that a drift of the machine hits all equally.

    One whose process fails is left out, and the others go on; the second result says why, by name.
    """
    results: dict[str, list[Measured]] = {subject.name: [] for subject in chosen}
    failed: dict[str, str] = {}
    for repeat in range(repeats):
        for subject in chosen if repeat % 2 == 0 else reversed(chosen):
            if subject.name in failed:
                continue
            on_run(subject.name, repeat + 1)
            try:
                results[subject.name].append(_run(subject, test))
            except UserError as error:
                failed[subject.name] = str(error)
                del results[subject.name]
    return results, failed


def _run(subject: Subject, test: Test) -> Measured:
    given = {"--count": test.count, "--size": test.size, "--align": test.align, "--aged": test.aged}
    if subject.name == "temp":
        given["--temp-region"] = test.temp_region
    arguments = [*subject.arguments, *native.arguments(given)]
    text = native.call(_PROGRAM, arguments, env={**os.environ, **subject.environment})
    facts = native.decoded(_PROGRAM, text, _Facts)
    return Measured(
        facts.version,
        facts.cold.allocate_ns,
        facts.cold.free_ns,
        np.array(facts.warm.allocate_ns),
        np.array(facts.warm.free_ns),
        np.array(facts.addresses, dtype=np.int64),
    )
