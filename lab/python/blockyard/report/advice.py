"""Advice in words, answers first: for the terminal, and as a page for a pull request or a wiki."""

import os
from collections import Counter
from pathlib import Path

from msgspec import UNSET

from blockyard import units
from blockyard.advise import code
from blockyard.advise.document import Advice, Change, Example, Gain, HeldThere, Measured, Place, Places, Validation
from blockyard.analysis import noise
from blockyard.function_names import shortened, spoken
from blockyard.report import blocks
from blockyard.report.blocks import Block, Bullets, Code, Heading, Paragraph
from blockyard.report.table import Cell, Column, Row, Table, Unit
from blockyard.sites_tool import is_nameless, without_symbols
from blockyard.units import counted, first_listed, listed, moment, span

_IN_ANSWER = 3
_DETAILS = 5
_LEFT = 12
_EXAMPLES = 3
_FUNCTIONS = 5
"""So many of a stack tell it."""
_LONGEST_NAME = 60
_BESIDE = 30
"""Of a name beside figures."""
_LEAST_STAKE = 0.01
"""Less of a frame and of the run is not worth a programmer's day."""

_WHY_LEFT = {
    "long_lived": "its blocks live long, as the program's own data does",
    "mixed": "its blocks have no lifetime and no size in common",
}
_NAMES = {"temp_job": "temp job", "pool": "block pool", "keep": "keep the buffer", "reserve": "reserve"}
_MEASURED = {
    "worst_ns": "the worst frame",
    "p99_ns": "the 99th percentile of frames",
    "p50_ns": "the median frame",
    "total_ns": "the whole replay",
}
_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def page(report: Advice) -> str:
    """advice.md."""
    return blocks.markdown([Heading("What to change"), *said(report, everything=True)], Path())


def said(report: Advice, everything: bool = False) -> list[Block]:
    """The answer, a table, then what is behind each row: of all rows, or of the first."""
    found: list[Block] = [Paragraph(answer(report))]
    if report.advice:
        found.append(_table(report))
    if report.measured:
        found.append(measured(report))
    for advice in report.advice[: None if everything else _DETAILS]:
        where = place(advice.where)
        title = f"{advice.id}. {change(advice)}"
        found.append(Heading(title, 2) if everything else Heading(f"{title}  {where}".rstrip(), 3))
        if everything:
            found.append(Paragraph(f"In `{advice.where.function}`" + (f", {where}." if where else ".")))
        found += [
            Bullets(evidence(report, advice)),
            Code(code.native(advice, report.cpp), "c" if code.is_c(advice, report.cpp) else "cpp"),
        ]
        if report.dotnet:
            found.append(Code(code.csharp(advice), "csharp"))
    if len(report.advice) > _DETAILS and not everything:
        found.append(Paragraph("advice.md has the code and the evidence of the others."))
    if left := _left(report, everything):
        found += [Heading("Leave alone", 2 if everything else 3), Bullets(left)]
    return [*found, *([Heading("How far to trust it", 2)] if everything else []), *map(Paragraph, remarks(report))]


def answer(report: Advice) -> str:
    """What allocation costs at all; what to change and what it is worth; and what others would have to change."""
    return " ".join(filter(None, [_stake(report), _what_to_change(report), _inside(report)]))


def _stake(report: Advice) -> str:
    """The share of a frame and of the run that allocation takes: no change can save more."""
    plain = report.measured and report.measured.plain
    seconds = report.duration_ns / 1e9
    spent, worst = report.estimated_ns, report.estimated_worst_frame_ns
    if plain:
        begin, end = report.measured.from_s, report.measured.to_s
        seconds = seconds if begin is None else end - begin
        spent = plain.total_ns.value
        worst = plain.worst_ns.value if report.marked_frames and plain.worst_ns else 0
    of_run = spent / 1e9 / seconds if seconds else 0.0
    of_frame = worst * report.request.fps / 1e9
    shares = [f"{units.share(of_frame)} of the worst frame at {report.request.fps:g} per second"] if worst else []
    shares += [f"{units.share(of_run)} of the run"] if seconds else []
    if not shares:
        return ""
    nothing = ": nothing to gain here" if max(of_run, of_frame) < _LEAST_STAKE else ""
    return f"Allocation takes {listed(shares)}{'' if plain else ' (estimated)'}{nothing}."


