"""The pages that tests of the documents read, and the code in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def guide() -> list[Path]:
    """The README, and each page of the guide."""
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def written() -> list[Path]:
    """Every page that people write: all but the generated results and the changelog."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
    return sorted(page for page in pages if not page.is_relative_to(ROOT / "docs" / "results"))


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of this language: the line each begins in, and its text."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start()) + 2, _dedented(found.group(3), found.group(1)))
        for found in _FENCE.finditer(text)
        if found.group(2) == language
    ]


def code(page: Path, without: str = "") -> list[tuple[int, str]]:
    """Every fenced block and code span, blocks of one language left out: the line it begins in, and its text."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    result = [
        (text.count("\n", 0, found.start()) + 2, found.group(3))
        for found in fences
        if not without or found.group(2) != without
    ]
    prose = _FENCE.sub(lambda found: "\n" * found.group().count("\n"), text)
    result += [(prose.count("\n", 0, found.start()) + 1, found.group(2)) for found in _SPAN.finditer(prose)]
    return result


def _dedented(text: str, indent: str) -> str:
    return "".join(line.removeprefix(indent) for line in text.splitlines(keepends=True))
