"""Puts the page together: facts, events, style, scripts and licences in one file."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blockyard import native
from blockyard.advise.document import Advice
from blockyard.analysis import syscalls
from blockyard.errors import UserError
from blockyard.files import whole_text
from blockyard.report.lineup import MeasuredSection
from blockyard.report.page import bundle, changes, content, events, stacks

_STACKS = 5
"""One part in so many of the room for events is kept for what their call stacks did; they take what events leave."""


def write(
    target: Path,
    notes: Sequence[str],
    measured: Sequence[MeasuredSection],
    verdicts: Sequence[Sequence[str]],
    advice: Mapping[str, Advice],
    jobs: int = 2,
) -> Path:
    """Writes the page; `advice` by the SHA-256 of the journal that it is about. Raises UserError where the build has no
    libraries for it, before anything is computed."""
    refuse_without_library()
    results = measured[0].results
    facts: dict[str, Any] = {
        "name": results.name,
        "created_at": results.created_at,
        "blockyard": results.blockyard,
        "notes": list(notes),
        "constants": content.constants(),
        "sections": [],
    }
    packs: list[tuple[str, str]] = []
    for number, (one, verdict) in enumerate(zip(measured, verdicts, strict=True)):
        entry = content.section(one, verdict)
        traces = [syscalls.read(member.runs, results.machine) for member in one.figures]
        room = events.room(len(one.figures), crowd=len(measured))
        cut = events.Events(one.figures, entry["end_ns"], one.options.gross, jobs, room - room // _STACKS)
        advised = advice.get(one.section.facts.sha256)
        found = one.by_site and one.by_site.sites
        called = stacks.prepare(
            one.section, found, one.figures, entry["end_ns"], room - cut.size, jobs, one.options.skip, advised
        )
        entry["columns"], made = cut.columns, cut.packs(traces, called)
        entry["stacks"] = called.facts if called else stacks.MISSING
        entry["advice"] = changes.facts(advised) if advised else None
        facts["sections"].append(entry)
        if called:
            packs.append((f"{number}/stacks", called.pack))
        packs.append((f"{number}/frames", content.frames(one.figures, one.all_views)))
        packs += [(f"{number}/{member.name}", pack) for member, pack in zip(one.figures, made, strict=True)]
    whole_text(target, _document(facts, packs))
    return target


def _document(facts: dict[str, Any], packs: list[tuple[str, str]]) -> str:
    template = (bundle.STATIC / "page.html").read_text(encoding="utf-8")
    name, licence = (html.escape(words) for words in (f"uPlot {_library('.version').strip()}", _library(".LICENSE")))
    data = "\n".join(
        f'<script type="text/plain" data-pack="{html.escape(name)}">{pack}</script>' for name, pack in packs
    )
    # In a script element only `</` could end it early.
    facts_text = json.dumps(facts, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("</", "<\\/")
    filled = {
        "title": html.escape(f"Blockyard: {facts['name']}"),
        "style": f"{_library('.min.css')}\n{bundle.style()}",
        "licences": f"<h3>{name}</h3>\n<pre>{licence}</pre>",
        "facts": facts_text,
        "packs": data,
        "libraries": _library(".iife.min.js"),
        "script": bundle.script(),
    }
    parts = template.split("@@")
    return "".join(filled[part] if place % 2 else part for place, part in enumerate(parts))


def missing() -> str | None:
    """Why the build has no library for the page (cmake/BlockyardPage.cmake fetches it), with what to do; None where it
    has it."""
    folder = native.folder("page")
    if folder and (folder / "missing.txt").is_file():
        return (folder / "missing.txt").read_text(encoding="utf-8").strip()
    if folder is None or not (folder / "uPlot.iife.min.js").is_file():
        return "this blockyard was built without the libraries of the report's page; build it with 'make build'"
    return None


def refuse_without_library() -> None:
    """Raises UserError where the build could not have it."""
    if reason := missing():
        raise UserError(f"--html is not possible: {reason}")


def _library(ending: str) -> str:
    folder = native.folder("page")
    assert folder is not None
    return (folder / f"uPlot{ending}").read_text(encoding="utf-8")
