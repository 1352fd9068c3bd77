"""Stands in for `blockyard-replay` and `blockyard-probe`: writes the files of a plan or a run, measures nothing.

behaviour.json beside it, all keys optional: "fail" maps an allocator to what becomes of its runs: "crash", "killed",
"sentence", "silent", "hang" (the run lasts until somebody ends it, or "go-on" lies beside it); "slow" is seconds that
every run takes, "slow_plan" that every plan takes; "events" how many sample rows a run writes; "bad_journal" the
sentence a plan is refused with; "paced" what it says of the journal; "versions" maps an adapter's name to a version;
"log_environment" writes each run's variables to environment.json.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(sys.argv[0]).resolve().parent
BEHAVIOUR = json.loads((HERE / "behaviour.json").read_text())


def option(name: str) -> str | None:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def plan() -> None:
    if "bad_journal" in BEHAVIOUR:
        sys.exit(f"blockyard: {BEHAVIOUR['bad_journal']}")
    (HERE / "planning").touch()
    time.sleep(BEHAVIOUR.get("slow_plan", 0))
    Path(option("-o")).write_text("plan")
    (Path(option("--events-dir")) / "pairs.npy").write_text("facts")
    events = BEHAVIOUR.get("events", 10)
    print(
        json.dumps(
            {
                "events": events,
                "measured_events": events,
                "blocks": 5,
                "peak_bytes": 100,
                "peak_blocks": 2,
                "threads": 1,
                "duration_s": 0.01,
                "frames": 0,
                "preamble_blocks": 0,
                "paced": BEHAVIOUR.get("paced", True),
                "notes": ["3 events were put in order"],
            }
        )
    )


def run() -> None:
    output, allocator = Path(option("-o")), option("--allocator")
    with (HERE / "calls.log").open("a") as log:
        log.write(
            f"{option('--journal')} {allocator} {option('--pace')} {option('--touch')} {option('--repeat')}"
            f"{' untimed' if '--untimed' in sys.argv else ''}{' traced' if '--trace' in sys.argv else ''}\n"
        )
    with (HERE / "options.log").open("a") as log:
        given = [f"{name} {option(name)}" for name in ("--causes-above", "--pollute") if option(name)]
        log.write(" ".join([*given, *(flag for flag in ("--in-order", "--keep-awake") if flag in sys.argv)]) + "\n")
    if BEHAVIOUR.get("log_environment"):
        (HERE / "environment.json").write_text(json.dumps(dict(os.environ)))
    time.sleep(BEHAVIOUR.get("slow", 0))
    fate = BEHAVIOUR.get("fail", {}).get(allocator)
    if fate:
        (output / "samples.npy").write_text("half of the samples")
    if fate == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fate == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif fate == "sentence":
        sys.exit("blockyard: the allocator returned no block for 64 bytes at event 7")
    elif fate == "silent":
        sys.exit(0)
    elif fate == "hang":
        (HERE / "hanging").touch()
        for _ in range(6000):
            if (HERE / "go-on").exists():
                break
            time.sleep(0.1)
    if "--trace" in sys.argv:
        (output / "syscalls.npy").write_bytes(bytes(24))
    elif "--untimed" in sys.argv:
        (output / "bursts.npy").write_bytes(bytes(36))
    else:
        (output / "samples.npy").write_bytes(bytes(BEHAVIOUR.get("events", 10) * 36))
    (output / "run.json").write_text(
        json.dumps({"format": 1, "status": "ok", "ticks_per_ns": 2.5, "allocator": allocator})
    )


def probe() -> None:
    name = Path(sys.argv[1]).stem.removeprefix("blockyard-adapter-")
    print(json.dumps({"version": BEHAVIOUR.get("versions", {}).get(name, "1.0"), "flags": []}))


{"blockyard-probe": probe}.get(Path(sys.argv[0]).name, {"plan": plan, "run": run}.get(sys.argv[1], probe))()
