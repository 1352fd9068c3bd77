"""What of two campaigns may be compared: sections of the same journal, machine kind and options, by allocator."""

import filecmp
from collections.abc import Iterable
from dataclasses import dataclass, replace

from blockyard.allocators import LIBRARY_VARIABLE
from blockyard.analysis import fidelity
from blockyard.analysis.sections import AllocatorRuns, Results, Run, Section
from blockyard.campaign import document, machine
from blockyard.campaign.document import Allocator, Campaign
from blockyard.errors import UserError


@dataclass(frozen=True)
class Twins:
    """One allocator in both campaigns, with as many repeats here as there. `changed`: how it is another one in NEW;
    not `asked_for`: it only tells how the machine moved."""

    base: AllocatorRuns
    new: AllocatorRuns
    changed: tuple[str, ...]
    asked_for: bool = True

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def repeats(self) -> int:
        return len(self.base.runs)


@dataclass(frozen=True)
class Pair:
    """A section that both campaigns have. `lost` names allocators that ran in BASE and did not come through in NEW."""

    base: Section
    new: Section
    twins: tuple[Twins, ...]
    lost: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Pairing:
    base: Results
    new: Results
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]


def pair(base: Results, new: Results, allocators: tuple[str, ...] = ()) -> Pairing:
    """Finds what both have; raises UserError where nothing is, or where a difference forbids it."""
    if base.directory.samefile(new.directory):
        raise UserError(f"BASE and NEW are one campaign, {base.directory}: nothing can differ; name two")
    plans = document.read(base.directory), document.read(new.directory)
    _refuse_other_machine(base, new)
    _refuse_other_journals(*plans)
    _refuse_other_options(*plans)
    _refuse_unknown(allocators, plans)
    here = {_key(section): section for section in base.sections}
    there = {_key(section): section for section in new.sections}
    common = [key for key in here if key in there]
    if not common:
        raise UserError(_nothing_common(base, new))
    notes = [
        f"only {side} has {one.title}: it is not compared"
        for side, mine, others in (("BASE", here, there), ("NEW", there, here))
        for key, one in mine.items()
        if key not in others
    ]
    notes += [
        f"{side} is not finished ({one.planned - one.unfinished} of {one.planned} runs are there)"
        for side, one in (("BASE", base), ("NEW", new))
        if one.unfinished
    ]
    if base.blockyard != new.blockyard:
        notes.append(f"BASE was measured by Blockyard {base.blockyard}, NEW by {new.blockyard}")
    notes += [f"{side}: {words}" for side, one in (("BASE", base), ("NEW", new)) for words in one.machine.warnings]
    pairs = tuple(_pair(here[key], there[key], plans, new, allocators) for key in common)
    if not any(twins.asked_for for one in pairs for twins in one.twins):
        raise UserError("no allocator has finished runs in both campaigns: there is nothing to compare")
    notes += _same_runs(pairs)
    return Pairing(base, new, pairs, tuple(notes))


def _same_runs(pairs: tuple[Pair, ...]) -> list[str]:
    """A note for each pair in which runs are copies of one another; refuses where no others are."""
    copies = [[one.name for one in each.twins if _are_copies(one)] for each in pairs]
    if all(len(names) == len(each.twins) for names, each in zip(copies, pairs, strict=True)) and not any(
        each.lost for each in pairs
    ):
        raise UserError("the runs of BASE and NEW are copies of one another: nothing can differ; measure NEW again")
    return [
        f"{each.new.title}: the runs of {', '.join(names)} are the same ones in BASE and NEW, so that nothing of "
        "theirs can differ"
        for names, each in zip(copies, pairs, strict=True)
        if names
    ]


def _are_copies(twins: Twins) -> bool:
    """Two runs never take the same nanoseconds, so run.json tells; the samples are the proof, of one run for all."""
    both = list(zip(twins.base.runs, twins.new.runs, strict=True))
    return all(here.facts == there.facts for here, there in both) and _have_same_samples(*both[0])


def _have_same_samples(here: Run, there: Run) -> bool:
    try:
        return filecmp.cmp(here.folder / "samples.npy", there.folder / "samples.npy", shallow=False)
    except OSError:  # reading them for their figures says better what is wrong
        return False


def _key(section: Section) -> tuple:
    return *section.facts.stretch, section.pace, section.touch


def _refuse_other_machine(base: Results, new: Results) -> None:
    kinds = [one.machine.kind for one in (base, new)]
    if not all(kinds) or kinds[0] != kinds[1]:
        differences = ", ".join(machine.kind_differences(base.machine, new.machine))
        raise UserError(
            f"BASE and NEW were measured on machines of different kinds ({differences}), and their figures "
            "can't be compared"
        )


def _refuse_other_journals(base: Campaign, new: Campaign) -> None:
    there = {entry.name: entry for entry in new.journals}
    known = {entry.stretch for entry in new.journals}
    for entry in base.journals:
        other = there.get(entry.name)
        if other is None or entry.stretch in known:
            continue
        what = "is another file" if entry.sha256 != other.sha256 else "is another stretch of it"
        raise UserError(
            f"the journal {entry.name} of NEW {what} than that of BASE: only replays of the same journal are compared"
        )
    if not known & {entry.stretch for entry in base.journals}:
        names = [", ".join(entry.name for entry in one.journals) or "none" for one in (base, new)]
        raise UserError(f"BASE and NEW have no journal in common ({names[0]} there, {names[1]} here)")


