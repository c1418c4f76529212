"""Every fault in what is asked of a station is named, with its place, its value and its bound."""

import numpy as np
import pytest

from models.queues.policies import POLICIES
from models.queues.serve import serve


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_is_served_in_no_time(policy):
    service = serve(policy, [], [], 2, priority=[], choice=[], after=[], think_s=[])
    assert service.arrival_s.size == service.start_s.size == service.departure_s.size == 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("speeds", [None, [1.0, 1.0]])
def test_requests_that_need_nothing_leave_when_a_server_takes_them(policy, speeds):
    service = serve(policy, [1.0, 1.0, 2.0], [0.0] * 3, 2, priority=[0] * 3, choice=[0.0] * 3, speeds=speeds)
    np.testing.assert_array_equal(service.departure_s, [1.0, 1.0, 2.0])


@pytest.mark.parametrize("policy", POLICIES)
def test_more_servers_than_requests_make_nobody_wait(policy):
    service = serve(policy, [0.0, 0.5], [2.0, 1.0], 9, priority=[0, 1], choice=[0.0, 0.0], quantum_s=5.0)
    np.testing.assert_allclose(service.departure_s, [2.0, 1.5])
    np.testing.assert_array_equal(service.start_s, [0.0, 0.5])


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_given_stays_as_it_is(policy):
    arrival_s, think_s = np.array([0.0, 7.0]), np.array([9.0, 1.0])
    extra = {"priority": [0, 0], "choice": [0.0, 0.0], "after": [-1, 0], "think_s": think_s}
    service = serve(policy, arrival_s, [1.0, 1.0], 1, **extra)
    np.testing.assert_array_equal(service.arrival_s, [0.0, 2.0])
    np.testing.assert_array_equal(arrival_s, [0.0, 7.0])
    np.testing.assert_array_equal(think_s, [9.0, 1.0])


def test_the_arrivals_that_come_back_are_a_copy():
    arrival_s = np.array([0.0, 1.0])
    assert not np.shares_memory(serve("fcfs", arrival_s, [1.0, 1.0], 1).arrival_s, arrival_s)


def test_one_request_may_have_many_followers():
    service = serve("fcfs", [0.0] * 4, [1.0] * 4, 1, after=[-1, 0, 0, 2], think_s=[0.0, 2.0, 1.0, 5.0])
    np.testing.assert_array_equal(service.arrival_s, [0.0, 3.0, 2.0, 8.0])
    np.testing.assert_array_equal(service.departure_s, [1.0, 4.0, 3.0, 9.0])


FAULTS = [
    ({"policy": "lifo"}, "policy is 'lifo', must be one of fcfs, lcfs"),
    ({"servers": 0}, "servers is 0, must be at least 1"),
    ({"demand_s": [1.0]}, r"arrival_s has shape \(2,\), must be \(1,\) like demand_s"),
    ({"demand_s": [[1.0, 2.0]]}, r"demand_s has shape \(1, 2\), must be \(n,\)"),
    ({"demand_s": [1.0, np.nan]}, r"demand_s\[1\] is nan, must be finite and at least 0"),
    ({"demand_s": [1.0, -2.0]}, r"demand_s\[1\] is -2.0, must be finite and at least 0"),
    ({"arrival_s": [np.nan, 1.0]}, r"arrival_s\[0\] is nan, must be finite"),
    ({"arrival_s": [0.0, np.inf]}, r"arrival_s\[1\] is inf, must be finite"),
    ({"arrival_s": [2.0, 1.0]}, r"arrival_s\[1\] is 1.0, earlier than arrival_s\[0\], 2.0"),
    ({"after": [-1, 1]}, r"after\[1\] is 1, must be an earlier request or -1"),
    ({"after": [1, -1]}, r"after\[0\] is 1, must be an earlier request or -1"),
    ({"after": [-1, -2]}, r"after\[1\] is -2, must be an earlier request or -1"),
    ({"after": [-1.0, 0.0]}, "after holds float64, must be integers"),
    ({"after": [-1]}, r"after has shape \(1,\), must be \(2,\)"),
    ({"after": [-1, 0], "think_s": [0.0, -1.0]}, r"think_s\[1\] is -1.0, must be finite and at least 0"),
    ({"after": [-1, 0], "think_s": [0.0, np.nan]}, r"think_s\[1\] is nan, must be finite and at least 0"),
    ({"think_s": [0.0]}, r"think_s has shape \(1,\), must be \(2,\)"),
    ({"policy": "priority"}, "policy priority needs priority, the class of each request"),
    ({"policy": "priority", "priority": [0, -1]}, r"priority\[1\] is -1, must be at least 0"),
    ({"policy": "priority", "priority": [0.0, 0.5]}, "priority holds float64, must be integers"),
    ({"policy": "random"}, "policy random needs choice, a draw in"),
    ({"policy": "random", "choice": [0.0, 1.0]}, r"choice\[1\] is 1.0, must be below 1"),
    ({"policy": "random", "choice": [0.0]}, r"choice has shape \(1,\), must be \(2,\)"),
    ({"policy": "rr", "quantum_s": 0.0}, "quantum_s is 0.0, must be positive and finite"),
    ({"policy": "rr", "quantum_s": np.nan}, "quantum_s is nan, must be positive and finite"),
    ({"speeds": [1.0]}, r"speeds has shape \(1,\), must be \(2,\)"),
    ({"speeds": [1.0, 0.0]}, r"speeds\[1\] is 0.0, must be positive"),
    ({"rates": [1.0, np.nan]}, r"rates\[1\] is nan, must be finite and at least 0"),
    ({"speeds": [1.0, 1.0], "rates": [1.0, 2.0]}, "speeds and rates are both given, only one may be"),
]


@pytest.mark.parametrize(("wrong", "message"), FAULTS, ids=[message[:40] for _, message in FAULTS])
def test_a_fault_is_named(wrong, message):
    good = {"policy": "fcfs", "arrival_s": [0.0, 1.0], "demand_s": [1.0, 1.0], "servers": 2}
    with pytest.raises(ValueError, match=message):
        serve(**good | wrong)


def test_arrivals_that_are_not_looked_at_may_be_anything():
    service = serve("fcfs", [5.0, np.nan, 6.0, 0.0], [1.0] * 4, 1, after=[-1, 0, -1, 2])
    np.testing.assert_array_equal(service.arrival_s, [5.0, 6.0, 6.0, 8.0])
