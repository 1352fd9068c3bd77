"""Makes a report: measures every section, writes its tables, has its pictures drawn by worker processes."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blockyard.analysis import cuts, fidelity, figures, journal_facts, sections
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import FrameCut
from blockyard.analysis.latency import View
from blockyard.analysis.sections import Results, Section
from blockyard.errors import UserError
from blockyard.report import (
    allocations,
    blocks,
    cause_tables,
    comparison,
    frame_tables,
    frame_verdicts,
    guideline,
    memory_tables,
    page,
    run_rows,
    study,
    summary,
    verdict,
    workers,
)
from blockyard.report import header as headers
from blockyard.report.blocks import Block, Bullets, Heading, Paragraph, Picture, Warnings
from blockyard.report.files import whole
from blockyard.report.options import Progress, ReportOptions, ReportResult
from blockyard.variants import PREFAULTED


@dataclass(frozen=True)
class Measured:
    """One section with its allocators' figures."""

    section: Section
    figures: list[AllocatorFigures]
    header: headers.Header
    folder: Path
    views: tuple[View, ...]
    """Those asked for that can be shown: attributed needs causes."""
    answer: verdict.Answer
    options: ReportOptions

    @property
    def shown(self) -> tuple[View, ...]:
        """The views that tables and pictures have."""
        return self.views if self.options.views or self.options.everything else (self.trusted,)

    @property
    def trusted(self) -> View:
        """Without the machine's interruptions, where they are known."""
        return next(view for view in (View.ATTRIBUTED, View.AS_RUN, View.INHERENT) if view in self.views)

    @property
    def asked(self) -> list[AllocatorFigures]:
        """Whose figures are written down: all, or those asked for by name and the program's own."""
        names = {one.name for one in self.answer.members}
        return [one for one in self.figures if one.name in names] if self.options.allocators else self.figures

    def closely(self) -> list[AllocatorFigures]:
        """Whose every event is drawn: all, or those that pictures emphasise."""
        if self.options.everything:
            return self.figures
        return [one for one in self.figures if one.name in self.answer.emphasised]

    def drawn(self) -> list[tuple[str, list[AllocatorFigures]]]:
        """The same with the others of their variants, to compare with."""
        shown = {variant for variant, _ in self.lineups()}
        return [found for found in comparison.variants(self.figures) if found[0] in shown]

    def lineups(self) -> list[tuple[str, list[AllocatorFigures]]]:
        """By variant the allocators that are asked about; unless everything is wanted, those in their defaults."""
        found = comparison.variants(self.asked)
        return found if self.options.everything or self.options.allocators else found[:1]


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
        page.libraries()  # a build that has none says so before an hour of work
    out = out or directory / "report"
    _make_folder(out)
    try:
        measured = _measure(results, usable, out, options, tell)
        _refuse_empty_zoom(measured, options)
        files = _write(results, measured, out, options, tell)
        written = files.written
        document = _document(results, measured, files)
        rendered = blocks.text(document)
        for name, content in (("report.txt", rendered), ("report.md", blocks.markdown(document, out))):
            whole(out / name, lambda path, content=content: path.write_text(content, encoding="utf-8"))
            written.append(out / name)
    except MemoryError:
        raise UserError(
            f"the machine's memory does not suffice to report on {directory} in one go; report fewer "
            "journals or allocators at a time (--journal, --allocator)"
        ) from None
    except OSError as error:
        raise UserError(f"{error.filename or out} can't be written: {error.strerror or error}") from None
    tell(1.0, "done")
    answers = [one.answer for one in measured]
    return ReportResult(
        out,
        table=blocks.terminal(_terminal_blocks(results, measured, options)),
        short=blocks.terminal(map(verdict.table, answers)),
        verdict=blocks.terminal(verdict.blocks(answers)),
        text=rendered,
        guidelines=[words for one in measured for words in _guidelines(one, one.views)],
        pictures=sorted(files.pictures),
        files=sorted(written),
        page=files.page,
    )


def _nothing(results: Results) -> str:
    failures = [
        f"{allocator.name}: {run.facts.get('reason')}"
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
) -> list[Measured]:
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
            found.append(
                Measured(
                    section,
                    members,
                    headers.of(results, section, members, options.gross),
                    out / section.journal / section.slug,
                    _views(section, members, options),
                    verdict.answer(
                        section,
                        _asked(members, options),
                        comparison.ranked(members),
                        options.recorded_with,
                        options.allocators,
                    ),
                    options,
                )
            )
    return found


def _asked(members: list[AllocatorFigures], options: ReportOptions) -> list[AllocatorFigures]:
    """Whom the verdict judges: those named, else all in their defaults; in the order of every table."""
    if options.allocators:
        return [one for one in comparison.ranked(members) if one.name in options.allocators]
    return comparison.variants(members)[0][1]


def _views(section: Section, members: list[AllocatorFigures], options: ReportOptions) -> tuple[View, ...]:
    found = tuple(
        view
        for view in options.views or tuple(View)
        if view is not View.ATTRIBUTED or all(member.looked_into for member in members)
    )
    if not found:
        raise UserError(
            f"there is no attributed view of {section.title}: its runs did not look for the causes of slow "
            "events; replay again with this Blockyard, or report --view as-run"
        )
    return found


