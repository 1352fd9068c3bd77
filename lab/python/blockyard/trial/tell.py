"""What a trial says: a sentence for each contender, then the figures behind it."""

from collections.abc import Iterator, Sequence
from typing import Any

from blockyard.analysis.noise import Difference, Figure, Verdict
from blockyard.report.blocks import Block, Bullets, Paragraph, Warnings
from blockyard.report.table import Column, Ranged, Row, Table, Unit, words
from blockyard.trial import figures
from blockyard.trial.drive import Outcome, succeeded
from blockyard.trial.figures import OVER, Found, Measure
from blockyard.units import counted, duration, listed, span

_LEAST_RUNS = 3


class Story:
    """A trial's outcome, looked at once."""

    def __init__(self, outcome: Outcome, budget_ns: float, same_output: bool) -> None:
        self.outcome = outcome
        self.budget_ns = budget_ns
        self.same_output = same_output
        runs = {name: succeeded(own) for name, own in outcome.runs.items()}
        self.runs = {name: own for name, own in runs.items() if own}
        self.first = outcome.trial.contenders[0].name
        self.found: Found | None = figures.compare(self.runs, budget_ns) if self.first in self.runs else None
        self.rate = figures.refresh_rate(self.runs.get(self.first, ()))

    @property
    def program(self) -> str:
        # In one line: an argument may be a script.
        return " ".join(" ".join([self.outcome.trial.contenders[0].program, *self.outcome.trial.arguments]).split())

    def sentences(self) -> list[str]:
        """One for each contender but the first."""
        return [self._sentence(one.name) for one in self.outcome.trial.contenders[1:]]

    def _sentence(self, name: str) -> str:
        if name in self.outcome.left_out and not self.outcome.runs[name]:
            return f"{name} failed in the warm-up and was left out: {self.outcome.left_out[name]}."
        if self.found is None or name not in self.found.differences:
            return f"{name}: no run ended well, so nothing is known of it."
        least = min(len(self.runs[name]), len(self.runs[self.first]))
        if least < _LEAST_RUNS:
            return f"{name}: {counted(least, 'run')} of each can't show a difference; three can."
        claims = [one for one in self.found.measures if self._verdict(name, one) is not Verdict.INCONCLUSIVE]
        said = [self._claim(name, one) for one in claims]
        if any(one.time for one in claims):
            return f"{name} is {listed(said)}." if said[0][:6] in ("faster", "slower") else f"{name}: {listed(said)}."
        nothing = f"no difference{' in time' if said else ''} that {counted(least, 'run')} can show"
        bound = self._bound(name)
        nothing += f" ({bound})" if bound else ""
        return f"{name} makes {nothing}{f', but: {listed(said)}' if said else ''}."

    def _verdict(self, name: str, one: Measure) -> Verdict:
        found = self._difference(name, one)
        return found.verdict if found is not None else Verdict.INCONCLUSIVE

    def _difference(self, name: str, one: Measure) -> Difference | None:
        return self.found.differences[name].get(one.title) if self.found is not None else None

    def _base(self, one: Measure) -> Figure:
        assert self.found is not None
        return self.found.figures[self.first][one.title]

    def ends(self, name: str, one: Measure) -> tuple[float, float] | None:
        """Of the difference itself, in the measure's unit."""
        found = self._difference(name, one)
        if self.found is None or found is None:
            return None
        return figures.ends(self._base(one), self.found.figures[name][one.title], found)

    def _claim(self, name: str, one: Measure) -> str:
        found = self._difference(name, one)
        ends = self.ends(name, one)
        assert found is not None
        assert ends is not None
        low, high = sorted(abs(end) for end in ends)
        form = one.lower if found.verdict is Verdict.BETTER else one.higher
        return form.format(span(_value(low, one.unit), _value(high, one.unit)))

    def _bound(self, name: str) -> str:
        """What a difference in time would have to be less than: of the first measure in which that tells anything."""
        held = ("CPU p99", "CPU p50") if self.rate else ()
        times = sorted(
            (one for one in self.measures if one.time),
            key=lambda one: held.index(one.title) if one.title in held else len(held),
        )
        known = [(one, max(map(abs, ends))) for one in times if (ends := self.ends(name, one)) is not None]
        if not known:
            return ""
        one, most = next((pair for pair in known if pair[1] < self._base(pair[0]).value), known[-1])
        return f"less than {_value(most, one.unit)} either way at {one.title}"

    @property
    def measures(self) -> Sequence[Measure]:
        return self.found.measures if self.found is not None else ()

    def warnings(self) -> Iterator[str]:
        trial, everyone = self.outcome.trial, self.outcome.runs
        for name, reason in self.outcome.left_out.items():
            if everyone[name]:
                yield f"{name} failed in the warm-up and got no more runs than it had: {reason}."
        for name, own in everyone.items():
            failed = [one.failed for one in own if one.failed is not None]
            if failed:
                yield f"{name}: {len(failed)} of {counted(len(own), 'run')} failed and are left out: {failed[0]}."
        first = self.runs.get(self.first, [])
        if not any(len(one.frames_ns) for one in first):
            yield (
                "No frames were seen, so whole runs are compared. A program that ends its frames in another way says "
                "so by by_frame_mark() (blockyard/frame.h) or --frame-symbol."
            )
        elif first[0].child is not None:
            yield f"The frames are those of {first[0].child}, a child of {trial.contenders[0].program}."
        if self.rate:
            yield (
                f"The program seems to wait for {self.rate} frames a second, of its screen or of its own: an allocator "
                "can't shorten such a frame, only the CPU time in it, which the columns CPU p50 and p99 show."
            )
        if self.same_output:
            yield from self._output_warnings()

    def _output_warnings(self) -> Iterator[str]:
        """Who writes another output than the first contender's first run."""
        base = self.runs.get(self.first, [])
        for name, own in self.runs.items():
            others = [one for one in own if base and one.output != base[0].output]
            if others:
                yield (
                    f"{name} wrote another output in {len(others)} of {counted(len(own), 'run')} than "
                    f"{self.first} in its first."
                )

    def tables(self) -> Iterator[Table]:
        if self.found is None:
            return
        frames = [one for one in self.measures if one.title.startswith(("frame", "worst", "late", "CPU p"))]
        runs = [one for one in self.measures if one not in frames]
        late = f"late frames: over {duration(OVER * self.budget_ns)}, a frame of the budget and 5 %; mean of a run"
        notes = [late, "CPU p50, p99: processor time of all threads within a frame"]
        for title, wanted, below in (("Frames", frames, notes), ("Runs", runs, [])):
            known = [one for one in wanted if any(one.title in own for own in self.found.figures.values())]
            if known:
                yield self._table(title, known, below)
                differences = self._differences(title, known)
                if any(cell is not None for row in differences.rows for cell in row.cells):
                    yield differences

    def _table(self, title: str, wanted: Sequence[Measure], notes: Sequence[str]) -> Table:
        assert self.found is not None
        columns = [Column(one.title.replace(" ", "\n", 1), one.unit, marked=True) for one in wanted]
        rows = [Row(name, [self._cell(name, one) for one in wanted], key=name) for name in self.runs]
        counts = {len(own) for own in self.runs.values()}
        runs = f"{min(counts)} to {max(counts)} runs" if len(counts) > 1 else counted(counts.pop(), "run")
        return Table(title, columns, rows, [f"{runs} of each"], notes, "too few frames", own=self.first)

    def _cell(self, name: str, one: Measure) -> Ranged | float | None:
        assert self.found is not None
        figure = self.found.figures[name].get(one.title)
        if figure is None:
            return None
        ends = figure.interval(self.found.confidence)
        return figure.value if ends is None else Ranged(figure.value, *ends, figure, self.found.confidence)

    def _differences(self, title: str, wanted: Sequence[Measure]) -> Table:
        rows = [
            Row(name, [self._difference_cell(name, one) for one in wanted], key=name)
            for name in self.runs
            if name != self.first
        ]
        columns = [Column(one.title.replace(" ", "\n", 1)) for one in wanted]
        note = "all hold together in 95 %"
        if any(cell and cell.startswith("±") for row in rows for cell in row.cells):
            note = f"not more than so much either way (±), where these runs show no difference; {note}"
        return Table(f"{title}: difference from {self.first}", columns, rows, notes=[note], absent="too few runs")

    def _difference_cell(self, name: str, one: Measure) -> str | None:
        found = self._difference(name, one)
        ends = self.ends(name, one)
        if found is None or ends is None:
            return None
        low, high = ends
        if found.verdict is Verdict.INCONCLUSIVE:
            return f"±{_value(max(abs(low), abs(high)), one.unit)}"
        ends = [_value(end, one.unit) for end in sorted((abs(low), abs(high)))]
        return f"+{span(*ends)}" if found.verdict is Verdict.WORSE else f"-{span(*ends, ' to -')}"

    def blocks(self) -> list[Block]:
        """As a report has them: the answer first."""
        warnings = list(self.warnings())
        blocks: list[Block] = [Paragraph(f"{self.program}, against {self.first}:"), Bullets(self.sentences())]
        if warnings:
            blocks.append(Warnings(warnings))
        return [*blocks, *self.tables()]

    def json(self) -> dict[str, Any]:
        """Durations in ns, sizes in bytes; a difference is None where these runs show none."""
        trial = self.outcome.trial
        return {
            "program": [trial.contenders[0].program, *trial.arguments],
            "against": self.first,
            "sentences": self.sentences(),
            "warnings": list(self.warnings()),
            "interrupted": self.outcome.interrupted,
            "held_to_frames_per_second": self.rate,
            "contenders": [
                {
                    "name": one.name,
                    "runs": len(self.runs.get(one.name, ())),
                    "left_out": self.outcome.left_out.get(one.name),
                    "figures": {each.title: self._json(one.name, each) for each in self.measures},
                }
                for one in trial.contenders
            ],
        }

    def _json(self, name: str, one: Measure) -> dict[str, Any] | None:
        assert self.found is not None
        figure = self.found.figures.get(name, {}).get(one.title)
        if figure is None:
            return None
        own = figure.interval(self.found.confidence)
        known: dict[str, Any] = {"value": figure.value, "low": own and own[0], "high": own and own[1]}
        ends = self.ends(name, one) if name != self.first else None
        if ends is not None:
            claimed = {Verdict.BETTER: "lower", Verdict.WORSE: "higher"}.get(self._verdict(name, one))
            known["difference"] = {"low": ends[0], "high": ends[1], "claimed": claimed}
        return known


def _value(amount: float, unit: Unit) -> str:
    return words(amount, unit if unit in (Unit.NS, Unit.BYTES) else Unit.RATE)


def change(amount: float, unit: Unit) -> str:
    """`+3.00 MiB`."""
    return f"{'-' if amount < 0 else '+'}{_value(abs(amount), unit)}"
