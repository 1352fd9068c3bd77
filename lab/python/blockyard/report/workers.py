"""Work in forked processes, which find all that the parent has computed in their memory.

Neither a thread nor a lock is shared, so that nothing is left to wait for when a worker dies in the middle: tasks are
numbers in a pipe that is filled before the first fork, and each worker answers in a pipe of its own, whose end tells
that it is gone.
"""

import fcntl
import multiprocessing
import os
import signal
import struct
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from blockyard import native
from blockyard.errors import UserError

_NUMBER = struct.Struct("<I")
_FORK = multiprocessing.get_context("fork")


class Workers:
    """Runs tasks in `count` processes, in any order. Forks at once: no other thread of the caller may hold a lock."""

    def __init__(self, tasks: Sequence[Callable[[], Any]], count: int) -> None:
        self._queue = _queue(len(tasks))
        self._workers: dict[Connection, BaseProcess] = {}
        for _ in range(min(count, len(tasks))):
            answers, ours = _FORK.Pipe(duplex=False)
            worker = _FORK.Process(target=_work, args=(self._queue, tasks, ours, [answers, *self._workers]))
            worker.start()
            ours.close()
            self._workers[answers] = worker

    def results(self) -> Iterator[tuple[int, Any]]:
        """A task's number and what it returned, as they end. Raises what a task raised, and UserError when a worker
        died."""
        open_ends = dict(self._workers)
        while open_ends:
            for answers in wait(list(open_ends)):
                try:
                    number, value, error = answers.recv()
                except (EOFError, OSError):
                    _refuse_death(open_ends.pop(answers))
                    continue
                if error is not None:
                    raise error
                yield number, value

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        """Returns when each worker has ended what it is at; none begins another task."""
        while os.read(self._queue, 4096):
            pass
        for answers, worker in self._workers.items():
            answers.close()  # who still answers finds nobody, and ends
            worker.join()
        os.close(self._queue)


def _queue(count: int) -> int:
    """The reading end of a pipe that holds the numbers of all tasks, and ends behind them."""
    reading, writing = os.pipe()
    needed = count * _NUMBER.size
    if needed > fcntl.fcntl(writing, fcntl.F_GETPIPE_SZ):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, needed)
    os.write(writing, b"".join(map(_NUMBER.pack, range(count))))
    os.close(writing)
    return reading


def _work(queue: int, tasks: Sequence[Callable[[], Any]], answers: Connection, others: Sequence[Connection]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which lets each end what it is at
    for other in others:
        other.close()
    try:
        while taken := os.read(queue, _NUMBER.size):
            (number,) = _NUMBER.unpack(taken)
            answers.send(_answer(number, tasks[number]))
    except BrokenPipeError:
        pass  # the parent has given up, or is gone


def _answer(number: int, task: Callable[[], Any]) -> tuple[int, Any, BaseException | None]:
    try:
        return number, task(), None
    except (UserError, OSError, MemoryError) as error:
        return number, None, error
    except Exception as error:  # the trace would be lost on the way
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return number, None, error


def _refuse_death(worker: BaseProcess) -> None:
    worker.join()
    if worker.exitcode == 0:
        return
    if worker.exitcode == -signal.SIGKILL:
        raise UserError(
            "a process that drew pictures was killed, most likely because the machine ran out of memory; "
            "report fewer journals or allocators at a time (--journal, --allocator)"
        )
    how = f"exit code {worker.exitcode}"
    if worker.exitcode is not None and worker.exitcode < 0:
        how = native.signal_name(-worker.exitcode)
    raise UserError(
        f"a process that drew pictures ended with {how}: a fault of Blockyard or of a library below it; "
        "'--no-pictures --no-samples-parquet' makes the tables alone, in one process"
    )
