"""What a change gains: the journal replayed as it is, with each group of routes, and with all of them.

The replays lie in a campaign's folder in which each variant is a journal of its own, so that `blockyard report` reads
them. Repeats are interleaved: plain, each group, all; then in reverse. A folder that was interrupted is gone on with.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from blockyard import __version__, allocators, terminal
from blockyard.advise import tool
from blockyard.advise.document import Advice, Figure, Gain, Measured
from blockyard.allocators import Choice
from blockyard.analysis import cuts, figures, frames, noise, sections
from blockyard.analysis.latency import P50, P99
from blockyard.analysis.sections import AllocatorRuns
from blockyard.analysis.totals import Untimed
from blockyard.campaign import document, machine, prepare, runner
from blockyard.campaign.document import Allocator, Campaign, PlanFacts
from blockyard.campaign.estimate import Estimate
from blockyard.campaign.folder import Folder, disk_errors
from blockyard.campaign.run_options import RunOptions
from blockyard.campaign.schedule import NULL, Run
from blockyard.campaign.settings import Stretch
from blockyard.errors import UserError
from blockyard.files import sha256, whole_text
from blockyard.terminal import Progress

PLAIN = "plain"
TOGETHER = "together"
SLOW_NS = 10_000
TOUCH = "all"
"""What using the memory costs counts too, not the call alone."""
_PAGE = 4096.0
_FIGURES = ("p50_ns", "p99_ns", "worst_ns", "total_ns", "slow_calls", "peak_bytes")

ASSUMED = "glibc"
REPEATS = 5
_MOST_S = 10.0
"""A longer stretch tells little more of the same frames, and each change costs as many seconds five times."""


def add(report: Advice, folder: Path, top: int) -> None:
    """Fills in what was measured and the gain of each measured change, and ranks by what was measured."""
    chosen = report.advice[:top]
    from_s, to_s = stretch(report)
    own = allocator(report.allocator)
    with terminal.reading_bar() as tell:
        gains = measure(
            Path(report.request.journal),
            folder / tool.ROUTES,
            [advice.group for advice in chosen],
            folder=folder / tool.REPLAYS,
            allocator=own,
            repeats=REPEATS,
            stretch=(from_s, to_s),
            fps=None if report.marked_frames else report.request.fps,
            progress=tell,
        )
    put(report, gains, (from_s, to_s), own)


def allocator(library: str) -> str:
    """The program's own, which the journal names by its library, if replays drive it and this machine has it."""
    own = allocators.of_library(library)
    if own is None:
        return ASSUMED
    (choice,) = allocators.resolve([own])
    return own if choice.missing is None else ASSUMED


def stretch(report: Advice) -> tuple[float | None, float | None]:
    """All of a short journal; of a long one what surrounds the worst frame, or its middle."""
    whole_s = report.duration_ns / 1e9
    if whole_s <= _MOST_S:
        return None, None
    middle_s = report.worst_frame_ns / 1e9 if report.estimated_worst_frame_ns else whole_s / 2
    from_s = min(max(0.0, middle_s - _MOST_S / 2), whole_s - _MOST_S)
    return from_s, from_s + _MOST_S


def put(
    report: Advice, gains: list[Gain], replayed: tuple[float | None, float | None] = (None, None), on: str = ASSUMED
) -> None:
    plain = next(gain for gain in gains if gain.name == PLAIN)
    together = next((gain for gain in gains if gain.name == TOGETHER), None)
    report.measured = Measured(on, REPEATS, *replayed, plain, together)
    alone = {gain.groups[0]: gain for gain in gains if len(gain.groups) == 1}
    for advice in report.advice:
        advice.gain = alone.get(advice.group)
    report.advice.sort(key=lambda advice: advice.gain.total_ns.value if advice.gain else float("inf"))
    for number, advice in enumerate(report.advice, start=1):
        advice.id = number


