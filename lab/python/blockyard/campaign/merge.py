"""Joins shares of one campaign that ran on machines of one kind."""

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from blockyard.campaign import document, machine
from blockyard.campaign.document import Campaign
from blockyard.campaign.facts import MachineFacts, Part
from blockyard.campaign.folder import LOCK, RUNS, Folder, disk_errors
from blockyard.campaign.schedule import Run
from blockyard.errors import UserError
from blockyard.files import whole_folder, whole_text


def merge(output: Path, shares: Sequence[Path]) -> tuple[int, list[str]]:
    """Joins `shares` into the new folder `output`; they stay as they are.

    Returns how many runs there are, and the ids of those that none of the shares has. Refuses, with what differs,
    shares of different campaigns, of different kinds of machines, or with a run in common.
    """
    if len({share.resolve() for share in shares}) < len(shares):
        raise UserError("the same folder was named twice; name each share once")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output} already holds something; choose a new or empty folder")
    campaigns = [document.read(share) for share in shares]
    machines = [machine.read(share) for share in shares]
    for share, campaign, facts in zip(shares[1:], campaigns[1:], machines[1:], strict=True):
        different = document.share_differences(campaigns[0], campaign)
        if different:
            raise UserError(f"{shares[0]} and {share} are not of one campaign: {'; '.join(different)}")
        if facts.kind != machines[0].kind:
            raise UserError(
                f"{shares[0]} and {share} ran on different kinds of machines "
                f"({'; '.join(machine.kind_differences(machines[0], facts))}), and one comparison never "
                "mixes them; make a report of each"
            )
    found = _runs(campaigns[0], shares)
    _join(output, campaigns, shares, machines, found)
    runs = campaigns[0].all_runs()
    return len(runs), [run.id for run in runs if run not in found]


def _runs(campaign: Campaign, shares: Sequence[Path]) -> dict[Run, Path]:
    found: dict[Run, Path] = {}
    known = {run.id: run for run in campaign.all_runs()}
    for share in shares:
        folder = Folder(share)
        # By what is there: a share of a thousand has few of the campaign's runs.
        for path in sorted((share / RUNS).glob("*/*/*/*/run.json")):
            run = known.get(path.parent.relative_to(share / RUNS).as_posix())
            if run is None or folder.result(run) is None:
                continue
            if run in found:
                raise UserError(f"run {run.id} is in {found[run]} and in {share}; leave one of them out")
            found[run] = share
    return found


def _join(
    output: Path,
    campaigns: Sequence[Campaign],
    shares: Sequence[Path],
    machines: Sequence[MachineFacts],
    found: dict[Run, Path],
) -> None:
    with (
        disk_errors(output, "nothing was joined, and the shares are as they were: free some space and join again"),
        whole_folder(output) as partial,
    ):
        (partial / LOCK).touch()
        for share in shares:
            for journal in filter(Path.is_dir, (share / RUNS).glob("*")):
                _link_files(journal, partial / RUNS / journal.name)
        for run, share in found.items():
            _link_files(Folder(share).run(run), Folder(partial).run(run))
        runs = Counter(found.values())
        parts = [
            Part(one.shard or "whole", runs[share], facts)
            for share, one, facts in zip(shares, campaigns, machines, strict=True)
        ]
        machine.write(partial, msgspec.structs.replace(machines[0], joined=parts))
        whole_text(partial / document.FILE, msgspec.structs.replace(campaigns[0], shard=None).to_json())
        if output.exists():
            output.rmdir()  # refuses a folder that something was put into meanwhile


def _link_files(source: Path, target: Path) -> None:
    """Second names for a folder's files if the file system can (samples are large and never change), else copies. Those
    that are there already stay."""
    target.mkdir(parents=True, exist_ok=True)
    for file in os.scandir(source):
        if not file.is_file():
            continue
        try:
            os.link(file.path, target / file.name)
        except FileExistsError:
            continue
        except OSError:
            if not (target / file.name).exists():
                shutil.copy2(file.path, target / file.name)
