"""Advice on the page: a row for each change, and the stacks and events that it is about."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from blockyard.advise import code, text
from blockyard.analysis.sites import INCOMPLETE, NONE, Sites
from blockyard.sites_tool import percent
from blockyard.sizes import size

MOST = 50
"""Changes that the page shows; their numbers fit into a byte. What is further down saves next to nothing."""

_Word = tuple[str, str] | int
"""Of a context: a function of a module, or a line of the function before; line 0 is code without lines."""


def facts(report: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of advice, in words."""
    shown = report["advice"][:MOST]
    more = len(report["advice"]) - len(shown)
    return {"answer": text.answer(report), "more": more, "rows": [_row(report, one) for one in shown]}


def _row(report: dict[str, Any], advice: dict[str, Any]) -> dict[str, Any]:
    where, held = advice["where"], advice["held"]
    return {
        "what": text.kind(advice),
        "change": text.change(advice),
        "function": where["function"],
        "place": text.place(where),
        "cells": [
            f"{advice['evidence']['lives']:,}",
            f"{held['broken']:,}",
            percent(advice["estimate"]["saved_ns"], report["estimated_ns"]),
            text.gained(report, advice),
            size(advice["evidence"]["region_bytes"]),
        ],
        "evidence": text.evidence(report, advice),
        "code": [code.cpp(advice), *([code.csharp(advice)] if report["dotnet"] else [])],
    }


class Changes:
    """Which change each stack of a journal belongs to: the one whose context goes furthest out, as in
    lab/src/advise/judge.cpp. Changes are counted from 1; 0 is none."""

    def __init__(self, report: dict[str, Any], found: Sites) -> None:
        self._found = found
        self._first, self._frame, self._parent, self._label = (
            of.tolist() for of in (found.first_label, found.frame, found.parent, found.label)
        )
        self._tree: list[dict[_Word, int]] = [{}]
        self._change: list[int | None] = [None]
        for number, advice in enumerate(report["advice"], start=1):
            self._plant(advice, number if number <= MOST else 0)
        for site in report["leave"]:
            self._plant(site, 0)

    def _plant(self, piece: dict[str, Any], number: int) -> None:
        for context in piece["contexts"]:
            at = 0
            for word in _words(context):
                if word not in self._tree[at]:
                    self._tree[at][word] = len(self._tree)
                    self._tree.append({})
                    self._change.append(None)
                at = self._tree[at][word]
            self._change[at] = number

    def of_nodes(self, used: np.ndarray) -> np.ndarray:
        """By node of the sites, and one more for events without a stack; those that are not used have none."""
        found = np.zeros(len(self._parent) + 1, np.uint8)
        for node in used.tolist():
            if node < len(self._parent):
                found[node] = self._of(node)
        return found

    def _of(self, node: int) -> int:
        at, change = 0, None
        for word in self._context(node):
            step = self._tree[at].get(word)
            if step is None:
                break
            at = step
            change = self._change[at] if self._change[at] is not None else change
        return change or 0

    def _context(self, node: int) -> Iterator[_Word]:
        """From the innermost function outwards; those that hand on what they are asked for are passed over."""
        innermost, passed_over = None, True
        for label, hands_on in self._labels(node):
            innermost = innermost or label
            if hands_on:
                continue
            yield label[:2]
            yield label[2]
            passed_over = False
        if passed_over and innermost is not None:
            yield innermost[:2]
            yield innermost[2]

    def _labels(self, node: int) -> Iterator[tuple[tuple[str, str, int], bool]]:
        texts, wraps = self._found.texts, self._found.wraps
        while node != NONE:
            frame = self._frame[node]
            for function, _, line, module in self._label[self._first[frame] : self._first[frame + 1]]:
                if texts[module] == INCOMPLETE:
                    return
                yield (texts[function], texts[module], line), bool(wraps[function])
            node = self._parent[node]


def _words(context: list[dict[str, Any]]) -> Iterator[_Word]:
    """All steps but the last tell a line, and the last one may."""
    for place, step in enumerate(context, start=1):
        yield step["function"], step["module"]
        if place < len(context) or step["line"]:
            yield step["line"]
