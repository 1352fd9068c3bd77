"""The facts of `blockyard info` as tables."""

from blockyard import units
from blockyard.journal_tool import Facts, Stacks
from blockyard.report.blocks import Block, Warnings
from blockyard.report.table import Column, Row, Table, Unit
from blockyard.units import counted

_MALLOCS = Column("mallocs", Unit.COUNT)
_SHARE = Column("share", Unit.SHARE)
_MOST_THREADS = 12
_DEFAULT_FRAME_NS = 16_666_667


def said(facts: Facts) -> list[Block]:
    """All that blockyard-journal's JSON says, in reading order."""
    parts: list[Block] = [_summary(facts), _sizes(facts)]
    # The times of an unpaced journal are places in an order: lifetimes and frames would be figures of nothing.
    if facts.paced:
        parts.append(_lifetimes(facts))
    if facts.threads_known:
        parts.append(_threads(facts))
    if facts.paced:
        parts.append(_frames(facts))
    repairs = [f"repaired: {repair}." for repair in facts.repairs]
    notes = [f"{note}." for note in facts.notes if note not in facts.repairs]
    if repairs or notes:
        parts.append(Warnings(repairs + notes))
    return parts


def _count(count: int) -> str:
    return f"{count:,}"


def _share(share: float) -> str:
    return f"{share * 100:.2f} %"


