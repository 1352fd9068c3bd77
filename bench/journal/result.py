"""Keeps what bench/journal/run measured: `result.py SIZES TIMES`, lines `NAME EVENTS TEXT_BYTES BYJ_BYTES` and
Google Benchmark's JSON."""

import json
import sys
from pathlib import Path
from typing import Any

import bench_result


def main() -> None:
    lines = [line.split() for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    rows = [(int(events), int(text), int(byj)) for _, events, text, byj in lines]
    times = {
        one["run_name"].removesuffix("/real_time"): one
        for one in json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))["benchmarks"]
        if one.get("aggregate_name") == "median"
    }
    bench_result.write(
        "journal",
        {
            "bytes_an_event": _ends([byj / events for events, _, byj in rows]),
            "text_bytes_an_event": _ends([text / events for events, text, _ in rows]),
            "text_lines": round(times["text: count lines"]["events"]),
            "parse_s": _seconds(times["text: parse and resolve"]),
            "count_lines_s": _seconds(times["text: count lines"]),
            "write_ns": times["byj: write"]["ns_an_event"],
            "read_ns": times["byj: read"]["ns_an_event"],
            "log_lines_a_second": {
                name.removeprefix("log: "): one["events"] / _seconds(one)
                for name, one in times.items()
                if name.startswith("log: ")
            },
        },
    )


def _ends(values: list[float]) -> dict[str, float]:
    return {"least": min(values), "most": max(values)}


def _seconds(one: dict[str, Any]) -> float:
    return one["real_time"] / {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[one["time_unit"]]


if __name__ == "__main__":
    main()
