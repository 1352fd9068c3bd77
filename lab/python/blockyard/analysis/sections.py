"""A campaign's folder as sections: the runs of one journal at one pace with one touch, which alone are compared."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np

from blockyard.analysis import machines, samples, totals
from blockyard.campaign import document, facts, machine, schedule
from blockyard.campaign.document import Allocator, Journal
from blockyard.campaign.facts import MachineFacts, RunFacts
from blockyard.campaign.folder import Folder
from blockyard.campaign.run_options import RunOptions
from blockyard.campaign.schedule import NULL
from blockyard.errors import UserError

_SAME_MACHINE = 0.01
"""Calibrations of one clock agree to five digits; tick rates that differ by a hundredth are of different machines."""


@dataclass(frozen=True)
class Run:
    """One repeat that ended, well or not."""

    folder: Path
    repeat: int
    facts: RunFacts

    @property
    def ok(self) -> bool:
        return self.facts.ok

    def number(self, name: str) -> float:
        """A number out of run.json; refuses a file in which it is missing."""
        value = getattr(self.facts, name)
        if value is None or not 0 <= value < float("inf"):
            raise UserError(
                f"{self.folder / 'run.json'} has no usable '{name}'; delete its folder and run "
                "'blockyard replay --resume'"
            )
        return value


def middle(runs: Sequence[Run], pick: Callable[[RunFacts], float | None]) -> float | None:
    """The median over those runs that know it."""
    known = [value for run in runs if (value := pick(run.facts)) is not None]
    return median(known) if known else None


@dataclass(frozen=True)
class AllocatorRuns:
    """The repeats of one allocator in a section, those that succeeded and those that failed."""

    name: str
    base: str
    variant: str
    version: str
    runs: tuple[Run, ...]
    failures: tuple[Run, ...]
    untimed: Sequence[Run]
    null_untimed: Sequence[Run]
    """Of `null`, on the same journal."""
    needs_lock: bool
    needs_pool: bool
    floors_ns: tuple[float, float]
    """Of a timed call and a touch: the least that any run of the section measured, of any allocator, taken off all of
    them. A run that takes off its own measures it once, and where that came out too high (a neighbour on the host), all
    its latencies are too low: the minimum over repeats then picks that run."""

    @property
    def is_null(self) -> bool:
        return self.base == NULL

    @cached_property
    def totals(self) -> totals.Untimed | None:
        """What all calls together take; None where the campaign has no untimed runs of it and of `null`."""
        own = [totals.Bursts.of(run.folder, null=self.is_null) for run in self.untimed]
        null = [totals.Bursts.of(run.folder, null=True) for run in self.null_untimed]
        return totals.Untimed(own, null) if own and null else None

    @property
    def spent_ns(self) -> float | None:
        """All calls with first touch, per repeat: without a clock around each where such runs are there, else timed
        calls added up."""
        if self.totals is not None:
            return self.totals.all.with_touch_ns
        return middle(self.runs, lambda facts: facts.timed_ns)

    @property
    def spent_with_background_ns(self) -> float | None:
        """The same and the processor time of the allocator's own threads."""

        spent = None if self.totals is None else self.totals.all.with_touch_ns

        def both(facts: RunFacts) -> float | None:
            ns = facts.timed_ns if spent is None else spent
            return None if ns is None or facts.background.cpu_ns is None else ns + facts.background.cpu_ns

        return middle(self.runs if spent is None else self.untimed, both)

    @cached_property
    def ticks_per_ns(self) -> float:
        """The median of the runs' calibrations: the tick in which all of them are expressed."""
        rates = [run.number("ticks_per_ns") for run in self.runs]
        rate = median(rates)
        if rate <= 0:
            raise UserError(f"{self.runs[0].folder / 'run.json'} has no usable 'ticks_per_ns'")
        return rate

    def floor_ticks(self, run: Run) -> tuple[int, int]:
        """What is taken off each call and each touch of one of these runs, in that run's ticks."""
        rate = run.number("ticks_per_ns")
        call, touch = (round(floor * rate) for floor in self.floors_ns)
        return call, touch


