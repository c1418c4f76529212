"""Work that nobody waits for any more: its queries are interrupted, and it ends at the next one."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

import duckdb

from models.errors import WscError

_T = TypeVar("_T")


class AbandonedError(WscError):
    """Nobody waits for the answer any more."""


@dataclass(slots=True)
class Cancellation:
    """A switch that ends a piece of work: once cancelled, it stays so.

    Examples
    --------
    >>> cancellation = Cancellation()
    >>> cancellation.run(lambda: 7)
    7
    >>> cancellation.cancel()
    >>> cancellation.run(lambda: 7)
    Traceback (most recent call last):
    analysis.profiling.cancellation.AbandonedError: nobody waits for the answer any more
    """

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cursors: list[duckdb.DuckDBPyConnection] = field(default_factory=list)
    _cancelled: bool = False

    def cancel(self) -> None:
        """Interrupt what runs; work that is between two queries is interrupted at the next, or by another call."""
        with self._lock:
            self._cancelled = True
            for cursor in self._cursors:
                cursor.interrupt()

    def run(self, work: Callable[[], _T]) -> _T:
        """Do a piece of work that `cancel` ends.

        Raises
        ------
        AbandonedError
            If it was ended.
        """
        self.check()
        token = _CURRENT.set(self)
        try:
            return work()
        finally:
            _CURRENT.reset(token)

    def check(self) -> None:
        """Raise an AbandonedError if nobody waits any more."""
        if self._cancelled:
            raise AbandonedError("nobody waits for the answer any more")

    @contextmanager
    def watching(self, cursor: duckdb.DuckDBPyConnection) -> Generator[None]:
        """Have the queries of a cursor interrupted."""
        with self._lock:
            self.check()
            self._cursors.append(cursor)
        try:
            yield
        except duckdb.InterruptException:
            raise AbandonedError("nobody waits for the answer any more") from None
        finally:
            with self._lock:
                self._cursors.remove(cursor)


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def interruptible(cursor: duckdb.DuckDBPyConnection) -> Generator[None]:
    """Have a cursor's queries interrupted when the work that asks them is cancelled; without such work, do nothing."""
    current = _CURRENT.get()
    if current is None:
        yield
        return
    with current.watching(cursor):
        yield


def check_current() -> None:
    """Raise an AbandonedError if the work that is done has been cancelled; without such work, do nothing."""
    if (current := _CURRENT.get()) is not None:
        current.check()
