"""A number of the command line that is one: click takes `nan` for any number, in whatever range."""

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A number from `min` to `max`, and neither `nan` nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no number to count with", param, ctx)
        return number