@dataclass(frozen=True)
class Section:
    """What one table may compare."""

    journal: str
    pace: str
    touch: str
    options: RunOptions
    facts: Journal
    folder: Path
    allocators: tuple[AllocatorRuns, ...]
    machines: tuple[str, ...] = ()
    """How far the machines of a joined campaign disagree, and which were left out."""

    @property
    def title(self) -> str:
        threads = "" if self.threads == "journal" else ", on one thread"
        return f"{self.journal} at {pace_words(self.pace)}, {touch_words(self.touch)}{threads}"

    @property
    def named(self) -> dict[str, object]:
        """The columns by which files tell sections apart."""
        return {"journal": self.journal, "pace": self.pace, "touch": self.touch}

    @property
    def threads(self) -> str:
        return self.options.threads

    @property
    def thread_names(self) -> list[str]:
        return self.facts.thread_names

    @property
    def measured(self) -> list[AllocatorRuns]:
        return [allocator for allocator in self.allocators if allocator.runs]

    def pairs(self) -> np.ndarray | None:
        """By event of the journal the one that frees or gave its block; None where the file is not there."""
        path = self.folder / "pairs.npy"
        return samples.columns(path, np.dtype("<u4"), "pair") if path.is_file() else None

    def marks(self) -> np.ndarray:
        """The frame marks of all threads, in their order; none where the file is not there."""
        path = self.folder / "frames.npy"
        return samples.columns(path, samples.MARK, "frame") if path.is_file() else np.zeros(0, samples.MARK)


@dataclass(frozen=True)
class Results:
    """A campaign's folder, read but for its samples."""

    directory: Path
    name: str
    created_at: str
    blockyard: str
    repeats: int
    machine: MachineFacts
    allocators: tuple[str, ...]
    """Those planned, whether they ran or not."""
    missing: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    planned: int
    unfinished: int


def pace_words(pace: str) -> str:
    return "full speed" if pace == "max" else f"{pace} pace"


def touch_words(touch: str) -> str:
    return {
        "none": "no touch",
        "first": "the first byte touched",
        "page": "one byte touched in every page",
        "all": "all bytes touched",
    }.get(touch, touch)


