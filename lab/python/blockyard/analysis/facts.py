"""run.json and machine.json as types, each read once: what an older Blockyard did not write, or what is no number where
one should be, is None or empty."""

from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

Number = float | None


@dataclass(frozen=True)
class RunFacts:
    """docs/reference/campaign-folder.md has what each field means. An annotation says where one stands in the document,
    if not by its own name at the top."""

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
    late_p50_ns: Annotated[Number, "lateness_ns.p50"]
    """How late events started against the journal's clock."""
    late_p99_ns: Annotated[Number, "lateness_ns.p99"]
    late_p999_ns: Annotated[Number, "lateness_ns.p999"]
    late_max_ns: Annotated[Number, "lateness_ns.max"]
    look_threshold_ns: Annotated[Number, "looking.threshold_ns"]
    """From what latency on events were looked into."""
    look_ns: Annotated[Number, "looking.ns_a_look"]
    look_source: Annotated[str, "looking.source"]
    look_reason: Annotated[str, "looking.reason"]
    stream_outruns: Annotated[Number, "stream.outruns"]
    """Of a journal that is larger than the memory for it: how often threads caught up with its reader, and waited."""
    stream_waited_ns: Annotated[Number, "stream.waited_ns"]
    own_threads: Annotated[Number, "background.threads"]
    """Those that the allocator started."""
    own_threads_cpu_ns: Annotated[Number, "background.cpu_ns"]
    after_cpu_ns: Annotated[Number, "after_last_free.cpu_ns"]
    """What these threads still did after the last free, until memory settled."""
    after_resident_bytes: Annotated[Number, "after_last_free.resident_bytes"]
    after_settled_ns: Annotated[Number, "after_last_free.settled_after_ns"]
    live_blocks: Annotated[Number, "live_at_stop.blocks"]
    """Those alive at the end, and by how much the allocator had rounded them up."""
    live_rounding_bytes: Annotated[Number, "live_at_stop.rounding_bytes"]
    counters: dict[str, Any]
    routes: tuple[dict[str, Any], ...]
    """What each route of the plan took."""

    @property
    def looked_into(self) -> bool:
        """Whether the run looked for the causes of its slow events."""
        return self.look_source not in ("", "off")

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
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        hint, path = get_args(hint) if get_origin(hint) is Annotated else (hint, name)
        value: Any = document
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        found[name] = _typed(hint, value)
    return kind(**found)


def _typed(hint: Any, value: Any) -> Any:
    optional = get_origin(hint) is UnionType
    kind = next(one for one in get_args(hint) if one is not type(None)) if optional else hint
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
    """Infinite ones, NaN, and what no column of 64 bits holds are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 63
