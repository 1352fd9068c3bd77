"""Bytes as people read them. Imports nothing that is slow to load: small verbs start fast."""

from blockyard.durations import three_digits


def size(count: float) -> str:
    """`12 B`, `64.0 KiB`, `1.50 GiB`, `-421 MiB`: binary units, at most nine characters."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1023.5:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} B" if unit == "B" else f"{three_digits(value)} {unit}"
