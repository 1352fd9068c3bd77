"""examples/ci/campaign.yml: a workflow that GitHub can read, whose commands give the results of a local run."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import the_command
import yaml

from blockyard import native

WORKFLOW = yaml.safe_load((the_command.ROOT / "examples" / "ci" / "campaign.yml").read_text())
SHARES = WORKFLOW["jobs"]["share"]["strategy"]["matrix"]["share"]
CAMPAIGN = """\
allocators = ["glibc", "null"]
pace = ["max"]
repeats = 3
totals = false

[[journal]]
name = "game"
path = "game.txt"
"""


def commands(job: str) -> list[str]:
    return [step["run"] for step in WORKFLOW["jobs"][job]["steps"] if "run" in step]


def test_the_jobs_hand_on_what_the_join_reads() -> None:
    assert WORKFLOW["jobs"]["join"]["needs"] == "share"
    assert all("runs-on" in job and all("uses" in step or "run" in step for step in job["steps"]) for job in _jobs())
    (upload,) = (step for step in WORKFLOW["jobs"]["share"]["steps"] if "upload-artifact" in step.get("uses", ""))
    assert upload["with"]["name"] == upload["with"]["path"]
    # A share's lock and what begins with a dot belong to it.
    assert upload["with"]["include-hidden-files"] is True
    joined = re.findall(r"share-\d+", " ".join(commands("join")))
    assert joined == [upload["with"]["name"].replace("${{ matrix.share }}", str(share)) for share in SHARES]
    assert any("download-artifact" in step.get("uses", "") for step in WORKFLOW["jobs"]["join"]["steps"])


def _jobs() -> list[dict]:
    return list(WORKFLOW["jobs"].values())


@pytest.mark.skipif(
    native.find("blockyard-replay") is None,
    reason="SKIPPED LOUDLY: the native programs are not built (make build), so the workflow's commands are not run",
)
def test_its_commands_measure_every_run_and_report(tmp_path: Path) -> None:
    events = [
        line for n in range(200) for line in (f"a 64 {n + 1:x}000 1 {n * 1000}", f"f {n + 1:x}000 1 {n * 1000 + 500}")
    ]
    (tmp_path / "game.txt").write_text("\n".join(events) + "\n")
    (tmp_path / "campaign.toml").write_text(CAMPAIGN)
    command = tmp_path / "bin" / "blockyard"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {" ".join(the_command.line())} "$@"\n')
    command.chmod(0o755)
    shares = [run.replace("${{ matrix.share }}", str(share)) for share in SHARES for run in commands("share")]
    for run in [*shares, *commands("join")]:
        done = subprocess.run(
            ["sh", "-ec", run],
            cwd=tmp_path,
            env=the_command.environment(PATH=f"{command.parent}:{os.environ['PATH']}"),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "results" / "runs").glob("*/*/*/*/run.json"))) == 6
    assert (tmp_path / "results" / "report" / "report.txt").is_file()
