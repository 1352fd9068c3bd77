"""What a node of the cluster runs: one share of a campaign, or the join of all. Slurm calls it, not people."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
from rich.console import Console

from blockyard import terminal
from blockyard.campaign import cluster, document, drive, machine, slurm
from blockyard.campaign.cluster import Cluster
from blockyard.campaign.facts import MachineFacts
from blockyard.campaign.progress import Display
from blockyard.errors import UserError
from blockyard.files import whole_text

_KIND = "machine.json"


def main(arguments: list[str]) -> int:
    root, verb, *more = arguments
    one = cluster.read(Path(root))
    try:
        if verb == "merge":
            return _merge(one)
        numbers = Path(more[0]).read_text(encoding="utf-8").split()
        return _run(one, int(numbers[int(os.environ["SLURM_ARRAY_TASK_ID"])]))
    except UserError as error:
        print(f"blockyard: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _run(one: Cluster, number: int) -> int:
    if one.is_done(number):
        return 0
    node, busy, facts = slurm.node(), round(machine.busy_cores(), 2), machine.describe()
    facts = msgspec.structs.replace(
        facts, node=node, microcode=machine.microcode(), busy_cores=busy, warnings=machine.warnings(facts, busy)
    )
    if (reason := _unfit(one, facts)) is not None:
        return _elsewhere(one, number, node, reason)
    path = cluster.lay_out_shard(one, number, facts)
    outcome = drive.resume(path, Display(Console(stderr=True)))
    if outcome.interrupted:
        return 130
    done = {"runs": outcome.total, "succeeded": outcome.succeeded, "failed": outcome.failed, "node": node}
    whole_text(path / "done.json", json.dumps(done) + "\n")
    return 0


def _unfit(one: Cluster, facts: MachineFacts) -> str | None:
    """Why this node should not measure, as `replay` checks a machine; and all must be of the kind of the first."""
    if check := os.environ.get(cluster.CHECK):
        done = subprocess.run([check], capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stdout.strip() or f"{check} ended with {done.returncode}"
    elif machine.is_busy(facts.busy_cores or 0):
        return f"busy: {facts.busy_cores:.1f} of its {facts.cores} cores are in use by others"
    first = _first_machine(one, facts)
    if first.kind != facts.kind:
        return f"another kind of machine: {'; '.join(machine.kind_differences(first, facts))}"
    if first.microcode != facts.microcode:
        return f"another microcode: {facts.microcode}, where the first node has {first.microcode}"
    return None


def _first_machine(one: Cluster, facts: MachineFacts) -> MachineFacts:
    """The node's that came first. A second name for a file is made by one process alone."""
    path = one.own / _KIND
    own = path.with_name(f".{path.name}.{facts.node}.{os.getpid()}")
    own.write_bytes(msgspec.json.encode(facts))
    try:
        os.link(own, path)
    except FileExistsError:
        pass
    finally:
        own.unlink()
    return msgspec.json.decode(path.read_bytes(), type=MachineFacts)


def _elsewhere(one: Cluster, number: int, node: str, reason: str) -> int:
    """Has Slurm run the share on a node that has not refused it."""
    print(f"blockyard: {node} refuses shard {number}: {reason}", file=sys.stderr)
    cluster.refuse(one, number, node, reason)
    cluster.submit(one, [number], without=sorted(cluster.refusals(one)[number]))
    return 1


def _merge(one: Cluster) -> int:
    if one.is_whole:
        return 0
    if missing := one.missing():
        waits = [job.array for job in cluster.by_shard(one).values() if job.is_queued]
        if waits:
            cluster.submit_merge(one, sorted(set(waits)))
            return 0
        raise UserError(
            f"{len(missing)} of {one.shards} shards are not done; 'blockyard replay --resume -o {one.root}'"
        )
    print(f"{cluster.join(one)} runs joined in {one.root / document.FILE}")
    return 0


if __name__ == "__main__":
    terminal.terminate_like_interrupt()
    sys.exit(main(sys.argv[1:]))