def _refuse_unknown(allocators: Iterable[str], plans: tuple[Campaign, Campaign]) -> None:
    known = {entry.name for plan in plans for entry in [*plan.allocators, *plan.missing]}
    for name in allocators:
        if name not in known:
            raise UserError(f"neither campaign has an allocator '{name}'; they have {', '.join(sorted(known))}")


def _nothing_common(base: Results, new: Results) -> str:
    titles = ["; ".join(section.title for section in one.sections) for one in (base, new)]
    for side, one, title in (("BASE", base, titles[0]), ("NEW", new, titles[1])):
        if not title:
            return f"{side} has no finished run yet ({one.planned} planned); 'blockyard replay --resume' runs them"
    return (
        f"BASE and NEW have nothing in common that could be compared ({titles[0]} there, {titles[1]} here): replay "
        "the same journal with the same --pace and --touch"
    )


def _pair(
    base: Section, new: Section, plans: tuple[Campaign, Campaign], results: Results, allocators: tuple[str, ...]
) -> Pair:
    """Allocators that were not asked for are there as well, and nothing is said of them."""
    here = {one.name: one for one in base.allocators}
    there = {one.name: one for one in new.allocators}
    entries = [{entry.name: entry for entry in plan.allocators} for plan in plans]
    _refuse_one_streamed(base, new)
    twins, notes, lost = [], [], []
    for name, mine in here.items():
        other, asked_for = there.get(name), not allocators or name in allocators
        if not mine.runs:
            continue
        if other is None or not other.runs:
            is_lost, words = _absence(name, other, entries[1], results)
            if asked_for:
                (lost if is_lost else notes).append(words)
            continue
        if asked_for and len(other.failures) > len(mine.failures):
            lost.append(
                f"{name} failed in {len(other.failures)} of {len(other.failures) + len(other.runs)} runs of "
                f"NEW: {_reason(other)}"
            )
        repeats = min(len(mine.runs), len(other.runs))
        if asked_for and len(mine.runs) != len(other.runs):
            notes.append(
                f"{name} has {len(mine.runs)} repeats in BASE and {len(other.runs)} in NEW: the first "
                f"{repeats} of each are compared, since a minimum over more is lower"
            )
        same_many = (replace(one, runs=one.runs[:repeats]) for one in (mine, other))
        changed = tuple(_changes(entries[0][name], entries[1][name], mine, other))
        twins.append(Twins(*same_many, changed, asked_for))
    gained = [name for name, one in there.items() if one.runs and not (name in here and here[name].runs)]
    if gained and not allocators:
        notes.append(f"only NEW has finished runs of {', '.join(gained)}: nothing to compare them with")
    notes += [
        f"{one.name} is another one in NEW: {', '.join(one.changed)}" for one in twins if one.changed and one.asked_for
    ]
    notes += [
        f"{side}: {words}" for side, section in (("BASE", base), ("NEW", new)) for words in fidelity.sentences(section)
    ]
    return Pair(base, new, tuple(twins), tuple(lost), tuple(notes))


def _absence(
    name: str, other: AllocatorRuns | None, planned: dict[str, Allocator], results: Results
) -> tuple[bool, str]:
    """Whether an allocator of BASE is lost in NEW, and how."""
    if other is not None:
        return True, f"{name} failed in every run of NEW: {_reason(other)}"
    if (why := dict(results.missing).get(name)) is not None:
        return True, f"{name} could not be had for NEW: {why}"
    return False, f"{name} has no finished run in NEW yet" if name in planned else f"{name} is in BASE only"


def _reason(allocator: AllocatorRuns) -> str:
    return allocator.failures[0].facts.why if allocator.failures else ""


def _changes(base: Allocator, new: Allocator, mine: AllocatorRuns, other: AllocatorRuns) -> Iterable[str]:
    if mine.version != other.version:
        yield f"version {mine.version or 'unknown'} became {other.version or 'unknown'}"
    if base.sha256 != new.sha256:
        yield "its library is another file"
    # The same file may lie elsewhere.
    path = {LIBRARY_VARIABLE: ""} if base.sha256 and new.sha256 else {}
    for what in ("options", "environment", "populate"):
        here, there = getattr(base, what), getattr(new, what)
        if what == "environment":
            here, there = {**here, **path}, {**there, **path}
        if here != there:
            yield f"its {what} changed"


def _refuse_other_options(base: Campaign, new: Campaign) -> None:
    """What runs have in common beyond journal, pace and touch."""
    for flag, here, there in base.options.differences(new.options):
        if isinstance(here, bool):
            kept, free = ("BASE", "NEW") if here else ("NEW", "BASE")
            how = f"{kept} was replayed with {flag} and {free} without"
        else:
            how = f"BASE was replayed with {flag} {here} and NEW with {flag} {there}"
        raise UserError(f"{how}: only runs with the same options are compared")


def _refuse_one_streamed(base: Section, new: Section) -> None:
    """Of one section: another --stream-above alone makes no difference."""
    runs = [[run for one in section.measured for run in one.runs] for section in (base, new)]
    streamed = [any(run.facts.stream is not None for run in of) for of in runs]
    if streamed[0] != streamed[1]:
        words = [
            f"{side} was {'streamed' if one else 'replayed from memory'}"
            for side, one in zip(("BASE", "NEW"), streamed, strict=True)
        ]
        raise UserError(f"{base.title}: {' and '.join(words)}; replay both with the same --stream-above")
