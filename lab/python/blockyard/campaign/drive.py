"""Drives a campaign: plans its journals, runs what is not yet there, keeps what was measured."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from blockyard import __version__, allocators
from blockyard.allocators import Choice
from blockyard.campaign import document, machine, prepare, runner, settings
from blockyard.campaign.document import Allocator, Campaign, Journal, Missing
from blockyard.campaign.estimate import Estimate
from blockyard.campaign.facts import MachineFacts, RunFacts
from blockyard.campaign.folder import Folder, disk_errors
from blockyard.campaign.progress import Display
from blockyard.campaign.schedule import NULL, Run, share
from blockyard.campaign.settings import Settings, Stretch
from blockyard.errors import UserError
from blockyard.files import sha256, whole_text
from blockyard.units import size


@dataclass
class Outcome:
    """What a campaign came to. `failed` has each failed run's reason, those of earlier sittings included, `beside` how
    many succeeded on `null` that nobody had asked for."""

    total: int
    succeeded: int = 0
    beside: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    interrupted: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether none succeeded that was asked for."""
        return self.succeeded == self.beside

    def failure_lines(self) -> list[str]:
        """What to print about failed runs; empty when there are none."""
        if not self.failed:
            return []
        return [
            f"{len(self.failed)} of {self.total} runs failed:",
            *(f"  {name}: {reason}" for name, reason in self.failed.items()),
        ]


def start(
    wanted: Settings,
    output: Path,
    show: Display,
    *,
    shard: tuple[int, int] | None = None,
    within_s: float | None = None,
) -> Outcome:
    """Plans and runs a new campaign into `output`, which must be new or empty.

    With `within_s`, repeats that don't fit into that many seconds of running are left out of the campaign, at least one
    is kept: for a demonstration, not for figures.
    """
    if Folder(output).has_campaign:
        raise UserError(f"{output} already holds a campaign; go on with it by --resume, or choose another folder")
    present, missing = _present(settings.check(wanted), show)
    with Folder(output) as folder:
        campaign = _plan(wanted, present, missing, folder, show, shard)
        _refuse_without_room(folder, campaign, _share(campaign))
        # Looked at last, when nothing of Blockyard's own keeps the machine busy any more.
        facts = _examine_machine(show)
        with disk_errors(output):
            machine.write(output, facts)
            whole_text(output / document.FILE, campaign.to_json())
        return _run(campaign, present, folder, show, within_s)


def lay_out(wanted: Settings, output: Path, show: Display) -> Campaign:
    """Plans a campaign into `output`, new or empty, and runs nothing: others run it, share by share."""
    present, missing = _present(settings.check(wanted), show)
    with Folder(output) as folder:
        campaign = _plan(wanted, present, missing, folder, show, None)
        with disk_errors(output):
            whole_text(output / document.FILE, campaign.to_json(runs=False))
        folder.drop_plans()
        folder.drop_runs()
    return campaign


def _present(wanted: Settings, show: Display) -> tuple[list[Choice], list[Missing]]:
    """The allocators asked for that this machine has, and those that it lacks."""
    choices = _resolve(wanted.allocators)
    present = [choice for choice in choices if choice.missing is None]
    missing = [Missing(choice.name, choice.missing) for choice in choices if choice.missing is not None]
    for entry in missing:
        show.note(f"missing: {entry.name}: {entry.reason}")
    for choice in present:
        if choice.crashed is not None:
            show.note(f"{choice.name}: {choice.crashed}; it is run all the same, and the others beside it")
    if not present:
        raise UserError(
            "none of the allocators asked for can be had on this machine; "
            "'blockyard allocators' says what each one needs"
        )
    return present, missing


def _plan(
    wanted: Settings,
    present: Sequence[Choice],
    missing: list[Missing],
    folder: Folder,
    show: Display,
    shard: tuple[int, int] | None,
) -> Campaign:
    campaign = Campaign(
        name=wanted.name,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        blockyard=__version__,
        journals=[_journal(stretch, wanted, folder, show) for stretch in wanted.journals],
        allocators=[_allocator(choice) for choice in present],
        missing=missing,
        paces=list(wanted.paces),
        touches=list(wanted.touches),
        repeats=wanted.repeats,
        options=wanted.options,
        shard=f"{shard[0]}/{shard[1]}" if shard else None,
        traced=wanted.traced,
        totals=wanted.totals,
    )
    _refuse_unpaced(campaign)
    return campaign


