"""What `blockyard compare` says: blocks of text and tables, JSON for other programs (docs/guide/compare.md names the
fields), and JUnit XML, a test case a gate and allocator or without gates a claim."""

import json
from collections.abc import Sequence
from statistics import median
from typing import Any
from xml.etree import ElementTree

from blockyard import junit
from blockyard.analysis.compare import OPERATIONS, Change, Claim, Comparison, Section, Verdict
from blockyard.analysis.gate import Outcome, losses, percent
from blockyard.analysis.latency import WITH_INTERVAL, Operation, Percentile, View
from blockyard.analysis.sections import Results
from blockyard.report.blocks import Block, Heading, Paragraph, Warnings
from blockyard.report.table import Column, Row, Table, Unit
from blockyard.units import counted

FORMAT = 1


def document(comparison: Comparison, outcomes: Sequence[Outcome], everything: bool = False) -> list[Block]:
    """`everything` adds a row for each claim, inconclusive ones with their reason; else only what changed has one."""
    base, new = comparison.pairing.base, comparison.pairing.new
    found: list[Block] = [
        Heading("Blockyard compare"),
        Paragraph("\n".join([f"BASE: {_campaign(base)}", f"NEW: {_campaign(new)}", f"On: {new.machine.kind}"])),
    ]
    if comparison.pairing.notes:
        found.append(Warnings(list(comparison.pairing.notes)))
    for section in comparison.sections:
        found += _section(section, comparison.confidence, everything)
    counts = _counts(comparison)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    found.append(Paragraph(f"{sum(counts.values())} comparisons: {listed}"))
    if outcomes or losses(comparison):
        found += _gates(comparison, outcomes)
    return found


def _counts(comparison: Comparison) -> dict[str, int]:
    """How many claims of each kind, `null` left out."""
    claims = [claim for section in comparison.sections for claim in section.claims if not claim.is_null]
    return {verdict.value: sum(claim.verdict is verdict for claim in claims) for verdict in Verdict}


def _campaign(results: Results) -> str:
    return f"{results.directory}, measured {results.created_at}, {counted(results.repeats, 'repeat')}"


def _section(section: Section, confidence: float, everything: bool) -> list[Block]:
    found: list[Block] = [Heading(section.title, 2)]
    if section.notes:
        found.append(Warnings(list(section.notes)))
    found += [_matrix(section, operation) for operation in OPERATIONS if _of(section, operation)]
    if section.totals:
        found.append(_totals(section.totals))
    shown = [
        claim
        for claim in section.claims
        if everything or (claim.verdict is not Verdict.INCONCLUSIVE and not claim.is_null)
    ]
    if shown:
        found.append(_detail(shown, confidence, everything))
    return found


def _totals(claims: Sequence[Claim]) -> Table:
    """Of all calls with first touch, per repeat."""
    columns = [Column("BASE", Unit.NS), Column("NEW", Unit.NS), Column("change")]
    changes = [(claim, claim.change(None)) for claim in claims]
    rows = [Row(claim.allocator, [change.base, change.new, _cell(claim)]) for claim, change in changes if change]
    better = {(y, 2) for y, claim in enumerate(claims) if claim.verdict is Verdict.BETTER}
    return Table("all calls together: NEW against BASE", columns, rows, better=frozenset(better))


def _of(section: Section, operation: Operation) -> list[Claim]:
    return [claim for claim in section.claims if claim.operation is operation]


