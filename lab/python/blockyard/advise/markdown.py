"""Advice as a Markdown page, for a pull request or a wiki."""

from typing import Any

from blockyard.advise import code, text
from blockyard.durations import duration
from blockyard.sites_tool import percent
from blockyard.sizes import size


def page(report: dict[str, Any]) -> str:
    said = ["# What to change", "", text.answer(report), ""]
    if report["advice"]:
        said += _table(report)
    if report.get("measured"):
        said += ["", "```text", *text.measured(report), "```"]
    for advice in report["advice"]:
        said += ["", f"## {advice['id']}. {text.change(advice)}", ""]
        where = text.place(advice["where"])
        said += [f"In `{advice['where']['function']}`" + (f", {where}." if where else "."), ""]
        said += [f"- {sentence}" for sentence in text.evidence(report, advice)]
        said += ["", "```c" if code.is_c(advice) else "```cpp", *code.native(advice).splitlines(), "```"]
        if report["dotnet"]:
            said += ["", "```csharp", *code.csharp(advice).splitlines(), "```"]
    near = [site for site in report["leave"] if site["near"]]
    if near:
        said += ["", "## Near misses", ""]
        said += ["- " + text.near(site, f"`{text.function(site['where'])}`: almost") for site in near]
    said += ["", "## How far to trust it", ""]
    said += [" ".join(text.remarks(report))]
    return "\n".join(said) + "\n"


def _table(report: dict[str, Any]) -> list[str]:
    per = "per frame" if text.per_frame(report) else "per second"
    said = [
        f"| # | change | saved {per}, estimated | of all | of the worst frame | memory |",
        "|--:|---|--:|--:|--:|--:|",
    ]
    for advice in report["advice"]:
        estimate = advice["estimate"]
        said.append(
            f"| {advice['id']} | {text.change(advice)} | {duration(estimate['saved_ns'] / text.periods(report))} | "
            f"{percent(estimate['saved_ns'], report['estimated_ns'])} | "
            f"{percent(estimate['worst_frame_saved_ns'], report['estimated_worst_frame_ns'])} | "
            f"{size(advice['evidence']['region_bytes'])} |"
        )
    return said
