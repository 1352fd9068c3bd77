"""run.json and machine.json as types, each read once: what an older Blockyard did not write, or what is no number where
one should be, is None or empty."""

from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

Number = float | None


@dataclass(frozen=True)
class Lateness:
    """How late events started against the journal's clock, in ns."""

    p50: Number
    p99: Number
    p999: Number
    max: Number


@dataclass(frozen=True)
class Looking:
    """How slow events were looked into."""

    threshold_ns: Number
    ns_a_look: Number
    source: str
    reason: str


@dataclass(frozen=True)
class Stream:
    """Of a journal that is larger than the memory for it: how often threads caught up with its reader, and waited."""

    outruns: Number
    waited_ns: Number


@dataclass(frozen=True)
class Background:
    """The threads that the allocator started."""

    threads: Number
    cpu_ns: Number


@dataclass(frozen=True)
class AfterLastFree:
    """What these threads still did, until memory settled."""

    cpu_ns: Number
    resident_bytes: Number
    settled_after_ns: Number


@dataclass(frozen=True)
class LiveAtStop:
    """The blocks alive at the end, and by how much the allocator had rounded them up."""

    blocks: Number
    rounding_bytes: Number


@dataclass(frozen=True)
class RunFacts:
    """docs/reference/campaign-folder.md has what each field means."""

    status: str
    reason: str
    version: str
    started_at: str
    untimed: bool
    locked: bool | None
    needs_lock: bool
    needs_pool: bool
    events: Number
    replay_threads: Number
    ticks_per_ns: Number
    floor_call_ticks: Number
    floor_touch_ticks: Number
    clock_step_ticks: Number
    wall_ns: Number
    cpu_ns: Number
    timed_ns: Number
    minor_faults: Number
    major_faults: Number
    voluntary_switches: Number
    involuntary_switches: Number
    busy_cores: Number
    peak_resident_bytes: Number
    teardown_resident_bytes: Number
    order_waits: Number
    order_inversions: Number
    interrupted_threads: Number
    walk_ns_a_block: Number
    pollute_bytes: Number
    thread_start_ns: tuple[float, ...]
    thread_stop_ns: tuple[float, ...]
    lateness_ns: Lateness | None
    looking: Looking | None
    stream: Stream | None
    background: Background | None
    after_last_free: AfterLastFree | None
    live_at_stop: LiveAtStop | None
    counters: dict[str, Any]
    routes: tuple[dict[str, Any], ...]
    """What each route of the plan took."""

    @property
    def looked_into(self) -> bool:
        """Whether the run looked for the causes of its slow events."""
        return self.looking is not None and self.looking.source not in ("", "off")

    @property
    def timed_and_background_ns(self) -> Number:
        """The timed calls and touches, and the processor time of the allocator's own threads."""
        threads = self.background.cpu_ns if self.background else None
        return None if self.timed_ns is None or threads is None else self.timed_ns + threads

    @property
    def why(self) -> str:
        """Why it failed."""
        return (self.reason or "no reason given").rstrip(".")


@dataclass(frozen=True)
class MachineFacts:
    """`kind` is the text that two machines share when their figures may be joined."""

    cpu: str
    architecture: str
    cores: Number
    memory_bytes: Number
    kernel: str
    libc: str
    distribution: str
    clock: str
    transparent_huge_pages: str
    governor: str
    virtualised: bool
    kind: str
    warnings: tuple[str, ...]


def run(document: dict[str, Any]) -> RunFacts:
    return _read(RunFacts, document)


def machine(document: dict[str, Any]) -> MachineFacts:
    return _read(MachineFacts, document)


def _read(kind: type, document: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    return kind(**{field.name: _typed(hints[field.name], document.get(field.name)) for field in fields(kind)})


def _typed(hint: Any, value: Any) -> Any:
    optional = get_origin(hint) is UnionType
    kind = next(one for one in get_args(hint) if one is not type(None)) if optional else hint
    if is_dataclass(kind):
        return _read(kind, value) if isinstance(value, dict) else None
    if kind is float:
        return value if _is_number(value) else None
    if kind is str:
        return str(value or "")
    if kind is bool:
        return None if optional and value is None else bool(value)
    if get_origin(kind) is tuple:
        values, of = value if isinstance(value, list) else [value], get_args(kind)[0]
        return tuple(
            str(one) if of is str else one
            for one in values
            if (one if of is str else _is_number(one) if of is float else isinstance(one, dict))
        )
    return value if isinstance(value, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
