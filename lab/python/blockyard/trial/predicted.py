"""What a replay of the program's journal had predicted, beside what the trial found."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blockyard.errors import UserError
from blockyard.report.table import Column, Row, Table
from blockyard.trial.tell import Story, change

CPU, WORST, PEAK = "CPU time", "worst frame", "peak memory"
# Why a program may answer otherwise than a replay of what it allocated.
_REASONS = {
    CPU: "a replay touches blocks once; the program goes on using them, and where they lie changes what that costs",
    WORST: "the frame that allocates most need not be the program's worst, and a pause of the machine is in neither",
    PEAK: "a replay's memory is its allocator's alone, at the replay's pace; the program's has code and mappings too",
}


@dataclass(frozen=True)
class Predicted:
    """By allocator: what a run's allocation takes (ns), what its worst frame's takes (ns), its peak (bytes)."""

    figures: dict[str, dict[str, float]]


def read(folder: Path) -> Predicted:
    """From the folder of `blockyard replay`. Raises UserError where it has no report, or of more than one journal."""
    report = folder / "report" if (folder / "report").is_dir() else folder
    if not (report / "totals.csv").is_file():
        raise UserError(f"{folder} has no report of a replay; run 'blockyard report {folder}' first")
    figures: dict[str, dict[str, float]] = {}
    totals = [row for row in _rows(report / "totals.csv") if row["thread"] == "all"]
    if len({(row["journal"], row["pace"], row["touch"]) for row in totals}) > 1:
        raise UserError(f"{folder} has more than one journal, pace or touch; replay the program's own journal alone")
    for row in totals:
        figures[row["allocator"]] = {CPU: float(row["total_ns"]) + float(row["touch_ns"] or 0)}
    for row in _rows(report / "frames.csv"):
        if (row["view"], row["phase"], row["budget"]) == ("attributed", "all", "60 Hz") and row["worst_share"]:
            figures.setdefault(row["allocator"], {})[WORST] = float(row["worst_share"]) * float(row["budget_ns"])
    for row in _rows(report / "memory.csv"):
        own = figures.setdefault(row["allocator"], {})
        own[PEAK] = max(own.get(PEAK, 0.0), float(row["resident_bytes"]))
    return Predicted(figures)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)


def table(predicted: Predicted, story: Story) -> Table | None:
    """For each contender that the replay knew too: the predicted change from the first, and whether it lies within what
    the trial found. None where there is none."""
    base = predicted.figures.get(story.first, {})
    found = story.found.figures[story.first] if story.found is not None else {}
    titles = [title for title in (WORST, CPU, PEAK) if title in base and title in found]
    rows, outside = [], set()
    for name in story.runs:
        own = predicted.figures.get(name)
        if name == story.first or own is None:
            continue
        cells: list[str | None] = []
        for title in titles:
            measure = next((one for one in story.measures if one.title == title), None)
            if measure is None or title not in own:
                cells.append(None)
                continue
            expected = own[title] - base[title]
            ends = story.ends(name, measure)
            words = change(expected, measure.unit)
            if ends is None:
                cells.append(words)
            elif ends[0] <= expected <= ends[1]:
                cells.append(f"{words}, within")
            else:
                cells.append(f"{words}, outside")
                outside.add(title)
        rows.append(Row(name, cells, key=name))
    if not rows:
        return None
    judged = any(cell.endswith(("within", "outside")) for row in rows for cell in row.cells if cell)
    notes = ["within, outside: of the difference's ends that the trial found, above"] if judged else []
    notes += [f"{title}: {_REASONS[title]}" for title in titles if title in outside]
    columns = [Column(title.replace(" ", "\n", 1)) for title in titles]
    return Table(f"Predicted by replay: difference from {story.first}", columns, rows, notes=notes, absent="not known")