def _what_to_change(report: Advice) -> str:
    if not report.advice:
        return "No change is worth making: no site's blocks have one lifetime or one size that would save time."
    said = _measured_answer(report)
    if said:
        return said
    best = report.advice[:_IN_ANSWER]
    saved, whole, out_of = _gained(report, best)
    return f"{_changes(len(best))} {units.share(saved, whole)} of the allocator time out of {out_of}: {_names(best)}."


def _inside(report: Advice) -> str:
    """What libraries ask for on their own behalf is not for the program's authors to change."""
    modules = report.inside
    cost = sum(one.cost_ns for one in modules)
    if cost < _LEAST_STAKE * report.estimated_ns or not cost:
        return ""
    share = units.share(cost, report.estimated_ns)
    inside = first_listed([one.module for one in modules], _IN_ANSWER)
    whose = "its" if len(modules) == 1 else "their"
    return f"{share} of the allocator time is inside {inside}, which only {whose} authors can change; --all shows it."


def _measured_answer(report: Advice) -> str:
    """What the replays showed of all measured changes together, where they showed anything."""
    result = report.measured
    if not result:
        return ""
    chosen = [advice for advice in report.advice if advice.gain]
    changed = result.together or chosen[0].gain
    gains, losses = _beyond_noise(report, changed)
    if gains:
        share, out_of = gains[0]
        but = f", but {losses[0][1]} takes {losses[0][0]} longer" if losses else ""
        took = f"{_changes(len(chosen))} {share} of the allocator time out of {out_of}{but}"
        return f"{took} (measured by replay{_window(result)}): {_names(chosen)}."
    if losses:
        longer = f"{losses[0][1]} takes {losses[0][0]} longer"
        return f"Leave these allocations as they are: in replays with them changed {longer}. {_names(chosen)}."
    return (
        f"Replays{_window(result)} show no gain of these changes beyond the noise ({result.repeats} repeats, "
        f"{result.allocator}): {_names(chosen)}."
    )


def _window(result: Measured) -> str:
    return "" if result.from_s is None else f" of {result.from_s:.1f} to {result.to_s:.1f} s"


def gained(report: Advice, advice: Change) -> str:
    """What replays of one change alone showed, in a few words."""
    if not report.measured or not advice.gain:
        return "not replayed"
    gains, losses = _beyond_noise(report, advice.gain)
    said = [f"-{share} in {out_of}" for share, out_of in gains[:1]]
    said += [f"+{share} in {out_of}" for share, out_of in losses[:1]]
    return ", ".join(said) or "none beyond noise"


