"""heap.md: whether the heap meets its targets, and how fast it is on several threads."""

from collections.abc import Iterable
from statistics import median
from typing import Any

from common import ABSENT, MIB, OURS, PREFAULTED, Allocator, Campaign, Data, Journal, ratio, table, three, words

from blockyard.analysis import noise
from blockyard.analysis.latency import View
from blockyard.analysis.noise import Verdict

BESIDE_GENERAL = (("malloc", ("p50", "p90", "p99")), ("free", ("p50", "p90", "p99")))
BESIDE_TLSF = (("malloc", ("p99.9", "p99.99", "worst up to 1 MiB")), ("free", ("p99.9", "p99.99", "worst up to 1 MiB")))
LARGE = (("malloc", ("worst above 1 MiB",)), ("free", ("worst above 1 MiB",)))

Row = tuple[str, str, str]
"""Target, whether it is met, and where not."""


def write(data: Data, targets: dict[str, Any]) -> list[str]:
    campaign, figures = data.newest, data.figures("heap")
    rows = [*_latencies(campaign), *_whole(campaign, targets), *_bench(figures, targets)]
    met = sum(met == "yes" for _, met, _ in rows)
    answer = f"The heap meets {met} of its {len(rows)} targets on this machine"
    answer += "; the table says where it misses the others." if met < len(rows) else "."
    return [
        "# The heap",
        "",
        answer,
        "",
        "## Targets",
        "",
        "*Beside* a peer means at or below its figure, or within noise of it. A target is missed if the inherent or "
        "the attributed view is worse ([method](../reference/method.md)); the two worst are shown. [What was "
        "tried](../design/heap-constants.md).",
        "",
        *table(["target", "met", "missed"], rows),
        *_threads(figures),
        *_loads(campaign, figures, targets),
        *_waits(figures),
    ]


def _latencies(campaign: Campaign) -> Iterable[Row]:
    groups = (
        ("p50 to p99 beside the best general-purpose allocator", BESIDE_GENERAL, False),
        ("p99.9 to worst, up to 1 MiB, beside prefaulted TLSF", BESIDE_TLSF, True),
        ("worst above 1 MiB beside the best general-purpose allocator", LARGE, False),
    )
    for title, wanted, tlsf in groups:
        for operation, percentiles in wanted:
            missed, judged = [], 0
            for journal in campaign.journals:
                peers = [one for one in [journal.of("tlsf", PREFAULTED)] if one] if tlsf else journal.general
                for percentile in percentiles:
                    found = _misses(campaign, journal, peers, operation, percentile)
                    judged += found is not None
                    missed += found or []
            if judged:
                worst = [phrase for _, phrase in sorted(missed, reverse=True)[:2]]
                told = f"{len(missed)} of {judged}: {', '.join(worst)}" if missed else ""
                yield f"{operation}, {title}", "no" if missed else "yes", told


def _misses(
    campaign: Campaign, journal: Journal, peers: list[Allocator], operation: str, percentile: str
) -> list[tuple[float, str]] | None:
    """The ratio and a phrase where it is missed; None where nothing is known."""
    ratios = []
    known = False
    for view in (View.INHERENT, View.ATTRIBUTED):
        ours = journal.of(OURS)
        figures = [one.latency(view, operation, percentile) for one in peers]
        mine = ours.latency(view, operation, percentile) if ours else None
        theirs = min((one for one in figures if one), key=lambda one: one[0], default=None)
        if not mine or not theirs:
            continue
        known = True
        found = campaign.difference(theirs, mine)
        if found.verdict is Verdict.WORSE:
            ratios.append(found.ratio)
    label = percentile.removesuffix(" up to 1 MiB").removesuffix(" above 1 MiB")
    return [(max(ratios), f"{journal.title} {label} {max(ratios):.2f}")] if ratios else [] if known else None


