"""Work spread over processes of one thread each; whatever ends it, Ctrl-C included, ends them at once."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import ORIGINAL_DIR  # pyrefly: ignore[missing-module-attribute] # its stubs lack it
from threading import Thread
from typing import TypeVar

from scenarios.runs.rundir import RunError

_T = TypeVar("_T")
_R = TypeVar("_R")
_LIBRARIES = ["numba", "ortools.sat.python.cp_model", "pandas", "pyarrow.parquet", "pydantic", "scipy.stats"]
"""What the fork server loads once for all its processes; it takes longer than all else that they begin with."""
_OURS = ("models", "sim", "analysis", "scenarios")
_PATHS = ("PYTHONPATH", "PYTHONSAFEPATH")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def spread(function: Callable[[_T], _R], items: Sequence[_T], workers: int | None = None) -> Iterator[_R]:
    """Yield what a function makes of each item, in the order in which they are done.

    Parameters
    ----------
    function : of a module, since processes import it
    items : what it is called with, one by one
    workers : processes; one for each processor if not said; with one, or for one item, no other process is started
    """
    count = min(workers or processors(), len(items))
    if count <= 1:
        yield from map(function, items)
        return
    with processes(count) as pool:
        yield from through(pool, function, items)


def through(executor: Executor, function: Callable[[_T], _R], items: Sequence[_T]) -> Iterator[_R]:
    """Yield what a function makes of each item by way of an executor, in the order in which they are done.

    What has not begun when the iteration ends is not begun any more.
    """
    futures = list[Future[_R]]()
    try:
        for item in items:
            futures.append(_submitted(executor, function, item))
        for future in as_completed(futures):
            yield future.result()
    except (BrokenExecutor, CancelledError) as lost:
        raise RunError("a process ended without an answer: is there enough memory?") from lost
    finally:
        for future in futures:
            future.cancel()


def _submitted(executor: Executor, function: Callable[[_T], _R], item: _T) -> Future[_R]:
    """Return the future of one item; a pool that breaks while it starts a process may find its own pipes closed."""
    try:
        return executor.submit(function, item)
    except OSError as closed:
        raise BrokenExecutor(str(closed)) from closed


@contextmanager
def processes(count: int | None = None) -> Generator[Executor]:
    """Yield an executor whose processes have one thread each, so that they do not get into each other's way.

    They come from a fork server. When the block ends well, they finish and tidy up after themselves; when it ends in an
    error or an interrupt, they are ended with whatever they are at. They end with this process, however that ends.

    Parameters
    ----------
    count : processes; one for each processor if not said
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([*_LIBRARIES, *_loaded()])
    resource_tracker.ensure_running()  # the fork server needs it; where it is started, Ctrl-C is let through again
    paths = {name: os.environ[name] for name in _PATHS if name in os.environ}
    with _environment(_for_server()), _undisturbed(), _short_folder():
        ensure_running()
    pool = ProcessPoolExecutor(count or processors(), context, initializer=_begin, initargs=(paths, gc.get_threshold()))
    try:
        yield pool
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_MOST_BYTES = 71
"""Of the name of a temporary folder, so that a socket in it has a name of 103 bytes at most, as all systems take it."""


@contextmanager
def _short_folder() -> Generator[None]:
    """Let sockets that are opened meanwhile lie in /tmp where the folder for temporary files has too long a name."""
    before = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > _MOST_BYTES:
        tempfile.tempdir = "/tmp"  # what multiprocessing makes there is a folder of its own, for us alone
    try:
        yield
    finally:
        tempfile.tempdir = before


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _loaded() -> list[str]:
    """Return our modules that are loaded here, which processes need to understand what they are to do.

    They are found by the paths of this process alone. Where the server cannot be told those, it would take a
    `models.py` of the user's own for ours: Python heeds no environment, or a path has the character between paths.
    """
    if sys.flags.ignore_environment or any(os.pathsep in path for path in _paths()):
        return []
    return [name for name in sys.modules if name.split(".")[0] in _OURS]


def _paths() -> list[str]:
    """Return where this process looks for modules, as processes of `multiprocessing` do: they begin where it began."""
    return [os.path.join(ORIGINAL_DIR or "", path) for path in sys.path]


def _for_server() -> dict[str, str]:
    """Return the environment of the fork server: one thread, which libraries heed when they load, and our paths."""
    return dict.fromkeys(_THREADS, "1") | dict(zip(_PATHS, (os.pathsep.join(_paths()), "1"), strict=True))


def _begin(paths: Mapping[str, str], garbage: tuple[int, int, int]) -> None:
    """Leave Ctrl-C, which a terminal sends to every process, to the one that hands out the work; end when that ends.

    Parameters
    ----------
    paths : variables of the environment that say where Python looks for modules, as that process has them
    garbage : after how many new objects Python looks for garbage there
    """
    gc.set_threshold(*garbage)
    for name in _PATHS:
        os.environ.pop(name, None)
    os.environ.update(paths)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Generator[None]:
    """Let processes that start meanwhile have these variables in their environment."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _undisturbed() -> Generator[None]:
    """Let a process that starts meanwhile never see Ctrl-C; it reaches this one afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
