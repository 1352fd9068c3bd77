"""Limits of allocation for tests with pytest: a fixture and a marker.

    # conftest.py
    pytest_plugins = ["blockyard.testing"]

    def test_a_step_allocates_little(allocations, world):
        with allocations(most=2):
            world.step()

    @pytest.mark.allocations(most=0, again=3)   # runs it four times; the first may allocate
    def test_a_step_allocates_nothing_once_warm(world):
        world.step()

How it counts: a small library stands in front of CPython's allocator (PEP 445) from the first limit on, and counts what
is asked of it on the thread that runs the block: objects, and the buffers of lists, strings and bytes. A realloc counts
as one. What CPython takes from a free list (floats, short tuples, frames) is no call; neither is what a C library gets
by malloc, which `blockyard budget -- pytest` sees.

What is left out: other threads; what entering and leaving the block needs, which is measured with an empty block and
subtracted; and tracers. Coverage's and the debugger's are off within the block, so its lines don't count as covered by
it. The garbage collector does not run there.
"""

import ctypes
import functools
import gc
import sys
from collections.abc import Callable

import pytest

from blockyard import native

_PROBES = 8


class _Block:
    """Counts what runs within it."""

    def __init__(self) -> None:
        self.calls = self.bytes = 0
        self._library = _library()

    def __enter__(self) -> "_Block":
        self._tracer, self._profiler = sys.gettrace(), sys.getprofile()
        self._collects = gc.isenabled()
        sys.settrace(None)
        sys.setprofile(None)
        gc.disable()
        self._library.by_python_calls_begin()
        return self

    def __exit__(self, *_failure: object) -> None:
        self._library.by_python_calls_end()
        self.calls = self._library.by_python_calls() - _own()[0]
        self.bytes = self._library.by_python_bytes() - _own()[1]
        if self._collects:
            gc.enable()
        sys.setprofile(self._profiler)
        sys.settrace(self._tracer)


@functools.cache
def _library() -> ctypes.PyDLL:
    # With the interpreter's lock, which a change of its allocator needs.
    found = ctypes.PyDLL(str(native.path("libblockyard-python-calls.so")))
    for name in ("by_python_calls", "by_python_bytes"):
        getattr(found, name).restype = ctypes.c_uint64
    for name in ("by_python_calls_begin", "by_python_calls_end"):
        getattr(found, name).restype = None
    if found.by_python_calls_install() != 0:
        raise RuntimeError("this Python's allocations can't be counted: it is no CPython")
    return found


_price: tuple[int, int] = (0, 0)


def _own() -> tuple[int, int]:
    """The calls and bytes of an empty block."""
    return _price


def _calibrate() -> None:
    global _price
    if _price != (0, 0):
        return
    found = []
    for _ in range(_PROBES):
        with _Block() as block:
            pass
        found.append((block.calls, block.bytes))
    _price = min(found)


def _fail(calls: int, most: int, more: str = "") -> None:
    pytest.fail(f"allocated {calls} time{'s' * (calls != 1)} on this thread, and may {most}{more}", pytrace=False)


class Limit:
    """`with allocations(most=2):`; then `calls` and `bytes` say what it was."""

    def __init__(self, most: int) -> None:
        _calibrate()
        self.most = most
        self._block = _Block()

    def __enter__(self) -> "Limit":
        self._block.__enter__()
        return self

    def __exit__(self, failure: type[BaseException] | None, *rest: object) -> None:
        self._block.__exit__()
        if failure is None and self.calls > self.most:
            _fail(self.calls, self.most)

    @property
    def calls(self) -> int:
        return self._block.calls

    @property
    def bytes(self) -> int:
        """In total, not at once."""
        return self._block.bytes


@pytest.fixture
def allocations() -> Callable[..., Limit]:
    return Limit


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "allocations(most, again=0): the test may allocate at most so often, in each run but the first"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    marker = pyfuncitem.get_closest_marker("allocations")
    if marker is None:
        return None
    _run(pyfuncitem, *marker.args, **marker.kwargs)
    return True


def _run(item: pytest.Function, most: int, again: int = 0) -> None:
    _calibrate()
    # By position, because names would make the call itself allocate.
    test, arguments = item.obj, tuple(item.funcargs[name] for name in item._fixtureinfo.argnames)
    first = 0
    for run in range(again + 1):
        block = _Block()
        with block:
            test(*arguments)
        first = block.calls if run == 0 else first
        if block.calls > most and (run > 0 or again == 0):
            _fail(block.calls, most, f"; that was run {run + 1}, and {first} in the first" if again else "")
