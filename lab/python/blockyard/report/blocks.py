"""A report as blocks of text, tables and pictures, and its three renderings: plain text, Markdown, terminal."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from blockyard.function_names import told_apart
from blockyard.report.table import Name, Table, Unit

WIDTH = 80


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Bullets:
    sentences: list[str]


@dataclass(frozen=True)
class Warnings:
    """What the reader must know before the figures."""

    sentences: list[str]


@dataclass(frozen=True)
class Picture:
    path: Path
    caption: str


@dataclass(frozen=True)
class Code:
    text: str
    language: str


Block = Heading | Paragraph | Bullets | Warnings | Picture | Code | Table


def text(blocks: Iterable[Block]) -> str:
    """Plain text, at most 80 columns wherever names allow."""
    return terminal(blocks).plain.rstrip() + "\n"


def markdown(blocks: Iterable[Block], root: Path) -> str:
    """Markdown; pictures are linked relative to `root`."""
    return "\n".join(_markdown(block, root) for block in blocks).rstrip() + "\n"


def terminal(blocks: Iterable[Block]) -> Text:
    """The text with what stands out in it brought out. Print it as it is: its lines are folded already."""
    return Text("\n").join(map(_styled, blocks))


def _styled(block: Block) -> Text:
    match block:
        case Heading(words, level):
            ruler = "=-"[level > 1] * min(len(words), WIDTH)
            return Text(f"{words}\n{ruler}\n" if level < 3 else f"{_filled(words)}\n", "bold")
        case Paragraph(words):
            return Text("\n".join(_filled(line) for line in words.splitlines()) + "\n")
        case Bullets(sentences):
            return Text("\n".join(_filled(f"- {words}", "  ") for words in sentences) + "\n")
        case Warnings(sentences):
            return Text("\n".join(_filled(f"! {words}", "  ") for words in sentences) + "\n", "yellow")
        case Picture(path, caption):
            return Text(f"[{caption}: {path.name}]\n")
        case Code(words):
            return Text(textwrap.indent(words, "    ") + "\n")
        case Table():
            return _table(block)


def _filled(words: str, indent: str = "") -> str:
    """Options and paths stay whole: people copy them."""
    return textwrap.fill(words, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


_Line = tuple[int, list[str]]
"""The number of a row, and cells: a row may have several lines."""


def _table(table: Table) -> Text:
    heads, rows = _head_lines(table), list(enumerate(table.worded()))
    gap = 2
    widths = _widths(heads, rows)
    room = WIDTH - sum(widths[1:]) - gap * (len(widths) - 1)
    above: Sequence[str] = ()
    named = any(isinstance(row[0], Name) for _, row in rows)
    if named and (room < _BESIDE or any(row.below for row in table.rows)):
        # What has no room beside its figures stands above them.
        above = told_apart([row[0] for _, row in rows], [WIDTH] * len(rows))
        rows = [(y, ["", *row[1:]]) for y, row in rows]
        widths = _widths(heads, rows)
    elif named:
        rows = _folded(rows, 0, max(_SENTENCE, min(room, _LONGEST_FIRST_NAME)))
        widths = _widths(heads, rows)
    room = WIDTH - sum(widths[:-1]) - gap * (len(widths) - 1)
    if any(isinstance(row[-1], Name) for _, row in rows):
        room = max(_SENTENCE, room)
    sentence = widths[-1] > room >= _SENTENCE
    names = bool(table.columns) and table.columns[-1].unit is Unit.TEXT and widths[-1] >= _SENTENCE
    if sentence:
        rows = _folded(rows, -1, room)
        widths[-1] = room
    elif widths[-1] > room:
        gap = 1
    lowest = {(y, x + 1) for y, x in table.lowest()}

    def line(cells: list[str], y: int = -1) -> Text:
        made, last = Text(style="dim" if y >= 0 and table.rows[y].dim else ""), len(cells) - 1
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            left = place == 0 or (place == last and (sentence or names))
            made.append(" " * gap if place else "")
            made.append(cell.ljust(width) if left else cell.rjust(width), "bold green" if (y, place) in lowest else "")
        made.rstrip()
        return made

    title = [Text(_filled(table.title), "bold")] if table.title else []
    answer = [Text(_filled(table.answer))] if table.answer else []
    ruler = Text("-" * (sum(widths) + gap * (len(widths) - 1)))
    body = [line(cells, y) for y, cells in rows]
    if above:
        groups = zip(above, body, table.rows, strict=True)
        body = [one for name, figures, row in groups for one in (Text(name), figures, *map(Text, row.below))]
    notes = [Text(_filled(note, "  "), "dim") for note in table.footnotes]
    return Text("\n").join([*title, *answer, *map(line, heads), ruler, *body, *notes]).append("\n")


_SENTENCE = 16
"""A column that may be folded is folded to no fewer letters than that; figures are narrower."""

_LONGEST_FIRST_NAME = 44
_BESIDE = 28
"""In less room than that a function's name says little."""


def _widths(heads: list[list[str]], rows: list[_Line]) -> list[int]:
    return [max(map(len, column)) for column in zip(*heads, *(row for _, row in rows), strict=True)]


def _folded(rows: list[_Line], column: int, room: int) -> list[_Line]:
    """The rows with the names of functions in the column as short as they may be, and below each row what its cell has
    beyond so many letters."""
    named = [row for _, row in rows if isinstance(row[column], Name)]
    short = iter(told_apart([row[column] for row in named], [room] * len(named)))
    lines = []
    for y, row in rows:
        cell = next(short) if isinstance(row[column], Name) else row[column]
        indent = "" if column else "  "
        folded = textwrap.wrap(cell, room, subsequent_indent=indent, break_on_hyphens=False)
        for begun, words in enumerate(folded or [""]):
            line = [""] * len(row) if begun else list(row)
            line[column] = words
            lines.append((y, line))
    return lines


def _head_lines(table: Table) -> list[list[str]]:
    """A column's name may have several lines: they stand on the last ones."""
    split = [name.split("\n") for name in (table.first, *(column.name for column in table.columns))]
    height = max(map(len, split))
    return [[([""] * (height - len(lines)) + lines)[place] for lines in split] for place in range(height)]


def _markdown(block: Block, root: Path) -> str:
    match block:
        case Heading(words, level):
            return f"{'#' * level} {words}\n"
        case Paragraph(words):
            return "\\\n".join(words.splitlines()) + "\n"
        case Bullets(sentences):
            return "".join(f"- {words}\n" for words in sentences)
        case Warnings(sentences):
            return "".join(f"- **Note:** {words}\n" for words in sentences)
        case Picture(path, caption):
            return f"![{caption}]({path.relative_to(root).as_posix()})\n"
        case Code(words, language):
            return f"```{language}\n{words}\n```\n"
        case Table():

            def line(cells: Iterable[str]) -> str:
                return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

            lowest = {(y, x + 1) for y, x in block.lowest()}
            rows = [
                [f"**{cell}**" if (y, x) in lowest else cell for x, cell in enumerate(row)]
                for y, row in enumerate(block.worded())
            ]
            head = [*([f"**{block.title}**", ""] if block.title else []), *([block.answer, ""] if block.answer else [])]
            notes = block.footnotes
            return (
                "\n".join(
                    [
                        *head,
                        line([block.first, *(column.plain for column in block.columns)]),
                        line(["---", *["---:"] * len(block.columns)]),
                        *map(line, rows),
                        *([""] if notes else []),
                        *(f"{note}\\" for note in notes[:-1]),
                        *notes[-1:],
                    ]
                )
                + "\n"
            )
