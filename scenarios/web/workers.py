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
WANTED_S = 4.0
"""How long an answer is worked out, and kept, for those who were told to ask again: twice what pages tell them."""


class BusyError(WscError):
    """So many requests are answered at once that one's turn did not come."""


@dataclass(slots=True, eq=False)
class _SharedAnswer:
    """An answer that is being worked out, how many wait for it, and who else may want it."""

    answer: "asyncio.Future[Any]"
    abandoned: asyncio.Event
    """Set when nobody wants it any more."""
    waiting: int = 0
    wanted_until: float = 0.0
    """Until when those may come who were told to ask again, by the loop's clock."""


class PageWorkers:
    """Work in threads of its own, a few at once; the others wait for their turn, in the order in which they came.

    Parameters
    ----------
    workers : how many at once
    wait_s : how long others wait, seconds
    answer_s : how long one waits for an answer while others are refused, seconds
    wanted_s : how long an answer is worked out, and kept, for those who were told to ask again, seconds
    """

    def __init__(
        self, workers: int = WORKERS, wait_s: float = WAIT_S, answer_s: float = ANSWER_S, wanted_s: float = WANTED_S
    ) -> None:
        self.workers, self.wait_s, self.answer_s, self.wanted_s = workers, wait_s, answer_s, wanted_s
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
        """Return what a piece of work gives; of those who ask the same at once, all get one answer.

        Parameters
        ----------
        question : what is asked
        work : done in a thread, once its turn has come
        gone : returns when whoever asks does not wait any more

        Raises
        ------
        BusyError
            If its turn did not come in time, or it takes too long while others are refused. Then it is worked out for a
            while, and who asks again meanwhile gets it.
        AbandonedError
            If nobody waited any more; its queries were interrupted.
        """
        loop = asyncio.get_running_loop()
        key = loop, question
        shared, refused = self._shared.get(key), self.refused
        if shared is None:
            abandoned = asyncio.Event()
            shared = _SharedAnswer(asyncio.ensure_future(self._answer(work, abandoned)), abandoned)
            self._shared[key] = shared
            shared.answer.add_done_callback(lambda _, own=shared: self._done(key, own))
        leaving = asyncio.ensure_future(gone())
        shared.waiting += 1
        try:
            waiting: set[asyncio.Future[Any]] = {shared.answer, leaving}
            await asyncio.wait(waiting, timeout=self.answer_s, return_when=asyncio.FIRST_COMPLETED)
            while not (shared.answer.done() or leaving.done() or self.refused > refused):
                await asyncio.wait(waiting, timeout=_AGAIN_S, return_when=asyncio.FIRST_COMPLETED)
            if shared.answer.done():
                return cast("_T", shared.answer.result())
            if leaving.done():
                raise AbandonedError("nobody waits for the answer any more")
            shared.wanted_until = loop.time() + self.wanted_s
            raise BusyError(f"the server is busy, and this answer is not there after {self.answer_s:g} s")
        finally:
            leaving.cancel()
            shared.waiting -= 1
            self._let_go(loop, key, shared)

    def _done(self, key: tuple[asyncio.AbstractEventLoop, Hashable], shared: _SharedAnswer) -> None:
        """Let the next who asks have a new answer, unless this one is there and kept for those who ask again."""
        failed = shared.answer.cancelled() or shared.answer.exception() is not None
        if (failed or key[0].time() >= shared.wanted_until) and self._shared.get(key) is shared:
            del self._shared[key]

    def _let_go(self, loop: asyncio.AbstractEventLoop, key: Hashable, shared: _SharedAnswer) -> None:
        """End or forget an answer that nobody waits for, or look again when nobody wants it any more."""
        if shared.waiting:
            return
        if (left_s := shared.wanted_until - loop.time()) > 0:
            loop.call_later(left_s, self._let_go, loop, key, shared)
            return
        shared.abandoned.set()
        if self._shared.get(key) is shared:
            del self._shared[key]

    async def _answer(self, work: Callable[[], _T], abandoned: asyncio.Event) -> _T:
        """Return what the work gives; its turn ends when its thread does, even if nobody waits so long."""
        leaving = asyncio.ensure_future(abandoned.wait())
        try:
            await self._turn(leaving)
            cancellation, context = Cancellation(), contextvars.copy_context()
            job = asyncio.get_running_loop().run_in_executor(self._threads, lambda: context.run(cancellation.run, work))
            self._jobs[job] = cancellation
            job.add_done_callback(self._free)
            await asyncio.wait({job, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if job.done():
                return job.result()
            ending = asyncio.ensure_future(_ended(job, cancellation))
            _ENDING.add(ending)
            ending.add_done_callback(_ENDING.discard)
            raise AbandonedError("nobody waits for the answer any more")
        finally:
            leaving.cancel()

    async def _turn(self, leaving: "asyncio.Future[Any]") -> None:
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

    def _free(self, job: "asyncio.Future[Any]") -> None:
        """Give the turn of a job that ended to the next, and look at its error, which nobody else may."""
        del self._jobs[job]
        self._turns.release()
        if not job.cancelled():
            job.exception()


_ENDING: "set[asyncio.Future[None]]" = set()
"""Jobs that are being ended; the loop itself would forget them."""


async def _ended(job: "asyncio.Future[Any]", cancellation: Cancellation) -> None:
    """Interrupt a job's queries until it ends."""
    while not job.done():
        cancellation.cancel()
        await asyncio.wait({job}, timeout=_AGAIN_S)