def _matrix(section: Section, operation: Operation) -> Table:
    """An allocator a row, a percentile a column: the verdict with the change, or the change alone in brackets."""
    claims = _of(section, operation)
    percentiles = [
        one
        for one in WITH_INTERVAL
        if any(claim.percentile == one and claim.change(None).ratio is not None for claim in claims)
    ]
    names = list(dict.fromkeys(claim.allocator for claim in claims))
    cells = {(claim.allocator, claim.percentile): claim for claim in claims}
    rows = [
        Row(
            name,
            [_cell(cells.get((name, percentile))) for percentile in percentiles],
            name,
            any(claim.is_null for claim in claims if claim.allocator == name),
        )
        for name in names
    ]
    touch = " and first touch" if operation is Operation.MALLOC and section.pair.new.touch != "none" else ""
    better = {
        (y, x)
        for y, name in enumerate(names)
        for x, percentile in enumerate(percentiles)
        if (claim := cells.get((name, percentile))) and claim.verdict is Verdict.BETTER and not claim.is_null
    }
    shown = [cell for row in rows for cell in row.cells if cell]
    inconclusive = ["(...) inconclusive: no claim is made"] if any(cell.startswith("(") for cell in shown) else []
    return Table(
        f"{operation.value}{touch}: NEW against BASE",
        [Column(one.label) for one in percentiles],
        rows,
        notes=[*inconclusive, *_power(claims, percentiles)],
        absent="too few samples for this percentile",
        better=frozenset(better),
    )


def _power(claims: Sequence[Claim], percentiles: Sequence[Percentile]) -> list[str]:
    """What no difference means: the change of the middle allocator that would probably have shown."""
    found = []
    for percentile in percentiles:
        changes = [claim.change(None) for claim in claims if claim.percentile == percentile and not claim.is_null]
        if known := [change.shows for change in changes if change is not None and change.shows is not None]:
            found.append(f"{percentile.label} {percent(median(known)).lstrip('+')}")
    return [f"a change would probably not show below: {', '.join(found)}"] if found else []


def _cell(claim: Claim | None) -> str | None:
    change = claim.change(None) if claim is not None else None
    if claim is None or change is None or change.ratio is None:
        return None
    if claim.verdict is Verdict.INCONCLUSIVE:
        return f"({percent(change.ratio)})"
    return f"{claim.verdict.value} {percent(change.ratio)}"


def _detail(claims: Sequence[Claim], confidence: float, everything: bool) -> Table:
    rows = []
    for claim in claims:
        shown, inherent = claim.change(None), claim.change(View.INHERENT)
        assert shown is not None and inherent is not None
        known = shown.low is not None and shown.high is not None
        cells = [
            f"{claim.operation.value} {claim.percentile.label}",
            shown.base,
            shown.new,
            f"{percent(shown.low)} to {percent(shown.high)}" if known else None,
            None if inherent.ratio is None else percent(inherent.ratio),
            *([claim.reason or claim.verdict.value] if everything else []),
        ]
        rows.append(Row(claim.allocator, cells))
    views = " or ".join(dict.fromkeys(next(iter(claim.views)).value for claim in claims))
    return Table(
        "every comparison" if everything else "what changed",
        [
            Column("of"),
            Column("BASE", Unit.NS),
            Column("NEW", Unit.NS),
            Column("interval"),
            Column("inherent"),
            *([Column("verdict")] if everything else []),
        ],
        rows,
        notes=[
            f"BASE, NEW and the interval of the change are {views}. Intervals are of {confidence * 100:.4g} %, "
            "so that a wrong claim among all of this comparison has a chance of 5 %. Inherent, a minimum over "
            "the repeats, has none, and must agree."
        ],
    )


def _gates(comparison: Comparison, outcomes: Sequence[Outcome]) -> list[Block]:
    many = len(comparison.sections) > 1
    found: list[Block] = [Heading("Gates", 2)]
    failed = [f"{words}{_where(section, many)}" for section, words in losses(comparison)]
    failed += [f"{sentence(one)}{_where(one.section, many)}" for one in outcomes if not one.passed]
    if failed:
        found.append(Warnings(failed))
    found += [Paragraph(f"{sentence(one)}{_where(one.section, many)}") for one in outcomes if one.unproven]
    passed = sum(one.passed is True for one in outcomes)
    found.append(Paragraph(f"{passed} of {len(outcomes)} passed"))
    return found


