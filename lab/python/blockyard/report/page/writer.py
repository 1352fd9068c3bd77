"""Puts the page together: facts, events, style, scripts and licences in one file."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blockyard.analysis import syscalls
from blockyard.files import whole_text
from blockyard.report.lineup import MeasuredSection
from blockyard.report.page import bundle, changes, content, events, frames, stacks
from blockyard.report.page.libraries import Library, libraries

_STACKS = 5
"""One part in so many of the room for events is kept for what their call stacks did; they take what events leave."""


def write(
    target: Path,
    notes: Sequence[str],
    measured: Sequence[MeasuredSection],
    verdicts: Sequence[Sequence[str]],
    advice: Mapping[str, dict[str, Any]],
    jobs: int = 2,
) -> Path:
    """Writes the page; `advice` by the SHA-256 of the journal that it is about. Raises UserError where the build has no
    libraries for it, before anything is computed."""
    carried = libraries()
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
        advised = advice.get(one.section.facts.get("sha256", ""))
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
        packs.append((f"{number}/frames", frames.pack(one.figures, one.all_views)))
        packs += [(f"{number}/{member.name}", pack) for member, pack in zip(one.figures, made, strict=True)]
    whole_text(target, _document(facts, packs, carried))
    return target


def _document(facts: dict[str, Any], packs: list[tuple[str, str]], carried: list[Library]) -> str:
    template = (bundle.STATIC / "page.html").read_text(encoding="utf-8")
    licences = "\n".join(
        f"<h3>{html.escape(one.name)} {html.escape(one.version)}</h3>\n<pre>{html.escape(one.licence)}</pre>"
        for one in carried
    )
    data = "\n".join(
        f'<script type="text/plain" data-pack="{html.escape(name)}">{pack}</script>' for name, pack in packs
    )
    # In a script element only `</` could end it early.
    facts_text = json.dumps(facts, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("</", "<\\/")
    style = "\n".join([*(one.style for one in carried), bundle.style()])
    filled = {
        "title": html.escape(f"Blockyard: {facts['name']}"),
        "style": style,
        "licences": licences,
        "facts": facts_text,
        "packs": data,
        "libraries": "\n".join(one.script for one in carried),
        "script": bundle.script(),
    }
    parts = template.split("@@")
    return "".join(filled[part] if place % 2 else part for place, part in enumerate(parts))