def _whole(campaign: Campaign, targets: dict[str, Any]) -> Iterable[Row]:
    limit, room = targets["peak_ratio"], targets["peak_room_mib"] * MIB
    missed = []
    for journal in campaign.journals:
        peers = [
            peak
            for name in targets["peak_of"]
            if (one := journal.of(name)) and (peak := one.part("memory", "peak")) is not None
        ]
        ours = journal.of(OURS)
        mine = ours.part("memory", "peak") if ours else None
        if peers and mine and mine > limit * min(peers) + room:
            missed.append(f"{journal.title} ({mine / MIB:.0f} MiB, not {min(peers) / MIB:.0f})")
    yield (
        f"peak resident at most {limit} of the leanest of {words(targets['peak_of'])}, and "
        f"{targets['peak_room_mib']} MiB",
        "no" if missed else "yes",
        "; ".join(missed),
    )
    if found := _most(campaign, "own_thread_shares"):
        most, where = found
        limit = targets["own_thread_share"]
        title = f"its background thread takes at most {100 * limit:g} % of a core"
        yield _at_most(title, most, limit, f"{where} ({100 * most:.2f} %)")
    if found := _most(campaign, "ready_misses"):
        most, where = found
        limit = targets["ready_misses"]
        yield _at_most(f"at most {limit} ready misses in a run", most, limit, f"{where} ({most})")


def _at_most(title: str, value: float, limit: float, told: str) -> Row:
    return (title, "yes", "") if value <= limit else (title, "no", told)


def _most(campaign: Campaign, what: str) -> tuple[float, str] | None:
    """Of all runs of ours, and in which game; None where nothing is known."""
    ours = ((journal.title, one) for journal in campaign.journals if (one := journal.of(OURS)))
    return max(((most, title) for title, one in ours for most in one.told[what] or []), default=None)


def _bench(figures: dict[str, Any], targets: dict[str, Any]) -> Iterable[Row]:
    pair = figures.get("workloads", {}).get("pair-1")
    if pair and len(pair["allocators"]) > 1:
        mine, name, theirs = _beside(pair)
        limit = targets["pair_ratio"]
        title = f"a malloc and free of 64 bytes at most {limit} of the best"
        yield _at_most(title, mine, limit * theirs, f"{three(mine)} ns, {name} {three(theirs)} ns")
    threads = [one for key, one in figures.get("workloads", {}).items() if key != "pair-1"]
    if threads:
        behind = [one for one in threads if _share(one) * (1 + noise.MARGIN) < 1]
        title = "throughput of threads no lower than the best peer's"
        yield _at_most(title, len(behind), 0, f"{len(behind)} of {len(threads)} below")
    checks = figures.get("hardening", {}).get("none of it")
    if checks:
        limit = targets["checks_ratio"]
        title = f"checks cost at most {100 * (limit - 1):.0f} % of such a pair"
        yield _at_most(title, checks["ratio"], limit, f"{100 * (checks['ratio'] - 1):.1f} %")
    busy = figures.get("waits_us", {}).get(OURS, {}).get("busy", {}).get("p99.9")
    if busy is not None:
        limit = targets["mmap_wait_us"]
        yield _at_most(f"another thread's mmap takes at most {limit} us at p99.9", busy, limit, f"{busy:.0f} us")


def _beside(workload: dict[str, Any]) -> tuple[float, str, float]:
    """Ours, the best peer's name, and its figure."""
    medians = {name: median(one["values"]) for name, one in workload["allocators"].items()}
    mine = medians.pop(OURS)
    pick = max if workload["more_is_better"] else min
    name = pick(medians, key=medians.__getitem__)
    return mine, name, medians[name]


def _share(workload: dict[str, Any]) -> float:
    """Our speed of the best peer's; 1 where there is none."""
    if len(workload["allocators"]) < 2:
        return 1.0
    mine, _, theirs = _beside(workload)
    return mine / theirs if workload["more_is_better"] else theirs / mine