def read(directory: Path, journals: tuple[str, ...] = ()) -> Results:
    """Reads a campaign's folder; only the named journals, when any are named."""
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder; give the one that 'blockyard replay -o' wrote")
    plan = document.read(directory)
    where = machine.read(directory)
    _check_names("journal", journals, [entry.name for entry in plan.journals])
    planned = [entry for entry in plan.runs() if not journals or entry.journal in journals]
    ended = [(entry, run_in(Folder(directory).run(entry), entry.repeat)) for entry in planned]
    ended, disagreements = _agreeing(ended, machines.by_run(plan, where))
    grouped: dict[tuple[str, str, str], dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    untimed: dict[tuple[str, str, str, str], list[Run]] = defaultdict(list)
    for entry, run in ended:
        if run is None:
            continue
        if not entry.untimed:
            grouped[entry.journal, entry.pace, entry.touch][entry.allocator].append(run)
        elif run.ok:
            untimed[entry.journal, entry.pace, entry.touch, entry.allocator].append(run)

    entries = {entry.name: entry for entry in plan.allocators}
    sections = []
    for (journal, pace, touch), found in grouped.items():
        floors = _least_floors([run for runs in found.values() for run in runs if run.ok])
        baseline = plan.journal(journal).baseline or journal
        null = untimed[baseline, pace, touch, NULL]
        members = [
            _allocator(entries[name], found[name], (untimed[journal, pace, touch, name], null), floors)
            for name in entries
            if name in found
        ]
        section = Section(
            journal,
            pace,
            touch,
            plan.options,
            plan.journal(journal),
            directory / "runs" / journal,
            tuple(members),
            disagreements.get((journal, pace, touch), ()),
        )
        _refuse_mixed_machines(section)
        sections.append(section)
    return Results(
        directory,
        plan.name,
        plan.created_at,
        plan.blockyard,
        plan.repeats,
        where,
        tuple(entries),
        tuple((entry.name, entry.reason) for entry in plan.missing),
        tuple(sections),
        len(planned),
        sum(run is None for _, run in ended),
    )


_Ended = list[tuple[schedule.Run, Run | None]]


def _agreeing(
    ended: _Ended, machine_of: dict[schedule.Run, str]
) -> tuple[_Ended, dict[tuple[str, str, str], tuple[str, ...]]]:
    """The runs without those of machines that are outliers in their section, and what to say of each section."""
    if not machine_of:
        return ended, {}
    took: dict[tuple[str, str, str], dict[schedule.Run, float]] = defaultdict(dict)
    for entry, run in ended:
        if run is not None and run.ok and not entry.untimed and run.facts.timed_ns and entry.allocator != NULL:
            took[entry.journal, entry.pace, entry.touch][entry] = run.facts.timed_ns
    found = {section: machines.agreement(runs, machine_of) for section, runs in took.items()}
    out = {section: one.outliers for section, one in found.items()}
    kept = [
        (entry, run)
        for entry, run in ended
        if machine_of.get(entry) not in out.get((entry.journal, entry.pace, entry.touch), ())
    ]
    return kept, {section: one.sentences for section, one in found.items()}


def run_in(folder: Path, repeat: int) -> Run | None:
    """The run whose folder it is; None where it has not ended."""
    try:
        return Run(folder, repeat, facts.read(folder / facts.RUN, RunFacts))
    except FileNotFoundError:
        return None


def _least_floors(runs: list[Run]) -> tuple[float, float]:
    known = [(run, rate) for run in runs if (rate := run.number("ticks_per_ns")) > 0]
    call, touch = (
        min((run.number(f"floor_{part}_ticks") / rate for run, rate in known), default=0.0)
        for part in ("call", "touch")
    )
    return call, touch


def _allocator(
    entry: Allocator, runs: list[Run], untimed: tuple[Sequence[Run], Sequence[Run]], floors: tuple[float, float]
) -> AllocatorRuns:
    good = tuple(run for run in runs if run.ok)
    facts = (good or tuple(runs))[0].facts
    base, _, variant = entry.name.partition("@")
    return AllocatorRuns(
        entry.name,
        entry.base or base,
        variant or entry.variant,
        facts.version or entry.version,
        good,
        tuple(run for run in runs if not run.ok),
        *untimed,
        facts.needs_lock if facts.locked is None else facts.locked,
        facts.needs_pool,
        floors,
    )


def _refuse_mixed_machines(section: Section) -> None:
    rates = [(run.number("ticks_per_ns"), run) for allocator in section.measured for run in allocator.runs]
    if not rates:
        return
    usual = median(rate for rate, _ in rates)
    for rate, run in rates:
        if abs(rate - usual) > _SAME_MACHINE * usual:
            raise UserError(
                f"{run.folder / 'run.json'} has a clock of {rate:.3f} ticks per nanosecond and the others of "
                f"its table {usual:.3f}: they were measured on different machines and cannot be compared"
            )


def check_allocators(results: Results, wanted: Iterable[str]) -> None:
    """Refuses a name that the campaign does not have."""
    _check_names("allocator", wanted, [*results.allocators, *(name for name, _ in results.missing)])


def _check_names(what: str, wanted: Iterable[str], known: list[str]) -> None:
    for name in wanted:
        if name not in known:
            raise UserError(f"this campaign has no {what} '{name}'; it has {', '.join(known) or 'none'}")
