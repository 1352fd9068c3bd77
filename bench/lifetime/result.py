"""Prints what bench/lifetime/run measured, and keeps it: `result.py LINES REPEATS BLOCK_BYTES`.

A line is `SUBJECT HOW ALLOCATE FREE END CLOCK`, one for each process and in the order of the repeats: nanoseconds a
block, net of the clock, and what two reads of the clock took. HOW is 1, 2 (threads), warm, cold, program (frames) or
recorded. Printed are ratios of medians over the repeats, as measured and less what the loop alone (`nothing`) took in
the same run, each with the least and the greatest of the repeats' own ratios.
"""

import statistics
import sys
from collections import defaultdict
from pathlib import Path

PARTS = ("allocate", "free", "frame_end")
NO_PEERS = ("nothing", "null", "temp", "temp-cursor", "temp-job")
Figures = list[float]
"""Of one part, a repeat each."""


def over(ours: float, theirs: float) -> float:
    """-1 where nothing was measured."""
    return max(ours, 0) / theirs if theirs else -1


def ratio(ours: Figures, theirs: Figures, our_loop: Figures, their_loop: Figures) -> str:
    """`RATIO (LEAST to GREATEST)` of ours less its loop, to theirs less its own."""
    sides = list(zip(ours, theirs, our_loop, their_loop, strict=True))
    each = [over(a - c, b - d) for a, b, c, d in sides]
    a, b, c, d = (statistics.median(side) for side in (ours, theirs, our_loop, their_loop))
    return f"{over(a - c, b - d):5.3f} ({min(each):5.3f} to {max(each):5.3f})"


class Summary:
    def __init__(self, subjects: dict[str, dict[str, dict[str, Figures]]]) -> None:
        self.subjects = subjects

    def line(self, what: str, ours: tuple[str, str], how: str, peer: str, part: str, aim: str) -> None:
        """`ours`: subject and part, and no loop is in the frame's end."""
        subject, our_part = ours
        loop = self.subjects["nothing"][how]
        mine, theirs = self.subjects[subject][how][our_part], self.subjects[peer][how][part]
        none = [0.0] * len(mine)
        middles = [statistics.median(figures) for figures in (mine, theirs, loop[part])]
        print(
            f"  {what:<27} {ratio(mine, theirs, none, none)}  {ratio(mine, theirs, loop[our_part], loop[part])}  "
            f"{peer:<8} ({middles[0]:5.3f} and {middles[1]:5.3f}, loop {middles[2]:5.3f} ns)"
            + (f"  aim {aim}" if aim else "")
        )

    def all(self, how: str) -> None:
        peers = [name for name, hows in self.subjects.items() if how in hows and name not in NO_PEERS]
        fastest = {
            part: min(peers, key=lambda name: statistics.median(self.subjects[name][how][part])) for part in PARTS[:2]
        }
        for what, subject, part, peers_part, aim in (
            ("temp, allocate", "temp", "allocate", "allocate", "0.15"),
            ("temp, allocate by cursor", "temp-cursor", "allocate", "allocate", "0.15"),
            ("temp, the frame's end alone", "temp", "frame_end", "free", "0.10"),
            ("temp, free", "temp", "free", "free", "0.10"),
            ("temp, free by cursor", "temp-cursor", "free", "free", "0.10"),
            ("temp job, allocate", "temp-job", "allocate", "allocate", "0.60"),
            ("temp job, free", "temp-job", "free", "free", "0.60"),
        ):
            self.line(what, (subject, part), how, fastest[peers_part], peers_part, aim)

    def two(self, subject: str, how: str) -> tuple[float, float]:
        allocate, free = (statistics.median(self.subjects[subject][how][part]) for part in PARTS[:2])
        return allocate, free


def main() -> None:
    subjects: dict[str, dict[str, dict[str, Figures]]] = {}
    clocks = []
    for text in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        subject, how, *figures, clock = text.split()
        found = subjects.setdefault(subject, {}).setdefault(how, defaultdict(list))
        for part, figure in zip(PARTS, figures, strict=True):
            found[part].append(float(figure))
        if how != "recorded":
            clocks.append(float(clock))
    repeats, size, clock_ns = int(sys.argv[2]), int(sys.argv[3]), statistics.median(clocks)
    summary = Summary(subjects)
    print(
        f"Time a block, ratio to the fastest general-purpose allocator, medians of {repeats} runs (and the least and "
        "the greatest):\nas measured, net of the clock; and less the loop, which is in both.\n"
        f"The clock: two reads around nothing took {clock_ns:.1f} ns, which is in no figure.\n"
        f"The study's loop, 1000 blocks of {size} bytes:"
    )
    summary.all("1")
    summary.line("temp job, 2 threads, alloc.", ("temp-job", "allocate"), "2", "glibc", "allocate", "0.50")
    summary.line("temp job, 2 threads, free", ("temp-job", "free"), "2", "glibc", "free", "")
    for how, title in (
        ("warm", "Frames of 500 blocks of a real program, one after another:"),
        ("cold", "The same, 2 MiB of other memory read before each:"),
        ("program", "The program's own frames: its other blocks on the heap as well, and its order of frees:"),
    ):
        print(title)
        summary.all(how)
    told = "{:.2f} ns to allocate, {:.2f} ns to free.".format(*summary.two("null", "1"))
    print(f"A call to an allocator that does nothing (null): {told}")
    for subject, hows in subjects.items():
        if "recorded" in hows:
            told = "{:.1f} ns to allocate, {:.1f} ns to free.".format(*summary.two(subject, "recorded"))
            print(f"Under the recorder, {subject}: {told}")
    import bench_result

    kept = {"repeats": repeats, "block_bytes": size, "clock_ns": clock_ns, "subjects": subjects}
    bench_result.write("lifetime", kept)


if __name__ == "__main__":
    main()
