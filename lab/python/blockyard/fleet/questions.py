"""What a technical lead asks of a fleet: each question as SQL, a table, and the sentence that answers it.

The SQL keeps to what DuckDB, Spark and Trino have in common.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from blockyard.report.table import Column, Name, Row, Table, Unit
from blockyard.units import rate, share, size

Record = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """`columns` are the SQL's by name, the first one the row's; `answer` words the first rows."""

    title: str
    sql: str
    columns: dict[str, Column]
    answer: Callable[[Sequence[Record]], str]
    none: str
    notes: tuple[str, ...] = ()

    def table(self, records: Sequence[Record]) -> Table:
        first, *rest = self.columns
        kind = Name if first == "site" else str
        rows = [Row(kind(record[first]), [record[name] for name in rest]) for record in records]
        said = self.answer(records) if records else self.none
        columns = [self.columns[name] for name in rest] if rows else []
        return Table(
            self.title, columns, rows, notes=self.notes if rows else (), first=self.columns[first].name, said=said
        )


_SITE = "CASE WHEN function = '' THEN module WHEN file = '' THEN function ELSE concat(function, ' ', file) END"
"""What a person calls a site."""

_BUILDS = """\
builds AS (
  SELECT build, row_number() OVER (ORDER BY min(started_at) DESC, build DESC) AS age
  FROM journals GROUP BY build
)"""
"""The newest has age 1."""

_GREW = f"""\
WITH {_BUILDS},
played AS (
  SELECT age, build, sum(duration_s) AS seconds, count(*) AS journals
  FROM journals JOIN builds USING (build)
  WHERE paced AND has_stacks AND duration_s > 0 AND age <= 2 GROUP BY age, build
),
per_site AS (
  SELECT age, {_SITE} AS site, module, sum(allocations) AS allocations, sum(sites.bytes) AS bytes,
    sum(sites.end_bytes) AS end_bytes
  FROM sites JOIN builds USING (build)
  WHERE age <= 2 AND journal IN (SELECT journal FROM journals WHERE paced AND has_stacks AND duration_s > 0)
  GROUP BY age, {_SITE}, module
),
both_builds AS (
  SELECT site, module,
    sum(CASE WHEN age = 1 THEN bytes / seconds ELSE 0 END) AS new_rate,
    sum(CASE WHEN age = 2 THEN bytes / seconds ELSE 0 END) AS old_rate,
    sum(CASE WHEN age = 1 THEN allocations / seconds ELSE 0 END) AS new_calls,
    sum(CASE WHEN age = 2 THEN allocations / seconds ELSE 0 END) AS old_calls,
    sum(CASE WHEN age = 1 THEN end_bytes / journals WHEN age = 2 THEN -end_bytes / journals END) AS held_more
  FROM per_site JOIN played USING (age) GROUP BY site, module
)
SELECT site, module, old_calls, new_calls, old_rate, new_rate, held_more,
  (SELECT max(build) FROM played WHERE age = 1) AS new_build,
  (SELECT max(build) FROM played WHERE age = 2) AS old_build
