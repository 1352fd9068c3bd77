"""The terminal as tables of figures need it."""

from rich.console import Console

NARROWEST = 80


def for_tables() -> Console:
    """Standard output, of eighty columns at least: rich fits a table into fewer by leaving letters of its figures out,
    units among them, where a terminal folds a line and loses nothing."""
    console = Console(highlight=False)
    console.width = max(console.width, NARROWEST)
    return console