def _size_class(first: int, below: int) -> str:
    """`1`, `16 - 31`, `64 - 128 KiB`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if first >= unit:
            return f"{first // unit} - {below // unit} {name}"
    return str(first) if first == below - 1 else f"{first} - {below - 1}"


def _summary(facts: Facts) -> Table:
    rows: list[Row] = []
    kinds = facts.kinds

    def row(name: str, value: str) -> None:
        rows.append(Row(name, [value]))

    names = {"allocator": "malloc of", "started_at": "started"}
    for key in ("program", "machine", "recorder", "allocator", "started_at"):
        if value := getattr(facts, key):
            row(names.get(key, key), value)
    if facts.command:
        row("command", " ".join(facts.command))
    row(
        "file",
        f"{facts.form}, {units.size(facts.file_bytes)}, {facts.bytes_per_event:.2f} bytes per event"
        + (", addresses kept" if facts.has_addresses and facts.form == "byj" else ""),
    )
    row("duration", units.length(facts.duration_ns) if facts.paced else "unknown (unpaced: order only)")
    row("events", _count(facts.events))
    row(
        "mallocs",
        f"{_count(facts.allocations)} (calloc {_count(kinds.allocate_zeroed)}, "
        f"aligned {_count(kinds.allocate_aligned)}, realloc {_count(kinds.reallocate)})",
    )
    row(
        "frees",
        f"{_count(facts.frees)}"
        + (f" (realloc {_count(kinds.reallocate)}: its old block)" if kinds.reallocate else ""),
    )
    row(
        "on another thread",
        f"{counted(facts.remote_frees, 'free')} ({_share(facts.remote_free_share)})"
        if facts.threads_known
        else "unknown: the recording has no threads",
    )
    preamble = facts.preamble
    if preamble.blocks:
        row(
            "preamble",
            f"{counted(preamble.blocks, 'block')}, {units.size(preamble.bytes)}; not counted in mallocs and sizes",
        )
    row("total allocation", units.size(facts.total_bytes))
    row(
        "max live bytes",
        units.size(facts.max_live_bytes) + (f" at {units.moment(facts.max_live_bytes_at_ns)}" if facts.paced else ""),
    )
    row("max live blocks", _count(facts.max_live_blocks))
    sizes = facts.sizes
    row(
        "allocation size",
        f"average {sizes.mean:,.1f}, median {_count(sizes.median)}, "
        f"p99 {_count(sizes.p99)}, p99.9 {_count(sizes.p999)}, largest {_count(sizes.largest)} bytes",
    )
    if sizes.zero:
        row("zero-size mallocs", _count(sizes.zero))
    live = facts.live_at_end
    row(
        "live at the end" if facts.cut_at_end else "leaked",
        f"{counted(live.blocks, 'block')}, {counted(live.bytes, 'byte')}",
    )
    row("call stacks", _stacks(facts.stacks) if facts.allocations else "none: no block was recorded")
    if facts.phases:
        row("phases", ", ".join(facts.phases))
    return Table("", [Column("what the journal holds")], rows, first="")


def _stacks(stacks: Stacks) -> str:
    """How much of the journal can say who allocated."""
    if not stacks.events:
        return "none: recorded without them"
    parts = [f"{_count(stacks.sites)} different ones on {counted(stacks.events, 'event')}"]
    reasons = sorted(stacks.incomplete_events.items(), key=lambda one: -one[1])
    if reasons:
        shares = (f"{reason} {_share(events / stacks.events)}" for reason, events in reasons)
        parts.append("incomplete: " + ", ".join(shares))
    if not stacks.named_addresses:
        parts.append("names not resolved: `blockyard names` does")
    elif stacks.modules_without_names:
        parts.append(f"{stacks.modules_without_names} of {counted(stacks.modules, 'module')} without names")
    if stacks.tagged_events:
        parts.append(f"{counted(stacks.tagged_events, 'event')} tagged")
    return "; ".join(parts)


def _sizes(facts: Facts) -> Table:
    rows = [
        Row(_size_class(one.first, one.below), [one.blocks, one.blocks / facts.allocations, one.bytes])
        for one in facts.sizes.histogram
    ]
    return Table("Sizes", [_MALLOCS, _SHARE, Column("bytes in all", Unit.BYTES)], rows, first="bytes")


def _lifetimes(facts: Facts) -> Table:
    rows, below = [], 0
    for one in facts.lifetimes:
        bound = one.below_ns
        name = f"{units.duration(below)} and longer" if bound is None else f"below {units.duration(bound)}"
        rows.append(Row(name, [one.blocks, one.share]))
        below = bound or below
    has_frame = any(one.below_ns == _DEFAULT_FRAME_NS for one in facts.lifetimes)
    notes = [f"{units.duration(_DEFAULT_FRAME_NS)} are a frame at 60 Hz"] if has_frame else []
    return Table("Lifetimes of freed blocks", [Column("blocks", Unit.COUNT), _SHARE], rows, notes=notes, first="")


def _threads(facts: Facts) -> Table:
    busiest = sorted(facts.threads, key=lambda thread: thread.allocations + thread.frees, reverse=True)
    rows = [
        Row(one.name, [str(one.id), one.allocations, one.frees, one.remote_frees, one.bytes])
        for one in busiest[:_MOST_THREADS]
    ]
    rest = len(busiest) - _MOST_THREADS
    notes = [f"and {counted(rest, 'less busy thread')}: --json lists all"] if rest > 0 else []
    counts = [_MALLOCS, Column("frees", Unit.COUNT), Column("of others", Unit.COUNT), Column("bytes", Unit.BYTES)]
    return Table("Threads", [Column("id"), *counts], rows, notes=notes, first="name")


def _frames(facts: Facts) -> Table:
    frames = facts.frames
    length, most_events, most_bytes = frames.length_ns, frames.most_events, frames.most_bytes
    if frames.marked:
        thread = facts.threads[frames.thread]
        title = f"Frames: {_count(frames.count)}, marked by thread {thread.name or thread.id}"
    else:
        stretches = counted(frames.count, "stretch")
        title = f"Frames: none marked; {stretches} of {units.duration(frames.frame_ns)}"
    rows = [
        Row(name, [getattr(frames.events, key), getattr(length, key, ""), ""])
        for name, key in (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p999"))
    ]
    rows.append(Row("most", [most_events.events, getattr(length, "max", ""), most_bytes.bytes]))
    rows.append(Row("at", [units.moment(most_events.at_ns), "", units.moment(most_bytes.at_ns)]))
    columns = [Column("events", Unit.COUNT), Column("length", Unit.NS), Column("bytes allocated", Unit.BYTES)]
    return Table(title, columns, rows, first="")
