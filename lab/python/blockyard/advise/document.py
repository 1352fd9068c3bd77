"""advice.json as types. docs/reference/advice.md has what each member means; what is not there has its default."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from blockyard.campaign.facts import Route

_Sha256 = Annotated[str, Meta(min_length=64, max_length=64)]


class Place(Struct):
    """A function at a line, which is 0 where it is unknown."""

    function: str
    module: str
    file: str
    line: int


class Where(Place, omit_defaults=True):
    through: Place | UnsetType | None = UNSET
    """The system library's function that asks; None where no function of the program calls it."""


class Places(Struct):
    all: int
    places: list[Place]


class Example(Struct):
    event: int
    time_ns: int
    freed_ns: int | None
    bytes: int
    why: str


class Held(Struct):
    """Blocks that keep advice, and that break it."""

    holds: int
    broken: int
    undecided: int
    counterexamples: list[Example]


class HeldThere(Struct):
    """The same in another recording."""

    lives: int
    holds: int
    broken: int
    counterexamples: list[Example]


class Evidence(Struct):
    lives: int
    blocks: int
    bytes: int
    frames: int
    frames_crossed: int
    threads: int
    remote_frees: int
    reverse_frees: int
    reallocations: int
    copies: int
    freed: int
    frame_bytes: int
    peak_bytes: int
    peak_blocks: int
    region_bytes: int
    other_sizes: int
    periods: int


class Estimate(Struct):
    cost_ns: float
    saved_ns: float
    worst_frame_saved_ns: float


class Figure(Struct, frozen=True):
    """A figure and its interval: wide enough that a wrong claim among all of these has a chance of 5 %."""

    value: float
    low: float
    high: float


class Gain(Struct, frozen=True):
    """What one variant measured. `groups` are those rerouted; none for the journal as it is. A percentile that the
    frames do not support is None, as are all three where there are no frames."""

    name: str
    groups: tuple[int, ...]
    frames: int
    """Of one repeat."""
    p50_ns: Figure | None
    """Allocator time per frame, of all repeats: calls, touches and the ends of frames on the thread that marks them."""
    p99_ns: Figure | None
    worst_ns: Figure | None
    """The median over repeats of each one's worst frame."""
    total_ns: Figure
    """Allocator time of a whole replay, of all threads; this and what follows are medians over repeats."""
    slow_calls: Figure
    """Events of 10 us and more, touches included."""
    peak_bytes: Figure
    """Resident memory, without the lab's own."""
    routes: tuple[Route, ...]
    """Of the first repeat, as in run.json, those that had a block: memory of the region, overflow, blocks refused."""


class Site(Struct, kw_only=True, omit_defaults=True):
    id: int
    what: str
    near: str | None
    where: Where
    contexts: list[list[Place]]
    callers: Places
    freed_at: Places
    bytes: int
    size: int
    evidence: Evidence
    estimate: Estimate
    on: list[HeldThere]
    asker: str = ""
    asks: Place | None = None
    serves: int = 0
    near_held: Held | None = None


class Change(Site, kw_only=True, omit_defaults=True):
    group: int
    held: Held
    gain: Gain | None = None


class Left(Site, kw_only=True):
    reason: str


class Inside(Struct):
    module: str
    cost_ns: float


class Precision(Struct):
    blocks: int
    broken: int
    precision: float | None
    coverage: float | None


class Validation(Precision, kw_only=True, omit_defaults=True):
    changes: int
    changes_met: int
    changes_held: int
    baseline: Precision
    journal: str = ""


class Measured(Struct):
    allocator: str
    repeats: int
    from_s: float | None
    to_s: float | None
    plain: Gain
    together: Gain | None


class Request(Struct):
    """What was asked for. `sha256`: of the journal, and of those in `on`."""

    journal: str = ""
    sha256: Annotated[list[_Sha256], Meta(min_length=1)] = []
    on: list[str] = []
    apply: list[str] = []
    all: bool = False
    fps: float = 60


class Advice(Struct, kw_only=True, omit_defaults=True):
    """What blockyard-advise says, the request, and what replays measured. `folder` is where it was read from."""

    journal: str
    program: str
    allocator: str
    events: int
    allocations: int
    duration_ns: int
    marked_frames: bool
    frames: int
    has_names: bool
    dotnet: bool
    cpp: bool
    sites: int
    estimated_ns: float
    estimated_worst_frame_ns: float
    worst_frame_ns: int
    advice: list[Change]
    leave: list[Left]
    left_count: int
    inside: list[Inside]
    halves: Validation | None
    on: list[Validation]
    notes: list[str]
    request: Request = field(default_factory=Request)
    measured: Measured | None = None
    folder: str = ""

    def worth(self, change: Change) -> tuple[float, float]:
        """Nanoseconds saved of the worst frame, where there is one, and of the whole recording: the order of advice."""
        in_worst = change.estimate.worst_frame_saved_ns if self.estimated_worst_frame_ns else 0.0
        return in_worst, change.estimate.saved_ns
