"""A campaign on a cluster: laid out in one shared folder, run share by share, joined at the end.

DIR/cluster/ has `plan/` (the whole campaign), `cluster.json`, `jobs.jsonl` (what was submitted), `shards/N/` (a share
as `replay --shard` writes it), `refused.jsonl` (nodes that did not measure) and `logs/`. The joined campaign takes its
place in DIR itself, as a local run would have left it.
"""

import fcntl
import json
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from blockyard.campaign import document, drive, machine, slurm
from blockyard.campaign.document import Campaign
from blockyard.campaign.facts import MachineFacts
from blockyard.campaign.folder import RUNS, Folder, disk_errors
from blockyard.campaign.merge import merge
from blockyard.campaign.progress import Display
from blockyard.campaign.schedule import rounds
from blockyard.campaign.settings import Settings
from blockyard.errors import UserError
from blockyard.files import whole_text

CLUSTER = "cluster"
_FORMAT = 1
CHECK = "BLOCKYARD_NODE_CHECK"
"""Names a program that judges a node instead of Blockyard: it fails, and prints why, where a shard should not run."""


@dataclass(frozen=True)
class Cluster:
    """One campaign's folder; `shards` is how many shares it has."""

    root: Path
    shards: int
    partition: str | None

    @property
    def own(self) -> Path:
        return self.root / CLUSTER

    @property
    def name(self) -> str:
        """Of its jobs: another campaign's have another."""
        return f"blockyard-{sha256(str(self.own.resolve()).encode()).hexdigest()[:12]}"

    def shard(self, number: int) -> Path:
        return self.own / "shards" / str(number)

    def is_done(self, number: int) -> bool:
        return (self.shard(number) / "done.json").is_file()

    def missing(self) -> list[int]:
        return [number for number in range(1, self.shards + 1) if not self.is_done(number)]

    @property
    def is_whole(self) -> bool:
        return (self.root / document.FILE).is_file()


def is_one(root: Path) -> bool:
    return (root / CLUSTER / "cluster.json").is_file()


def read(root: Path) -> Cluster:
    try:
        fields = json.loads((root / CLUSTER / "cluster.json").read_text(encoding="utf-8"))
        if fields["format"] != _FORMAT:
            raise UserError(f"{root} was laid out by another version of Blockyard; use that one")
        return Cluster(root, int(fields["shards"]), fields["partition"])
    except FileNotFoundError:
        raise UserError(
            f"{root} holds no campaign of a cluster; 'blockyard replay ... --on slurm -o {root}' makes one"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{root / CLUSTER / 'cluster.json'} is damaged; submit the campaign into a new folder"
        ) from None


def start(wanted: Settings, root: Path, partition: str | None, show: Display) -> Cluster:
    """Plans the campaign into `root`, new or empty, and submits all of it: a share for each repeat of a journal, with
    all its allocators, so that what is compared ran on one machine, and repeats on many."""
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UserError(f"{root} already holds something; choose a new or empty folder, or go on with --resume")
    plan = root / CLUSTER / "plan"
    campaign = drive.lay_out(wanted, plan, show)
    cluster = Cluster(root, rounds(campaign.all_runs()), partition)
    fields = {"format": _FORMAT, "shards": cluster.shards, "partition": partition}
    with disk_errors(root):
        for name in ("logs", "shards"):
            (cluster.own / name).mkdir()
        whole_text(cluster.own / "cluster.json", json.dumps(fields) + "\n")
    submit_merge(cluster, submit(cluster, range(1, cluster.shards + 1)))
    return cluster


def resume(root: Path) -> tuple[Cluster, int]:
    """Submits what is neither done nor queued; how many shares that is."""
    cluster = read(root)
    if cluster.is_whole:
        return cluster, 0
    queued = {number for number, job in by_shard(cluster).items() if job.is_queued}
    todo = [number for number in cluster.missing() if number not in queued]
    if todo or not any(job.is_queued for job in slurm.jobs(cluster.name)):
        submit_merge(cluster, submit(cluster, todo))
    return cluster, len(todo)


def submit(cluster: Cluster, shards: Sequence[int], without: Sequence[str] = ()) -> list[int]:
    """The ids of as few arrays as `MaxArraySize` allows."""
    most = slurm.most_elements()
    arrays = []
    for part in [shards[begin : begin + most] for begin in range(0, len(shards), most)]:
        given = [f"--array=0-{len(part) - 1}", "--exclusive"]
        # One thread a core: what the replay binds to two cores does not share one.
        if not {"SBATCH_HINT", "SBATCH_THREADS_PER_CORE"} & set(os.environ):
            given.append("--hint=nomultithread")
        if without:
            given.append(f"--exclude={','.join(without)}")
        # Which share an element is stands in a file of its own, for any set of shares.
        numbers = cluster.own / "arrays" / f"{len(list((cluster.own / 'arrays').glob('*')))}-{os.getpid()}-{part[0]}"
        whole_text(numbers, "\n".join(map(str, part)) + "\n")
        log = cluster.own / "logs" / "%A_%a.log"
        job = slurm.submit(_script(cluster, "run", str(numbers)), cluster.name, log, cluster.partition, given)
        arrays.append(job)
        _append(cluster.own / "jobs.jsonl", {"job": job, "shards": list(part)})
    return arrays


def submit_merge(cluster: Cluster, after: Sequence[int]) -> None:
    """A job that joins the shares behind these."""
    given = [f"--dependency=afterany:{':'.join(map(str, after))}"] if after else []
    slurm.submit(
        _script(cluster, "merge"), cluster.name, cluster.own / "logs" / "merge-%j.log", cluster.partition, given
    )


