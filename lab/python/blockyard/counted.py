"""A number and what it counts, as a sentence has it: "1 block", "2,000 processes"."""


def counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"
