"""Keeps what bench/lifetime/run measured: `result.py LINES REPEATS BLOCK_BYTES`. summary.awk says what a line is."""

import statistics
import sys
from pathlib import Path

import bench_result

_PARTS = ("allocate", "free", "frame_end")


def main() -> None:
    lines = [line.split() for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    subjects: dict[str, dict[str, dict[str, list[float]]]] = {}
    clock = []
    for subject, how, *figures in lines:
        found = subjects.setdefault(subject, {}).setdefault(how, {part: [] for part in _PARTS})
        for part, figure in zip(_PARTS, figures, strict=False):
            found[part].append(float(figure))
        if how != "recorded":
            clock.append(float(figures[3]))
    bench_result.write(
        "lifetime",
        {
            "repeats": int(sys.argv[2]),
            "block_bytes": int(sys.argv[3]),
            "clock_ns": statistics.median(clock),
            "subjects": subjects,
        },
    )


if __name__ == "__main__":
    main()