def _beyond_noise(report: Advice, changed: Gain) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Where a change saved time and where it cost some: by how much, and of what. Frames by the clock say the least."""
    gains, losses = [], []
    plain = report.measured.plain
    for figure, out_of in sorted(_MEASURED.items(), key=lambda one: one[0] != "total_ns" and not report.marked_frames):
        before, after = getattr(plain, figure), getattr(changed, figure)
        if not before or not after:
            continue
        if not noise.apart(*([figure.value, figure.low, figure.high] for figure in (before, after))):
            continue
        if after.value < before.value:
            gains.append((units.share(before.value - after.value, before.value), out_of))
        else:
            losses.append((units.share(after.value - before.value, before.value), out_of))
    return gains, losses


def _changes(count: int) -> str:
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    return f"{number} change{'s take' if count > 1 else ' takes'}"


def _names(chosen: list[Change]) -> str:
    return first_listed(list(map(change, chosen)), _IN_ANSWER)


def measured(report: Advice) -> Table:
    """A row for the journal as it is, for each measured change, and for all of them."""
    result = report.measured
    rows = [("as it is", result.plain)]
    rows += [(f"{advice.id} alone", advice.gain) for advice in report.advice if advice.gain]
    if result.together:
        rows.append(("together", result.together))
    by_clock = "" if report.marked_frames else f" by the clock ({report.request.fps:g} per second)"
    overflowed = sum(route.overflowed for route in rows[-1][1].routes)
    lost = [f"{counted(overflowed, 'block')} did not fit their region and came from the heap"] if overflowed else []
    columns = [
        *(Column(name, Unit.NS) for name in ("p50", "p99", "worst")),
        Column("interval"),
        Column("whole", Unit.NS),
        Column("slow", Unit.COUNT),
        Column("memory", Unit.BYTES),
    ]
    return Table(
        f"Measured by replay on {result.allocator}{_window(result)}",
        columns,
        [Row(name, _cells(gain)) for name, gain in rows],
        notes=[
            f"p50, p99, worst: allocator time of frames{by_clock}; interval: of the worst; whole: of the replay",
            f"slow: calls of 10 us and more; {counted(result.repeats, 'repeat')}",
            *lost,
        ],
        first="",
    )


def _cells(gain: Gain) -> list[Cell]:
    worst = gain.worst_ns
    known = [figure and figure.value for figure in (gain.p50_ns, gain.p99_ns, gain.worst_ns)]
    rest = [figure.value for figure in (gain.total_ns, gain.slow_calls, gain.peak_bytes)]
    return [*known, span(units.duration(worst.low), units.duration(worst.high)) if worst else None, *rest]


def _gained(report: Advice, chosen: list[Change]) -> tuple[float, float, str]:
    """Time saved by these changes, out of how much, and where."""
    in_worst, in_all = map(sum, zip(*map(report.worth, chosen), strict=True))
    if in_worst:
        where = f"the worst frame (at {moment(report.worst_frame_ns)}; estimated)"
        return in_worst, report.estimated_worst_frame_ns, where
    return in_all, report.estimated_ns, "the program (estimated)"


def change(advice: Change, longest_name: int = _LONGEST_NAME) -> str:
    """A change in a few words."""
    where = function(advice.where, longest_name)
    if advice.what == "reserve":
        return f"reserve({advice.bytes:,}) in {where}"
    if advice.what == "pool":
        return f"a block pool of {advice.bytes} bytes in {where}"
    if advice.what == "rewindable":
        return f"a rewindable arena for {where}"
    if advice.what == "keep":
        return f"keep the buffer of {where}"
    only = f" for blocks of {counted(advice.size, 'byte')}" if advice.size else ""
    return f"{kind(advice)}{only} in {where}"


def kind(advice: Change) -> str:
    return _NAMES.get(advice.what, advice.what)


def function(where: Place, longest: int = _LONGEST_NAME) -> str:
    """A function as people say it: without parameters, and not at any length."""
    return shortened(spoken(where.function), longest)


def _table(report: Advice) -> Table:
    has_worst = bool(report.estimated_worst_frame_ns)
    rows = []
    for advice in report.advice:
        estimate = advice.estimate
        shares = [(estimate.saved_ns, report.estimated_ns)]
        shares += [(estimate.worst_frame_saved_ns, report.estimated_worst_frame_ns)] if has_worst else []
        cells = [part / whole if whole else None for part, whole in shares]
        saved = estimate.saved_ns / periods(report)
        # A name that does not fit beside what to do is folded.
        rows.append(Row(str(advice.id), [saved, *cells, advice.evidence.region_bytes, change(advice, _BESIDE)]))
    columns = [
        Column(f"saved a\n{'frame' if per_frame(report) else 'second'}", Unit.NS),
        *(Column(name, Unit.SHARE) for name in ("share", "worst")[: 1 + has_worst]),
        Column("memory", Unit.BYTES),
        Column("change"),
    ]
    return Table("", columns, rows, notes=_explained(report), first="#")


def per_frame(report: Advice) -> bool:
    return report.marked_frames and report.frames > 0


def periods(report: Advice) -> float:
    """How many frames the recording has, else how many seconds."""
    return report.frames if per_frame(report) else max(report.duration_ns / 1e9, 1e-9)


def _explained(report: Advice) -> list[str]:
    worst = f"worst: of that of the worst frame that does not load, at {moment(report.worst_frame_ns)}"
    return [
        "share: of all allocator time",
        *([worst] if report.estimated_worst_frame_ns else []),
        "memory: most that the change holds at once",
        "these times are estimates from typical costs of a call, not measurements",
    ]


def place(where: Place) -> str:
    if where.line:
        return f"{os.path.basename(where.file)}:{where.line}"
    return where.module


def _stack(context: list[Place]) -> str:
    """From the innermost function outwards; of a deep one the middle is left out."""
    left_out = len(context) - _FUNCTIONS
    if left_out <= 1:
        return " < ".join(map(function, context))
    inner = " < ".join(map(function, context[: _FUNCTIONS - 1]))
    return f"{inner} < {left_out} more < {function(context[-1])}"


def evidence(report: Advice, advice: Change) -> list[str]:
    """Sentences: what was seen, what speaks against it, what it needs."""
    contexts = advice.contexts
    more = [counted(len(contexts) - _EXAMPLES, "further site")] if len(contexts) > _EXAMPLES else []
    said = [f"Allocates: {'; '.join([*map(_stack, contexts[:_EXAMPLES]), *more])}."]
    said += _foreign(advice.where)
    said.append(_seen(advice))
    said += _around(advice)
    held = advice.held
    if held.broken:
        verb = "breaks it and stays" if held.broken == 1 else "break it and stay"
        examples = _examples(held.counterexamples)
        said.append(f"{counted(held.broken, 'block')} {verb} on the program's allocator: {examples}.")
    if advice.near:
        said.append(near(advice, "Not"))
    for journal, other in zip(report.on, advice.on, strict=True):
        said.append(_on(journal.journal, other))
    return said


def _around(advice: Change) -> list[str]:
    """What else has to change: the function that asks in this one's name, its callers, and where the blocks end."""
    said = []
    here = function(advice.where)
    if asks := advice.asks:
        name = function(asks)
        others = f", which asks for {counted(advice.serves, 'block')} elsewhere as well" if advice.serves else ""
        said.append(
            f"{here} asks through {name} ({place(asks)}){others}: let it take the memory or the allocator from its "
            "caller."
        )
    elif advice.what != "temp_scope" and advice.callers.places:
        them = "; what it does changes for all of them" if advice.callers.all > 1 else ""
        said.append(f"{here} is called at {_places(advice.callers)}{them}.")
    if advice.what in ("pool", "temp_job", "keep") and advice.freed_at.places:
        said.append(f"The blocks are freed at {_places(advice.freed_at)}: change both.")
    if others := advice.evidence.other_sizes:
        said.append(f"{counted(others, 'block')} of other sizes, asked for at the same place, stay where they are.")
    return said