FROM both_builds
WHERE new_rate > old_rate AND (SELECT count(*) FROM played) = 2
ORDER BY new_rate - old_rate DESC, site LIMIT 10"""


def _grew(records: Sequence[Record]) -> str:
    first = records[0]
    was = f"up from {size(first['old_rate'])}" if first["old_rate"] else "and allocated nothing before"
    return (
        f"{first['site']} grew most from {first['old_build']} to {first['new_build']}: "
        f"{size(first['new_rate'])} per second, {was}."
    )


_LATE_FACTOR, _HEAVY_FACTOR = 1.5, 4
_LATE = f"""\
WITH typical AS (
  SELECT journal, median(length_ns) AS length_ns, median(allocations) AS allocations
  FROM frames WHERE journal IN (SELECT journal FROM journals) GROUP BY journal
),
judged AS (
  SELECT machine, CASE WHEN frames.length_ns > {_LATE_FACTOR} * typical.length_ns THEN 1.0 ELSE 0.0 END AS late,
    CASE WHEN frames.allocations > {_HEAVY_FACTOR} * (typical.allocations + 1) THEN 1.0 ELSE 0.0 END AS heavy
  FROM frames JOIN typical USING (journal)
),
machines AS (
  SELECT machine, count(*) AS frames, sum(late) AS late, sum(heavy) AS heavy, sum(late * heavy) AS both_of_them
  FROM judged GROUP BY machine
),
rates AS (
  SELECT *, CASE WHEN heavy > 0 THEN both_of_them / heavy END AS heavy_late,
    CASE WHEN frames > heavy THEN (late - both_of_them) / (frames - heavy) ELSE 0 END AS other_late
  FROM machines
)
SELECT machine, frames, late, heavy, heavy_late, other_late, both_of_them - heavy * other_late AS due
FROM rates WHERE both_of_them > heavy * other_late
ORDER BY due DESC, machine LIMIT 10"""


def _late(records: Sequence[Record]) -> str:
    first = records[0]
    return (
        f"{first['machine']} has most frames that are late along with allocation, about {first['due']:,.0f} of its "
        f"{first['late']:,.0f} late ones: {share(first['heavy_late'])} of the frames that allocate much are late, "
        f"{share(first['other_late'])} of the others."
    )


_FRAME = """\
WITH ranked AS (
  SELECT build, allocations,
    row_number() OVER (PARTITION BY build ORDER BY allocations) AS place,
    count(*) OVER (PARTITION BY build) AS frames
  FROM frames WHERE journal IN (SELECT journal FROM journals)
),
per_build AS (
  SELECT build, max(frames) AS frames,
    min(CASE WHEN place >= 0.5 * frames THEN allocations END) AS p50,
    min(CASE WHEN place >= 0.99 * frames THEN allocations END) AS p99,
    min(CASE WHEN place >= 0.999 * frames THEN allocations END) AS p999,
    max(allocations) AS most
  FROM ranked GROUP BY build
),
worst AS (
  SELECT build, max_by(CASE WHEN function = '' THEN module ELSE function END, worst_frame_allocations) AS site,
    max(worst_frame_allocations) AS site_most
  FROM sites WHERE journal IN (SELECT journal FROM journals WHERE frames > 0) GROUP BY build
)
SELECT build, frames, p50, p99, p999, most, site, site_most
FROM per_build LEFT JOIN worst USING (build) ORDER BY p999 DESC, build"""


def _frame(records: Sequence[Record]) -> str:
    first = records[0]
    who = f"; up to {first['site_most']:,} in one frame come from {first['site']}" if first["site"] else ""
    return f"The p99.9 frame of {first['build']} makes {first['p999']:,} allocations, the median {first['p50']:,}{who}."


_LEAST_CORRELATION = 0.7
_LEAKS = f"""\
WITH per_site AS (
  SELECT sites.build, {_SITE} AS site, journal, max(duration_s) AS duration_s, sum(sites.end_bytes) AS end_bytes
  FROM sites JOIN journals USING (journal)
  WHERE paced GROUP BY sites.build, {_SITE}, journal
),
fitted AS (
  SELECT build, site, count(*) AS journals, 3600 * regr_slope(end_bytes, duration_s) AS per_hour,
    corr(end_bytes, duration_s) AS correlation, max(duration_s) AS longest_s, max(end_bytes) AS most
  FROM per_site GROUP BY build, site HAVING count(*) >= 3 AND max(duration_s) >= 2 * min(duration_s)
)
SELECT site, build, journals, per_hour, correlation, longest_s, most
FROM fitted WHERE per_hour > 0 AND correlation >= {_LEAST_CORRELATION}
ORDER BY per_hour DESC, site LIMIT 10"""


def _leaks(records: Sequence[Record]) -> str:
    first = records[0]
    return (
        f"{first['site']} holds {size(first['per_hour'])} more for every hour that {first['build']} runs "
        f"({first['journals']:,} journals of up to {rate(first['longest_s'])} s)."
    )


_PAGE = 4096
_FRAGMENTATION = f"""\
WITH {_BUILDS},
per_site AS (
  SELECT {_SITE} AS site, journal, sum(sites.end_blocks) AS stay, sum(sites.end_bytes) AS stay_bytes,
    sum(sites.freed) AS freed
  FROM sites JOIN builds USING (build) JOIN journals USING (journal)
  WHERE age = 1 GROUP BY {_SITE}, journal
)
SELECT site, count(*) AS journals, avg(stay) AS stay, avg(stay_bytes) AS stay_bytes,
  1.0 * sum(freed) / sum(freed + stay) AS freed,
  avg(CASE WHEN stay * {_PAGE} > stay_bytes THEN stay * {_PAGE} - stay_bytes ELSE 0 END) AS pinned
