"""The view of a program that runs: figures, a strip of frames and lists of sites, in a terminal or a browser."""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import ClassVar, NamedTuple, Protocol

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static, Tab, Tabs

from blockyard.live.follower import Frame, Line, Mark, Site, Stacks, decode
from blockyard.units import counted, duration, moment, rate, size

_KEPT_FRAMES = 1024  # as many as the follower can say the sites of
_FRAME_ROWS = 3
_ALLOCATION_ROWS = 2
_FIGURE_WIDTH = 11
_EIGHTHS = " ▁▂▃▄▅▆▇█"
LISTS = {
    "second": "Last second",
    "frame": "Frame",
    "growing": "Only grow",
    "mark": "Since mark",
    "threads": "Threads",
    "tags": "Tags",
}


class Feed(Protocol):
    """What the follower says; `ask` is answered there."""

    def texts(self) -> Iterator[bytes]: ...
    def ask(self, question: str) -> None: ...
    def close(self) -> None: ...


class ShownFrame(NamedTuple):
    number: int
    ns: int
    allocations: int
    bytes: int


class Said(Message):
    def __init__(self, what: Line | Frame | Stacks) -> None:
        super().__init__()
        self.what = what


class StacksScreen(ModalScreen[None]):
    """The call stacks of a site, above the view."""

    BINDINGS: ClassVar = [Binding("escape,enter,q", "app.pop_screen", "Back")]

    def __init__(self, name: str, stacks: Stacks) -> None:
        super().__init__()
        self._name = name
        self._stacks = stacks

    def compose(self) -> ComposeResult:
        text = Text()
        of = self._stacks
        shown = "" if len(of.stacks) == of.count else f", {len(of.stacks)} shown"
        text.append(f"{self._name}\n", "bold")
        text.append(f"{counted(of.count, 'call stack')}{shown}\n")
        for stack in of.stacks:
            left = f", {stack.left.blocks:,} left since the mark" if stack.left.blocks else ""
            text.append(
                f"\n{counted(stack.allocations, 'allocation')} in the last second; holds "
                f"{size(stack.live.bytes)} in {counted(stack.live.blocks, 'block')}{left}\n",
                "bold",
            )
            for one in stack.functions:
                place = f"  {one.file.rpartition('/')[2]}:{one.line}" if one.line else f"  {one.module}"
                text.append(f"  {one.function}")
                text.append(f"{place}\n", "dim")
        with VerticalScroll():
            yield Static(text)
        yield Footer()