def _refuse_empty_zoom(measured: list[Measured], options: ReportOptions) -> None:
    if not options.pictures or options.from_s is None:
        return
    from blockyard.report import pages

    last = max(pages.last_second(member) for one in measured for member in one.figures)
    if options.from_s >= last:
        raise UserError(
            f"--pictures-from {options.from_s:g} lies behind the last event, which began at {last:.6g} s of the "
            "replay's clock; give an earlier second"
        )


def _threads(allocators: int, options: ReportOptions) -> int:
    """Allocators side by side while there are several; a lone one gets both threads."""
    return 1 if allocators > 1 and options.jobs > 1 else min(options.jobs, 2)


def _shares(allocators: int, options: ReportOptions) -> list[int]:
    """The threads of each; the last of an odd number has nobody beside it."""
    return [_threads(allocators, options)] * (allocators - 1) + [_threads(2 - allocators % 2, options)]


@dataclass(frozen=True)
class _Files:
    """What was written, and of each section the tables of its text, made meanwhile."""

    written: list[Path]
    pictures: list[Path]
    page: Path | None
    tables: list[list[Block]]


def _write(results: Results, measured: list[Measured], out: Path, options: ReportOptions, tell: Progress) -> _Files:
    tasks: list[_Task] = []
    for one in measured:
        one.folder.mkdir(parents=True, exist_ok=True)
        if options.pictures:
            from blockyard.report import pages  # here, because matplotlib takes longer to load than tables to make

            threads = _threads(len(one.figures), options)
            tasks += [
                ("picture", task.name, task.draw)
                for task in pages.tasks(
                    one.section,
                    one.figures,
                    one.drawn(),
                    one.closely(),
                    one.answer.emphasised,
                    one.header,
                    one.folder,
                    options,
                    one.shown,
                    one.views,
                    threads,
                )
            ]
        for member in one.asked:
            if options.samples_parquet:
                target = one.folder / "samples" / f"{member.name}.parquet"
                tasks.append(
                    (
                        "file",
                        f"{one.section.journal} samples of {member.name}",
                        lambda t=target, o=one, m=member: [summary.write_samples(t, o.section, m.runs, options.gross)],
                    )
                )
            if options.allocations_csv:
                for run in member.runs.runs:
                    target = one.folder / "allocations" / f"{member.name}-{run.repeat}.csv"
                    tasks.append(
                        (
                            "file",
                            f"{one.section.journal} allocations of {member.name}",
                            lambda t=target, o=one, m=member, r=run: [
                                allocations.write(t, o.section, m.runs, r, options.gross)
                            ],
                        )
                    )
    tables = [
        (
            "file",
            "summary",
            lambda: summary.write(
                out, "summary", [row for one in measured for row in summary.rows(one.section, one.asked, one.views)]
            ),
        ),
        (
            "file",
            "frames",
            lambda: summary.write(
                out,
                "frames",
                [row for one in measured for row in frame_verdicts.rows(one.section, one.asked, one.views)],
            ),
        ),
        (
            "file",
            "memory",
            lambda: summary.write(
                out, "memory", [row for one in measured for row in memory_tables.rows(one.section, one.asked)]
            ),
        ),
        (
            "file",
            "runs",
            lambda: summary.write(
                out, "runs", [row for one in measured for row in run_rows.rows(one.section, one.asked)]
            ),
        ),
    ]
    texts: list[list[Block]] = []
    tables.append(
        ("file", "tables", lambda: texts.extend(list(_tables(one, options, results.machine)) for one in measured) or [])
    )
    if options.html:
        tables.append(("page", "the page", lambda: [_page(results, measured, out, options)]))
    found: dict[str, list[Path]] = {"file": [], "picture": [], "page": []}
    for number, (kind, name, paths) in enumerate(_run(tables, tasks, options.jobs), start=1):
        found[kind].extend(paths)
        tell(0.25 + 0.75 * number / (len(tables) + len(tasks)), f"wrote {name}")
    return _Files(found["file"], found["picture"], next(iter(found["page"]), None), texts)


_Task = tuple[str, str, Callable[[], list[Path]]]


def _run(here: list[_Task], tasks: list[_Task], jobs: int) -> Iterable[tuple[str, str, list[Path]]]:
    """Runs tasks in workers; meanwhile those that shall be run `here`: what they compute the text needs too, and a
    worker's memory is gone when it ends."""
    if jobs < 2 or len(tasks) < 2:
        for kind, name, work in [*here, *tasks]:
            yield kind, name, work()
        return
    with workers.running([work for _, _, work in tasks], jobs) as running:
        for kind, name, work in here:
            yield kind, name, work()
        for number, paths in running.results():
            yield tasks[number][0], tasks[number][1], paths


def _page(results: Results, measured: list[Measured], out: Path, options: ReportOptions) -> Path:
    found = [page.PageSection(one.section, one.figures, one.header, verdict.of_section(one.answer)) for one in measured]
    return page.write(out / "report.html", results, _notes(results), found, gross=options.gross, jobs=options.jobs)