def resume(
    output: Path,
    show: Display,
    *,
    wanted: Settings | None = None,
    repeats: int | None = None,
    shard: tuple[int, int] | None = None,
    within_s: float | None = None,
) -> Outcome:
    """Goes on with the campaign in `output`. Where something is `wanted` as well, it must be the same campaign.
    `repeats`: so many in all, and no fewer than it has."""
    campaign = document.read(output)
    if wanted is not None:
        _refuse_another(campaign, settings.check(wanted), shard, output)
    longer = campaign if repeats is None else _with_repeats(campaign, repeats, output)
    with Folder(output) as folder:
        machine.refuse_another(output)
        specs = [entry.name + (f"={entry.file}" if entry.file else "") for entry in campaign.allocators]
        choices = {choice.name: choice for choice in _resolve(specs)}
        present = []
        for entry in campaign.allocators:
            choice = choices[entry.name]
            if choice.missing is not None:
                raise UserError(
                    f"{choice.name} is part of the campaign in {output} and can't be had any more: {choice.missing}"
                )
            if choice.version != entry.version:
                raise UserError(
                    f"{choice.name} was {entry.version} in the campaign in {output} and is now "
                    f"{choice.version}; measure again in another folder"
                )
            if entry.file and sha256(Path(entry.file)) != entry.sha256:
                raise UserError(
                    f"{entry.file} has changed since the campaign in {output} began; measure again in another folder"
                )
            present.append(choice)
        if longer != campaign:
            _refuse_without_room(folder, longer, [run for run in _share(longer) if folder.result(run) is None])
            campaign = longer
            with disk_errors(output):
                whole_text(output / document.FILE, campaign.to_json())
        if any(folder.result(run) is None for run in _share(campaign)):
            _keep_warnings(folder, _examine_machine(show).warnings)
        return _run(campaign, present, folder, show, within_s)


def is_complete(output: Path) -> bool:
    """Whether every run of the campaign (of this share of it) has ended, well or not."""
    folder = Folder(output)
    return folder.has_campaign and all(folder.result(run) is not None for run in _share(document.read(output)))


def _journal(stretch: Stretch, wanted: Settings, folder: Folder, show: Display) -> Journal:
    def progress(fraction: float, text: str) -> None:
        show.planning(stretch.name, fraction, text)

    progress(0.0, "")
    digest = sha256(stretch.path)
    facts = prepare.plan(stretch, wanted.options.threads, folder, progress)
    for note in facts.notes:
        show.note(f"{stretch.name}: {note}")
    return prepare.entry(stretch, digest, facts)


def _allocator(choice: Choice) -> Allocator:
    # The user's file behind `NAME=FILE`, whether it is driven through the foreign adapter or is one itself.
    library = None if choice.base in allocators.load() else choice.foreign or choice.adapter
    return Allocator(
        **choice.named,
        origin=choice.origin,
        notes=choice.notes,
        options=choice.options,
        populate=choice.populate,
        needs_lock=choice.needs_lock,
        needs_pool=choice.needs_pool,
        environment=choice.environment,
        file=library and str(library),
        sha256=library and sha256(library),
    )


def _resolve(names: Sequence[str]) -> list[Choice]:
    # The user's tunables are for the user's programs: a run gets the variant's own and nothing else.
    os.environ.pop("GLIBC_TUNABLES", None)
    return allocators.resolve(list(names))


def _examine_machine(show: Display) -> MachineFacts:
    facts, busy = machine.describe(), round(machine.busy_cores(), 2)
    facts = msgspec.structs.replace(facts, busy_cores=busy, warnings=machine.warnings(facts, busy))
    for sentence in facts.warnings:
        show.note(f"warning: {sentence}")
    return facts


def _keep_warnings(folder: Folder, found: Sequence[str]) -> None:
    """What was wrong in a later sitting belongs to the figures as much as what was wrong in the first."""
    facts = machine.read(folder.path)
    added = [sentence for sentence in found if sentence not in facts.warnings]
    if added:
        with disk_errors(folder.path):
            machine.write(folder.path, msgspec.structs.replace(facts, warnings=[*facts.warnings, *added]))


def _refuse_unpaced(campaign: Campaign) -> None:
    for journal in campaign.journals:
        paced = [pace for pace in campaign.paces if pace != "max"]
        if not journal.paced and paced:
            raise UserError(
                f"the journal {journal.name} has no times of its own to be replayed at {paced[0]}; use --pace max"
            )


def _refuse_another(campaign: Campaign, wanted: Settings, shard: tuple[int, int] | None, output: Path) -> None:
    hashes = {journal.name: sha256(journal.path) for journal in wanted.journals}
    names = [choice.name for choice in _resolve(wanted.allocators)]
    found = document.requested_differences(campaign, wanted, hashes, names)
    asked = f"{shard[0]}/{shard[1]}" if shard else None
    if asked != campaign.shard:
        found.append(f"its share is {campaign.shard or 'the whole'} there and {asked or 'the whole'} here")
    if found:
        raise UserError(
            f"{output} holds another campaign: {'; '.join(found)}; choose another folder, or go on with "
            f"that one by 'blockyard replay --resume -o {output}'"
        )


def _with_repeats(campaign: Campaign, repeats: int, output: Path) -> Campaign:
    if repeats < campaign.repeats:
        raise UserError(f"the campaign in {output} has {campaign.repeats} repeats already; --resume only adds some")
    if repeats > settings.MOST_REPEATS:
        raise UserError(f"{repeats} repeats are too many; ask for at most {settings.MOST_REPEATS:,}")
    if campaign.shard is not None and repeats != campaign.repeats:
        raise UserError(f"{output} is a share of a campaign, and the shares must have the same repeats")
    return msgspec.structs.replace(campaign, repeats=repeats)