def _places(found: Places) -> str:
    named = [f"{place(one)} ({function(one)})" for one in found.places]
    more = found.all - len(named)
    return listed([*named, counted(more, "further place")] if more else named)


def _foreign(where: Place) -> list[str]:
    """Of memory that a library of the system asks for: who can change that."""
    through = where.through
    if through is UNSET:
        return []
    if through is None:
        return [f"{function(where)} belongs to {where.module}, and no function of the program calls it."]
    return [
        f"{function(through)} of {through.module} allocates these. {function(where)} can call it less often or hand "
        "it memory where it takes any; the code below belongs into that library's source."
    ]


def _seen(advice: Change) -> str:
    seen, what = advice.evidence, advice.what
    blocks = counted(seen.lives, "block")
    if what == "temp":
        return f"{blocks} end on their thread in the frame that they began in."
    if what == "temp_scope":
        where = function(advice.where)
        times = "once" if seen.periods == 1 else f"{seen.periods:,} times"
        return f"{blocks} end in the call of {where} that they began in; a scope would open {times}."
    if what == "temp_job":
        frames = counted(seen.frames_crossed, "frame")
        when = f"at most {frames} later" if seen.frames_crossed else "in their frame"
        threads = f", {seen.remote_frees:,} of them by another thread" if seen.remote_frees else ""
        return f"{blocks} are freed {when}{threads}."
    if what == "pool":
        through = f" through {shortened(spoken(advice.asker), _LONGEST_NAME)}" if advice.asker else ""
        return (
            f"{blocks} of {counted(advice.bytes, 'byte')}{through} come and go; at most {seen.peak_blocks:,} "
            "live at once."
        )
    if what == "rewindable":
        return f"{blocks} die together in {counted(seen.periods, 'group')}."
    if what == "reserve":
        times = advice.evidence.reallocations / max(seen.lives, 1)
        return (
            f"{counted(seen.lives, 'buffer')} grow, {times:.1f} times each; {advice.bytes:,} bytes "
            "are enough for 99 % of them."
        )
    return f"{blocks}, allocated and freed the same way in each frame."


