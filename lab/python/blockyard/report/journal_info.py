"""The facts of `blockyard info` as tables for the terminal, readable in 80 columns."""

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from blockyard.counted import counted
from blockyard.report import units

_BAR_CELLS = 24
_MOST_THREADS = 12
_DEFAULT_FRAME_NS = 16_666_667


def render(facts: dict[str, Any]) -> RenderableType:
    """All that blockyard-journal's JSON says, in reading order."""
    parts: list[RenderableType] = [_summary(facts), _sizes(facts)]
    # The times of an unpaced journal are places in an order: lifetimes and frames would be figures of nothing.
    if facts["paced"]:
        parts.append(_lifetimes(facts))
    if facts["threads_known"]:
        parts.append(_threads(facts))
    if facts["paced"]:
        parts.append(_frames(facts))
    parts += [Text(f"Note: {note}.", style="yellow") for note in facts["notes"]]
    return Group(*parts)


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


def _bar(share: float, most: float) -> Text:
    eighths = round(share / most * _BAR_CELLS * 8) if most else 0
    whole, part = divmod(eighths, 8)
    return Text("█" * whole + " ▏▎▍▌▋▊▉"[part].strip(), style="cyan")


def _table(title: str, *columns: str, left: int = 1) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < left else "right", no_wrap=place > 0)
    return table


