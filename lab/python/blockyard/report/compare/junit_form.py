"""A comparison as JUnit XML: a test case a gate and allocator, or without gates a claim."""

from collections.abc import Sequence
from xml.etree import ElementTree

from blockyard import junit
from blockyard.analysis.compare import Claim, Comparison, Verdict
from blockyard.analysis.gate import Outcome, losses, percent


def render(comparison: Comparison, outcomes: Sequence[Outcome]) -> str:
    document = junit.Document("blockyard compare")
    for section in comparison.sections:
        suite = document.suite(section.title)
        for words in (words for one, words in losses(comparison) if one.pair is section.pair):
            junit.judged(suite, "allocator came through", False, words)
        for outcome in outcomes:
            if outcome.section.pair is section.pair:
                name = f"{outcome.allocator} {outcome.operation.value} {_wanted(outcome)}"
                junit.judged(suite, name, outcome.passed, outcome.words)
        if not outcomes:
            for claim in section.claims:
                _claim(suite, claim)
    return document.text()


def _wanted(outcome: Outcome) -> str:
    """The gate without its operation, which stands before it."""
    return outcome.gate.text.replace(f"{outcome.operation.value}/", "")


def _claim(suite: ElementTree.Element, claim: Claim) -> None:
    """Without a gate nothing fails: what is inconclusive is skipped, the rest says what it is."""
    case = junit.case(suite, f"{claim.allocator} {claim.operation.value} {claim.percentile.label}")
    change = claim.change(None)
    moved = f" {percent(change.ratio)}" if change is not None and change.ratio is not None else ""
    if claim.verdict is Verdict.INCONCLUSIVE:
        ElementTree.SubElement(case, "skipped", message=f"inconclusive{moved}: {claim.reason}")
    else:
        ElementTree.SubElement(case, "system-out").text = f"{claim.verdict.value}{moved}"