def _notes(results: Results) -> list[str]:
    found = [f"{name} is missing: {reason}" for name, reason in results.missing]
    if results.unfinished:
        found.append(
            f"the campaign is not finished ({results.planned - results.unfinished} of {results.planned} runs "
            "are there): these figures will change; "
            f"'blockyard replay --resume -o {results.directory}' goes on"
        )
    warnings = results.machine.get("warnings")
    found += [str(words) for words in warnings] if isinstance(warnings, list) else []
    return found


def _guidelines(one: Measured, views: Sequence[View]) -> list[str]:
    """One a variant, a finding a line."""
    return [
        "\n".join(guideline.lines(one.section, members, views, variant))
        for variant, members in comparison.variants(one.asked)
        if any(not member.runs.is_null for member in members)
    ]


def _tables(one: Measured, options: ReportOptions, machine: dict[str, Any]) -> Iterable[Block]:
    yield verdict.table(one.answer)
    for variant, members in one.lineups():
        if variant == PREFAULTED:
            yield Heading("Prefaulted: memory for the journal's peak populated beforehand, purging off", 3)
        yield from (
            _all_tables(one, members, variant, machine) if options.everything else _some_tables(one, members, variant)
        )
        if options.by_size:
            yield from comparison.by_size(members, one.shown, variant)


def _some_tables(one: Measured, members: list[AllocatorFigures], variant: str) -> Iterable[Block]:
    """What is behind the verdict, in the order in which it is asked for."""
    views = one.shown
    yield from frame_tables.short(one.section, members, views, variant)
    yield from comparison.short(members, views, variant)
    yield from _rates(members, views, variant)
    if all(member.looked_into for member in members):
        yield cause_tables.rate_table(members, 10_000, variant)
        yield cause_tables.slow_table(one.section, members, {member.name: None for member in members}, variant)
    yield from memory_tables.memory_tables(members, variant)[:1]
    yield memory_tables.deferred_tables(members, variant)[0]
    yield comparison.fidelity_table(members, one.section.pace, variant)


def _all_tables(
    one: Measured, members: list[AllocatorFigures], variant: str, machine: dict[str, Any]
) -> Iterable[Block]:
    views = one.shown
    yield from comparison.all_latencies(members, views, variant)
    yield from comparison.tails(members, views, variant)
    yield from _rates(members, views, variant)
    yield comparison.costs(members, variant)
    yield comparison.fidelity_table(members, one.section.pace, variant)
    yield from frame_tables.blocks(one.section, members, views, variant)
    yield from cause_tables.blocks(one.section, members, machine, variant)
    yield from memory_tables.blocks(members, variant)


def _rhythm(one: Measured) -> list[Block]:
    cut = one.figures[0].cuts
    starts = cut.frames.starts_ns if isinstance(cut.frames, FrameCut) else None
    return [Heading("The journal", 3), *study.rhythm(journal_facts.rhythm(cut.line, starts))]


def _rates(members: list[AllocatorFigures], views: Sequence[View], variant: str) -> list[Block]:
    return [comparison.rates(members, variant, view) for view in views if view is not View.INHERENT] or [
        comparison.rates(members, variant)
    ]


def _document(results: Results, measured: list[Measured], files: _Files) -> list[Block]:
    """The whole report."""
    found: list[Block] = [
        Heading(f"Blockyard report: {results.name}"),
        Paragraph(
            f"Measured {results.created_at} with Blockyard {results.blockyard}. How to read it: docs/guide/report.md."
        ),
    ]
    found += verdict.blocks([one.answer for one in measured])
    if notes := _notes(results):
        found.append(Warnings(notes))
    for one, tables in zip(measured, files.tables, strict=True):
        found += [Heading(one.section.title, 2), Paragraph("\n".join(one.header.lines()))]
        if words := fidelity.sentences(one.section):
            found.append(Warnings(words))
        if len(measured) > 1:
            found.append(Bullets(verdict.of_section(one.answer)))
        if one.options.everything:
            found += [Paragraph(words) for words in _guidelines(one, one.views)]
        found += tables
        mine = sorted(path for path in files.pictures if path.parent == one.folder and path.suffix == ".png")
        found += [Picture(path, path.stem.replace("-", " ")) for path in mine]
        if one.options.everything:
            journal = journal_facts.facts(one.section)
            found += _rhythm(one)
            for member in one.asked:
                found += study.blocks(member, journal, one.views)
    return found


def _terminal_blocks(results: Results, measured: list[Measured], options: ReportOptions) -> list[Block]:
    """What `blockyard report` prints before its verdict: the figures behind it and what must be known to read them."""
    found: list[Block] = []
    if notes := _notes(results):
        found.append(Warnings(notes))
    for one in measured:
        found += [Heading(one.section.title, 2), Paragraph("\n".join(one.header.lines()))]
        if words := fidelity.sentences(one.section):
            found.append(Warnings(words))
        found.append(verdict.table(one.answer))
        for variant, members in one.lineups():
            found += frame_tables.terminal(one.section, members, one.shown, variant)
            if options.by_size:
                found += comparison.by_size(members, one.shown, variant)
    return found