def _summary(facts: dict[str, Any]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    kinds = facts["kinds"]

    def row(name: str, value: str) -> None:
        table.add_row(name, Text(value))

    for key, name in (
        ("program", "program"),
        ("machine", "machine"),
        ("recorder", "recorder"),
        ("allocator", "malloc of"),
        ("started_at", "started"),
    ):
        if facts[key]:
            row(name, facts[key])
    if facts["command"]:
        row("command", " ".join(facts["command"]))
    row(
        "file",
        f"{facts['form']}, {units.size(facts['file_bytes'])}, {facts['bytes_per_event']:.2f} bytes per event"
        + (", addresses kept" if facts["has_addresses"] and facts["form"] == "byj" else ""),
    )
    row("duration", units.length(facts["duration_ns"]) if facts["paced"] else "unknown (unpaced: order only)")
    row("events", _count(facts["events"]))
    row(
        "mallocs",
        f"{_count(facts['allocations'])} (calloc {_count(kinds['allocate_zeroed'])}, "
        f"aligned {_count(kinds['allocate_aligned'])}, realloc {_count(kinds['reallocate'])})",
    )
    row(
        "frees",
        f"{_count(facts['frees'])}"
        + (f" (realloc {_count(kinds['reallocate'])}: its old block)" if kinds["reallocate"] else ""),
    )
    row(
        "on another thread",
        f"{counted(facts['remote_frees'], 'free')} ({_share(facts['remote_free_share'])})"
        if facts["threads_known"]
        else "unknown: heaptrack keeps no threads",
    )
    preamble = facts["preamble"]
    if preamble["blocks"]:
        row(
            "preamble",
            f"{counted(preamble['blocks'], 'block')}, {units.size(preamble['bytes'])}; "
            "not counted in mallocs and sizes",
        )
    row("total allocation", units.size(facts["total_bytes"]))
    row(
        "max live bytes",
        units.size(facts["max_live_bytes"])
        + (f" at {units.moment(facts['max_live_bytes_at_ns'])}" if facts["paced"] else ""),
    )
    row("max live blocks", _count(facts["max_live_blocks"]))
    sizes = facts["sizes"]
    row(
        "allocation size",
        f"average {sizes['mean']:,.1f}, median {_count(sizes['median'])}, "
        f"p99 {_count(sizes['p99'])}, p99.9 {_count(sizes['p999'])}, largest {_count(sizes['largest'])} bytes",
    )
    if sizes["zero"]:
        row("zero-size mallocs", _count(sizes["zero"]))
    live = facts["live_at_end"]
    row(
        "live at the end" if facts["cut_at_end"] else "leaked",
        f"{counted(live['blocks'], 'block')}, {counted(live['bytes'], 'byte')}",
    )
    row("call stacks", _stacks(facts["stacks"]))
    if facts["phases"]:
        row("phases", ", ".join(facts["phases"]))
    return table


def _stacks(stacks: dict[str, Any]) -> str:
    """How much of the journal can say who allocated."""
    if not stacks["events"]:
        return "none: recorded without them"
    parts = [f"{_count(stacks['sites'])} different ones on {counted(stacks['events'], 'event')}"]
    reasons = sorted(stacks["incomplete_events"].items(), key=lambda one: -one[1])
    if reasons:
        shares = (f"{reason} {_share(events / stacks['events'])}" for reason, events in reasons)
        parts.append("incomplete: " + ", ".join(shares))
    if not stacks["named_addresses"]:
        parts.append("names not resolved: `blockyard names` does")
    elif stacks["modules_without_names"]:
        parts.append(f"{stacks['modules_without_names']} of {counted(stacks['modules'], 'module')} without names")
    if stacks["tagged_events"]:
        parts.append(f"{counted(stacks['tagged_events'], 'event')} tagged")
    return "; ".join(parts)


def _sizes(facts: dict[str, Any]) -> Table:
    table = _table("\nSizes", "bytes", "", "mallocs", "share", "bytes in all", left=2)
    rows = facts["sizes"]["histogram"]
    most = max((row["blocks"] for row in rows), default=0)
    for row in rows:
        table.add_row(
            _size_class(row["from"], row["below"]),
            _bar(row["blocks"], most),
            _count(row["blocks"]),
            _share(row["blocks"] / facts["allocations"]),
            units.size(row["bytes"]),
        )
    return table


def _lifetimes(facts: dict[str, Any]) -> Table:
    table = _table("Lifetimes of freed blocks", "", "", "blocks", "share", left=2)
    most = max(row["share"] for row in facts["lifetimes"])
    below = 0
    for row in facts["lifetimes"]:
        bound = row["below_ns"]
        name = f"{units.duration(below)} and longer" if bound is None else f"below {units.duration(bound)}"
        if bound == _DEFAULT_FRAME_NS:
            name += " (a frame)"
        below = bound or below
        table.add_row(name, _bar(row["share"], most), _count(row["blocks"]), _share(row["share"]))
    return table


def _threads(facts: dict[str, Any]) -> Table:
    table = _table("Threads", "id", "name", "mallocs", "frees", "of others", "bytes", left=2)
    busiest = sorted(facts["threads"], key=lambda thread: thread["allocations"] + thread["frees"], reverse=True)
    for thread in busiest[:_MOST_THREADS]:
        table.add_row(
            str(thread["id"]),
            Text(thread["name"]),
            _count(thread["allocations"]),
            _count(thread["frees"]),
            _count(thread["remote_frees"]),
            units.size(thread["bytes"]),
        )
    rest = len(busiest) - _MOST_THREADS
    if rest > 0:
        table.caption = f"and {rest:,} less busy {'thread' if rest == 1 else 'threads'}: --json lists all"
        table.caption_justify = "left"
    return table


def _frames(facts: dict[str, Any]) -> Table:
    frames = facts["frames"]
    if frames["marked"]:
        name = facts["threads"][frames["thread"]]["name"] or str(facts["threads"][frames["thread"]]["id"])
        title = f"Frames: {_count(frames['count'])}, marked by thread {name}"
    else:
        stretch = "stretch" if frames["count"] == 1 else "stretches"
        title = f"Frames: none marked; {_count(frames['count'])} {stretch} of {units.duration(frames['frame_ns'])}"
    table = _table(title, "", "p50", "p90", "p99", "p99.9", "most", "at")
    keys = ("p50", "p90", "p99", "p999")
    most = frames["most_events"]
    table.add_row(
        "events", *(_count(frames["events"][key]) for key in keys), _count(most["events"]), units.moment(most["at_ns"])
    )
    if frames["marked"]:
        length = frames["length_ns"]
        table.add_row("length", *(units.duration(length[key]) for key in keys), units.duration(length["max"]), "")
    most = frames["most_bytes"]
    table.add_row("bytes allocated", "", "", "", "", units.size(most["bytes"]), units.moment(most["at_ns"]))
    return table
