"""The verdict: what it says of campaigns whose answer is known, and where it stands."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from synthetic import FREE, LOOKING, Campaign

from blockyard.analysis.passes import ROW
from blockyard.errors import UserError
from blockyard.report.builder import build
from blockyard.report.options import ReportOptions

FRAMES, MALLOCS = 60, 200
TABLES = ReportOptions(pictures=False)


def replayed(
    repeat: int, speed: float = 1.0, tail: float = 1.0, longest_ms: float = 0.0, noise: float = 0.02
) -> np.ndarray:
    """A second at 60 Hz, 200 mallocs and frees a frame: calls of some 100 ns x `speed`, one in a hundred 20 times as
    long x `tail`; one call of frame 30 takes `longest_ms`."""
    random = np.random.default_rng(repeat)
    ns = 100 * speed * np.maximum(1 + noise * random.standard_normal((FRAMES, MALLOCS)), 0.1)
    ns[:, 50::100] *= 20 * tail
    if longest_ms:
        ns[30, 7] = longest_ms * 1e6 * (1 + noise * random.random())
    starts = (np.arange(FRAMES)[:, None] * 1e9 / 60 + np.arange(MALLOCS) * 20_000).astype(np.int64)
    made = np.zeros(2 * FRAMES * MALLOCS, ROW)
    made["event"], made["size"] = np.arange(len(made)), 64
    made["kind"][1::2] = FREE
    made["start"][::2], made["start"][1::2] = starts.ravel(), starts.ravel() + 9_000
    made["call"][::2], made["call"][1::2] = 10 + 2 * ns.ravel(), 110
    made["touch"][::2] = 4 + 20
    return made


def campaign(directory: Path, repeats: int = 5, **allocators: dict[str, float]) -> Campaign:
    made = Campaign(directory, list(allocators), repeats=repeats)
    for place, (name, how) in enumerate(allocators.items()):
        facts = {"peak_resident_bytes": int(how.pop("mib", 64)) << 20}
        for repeat in range(1, repeats + 1):
            made.run(name, replayed(1000 * place + repeat, **how), repeat, looking=LOOKING, **facts)
    made.events(
        np.arange(2 * FRAMES * MALLOCS) ^ 1,
        [int(frame * 1e9 / 60) for frame in range(FRAMES)],
        frame_events=[2 * MALLOCS * frame for frame in range(FRAMES)],
    )
    return made


def answered(directory: Path, options: ReportOptions = TABLES) -> str:
    sections = build(directory, options=options).json["sections"]
    return " ".join(sentence for section in sections for sentence in section["verdict"])


def test_a_program_whose_frames_allocation_hardly_touches_is_told_that_nothing_would_help(tmp_path: Path) -> None:
    said = answered(campaign(tmp_path / "r", glibc={}, quick={"speed": 0.5}).directory)
    share = re.search(
        r"game on glibc: allocation never takes more than (0\.\d+) % of a 60 Hz frame; no allocator", said
    )
    # 200 calls a frame, 198 of 100 ns and two of 2 us, each with 10 ns of touch and a free of 50 ns: 36 us of 16.7 ms.
    assert share is not None and float(share[1]) == pytest.approx(0.215, abs=0.02)


def test_a_program_that_misses_frames_is_told_how_many_and_what_helps(tmp_path: Path) -> None:
    said = answered(campaign(tmp_path / "r", glibc={"longest_ms": 20}, calm={"longest_ms": 1}).directory)
    assert "allocation makes it miss frames: in 5 of 295 frames it takes more than the whole 16.7 ms" in said
    assert re.search(
        r"at worst 12\d %\. In a typical run the worst frame takes 12\d %, less with calm \(6\.\d %\)", said
    )


def test_never_is_said_of_the_worst_run_and_not_of_a_typical_one(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={}, same={})
    made.run("glibc", replayed(1, longest_ms=0.5), 3, looking=LOOKING)
    said = answered(made.directory)
    assert re.search(r"allocation never takes more than 3\.\d % of a 60 Hz frame", said)


def test_a_share_that_may_matter_is_given_as_the_time_that_must_be_left(tmp_path: Path) -> None:
    said = answered(campaign(tmp_path / "r", glibc={"longest_ms": 4}, same={"longest_ms": 4}).directory)
    assert re.search(
        r"takes up to 2\d % of a 60 Hz frame; a frame is missed because of it only where all the rest", said
    )


def test_a_rate_that_was_asked_for_is_the_one_that_is_judged_by(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={})
    assert "of a 100 Hz frame" in answered(made.directory, ReportOptions(pictures=False, fps=100))


def test_who_is_better_in_something_and_worse_in_nothing_is_named(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={}, quick={"speed": 0.5, "mib": 32}, greedy={"speed": 0.5, "mib": 128})
    said = answered(made.directory)
    assert (
        "Better in something and worse in nothing: quick (malloc p50, malloc p99.9, worst frame, peak memory)." in said
    )
    assert "Peak memory, 64.0 MiB on glibc: lower with quick (32.0 MiB), higher with greedy (128 MiB)." in said


def test_a_gain_that_costs_something_is_told_with_its_price(tmp_path: Path) -> None:
    said = answered(campaign(tmp_path / "r", glibc={}, greedy={"speed": 0.5, "mib": 128}).directory)
    assert (
        "greedy is better in malloc p50 and malloc p99.9 and worst frame and worse in peak memory: every gain has its "
        "price." in said
    )


def test_allocators_that_differ_by_noise_alone_improve_nothing(tmp_path: Path) -> None:
    same = {name: {"noise": 0.3} for name in ("glibc", "b", "c", "d", "e", "f")}
    said = answered(campaign(tmp_path / "r", **same).directory)
    assert "No other allocator improves anything beyond noise" in said


def test_a_legend_stands_only_below_what_it_explains(tmp_path: Path) -> None:
    for folder, other, signs in (("a", {}, ""), ("b", {"speed": 0.5}, "%"), ("c", {"mib": 1024}, "x")):
        text = build(campaign(tmp_path / folder, glibc={}, other=other).directory, options=TABLES).text
        assert re.findall("(.*): a change from glibc beyond noise", text) == [signs] * bool(signs)


def test_two_repeats_claim_nothing_and_say_what_would(tmp_path: Path) -> None:
    said = answered(campaign(tmp_path / "r", repeats=2, glibc={}, quick={"speed": 0.5}).directory)
    assert "does not show in 2 repeats; replay with --repeats 5" in said and "quick" not in said


def test_glibc_is_assumed_and_said_to_be(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={}, mine={"speed": 0.5})
    assert "glibc is assumed (--recorded-with names another)" in answered(made.directory)
    said = answered(made.directory, ReportOptions(pictures=False, recorded_with="mine"))
    assert said.startswith("game on mine:") and "assumed" not in said
    with pytest.raises(UserError, match="has no allocator 'nope'"):
        build(made.directory, options=ReportOptions(pictures=False, recorded_with="nope"))


def test_the_journal_names_the_programs_own_allocator(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={}, jemalloc={"speed": 0.5})
    document = made.directory / "campaign.json"
    plan = json.loads(document.read_text())
    for library, start, end in (
        ("libjemalloc.so.2", "game on jemalloc:", ""),
        ("libhoard.so", "game on glibc:", "No replay drives libhoard.so, with which"),
        ("libnullsoft.so", "game on glibc:", "No replay drives libnullsoft.so, with which"),
    ):
        plan["journals"][0]["allocator"] = library
        document.write_text(json.dumps(plan))
        said = answered(made.directory)
        assert said.startswith(start) and end in said and ("assumed" in said) == bool(end)


def test_without_the_programs_own_allocator_the_shares_are_told_and_what_is_lacking(tmp_path: Path) -> None:
    said = answered(campaign(tmp_path / "r", calm={}, slow={"speed": 3}).directory)
    assert re.search(
        r"game: in a typical run allocation takes 0\.2\d % of the worst 60 Hz frame on calm, and 0\.\d+ % on slow\.",
        said,
    )
    assert "the campaign lacks glibc" in said and "replay with -a glibc" in said


def test_those_named_are_judged_and_the_programs_own_beside_them(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={}, one={"speed": 0.5}, unasked={"speed": 0.4})
    result = build(made.directory, options=ReportOptions(pictures=False, allocators=("one",)))
    assert "unasked" not in result.text and {"glibc", "one"} <= set(result.text.split())


def test_runs_that_lost_their_pace_are_to_be_trusted_with_care(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={})
    made.run("glibc", replayed(1), 1, lateness_ns={"p50": 9, "p99": 7_000_000, "p999": 8e6, "max": 9e6})
    assert "Trust this with care: runs of glibc are graded poor" in answered(made.directory)


def test_a_journal_without_frames_has_a_verdict_of_its_calls(tmp_path: Path) -> None:
    made = Campaign(tmp_path / "r", ["glibc"], paces=("max",))
    made.run("glibc", replayed(1), pace="max")
    made.events(np.arange(2 * FRAMES * MALLOCS) ^ 1)
    assert "whether allocation makes it miss frames is not known, as there are none" in answered(made.directory)


def test_the_verdict_is_first_in_the_files_and_has_ten_sentences_at_most(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", glibc={"longest_ms": 4}, quick={"speed": 0.5, "mib": 128}, slow={"speed": 2})
    result = build(made.directory, options=TABLES)
    markdown = (result.out / "report.md").read_text()
    assert markdown.index("## Verdict") < markdown.index("## game at") and "## Verdict" in markdown[:300]
    told = markdown.split("## Verdict")[1].split("\n## ")[0].strip()
    assert 5 <= len(re.findall(r"^(?:- |game on)", told, re.MULTILINE)) <= 10
    assert result.text.index("Verdict\n-") < result.text.index("game at 1x pace")


def test_several_journals_share_the_ten_sentences(tmp_path: Path) -> None:
    names = [f"game{number}" for number in range(4)]
    made = Campaign(tmp_path / "r", ["glibc"], journals=names)
    for name in names:
        made.run("glibc", replayed(1), journal=name)
        made.events(np.arange(2 * FRAMES * MALLOCS) ^ 1, journal=name)
    said = " ".join(build(made.directory, options=TABLES).verdict.plain.split())
    assert said.count(" on glibc:") == 4 and said.count(". ") + 1 <= 10
    assert build(made.directory, options=TABLES).text.count("Nothing but glibc was replayed") == 8


def test_the_report_is_short_unless_everything_is_asked_for(tmp_path: Path) -> None:
    made = campaign(tmp_path / "r", **{name: {} for name in ("glibc", "b", "c", "d", "e", "f", "g", "h")})
    short, whole = (
        build(made.directory, tmp_path / str(all_), ReportOptions(everything=all_)) for all_ in (False, True)
    )
    tables = [len(re.findall(r"^-{20,}$", result.text, re.MULTILINE)) for result in (short, whole)]
    drawn = [sum(path.suffix == ".png" for path in result.pictures) for result in (short, whole)]
    assert 8 <= tables[0] <= 16 < tables[1] and 6 <= drawn[0] <= 12 < drawn[1]
    for title in ("against glibc", "share of a frame", "malloc and first touch", "memory", "fidelity"):
        assert title in short.text
