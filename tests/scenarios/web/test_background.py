"""Answers that take long: worked out once, in order, bounded; what they raise is raised to whoever asks."""

import threading

import pytest

from analysis.profiling.cancellation import AbandonedError, interruptible
from models.errors import InputError
from scenarios.web.background import BackgroundAnswers
from scenarios.web.workers import BusyError


def settled(background):
    """Wait until nothing is worked out."""
    while (thread := background._thread) is not None:
        thread.join()


def test_a_question_is_answered_once_while_others_ask():
    background, go, asked = BackgroundAnswers(), threading.Event(), []

    def make():
        asked.append(1)
        go.wait()
        return "answer"

    assert background.known("q") is None
    for _ in range(3):
        background.begin("q", make)
        assert background.known("q") is None
    go.set()
    settled(background)
    background.begin("q", make)
    settled(background)
    assert (background.known("q"), len(asked)) == ("answer", 1)


def test_what_is_raised_is_raised_once_and_the_question_may_be_asked_again():
    background, answers = BackgroundAnswers(), iter([InputError("no samples"), None])

    def make():
        if fault := next(answers):
            raise fault
        return 7

    background.begin("q", make)
    settled(background)
    with pytest.raises(InputError, match="no samples"):
        background.known("q")
    assert background.known("q") is None
    background.begin("q", make)
    settled(background)
    assert background.known("q") == 7


def test_too_many_questions_are_refused_and_closing_forgets_them():
    background, begun, go = BackgroundAnswers(), threading.Event(), threading.Event()

    def make():
        begun.set()
        go.wait(60)
        return 1

    for question in range(4):
        background.begin(question, make)
    begun.wait(60)
    with pytest.raises(BusyError, match="4 questions that take long wait"):
        background.begin(4, make)
    thread = background._thread
    background._waiting.clear()
    go.set()
    background.close()
    thread.join(60)
    assert not thread.is_alive()
    assert background.known(3) is None


def test_closing_interrupts_what_asks_a_database():
    """The work ends at its next query; its answer is not kept."""
    background, begun = BackgroundAnswers(), threading.Event()

    class Cursor:
        def interrupt(self):
            pass

    def make():
        begun.set()
        while True:
            with interruptible(Cursor()):
                pass

    background.begin("q", make)
    begun.wait(60)
    thread = background._thread
    background.close()
    assert not thread.is_alive()
    assert background.known("q") is None
    with pytest.raises(AbandonedError):
        background._cancellation.check()
