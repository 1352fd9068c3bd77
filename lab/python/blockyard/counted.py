"""A number and what it counts, as a sentence has it: "1 block", "2,000 processes"; and words one after the other."""

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def first_listed(words: Sequence[str], most: int, last: str = "and", more: str = "more") -> str:
    """So many of them: `a, b and 3 more`."""
    rest = [f"{len(words) - most:,} {more}"] if len(words) > most else []
    return listed([*words[:most], *rest], last)
