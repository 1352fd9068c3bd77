"""The call stacks of a journal's events, joined to samples by event number. Arrays are mapped: what is not used costs
nothing. lab/src/sites/event_stacks.hpp draws the file."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from blockyard import native
from blockyard.analysis.samples_library import fields
from blockyard.analysis.sections import Section
from blockyard.errors import UserError

FILE = "sites.bys"
NONE = 4294967295
"""No node: the event has no stack, or the node is a root."""
NO_STACK = "(no call stack)"
LABEL = np.dtype(fields(("<u4", "function file line module")))

_MAGIC, _VERSION, _NAMED = b"BYSITES\n", 1, 1
_HEADER = np.dtype(
    fields(("S8", "magic"), ("<u4", "version flags"), ("<u8", "events nodes frames labels texts text_bytes"))
)


@dataclass(frozen=True)
class Label:
    """One function of a stack. `line` is 0 where it is unknown."""

    function: str
    file: str
    line: int
    module: str


@dataclass(frozen=True)
class Groups:
    """Stacks grouped by the function (of a module) that speaks for them. `by_node` has the number of each node's."""

    by_node: np.ndarray
    names: list[str]
    modules: list[str]

    def of(self, nodes: np.ndarray) -> np.ndarray:
        """The group of each node; one more than there are, which is called NO_STACK, for NONE."""
        found = np.full(len(nodes), len(self.names) - 1, np.int64)
        known = nodes != NONE
        found[known] = self.by_node[nodes[known]]
        return found


class Sites:
    """What one sites.bys holds. `label` rows are indices into `texts`, but for the line.

    `by_event` has the leaf node of each event: the caller of malloc or of free. `parent` has each node's caller, which
    has a smaller number. Labels of frame f are those from `first_label[f]` on and below `first_label[f + 1]`, the
    innermost inlined function first. `speaker` is the label of the innermost function that is no wrapper. Blocks and
    bytes are those alive, by the leaf node of the stack that allocated them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._place = _HEADER.itemsize
        try:
            with path.open("rb") as file:
                found = file.read(_HEADER.itemsize)
            size = path.stat().st_size
        except OSError as error:
            raise UserError(f"{path} can't be read: {error.strerror or error}") from None
        if len(found) < _HEADER.itemsize:
            raise self._damaged("is too short")
        header = np.frombuffer(found, _HEADER)[0]
        if header["magic"] != _MAGIC or header["version"] != _VERSION:
            raise self._damaged("was not written by this version")
        self.has_names = bool(header["flags"] & _NAMED)
        events, nodes, frames, labels, texts, text_bytes = (int(header[name]) for name in _HEADER.names[3:])
        needed = 44 * nodes + 4 * events + 4 * (frames + 1) + LABEL.itemsize * labels + 5 * texts + text_bytes
        if size - self._place != needed:
            raise self._damaged("was cut or added to")
        self.peak_bytes, self.peak_blocks, self.end_bytes, self.end_blocks = (
            self._mapped("<u8", nodes) for _ in range(4)
        )
        self.by_event = self._mapped("<u4", events)
        self.parent, self.frame, self.speaker = (self._mapped("<u4", nodes) for _ in range(3))
        self.first_label = self._mapped("<u4", frames + 1)
        self.label = self._mapped(LABEL, labels)
        self._text_ends = self._mapped("<u4", texts)
        self.wraps = self._mapped("?", texts)
        self._text_bytes = self._mapped("u1", text_bytes)
        self.check()

    def _mapped(self, dtype: str | np.dtype, count: int) -> np.ndarray:
        place = self._place
        self._place += count * np.dtype(dtype).itemsize
        return np.memmap(self.path, dtype, "r", place, (count,)) if count else np.zeros(0, dtype)

    def _damaged(self, what: str) -> UserError:
        return UserError(f"{self.path} {what}; replay the journal again into a new folder")

    def check(self) -> None:
        """The invariants: every index names something that is there, callers come first. Raises UserError. O(file)."""
        nodes, labels, texts = len(self.parent), len(self.label), len(self._text_ends)
        known = self.parent != NONE
        first, ends = self.first_label.astype(np.int64), self._text_ends.astype(np.int64)
        sound = (
            not (known & (self.parent >= np.arange(nodes))).any()
            and (self.frame < len(self.first_label) - 1).all()
            and (self.speaker < labels).all()
            and (np.diff(first) > 0).all()
            and (first[0], first[-1]) == (0, labels)
            and all((self.label[name] < texts).all() for name in ("function", "file", "module"))
            and (np.diff(ends, prepend=0) >= 0).all()
            and (ends[-1] if texts else 0) == len(self._text_bytes)
            and not ((self.by_event >= nodes) & (self.by_event != NONE)).any()
        )
        if not sound:
            raise self._damaged("was damaged")

    @cached_property
    def texts(self) -> list[str]:
        """Any bytes that are no UTF-8 are replaced."""
        whole, begins = self._text_bytes.tobytes(), [0, *self._text_ends.tolist()]
        return [whole[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(begins)]

    def nodes_of(self, events: np.ndarray) -> np.ndarray:
        """The leaf node of each event number; NONE for one that the file does not know."""
        if not len(events) or events.max() < len(self.by_event):
            return self.by_event[events]
        known = events < len(self.by_event)
        return np.where(known, self.by_event[np.where(known, events, 0)], np.uint32(NONE))

    def groups(self, skip: str | None = None) -> Groups:
        """Sites by function. Functions that the regular expression `skip` matches do not speak for a stack."""
        speakers = self.speakers(skip)
        speaks = np.zeros(len(self.label), bool)
        speaks[speakers] = True
        spoken = self.label[speaks]
        keys = spoken["function"].astype(np.uint64) << np.uint64(32) | spoken["module"]
        found, group = np.unique(keys, return_inverse=True)
        by_node = group[(np.cumsum(speaks) - 1)[speakers]]
        functions, modules = (found >> np.uint64(32)).tolist(), (found & np.uint64(NONE)).tolist()
        names = [self.texts[one] for one in functions]
        return Groups(by_node, [*names, NO_STACK], [*(self.texts[one] for one in modules), ""])

    def speakers(self, skip: str | None) -> np.ndarray:
        """As `speaker`, but functions that the regular expression `skip` matches do not speak."""
        if skip is None:
            return self.speaker
        text = native.call("blockyard-sites", ["speakers", self.path, "--skip", skip])
        return np.array(native.decoded("blockyard-sites", text, list[int]), np.int64)


def of(section: Section) -> Sites | None:
    """None where the journal has no stacks, or was replayed by a Blockyard that did not keep them."""
    path = section.folder / FILE
    return Sites(path) if path.is_file() else None
