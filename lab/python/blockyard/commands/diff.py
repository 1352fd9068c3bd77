"""`blockyard diff`: which sites of a program allocate more than before."""

import sys
from pathlib import Path
from typing import Any

import click

from blockyard import files, journal_tool, junit, options, recording_diff, sites_tool
from blockyard.errors import UserError
from blockyard.recording_diff import Difference, Outcome, share
from blockyard.report import blocks
from blockyard.report.blocks import Block, Paragraph
from blockyard.report.table import Column, Name, Row, Table, Unit, words
from blockyard.units import counted

GATE_FAILED = 3
_LITTLE = 0.001
_METRICS = {
    "allocations": "allocations",
    "bytes": "bytes requested",
    "worst-frame": "allocations in the worst frame",
    "peak": "bytes at the peak",
    "end": "bytes alive at the end",
}

_EPILOG = """\b
Examples:
  blockyard diff before.byj after.byj
  blockyard diff before.byj after.byj --of peak
  blockyard diff before.byj after.byj --gate site/bytes:1%"""


@click.command(short_help="Which sites allocate more than before. With gates for CI.", epilog=_EPILOG)
@click.argument("before", type=options.Journal())
@click.argument("after", type=options.Journal())
@sites_tool.grouping
@click.option(
    "--of",
    "metric",
    type=click.Choice(recording_diff.METRICS),
    default="allocations",
    show_default=True,
    help="What is compared: allocations and bytes per frame where there are frames, the worst frame, memory at the "
    "peak or at the end.",
)
@click.option("--totals", is_flag=True, help="Compare whole recordings, not their frames.")
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="[site/]METRIC:LIMIT%",
    help="Exit with 3 when the figure rose by more than LIMIT; with site/, when one site adds more than LIMIT of all "
    "before; repeatable.",
)
@click.option("--limit", type=click.IntRange(min=0), default=15, show_default=True, help="How many sites; 0 is all.")
@sites_tool.through
@sites_tool.skip
@sites_tool.wrappers
@options.stretch
@options.as_json
@click.option("--export-junit", "junit_path", metavar="FILE", help="Write JUnit XML; '-' prints it.")
def command(
    before: Path,
    after: Path,
    metric: str,
    totals: bool,
    gates: tuple[str, ...],
    limit: int,
    as_json: bool,
    junit_path: str | None,
    **given: Any,
) -> None:
    """Compare the sites of two recordings: those that appeared, vanished, grew or shrank by more than 2 %.

    BEFORE and AFTER are journals with call stacks. Two recordings of one program differ; set a gate's limit above what
    two recordings without a change show. Exits with 0, with 3 when a gate failed, with 1 when the two can't be read.
    """
    files.check_outputs(files.STANDARD_OUTPUT if as_json else None, junit_path)
    chosen = [recording_diff.parse_gate(text) for text in gates]
    old, new = (sites_tool.listing(journal, given)[0] for journal in (before, after))
    for journal, listing in ((before, old), (after, new)):
        if not listing.all.allocations:
            raise UserError(f"{journal} has no allocation to compare")
    found = recording_diff.difference(old, new, totals)
    outcomes = [recording_diff.judge(found, gate) for gate in chosen]
    if as_json:
        journal_tool.print_json(_json(found, metric, outcomes))
    title = f"{before} against {after}"
    if not files.exported(as_json, (junit_path, lambda: _junit(title, found, metric, outcomes))):
        click.echo(blocks.text(_said(found, metric, limit, outcomes)), nl=False)
    if not all(outcome.passed for outcome in outcomes):
        sys.exit(GATE_FAILED)


def _said(found: Difference, metric: str, limit: int, outcomes: list[Outcome]) -> list[Block]:
    changed = found.ordered(metric)
    shown = changed[:limit] if limit else changed
    fates = [change.word(metric) for change in found.changes]
    count = ", ".join(f"{fates.count(word):,} {word}" for word in ("appeared", "vanished", "grew", "shrank"))
    said: list[Block] = [Paragraph(text) for text in (found.warning, _answer(found, metric)) if text]
    if shown:
        rows = [
            Row(
                Name(change.name),
                [*((side or {}).get(metric) or None for side in (change.before, change.after)), change.moved(metric)],
            )
            for change in shown
        ]
        columns = [Column("before", _unit(found, metric)), Column("after", _unit(found, metric)), Column("change")]
        more = len(changed) - len(shown)
        notes = [f"{counted(more, 'more site')} changed; --limit 0 shows all"] if more else []
        said.append(Table("", columns, rows, notes=notes, first=_what(found, metric)))
    said.append(Paragraph(f"{counted(len(fates), 'site')}: {count}."))
    said += [Paragraph(f"Note: {remark}.") for remark in found.remarks]
    said += [
        Paragraph(f"{'passed' if outcome.passed else 'FAILED'}  {outcome.gate.text}: {outcome.reason}")
        for outcome in outcomes
    ]
    return said


def _what(found: Difference, metric: str) -> str:
    return _METRICS[metric] + (" per frame" if found.per_frame and metric in ("allocations", "bytes") else "")


def _unit(found: Difference, metric: str) -> Unit:
    if metric in ("bytes", "peak", "end"):
        return Unit.BYTES
    return Unit.RATE if found.per_frame and metric == "allocations" else Unit.COUNT


def _answer(found: Difference, metric: str) -> str:
    old, new = found.before[metric], found.after[metric]
    rise, what, unit = new - old, _what(found, metric), _unit(found, metric)
    if not rise:
        return f"AFTER and BEFORE are equal: {words(old, unit)}, {what}."
    figures = f"{words(new, unit)} against {words(old, unit)}, {what}."
    if old and abs(rise) < _LITTLE * old:
        return f"AFTER is within 0.1 % of BEFORE: {figures}"
    word = "more" if rise > 0 else "less"
    percent = share(abs(rise), old).removeprefix("+")
    amount = f"{percent} {word}" if old else word
    return f"AFTER has {amount}: {figures}"


def _junit(title: str, found: Difference, metric: str, outcomes: list[Outcome]) -> str:
    """A test case a gate, or without gates one for each site that changed, which fails nothing."""
    document = junit.Document("blockyard diff")
    suite = document.suite(title)
    for outcome in outcomes:
        junit.judged(suite, outcome.gate.text, outcome.passed, outcome.reason)
    if not outcomes:
        for change in found.ordered(metric):
            junit.judged(suite, change.name, True, f"{change.moved(metric)} {_what(found, metric)}")
    return document.text()


def _json(found: Difference, metric: str, outcomes: list[Outcome]) -> dict:
    return {
        "per_frame": found.per_frame,
        "metric": metric,
        "before": found.before,
        "after": found.after,
        "sites": [
            {"name": change.name, "change": change.word(metric), "before": change.before, "after": change.after}
            for change in found.ordered(metric)
        ],
        "gates": [
            {"gate": outcome.gate.text, "passed": outcome.passed, "reason": outcome.reason} for outcome in outcomes
        ],
        "warning": found.warning,
        "notes": found.remarks,
    }
