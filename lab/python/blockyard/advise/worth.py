"""What a change is estimated to be worth: the order of advice."""

from collections.abc import Callable

from blockyard.advise.document import Advice, Change


def worth(report: Advice) -> Callable[[Change], tuple[float, float]]:
    """Nanoseconds saved of the worst frame, where there is one, and of the whole recording."""

    def saved(advice: Change) -> tuple[float, float]:
        estimate = advice.estimate
        in_worst = estimate.worst_frame_saved_ns if report.estimated_worst_frame_ns else 0.0
        return in_worst, estimate.saved_ns

    return saved
