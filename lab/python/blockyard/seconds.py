"""A number of seconds on the command line."""

import math
from typing import Any

import click

_MOST = 1e9  # some 31 years: what is beyond fits no clock of the system's


class Seconds(click.FloatRange):
    """A number of seconds from `min` on; neither `nan` nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds) or seconds > _MOST:
            self.fail(f"{value} is no number of seconds; give one such as 2.5", param, ctx)
        return seconds
