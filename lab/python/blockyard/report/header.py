"""What every page states: machine, kernel, clock, timer floor, repeats, pace and touch."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from blockyard import units
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.sections import AllocatorRuns, Results, Section, pace_words, touch_words
from blockyard.campaign.document import Journal
from blockyard.campaign.facts import MachineFacts


@dataclass(frozen=True)
class Header:
    """The facts of one section's page, a phrase each. `floor` is the timer's."""

    machine: str
    clock: str
    floor: str
    runs: str
    blockyard: str

    def lines(self) -> list[str]:
        """For text: one fact after the other."""
        return [f"Machine: {self.machine}", f"Clock: {self.clock}; {self.floor}", f"Runs: {self.runs}"]

    def caption(self, allocator: AllocatorRuns | None = None) -> str:
        """For the foot of a picture: two lines."""
        version = f"{allocator.name} {allocator.version}; " if allocator and allocator.version else ""
        return f"{self.machine}; blockyard {self.blockyard}\n{version}clock {self.clock}; {self.floor}; {self.runs}"


def of(results: Results, section: Section, figures: Sequence[AllocatorFigures], gross: bool) -> Header:
    rates = [one.runs.ticks_per_ns for one in figures]
    clock = results.machine.clock or "unknown"
    clock += f" at {median(rates):.3f} ticks/ns" if rates else ""
    step = max((one for one in figures if one.step_ticks > 1), key=lambda one: one.step_ticks, default=None)
    clock += f" in steps of {units.duration(step.step_ns)}" if step else ""
    # What is taken off, and the most that a run measured.
    floors = [one.runs.floors_ns[0] for one in figures] or [0.0]
    measured = [run.number("floor_call_ticks") / one.runs.ticks_per_ns for one in figures for run in one.runs.runs]
    least, most = (units.duration(ns) for ns in (min(floors), max([*floors, *measured])))
    several = "" if least == most else f" (in single runs up to {most})"
    counts = sorted({len(one.runs.runs) for one in figures}) or [0]
    repeats = f"{counts[0]} to {counts[-1]} repeats" if len(counts) > 1 else units.counted(counts[0], "repeat")
    setting = f"{pace_words(section.pace)}, {touch_words(section.touch)}, {section.options.words}"
    return Header(
        machine_words(results.machine),
        clock,
        f"timer floor {least}{several}, {'left in' if gross else 'taken off'}",
        f"{repeats}; {setting}{_stretch(section.facts)}",
        results.blockyard,
    )


def machine_words(machine: MachineFacts) -> str:
    """`AMD EPYC (26 2 1), 2 cores, 23 GiB, virtual machine; Debian 12, Linux 6.1.0`."""
    parts = [
        machine.cpu or "unknown processor",
        f"{machine.cores} cores" if machine.cores else "? cores",
        units.size(machine.memory_bytes) if machine.memory_bytes else "",
        "virtual machine" if machine.virtualised else "",
    ]
    system = [
        machine.distribution,
        f"Linux {machine.kernel or 'unknown'}",
        f"huge pages {machine.transparent_huge_pages}" if machine.transparent_huge_pages else "",
        f"governor {machine.governor}" if machine.governor not in ("", "unknown") else "",
    ]
    return f"{', '.join(filter(None, parts))}; {', '.join(filter(None, system))}"


def _stretch(facts: Journal) -> str:
    begin, end = facts.from_s, facts.to_s
    if begin is None and end is None:
        return ""
    return f", stretch {begin or 0:g} s to {'the end' if end is None else f'{end:g} s'}"
