"""Makes a report: measures every section, writes its tables, has its pictures drawn by worker processes."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blockyard.advise import tool
from blockyard.advise.document import Advice
from blockyard.allocators import PREFAULTED, of_library
from blockyard.analysis import cuts, fidelity, figures, journal_facts, sections, standing
from blockyard.analysis.frames import FrameCut
from blockyard.analysis.sections import Results, Section
from blockyard.errors import UserError
from blockyard.files import whole_text
from blockyard.report import (
    allocations,
    blocks,
    frame_tables,
    latency_tables,
    records,
    registry,
    samples_parquet,
    study,
    verdict,
    workers,
)
from blockyard.report import header as headers
from blockyard.report.blocks import Block, Bullets, Heading, Paragraph, Picture, Warnings
from blockyard.report.lineup import MeasuredSection, ranked
from blockyard.report.options import ReportOptions, ReportResult
from blockyard.report.page import writer as page
from blockyard.report.table import Table
from blockyard.report.verdict import Answer
from blockyard.terminal import Progress


@dataclass(frozen=True)
class _Part:
    """A section with what its text holds, made while workers draw."""

    of: MeasuredSection
    answer: Answer
    tables: list[Block]


def build(
    directory: Path, out: Path | None = None, options: ReportOptions | None = None, on_progress: Progress | None = None
) -> ReportResult:
    """Reports on the campaign in `directory`, into `out` (`directory`/report unless given).

    Raises UserError, and then leaves whatever report was there before. Uses at most two processes; a campaign of 8
    allocators by 5 repeats of 3.5 million events takes some ten seconds.
    """
    options = options or ReportOptions()
    tell = on_progress or (lambda fraction, text: None)
    results = sections.read(directory, options.journals)
    sections.check_allocators(
        results, [*options.allocators, *([options.recorded_with] if options.recorded_with else [])]
    )
    usable = [section for section in results.sections if section.measured]
    if not usable:
        raise UserError(_nothing(results))
    if options.html:
        page.refuse_without_library()  # a build that has none says so before an hour of work
    advice = _advice(usable, options)
    out = out or directory / "report"
    _make_folder(out)
    try:
        measured = _measure(results, usable, out, options, tell)
        parts, written = _write(measured, out, options, advice, tell)
        document = _document(parts, written["picture"])
        rendered = blocks.text(document)
        for name, content in (("report.txt", rendered), ("report.md", blocks.markdown(document, out))):
            whole_text(out / name, content)
            written["file"].append(out / name)
    except MemoryError:
        raise UserError(
            f"the machine's memory does not suffice to report on {directory} in one go; report fewer "
            "journals at a time (--journal)"
        ) from None
    except OSError as error:
        raise UserError(f"{error.filename or out} can't be written: {error.strerror or error}") from None
    tell(1.0, "done")
    answers = [part.answer for part in parts]
    return ReportResult(
        out,
        table=blocks.terminal(_terminal_blocks(parts)),
        short=blocks.terminal(map(verdict.table, answers)),
        verdict=blocks.terminal(verdict.blocks(answers)),
        text=rendered,
        json=_json(parts),
        pictures=sorted(written["picture"]),
        files=sorted(written["file"]),
        page=next(iter(written["page"]), None),
    )


def _advice(sections: list[Section], options: ReportOptions) -> dict[str, Advice]:
    """By the fingerprint of a journal. Refuses advice about none of these, and two about one."""
    found: dict[str, Advice] = {}
    folders: dict[str, Path] = {}
    for folder in dict.fromkeys(options.advice):
        report = tool.read(folder)
        about = tool.fingerprint(report)
        section = next((one for one in sections if one.facts.sha256 == about), None)
        if section is None:
            replayed = sections[0].facts.path
            raise UserError(
                f"{folder} is advice about {report.request.journal}, which is no journal of this campaign as it "
                f"was replayed; 'blockyard advise {replayed}' writes advice about it"
            )
        if about in found:
            raise UserError(f"{folders[about]} and {folder} are both advice about {section.journal}; give one of them")
        found[about], folders[about] = report, folder
    return found


def _nothing(results: Results) -> str:
    failures = [
        f"{allocator.name}: {run.facts.why}"
        for section in results.sections
        for allocator in section.allocators
        for run in allocator.failures
    ]
    if failures:
        return f"no run of the campaign in {results.directory} succeeded ({failures[0]}); see its run.json files"
    return (
        f"the campaign in {results.directory} has no finished run yet ({results.planned} planned); "
        f"'blockyard replay --resume -o {results.directory}' runs them"
    )


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not os.access(out, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise UserError(f"{out} can't be written: {error.strerror}; choose another place with -o") from None


def _measure(
    results: Results, usable: list[Section], out: Path, options: ReportOptions, tell: Progress
) -> list[MeasuredSection]:
    # Threads, not processes: the passes leave the interpreter, and their results would be costly to send.
    found = []
    total = sum(len(section.measured) for section in usable)
    done = 0
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for section in usable:
            members = []
            cut = cuts.of(section, options.fps, options.thread)
            shares = _shares(len(section.measured), options)
            for waiting in [
                pool.submit(figures.measure, runs, cut, gross=options.gross, threads=threads)
                for runs, threads in zip(section.measured, shares, strict=True)
            ]:
                one = waiting.result()
                members.append(one)
                done += 1
                tell(0.25 * done / total, f"measured {section.journal}, {one.name}")
            peers = figures.Together(members)
            for one in members:
                one.together = peers
            header = headers.of(results, section, members, options.gross)
            folder = out / section.journal / f"{section.pace}-{section.touch}"
            own = options.recorded_with or of_library(section.facts.allocator)
            mine = replace(options, recorded_with=own)
            found.append(MeasuredSection(results, section, ranked(members), header, folder, mine))
            if not found[-1].views:
                raise UserError(
                    f"there is no attributed view of {section.title}: its runs did not look for the causes of slow "
                    "events; replay again with this Blockyard, or report --view as-run"
                )
    return found


def _threads(allocators: int, options: ReportOptions) -> int:
    """Allocators side by side while there are several; a lone one gets both threads."""
    return 1 if allocators > 1 and options.jobs > 1 else min(options.jobs, 2)


def _shares(allocators: int, options: ReportOptions) -> list[int]:
    """The threads of each; the last of an odd number has nobody beside it."""
    return [_threads(allocators, options)] * (allocators - 1) + [_threads(2 - allocators % 2, options)]


def _write(
    measured: list[MeasuredSection], out: Path, options: ReportOptions, advice: dict[str, Advice], tell: Progress
) -> tuple[list[_Part], dict[str, list[Path]]]:
    """The text of each section, and what was written, by kind."""
    tasks: list[_Task] = []
    for one in measured:
        one.folder.mkdir(parents=True, exist_ok=True)
        if options.pictures:
            from blockyard.report import pictures  # here: matplotlib takes longer to load than tables to make

            threads = _threads(len(one.figures), options)
            tasks += [("picture", name, draw) for name, draw in pictures.tasks(one, threads)]
        tasks += _sample_files(one)
    parts: list[_Part] = []

    def make_texts() -> list[Path]:
        for one in measured:
            answer = verdict.answer(one)
            parts.append(_Part(one, answer, [verdict.table(answer), *_tables(one)]))
        return []

    def draw_page() -> list[Path]:
        verdicts = [verdict.of_section(part.answer) for part in parts]
        notes = _notes(measured[0].results)
        return [page.write(out / "report.html", notes, measured, verdicts, advice, options.jobs)]

    here: list[_Task] = [
        ("file", "figures", lambda: records.write_all(out, measured)),
        ("file", "tables", make_texts),
        ("file", "tables.csv", lambda: records.write_cells(out, _cells(parts))),
    ]
    if options.html:
        here.append(("page", "the page", draw_page))
    found: dict[str, list[Path]] = {"file": [], "picture": [], "page": []}
    for number, (kind, name, paths) in enumerate(_run(here, tasks, options.jobs), start=1):
        found[kind].extend(paths)
        tell(0.25 + 0.75 * number / (len(here) + len(tasks)), f"wrote {name}")
    return parts, found


def _sample_files(one: MeasuredSection) -> Iterator["_Task"]:
    journal, gross = one.section.journal, one.options.gross
    for member in one.asked:
        if one.options.samples_parquet:
            target = one.folder / "samples" / f"{member.name}.parquet"
            yield (
                "file",
                f"{journal} samples of {member.name}",
                lambda t=target, m=member: [samples_parquet.write(t, one.section, m.runs, gross)],
            )
        for run in member.runs.runs if one.options.allocations_csv else ():
            target = one.folder / "allocations" / f"{member.name}-{run.repeat}.csv"
            yield (
                "file",
                f"{journal} allocations of {member.name}",
                lambda t=target, m=member, r=run: [allocations.write(t, one.section, m.runs, r, gross)],
            )


def _cells(parts: list[_Part]) -> list[dict[str, Any]]:
    """Every cell of every table that compares allocators."""
    return [
        {**part.of.section.named, **record}
        for part in parts
        for table in part.tables
        if isinstance(table, Table)
        for record in table.records()
    ]


def _json(parts: list[_Part]) -> dict[str, Any]:
    """What the terminal shows, and the other tables, as values."""
    results = parts[0].of.results
    return {
        "name": results.name,
        "created_at": results.created_at,
        "notes": _notes(results),
        "sections": [
            {
                "title": part.of.section.title,
                "verdict": verdict.of_section(part.answer),
                "shows": {measure.value: ratio for measure, ratio in standing.shows(part.answer.others).items()},
                "header": part.of.header.lines(),
                "warnings": fidelity.sentences(part.of.section),
                "tables": [table.json() for table in part.tables if isinstance(table, Table)],
            }
            for part in parts
        ],
    }


_Task = tuple[str, str, Callable[[], list[Path]]]


def _run(here: list[_Task], tasks: list[_Task], jobs: int) -> Iterable[tuple[str, str, list[Path]]]:
    """Runs tasks in workers; meanwhile those that shall be run `here`: what they compute the text needs too, and a
    worker's memory is gone when it ends."""
    if jobs < 2 or len(tasks) < 2:
        for kind, name, work in [*here, *tasks]:
            yield kind, name, work()
        return
    with workers.Workers([work for _, _, work in tasks], jobs) as running:
        for kind, name, work in here:
            yield kind, name, work()
        for number, paths in running.results():
            yield tasks[number][0], tasks[number][1], paths


