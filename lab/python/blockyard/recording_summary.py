"""What a recording came to, in the words that the user sees."""

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from blockyard import preload
from blockyard.recording import OTHERWISE, RECORDER, Image, Journal, Outcome
from blockyard.units import counted, duration

# Up to this many journals are described one by one; of more, the largest have a line each.
_MOST_DESCRIBED = 3
_MOST_LISTED = 8
_MOST_SENTENCES = 4

_Pair = tuple[Image, Journal]
"""A process image and one of its journals."""


def complete_journals(outcome: Outcome) -> int:
    """How many journals were written to their end."""
    return sum(not journal.error for _, journal in outcome.journals)


def incomplete_journals(outcome: Outcome) -> int:
    """How many could not be written to their end: the disk was full, most likely."""
    return sum(bool(journal.error) for _, journal in outcome.journals)


def describe(outcome: Outcome) -> Iterator[str]:
    """The summary, line by line."""
    images = outcome.summary.images
    journals = outcome.journals
    yield ""
    if not images:
        yield (
            f"blockyard: nothing was recorded: {' '.join(outcome.request.command[:1]) or 'it'} never began to record. "
            "Unless a line above says why, it is linked statically, changes its user, clears its environment, or runs "
            "a program that does"
        )
        return
    if not journals and not any(image.running for image in images):
        yield "blockyard: nothing was recorded: the program ended before a window opened"
        return
    # The program itself first, then whatever recorded most; what recorded nothing is only counted.
    own = str(outcome.request.output.absolute())
    notable = [pair for pair in journals if pair[1].events or pair[1].error or pair[1].path == own]
    notable.sort(key=lambda pair: (pair[1].path != own, -_recorded(pair[1])))
    if len(notable) <= _MOST_DESCRIBED:
        for image, journal in notable:
            yield from _describe_journal(image, journal)
        if empty := len(journals) - len(notable):
            yield f"  and {counted(empty, 'journal')} of processes that allocated nothing, {_pattern(outcome)}"
    else:
        yield from _list_journals(outcome, journals, notable)
    for image in images:
        if image.silent:
            yield (f"  process {image.pid} still runs and has recorded nothing yet; its journal will be {image.path}")
        elif image.running:
            yield f"  process {image.pid} still runs; its journal goes on: {image.path}"
    yield from _describe_trouble(outcome, journals)
    if verified := sum(image.stacks_verified for image in images):
        differing, by_us, by_them = (
            sum(getattr(image, f"stacks_{key}") for image in images)
            for key in ("differing", "ended_by_us", "ended_by_them")
        )
        yield (
            f"  {counted(verified, 'stack')} walked again with libunwind: {differing:,} differ, {by_us:,} ended "
            f"earlier with a marker, {by_them:,} libunwind could not follow"
        )
    yield from _describe_unseen(outcome, notable)
    for note in outcome.notes:
        yield f"  {note}"
    complete = [journal for _, journal in journals if not journal.error]
    if complete:
        yield f"next: blockyard info {shlex.quote(max(complete, key=_recorded).path)}"


def _recorded(journal: Journal) -> int:
    """Events that this process brought about: what a forked child found alive is its preamble."""
    return journal.events - journal.preamble


def _pattern(outcome: Outcome) -> str:
    output = outcome.request.output
    return f"{output.stem}.PID{output.suffix}"


def _describe_journal(image: Image, journal: Journal) -> Iterator[str]:
    if journal.error:
        yield f"  {journal.path}: {_incomplete(journal)}"
        return
    events = journal.events
    each = f", {journal.bytes / events:.2f} bytes each" if events else ""
    yield f"  {journal.path}: {_program(image)}, {events:,} events in {duration(journal.seconds * 1e9)}{each}"
    yield (
        f"    {counted(journal.allocations, 'allocation')}, {counted(journal.frees, 'free')}"
        + (f" ({counted(journal.reallocates, 'realloc')} in both)" if journal.reallocates else "")
        + f", {counted(journal.threads, 'thread')}, {counted(journal.frames, 'frame mark')}"
        + (f", {counted(journal.preamble, 'block')} alive at the start" if journal.preamble else "")
    )


def _incomplete(journal: Journal) -> str:
    """Beside its name, with which the error begins."""
    return f"incomplete: {journal.error.removeprefix(journal.path).lstrip(': ')}"


