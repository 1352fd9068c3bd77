"""Before the first run: the journals' fingerprints and their plans."""

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from blockyard import native
from blockyard.campaign.document import Journal, PlanFacts
from blockyard.campaign.folder import Folder, disk_errors
from blockyard.campaign.settings import Stretch
from blockyard.errors import UserError

SITES = "sites.bys"
"""The call stack of each event, beside pairs.npy."""
# Bytes of a run's folder: a row of samples.npy, and what run.json and memory.npy take.
SAMPLE_BYTES = 36
_RUN_BYTES = 1 << 20


def plan(
    stretch: Stretch,
    threads: str,
    folder: Folder,
    progress: Callable[[float, str], None],
    routes: Mapping[str, Any] | None = None,
) -> PlanFacts:
    """Plans one journal into the campaign's folder and returns the facts that `campaign.json` keeps of it. `routes` are
    more options, which say what goes to the library's own allocators."""
    target, shared = folder.plan(stretch.name), folder.shared_facts(stretch.name)
    bounds = {"--from": stretch.from_s, "--to": stretch.to_s}
    given = {"-o": target, "--threads": threads, "--events-dir": shared, **bounds, **(routes or {})}
    with disk_errors(folder.path):
        target.parent.mkdir(parents=True, exist_ok=True)
        shared.mkdir(parents=True, exist_ok=True)
        output = _call([stretch.path, *native.arguments(given)], folder, progress)
    facts = native.decoded("blockyard-replay", output, PlanFacts)
    if facts.measured_events == 0:
        raise UserError(f"the stretch of {stretch.path} holds no events to measure; choose another --from and --to")
    if facts.stacks:
        with disk_errors(folder.path):
            options = native.arguments({"-o": shared / SITES, **bounds})
            native.call("blockyard-sites", ["events", stretch.path, *options], on_progress=progress)
    return facts


def entry(stretch: Stretch, sha256: str, facts: PlanFacts, **more: Any) -> Journal:
    """What `campaign.json` keeps of a journal."""
    return Journal(
        name=stretch.name,
        path=str(stretch.path.resolve()),
        sha256=sha256,
        from_s=stretch.from_s,
        to_s=stretch.to_s,
        **more,
        **msgspec.structs.asdict(facts),
    )


def _call(arguments: list[str | Path], folder: Folder, progress: Callable[[float, str], None]) -> str:
    try:
        return native.call("blockyard-replay", ["plan", *arguments], on_progress=progress)
    except UserError as error:
        # It names the file that it was writing: the plan's, which is nobody's but ours.
        if os.strerror(errno.ENOSPC) in str(error):
            raise UserError(
                f"the disk that holds {folder.path} is full already with the journal's plan: free some "
                "space, or choose another folder"
            ) from None
        raise


def run_bytes(journal: Journal, *, sampled: bool) -> int:
    """Disk space that one run of a journal needs."""
    return _RUN_BYTES + (0 if not sampled else journal.measured_events * SAMPLE_BYTES)
