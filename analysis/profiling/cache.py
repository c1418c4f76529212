"""Answers that are kept: the most recent ones, as many as fit a number of bytes, for one state of the files."""

import threading
from collections import OrderedDict
from collections.abc import Hashable

import pandas as pd

from analysis.profiling.storage import Identity

MOST_BYTES = 64_000_000
"""Bytes of all kept answers."""
_MOST = 512
_SMALL = 1000


class AnswerCache:
    """The answers last used, by question and state of the files; several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[tuple[Identity, Hashable], tuple[object, int]] = OrderedDict()
        self._bytes = 0

    def get(self, identity: Identity, question: Hashable) -> object | None:
        """Return a copy of a kept answer, or nothing."""
        with self._lock:
            entry = self._answers.get((identity, question))
            if entry is None:
                return None
            self._answers.move_to_end((identity, question))
        return copied(entry[0])

    def put(self, identity: Identity, question: Hashable, answer: object) -> None:
        """Keep an answer, and let go of the ones longest unused; an answer that does not fit is not kept."""
        own = answer.memory_usage(deep=True).sum() if isinstance(answer, pd.DataFrame) else None
        size = int(getattr(answer, "nbytes", _SMALL) if own is None else own)
        if size > MOST_BYTES:
            return
        with self._lock:
            self._drop((identity, question))
            self._answers[identity, question] = (copied(answer), size)
            self._bytes += size
            while len(self._answers) > _MOST or self._bytes > MOST_BYTES:
                self._drop(next(iter(self._answers)))

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._answers.clear()
            self._bytes = 0

    def _drop(self, key: tuple[Identity, Hashable]) -> None:
        self._bytes -= self._answers.pop(key, (None, 0))[1]


def copied(answer: object) -> object:
    """Return an answer that can be changed without changing the one that is kept; frames are copied once changed."""
    if isinstance(answer, pd.DataFrame):
        return answer.copy(deep=False)
    return answer.copy() if isinstance(answer, (list, dict)) else answer
