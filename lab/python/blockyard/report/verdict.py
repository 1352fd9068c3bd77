"""The answer that a report begins with: does allocation make this program miss frames, would another help?

At most ten sentences for the whole campaign, and a table of the figures behind them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from blockyard import units
from blockyard.analysis import fidelity, standing
from blockyard.analysis.figures import AllocatorFigures
from blockyard.analysis.frames import NoFrames
from blockyard.analysis.noise import LEAST_REPEATS, Verdict
from blockyard.analysis.standing import Measure, Standing
from blockyard.report import site_tables
from blockyard.report.blocks import Block, Bullets, Heading, Paragraph
from blockyard.report.lineup import MeasuredSection, short_name
from blockyard.report.table import Cell, Column, Row, Table, Unit, words
from blockyard.units import counted, first_listed

MOST_SENTENCES = 10
_SMALL = 0.05
"""Of a frame: what allocation takes below that decides no frame."""
_BROKEN = {measure: measure.value.replace(" ", "\n", 1) for measure in Measure}
"""In two lines, so that the allocators' names keep their room."""
_NAMED = 3
"""So many allocators a sentence names; the table has all."""


@dataclass(frozen=True)
class Answer:
    """Of one section. `members`: those that are asked about and the program's own, in the order of every table."""

    of: MeasuredSection
    members: Sequence[AllocatorFigures]
    standings: Sequence[Standing]

    @property
    def repeats(self) -> int:
        return min((len(one.runs.runs) for one in self.members), default=0)

    @property
    def others(self) -> list[Standing]:
        return [one for one in self.standings if one.allocator is not self.of.own]

    @property
    def own_standing(self) -> Standing:
        return next(one for one in self.standings if one.allocator is self.of.own)


def answer(of: MeasuredSection) -> Answer:
    """Judged are those named, else all in their defaults (or, where there are none, in the variant there is)."""
    named = {*of.options.allocators, of.options.own}
    judged = of.lineups()[0].members if not of.options.allocators else []
    members = [one for one in of.figures if one in judged or one.name in named]
    return Answer(of, members, standing.of(members, of.own, of.figures))