def _refuse_without_room(folder: Folder, campaign: Campaign, todo: Sequence[Run]) -> None:
    needed = sum(prepare.run_bytes(campaign.journal(run.journal), sampled=run.sampled) for run in todo)
    free = folder.free_bytes()
    if needed > free:
        raise UserError(
            f"these {len(todo)} runs need about {size(needed)} and the disk that holds {folder.path} has "
            f"{size(free)} free; free some space, or choose another folder, fewer repeats or a stretch"
        )


def _share(campaign: Campaign) -> list[Run]:
    runs = campaign.all_runs()
    if campaign.shard is None:
        return runs
    return share(runs, *settings.parse_shard(campaign.shard), weight=Estimate(campaign.journals).expected_s)


def _run(
    campaign: Campaign, present: Sequence[Choice], folder: Folder, show: Display, within_s: float | None
) -> Outcome:
    runs = _share(campaign)
    choices = {choice.name: choice for choice in [*_resolve([NULL]), *present]}
    outcome = Outcome(total=len(runs), missing=campaign.missing)
    todo = []
    for run in runs:
        result = folder.result(run)
        if result is None:
            todo.append(run)
        else:
            _count(outcome, campaign, run, result)
    estimate = Estimate(campaign.journals)
    began = time.monotonic()
    show.begin(campaign.name, len(runs) - len(todo), len(runs))
    try:
        with disk_errors(folder.path):
            for position, run in enumerate(todo):
                left = todo[position:]
                round_begins = position == 0 or todo[position - 1].repeat != run.repeat
                if within_s is not None and round_begins and run.repeat > 1:
                    this_round = [other for other in left if other.repeat == run.repeat]
                    if time.monotonic() - began + estimate.left_s(this_round) > within_s:
                        campaign = msgspec.structs.replace(campaign, repeats=run.repeat - 1)
                        whole_text(folder.path / document.FILE, campaign.to_json())
                        outcome.total -= len(left)
                        break
                show.run_begins(run, campaign.repeats, estimate.expected_s(run), estimate.left_s(left))
                run_began = time.monotonic()
                result = _run_one(campaign, run, choices[run.allocator], folder, show, estimate)
                if result.ok and not run.traced:
                    estimate.observed(run, time.monotonic() - run_began)
                _count(outcome, campaign, run, result)
                _keep_clock(folder, result)
                show.run_ends(run, None if result.ok else result.reason, estimate.left_s(left[1:]))
            folder.drop_plans()
    except KeyboardInterrupt:
        outcome.interrupted = True
    return outcome


def _run_one(
    campaign: Campaign, run: Run, choice: Choice, folder: Folder, show: Display, estimate: Estimate
) -> RunFacts:
    journal = campaign.journal(run.journal)
    needed = prepare.run_bytes(journal, sampled=run.sampled)
    if folder.free_bytes() < needed:
        raise _full(folder, needed)
    plan = folder.plan(run.journal)
    if not plan.is_file():
        _plan_again(campaign, journal, folder, show)
    request = runner.Request(run, choice, plan, campaign.options)
    with folder.running(run) as partial:
        result = runner.run_once(
            request, partial, limit_s=estimate.limit_s(run), lock=folder.lock_descriptor, tick=show.tick
        )
        # An allocator is not to blame for a disk that others filled meanwhile.
        if not result.ok and folder.free_bytes() < needed:
            raise _full(folder, needed)
    return result


def _full(folder: Folder, needed: int) -> UserError:
    return UserError(
        f"the disk that holds {folder.path} is full ({size(folder.free_bytes())} free, a run needs "
        f"{size(needed)}); finished runs are kept: free some space and go on with "
        f"'blockyard replay --resume -o {folder.path}'"
    )


def _plan_again(campaign: Campaign, journal: Journal, folder: Folder, show: Display) -> None:
    """A resumed campaign whose plan is gone: made again, from a journal that must be the same."""
    stretch = Stretch(journal.name, Path(journal.path), journal.from_s, journal.to_s)
    if not stretch.path.is_file():
        raise UserError(f"the journal {stretch.path} of this campaign is gone; put it back to go on")
    if sha256(stretch.path) != journal.sha256:
        raise UserError(
            f"the journal {stretch.path} has changed since this campaign began; put the old one back, or "
            "measure again in another folder"
        )
    prepare.plan(stretch, campaign.options.threads, folder, lambda part, text: show.planning(stretch.name, part, text))


def _count(outcome: Outcome, campaign: Campaign, run: Run, result: RunFacts) -> None:
    if result.ok:
        outcome.succeeded += 1
        outcome.beside += all(entry.name != run.allocator for entry in campaign.allocators)
    else:
        outcome.failed[run.id] = result.reason or "it gave no reason"


def _keep_clock(folder: Folder, result: RunFacts) -> None:
    """The clock's rate is the replayer's to measure: the first run that tells it completes `machine.json`."""
    facts = machine.read(folder.path)
    if facts.ticks_per_ns is None and result.ticks_per_ns:
        machine.write(folder.path, msgspec.structs.replace(facts, ticks_per_ns=result.ticks_per_ns))
