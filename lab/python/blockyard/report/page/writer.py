"""Puts the page together: facts, events, style, scripts and licences in one file."""

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blockyard.analysis import syscalls
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.latency import View
from blockyard.analysis.sections import Results, Section
from blockyard.report.files import whole
from blockyard.report.header import Header
from blockyard.report.page import bundle, content, events, frames
from blockyard.report.page.libraries import Library, libraries


@dataclass(frozen=True)
class PageSection:
    """One section as it was measured."""

    section: Section
    figures: Sequence[AllocatorFigures]
    header: Header
    verdict: Sequence[str]


def write(
    target: Path,
    results: Results,
    notes: Sequence[str],
    found: Sequence[PageSection],
    *,
    gross: bool = False,
    jobs: int = 2,
) -> Path:
    """Writes the page. Raises UserError where the build has no libraries for it, before anything is computed."""
    carried = libraries()
    facts: dict[str, Any] = {
        "name": results.name,
        "created_at": results.created_at,
        "blockyard": results.blockyard,
        "notes": list(notes),
        "constants": content.constants(),
        "sections": [],
    }
    packs: list[tuple[str, str]] = []
    for number, one in enumerate(found):
        told = content.section(one.section, one.figures, one.header, views(one.figures), results.machine)
        told["verdict"] = list(one.verdict)
        told["columns"], made = events.prepare(
            one.figures, _traces(one, results), told["end_ns"], gross, jobs, crowd=len(found)
        )
        facts["sections"].append(told)
        packs.append((f"{number}/frames", frames.pack(one.figures, views(one.figures))))
        packs += [(f"{number}/{member.name}", pack) for member, pack in zip(one.figures, made, strict=True)]
    text = _document(facts, packs, carried)
    whole(target, lambda path: path.write_text(text, encoding="utf-8"))
    return target


def _traces(one: PageSection, results: Results) -> list[syscalls.Trace | None]:
    return [syscalls.read(member.runs, results.machine) for member in one.figures]


def views(members: Sequence[AllocatorFigures]) -> list[View]:
    """Those that the section has: attributed only where slow events were looked into."""
    return [view for view in View if view is not View.ATTRIBUTED or all(one.looked_into for one in members)]


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