def near(advice: Change, begin: str) -> str:
    """Why a better kind of advice is not given."""
    held = advice.near_held
    name = {"temp_job": "temp job", "keep": "to be kept"}.get(advice.near, advice.near)
    verb = "breaks" if held.broken == 1 else "break"
    blocks = f"{held.broken:,} of {counted(held.holds + held.broken, 'block')} {verb} that"
    return f"{begin} {name}: {blocks}: {_examples(held.counterexamples)}."


def _examples(examples: list[Example]) -> str:
    return "; ".join(
        f"one of {counted(one.bytes, 'byte')} at {moment(one.time_ns)} {one.why}" for one in examples[:_EXAMPLES]
    )


def _on(journal: str, other: HeldThere) -> str:
    name = os.path.basename(journal)
    blocks = other.holds + other.broken
    if not blocks:
        return f"{name} has none of these blocks."
    if not other.broken:
        return f"{name}: holds for all {counted(blocks, 'block')}."
    share = units.share(other.broken, blocks)
    return f"{name} contradicts it: {share} of {blocks:,} blocks; {_examples(other.counterexamples)}."


def _left(report: Advice, everything: bool) -> list[str]:
    """Near misses one by one; the rest by function. Sites with too few calls to matter only count."""
    near_misses = [site for site in report.leave if site.near]
    shares: dict[tuple[str, str], float] = {}
    sites_of: Counter[tuple[str, str]] = Counter()
    for site in report.leave:
        if not site.near and site.reason != "few":
            key = (function(site.where), site.reason)
            shares[key] = shares.get(key, 0.0) + site.estimate.cost_ns
            sites_of[key] += 1
    shown = near_misses[: None if everything else _LEFT]
    found = [near(site, f"{function(site.where)}: almost") for site in shown]
    count = len(shown)
    for name, reason in sorted(shares, key=lambda one: -shares[one])[: max(0, _LEFT - len(shown))]:
        count += sites_of[name, reason]
        found.append(
            f"{name}: {_WHY_LEFT[reason]} ({units.share(shares[name, reason], report.estimated_ns)} of the time)."
        )
    if (more := report.left_count - count) > 0:
        rare = f"{counted(more, 'further site')}, most too rare to matter; advice.json has {len(report.leave)}."
        found.append(rare)
    return found


def remarks(report: Advice) -> list[str]:
    said = []
    if report.halves:
        said.append(_validation(report.halves, "Advice from half of this recording, on the other half"))
    for one in report.on:
        said.append(_validation(one, f"This advice on {os.path.basename(one.journal)}"))
    if not report.marked_frames:
        said.append(
            "The program marked no frames, so temp, temp job and buffers to keep could not be judged. Call "
            "by_frame_mark() where a frame ends, or record with --frame-symbol."
        )
    if not report.has_names:
        said.append(f"Addresses have no names yet: 'blockyard names {report.journal}' finds them.")
    elif nameless := _nameless(report):
        said.append(without_symbols(nameless, report.journal))
    return said + [f"Note: {note}." for note in report.notes]


def _nameless(report: Advice) -> list[str]:
    """Modules whose functions the advice can name by addresses only."""
    places = [advice.where for advice in report.advice]
    found = Counter(one.module for one in places if is_nameless(one.function))
    return [module for module, _ in found.most_common(_IN_ANSWER)]


def _validation(one: Validation, begin: str) -> str:
    if one.precision is None:
        return f"{begin}: none of its blocks occur there."
    base = one.baseline
    said = (
        f"{begin}: it holds for {_share(one.precision)} of {counted(one.blocks, 'block')} and covers "
        f"{_share(one.coverage)} of the allocator time."
    )
    if base.precision is not None:
        said += (
            f" For comparison, temp for each stack whose blocks had all died in their frame: "
            f"{_share(base.precision)} and {_share(base.coverage)}."
        )
    return said


def _share(part: float | None) -> str:
    """Near 1, what is missing counts."""
    if part is None:
        return "-"
    if 0.99 < part < 1:
        return f"{min(100 * part, 99.999):.3f} %"
    return f"{100 * part:.3g} %"
