"""Methods that answer in plain numbers: what they may say, what they may not, and the response times added to it."""

import re
from dataclasses import astuple

import numpy as np
import pytest

from analysis.crossplatform.evidence import Evidence, Prediction, ServiceLog
from analysis.crossplatform.plain import answered, own_copy, with_responses
from analysis.crossplatform.rivals import cycle_scalar
from models.errors import InputError
from models.platforms import PLATFORMS

COUNTS = np.array([[3.0, 1.0], [0.0, 0.0], [2.0, 2.0]])


def evidence(response_s=0.2):
    counts = np.array([[60.0], [90.0], [120.0]])
    work = 3e7 * counts[:, 0]
    used, answer = 0.3 * work / work.max(), np.full(3, response_s)
    log = ServiceLog(("buy",), 30.0, 30.0 * np.arange(3), counts, work, work[:, None] * [0.06, 0.02], answer, used)
    return Evidence("piii", {"piii": log}, PLATFORMS)


def test_a_number_or_an_array_is_the_service_time_and_nothing_is_said_where_there_is_no_request():
    for answer in (0.1, [0.1, 0.1, 0.1], {"service_time_s": 0.1}):
        said = answered("mine", answer, COUNTS)
        np.testing.assert_array_equal(said.service_time_s, [0.1, np.nan, 0.1])
        assert np.isnan([said.service_low_s, said.response_time_s, said.response_high_s]).all()


def test_a_prediction_may_be_answered_and_responses_may_be_endless():
    endless = np.full(3, np.inf)
    whole = Prediction(*[np.full(3, 0.1)] * 3, np.full(3, 0.2), np.full(3, 0.2), endless)
    said = answered("mine", whole, COUNTS)
    np.testing.assert_array_equal(said.response_high_s, [np.inf, np.nan, np.inf])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (None, "service_time_s should be 3 numbers, one a mix, got None"),
        ("quick", "service_time_s should be 3 numbers, one a mix, got a str without them"),
        (["a", "b", "c"], "service_time_s should be 3 numbers, one a mix, got a list without them"),
        ([0.1, 0.2], "service_time_s should be 3 numbers, one a mix, got an array of (2,)"),
        ({"cpi": 0.1}, "should answer with service_time_s and perhaps service_low_s,"),
        ({"service_time_s": 0.1, "low": 0.1}, "got service_time_s, low"),
        ({}, "got nothing"),
        (0.0, "service_time_s should be above 0 seconds, and finite, got 0"),
        ([0.1, 0.1, np.inf], "service_time_s should be above 0 seconds, and finite, got inf"),
        ({"service_time_s": 0.1, "response_time_s": -1}, "response_time_s should be above 0 seconds, got -1"),
        (
            {"service_time_s": 0.3, "service_low_s": 0.1, "service_high_s": 0.2},
            "should lie between its low and its high",
        ),
    ],
)
def test_nonsense_is_said_clearly(answer, problem):
    with pytest.raises(InputError, match=re.escape(problem)) as caught:
        answered("mine", answer, COUNTS)
    assert str(caught.value).startswith("mine: ")


def test_nan_says_nothing():
    assert np.isnan(astuple(answered("mine", np.nan, COUNTS))).all()


def test_responses_are_those_of_a_shipped_method_with_the_same_service_times():
    shown = evidence()
    ours = cycle_scalar(shown)

    def times(platform, counts, interval_s):
        service = ours(platform, counts, interval_s).service_time_s
        return answered("mine", {"service_time_s": service, "service_high_s": 2 * service}, counts)

    counts = np.array([[45.0], [60.0]])
    same, said = ours(PLATFORMS["pres"], counts, 30.0), with_responses(shown, times)(PLATFORMS["pres"], counts, 30.0)
    np.testing.assert_allclose(said.response_time_s, same.response_time_s)
    assert (said.response_high_s > said.response_time_s).all()
    assert np.isnan(said.response_low_s).all()
    silent = with_responses(evidence(np.nan), times)(PLATFORMS["pres"], counts, 30.0)
    assert np.isnan(silent.response_time_s).all()


def test_responses_that_a_method_says_are_left_as_they_are():
    def times(platform, counts, interval_s):
        return answered("mine", {"service_time_s": 0.1, "response_time_s": 0.7}, counts)

    said = with_responses(evidence(), times)(PLATFORMS["pres"], np.ones((1, 1)), 30.0)
    assert (said.response_time_s, np.isnan(said.response_low_s)) == (0.7, True)


def test_a_copy_is_changed_without_changing_what_others_see():
    shown = evidence()
    copied = own_copy(shown)
    copied.log.counts[:] = 0.0
    copied.platforms.clear()
    assert shown.log.counts.sum() == 270.0
    assert "piii" in shown.platforms
