"""choosing.md: when Blockyard is not the best choice."""

from collections.abc import Callable

from common import (
    DEFAULTS,
    OURS,
    PREFAULTED,
    Allocator,
    Campaign,
    Data,
    Journal,
    better,
    mib,
    ns,
    percent,
    table,
    three,
    words,
    worse,
)

from blockyard.analysis import noise
from blockyard.analysis.latency import View

PERCENTILES = ("p50", "p99", "p99.9", "p99.99", "worst")
_MARGIN = 1 + noise.MARGIN
_HZ = "60"


def write(data: Data) -> list[str]:
    campaign = data.newest
    behind, told = [], []
    for group, peers in (
        ("the best general-purpose allocator", lambda journal: journal.general),
        ("TLSF in a pool populated beforehand", lambda journal: _tlsf(journal)),
    ):
        rows, ahead, judged = _latencies(campaign, peers)
        behind += rows
        if judged:
            told.append(f"Beside {group}, it is ahead in {ahead} of {judged} figures and behind in {len(rows)}.")
    memory, processor = _memory(campaign), _processor(campaign)
    return [
        "# When Blockyard is not the best choice",
        "",
        _answer(behind, memory, processor),
        "",
        f"{' '.join(told)} The repeats do not prove the rest either way. Figures are p50 to p99.99 and the worst of "
        "malloc and free on each game; ahead and behind hold in the inherent and in the attributed view "
        "([method](../reference/method.md)).",
        "",
        *_faster(behind),
        *memory,
        *processor,
        *_little(data.standard),
        "## Containers",
        "",
        "[Where a peer is faster or smaller](containers.md#when-a-peer-is-the-better-choice), by keys and sizes.",
        "",
    ]


def _answer(behind: list[list[str]], memory: list[str], processor: list[str]) -> str:
    lacks = [
        word
        for word, found in (
            ("fastest at every percentile", behind),
            ("leanest", memory),
            ("cheapest in processor time", processor),
        )
        if found
    ]
    if not lacks:
        return "Here no allocator was faster, leaner or cheaper in processor time than Blockyard's heap, beyond noise."
    return f"Blockyard's heap is not the {words(lacks)}; some programs want another one."


Peers = Callable[[Journal], list[Allocator]]


def _tlsf(journal: Journal) -> list[Allocator]:
    return [one for one in [journal.of("tlsf", PREFAULTED)] if one is not None]


def _latencies(campaign: Campaign, peers_of: Peers) -> tuple[list[list[str]], int, int]:
    """Rows of what is behind, how many figures are ahead, and of how many."""
    behind, ahead, judged = [], 0, 0
    for journal in campaign.journals:
        ours = journal.of(OURS)
        peers = peers_of(journal)
        if ours is None:
            continue
        for operation in ("malloc", "free"):
            for percentile in PERCENTILES:
                claims = [
                    (one, claim)
                    for one in peers
                    if (claim := campaign.claim(ours, one, operation, percentile)) is not None
                ]
                if not claims:
                    continue
                judged += 1
                faster = [one for one, claim in claims if worse(claim)]
                ahead += all(better(claim) for _, claim in claims)
                if faster:
                    best = min(faster, key=lambda one: one.value(View.INHERENT, operation, percentile) or 0.0)
                    behind.append(_behind(campaign, journal, ours, best, operation, percentile))
    return behind, ahead, judged


def _behind(
    campaign: Campaign, journal: Journal, ours: Allocator, best: Allocator, operation: str, percentile: str
) -> list[str]:
    mine, theirs = (ns(one.value(View.INHERENT, operation, percentile), campaign.step_ns) for one in (ours, best))
    name = f"{best.label}, populated" if best.variant == PREFAULTED else best.label
    return [journal.title, f"{operation} {percentile}", mine, f"{name} {theirs}"]


def _faster(behind: list[list[str]]) -> list[str]:
    if not behind:
        return []
    return [
        "## Where another allocator's calls are faster",
        "",
        *table(["inherent", "call", "blockyard", "best peer"], behind),
    ]


def _memory(campaign: Campaign) -> list[str]:
    rows = []
    for journal in campaign.journals:
        peaks = {one.name: peak for one in journal.variant(DEFAULTS) if (peak := one.part("memory", "peak"))}
        mine = peaks.pop(OURS, None)
        if mine and peaks:
            name = min(peaks, key=peaks.__getitem__)
            leaner = sum(peak * _MARGIN < mine for peak in peaks.values())
            if peaks[name] * _MARGIN < mine:
                rows.append([journal.title, mib(mine), f"{name} {mib(peaks[name])}", f"{leaner} of {len(peaks)}"])
    if not rows:
        return []
    return [
        "## Where memory counts most",
        "",
        f"Blockyard keeps memory ready, and holds more at the peak than the leanest peer on {len(rows)} of "
        f"{len(campaign.journals)} games.",
        "",
        *table(["peak resident, MiB", "blockyard", "leanest", "peers below"], rows),
    ]


def _processor(campaign: Campaign) -> list[str]:
    rows = []
    behind = 0
    for journal in campaign.journals:
        times = {
            one.name: time
            for one in journal.variant(DEFAULTS)
            if (time := one.part("time_ns", "calls_and_own_threads"))
        }
        mine = times.pop(OURS, None)
        if mine and times:
            name = min(times, key=times.__getitem__)
            behind += times[name] * _MARGIN < mine
            rows.append([journal.title, three(mine / 1e6), f"{name} {three(times[name] / 1e6)}"])
    if not behind:
        return []
    return [
        "## Batch programs",
        "",
        "A program without frames pays for total processor time. Blockyard moves work to its background thread, and "
        "that work is not gone. Calls and background thread together cost more than the best peer's on "
        f"{behind} of {len(rows)} games.",
        "",
        *table(["milliseconds of the stretch", "blockyard", "best peer, TLSF included"], rows),
    ]


def _little(campaign: Campaign) -> list[str]:
    shares = [
        (share, journal.title)
        for journal in campaign.journals
        if (one := journal.of("glibc")) and (share := one.part("frames", _HZ, "worst")) is not None
    ]
    if not shares:
        return []
    small = [f"{title} {percent(share)} %" for share, title in sorted(shares)]
    return [
        "## Programs that hardly allocate",
        "",
        f"Where malloc and free take a share of the frame that you would not miss, no allocator fixes a late frame. On "
        f"glibc, the worst {_HZ} Hz frame spends {', '.join(small)}.",
        "",
    ]
