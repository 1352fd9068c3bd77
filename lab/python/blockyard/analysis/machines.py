"""How far the machines of one campaign disagree, and which of them is an outlier.

A machine's factor in a section is the median, over its timed runs, of the time in all calls against the median of the
same allocator over all repeats. An outlier lies further from the median of the factors than `_LEAST`, and than
`_SPREADS` times their spread (the median distance, scaled to a standard deviation). It takes `_MACHINES` to tell.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from blockyard.campaign import settings
from blockyard.campaign.document import Campaign
from blockyard.campaign.estimate import Estimate
from blockyard.campaign.facts import MachineFacts
from blockyard.campaign.schedule import Run, rounds, shares

_MACHINES = 4
"""Of three, the two that agree may be the odd ones."""
_LEAST = math.log(1.05)
_SPREADS = 5.0
_TO_DEVIATION = 1.4826
_SAID = math.log(1.02)
"""Less is what repeats on one machine do too."""


@dataclass(frozen=True)
class Agreement:
    """`outliers` are the machines whose runs count no more."""

    sentences: tuple[str, ...] = ()
    outliers: frozenset[str] = frozenset()


def by_run(plan: Campaign, where: MachineFacts) -> dict[Run, str]:
    """Which machine measured each run of a joined campaign; nothing where one did all, or where runs were added or are
    missing, so that the shares can't be dealt again."""
    parts = where.joined or []
    if len(parts) < 2 or any("/" not in part.share for part in parts):
        return {}
    runs, of = plan.all_runs(), settings.parse_shard(parts[0].share)[1]
    if of > rounds(runs):
        return {}
    dealt = shares(runs, of, Estimate(plan.journals).expected_s)
    found = {}
    for part in parts:
        number, _ = settings.parse_shard(part.share)
        if len(dealt[number - 1]) != part.runs:
            return {}
        name = part.machine.node or f"the machine of share {part.share}"
        found |= dict.fromkeys(dealt[number - 1], name)
    return found


def agreement(took_ns: Mapping[Run, float], machine: Mapping[Run, str]) -> Agreement:
    """Of one section's timed runs, by what all calls of each took."""
    by_allocator: dict[str, list[float]] = defaultdict(list)
    for run, ns in took_ns.items():
        by_allocator[run.allocator].append(ns)
    usual = {name: median(values) for name, values in by_allocator.items()}
    ratios: dict[str, list[float]] = defaultdict(list)
    for run, ns in took_ns.items():
        if run in machine and ns > 0 and usual[run.allocator] > 0:
            ratios[machine[run]].append(math.log(ns / usual[run.allocator]))
    if len(ratios) < 2:
        return Agreement()
    factors = {name: median(values) for name, values in ratios.items()}
    outliers = _outliers(factors)
    kept = {name: factor for name, factor in factors.items() if name not in outliers}
    said = [
        f"{name} was left out: its calls take {_percent(factors[name] - median(kept.values()))} time than those of the "
        f"other {len(kept)} machines, which is over {_SPREADS:g} times their spread"
        for name in sorted(outliers)
    ]
    slow, quick = max(kept, key=kept.__getitem__), min(kept, key=kept.__getitem__)
    if kept[slow] - kept[quick] > _SAID:
        said.append(
            f"the machines disagree: on {slow} all calls take {_percent(kept[slow] - kept[quick])} time than on {quick}"
        )
    return Agreement(tuple(said), outliers)


def _outliers(factors: Mapping[str, float]) -> frozenset[str]:
    if len(factors) < _MACHINES:
        return frozenset()
    middle = median(factors.values())
    limit = max(_LEAST, _SPREADS * _TO_DEVIATION * median(abs(factor - middle) for factor in factors.values()))
    return frozenset(name for name, factor in factors.items() if abs(factor - middle) > limit)


def _percent(logarithm: float) -> str:
    percent = 100 * (math.exp(logarithm) - 1)
    return f"{abs(percent):.0f} % {'more' if percent > 0 else 'less'}"