def _list_journals(outcome: Outcome, journals: list[_Pair], notable: list[_Pair]) -> Iterator[str]:
    """One line each for the program's own journal and the largest of the others."""
    events = sum(journal.events for _, journal in journals)
    folder = outcome.request.output.absolute().parent
    processes = len({image.process for image, _ in journals})
    yield f"  {len(journals)} journals of {counted(processes, 'process')} with {events:,} events in {folder}"
    shown = notable[:_MOST_LISTED]
    name_width = max(len(_name(journal, folder)) for _, journal in shown)
    for image, journal in shown:
        what = _incomplete(journal) if journal.error else _program(image)
        marks = f", {counted(journal.frames, 'frame mark')}" if journal.frames else ""
        name = f"{_name(journal, folder):<{name_width}}"
        yield f"  {journal.events:>13,} events  {name}  {what}{marks}"
    if rest := len(notable) - len(shown):
        yield f"  and {rest} smaller ones, {_pattern(outcome)}"
    if empty := len(journals) - len(notable):
        yield f"  and {empty} without an event"


def _name(journal: Journal, folder: Path) -> str:
    path = Path(journal.path)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _program(image: Image) -> str:
    return Path(image.program).name or f"process {image.pid}"


def _describe_trouble(outcome: Outcome, journals: list[_Pair]) -> Iterator[str]:
    images = outcome.summary.images

    def total(name: str) -> float:
        return sum(getattr(image, name) for image in images)

    symbol = outcome.request.frame_symbol
    if symbol and journals and not any(journal.frames for _, journal in journals):
        yield (
            f"  no frame was marked: {symbol} was never called through the dynamic linker; check its spelling, and "
            "with 'nm -D' that the program or a library exports it"
        )
    if total("waits"):
        yield (
            f"  the program waited {duration(total('waited_ms') * 1e6)} for the recorder "
            f"({counted(total('waits'), 'time')}): its times there are longer than they would be"
        )
    if total("threads_refused"):
        yield (
            f"  {_were(total('threads_refused'), 'thread')} not recorded: more than 16,384 ran at a time, or memory "
            "was short; the journal lacks their events"
        )
    if total("threads_left"):
        yield (
            f"  {_were(total('threads_left'), 'thread')} not recorded to the end: the program forbade them the cycle "
            "counter or nearly all system calls (prctl)"
        )
    if total("missed_frees"):
        yield (
            f"  {_were(total('missed_frees'), 'block')} freed in a way that can't be seen; a free was put in where "
            "the address was given again"
        )
    # Of a program that ran before, the journal itself says how many.
    unknown = sum(image.unknown_frees for image in images if not image.was_running)
    if unknown:
        yield f"  {_were(unknown, 'free')} left out: of a block from before the recording, or a second time"
    if outcome.summary.clock != "cycles":
        yield "  the cycle counter can't be trusted here: CLOCK_MONOTONIC was used, which costs more for each event"


def _describe_unseen(outcome: Outcome, notable: list[_Pair]) -> Iterator[str]:
    """What went past the recorder: nobody should take what was recorded for all there was."""
    sentences = dict.fromkeys(sentence for image, journal in notable if not journal.error for sentence in image.unseen)
    for sentence in list(sentences)[:_MOST_SENTENCES]:
        yield f"  {sentence}"
    if (rest := len(sentences) - _MOST_SENTENCES) > 0:
        yield f"  and {counted(rest, 'sentence')} more like these: 'blockyard info' says each journal's"
    lost = Counter(program.program for program in outcome.summary.unseen)
    for program, times in lost.most_common(_MOST_SENTENCES):
        # Only the program itself knows in which folder another path begins.
        why = preload.unfit(Path(program), RECORDER, OTHERWISE) if os.path.isabs(program) else None
        yield (
            f"  {program} began without the recorder"
            + (f", {times} times" if times > 1 else "")
            + f": {why or 'it could not reach the collector, or did not load what LD_PRELOAD names'}"
        )
    if (rest := len(lost) - _MOST_SENTENCES) > 0:
        yield f"  and {counted(rest, 'other program')} began without it"


def _were(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'was' if number == 1 else 'were'}"