def measure(
    journal: Path,
    routes: Path,
    groups: Sequence[int],
    *,
    folder: Path,
    allocator: str = "glibc",
    fps: float | None = None,
    repeats: int = 5,
    stretch: tuple[float | None, float | None] = (None, None),
    progress: Progress = lambda fraction, text: None,
) -> list[Gain]:
    """The gain of each group alone and, where there are two or more, of all together; the plain replay comes first.

    `routes` lists them for the whole journal, `stretch` is the part of it that is replayed (seconds). Frames are those
    that the journal marks, or `fps` by the clock. `folder` is made, or gone on with if it holds the same measurement.
    """
    (choice,) = allocators.resolve([allocator])
    if choice.missing is not None:
        raise UserError(f"{choice.name} can't be had on this machine: {choice.missing}")
    variants = {PLAIN: (), **{f"group-{group}": (group,) for group in groups}}
    if len(groups) > 1:
        variants[TOGETHER] = tuple(groups)
    with Folder(folder) as place:
        campaign = _prepare(place, Stretch(PLAIN, journal, *stretch), routes, variants, choice, repeats, progress)
        _replay(place, campaign, routes, choice, progress)
    return read(folder, fps)


def read(folder: Path, fps: float | None = None) -> list[Gain]:
    """The gains that a finished folder holds."""
    campaign = document.read(folder)
    found = sections.read(folder).sections
    measured = [section.allocators[0] for section in found]
    # One floor for all variants, as for all allocators of a report.
    floors = tuple(min(one.floors_ns[part] for one in measured) for part in range(2))
    cut = cuts.of(found[0], fps)
    groups = {entry.name: tuple(entry.groups) for entry in campaign.journals}
    by_frame = [_by_frame(replace(one, floors_ns=floors), cut) for one in measured]
    known = [_known(replace(one, floors_ns=floors), times) for one, times in zip(measured, by_frame, strict=True)]
    spreads = {field: noise.Spread.of([of[field] for of in known if field in of]) for field in _FIGURES}
    confidence = noise.confidence(len(_FIGURES) * (len(measured) - 1))
    return [
        _gain(
            section.journal,
            groups[section.journal],
            one,
            times,
            {field: _figure(spreads[field].lent(figure), confidence) for field, figure in of.items()},
        )
        for section, one, times, of in zip(found, measured, by_frame, known, strict=True)
    ]


def _figure(known: noise.Figure, confidence: float) -> Figure:
    return Figure(known.value, *(known.interval(confidence) or (known.value, known.value)))


def _gain(
    name: str, groups: tuple[int, ...], runs: AllocatorRuns, by_frame: np.ndarray, known: dict[str, Figure]
) -> Gain:
    routes = tuple(route for route in runs.runs[0].facts.routes if route.blocks or route.refused)
    named = {field: known.get(field) for field in _FIGURES}
    return Gain(name, groups, by_frame.shape[1], **named, routes=routes)  # type: ignore[arg-type]


def _by_frame(runs: AllocatorRuns, how: cuts.Cuts) -> np.ndarray:
    """Allocator time, [repeat, frame], in ns, with the ends of temp memory. Without the frames of loading, as in the
    report."""
    cut = how.frames
    if not isinstance(cut, frames.FrameCut) or not cut.frames:
        return np.zeros((len(runs.runs), 0))
    return _totals(runs).frames(cut.edges, cut.thread)[:, how.frames_in(how.judged_phase)]


def _known(runs: AllocatorRuns, by_frame: np.ndarray) -> dict[str, noise.Figure]:
    """By field of a gain."""
    count, step = len(runs.runs), 1 / runs.ticks_per_ns
    slow = [
        float((rows.ticks(rows.rows) >= SLOW_NS * runs.ticks_per_ns).sum())
        for rows in figures.open_rows(runs, gross=False)
    ]
    found = {
        "total_ns": noise.Figure.of_each(_totals(runs).each_ns, step),
        "slow_calls": noise.Figure.of_each(slow, 1.0),
        "peak_bytes": noise.Figure.of_each([run.number("peak_resident_bytes") for run in runs.runs], _PAGE),
    }
    if by_frame.size:
        found["worst_ns"] = noise.Figure.of_each(by_frame.max(axis=1).tolist(), step)
        tails = frames.tails(by_frame, step, count, (P50, P99))
        found |= {f"{label}_ns": figure for label, figure in tails.items()}
    return found


