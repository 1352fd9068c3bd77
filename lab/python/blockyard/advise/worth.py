"""What a change is estimated to be worth: the order of advice."""

from collections.abc import Callable
from typing import Any


def worth(report: dict[str, Any]) -> Callable[[dict[str, Any]], tuple[float, float]]:
    """Nanoseconds saved of the worst frame, where there is one, and of the whole recording."""

    def saved(advice: dict[str, Any]) -> tuple[float, float]:
        estimate = advice["estimate"]
        in_worst = estimate["worst_frame_saved_ns"] if report["estimated_worst_frame_ns"] else 0.0
        return in_worst, estimate["saved_ns"]

    return saved
