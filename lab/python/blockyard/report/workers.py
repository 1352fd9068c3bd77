"""Work in forked processes, which find all that the parent has computed in their memory."""

import ctypes
import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from blockyard.errors import UserError

_PR_SET_PDEATHSIG = 1
_tasks: Sequence[Callable[[], Any]] = ()
"""What a worker finds in its memory: a task is sent as its number, for closures can't be."""


class Workers:
    """Runs tasks in `count` processes, in any order. Forks at once: no other thread of the caller may hold a lock."""

    def __init__(self, tasks: Sequence[Callable[[], Any]], count: int) -> None:
        global _tasks
        _tasks = tasks
        context = multiprocessing.get_context("fork")
        self._pool = ProcessPoolExecutor(min(count, len(tasks)), context, _begin)
        self._numbers: dict[Future[Any], int] = {
            self._pool.submit(_answer, number): number for number in range(len(tasks))
        }

    def results(self) -> Iterator[tuple[int, Any]]:
        """A task's number and what it returned, as they end. Raises what a task raised, and UserError when a worker
        died."""
        for future in as_completed(self._numbers):
            try:
                yield self._numbers[future], future.result()
            except BrokenProcessPool:
                raise UserError(
                    "a process that drew pictures ended, most likely because the machine ran out of memory; report "
                    "fewer journals or allocators at a time (--journal, --allocator), or --no-pictures "
                    "--no-samples-parquet, which makes the tables alone in one process"
                ) from None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        """Returns when each worker has ended what it is at; none begins another task."""
        self._pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Ctrl-C is for the parent, which lets each end what it is at; when the parent dies, so does each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _answer(number: int) -> Any:
    try:
        return _tasks[number]()
    except Exception as error:  # the trace would be lost on the way
        if not isinstance(error, UserError | OSError | MemoryError):
            error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        raise