def _totals(runs: AllocatorRuns) -> Untimed:
    if runs.totals is None:
        raise UserError(f"{runs.runs[0].folder} has no untimed runs beside it; remove the measurement and repeat it")
    return runs.totals


def _prepare(
    folder: Folder,
    stretch: Stretch,
    routes: Path,
    variants: dict[str, tuple[int, ...]],
    choice: Choice,
    repeats: int,
    progress: Progress,
) -> Campaign:
    """Plans every variant, unless the folder holds the measurement already."""
    digests = sha256(stretch.path), sha256(routes)
    if folder.has_campaign:
        campaign = document.read(folder.path)
        there = [(one.name, one.path, *one.stretch, one.groups, one.routes_sha256) for one in campaign.journals]
        known = [(one.name, one.version) for one in campaign.allocators]
        path = str(stretch.path.resolve())
        here = [
            (name, path, digests[0], stretch.from_s, stretch.to_s, list(groups), digests[1])
            for name, groups in variants.items()
        ]
        same = known == [(choice.name, choice.version)] and (campaign.repeats, campaign.totals) == (repeats, True)
        if there != here or not same:
            raise UserError(f"{folder.path} holds another measurement; remove it, or choose another folder")
        machine.refuse_another(folder.path)
        return campaign
    entries = []
    for number, (name, groups) in enumerate(variants.items()):
        one = replace(stretch, name=name)
        tell = lambda fraction, _, done=number: progress((done + fraction) / len(variants), "planning")  # noqa: E731
        facts = _plan(folder, one, routes, groups, tell)
        # What is rerouted costs on null too: all are held against the plain journal there.
        more = {"groups": list(groups), "routes_sha256": digests[1], "baseline": PLAIN if groups else None}
        entries.append(prepare.entry(one, digests[0], facts, **more))
    campaign = Campaign(
        name="advise",
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        blockyard=__version__,
        journals=entries,
        allocators=[Allocator(**choice.named)],
        missing=[],
        paces=["1x" if entries[0].paced else "max"],
        touches=[TOUCH],
        repeats=repeats,
        options=RunOptions(),
        totals=True,
    )
    with disk_errors(folder.path):
        machine.write(folder.path, machine.describe())
        whole_text(folder.path / document.FILE, campaign.to_json())
    return campaign


def _plan(folder: Folder, stretch: Stretch, routes: Path, groups: Sequence[int], progress: Progress) -> PlanFacts:
    given = {"--routes": routes, "--groups": ",".join(map(str, groups))} if groups else {}
    return prepare.plan(stretch, "journal", folder, progress, given)


def _replay(folder: Folder, campaign: Campaign, routes: Path, choice: Choice, progress: Progress) -> None:
    todo = [run for run in _order(campaign) if folder.result(run) is None]
    estimate = Estimate(campaign.journals)
    choices = {choice.name: choice for choice in [*allocators.resolve([NULL]), choice]}
    total = len(campaign.runs())
    with disk_errors(folder.path):
        for position, run in enumerate(todo):
            done = total - len(todo) + position
            progress(done / total, f"replaying, {done} of {total}")
            entry = campaign.journal(run.journal)
            plan = folder.plan(run.journal)
            if not plan.is_file():
                stretch = Stretch(run.journal, Path(entry.path), entry.from_s, entry.to_s)
                _plan(folder, stretch, routes, entry.groups, lambda fraction, text: None)
            request = runner.Request(run, choices[run.allocator], plan, campaign.options)
            with folder.running(run) as partial:
                result = runner.run_once(request, partial, limit_s=estimate.limit_s(run), lock=folder.lock_descriptor)
                if not result.ok:
                    raise UserError(f"the replay {run.id} failed: {result.reason}")
        folder.drop_plans()
    progress(1.0, f"replaying, {total} of {total}")


def _order(campaign: Campaign) -> list[Run]:
    """A repeat of every variant, then another in reverse: what drifts hits all of them alike."""
    return sorted(campaign.runs(), key=lambda run: (run.repeat, run.order if run.repeat % 2 else -run.order))
