"""Call stacks for synthetic campaigns, as `blockyard replay` keeps them beside the runs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from blockyard.analysis import sites

FUNCTIONS = (
    ("main", "main.cpp", 10, -1),
    ("Game::update(float)", "game.cpp", 120, 0),
    ("spawn(Level&, int)", "spawn.cpp", 12, 1),
    ("Game::draw()", "game.cpp", 300, 0),
    ("label(int)", "label.cpp", 7, 3),
    ("text(char const*)", "text.cpp", 3, 4),
    ("text(char const*)", "text.cpp", 3, 2),
    ("clear(Level&)", "spawn.cpp", 40, 1),
)
"""Function, file, line, and the place of the caller: a node each, in the order of their numbers."""
SPAWN, LABEL, TEXT_OF_LABEL, TEXT_OF_SPAWN, CLEAR = 2, 4, 5, 6, 7
MODULES = ("game", "game", "game", "libdraw.so", "libdraw.so", "libtext.so", "libtext.so", "game")


def write(
    folder: Path,
    by_event: np.ndarray,
    end_bytes: np.ndarray | None = None,
    functions: Sequence[tuple[str, str, int, int]] = FUNCTIONS,
    modules: Sequence[str] = MODULES,
    named: bool = True,
) -> Path:
    """One label a node, each its own speaker."""
    texts = list(dict.fromkeys(["", *(one[0] for one in functions), *(one[1] for one in functions), *modules]))
    number = {text: place for place, text in enumerate(texts)}
    nodes = len(functions)
    header = np.zeros(1, sites._HEADER)
    encoded = [text.encode() for text in texts]
    sizes = (len(by_event), nodes, nodes, nodes, len(texts), sum(map(len, encoded)))
    header[0] = (b"BYSITES\n", 1, int(named), *sizes)
    labels = np.zeros(nodes, sites.LABEL)
    for place, ((function, file, line, _), module) in enumerate(zip(functions, modules, strict=True)):
        labels[place] = (number[function], number[file], line, number[module])
    nodes_in_order = np.arange(nodes, dtype=np.uint32)
    alive = np.zeros(nodes, np.uint64) if end_bytes is None else end_bytes.astype(np.uint64)
    parents = np.array([parent if parent >= 0 else sites.NONE for *_, parent in functions], np.uint32)
    parts = [
        header,
        *(alive for _ in range(4)),
        by_event.astype(np.uint32),
        parents,
        nodes_in_order,
        nodes_in_order,
        np.arange(nodes + 1, dtype=np.uint32),
        labels,
        np.cumsum([len(text) for text in encoded]).astype(np.uint32),
        np.zeros(len(texts), bool),
        np.frombuffer(b"".join(encoded), np.uint8),
    ]
    path = folder / sites.FILE
    path.write_bytes(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
    return path
