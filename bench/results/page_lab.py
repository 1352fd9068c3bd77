"""lab.md: what recording, replaying and reporting cost."""

from collections.abc import Iterable
from statistics import median
from typing import Any

from common import Data, table, three

Row = tuple[str, str, str, bool, str]
"""What, target, measured, whether it is met, the peer."""


def write(data: Data, targets: dict[str, Any]) -> list[str]:
    rows = [
        row
        for part in (_record, _live, _unwind, _journal, _replay, _stressor, _stream, _report, _page)
        for row in part(data, targets)
    ]
    judged = [met for _, target, _, met, _ in rows if target]
    answer = f"The lab meets {sum(judged)} of its {len(judged)} targets"
    answer += "; bold marks what misses its target." if not all(judged) else "."
    return [
        "# What the lab costs",
        "",
        answer,
        "",
        "`make bench` measures this; each figure stands beside a peer from the same run where there is one. The "
        "stressor's come from `make test-programs`.",
        "",
        *table(
            ["", "target", "measured", "peer"],
            (
                [what, target, measured if met or not target else f"**{measured}**", peer]
                for what, target, measured, met, peer in rows
            ),
        ),
    ]


def _record(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    figures = data.figures("record")
    if not figures:
        return
    added, size = figures["added_ns"], figures["bytes_an_event"]
    limit, most, share = targets["record_ns"], targets["record_bytes"], targets["record_of_heaptrack"]
    mine, peer = added["without stacks"], added.get("heaptrack")
    yield "Recording without stacks, added per event", f"{limit} ns", f"{three(mine)} ns", mine <= limit, ""
    if peer is not None:
        mine = added["recorded"]
        yield (
            "With stacks, ratio to what heaptrack adds",
            f"{share:g}",
            f"{mine / peer:.2f}",
            mine <= share * peer,
            f"heaptrack {three(peer)} ns",
        )
    yield (
        "Recording, file per event; without stacks",
        f"{most} bytes",
        f"{size['recorded']:.2f}; {size['without stacks']:.2f} bytes",
        size["recorded"] <= most,
        f"heaptrack {size['heaptrack']:.2f}" if "heaptrack" in size else "",
    )
    limit, mine = targets["tag_ns"], figures["tag_ns"]["no recorder"]
    yield "A tag's push or pop, nothing recording", f"{limit} ns", f"{mine:.2f} ns", mine <= limit, ""
    if (asleep := figures["added_ns"].get("hooks asleep")) is not None:
        yield "Hooks asleep, added per event", "1 ns", f"{asleep:.1f} ns", asleep <= 1, ""
    if (others := figures["added_ns"].get("another thread limited")) is not None:
        yield "A limit on another thread, added per event", "2 ns", f"{others:.1f} ns", others <= 2, ""
    if stands := figures.get("attaching"):
        yield (
            "Attaching with 20 threads that allocate: one held by ptrace, p95; in the call",
            "20 ms",
            f"{three(stands['stopped_p95_ms'])}; {three(stands['in_call_p95_ms'])} ms",
            stands["stopped_p95_ms"] <= 20,
            "",
        )
    for stacks, found in figures.get("hot_ns", {}).items():
        mine, bare, peer = (
            found[name] - found["alone"] if name in found else None
            for name in ("recorded", "without stacks", "heaptrack")
        )
        yield (
            f"A program that never pauses, stacks {stacks}: added per event; without stacks",
            "",
            f"{three(mine)}; {three(bare)} ns",
            True,
            "" if peer is None else f"heaptrack {three(peer)} ns",
        )
    for what, found in figures.get("threads_s", {}).items():
        peer = found.get("heaptrack")
        yield (
            f"{what[0].upper()}{what[1:]}, in all",
            "" if peer is None else "heaptrack's",
            f"{three(found['recorded'])} s",
            peer is None or found["recorded"] <= peer,
            f"heaptrack {three(peer)} s, alone {three(found['alone'])} s" if peer else "",
        )
    for what, found in figures.get("processes_s", {}).items():
        peer = found.get("heaptrack")
        yield (
            f"{what}, names found, in all",
            "3 times alone and 5 s",
            f"{three(found['recorded'])} s",
            found["recorded"] <= 3 * found["alone"] + 5,
            f"alone {three(found['alone'])} s" + (f", heaptrack {three(peer)} s" if peer else ""),
        )


def _live(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    if figures := data.figures("live"):
        limit, share = targets["live_share"], figures["share_at_a_million"]
        yield (
            "Watching a million events per second; memory",
            f"{limit:.0%} of a core",
            f"{share:.0%}; {figures['peak_mb']} MB",
            share <= limit,
            "",
        )


def _unwind(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    figures = data.figures("unwind")
    if not figures:
        return
    for how, calls in figures["of_libunwind"].items():
        if how in targets["of_libunwind"]:
            most, mine = targets["of_libunwind"][how], calls["2"]
            yield (
                f"A stack of 17 to 24 frames, {how}, ratio to libunwind; no path twice",
                f"{most:g}",
                f"{mine:.2f}; {calls['1']:.2f}",
                mine <= most,
                "",
            )
    programs = {name: found["of_heaptrack"] for name, found in figures["recordings"].items()}
    for what, key, most, peer in (
        ("time added", "with stacks", targets["record_of_heaptrack"], ""),
        ("file", "bytes", targets["bytes_of_heaptrack"], "without times, threads, stacks of frees"),
    ):
        worst = max(programs, key=lambda name: programs[name][key])
        least = min(shares[key] for shares in programs.values())
        mine = programs[worst][key]
        yield (
            f"Recording {len(programs)} real programs with stacks, {what}, ratio to heaptrack's",
            f"{most:g}",
            f"{least:.2f} to {mine:.2f} ({worst})",
            mine <= most,
            peer,
        )
    made = figures["recording_of_random_calls"]["of_heaptrack"]
    yield (
        "Recording random calls that throw, time added; file, ratio to heaptrack's",
        "",
        f"{made['with stacks']:.2f}; {made['bytes']:.2f}",
        True,
        "",
    )


def _journal(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    figures = data.figures("journal")
    if not figures:
        return
    size, text, limit = figures["bytes_an_event"], figures["text_bytes_an_event"], targets["record_bytes"]
    yield (
        "Journals of five games, per event",
        f"{limit} bytes",
        f"{size['least']:.2f} to {size['most']:.2f} bytes",
        size["most"] <= limit,
        f"zstd text {text['least']:.1f} to {text['most']:.1f}",
    )
    yield (
        f"Parsing {figures['text_lines'] / 1e6:.0f} million text lines",
        "",
        f"{figures['parse_s']:.2f} s",
        True,
        f"counting them {figures['count_lines_s']:.2f} s",
    )
    yield (
        "Writing; reading a journal, per event",
        "",
        f"{figures['write_ns']:.0f}; {figures['read_ns']:.0f} ns",
        True,
        "",
    )


def _replay(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    figures = data.figures("replay")
    if plan := figures.get("plan"):
        limit = targets["plan_s"]
        yield (
            f"Planning {plan['events'] / 1e6:.0f} million text lines",
            f"{limit} s",
            f"{plan['seconds']:.2f} s",
            plan["seconds"] <= limit,
            f"`wc -l` {plan['seconds_wc_l']:.2f} s",
        )
    if memory := figures.get("memory"):
        limit, value = targets["replay_bytes"], memory["bytes_an_event"]
        yield "Replay, memory per event", f"{limit} bytes", f"{value:.1f} bytes", value <= limit, ""
    if overhead := figures.get("overhead"):
        yield (
            "Replay, own time per event: untimed; timed",
            "",
            f"{overhead['untimed_ns_an_event']:.1f}; {overhead['timed_ns_an_event']:.1f} ns",
            True,
            "",
        )
    paced = figures.get("looking", {}).get("1", {}).get("godot")
    if paced:
        ways = [paced[way] for way in ("perf", "getrusage")]
        p50, p999 = max(one["p50_ns_added"] for one in ways), max(one["p999_ratio"] for one in ways)
        limit, most = targets["looking_p50_ns"], targets["looking_p999_ratio"]
        without = paced["off"]
        yield (
            "Looking for causes, added at p50",
            f"{limit} ns",
            f"{p50:.1f} ns",
            p50 <= limit,
            f"without {without['p50_ns']:.1f}",
        )
        yield (
            "Looking for causes, ratio at p99.9",
            f"{most:g}",
            f"{p999:.2f}",
            p999 <= most,
            f"without {without['p999_ns'] / 1000:.2f} us",
        )
    everywhere = figures.get("looking", {}).get("max", {}).get("all")
    if everywhere:
        most = targets["looking_p999_ratio"]
        value = max(one["inherent_p999_ratio"] for one in everywhere.values())
        yield "Looking at full speed, inherent p99.9, ratio", f"{most:g}", f"{value:.2f}", value <= most, ""


def _stressor(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    room = targets["stressor"]
    for part in ("stressor", "stressor-awake"):
        for how, found in data.figures(part).get("ratios", {}).items():
            yield (
                f"Beside a stressor, {how}: inherent p50 to p99.9, ratio to quiet",
                f"{1 - room:g} to {1 + room:g}",
                f"{found['least']:.2f} to {found['most']:.2f}",
                found["least"] >= 1 - room and found["most"] <= 1 + room,
                "",
            )


def _stream(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    figures = data.figures("stream")
    if length := figures.get("length"):
        limit = targets["memory_mb"]
        steps = {name: length[name]["own_mb"] for name in ("repeat", "check", "replay", "report") if name in length}
        yield (
            f"{length['events'] / 1e6:.0f} million events, own memory: {', '.join(steps)}",
            f"{limit:,} MB",
            f"{', '.join(str(value) for value in steps.values())} MB",
            max(steps.values()) <= limit,
            "",
        )
    for found in figures.get("pace", {}).values():
        limit = targets["lateness_us"]
        for name in ("null", "blockyard", "glibc"):
            if name not in found:
                continue
            streamed, memory = (median(found[name][way]["lateness_p99_us"]) for way in ("streamed", "memory"))
            yield (
                f"{found['busiest_100_ms_events']:,} events in 100 ms, streamed, {name}: lateness p99",
                f"{limit:,} us",
                f"{streamed:,.0f} us",
                streamed <= limit,
                f"from memory {memory:,.0f}",
            )


def _report(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    figures = data.figures("report")
    if density := figures.get("density"):
        limit, mine = targets["density_s"], density["density_s"]
        peers = [
            f"{name} {density[key]:.3g} s"
            for name, key in (("matplotlib", "matplotlib_scatter_s"), ("mpl-scatter-density", "mpl_scatter_density_s"))
            if isinstance(density.get(key), int | float)
        ]
        yield (
            f"Density picture of {density['points'] / 1e6:.0f} million points",
            f"{limit} s",
            f"{mine:.2f} s",
            mine <= limit,
            ", ".join(peers),
        )
    if report := figures.get("report"):
        limit, mine = targets["report_s"], report["report_s"]
        yield (
            f"Report, {report['allocators']} allocators, {report['repeats']} repeats, {report['events'] / 1e6:.1f} "
            "million events; tables alone",
            f"{limit} s",
            f"{mine:.1f}; {report['tables_alone_s']:.1f} s",
            mine <= limit,
            "",
        )
    if sites := figures.get("sites"):
        limit, mine = targets["sites_s"], sites["sites_s"] * 1e7 / sites["events"]
        yield "Who allocates in 10 million events", f"{limit} s", f"{mine:.1f} s", mine <= limit, ""
        most, text, page = targets["report_sites_ratio"], sites["report_ratio"], sites["page_ratio"]
        yield (
            "Report with call stacks; with the page, ratio to without",
            f"{most:g}",
            f"{text:.2f}; {page:.2f}",
            max(text, page) <= most,
            "",
        )


def _page(data: Data, targets: dict[str, Any]) -> Iterable[Row]:
    figures = data.figures("page")
    if pipeline := figures.get("pipeline"):
        limit, alone, whole = targets["page_pipeline_s"], pipeline["page_alone_s"], pipeline["whole_report_s"]
        yield (
            f"Page of {pipeline['events'] / 1e6:.0f} million events, {pipeline['allocators']} allocators; with tables "
            "and pictures",
            f"{limit} s",
            f"{alone:.1f}; {whole:.1f} s",
            alone <= limit and whole <= limit,
            "",
        )
    if page := figures.get("page"):
        for what, limit, unit, value in (
            ("size", targets["page_mb"], "MB", page["page_bytes"] / 1e6),
            ("first picture", targets["page_picture_s"], "s", page["first_picture_ms"] / 1000),
            ("a zoom's redraw", targets["page_zoom_ms"], "ms", page["zoom_ms_median"]),
        ):
            yield f"The page: {what}", f"{limit:g} {unit}", f"{three(value)} {unit}", value <= limit, ""
