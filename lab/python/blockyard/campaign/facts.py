"""run.json and machine.json as types. docs/reference/campaign-folder.md has what each field means; what is not there is
not known."""

from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from blockyard.errors import UserError

RUN = "run.json"
Number = int | float | None


class Lateness(Struct, frozen=True):
    """How late events started against the journal's clock."""

    p50: Number = None
    p99: Number = None
    p999: Number = None
    max: Number = None


class Looking(Struct, frozen=True):
    """From what latency on events were looked into, by what, and why by no better."""

    threshold_ns: Number = None
    ns_a_look: Number = None
    source: str = ""
    reason: str | None = None


class Stream(Struct, frozen=True):
    """Of a journal that is larger than the memory for it: how often threads caught up with its reader, and waited."""

    outruns: int
    waited_ns: int


class Background(Struct, frozen=True):
    """The threads that the allocator started."""

    threads: Number = None
    cpu_ns: Number = None


class AfterLastFree(Struct, frozen=True):
    """What these threads still did after the last free, until memory settled."""

    cpu_ns: Number = None
    resident_bytes: Number = None
    settled_after_ns: Number = None


class LiveAtStop(Struct, frozen=True):
    """Blocks alive at the end, and by how much the allocator had rounded them up."""

    blocks: int
    rounding_bytes: int


class Counter(Struct, frozen=True):
    """Before the clock started and while it ran."""

    before: int
    during: int


class Route(Struct, frozen=True):
    """What one route of the plan took."""

    group: int
    kind: str
    bytes: int
    blocks: int
    refused: dict[str, int]
    peak_bytes: int
    extra_bytes: int
    region_peak_bytes: int
    overflowed: int


class RunFacts(Struct, frozen=True):
    status: Literal["ok", "failed"]
    reason: str | None = None
    version: str = ""
    started_at: str = ""
    untimed: bool = False
    locked: bool | None = None
    needs_lock: bool = False
    needs_pool: bool = False
    events: Number = None
    replay_threads: Number = None
    ticks_per_ns: Number = None
    floor_call_ticks: Number = None
    floor_touch_ticks: Number = None
    clock_step_ticks: Number = None
    wall_ns: Number = None
    cpu_ns: Number = None
    timed_ns: Number = None
    minor_faults: Number = None
    major_faults: Number = None
    voluntary_switches: Number = None
    involuntary_switches: Number = None
    busy_cores: Number = None
    peak_resident_bytes: Number = None
    teardown_resident_bytes: Number = None
    order_waits: Number = None
    order_inversions: Number = None
    interrupted_threads: Number = None
    walk_ns_a_block: Number = None
    pollute_bytes: Number = None
    thread_start_ns: list[float] = []
    thread_stop_ns: list[float] = []
    lateness_ns: Lateness | None = None
    looking: Looking = Looking()
    stream: Stream | None = None
    background: Background = Background()
    after_last_free: AfterLastFree = AfterLastFree()
    live_at_stop: LiveAtStop | None = None
    counters: dict[str, Counter] | None = None
    routes: list[Route] = []

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def late(self) -> Lateness:
        """All None where there was no clock to be late against."""
        return self.lateness_ns or Lateness()

    @property
    def looked_into(self) -> bool:
        """Whether the run looked for the causes of its slow events."""
        return self.looking.source not in ("", "off")

    @property
    def why(self) -> str:
        """Why it failed."""
        return (self.reason or "no reason given").rstrip(".")


class MachineFacts(Struct, frozen=True):
    """`kind` is the text that two machines share when their figures may be joined."""

    cpu: str = ""
    architecture: str = ""
    cores: int = 0
    memory_bytes: int = 0
    kernel: str = ""
    libc: str = ""
    distribution: str = ""
    clock: str = ""
    ticks_per_ns: float | None = None
    transparent_huge_pages: str = ""
    governor: str = ""
    virtualised: bool = False
    kind: str = ""
    busy_cores: float | UnsetType = UNSET
    """Those that others used when the campaign began."""
    warnings: list[str] = []
    node: str | UnsetType = UNSET
    microcode: str | UnsetType = UNSET
    """Of a cluster's node."""
    joined: "list[Part] | UnsetType" = UNSET
    """The shares that a campaign was joined from."""


class Part(Struct, frozen=True):
    share: str
    runs: int
    machine: MachineFacts


_Kind = TypeVar("_Kind")


def read(path: Path, kind: type[_Kind]) -> _Kind:
    """Raises FileNotFoundError, and UserError, in a sentence, for a file that is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path} is damaged ({error}); delete its folder and run 'blockyard replay --resume'") from None
