"""A campaign on a real Slurm of two nodes: whatever dies on the way, the folder becomes that of a local run.

Two nodes on one machine make each other busy, so a program of the tests' own judges the nodes; one test shows that the
real check refuses. What runs is a stand-in for the replay, as in the tests of campaigns.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_lab import Lab
from slurm_lab import NODES, Slurm, wait_for
from the_command import refusal, success

from blockyard.campaign.slurm import Job

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def own_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    try:
        # Sockets have short names, which pytest's folders may exceed.
        slurm = Slurm(tmp_path_factory.mktemp("s"))
    except OSError as error:
        pytest.skip(f"SKIPPED LOUDLY: Slurm can't start here ({error}), so campaigns on a cluster are not tested")
    yield slurm
    slurm.stop()


@pytest.fixture
def slurm(own_slurm: Slurm) -> Iterator[Slurm]:
    yield own_slurm
    own_slurm.revive()


class Cluster:
    """The lab's commands, where Slurm hears them."""

    def __init__(self, lab: Lab, slurm: Slurm) -> None:
        self.lab, self.slurm = lab, slurm
        self.check = lab.folder / "check"
        self.judge("exit 0")
        self.journal = lab.journal("game.txt")

    def judge(self, script: str) -> None:
        self.check.write_text(f"#!/bin/sh\n{script}\n")
        self.check.chmod(0o755)

    def blockyard(self, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
        given = {"SLURM_CONF": str(self.slurm.conf), "BLOCKYARD_NODE_CHECK": str(self.check), **more}
        return self.lab.blockyard(*arguments, **given)

    def submit(self, repeats: int, **more: str) -> None:
        done = self.blockyard(
            *("replay", self.journal, "-a", "glibc,null", "--no-totals", "--repeats", repeats),
            *("--on", "slurm:all", "-o", "results"),
            **more,
        )
        assert done.returncode == 0 and f"{repeats} of {repeats} shards submitted" in done.stdout, done.stderr

    def status(self, *options: str) -> dict:
        done = self.blockyard("status", "results", "--json", *options)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def hanging(self) -> bool:
        return (self.lab.build / "hanging").exists()

    def nodes(self) -> list[str]:
        joined = json.loads((self.lab.folder / "results" / "machine.json").read_text())["joined"]
        return [part["machine"]["node"] for part in joined]


@pytest.fixture
def cluster(lab: Lab, slurm: Slurm) -> Cluster:
    return Cluster(lab, slurm)


def everything(repeats: int) -> set[str]:
    return {f"game/{name}/1x-page/{repeat}" for name in ("glibc", "null") for repeat in range(1, repeats + 1)}


def test_twelve_runs_in_two_arrays_end_as_the_folder_of_a_local_run(cluster: Cluster) -> None:
    lab = cluster.lab
    cluster.submit(6)
    arrays = (lab.folder / "results" / "cluster" / "jobs.jsonl").read_text().splitlines()
    assert [json.loads(line)["shards"] for line in arrays] == [[1, 2, 3, 4], [5, 6]]
    done = cluster.blockyard("status", "results", "--wait")
    assert done.returncode == 0 and done.stdout.startswith("All 6 shards are done and joined."), done.stderr
    said = json.loads(cluster.blockyard("status", "results", "--json", PATH="/nothing/of/slurm").stdout)
    assert said["whole"] and said["runs"] == said["of"] == 12
    assert lab.runs() == everything(6) and sorted(set(cluster.nodes())) == ["n1", "n2"]
    success(lab.replay(cluster.journal, "-a", "glibc,null", "--repeats", 6, output="local"))
    here, there = (json.loads((lab.folder / name / "campaign.json").read_text()) for name in ("local", "results"))
    assert {**here, "created_at": ""} == {**there, "created_at": ""}
    assert "runs measured" in lab.replay("--resume", output="results").stdout


def test_what_a_dead_node_was_running_is_run_again_elsewhere(cluster: Cluster) -> None:
    lab = cluster.lab
    lab.behave(fail={"null": "hang"})
    cluster.submit(1)
    wait_for(cluster.hanging, "a run hangs")
    (job,) = (line for line in cluster.slurm.run("squeue", "-h", "-t", "R", "-o", "%N").stdout.split())
    lab.behave()
    cluster.slurm.kill_node(job)
    assert cluster.status("--wait")["whole"]
    assert lab.runs() == everything(1) and cluster.nodes() == [({"n1", "n2"} - {job}).pop()]


def test_a_cancelled_campaign_says_so_and_is_resumed(cluster: Cluster) -> None:
    lab = cluster.lab
    lab.behave(fail={"null": "hang"})
    cluster.submit(3)
    wait_for(cluster.hanging, "a run hangs")
    (name,) = set(cluster.slurm.run("squeue", "-h", "-o", "%j").stdout.split())
    pids = [pid for node in NODES for pid in cluster.slurm.processes_on(node)]
    assert any(b"SLURM_HINT=nomultithread" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in pids)
    cluster.slurm.run("scancel", f"--name={name}")
    wait_for(lambda: not cluster.status()["queued"], "all is cancelled")
    done = cluster.blockyard("status", "results")
    assert done.returncode == 1 and "CANCELLED" in done.stdout and "replay --resume -o results" in done.stdout
    lab.behave()
    resumed = cluster.blockyard("replay", "--resume", "-o", "results")
    assert "shards submitted" in resumed.stdout, resumed.stderr
    assert cluster.status("--wait")["whole"] and lab.runs() == everything(3)


def test_a_controller_that_is_killed_and_comes_back_ends_the_campaign(cluster: Cluster) -> None:
    """It is killed while two shards run: one that ends between its last save and its death runs on in its books."""
    cluster.lab.behave(fail={"null": "hang"})
    cluster.submit(3)
    running = ("squeue", "-h", "-t", "R", "-o", "%N")
    wait_for(lambda: len(cluster.slurm.run(*running).stdout.split()) == len(NODES), "two shards run")
    cluster.slurm.kill_controller()
    cluster.slurm.start_controller()
    wait_for(lambda: cluster.slurm.run("sinfo").returncode == 0, "the controller answers")
    (cluster.lab.build / "go-on").touch()
    assert cluster.status("--wait")["whole"] and cluster.lab.runs() == everything(3)


def test_an_unfit_node_refuses_and_its_shards_run_elsewhere(cluster: Cluster) -> None:
    cluster.judge('[ "$SLURMD_NODENAME" != n1 ] || { echo "the fan is loud"; exit 1; }')
    cluster.submit(3)
    assert cluster.status("--wait")["whole"] and set(cluster.nodes()) == {"n2"}
    refused = (cluster.lab.folder / "results" / "cluster" / "refused.jsonl").read_text()
    assert "the fan is loud" in refused and '"n1"' in refused


def test_where_every_node_is_busy_the_real_check_refuses_them_all(cluster: Cluster) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        cluster.submit(1, BLOCKYARD_NODE_CHECK="")
        done = cluster.blockyard("status", "results", "--wait")
    finally:
        busy.kill()
        busy.wait()
    assert done.returncode == 1
    assert "n1 refused: busy" in done.stdout and "n2 refused: busy" in done.stdout and not cluster.lab.calls()


@pytest.mark.parametrize("state, queued", [("PENDING", True), ("COMPLETING", True), ("PREEMPTED", False)])
def test_a_shard_is_submitted_again_by_resume_only_once_slurm_has_ended_it(state: str, queued: bool) -> None:
    assert Job(1, 0, state, "None", "n1").is_queued == queued


def test_what_is_no_cluster_is_refused(lab: Lab) -> None:
    journal = lab.journal("game.txt")
    for words, *arguments in (
        ("'pbs' is no cluster", "replay", journal, "-a", "glibc", "--on", "pbs", "-o", "r"),
        ("holds no campaign of a cluster", "status", lab.folder),
        ("leave --shard", "replay", journal, "-a", "glibc", "--on", "slurm", "--shard", "1/2", "-o", "r"),
    ):
        assert words in refusal(lab.blockyard(*arguments))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
