"""A comparison as JSON, for other programs: docs/guide/compare.md names the fields."""

import json
from collections.abc import Sequence
from typing import Any

from blockyard.analysis.compare import Change, Claim, Comparison, Section, Verdict
from blockyard.analysis.distribution import Nanoseconds
from blockyard.analysis.gate import Outcome, losses
from blockyard.analysis.sections import Results

FORMAT = 1


def render(comparison: Comparison, outcomes: Sequence[Outcome]) -> str:
    pairing = comparison.pairing
    lost = losses(comparison)
    claims = [claim for section in comparison.sections for claim in section.claims if not claim.is_null]
    fields = {
        "format": FORMAT,
        "base": _campaign(pairing.base),
        "new": _campaign(pairing.new),
        "machine": pairing.new.machine.kind,
        "confidence": comparison.confidence,
        "notes": list(pairing.notes),
        "counts": {verdict.value: sum(claim.verdict is verdict for claim in claims) for verdict in Verdict},
        "sections": [_section(section) for section in comparison.sections],
        "lost": [{"section": section.title, "reason": words} for section, words in lost],
        "gates": [_outcome(one) for one in outcomes],
    }
    return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


def _campaign(results: Results) -> dict[str, Any]:
    return {
        "directory": str(results.directory),
        "name": results.name,
        "created_at": results.created_at,
        "blockyard": results.blockyard,
        "repeats": results.repeats,
    }


def _section(section: Section) -> dict[str, Any]:
    new = section.pair.new
    return {
        "journal": new.journal,
        "sha256": new.facts.get("sha256"),
        "from_s": new.facts.get("from_s"),
        "to_s": new.facts.get("to_s"),
        "pace": new.pace,
        "touch": new.touch,
        "threads": new.threads,
        "notes": list(section.notes),
        "claims": [_claim(claim) for claim in section.claims],
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "allocator": claim.allocator,
        "operation": claim.operation.value,
        "percentile": claim.percentile.label,
        "verdict": claim.verdict.value,
        "reason": claim.reason,
        "is_null": claim.is_null,
        "views": {view.value: _change(change) for view, change in claim.views.items()},
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "base_ns": _ns(change.base),
        "new_ns": _ns(change.new),
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "beside": change.beside,
        "verdict": change.verdict.value,
        "reason": change.reason,
    }


def _ns(value: Nanoseconds | None) -> float | None:
    return None if value is None else value.value


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "gate": outcome.gate.text,
        "section": outcome.section.title,
        "allocator": outcome.allocator,
        "operation": outcome.operation.value,
        "passed": outcome.passed,
        "unproven": outcome.unproven,
        "words": outcome.words,
    }