def _threads(figures: dict[str, Any]) -> list[str]:
    workloads = [one for one in figures.get("workloads", {}).values() if len(one["allocators"]) > 1]
    if not workloads:
        return []
    rows = []
    for one in workloads:
        mine, name, theirs = _beside(one)
        fair = one["allocators"][OURS].get("fairness")
        rows.append(
            [one["title"], one["unit"], three(mine), f"{name} {three(theirs)}", ratio(_share(one)), ratio(fair)]
        )
    return [
        "## Throughput",
        "",
        f"Medians of {figures['processes']} processes each. *Ratio*: ours to the best peer's; above 1, ours is faster. "
        "*Least*: what the slowest thread gets of the fastest's share.",
        "",
        *table(["", "unit", "blockyard", "best peer", "ratio", "least"], rows),
    ]


SMALL_PAGES = "small pages"


def _loads(campaign: Campaign, figures: dict[str, Any], targets: dict[str, Any]) -> list[str]:
    rows = [*_of_loads(figures, targets["load_ratios"]), *_of_journals(campaign, targets["journal_cpu_ratio"])]
    if not rows:
        return []
    met = sum(share <= limit for *_, share, limit in rows)
    return [
        "## Single loads",
        "",
        f"The heap meets {met} of these {len(rows)} targets. *Small pages*: Blockyard without huge pages. *CPU*: of a "
        "replay's calls, touches and the allocator's own threads. " + figures.get("loads_note", ""),
        "",
        *table(
            ["", "unit", "blockyard", "best peer", "ratio", "at most"],
            (
                [title, unit, three(mine), peer, ratio(share), f"{limit:.2f}"]
                for title, unit, mine, peer, share, limit in rows
            ),
        ),
    ]


Load = tuple[str, str, float, str, float, float]
"""Title, unit, ours, the best peer and its figure, ours of that, and how much of it is the target."""


def _of_loads(figures: dict[str, Any], limits: dict[str, float]) -> Iterable[Load]:
    for key, load in figures.get("loads", {}).items():
        of = load["allocators"]
        mine, name, theirs = _beside(
            load | {"allocators": {each: of[each] for each in (OURS, SMALL_PAGES)} if SMALL_PAGES in of else of}
        )
        yield load["title"], load["unit"], mine, f"{name} {three(theirs)}", mine / theirs, limits[key]


def _of_journals(campaign: Campaign, limit: float) -> Iterable[Load]:
    for journal in campaign.journals:
        ours = journal.of(OURS)
        mine = ours.part("time_ns", "calls_and_own_threads") if ours else None
        peers = [(took, one.name) for one in journal.general if (took := one.part("time_ns", "calls_and_own_threads"))]
        if mine and peers:
            theirs, name = min(peers)
            title = f"{journal.title}: CPU"
            yield title, "ms", mine / 1e6, f"{name} {three(theirs / 1e6)}", mine / theirs, limit


def _waits(figures: dict[str, Any]) -> list[str]:
    waits = figures.get("waits_us", {})
    if not waits:
        return []
    background = figures.get("background_percent", {})
    told = (
        f" Blockyard's background thread takes {background['busy']:.1f} % of a core while 1 MiB per millisecond is "
        f"wanted, and {background['idle']:.3f} % while the program is idle."
        if background
        else ""
    )

    def cell(found: dict[str, Any], how: str, what: str) -> str:
        value = found.get(how, {}).get(what)
        return ABSENT if value is None else f"{value:.0f}"

    return [
        "## Another thread's mmap",
        "",
        f"Microseconds of an mmap and munmap of 64 KiB beside the allocator's housekeeping.{told}",
        "",
        *table(
            ["", "quiet p99.9", "worst", "busy p99.9", "worst"],
            (
                [name, *(cell(found, how, what) for how in ("quiet", "busy") for what in ("p99.9", "max"))]
                for name, found in waits.items()
            ),
        ),
    ]
