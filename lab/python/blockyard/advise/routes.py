"""Which blocks of a journal the changes lead elsewhere. lab/src/journal/routes.hpp draws the file."""

from pathlib import Path

import numpy as np

from blockyard.analysis.samples_library import fields
from blockyard.errors import UserError

_HEAD = np.dtype(fields(("S8", "magic"), ("<u4", "version routes"), ("<u8", "blocks events sum")))
_ROUTE = np.dtype(fields(("u1", "kind alignment"), ("<u2", "zero"), ("<u4", "group"), ("<u8", "bytes unused")))
_BLOCK = np.dtype(fields(("<u4", "event"), ("<u2", "route grows")))


def by_event(path: Path) -> np.ndarray:
    """By event of the journal 1 + the group of its route; 0 where the event gives no block or the block stays."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror or error}") from None
    head = np.frombuffer(data, _HEAD, 1)[0] if len(data) >= _HEAD.itemsize else None
    if head is None or head["magic"] != b"BYROUTE\n" or head["version"] != 1:
        raise UserError(f"{path} holds no routes of this version; write it again by 'blockyard advise'")
    routes, blocks, events = (int(head[name]) for name in ("routes", "blocks", "events"))
    if len(data) != _HEAD.itemsize + routes * _ROUTE.itemsize + blocks * _BLOCK.itemsize:
        raise UserError(f"{path} was cut or added to; write it again by 'blockyard advise'")
    of_route = np.frombuffer(data, _ROUTE, routes, _HEAD.itemsize)["group"]
    block = np.frombuffer(data, _BLOCK, blocks, _HEAD.itemsize + routes * _ROUTE.itemsize)
    if blocks and (block["event"].max() >= events or block["route"].max() >= routes):
        raise UserError(f"{path} was damaged; write it again by 'blockyard advise'")
    found = np.zeros(events, np.uint32)
    found[block["event"]] = of_route[block["route"]] + 1
    return found