def _notes(results: Results) -> list[str]:
    found = [f"{name} is missing: {reason}" for name, reason in results.missing]
    if results.unfinished:
        found.append(
            f"the campaign is not finished ({results.planned - results.unfinished} of {results.planned} runs "
            "are there): these figures will change; "
            f"'blockyard replay --resume -o {results.directory}' goes on"
        )
    unseen = [(section.journal, sentence) for section in results.sections for sentence in section.facts.unseen]
    found += [f"{journal}: {sentence}" for journal, sentence in dict.fromkeys(unseen)]
    return found + list(results.machine.warnings)


def _tables(one: MeasuredSection) -> Iterable[Block]:
    for lineup in one.lineups():
        if lineup.variant == PREFAULTED:
            yield Heading("Prefaulted: memory for the journal's peak populated beforehand, purging off", 3)
        yield from registry.tables(lineup)


def _document(parts: list[_Part], pictures: list[Path]) -> list[Block]:
    """The whole report."""
    results = parts[0].of.results
    found: list[Block] = [
        Heading(f"Blockyard report: {results.name}"),
        Paragraph(
            f"Measured {results.created_at} with Blockyard {results.blockyard}. How to read it: docs/guide/report.md."
        ),
    ]
    found += verdict.blocks([part.answer for part in parts])
    if notes := _notes(results):
        found.append(Warnings(notes))
    for part in parts:
        one = part.of
        found += _circumstances(one)
        if len(parts) > 1:
            found.append(Bullets(verdict.of_section(part.answer)))
        found += part.tables
        mine = sorted(path for path in pictures if path.parent == one.folder and path.suffix == ".png")
        found += [Picture(path, path.stem.replace("-", " ")) for path in mine]
        if one.options.everything:
            found += _study(one)
    return found


