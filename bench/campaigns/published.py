"""What a report says, read back from its files: summary.csv, frames.csv and the tables of report.md."""

import csv
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from blockyard.analysis import sections
from blockyard.analysis.sections import Section

NAMES = {
    "godot": "Godot",
    "supertux": "SuperTux",
    "warzone2100": "Warzone 2100",
    "wesnoth": "Wesnoth",
    "zeroad": "0 A.D.",
}
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "%": 1, "": 1}

Row = dict[str, str]


class Refused(Exception):
    """One sentence on what is missing."""


@dataclass(frozen=True)
class Published:
    """One campaign's folder with its report."""

    folder: Path

    @property
    def report(self) -> Path:
        return self.folder / "report"

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        return sections.read(self.folder).sections

    @property
    def journals(self) -> list[str]:
        return [section.journal for section in self.sections]

    @cached_property
    def step_ns(self) -> float:
        run = self.sections[0].measured[0].runs[0]
        return run.number("clock_step_ticks") / run.number("ticks_per_ns")

    @cached_property
    def locked(self) -> set[tuple[str, str]]:
        """(journal, allocator) that took a lock around every call."""
        return {(section.journal, one.name) for section in self.sections for one in section.measured if one.needs_lock}

    @cached_property
    def latencies(self) -> dict[tuple[str, str, str, str], Row]:
        """By journal, allocator, view and operation: a malloc with its touch, a free; all sizes."""
        return {
            (row["journal"], row["allocator"], row["view"], row["operation"]): row
            for row in self._csv("summary.csv")
            if row["size_class"] == "all"
            and (row["operation"], row["part"]) in (("malloc", "call+touch"), ("free", "call"))
        }

    @cached_property
    def frames(self) -> list[Row]:
        return self._csv("frames.csv")

    @cached_property
    def runs(self) -> list[Row]:
        return self._csv("runs.csv")

    def allocators(self, journal: str) -> list[str]:
        return [one.name for section in self.sections if section.journal == journal for one in section.measured]

    def table(self, journal: str, title: str) -> list[Row]:
        """A table of report.md whose title begins so: a row an allocator; empty where there is none."""
        for found in self._tables[journal]:
            if found[0].startswith(title):
                return found[1]
        return []

    def notes(self, journal: str) -> list[str]:
        return self._notes[journal]

    @property
    def header(self) -> list[str]:
        """The lines that describe machine, clock and runs, of the first journal."""
        lines = self._report_lines
        first = next(number for number, line in enumerate(lines) if line.startswith("Machine: "))
        return [line.rstrip("\\") for line in lines[first : first + 3]]

    @cached_property
    def _report_lines(self) -> list[str]:
        return self._file("report.md").read_text(encoding="utf-8").splitlines()

    @cached_property
    def _parts(self) -> dict[str, list[str]]:
        """The lines of report.md by journal."""
        found: dict[str, list[str]] = {}
        for line in self._report_lines:
            if line.startswith("## "):
                found[line[3:].split(" at ")[0]] = []
            elif found:
                found[list(found)[-1]].append(line)
        return found

    @cached_property
    def _notes(self) -> dict[str, list[str]]:
        begin = "- **Note:** "
        return {
            journal: [line.removeprefix(begin) for line in lines if line.startswith(begin)]
            for journal, lines in self._parts.items()
        }

    @cached_property
    def _tables(self) -> dict[str, list[tuple[str, list[Row]]]]:
        found: dict[str, list[tuple[str, list[Row]]]] = {}
        for journal, lines in self._parts.items():
            mine = found.setdefault(journal, [])
            for number, line in enumerate(lines):
                if re.fullmatch(r"\*\*.+\*\*", line):
                    mine.append((line.strip("*"), _rows(lines[number + 1 :])))
        return found

    def _csv(self, name: str) -> list[Row]:
        with self._file(name).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def _file(self, name: str) -> Path:
        path = self.report / name
        if not path.is_file():
            raise Refused(f"{path} is missing: make the report with 'blockyard report {self.folder}'")
        return path


def _rows(lines: list[str]) -> list[Row]:
    """The pipe table at the beginning of these lines, without bold."""
    cells = []
    for line in lines:
        if line.startswith("|"):
            cells.append(
                [
                    cell.strip().strip("*") if index else cell.strip()
                    for index, cell in enumerate(line.strip("|").split("|"))
                ]
            )
        elif line or cells:
            break
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]] if cells else []


def value(cell: str) -> float | None:
    """`2.3 MiB`, `63.5 us`, `1,099`, `97 %` as a number of bytes, ns or whatever it is; None where there is none."""
    found = re.fullmatch(r"[<≥]?([\d.,]+) ?(\S*)", cell)
    if not found or found[2] not in _SIZES:
        return None
    return float(found[1].replace(",", "")) * _SIZES[found[2]]
