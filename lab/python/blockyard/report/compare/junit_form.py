"""A comparison as JUnit XML, which CI servers show: a test case a gate and allocator, or without gates a claim."""

from collections.abc import Sequence
from xml.etree import ElementTree

from blockyard.analysis.compare import Claim, Comparison, Verdict
from blockyard.analysis.gate import Outcome, losses, percent


def render(comparison: Comparison, outcomes: Sequence[Outcome]) -> str:
    root = ElementTree.Element("testsuites", name="blockyard compare")
    for section in comparison.sections:
        suite = ElementTree.SubElement(root, "testsuite", name=section.title)
        for words in (words for one, words in losses(comparison) if one.pair is section.pair):
            case = _case(suite, section.title, "allocator came through")
            ElementTree.SubElement(case, "failure", message=words)
        for outcome in outcomes:
            if outcome.section.pair is section.pair:
                _gate(suite, outcome)
        if not outcomes:
            for claim in section.claims:
                _claim(suite, section.title, claim)
        for kind in ("failure", "error", "skipped"):
            suite.set(
                {"failure": "failures", "error": "errors"}.get(kind, kind),
                str(sum(case.find(kind) is not None for case in suite)),
            )
        suite.set("tests", str(len(suite)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, title: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=title, name=name)


def _gate(suite: ElementTree.Element, outcome: Outcome) -> None:
    case = _case(suite, outcome.section.title, f"{outcome.allocator} {outcome.operation.value} {_wanted(outcome)}")
    if outcome.passed is None:
        ElementTree.SubElement(case, "error", message=outcome.words)
    elif not outcome.passed:
        ElementTree.SubElement(case, "failure", message=outcome.words)
    else:
        ElementTree.SubElement(case, "system-out").text = outcome.words


def _wanted(outcome: Outcome) -> str:
    """The gate without its operation, which stands before it."""
    return outcome.gate.text.replace(f"{outcome.operation.value}/", "")


def _claim(suite: ElementTree.Element, title: str, claim: Claim) -> None:
    """Without a gate nothing fails: what is inconclusive is skipped, the rest says what it is."""
    case = _case(suite, title, f"{claim.allocator} {claim.operation.value} {claim.percentile.label}")
    change = claim.change(None)
    moved = f" {percent(change.ratio)}" if change is not None and change.ratio is not None else ""
    if claim.verdict is Verdict.INCONCLUSIVE:
        ElementTree.SubElement(case, "skipped", message=f"inconclusive{moved}: {claim.reason}")
    else:
        ElementTree.SubElement(case, "system-out").text = f"{claim.verdict.value}{moved}"