def blocks(answers: Sequence[Answer]) -> list[Block]:
    """The verdict as a report shows it: of several sections the first sentences of each."""
    each = max(MOST_SENTENCES // max(len(answers), 1), 1)
    shown = answers[:MOST_SENTENCES]
    found: list[Block] = [Heading("Verdict", 2)]
    for one in shown:
        first, *others = of_section(one)[:each]
        found.append(Paragraph(first))
        if others:
            found.append(Bullets(others))
    return found


def of_section(one: Answer) -> list[str]:
    """At most ten, what matters most first."""
    found = _frames(one)
    if one.of.own is None:
        recorded = "is taken to have been recorded with" if one.of.options.assumed else "was recorded with"
        found.append(
            f"What another allocator would change is not known: the campaign lacks {one.of.options.own}, which the "
            f"program {recorded}; replay with -a {one.of.options.own} among the others."
        )
    elif not one.others:
        found.append(f"Nothing but {one.of.own.name} was replayed: '-a all' shows what another allocator would change.")
    elif one.repeats < LEAST_REPEATS:
        found.append(
            f"What another allocator would change beyond noise does not show in {counted(one.repeats, 'repeat')}; "
            "replay with --repeats 5."
        )
    else:
        found += [_conclusion(one), *_changes(one), *_power(one)]
    if waiting := site_tables.who(one.of):
        found.append(" ".join(filter(None, (waiting, site_tables.how_to_name(one.of)))))
    found += _distrust(one)
    if one.of.options.assumed and one.of.own is not None:
        library = one.of.section.facts.allocator
        why = (
            f"No replay drives {library}, with which the program was recorded"
            if library
            else "The journal does not say what the program was recorded with"
        )
        found.append(f"{why}: {one.of.own.name} is assumed (--recorded-with names another).")
    return found


def _distrust(one: Answer) -> list[str]:
    graded = {short_name(each): fidelity.worst(each.runs, one.of.section).poor for each in one.members}
    poor = {name: subjects for name, subjects in graded.items() if subjects}
    if not poor:
        return []
    who = "every allocator" if len(poor) == len(graded) > 1 else first_listed(list(poor), _NAMED)
    why = ", ".join(dict.fromkeys(subject for subjects in poor.values() for subject in subjects))
    return [f"Trust this with care: runs of {who} are graded poor ({why})."]


def _frames(one: Answer) -> list[str]:
    """How much of a frame allocation takes, on the program's own allocator or on all there are."""
    cut = one.members[0].cuts.frames
    who = one.of.section.journal if one.of.own is None else f"{one.of.section.journal} on {one.of.own.name}"
    if isinstance(cut, NoFrames):
        return [f"{who}: whether allocation makes it miss frames is not known, as there are none ({cut.reason})."]
    budget = 1e9 / cut.rate_hz
    frame = f"a {cut.rate_hz:g} Hz frame"
    if one.of.own is None:
        known = [each for each in one.standings if Measure.FRAME in each.values]
        if not known:
            return [f"{who}: no frame was judged."]
        least, most = (choose(known, key=lambda each: each.values[Measure.FRAME]) for choose in (min, max))
        return [
            f"{who}: in a typical run allocation takes {_share(least, budget)} of the worst {cut.rate_hz:g} Hz frame "
            f"on {short_name(least.allocator)}, and {_share(most, budget)} on {short_name(most.allocator)}."
        ]
    own = one.own_standing
    if Measure.FRAME not in own.values:
        return [f"{who}: no frame was judged."]
    values = one.of.own.judged_frames(standing.trusted(one.members))
    assert values is not None
    worst = float(values.max())  # of all runs: what a typical one has, as the table, says nothing of never
    share = units.share(worst / budget)
    count, over = values.size, int((values > budget).sum())
    if worst < _SMALL * budget:
        found = (
            f"{who}: allocation never takes more than {share} of {frame}; no allocator here would fix a missed frame."
        )
    elif not over:
        found = (
            f"{who}: allocation takes up to {share} of {frame}; a frame is missed because of it only where all the "
            f"rest leaves less than {units.duration(worst)}."
        )
    else:
        found = (
            f"{who}: allocation makes it miss frames: in {over:,} of {counted(count, 'frame')} it takes more than the "
            f"whole {units.duration(budget)} of {frame}, at worst {share}."
        )
    return [found, *_fix(one, own, budget)]


def _fix(one: Answer, own: Standing, budget: float) -> list[str]:
    """Where the worst frame matters: whom it is shorter with, as a share."""
    if own.values[Measure.FRAME] < _SMALL * budget or one.repeats < LEAST_REPEATS:
        return []
    better = _sorted(one, Measure.FRAME, Verdict.BETTER)
    if not better:
        return []
    shown = [f"{short_name(each.allocator)} ({_share(each, budget)})" for each in better]
    return [f"In a typical run the worst frame takes {_share(own, budget)}, less with {first_listed(shown, _NAMED)}."]


def _conclusion(one: Answer) -> str:
    """What changing the allocator comes to."""
    better = [each for each in one.others if each.those(Verdict.BETTER)]
    safe = [each for each in better if not each.those(Verdict.WORSE)]
    if not better:
        return "No other allocator improves anything beyond noise: neither p50 nor p99.9, worst frame or memory."
    if not safe:
        return f"{'; '.join(map(_gain_and_loss, better[:_NAMED]))}: every gain has its price."
    shown = [
        f"{short_name(each.allocator)} ({', '.join(measure.value for measure in each.those(Verdict.BETTER))})"
        for each in sorted(safe, key=lambda each: -len(each.those(Verdict.BETTER)))
    ]
    return f"Better in something and worse in nothing: {first_listed(shown, _NAMED)}."


def _gain_and_loss(one: Standing) -> str:
    gains, losses = (" and ".join(each.value for each in one.those(v)) for v in (Verdict.BETTER, Verdict.WORSE))
    return f"{short_name(one.allocator)} is better in {gains} and worse in {losses}"


def _changes(one: Answer) -> list[str]:
    """By measure who is better beyond noise, and who is worse; what nobody changes comes last, in one sentence."""
    assert one.of.own is not None
    own = one.own_standing
    found, unchanged = [], []
    for measure in own.values:
        better, worse = (_sorted(one, measure, verdict) for verdict in (Verdict.BETTER, Verdict.WORSE))
        parts = [
            f"{words} {first_listed([_named(each, measure) for each in those], _NAMED)}"
            for words, those in (("lower with", better), ("higher with", worse[::-1]))
            if those
        ]
        if parts:
            found.append(
                f"{measure.value[0].upper()}{measure.value[1:]}, {_shown(own, measure)} on {one.of.own.name}: "
                f"{', '.join(parts)}."
            )
        else:
            unchanged.append(f"{measure.value} ({_shown(own, measure)})")
    if unchanged and any(each.those(Verdict.BETTER) for each in one.others):
        found.append(f"Nobody changes {first_listed(unchanged, _NAMED, 'or')} beyond noise.")
    return found


def _power(one: Answer) -> list[str]:
    """What no difference means."""
    known = standing.shows(one.others)
    if not known:
        return []
    limits = [f"{measure.value} {units.share(ratio - 1)}" for measure, ratio in known.items()]
    return [f"A change would probably not show in these runs below: {', '.join(limits)}."]


def _sorted(one: Answer, measure: Measure, verdict: Verdict) -> list[Standing]:
    found = [each for each in one.others if measure in each.those(verdict)]
    return sorted(found, key=lambda each: each.values[measure])


def _share(one: Standing, budget: float) -> str:
    return units.share(one.values[Measure.FRAME] / budget)


def _named(each: Standing, measure: Measure) -> str:
    return f"{short_name(each.allocator)} ({_shown(each, measure)})"


def _shown(each: Standing, measure: Measure) -> str:
    return words(_value(each, measure), Unit.BYTES if measure is Measure.MEMORY else Unit.NS)


def table(one: Answer) -> Table:
    """Each allocator's figures and, where they differ from the program's own beyond noise, by how much."""
    measures = [measure for measure in Measure if any(measure in each.values for each in one.standings)]
    rows = [
        Row(short_name(each.allocator), [cell for m in measures for cell in _cells(each, m)], each.allocator.name)
        for each in one.standings
    ]
    better = {
        (y, 2 * x)
        for y, each in enumerate(one.standings)
        for x, measure in enumerate(measures)
        if measure in each.those(Verdict.BETTER)
    }
    changes = "".join(cell for row in rows for cell in row.cells if isinstance(cell, str))
    signs = [sign for sign in "%x" if sign in changes]
    return Table(
        f"against {one.of.own.name}" if one.of.own is not None else "side by side",
        [
            column
            for m in measures
            for column in (Column(_BROKEN[m], Unit.BYTES if m is Measure.MEMORY else Unit.NS), Column(""))
        ],
        rows,
        ["malloc with first touch", f"frames ({standing.trusted(one.members).value})", "memory"],
        [f"{', '.join(signs)}: a change from {one.of.own.name} beyond noise"] if signs else [],
        better=frozenset(better),
    )


def _cells(one: Standing, measure: Measure) -> tuple[Cell, str]:
    """The figure, and its change where one is shown."""
    if measure not in one.values:
        return None, ""
    found = one.differences.get(measure)
    changed = found is not None and found.verdict is not Verdict.INCONCLUSIVE
    return _value(one, measure), _change_words(found.ratio) if found is not None and changed else ""


def _value(one: Standing, measure: Measure) -> Cell:
    return one.values[measure] if measure is Measure.MEMORY else one.allocator.latency(one.values[measure])


def _change_words(ratio: float) -> str:
    """`-43 %`, `+7 %`, `x 12`."""
    return f"x {ratio:.3g}" if ratio >= 10 else f"{(ratio - 1) * 100:+.0f} %"
