"""What this installation carries, for `blockyard --version`: found by looking for files, without starting any."""

import tomllib
from collections.abc import Iterator

from blockyard import __version__, native

_PARTS = (
    "blockyard-journal",
    "blockyard-collect",
    "blockyard-replay",
    "libblockyard-record.so",
    "libblockyard-malloc.so",
)


def lines() -> Iterator[str]:
    yield f"blockyard, version {__version__}"
    parts = {name: native.find(name) for name in _PARTS}
    folder = next((path.parent for path in parts.values() if path), None)
    checkout = native.checkout()
    if folder and checkout and folder.is_relative_to(checkout):
        yield f"  native parts  of the checkout {checkout}"
    else:
        yield f"  native parts  {folder or 'none were built'}"
    if missing := [name for name, path in parts.items() if path is None]:
        yield f"  missing       {', '.join(missing)}"
    # Not by allocators.load(): what is installed must be said where a Python package is missing, too.
    entries = tomllib.loads(native.data("allocators.toml", "adapters").read_text())
    adapters = {name: native.find(entry["adapter"]) for name, entry in entries.items()}
    yield f"  adapters      {', '.join(sorted(name for name, path in adapters.items() if path)) or 'none'}"
    if absent := sorted(name for name, path in adapters.items() if path is None):
        yield f"  not built     {', '.join(absent)}"
    page = native.folder("page")
    has_page = page is not None and not (page / "missing.txt").exists()
    yield f"  report page   {'with its libraries' if has_page else 'without its libraries: no report --html'}"
    yield "  journals      .byj versions 1 and 2, text, heaptrack, unreal, aosp, logalloc, mtrace"
