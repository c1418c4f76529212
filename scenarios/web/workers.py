"""How much a server does at once: a few threads, a bounded wait for one of them, and an end to abandoned work."""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from analysis.profiling.cancellation import AbandonedError, Cancellation
from models.errors import WscError

_T = TypeVar("_T")
WORKERS = 2
"""Answers that are worked out at once; so their memory is bounded."""
WAIT_S = 4.0
"""How long a request waits for its turn before it is refused."""
ANSWER_S = 4.0
"""How long an answer may take while others are refused; otherwise it may take as long as it takes."""
_AGAIN_S = 0.05


class BusyError(WscError):
    """So many requests are answered at once that one's turn did not come."""


@dataclass(slots=True, eq=False)
class _SharedAnswer:
    """An answer that is being worked out, how many wait for it, and whether nobody does any more."""

    answer: "asyncio.Future[Any]"
    abandoned: asyncio.Event
    waiting: int = 0


class PageWorkers:
    """Work in threads of its own, a few at once; the others wait for their turn, in the order in which they came.

    Parameters
    ----------
    workers : how many at once
    wait_s : how long others wait, seconds
    answer_s : how long an answer may take while others are refused, seconds
    """

    def __init__(self, workers: int = WORKERS, wait_s: float = WAIT_S, answer_s: float = ANSWER_S) -> None:
        self.workers, self.wait_s, self.answer_s = workers, wait_s, answer_s
        self.refused = 0
        self._threads = ThreadPoolExecutor(workers, "pages")
        self._turns = asyncio.Semaphore(workers)
        self._shared: dict[Hashable, _SharedAnswer] = {}
        self._jobs: dict[asyncio.Future[Any], Cancellation] = {}

    async def close(self) -> None:
        """Interrupt what is worked on, wait until it ends, and let the threads end."""
        await asyncio.gather(*(_ended(job, cancellation) for job, cancellation in self._jobs.items()))
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def share(self, question: Hashable, work: Callable[[], _T], gone: Callable[[], Awaitable[None]]) -> _T:
        """Return what `run` does; of those who ask the same at once, one is answered and the others get its answer.

        Parameters
        ----------
        question : what is asked
        work, gone : as in `run`; work goes on as long as anybody waits

        Raises
        ------
        BusyError, AbandonedError
            As `run` does.
        """
        key = asyncio.get_running_loop(), question
        shared = self._shared.get(key)
        if shared is None:
            abandoned = asyncio.Event()
            answer = asyncio.ensure_future(self.run(work, lambda: _set(abandoned)))
            shared = self._shared[key] = _SharedAnswer(answer, abandoned)
            answer.add_done_callback(lambda _: self._forget(key, shared))
        leaving = asyncio.ensure_future(gone())
        shared.waiting += 1
        try:
            waiting: set[asyncio.Future[Any]] = {shared.answer, leaving}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if shared.answer.done():
                return cast("_T", shared.answer.result())
            raise AbandonedError("nobody waits for the answer any more")
        finally:
            leaving.cancel()
            shared.waiting -= 1
            if not shared.waiting:
                shared.abandoned.set()
                self._forget(key, shared)

    def _forget(self, key: Hashable, shared: _SharedAnswer) -> None:
        """Let the next who asks have a new answer, and look at the error of this one, which nobody else may."""
        if self._shared.get(key) is shared:
            del self._shared[key]
        if shared.answer.done() and not shared.answer.cancelled():
            shared.answer.exception()

    async def run(self, work: Callable[[], _T], gone: Callable[[], Awaitable[None]]) -> _T:
        """Return what a piece of work gives, done in a thread.

        Parameters
        ----------
        work : done once its turn has come
        gone : returns when nobody waits for the answer any more

        Raises
        ------
        BusyError
            If its turn did not come in time, or it took too long while others were refused.
        AbandonedError
            If nobody waited any more; its queries were interrupted.
        """
        leaving = asyncio.ensure_future(gone())
        try:
            await self._turn(leaving)
            return await self._done(work, leaving)
        finally:
            leaving.cancel()

    async def _turn(self, leaving: "asyncio.Future[None]") -> None:
        turn = asyncio.ensure_future(self._turns.acquire())
        waiting: set[asyncio.Future[Any]] = {turn, leaving}
        await asyncio.wait(waiting, timeout=self.wait_s, return_when=asyncio.FIRST_COMPLETED)
        if turn.done():
            return
        turn.cancel()
        if leaving.done():
            raise AbandonedError("nobody waits for the answer any more")
        self.refused += 1
        raise BusyError(f"the server answers {self.workers} requests at once, and this one waited {self.wait_s:g} s")

    async def _done(self, work: Callable[[], _T], leaving: "asyncio.Future[None]") -> _T:
        """Return what the work gives; its turn ends when its thread does, even if nobody waits so long."""
        cancellation, context, refused = Cancellation(), contextvars.copy_context(), self.refused
        job = asyncio.get_running_loop().run_in_executor(self._threads, lambda: context.run(cancellation.run, work))
        self._jobs[job] = cancellation
        job.add_done_callback(self._free)
        waiting: set[asyncio.Future[Any]] = {job, leaving}
        await asyncio.wait(waiting, timeout=self.answer_s, return_when=asyncio.FIRST_COMPLETED)
        while not (job.done() or leaving.done() or self.refused > refused):
            await asyncio.wait(waiting, timeout=_AGAIN_S, return_when=asyncio.FIRST_COMPLETED)
        if job.done():
            return job.result()
        ending = asyncio.ensure_future(_ended(job, cancellation))
        _ENDING.add(ending)
        ending.add_done_callback(_ENDING.discard)
        if leaving.done():
            raise AbandonedError("nobody waits for the answer any more")
        raise BusyError(f"the server is busy, and this answer took more than {self.answer_s:g} s")

    def _free(self, job: "asyncio.Future[Any]") -> None:
        """Give the turn of a job that ended to the next, and look at its error, which nobody else may."""
        del self._jobs[job]
        self._turns.release()
        if not job.cancelled():
            job.exception()


async def _set(event: asyncio.Event) -> None:
    await event.wait()


_ENDING: "set[asyncio.Future[None]]" = set()
"""Jobs that are being ended; the loop itself would forget them."""


async def _ended(job: "asyncio.Future[Any]", cancellation: Cancellation) -> None:
    """Interrupt a job's queries until it ends."""
    while not job.done():
        cancellation.cancel()
        await asyncio.wait({job}, timeout=_AGAIN_S)
