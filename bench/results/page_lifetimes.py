"""lifetimes.md: temp and temp job beside general-purpose allocators."""

from statistics import median
from typing import Any

from common import Data, ratio, table, three, words

OWN = ("nothing", "temp", "temp-cursor", "temp-job", "null")
WAYS = {"program": "program", "cold": "cold", "warm": "frames", "1": "loop"}
Figures = dict[str, Any]


def write(data: Data, targets: dict[str, Any]) -> list[str]:
    figures = data.figures("lifetime")
    rows = list(_ratios(figures["subjects"], targets))
    missed = [row[0] for row in rows if row[-1] == "no"]
    answer = f"In a game's frames {len(rows) - len(missed)} of {len(rows)} lifetime targets are met"
    answer += f"; missed: {words(missed)}." if missed else "."
    nanoseconds = [
        [name, *(_times(figures["subjects"][subject], way) for way in WAYS)]
        for subject, name in (
            ("temp", "temp"),
            ("temp-cursor", "temp, cursor"),
            ("temp-job", "temp job"),
            ("nothing", "the loop alone"),
        )
        if subject in figures["subjects"]
    ]
    fastest = ["fastest peer", *(_fastest_times(figures["subjects"], way) for way in WAYS)]
    recorded = [
        f"{name} {three(_of(one, 'recorded', 'allocate'))} and {three(_of(one, 'recorded', 'free'))} ns"
        for name, one in figures["subjects"].items()
        if "recorded" in one
    ]
    return [
        "# Lifetimes",
        "",
        answer,
        "",
        f"Medians of {figures['repeats']} interleaved runs, net of the clock. *Program*: a game's blocks, freed in its "
        "order, on a heap in its state. *Frames*: the same sizes in frames of 500 blocks. *Cold*: the same, with 2 MiB "
        f"of other memory read before each. *Loop*: 1000 blocks of {figures['block_bytes']} bytes over and over.",
        "",
        "## Ratios in the program",
        "",
        "To the fastest general-purpose allocator, as measured and less the loop, which is in both. A target is met as "
        "measured.",
        "",
        *table(["", "target", "as measured", "less the loop", "met"], rows),
        "## Nanoseconds",
        "",
        "To allocate and to free a block.",
        "",
        *table(["", *WAYS.values()], [*nanoseconds, fastest]),
        *([f"Under the recorder, to allocate and to free: {'; '.join(recorded)}.", ""] if recorded else []),
    ]


def _of(one: Figures, way: str, what: str) -> float | None:
    values = one.get(way, {}).get(what)
    return median(values) if values else None


def fastest(subjects: Figures, way: str, what: str) -> tuple[float, str] | None:
    known = [
        (value, name)
        for name, one in subjects.items()
        if name not in OWN and (value := _of(one, way, what)) is not None
    ]
    return min(known, default=None)


def _ratios(subjects: Figures, targets: dict[str, Any]) -> list[list[str]]:
    rows = []
    for title, subject, what, target in (
        ("temp, allocate", "temp", "allocate", "temp_allocate"),
        ("temp, allocate by cursor", "temp-cursor", "allocate", "temp_allocate"),
        ("temp, the frame's end", "temp", "frame_end", "temp_free"),
        ("temp, free each", "temp", "free", "temp_free"),
        ("temp, free each by cursor", "temp-cursor", "free", "temp_free"),
        ("temp job, allocate", "temp-job", "allocate", "temp_job"),
        ("temp job, free", "temp-job", "free", "temp_job"),
    ):
        call = "free" if what == "frame_end" else what
        ours, best = _of(subjects[subject], "program", what), fastest(subjects, "program", call)
        if ours is None or best is None:
            continue
        loop = _of(subjects["nothing"], "program", call) or 0.0
        plain = ours / best[0]
        # No loop is in the frame's end.
        less = max(ours - (0.0 if what == "frame_end" else loop), 0.0) / (best[0] - loop)
        limit = targets[target]
        rows.append([title, f"{limit:g}", f"{plain:.3f}", f"{less:.3f}", "yes" if plain <= limit else "no"])
    two, glibc = _of(subjects["temp-job"], "2", "allocate"), _of(subjects.get("glibc", {}), "2", "allocate")
    if two is not None and glibc:
        limit, loop = targets["temp_job_two_threads"], _of(subjects["nothing"], "2", "allocate") or 0.0
        rows.append(
            [
                "temp job, two threads, of glibc",
                f"{limit:g}",
                f"{two / glibc:.3f}",
                f"{max(two - loop, 0.0) / (glibc - loop):.3f}",
                "yes" if two <= limit * glibc else "no",
            ]
        )
    return rows


def _times(one: Figures, way: str) -> str:
    return f"{ratio(_of(one, way, 'allocate'))}, {ratio(_of(one, way, 'free'))}"


def _fastest_times(subjects: Figures, way: str) -> str:
    return ", ".join(
        f"{three(found[0])} {found[1]}" if (found := fastest(subjects, way, what)) else "–"
        for what in ("allocate", "free")
    )
