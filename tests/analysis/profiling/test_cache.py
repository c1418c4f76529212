from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling import cache as module
from analysis.profiling.cache import AnswerCache

NOW, LATER = (("a", 1, 1),), (("a", 1, 2),)


def frame(megabytes):
    return pd.DataFrame({"value": np.zeros(megabytes * 125_000)})


def test_an_answer_belongs_to_one_state_of_the_files():
    kept = AnswerCache()
    kept.put(NOW, "q", [1])
    assert kept.get(LATER, "q") is None
    assert kept.get(NOW, "other") is None
    assert kept.get(NOW, "q") == [1]


def test_neither_the_giver_nor_the_taker_can_change_what_is_kept():
    kept, given = AnswerCache(), [1]
    kept.put(NOW, "q", given)
    given.append(2)
    kept.get(NOW, "q").append(3)
    assert kept.get(NOW, "q") == [1]


def test_the_longest_unused_goes_first_when_the_bytes_are_full():
    kept = AnswerCache()
    for question in "abcd":
        kept.put(NOW, question, frame(15))
    assert kept.get(NOW, "a") is not None
    kept.put(NOW, "e", frame(15))
    assert [question for question in "abcde" if kept.get(NOW, question) is not None] == ["a", "c", "d", "e"]


def test_an_answer_that_does_not_fit_is_not_kept():
    kept = AnswerCache()
    kept.put(NOW, "small", [1])
    kept.put(NOW, "large", frame(module.MOST_BYTES // 1_000_000 + 1))
    assert kept.get(NOW, "large") is None
    assert kept.get(NOW, "small") == [1]


def test_an_answer_given_twice_counts_once_and_all_can_be_let_go_of():
    kept = AnswerCache()
    for _ in range(10):
        kept.put(NOW, "q", frame(20))
    kept.put(NOW, "r", frame(20))
    assert kept.get(NOW, "q") is not None
    kept.clear()
    assert kept.get(NOW, "q") is None


def test_frames_given_and_taken_do_not_share_changes():
    kept, given = AnswerCache(), frame(1)
    kept.put(NOW, "q", given)
    given.loc[0, "value"] = 5.0
    taken = kept.get(NOW, "q")
    taken.iloc[1, 0] = 7.0
    assert not kept.get(NOW, "q")["value"].any()


@dataclass
class Sums:
    """An answer that says how large it is."""

    nbytes: int


def test_sums_count_as_many_bytes_as_they_say_and_the_bound_is_for_all():
    kept, half = AnswerCache(), module.MOST_BYTES // 2
    kept.put(NOW, "too many", Sums(module.MOST_BYTES + 1))
    assert kept.get(NOW, "too many") is None
    kept.put(NOW, "as many", Sums(module.MOST_BYTES))
    assert kept.get(NOW, "as many") == Sums(module.MOST_BYTES)
    for question, size in (("a", half), ("b", module.MOST_BYTES - half)):
        kept.put(NOW, question, Sums(size))
    assert [kept.get(NOW, question) is None for question in ("as many", "a", "b")] == [True, False, False]
    kept.put(NOW, "c", Sums(1))
    assert [kept.get(NOW, question) is None for question in "abc"] == [True, False, False]


def test_no_more_answers_are_kept_than_the_bound_says():
    kept = AnswerCache()
    for question in range(module._MOST + 1):
        kept.put(NOW, question, [question])
    assert [kept.get(NOW, question) is None for question in (0, 1, module._MOST)] == [True, False, False]
