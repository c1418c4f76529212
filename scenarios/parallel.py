"""Work spread over processes of one thread each; whatever ends it, Ctrl-C included, ends them at once."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

from scenarios.rundir import RunError

_T = TypeVar("_T")
_R = TypeVar("_R")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_PATIENCE_S = 5.0
"""How long a process that has nothing more to do is waited for."""


def spread(function: Callable[[_T], _R], items: Sequence[_T], workers: int | None = None) -> Iterator[_R]:
    """Yield what a function makes of each item, in the order in which they are done.

    Processes come from a fork server and have one thread each, so that they do not get into each other's way. They are
    ended with whatever they are at when the iteration ends.

    Parameters
    ----------
    function : of a module, since processes import it
    items : what it is called with, one by one
    workers : processes; one for each processor if not said; with one, or for one item, no other process is started

    Raises
    ------
    RunError
        If a process ends without an answer, as when the machine is out of memory.
    Exception
        What the function raises, of the first item for which it does.

    Examples
    --------
    >>> sorted(spread(abs, [-1, 2, -3], workers=1))
    [1, 2, 3]
    """
    count = min(workers or processors(), len(items))
    if count <= 1:
        yield from map(function, items)
        return
    waiting = list(reversed(items))
    with _pool(function, count) as idle:
        busy = list(idle)
        for one in busy:
            one.send(waiting.pop())
        while busy:
            for one in cast("list[Connection]", wait(busy)):
                made = cast("_R", _answer(one))
                if waiting:
                    one.send(waiting.pop())
                else:
                    busy.remove(one)
                yield made


def processors() -> int:
    """Return how many processors this process may use.

    Examples
    --------
    >>> processors() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _pool(function: Callable[[Any], Any], count: int) -> Iterator[list[Connection]]:
    """Yield a connection to each of so many processes; end them afterwards.

    Those that wait for work when all is done end by themselves and tidy up after themselves; others are ended. They are
    daemons: should even that be interrupted, they end with this process.
    """
    context, processes, connections = get_context("forkserver"), list[BaseProcess](), list[Connection]()
    try:
        with _single_threaded():
            for _ in range(count):
                ours, theirs = context.Pipe()
                started = context.Process(target=_work, args=(theirs, function), daemon=True)
                started.start()
                theirs.close()
                processes.append(started)
                connections.append(ours)
        yield connections
        for connection in connections:
            connection.close()
        for process in processes:
            process.join(_PATIENCE_S)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _work(connection: Connection, function: Callable[[Any], Any]) -> None:
    """Answer every item that comes with what was made of it, or with the error, until nobody is there to ask."""
    # A terminal sends Ctrl-C to every process; it is the one that hands out the work that ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            item = connection.recv()
        except EOFError:
            return
        try:
            connection.send((function(item), None))
        except Exception as error:
            connection.send((None, error))


def _answer(connection: Connection) -> object:
    try:
        made, error = connection.recv()
    except (EOFError, OSError) as lost:
        raise RunError("a process ended without an answer: is there enough memory?") from lost
    if error is not None:
        raise error
    return made


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let processes that start meanwhile compute on one thread each: libraries read this when they are imported."""
    before = {name: os.environ[name] for name in _THREADS if name in os.environ}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name in _THREADS:
            del os.environ[name]
        os.environ.update(before)