FROM per_site GROUP BY site
HAVING sum(stay) > 0 AND sum(freed) >= 9 * sum(stay)
ORDER BY pinned DESC, site LIMIT 10"""


def _fragmentation(records: Sequence[Record]) -> str:
    first = records[0]
    return (
        f"{first['site']} can hold most memory that nobody uses: of its blocks {share(first['freed'])} were freed, and "
        f"the {first['stay']:,.0f} that stay can keep up to {size(first['pinned'])} of pages with them."
    )


_SITES = {"site": Column("site", Unit.TEXT)}
QUESTIONS = {
    "grew": Question(
        "Which sites grew since the last build",
        _GREW,
        {
            **_SITES,
            "old_calls": Column("calls/s\nbefore", Unit.RATE),
            "new_calls": Column("calls/s\nnow", Unit.RATE),
            "old_rate": Column("bytes/s\nbefore", Unit.BYTES),
            "new_rate": Column("bytes/s\nnow", Unit.BYTES),
            "held_more": Column("more held\nat end", Unit.BYTES),
        },
        _grew,
        "No site grew: there is one build only, or none allocates more per second than before.",
    ),
    "late": Question(
        "Which machines have late frames because of allocation",
        _LATE,
        {
            "machine": Column("machine", Unit.TEXT),
            "frames": Column("frames", Unit.COUNT),
            "late": Column("late", Unit.COUNT),
            "heavy": Column("allocate\nmuch", Unit.COUNT),
            "heavy_late": Column("of these\nlate", Unit.SHARE),
            "other_late": Column("of others\nlate", Unit.SHARE),
            "due": Column("late with\nallocation", Unit.COUNT),
        },
        _late,
        "On no machine are frames that allocate much late more often than others.",
        (
            f"late: over {_LATE_FACTOR:g} times the median frame of the journal; allocates much: over {_HEAVY_FACTOR} "
            "times its median allocations",
            "a journal has no durations of calls: replay one of these to know what allocation itself takes",
        ),
    ),
    "frame": Question(
        "What the p99.9 frame allocates",
        _FRAME,
        {
            "build": Column("build", Unit.TEXT),
            "frames": Column("frames", Unit.COUNT),
            "p50": Column("p50", Unit.COUNT),
            "p99": Column("p99", Unit.COUNT),
            "p999": Column("p99.9", Unit.COUNT),
            "most": Column("most", Unit.COUNT),
        },
        _frame,
        "No journal has marked frames.",
    ),
    "leaks": Question(
        "What leaks over hours",
        _LEAKS,
        {
            **_SITES,
            "build": Column("build", Unit.TEXT),
            "journals": Column("journals", Unit.COUNT),
            "per_hour": Column("per hour", Unit.BYTES),
            "most": Column("most held", Unit.BYTES),
        },
        _leaks,
        "No site holds more the longer the program runs, as far as journals of different lengths can tell.",
        (f"what is alive at the end against duration, where 3 or more journals correlate by {_LEAST_CORRELATION:g}",),
    ),
    "fragmentation": Question(
        "Where fragmentation sits",
        _FRAGMENTATION,
        {
            **_SITES,
            "stay": Column("blocks\nthat stay", Unit.COUNT),
            "stay_bytes": Column("their\nbytes", Unit.BYTES),
            "freed": Column("freed", Unit.SHARE),
            "pinned": Column("pages kept\nat most", Unit.BYTES),
        },
        _fragmentation,
        "No site frees nine of ten blocks and keeps the rest.",
        ("per journal of the newest build; where blocks lie is the allocator's doing, and a replay measures it",),
    ),
}
