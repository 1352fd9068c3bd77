"""index.md: what was measured, on which machine, and when."""

from typing import Any

from common import Campaign, Data, machine, table

_PARTS = {
    "heap": ("`make bench PARTS=heap`", "heap.md"),
    "container": ("`make bench PARTS=container`", "containers.md"),
    "lifetime": ("`make bench PARTS=lifetime`", "lifetimes.md"),
    "engines": ("`make bench PARTS=engines`", "engines.md"),
    "fidelity": ("`make bench-fidelity`", "fidelity.md"),
}
_LAB = ("record", "live", "unwind", "journal", "replay", "stream", "report", "page", "stressor", "stressor-awake")


def write(data: Data) -> list[str]:
    machines: dict[str, str] = {}
    rows = []

    def place(told: dict[str, Any]) -> str:
        return machines.setdefault(machine(told), f"{chr(ord('A') + len(machines))}")

    campaigns = [data.standard] + ([data.newest] if data.newest.told != data.standard.told else [])
    for campaign in campaigns:
        told = campaign.told
        pages = ["standard.md"] if campaign is data.standard else []
        pages += ["heap.md", "choosing.md"] if campaign.told == data.newest.told else []
        rows.append(
            [_campaign(campaign), place(told["machine"]), told["measured_at"], told["commit"] or "–", _links(pages)]
        )
    for part, (command, page) in _PARTS.items():
        if part in data.documents:
            rows.append(_row(data.documents[part], command, place, [page]))
    lab = [data.documents[part] for part in _LAB if part in data.documents]
    for where, built in dict.fromkeys((place(one["machine"]), one["commit"]) for one in lab):
        mine = [one for one in lab if (place(one["machine"]), one["commit"]) == (where, built)]
        names = ", ".join(dict.fromkeys(one["part"].removesuffix("-awake") for one in mine))
        rows.append(
            [f"the lab: {names}", where, max(one["measured_at"] for one in mine), built or "–", _links(["lab.md"])]
        )
    return [
        "# Results",
        "",
        "These pages compare Blockyard's heap, containers and lifetimes with their peers, and say what the lab costs. "
        "Start with [when Blockyard is not the best choice](choosing.md).",
        "",
        *table(["measured", "machine", "date", "commit", "page"], rows),
        "|machine||",
        "|---|---|",
        *(f"|{letter}|{words}|" for words, letter in machines.items()),
        "",
        "`make results` writes these pages and their pictures from `docs/results/data`. To measure again:",
        "",
        "```sh",
        "blockyard replay --campaign bench/campaigns/standard.toml -o build/results/standard",
        "make bench",
        "make results COLLECT=1",
        "```",
        "",
        "The journals are looked for in `BLOCKYARD_JOURNALS`; they are not in the repository. The stressor's "
        "figures are kept by hand. Figures obey [the method](../reference/method.md), except where a page "
        "says *busy machine*. All are from two cores: how the library scales beyond is untried. One machine and one "
        "campaign show a factor, not a tenth: [replay your own program](../guide/replay.md) before you decide.",
    ]


def _campaign(campaign: Campaign) -> str:
    told = campaign.told
    variants = {(one.name, one.variant) for journal in campaign.journals for one in journal.allocators}
    poor = sum(one.told["poor_runs"] or 0 for journal in campaign.journals for one in journal.allocators)
    spoilt = f", {poor} of them late, out of order or disturbed" if poor else ""
    return (
        f"{len(campaign.journals)} games on {len(variants)} allocator variants, {told['repeats']} repeats, "
        f"{told['runs']} runs{spoilt}"
    )


def _row(document: dict[str, Any], what: str, place: Any, pages: list[str]) -> list[str]:
    return [what, place(document["machine"]), document["measured_at"], document["commit"] or "–", _links(pages)]


def _links(pages: list[str]) -> str:
    return ", ".join(f"[{page.removesuffix('.md')}]({page})" for page in pages)
