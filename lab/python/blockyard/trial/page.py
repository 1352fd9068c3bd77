"""A trial as one HTML page that works offline: what the report says, and the pictures, in the look of the reports'."""

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from blockyard.report.blocks import Block, Bullets, Paragraph, Warnings
from blockyard.report.table import Table

_STYLES = Path(__file__).parents[1] / "report" / "page" / "static"
_OWN = """
main { display: block; }
.card { margin-top: 16px; }
.card img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
.card .notes, figcaption { color: var(--faint); font-size: 13px; margin-top: 6px; }
figure { margin: 0; }
table.figures tr.own th { font-weight: 700; }
"""


def render(title: str, blocks: Iterable[Block], pictures: Sequence[Path]) -> str:
    """`pictures`: SVG files, which the page takes in."""
    style = "".join((_STYLES / name).read_text(encoding="utf-8") for name in ("page.css", "table.css")) + _OWN
    body = "\n".join([*map(_block, blocks), *map(_picture, pictures)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>\n{style}</style>\n</head>\n<body>\n'
        f'<header class="top"><h1>Blockyard: a trial</h1></header>\n'
        f"<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _block(block: Block) -> str:
    match block:
        case Paragraph(words):
            return f"<p>{escape(words)}</p>"
        case Bullets(sentences):
            return f'<section class="verdict" aria-label="Verdict">{_list(sentences)}</section>'
        case Warnings(sentences):
            return f'<section class="facts" aria-label="Warnings">{_list(sentences)}</section>'
        case Table():
            return _table(block)
    raise TypeError(f"a trial has no {type(block).__name__}")


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(words)}</li>" for words in sentences) + "</ul>"


def _table(table: Table) -> str:
    lowest = {(y, x + 1) for y, x in table.lowest()}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (table.first, *(c.plain for c in table.columns)))
    rows = []
    for y, cells in enumerate(table.worded()):
        told = "".join(
            f"<td>{f'<strong>{escape(cell)}</strong>' if (y, x) in lowest else escape(cell)}</td>"
            for x, cell in enumerate(cells)
            if x > 0
        )
        rows.append(f'<tr><th scope="row">{escape(cells[0])}</th>{told}</tr>')
    notes = "".join(f'<p class="notes">{escape(note)}</p>' for note in table.footnotes)
    return (
        f'<section class="card wide"><h2>{escape(table.title)}</h2><div class="scroll"><table class="figures">'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{notes}</section>"
    )


def _picture(path: Path) -> str:
    source = base64.b64encode(path.read_bytes()).decode()
    words = path.stem.replace("-", " ")
    return (
        f'<section class="card wide"><figure><img alt="{escape(words)}" src="data:image/svg+xml;base64,{source}">'
        f"</figure></section>"
    )
