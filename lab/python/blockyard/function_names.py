"""Names of functions in less room: parameters go first, then template arguments from the inside out, then scopes."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

_CLOSES = {"(": ")", "<": ">", "[": "]", "{": "}"}
_UNNAMED = re.compile(r"\(anonymous[^()]*\)")
_PLAIN = re.compile(
    _UNNAMED.pattern
    # An operator's own brackets are part of its name.
    + r"|(?<!\w)operator(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?)?"
    r"|->|=>|\w+"
)
_DEEPEST = 50
"""What brackets within so many others hold stays one text, however deep it goes on."""
_LEFT_OUT = "…"
_SCOPE = "::"
_CALLED_BY = " < "


@dataclass
class _Group:
    """What stands in brackets, or, without any, the whole name: texts and groups in their order."""

    open: str
    parts: list["str | _Group"] = field(default_factory=list)

    def text(self, templates: int) -> str:
        """Of template arguments so many levels are kept; those that a Rust name begins with are its type."""
        inner = templates - (self.open == "<")
        parts = [
            part
            if isinstance(part, str)
            else f"<{_LEFT_OUT}>"
            if part.open == "<" and inner <= 0 and part.parts and not self._begins_with(part)
            else part.text(inner + 1 if self._begins_with(part) else inner)
            for part in self.parts
        ]
        return self.open + "".join(parts) + _CLOSES.get(self.open, "")

    def _begins_with(self, part: "_Group") -> bool:
        return not self.open and self.parts[0] is part

    def depth(self) -> int:
        return (self.open == "<") + max((part.depth() for part in self.parts if not isinstance(part, str)), default=0)


@cache
def shortened(name: str, width: int) -> str:
    """A name of at most `width` characters. A file and line, or a module in parentheses, behind it are kept. A stack
    (`inner < outer`) loses its outer functions."""
    if len(name) <= width:
        return name
    if _CALLED_BY in name:
        text = _CALLED_BY.join(next(_shorter(one)) for one in name.split(_CALLED_BY))
        return text if len(text) <= width else text[: width - 1] + _LEFT_OUT
    text = name
    for text in _shorter(name):
        if len(text) <= width:
            return text
    head = (width - 1) * 2 // 3
    return f"{text[:head]}{_LEFT_OUT}{text[len(text) - (width - 1 - head) :]}"


def told_apart(names: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Names that are shortened as far as no two of them become the same: those have twice their width, and so on."""
    wanted = list(zip(names, widths, strict=True))
    found: dict[tuple[str, int], str] = {}
    alike = set(wanted)
    times = 1
    while alike:
        found |= {(name, width): shortened(name, width * times) for name, width in alike}
        meant = defaultdict(set)
        for name, width in alike:
            meant[found[name, width]].add(name)
        alike = {one for one in alike if len(meant[found[one]]) > 1}
        times *= 2
    return [found[one] for one in wanted]


@cache
def spoken(name: str) -> str:
    """A function as people say it: without parameters and result."""
    return _without_parameters(_parsed(name.replace("(anonymous namespace)::", "")), "").text(99)


def _shorter(name: str) -> Iterator[str]:
    whole = _without_parameters(_parsed(name), _LEFT_OUT)
    for templates in range(whole.depth(), -1, -1):
        yield whole.text(templates)
    text = whole.text(0)
    first = whole.parts[0] if whole.parts else ""
    if not isinstance(first, str) and first.open == "<":
        text = re.sub(r"\w+::", "", first.text(1)) + _Group("", ["", *whole.parts[1:]]).text(0)
        yield text
    while _SCOPE in text:
        text = text[_end_of_scope(text) :]
        yield _LEFT_OUT + _SCOPE + text
    yield (text := text.replace(f"({_LEFT_OUT})", ""))
    yield text.replace(f"<{_LEFT_OUT}>", "")


def _end_of_scope(text: str) -> int:
    """Where the name goes on behind its first scope, which may be a type in brackets."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in _CLOSES) - (letter in ")>]}")
        if depth <= 0 and text.startswith(_SCOPE, place):
            return place + len(_SCOPE)
    return text.index(_SCOPE) + len(_SCOPE)


def _parsed(name: str) -> _Group:
    """Brackets that do not match are text."""
    open_groups = [_Group("")]
    deeper: list[str] = []
    place = 0
    while place < len(name):
        found = _PLAIN.match(name, place)
        letter = found.group() if found else name[place]
        place += len(letter)
        if letter in _CLOSES and len(open_groups) > _DEEPEST:
            deeper.append(_CLOSES[letter])
            _append(open_groups[-1], letter)
        elif letter in _CLOSES:
            open_groups.append(_Group(letter))
        elif deeper:
            if letter == deeper[-1]:
                deeper.pop()
            _append(open_groups[-1], letter)
        elif len(open_groups) > 1 and letter == _CLOSES[open_groups[-1].open]:
            group = open_groups.pop()
            open_groups[-1].parts.append(group)
        else:
            _append(open_groups[-1], letter)
    while len(open_groups) > 1:
        group = open_groups.pop()
        _append(open_groups[-1], group.open)
        for part in group.parts:
            if isinstance(part, str):
                _append(open_groups[-1], part)
            else:
                open_groups[-1].parts.append(part)
    return open_groups[0]


def _append(group: _Group, text: str) -> None:
    if group.parts and isinstance(group.parts[-1], str):
        group.parts[-1] += text
    else:
        group.parts.append(text)


def _without_parameters(whole: _Group, instead: str) -> _Group:
    """Without the result, which a template's name begins with, where there are parameters."""
    last = next((at for at in reversed(range(len(whole.parts))) if _is_list(whole, at)), None)
    if last is None:
        return whole
    parts = [
        _Group("(", [instead] if part.parts and instead else []) if _is_list(whole, at) else part
        for at, part in enumerate(whole.parts)
    ]
    if not instead:
        del parts[last + 1 :]
    for at in reversed(range(last)):
        if isinstance(part := parts[at], str) and (blank := _blank_before_name(part)) is not None:
            parts = [part[blank + 1 :], *parts[at + 1 :]]
            break
    return _Group("", parts)


def _blank_before_name(text: str) -> int | None:
    """An operator's name may have blanks, and so has a scope without a name."""
    text = _UNNAMED.sub(lambda unnamed: "_" * len(unnamed[0]), text)
    end = found.start() if (found := re.search(r"(?<!\w)operator(?!\w)", text)) else len(text)
    blank = text.rfind(" ", 0, end)
    return None if blank < 0 else blank


def _is_list(whole: _Group, at: int) -> bool:
    part, before = whole.parts[at], whole.parts[at - 1] if at else " "
    return not isinstance(part, str) and part.open == "(" and not (isinstance(before, str) and before.endswith(" "))
