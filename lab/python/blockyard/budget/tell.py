"""What a judgement says: text, JSON, JUnit XML, and annotations of GitHub."""

import json
import os
from collections.abc import Iterator

import msgspec

from blockyard import junit
from blockyard.budget.judge import Judged, Judgement, Site, Verdict
from blockyard.budget.limits import RUN
from blockyard.sites_tool import Function
from blockyard.units import counted, listed, size

_MOST_CALLS = 24
_FACTS = ("judged", "worst", "periods_over", "events_over", "first", "sites")
_COLLECTED = "/collected heap"
"""The last tag of what C#'s Forbid found on the collected heap: one call of the library's that stands for all of it."""
_WORDS = {True: "kept", False: "exceeded", None: "not judged"}


def lines(found: Judgement) -> Iterator[str]:
    over = sum(one.passed is False for one in found.verdicts)
    unjudged = sum(one.passed is None for one in found.verdicts)
    said = [f"{over} exceeded" if over else "all kept" if not unjudged else "none exceeded"]
    said += [f"{unjudged} not judged"] if unjudged else []
    yield f"{found.program}, {counted(len(found.verdicts), 'limit')}: {', '.join(said)}"
    if found.child is not None:
        yield f"Judged is {found.child}, a child of {found.program}."
    for one in found.verdicts:
        yield f"{_WORDS[one.passed]:<10}  {one.limit.name}: {summary(one)}"
        if one.passed is False:
            yield from (f"            {line}" for line in _details(one))
    for rule, events, allocated in found.left_out:
        if events:
            yield f"left out: {counted(events, 'call')} ({size(allocated)}) of {rule.pattern}: {rule.reason}"
        elif not rule.own:
            yield f"left out: nothing of {rule.pattern}, which may go ({rule.reason})"


def summary(one: Verdict) -> str:
    if one.unjudged:
        return one.unjudged
    worst = one.limit.amount(one.facts.worst)
    if one.passed:
        return f"{worst} at most"
    periods = one.facts.periods_over
    where = {"frame": f" in {counted(periods, 'frame')}", "second": f" in {counted(periods, 'second')}"}
    return f"{worst}{where.get(one.limit.per, '')}"


def _first(one: Verdict) -> str:
    first = one.facts.first
    frame = f" in frame {first.frame:,}" if first.frame else ""
    what = f"{first.call} of {size(first.bytes)}"
    if first.tag.endswith(_COLLECTED):
        what = f"{size(first.bytes)} on the collected heap"
    return f"{what} by {first.thread}{frame}, at {first.time_s:.6f} s"


def _details(one: Verdict) -> Iterator[str]:
    first = one.facts.first
    yield f"first: {_first(one)}"
    for call in first.stack[:_MOST_CALLS]:
        yield f"  at {_call(call)}"
    if len(first.stack) > _MOST_CALLS:
        yield f"  and {counted(len(first.stack) - _MOST_CALLS, 'more call')}"
    if not first.stack:
        yield "  without a call stack"
    followed = one.facts.events_over - 1
    if followed:
        sites = listed([_site(site, one) for site in one.facts.sites])
        yield f"then {counted(followed, 'more call')}; all from {sites}"
    if one.again:
        yield from _what_recurs(one)


def _site(site: Site, one: Verdict) -> str:
    periods = f" in {counted(site.periods, one.limit.per)}" if one.limit.per != RUN else ""
    return f"{_called(site)} ({site.events:,}{periods})"


def _called(site: Site) -> str:
    return site.function or "(no call stack)"


def _what_recurs(one: Verdict) -> Iterator[str]:
    """Which sites exceed the limit each time that the program runs, and which do only once."""
    later = [{(site.function, site.module) for site in other.facts.sites} for other in one.again]
    runs = len(later) + 1
    often = {}
    for site in one.facts.sites:
        in_runs = 1 + sum((site.function, site.module) in own for own in later)
        often.setdefault(in_runs, []).append(_called(site))
    for in_runs, names in sorted(often.items(), reverse=True):
        which = f"in each of {runs} runs" if in_runs == runs else f"in {in_runs} of {runs} runs"
        if in_runs == 1:
            which = f"in run {one.run} of {runs} only"
        yield f"{which}: {listed(names)}"


def _call(call: Function) -> str:
    place = f" ({os.path.basename(call.file)}:{call.line})" if call.line else f" ({call.module})"
    return call.function + place


def _facts(of: Judged) -> dict[str, object]:
    return {name: value for name, value in msgspec.to_builtins(of).items() if name in _FACTS}


def as_json(found: Judgement) -> str:
    document = {
        "program": found.program,
        "child": found.child,
        "frames": found.frames,
        "limits": [
            {
                "name": one.limit.name,
                "passed": one.passed,
                "reason": one.unjudged,
                "limit": one.limit.native(),
                **_facts(one.facts),
                "again": [{"passed": other.passed, **_facts(other.facts)} for other in one.again],
            }
            for one in found.verdicts
        ],
        "left_out": [
            {"pattern": rule.pattern, "reason": rule.reason, "calls": events, "bytes": allocated}
            for rule, events, allocated in found.left_out
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_junit(found: Judgement) -> str:
    document = junit.Document("blockyard budget")
    suite = document.suite(found.program)
    for one in found.verdicts:
        words = summary(one) if one.passed is not False else "\n".join([summary(one), *_details(one)])
        junit.judged(suite, one.limit.name, one.passed, words)
    return document.text()


def annotations(found: Judgement) -> Iterator[str]:
    """Workflow commands: each violation at the innermost line of its stack that is known."""
    for one in found.verdicts:
        if one.passed:
            continue
        stack = one.facts.first.stack if one.facts.first else []
        known = [call for call in stack if call.line]
        # Files of the checkout before those of the libraries that it calls.
        nearest = next((call for call in known if os.path.exists(call.file)), next(iter(known), None))
        place = f" file={os.path.relpath(nearest.file)},line={nearest.line}" if nearest else ""
        text = f"{one.limit.name}: {summary(one)}" + (f"; first: {_first(one)}" if one.facts.first else "")
        # What ends a command, and what begins a value.
        for letter, instead in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
            text = text.replace(letter, instead)
        yield f"::error{place}::{text}"
