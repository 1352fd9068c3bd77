"""How long the pages are, against what a reader can be asked to read. Ends non-zero when one is too long.

Words are counted as `wc -w` counts them: tables and code count too.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

TOTAL_WORDS = 40_000
GUIDE_PAGE_WORDS = 1_200
DESIGN_WORDS = 7_250
README_LINES = 120
COLUMNS = 120


def main() -> int:
    pages = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}
    for name in ("README.md", "CONTRIBUTING.md"):
        pages[ROOT / name] = (ROOT / name).read_text(encoding="utf-8")
    words = {path.relative_to(ROOT).as_posix(): len(text.split()) for path, text in pages.items()}
    parts: dict[str, int] = {}
    for name, count in words.items():
        part = "/".join(name.split("/")[:2]) if name.count("/") > 1 else "docs" if "/" in name else name
        parts[part] = parts.get(part, 0) + count
    if "-v" in sys.argv[1:]:
        for name, count in words.items():
            print(f"  {count:6,}  {name}")
    for part, count in parts.items():
        print(f"  {count:6,}  {part}")
    print(f"  {sum(words.values()):6,}  together, of at most {TOTAL_WORDS:,}")
    problems = []
    if sum(words.values()) > TOTAL_WORDS:
        problems.append(f"docs/, README.md and CONTRIBUTING.md together have more than {TOTAL_WORDS:,} words")
    if parts.get("docs/design", 0) > DESIGN_WORDS:
        problems.append(f"docs/design has more than {DESIGN_WORDS:,} words")
    problems += [
        f"{name} has {count:,} words, more than {GUIDE_PAGE_WORDS:,}"
        for name, count in words.items()
        if name.startswith("docs/guide/") and count > GUIDE_PAGE_WORDS
    ]
    lines = (ROOT / "README.md").read_text(encoding="utf-8").count("\n")
    if lines > README_LINES:
        problems.append(f"README.md has {lines} lines, more than {README_LINES}")
    for path, text in pages.items():
        wide = [number for number, line in enumerate(text.splitlines(), start=1) if len(line) > COLUMNS and wraps(line)]
        if wide:
            numbers = ", ".join(map(str, wide[:8])) + (", ..." if len(wide) > 8 else "")
            problems.append(f"{path.relative_to(ROOT)}: more than {COLUMNS} columns in line {numbers}")
    for problem in problems:
        print(f"error: {problem}")
    return 1 if problems else 0


def wraps(line: str) -> bool:
    """Whether the line could have been broken: rows of tables, pictures and lone links can't be."""
    return not re.match(r"\s*\||\s*!\[|\s*\[[^\]]*\]: |\s*<", line) and " " in line.strip()


if __name__ == "__main__":
    sys.exit(main())