class LiveApp(App[None]):
    """Shows one feed. `q` ends it, and what it shows runs on."""

    TITLE = "blockyard live"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Static { height: auto; }
    #frames { height: 3; }
    #allocations { height: 2; }
    DataTable { height: 1fr; }
    StacksScreen { align: center middle; }
    StacksScreen VerticalScroll { width: 96%; height: 94%; border: round $primary; background: $surface; }
    """
    BINDINGS: ClassVar = [
        Binding("space", "pause", "Pause", priority=True),
        Binding("left", "walk(-1)", "Frame", priority=True, key_display="← →"),
        Binding("right", "walk(1)", "Frame", priority=True, show=False),
        Binding("escape", "newest", "Newest frame", show=False),
        Binding("enter", "stacks", "Stacks", priority=True),
        Binding("m", "mark", "Mark"),
        Binding("tab", "list(1)", "List", priority=True),
        Binding("shift+tab", "list(-1)", "List", priority=True, show=False),
        *(Binding(str(i + 1), f"show('{name}')", name, show=False) for i, name in enumerate(LISTS)),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, feed: Feed) -> None:
        super().__init__()
        self._feed = feed
        self._line: Line | None = None  # as it is shown
        self._newest: Line | None = None
        self._frames: deque[ShownFrame] = deque(maxlen=_KEPT_FRAMES)
        self._last_shown = 0
        self._walked_to: int | None = None  # a frame's number
        self._frame: Frame | None = None  # its sites
        self._paused = False
        self._marked = False
        self._list = "second"
        self._asked: Site | None = None
        self._rows: list[Site] = []
        self._failure = ""

    @property
    def newest_ns(self) -> int:
        """The program's time that has arrived, shown or not."""
        return self._newest.time_ns if self._newest else 0

    def compose(self) -> ComposeResult:
        yield Static("waiting for the program's first events", id="state")
        yield Static(id="memory")
        yield Static(id="counts")
        yield Static(id="frames")
        yield Static(id="allocations")
        yield Static(id="chosen")
        yield Tabs(*(Tab(label, id=name) for name, label in LISTS.items()))
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False
        self.query_one(DataTable).focus()
        self._read()

    def on_unmount(self) -> None:
        self._feed.close()

    @work(thread=True)
    def _read(self) -> None:
        try:
            for text in self._feed.texts():
                self.post_message(Said(decode(text)))
        except Exception as error:  # its sentence is for the screen: the view has no other place
            self._failure = str(error)
            self.call_from_thread(self._draw)

    # ---------------------------------------------------------------- what comes

    def on_said(self, message: Said) -> None:
        what = message.what
        if isinstance(what, Line):
            self._take(what)
        elif isinstance(what, Frame):
            if what.number == self._walked_to:
                self._frame = what
                self._draw()
        elif self._asked is not None and what.site == self._asked.site:
            self.push_screen(StacksScreen(self._asked.function or "(no call stack)", what))
            self._asked = None

    def _take(self, line: Line) -> None:
        new = line.frames
        another = self._newest is not None and self._newest.program != line.program
        if another or (self._frames and new.count < self._frames[-1].number):
            self._frames.clear()  # another program, or a thread that has begun to mark frames
            self._walked_to = None
        for i, values in enumerate(zip(new.ns, new.allocations, new.bytes, strict=True)):
            self._frames.append(ShownFrame(new.first + i, *values))
        self._newest = line
        if self._paused:
            return
        self._line = line
        if self._walked_to is None and self._frames:
            self._last_shown = self._frames[-1].number
        self._draw()

    # ---------------------------------------------------------------- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Keys that stand above those of the list are not for what lies over it.
        return not (isinstance(self.screen, ModalScreen) and action in ("pause", "walk", "stacks", "list"))

    def action_pause(self) -> None:
        self._paused = not self._paused
        if not self._paused and self._newest is not None:
            self._line = self._newest
            if self._walked_to is None and self._frames:
                self._last_shown = self._frames[-1].number
        self._draw()

    def action_walk(self, step: int) -> None:
        if not self._frames:
            return
        first, last = self._frames[0].number, self._frames[-1].number
        at = self._last_shown if self._walked_to is None else self._walked_to + step
        self._walked_to = max(first, min(at, last))
        width = self._width()
        self._last_shown = max(self._walked_to, min(self._last_shown, self._walked_to + width - 1))
        self._frame = None
        self._feed.ask(f"frame {self._walked_to}")
        self._choose("frame")

    def action_newest(self) -> None:
        self._walked_to = self._frame = None
        if self._frames and not self._paused:
            self._last_shown = self._frames[-1].number
        self._draw()

    def action_mark(self) -> None:
        self._feed.ask("mark")
        self._marked = True
        self._choose("mark")

    def action_list(self, step: int) -> None:
        names = list(LISTS)
        self._choose(names[(names.index(self._list) + step) % len(names)])

    def action_show(self, name: str) -> None:
        self._choose(name)

    def action_stacks(self) -> None:
        row = self.query_one(DataTable).cursor_row
        if self._list in ("threads", "tags") or row >= len(self._rows):
            return
        self._asked = self._rows[row]
        self._feed.ask(f"stacks {self._asked.site}")

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        if event.tab.id != self._list:
            self._choose(event.tab.id)

    def on_resize(self) -> None:
        self._draw()

    def _choose(self, name: str) -> None:
        self._list = name
        self.query_one(Tabs).active = name
        self.query_one(DataTable).move_cursor(row=0)
        self._draw()

    # ---------------------------------------------------------------- drawing

    def _width(self) -> int:
        return max(self.size.width - 1, 1)

    def _draw(self) -> None:
        line = self._line
        if self._failure:
            self._say("state", Text(self._failure, "bold red"))
        if line is None or isinstance(self.screen, ModalScreen):
            return
        if not self._failure:
            self._say("state", self._state(line))
        self._say("memory", _memory(line))
        self._say("counts", _counts(line))
        self._strips(line)
        self._table(line)

    def _say(self, place: str, text: Text | str) -> None:
        self.query_one(f"#{place}", Static).update(text)

    def _state(self, line: Line) -> Text:
        text = Text(line.program.rpartition("/")[2] or "program", "bold")
        text.append(f"  {duration(line.time_ns)}  ", "")
        if self._paused:
            text.append("paused", "reverse")
        elif line.ended:
            text.append(line.damage or "ended; the journal is complete", "green")
        else:
            text.append("recording", "green")
        return text

    def _strips(self, line: Line) -> None:
        frames = [one for one in self._frames if one.number <= self._last_shown][-self._width() :]
        budget = line.frames.budget_ns
        styles = []
        for one in frames:
            style = "red" if line.frames.marked and one.ns > budget else "cyan"
            styles.append(f"{style} reverse" if one.number == self._walked_to else style)
        # The budget fills two thirds, and a frame of more than one and a half budgets the column.
        times = bars([one.ns for one in frames], budget * 3 // 2, _FRAME_ROWS, styles)
        most = max((one.allocations for one in frames), default=0)
        counts = bars([one.allocations for one in frames], most, _ALLOCATION_ROWS, styles)
        if line.frames.marked:
            self._say("frames", Text("\n").join(times))
        else:
            self._say("frames", "the program marks no frames: one is a sixtieth of a second of all its threads")
        self._say("allocations", Text("\n").join(counts))
        chosen = next((one for one in frames if one.number == self._walked_to), None)
        if self._list == "mark" and line.mark is not None:
            self._say("chosen", _since(line.mark))
        elif chosen is None:
            self._say("chosen", f"allocations per frame, {most:,} at most")
        else:
            took = f"{duration(chosen.ns)}, " if line.frames.marked else ""
            self._say(
                "chosen",
                f"frame {chosen.number:,}: {took}{counted(chosen.allocations, 'allocation')}, {size(chosen.bytes)}",
            )

    def _table(self, line: Line) -> None:
        heads, rows, self._rows = self._listed(line)
        table = self.query_one(DataTable)
        at = table.cursor_row
        table.clear(columns=True)
        names = max(20, self.size.width - (len(heads) - 1) * (_FIGURE_WIDTH + 2) - 4)
        for i, head in enumerate(heads):
            text = Text(head, justify="left" if i == 0 else "right")
            table.add_column(text, width=names if i == 0 else _FIGURE_WIDTH)
        for first, *figures in rows:
            name = Text(first, no_wrap=True)
            name.truncate(names, overflow="ellipsis")
            table.add_row(name, *(Text(figure, justify="right") for figure in figures))
        table.move_cursor(row=min(at, max(len(rows) - 1, 0)))

    def _listed(self, line: Line) -> tuple[list[str], list[list[str]], list[Site]]:
        """Heads, rows, and the sites that the rows are of."""
        second = line.window_ns / 1e9 or 1.0
        match self._list:
            case "second":
                sites = line.sites
                rows = [
                    [rate(one.allocations / second), size(one.bytes / second), size(one.live.bytes)] for one in sites
                ]
                return _of_sites("site", ["allocs/s", "bytes/s", "holds"], rows, sites)
            case "frame":
                frame = line.worst_frame if self._walked_to is None else self._frame
                what = "slowest" if line.frames.marked else "busiest"
                head = (
                    f"site in the {what} frame of the last 1,024" if self._walked_to is None else "site in this frame"
                )
                sites = (frame.sites or []) if frame else []
                rows = [[f"{one.allocations:,}", size(one.bytes)] for one in sites]
                return _of_sites(head, ["allocations", "bytes"], rows, sites)
            case "growing":
                sites = line.growing
                rows = [[size(one.grown), duration(one.for_ns), size(one.live.bytes)] for one in sites]
                return _of_sites("site that has only grown", ["grown", "in the last", "holds"], rows, sites)
            case "mark":
                return self._since_mark(line)
            case "threads":
                rows = [
                    [
                        one.name or f"thread {one.id}",
                        rate(one.allocations / second),
                        size(one.bytes / second),
                        rate(one.frees / second),
                    ]
                    for one in sorted(line.threads, key=lambda one: -one.allocations)
                ]
                return ["thread", "allocs/s", "bytes/s", "frees/s"], rows, []
            case _:
                rows = [
                    [one.name, rate(one.allocations / second), size(one.bytes / second), size(one.live.bytes)]
                    for one in sorted(line.tags, key=lambda one: -one.live.bytes)
                ]
                return ["tag", "allocs/s", "bytes/s", "holds"], rows, []

    def _since_mark(self, line: Line) -> tuple[list[str], list[list[str]], list[Site]]:
        mark = line.mark
        if mark is None:
            head = "marked; what stays from now on comes here" if self._marked else "m marks a moment"
            return [head], [], []
        rows = [[f"{one.left.blocks:,}", size(one.left.bytes)] for one in mark.sites]
        return _of_sites("site of what is left", ["blocks", "bytes"], rows, mark.sites)


def _since(mark: Mark) -> str:
    gone = f"; {size(mark.older_freed.bytes)} from before are gone" if mark.older_freed.blocks else ""
    left = f"{size(mark.left.bytes)} in {counted(mark.left.blocks, 'block')} left"
    return f"since {moment(mark.at_ns)}: {left}{gone}"


def _of_sites(
    head: str, heads: list[str], rows: list[list[str]], sites: list[Site]
) -> tuple[list[str], list[list[str]], list[Site]]:
    named = [[site.function or "(no call stack)", *row] for site, row in zip(sites, rows, strict=True)]
    return [head, *heads], named, sites


def _memory(line: Line) -> str:
    return (
        f"holds {size(line.live.bytes)} in {counted(line.live.blocks, 'block')}, at most {size(line.peak_bytes)} so far"
    )


def _counts(line: Line) -> Text:
    second = line.window_ns / 1e9 or 1.0
    text = Text(f"{rate(line.last.allocations / second)} allocations/s, {size(line.last.bytes / second)}/s")
    frames = line.frames
    if frames.marked:
        text.append(f";  {counted(frames.count, 'frame')}, ")
        text.append(f"{frames.over_budget:,} over {duration(frames.budget_ns)}", "red" if frames.over_budget else "")
    return text


def _cell(value: int, most: int, rows: int, row: int) -> str:
    eighths = min(round(value / most * rows * 8), rows * 8) if most else 0
    return _EIGHTHS[max(0, min(max(eighths, int(value > 0)) - row * 8, 8))]


def bars(values: Sequence[int], most: int, rows: int, styles: Sequence[str]) -> list[Text]:
    """Rows from the top down, as wide as there are values; whoever reaches `most` fills a column. What is there at all
    can be seen."""
    lines = []
    for row in reversed(range(rows)):
        line = Text(no_wrap=True)
        for style, columns in groupby(zip(values, styles, strict=True), key=lambda column: column[1]):
            line.append("".join(_cell(value, most, rows, row) for value, _ in columns), style)
        lines.append(line)
    return lines