def _circumstances(one: MeasuredSection) -> list[Block]:
    found: list[Block] = [Heading(one.section.title, 2), Paragraph("\n".join(one.header.lines()))]
    if words := fidelity.sentences(one.section):
        found.append(Warnings(words))
    return found


def _study(one: MeasuredSection) -> list[Block]:
    """The study's text report: the journal, and each allocator by itself."""
    cut = one.figures[0].cuts
    starts = cut.frames.starts_ns if isinstance(cut.frames, FrameCut) else None
    found: list[Block] = [Heading("The journal", 3), study.rhythm(journal_facts.rhythm(cut.line, starts))]
    journal = journal_facts.facts(one.section)
    for member in one.asked:
        found += study.blocks(member, journal, one.views)
    return found


def _terminal_blocks(parts: list[_Part]) -> list[Block]:
    """What `blockyard report` prints before its verdict: the figures behind it and what must be known to read them."""
    found: list[Block] = []
    if notes := _notes(parts[0].of.results):
        found.append(Warnings(notes))
    for part in parts:
        one = part.of
        found += [*_circumstances(one), verdict.table(part.answer)]
        for lineup in one.lineups():
            found.append(Paragraph(frame_tables.words(one.section, lineup.cuts)))
            for view in lineup.of.shown:
                if isinstance(lineup.cuts.frames, FrameCut):
                    found.append(frame_tables.frame_table(lineup, view, lineup.cuts.frames.rate_hz))
                if one.options.by_size:
                    found += latency_tables.by_size(lineup, view)
    return found
