"""Answers that take long: worked out one after the other in a thread of their own, while pages say that they are."""

import atexit
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from analysis.profiling.cancellation import AbandonedError, Cancellation
from scenarios.web.workers import BusyError

_MOST_WAITING, _MOST_ANSWERS = 4, 32
_CLOSING_S, _AGAIN_S = 2.0, 0.05


class BackgroundAnswers:
    """Answers by question, worked out once; the thread is there as long as questions wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers = OrderedDict[Hashable, object]()
        self._waiting = OrderedDict[Hashable, Callable[[], object]]()
        self._cancellation = Cancellation()
        self._thread: threading.Thread | None = None

    def known(self, question: Hashable) -> object:
        """Return the answer; None if there is none yet.

        Raises
        ------
        Exception
            What working it out raised; asked again, it is worked out again.
        """
        with self._lock:
            answer = self._answers.get(question)
            if isinstance(answer, Exception):
                del self._answers[question]
                raise answer
            return answer

    def begin(self, question: Hashable, make: Callable[[], object]) -> None:
        """Have a question answered, unless it waits already.

        Parameters
        ----------
        question : what is asked
        make : works it out

        Raises
        ------
        BusyError
            If too many others wait.
        """
        with self._lock:
            if question in self._waiting or question in self._answers:
                return
            if len(self._waiting) >= _MOST_WAITING:
                raise BusyError(f"{len(self._waiting)} questions that take long wait for their answers already")
            self._waiting[question] = make
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="background", daemon=True)
                atexit.register(self.close)
                self._thread.start()

    def close(self) -> None:
        """Let go of what waits, and interrupt what is being worked out."""
        with self._lock:
            thread = self._thread
            self._waiting.clear()
        if thread is None or thread is threading.current_thread():
            return
        waited = 0.0
        while thread.is_alive() and waited < _CLOSING_S:
            self._cancellation.cancel()
            thread.join(_AGAIN_S)
            waited += _AGAIN_S

    def _work(self) -> None:
        """Answer question after question until none waits."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    atexit.unregister(self.close)
                    return
                question, make = next(iter(self._waiting.items()))
            answer = self._answer(make)
            with self._lock:
                self._waiting.pop(question, None)
                if not isinstance(answer, AbandonedError):
                    self._answers[question] = answer
                while len(self._answers) > _MOST_ANSWERS:
                    self._answers.popitem(last=False)

    def _answer(self, make: Callable[[], object]) -> object:
        try:
            return self._cancellation.run(make)
        except Exception as error:  # whoever asks for the answer gets it
            return error