def _script(cluster: Cluster, *arguments: str) -> str:
    command = [sys.executable, "-P", "-m", "blockyard.campaign.shard", str(cluster.root.resolve()), *arguments]
    return f"#!/bin/sh\nexec {shlex.join(command)}\n"


def _append(path: Path, entry: dict[str, Any]) -> None:
    """A line in one write, so that nodes may append side by side."""
    with disk_errors(path.parent), path.open("ab", buffering=0) as file:
        file.write((json.dumps(entry) + "\n").encode())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                continue  # the last words of a node that died


def refuse(cluster: Cluster, shard: int, node: str, reason: str) -> None:
    _append(cluster.own / "refused.jsonl", {"shard": shard, "node": node, "reason": reason})


def refusals(cluster: Cluster) -> dict[int, dict[str, str]]:
    """By share, each node that refused it, and why."""
    found: dict[int, dict[str, str]] = {}
    for entry in _lines(cluster.own / "refused.jsonl"):
        found.setdefault(entry["shard"], {})[entry["node"]] = entry["reason"]
    return found


def by_shard(cluster: Cluster) -> dict[int, slurm.Job]:
    """What Slurm says last of each share that it still knows."""
    arrays = {entry["job"]: entry["shards"] for entry in _lines(cluster.own / "jobs.jsonl")}
    found: dict[int, slurm.Job] = {}
    for job in sorted(slurm.jobs(cluster.name), key=lambda job: job.array):
        shards = arrays.get(job.array)
        if shards is not None and job.element is not None and job.element < len(shards):
            found[shards[job.element]] = job
    return found


@dataclass
class Status:
    """Counts of shares and of runs; `trouble` has a share's number and a sentence."""

    shards: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    of: int = 0
    trouble: dict[int, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    queued: bool = False
    whole: bool = False

    @property
    def sentence(self) -> str:
        if self.whole:
            return f"All {self.shards['done']:,} shards are done and joined."
        parts = [f"{count:,} {kind}" for kind, count in self.shards.items() if count]
        return f"{self.runs:,} of {self.of:,} runs are there; shards: {', '.join(parts)}."


def status(root: Path) -> Status:
    cluster = read(root)
    found = Status(whole=cluster.is_whole)
    found.of = len(document.read(cluster.own / "plan").all_runs())
    if found.whole:  # which is so without Slurm, too
        found.shards["done"] = cluster.shards
        found.runs = sum(1 for _ in (root / RUNS).glob("*/*/*/*/run.json"))
        return found
    jobs = by_shard(cluster)
    refused = refusals(cluster)
    found.queued = any(job.is_queued for job in slurm.jobs(cluster.name))
    for number in range(1, cluster.shards + 1):
        try:
            done = json.loads((cluster.shard(number) / "done.json").read_text(encoding="utf-8"))
            found.shards["done"] += 1
            found.runs += done["runs"]
            found.failed |= done["failed"]
            continue
        except (OSError, ValueError, KeyError):
            found.runs += sum(1 for _ in (cluster.shard(number) / RUNS).glob("*/*/*/*/run.json"))
        job = jobs.get(number)
        if job is not None and job.is_queued:
            found.shards["running" if job.state == "RUNNING" else "waiting"] += 1
            if number in refused:
                found.trouble[number] = f"runs elsewhere: {_refused(refused[number])}"
            elif job.reason not in ("None", "", "Resources", "Priority", "Dependency", "BeginTime"):
                found.trouble[number] = job.words
        else:
            found.shards["failed"] += 1
            words = "Slurm has forgotten it" if job is None else f"{job.words} on {job.node or 'no node'}"
            found.trouble[number] = _refused(refused[number]) if number in refused else words
    return found


def _refused(nodes: dict[str, str]) -> str:
    return "; ".join(f"{node} refused: {reason}" for node, reason in nodes.items())


def lay_out_shard(cluster: Cluster, number: int, facts: MachineFacts) -> Path:
    """The share's folder, ready for `resume`. What another node measured of it is dropped: a share is one machine's."""
    path = cluster.shard(number)
    if Folder(path).has_campaign and machine.read(path).node != facts.node:
        shutil.rmtree(path)
    if not Folder(path).has_campaign:
        campaign = document.read(cluster.own / "plan")
        with disk_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            machine.write(path, facts)
            whole_text(path / document.FILE, _share(campaign, number, cluster.shards).to_json(runs=False))
    return path


def _share(campaign: Campaign, number: int, of: int) -> Campaign:
    return msgspec.structs.replace(campaign, shard=f"{number}/{of}")


def join(cluster: Cluster) -> int:
    """Puts the campaign together in the folder itself; how many runs it has. All shares must be done."""
    lock = os.open(cluster.own / ".join", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return len(document.read(cluster.root).all_runs()) if cluster.is_whole else _join(cluster)
    finally:
        os.close(lock)


def _join(cluster: Cluster) -> int:
    whole = cluster.own / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    total, absent = merge(whole, [cluster.shard(number) for number in range(1, cluster.shards + 1)])
    if absent:
        raise UserError(f"{len(absent)} runs are in none of the shards, the first is {absent[0]}")
    with disk_errors(cluster.root):
        for path in sorted(whole.iterdir(), key=lambda path: path.name == document.FILE):
            target = cluster.root / path.name
            if target.is_dir():
                shutil.rmtree(target)
            path.replace(target)
        whole.rmdir()
        shutil.rmtree(cluster.own / "shards")
    return total
