"""standard.md: what each allocator does to each game."""

from common import (
    ABSENT,
    DEFAULTS,
    OURS,
    PREFAULTED,
    Allocator,
    Campaign,
    Data,
    Journal,
    mib,
    ns,
    percent,
    table,
    us,
    words,
)

from blockyard.analysis.latency import View

_SHOWN = (("malloc", "p99"), ("malloc", "p99.9"), ("malloc", "p99.99"), ("malloc", "worst"))
_FREES = (("free", "p99"), ("free", "p99.9"))
_PREFAULTED = (("malloc", "p99.9"), ("malloc", "worst"))
HZ = "144"
_RATES = ("60", "144", "240")


def write(data: Data, pictures: list[str]) -> list[str]:
    campaign = data.standard
    return [
        "# Games on every allocator",
        "",
        _answer(campaign),
        "",
        *_newer(data),
        *_legend(campaign),
        *[line for name in pictures for line in (f"![Malloc latency over percentiles](images/{name})", "")],
        *[line for journal in campaign.journals for line in _journal(campaign, journal)],
        *_causes(campaign),
    ]


def _newer(data: Data) -> list[str]:
    """Where the heap's targets are judged by a later campaign than this one."""
    told = data.newest.told
    if told == data.standard.told:
        return []
    return [
        f"This is the heap of commit {data.standard.told['commit']}. [The heap's targets](heap.md) and "
        f"[choosing](choosing.md) rest on a newer campaign, of commit {told['commit']}, with fewer allocators.",
        "",
    ]


def _answer(campaign: Campaign) -> str:
    """Who has the lowest p99.9 of malloc, and whether anyone misses a frame by allocating alone."""
    least = []
    for journal in campaign.journals:
        ranked = sorted(
            (value, one.name)
            for one in journal.variant(DEFAULTS)
            if (value := one.value(View.ATTRIBUTED, "malloc", "p99.9")) is not None
        )
        if ranked and ranked[0][1] == OURS:
            least.append(journal.title)
    first = (
        f"On {words(least)}, Blockyard has the lowest p99.9 of malloc"
        if least
        else "Blockyard has the lowest p99.9 of malloc on none of these games"
    )
    for hz in _RATES:
        late = sorted(
            {
                one.name
                for journal in campaign.journals
                for one in journal.variant(DEFAULTS)
                if (one.part("frames", hz, "worst") or 0) > 1
            }
        )
        if late:
            return f"{first}. At {hz} Hz, allocation alone makes a frame late with {words(late)}."
    return f"{first}. Allocation alone makes no frame late, not even at {_RATES[-1]} Hz."


def _legend(campaign: Campaign) -> list[str]:
    return [
        f"{_medians(campaign)} The tables are ordered by malloc's p99.9. They have attributed microseconds of "
        f"{campaign.repeats} repeats at the journal's own pace, malloc with its first touch; *inherent* is each "
        f"event's least. *Frame* is the worst frame's share of {1000 / int(HZ):.1f} ms, in percent; where a journal "
        "loads first, only frames of play count. *Peak* is resident MiB. *Prefaulted* is populated beforehand, with "
        "purging off. `*`: not thread-safe, a lock around every call is in its figures. `–`: not known, or too few "
        "samples.",
        "",
    ]


def _key(one: Allocator) -> float:
    views = (View.ATTRIBUTED, View.INHERENT)
    return next((value for view in views if (value := one.value(view, "malloc", "p99.9")) is not None), 0.0)


def _journal(campaign: Campaign, journal: Journal) -> list[str]:
    step = campaign.step_ns
    view = _prefaulted_view(journal)
    rows = []
    for one in sorted(journal.variant(DEFAULTS), key=_key):
        other = journal.of(one.name, PREFAULTED)
        rows.append(
            [
                one.label,
                *(us(one.value(View.ATTRIBUTED, *what), step) for what in _SHOWN),
                us(one.value(View.INHERENT, "malloc", "p99.9"), step),
                *(us(one.value(View.ATTRIBUTED, *what), step) for what in _FREES),
                percent(one.part("frames", HZ, "worst")),
                mib(one.part("memory", "peak")),
                *(us(other.value(view, *what) if other else None, step) for what in _PREFAULTED),
            ]
        )
    head = ["", "malloc p99", "p99.9", "p99.99", "worst", "inherent p99.9", "free p99", "p99.9", "frame", "peak"]
    head += [f"prefaulted p99.9{'' if view is View.ATTRIBUTED else ', inherent'}", "worst"]
    title = f"## {journal.title}" + (f": {journal.subject}" if journal.subject else "")
    return [title, "", *table(head, rows)]


def _prefaulted_view(journal: Journal) -> View:
    """Attributed where it is known."""
    found = journal.variant(PREFAULTED)
    known = not found or any(one.value(View.ATTRIBUTED, "malloc", "p99") is not None for one in found)
    return View.ATTRIBUTED if known else View.INHERENT


def _medians(campaign: Campaign) -> str:
    """At the median allocators hardly differ: one sentence."""
    known = [
        value
        for journal in campaign.journals
        for one in journal.variant(DEFAULTS)
        if (value := one.value(View.ATTRIBUTED, "malloc", "p50")) is not None
    ]
    if not known:
        return ""
    least, most = (ns(value, campaign.step_ns) for value in (min(known), max(known)))
    return f"At the median, malloc takes {least} to {most} everywhere."


def _causes(campaign: Campaign) -> list[str]:
    names = list(dict.fromkeys(one.name for journal in campaign.journals for one in journal.variant(DEFAULTS)))

    def cell(journal: Journal, name: str) -> str:
        one = journal.of(name)
        share = one.part("slowest_malloc_causes", "page fault") if one else None
        return ABSENT if share is None else f"{100 * share:.0f}"

    rows = [[name, *(cell(journal, name) for journal in campaign.journals)] for name in names]
    if all(cell == ABSENT for row in rows for cell in row[1:]):
        return []
    return [
        "## Why slow mallocs are slow",
        "",
        "Page faults' share of the time of the slowest 0.1 % of mallocs, as-run, in percent. The rest is the "
        "allocator's own work, waiting and the machine.",
        "",
        *table(["", *(journal.title for journal in campaign.journals)], rows),
    ]
