"""A folder to write to on the command line."""

from pathlib import Path
from typing import Any

import click


class OutputFolder(click.Path):
    """A path that is not empty: an unset variable of a script would mean the folder it runs in."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the folder's name is empty; '.' is the one you are in", param, ctx)
        return super().convert(value, param, ctx)