def sentence(outcome: Outcome) -> str:
    """One gate's outcome, on one allocator and operation."""
    fate = {True: "passed", False: "FAILED", None: "can't be judged"}[outcome.passed]
    return f"gate {outcome.gate.text} {fate}: {outcome.allocator}, {outcome.operation.value}: {outcome.words}"


def _where(section: Section, many: bool) -> str:
    return f" [{section.title}]" if many else ""


def json_text(comparison: Comparison, outcomes: Sequence[Outcome]) -> str:
    pairing = comparison.pairing
    lost = losses(comparison)
    fields = {
        "format": FORMAT,
        "base": _campaign_fields(pairing.base),
        "new": _campaign_fields(pairing.new),
        "machine": pairing.new.machine.kind,
        "confidence": comparison.confidence,
        "notes": list(pairing.notes),
        "counts": _counts(comparison),
        "sections": [_section_fields(section) for section in comparison.sections],
        "lost": [{"section": section.title, "reason": words} for section, words in lost],
        "gates": [_outcome_fields(one) for one in outcomes],
    }
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def _picked(one: object, names: str) -> dict[str, Any]:
    return {name: getattr(one, name) for name in names.split()}


def _campaign_fields(results: Results) -> dict[str, Any]:
    return {"directory": str(results.directory), **_picked(results, "name created_at blockyard repeats")}


def _section_fields(section: Section) -> dict[str, Any]:
    new = section.pair.new
    return {
        **_picked(new, "journal pace touch threads"),
        **_picked(new.facts, "sha256 from_s to_s"),
        "notes": list(section.notes),
        "claims": [_claim_fields(claim) for claim in section.claims],
        "totals": [_claim_fields(claim) for claim in section.totals],
    }


def _claim_fields(claim: Claim) -> dict[str, Any]:
    return {
        **_picked(claim, "allocator reason is_null"),
        "operation": claim.operation.value,
        "percentile": claim.percentile.label,
        "verdict": claim.verdict.value,
        "views": {view.value: _change_fields(change) for view, change in claim.views.items()},
    }


def _change_fields(change: Change) -> dict[str, Any]:
    return {
        "base_ns": change.base and change.base.value,
        "new_ns": change.new and change.new.value,
        **_picked(change, "ratio low high beside shows reason"),
        "verdict": change.verdict.value,
    }


def _outcome_fields(one: Outcome) -> dict[str, Any]:
    named = {"gate": one.gate.text, "section": one.section.title, "operation": one.operation.value}
    return {**named, **_picked(one, "allocator passed unproven words")}


def junit_text(comparison: Comparison, outcomes: Sequence[Outcome]) -> str:
    document = junit.Document("blockyard compare")
    for section in comparison.sections:
        suite = document.suite(section.title)
        for words in (words for one, words in losses(comparison) if one.pair is section.pair):
            junit.judged(suite, "allocator came through", False, words)
        for outcome in outcomes:
            if outcome.section.pair is section.pair:
                # The gate without its operation, which stands before it.
                wanted = outcome.gate.text.replace(f"{outcome.operation.value}/", "")
                name = f"{outcome.allocator} {outcome.operation.value} {wanted}"
                junit.judged(suite, name, outcome.passed, outcome.words)
        if not outcomes:
            for claim in section.claims:
                _claim_case(suite, claim)
    return document.text()


def _claim_case(suite: ElementTree.Element, claim: Claim) -> None:
    """Without a gate nothing fails: what is inconclusive is skipped, the rest says what it is."""
    case = junit.case(suite, f"{claim.allocator} {claim.operation.value} {claim.percentile.label}")
    change = claim.change(None)
    moved = f" {percent(change.ratio)}" if change is not None and change.ratio is not None else ""
    if claim.verdict is Verdict.INCONCLUSIVE:
        ElementTree.SubElement(case, "skipped", message=f"inconclusive{moved}: {claim.reason}")
    else:
        ElementTree.SubElement(case, "system-out").text = f"{claim.verdict.value}{moved}"
