"""Advice on the page: a row for each change, and the events that it is about."""

from pathlib import Path
from typing import Any

import numpy as np

from blockyard import units
from blockyard.advise import code, routes, tool
from blockyard.advise.document import Advice, Change
from blockyard.report import advice as words
from blockyard.units import size

MOST = 50
"""Changes that the page shows; their numbers fit into a byte. What is further down saves next to nothing."""


def facts(report: Advice) -> dict[str, Any]:
    """What the page shows of advice, in words."""
    shown = report.advice[:MOST]
    more = len(report.advice) - len(shown)
    return {"answer": words.answer(report), "more": more, "rows": [_row(report, one) for one in shown]}


def _row(report: Advice, advice: Change) -> dict[str, Any]:
    where, held = advice.where, advice.held
    return {
        "what": words.kind(advice),
        "change": words.change(advice),
        "function": where.function,
        "place": words.place(where),
        "cells": [
            f"{advice.evidence.lives:,}",
            f"{held.broken:,}",
            units.share(advice.estimate.saved_ns, report.estimated_ns),
            words.gained(report, advice),
            size(advice.evidence.region_bytes),
        ],
        "evidence": words.evidence(report, advice),
        "code": [code.native(advice, report.cpp), *([code.csharp(advice)] if report.dotnet else [])],
    }


def of_events(report: Advice) -> np.ndarray:
    """By event of the journal that gives a block, the change that leads the block elsewhere, counted from 1; 0 is none.
    Blocks that break the advice have none."""
    return of_groups(routes.by_event(Path(report.folder) / tool.ROUTES), report)


def of_groups(group: np.ndarray, report: Advice) -> np.ndarray:
    numbers = np.zeros(int(group.max(initial=0)) + 1, np.uint8)
    for number, advice in enumerate(report.advice[:MOST], start=1):
        if advice.group + 1 < len(numbers):
            numbers[advice.group + 1] = number
    return numbers[group]
