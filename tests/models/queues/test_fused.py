"""The fused form against the array form on the same draws, and against theory."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, t

from models.queues import fused
from models.queues import open as queues
from models.queues.draws import draw, traffic
from models.queues.fused import BLOCK, simulate
from models.queues.world import Distribution

POLICIES = ("fcfs", "ps", "priority", "srpt", "rr")
each = pytest.mark.parametrize("policy", POLICIES)
EXPONENTIAL = Distribution("exponential", mean=1.0)
UNIFORM = Distribution("uniform", low=1.0, high=2.0)
SHARES = (0.2, 0.3, 0.5)


def responses(policy, rate_per_s, demand, servers, requests):
    """Response times and classes of the array form, on the draws of seed 1; and the demands."""
    arrival_s, demand_s, classes = draw(traffic(rate_per_s, demand, 1, SHARES), requests)
    departure_s = queues.times(policy, arrival_s, demand_s, servers, classes)[1]
    return departure_s - arrival_s, classes, demand_s, departure_s.max()


@each
@pytest.mark.parametrize(
    ("rate_per_s", "demand", "servers", "requests"),
    [
        (2.8, EXPONENTIAL, 4, 5 * BLOCK + 17),
        (0.45, UNIFORM, 1, 2 * BLOCK),
        (30.0, EXPONENTIAL, 40, BLOCK + 1),
        (1.3, EXPONENTIAL, 1, 6 * BLOCK),
        (1.0, Distribution("constant", mean=0.5), 1, 5),
    ],
    ids=["four servers", "one server", "forty servers", "overloaded", "fewer than a block"],
)
def test_blocks_tell_what_one_array_tells(policy, rate_per_s, demand, servers, requests):
    """The overloaded queue outgrows its first block several times over."""
    found = simulate(policy, rate_per_s, demand, servers, requests, seed=1, class_shares=SHARES)
    response_s, classes, demand_s, span_s = responses(policy, rate_per_s, demand, servers, requests)
    for c in range(3):
        mine = response_s[classes == c]
        places = np.searchsorted(found.edges_s, mine, side="right") - 1
        assert found.served[c] == mine.size
        np.testing.assert_allclose(found.mean_s[c], mine.mean() if mine.size else 0.0, rtol=1e-9)
        np.testing.assert_allclose(found.squares_s2[c], mine.var() * mine.size if mine.size else 0.0, rtol=1e-9)
        np.testing.assert_array_equal(found.histogram[c], np.bincount(places, minlength=found.edges_s.size - 1))
    assert (found.requests, found.span_s) == (requests, pytest.approx(span_s, rel=1e-12))
    assert found.busy_s == pytest.approx(demand_s.sum(), rel=1e-12)
    assert found.response_s == pytest.approx(response_s.mean(), rel=1e-9)
    assert found.variance_s2 == pytest.approx(response_s.var(), rel=1e-9)


@each
def test_the_mean_number_present_is_the_area_under_the_curve_of_those_present(policy):
    requests = 3 * BLOCK
    found = simulate(policy, 0.7, EXPONENTIAL, 1, requests, seed=1, class_shares=SHARES)
    arrival_s, demand_s, classes = draw(traffic(0.7, EXPONENTIAL, 1, SHARES), requests)
    departure_s = queues.times(policy, arrival_s, demand_s, 1, classes)[1]
    events = np.concatenate([arrival_s, departure_s])
    order = np.argsort(events, kind="stable")
    present = np.cumsum(np.repeat([1, -1], requests)[order])
    area = (np.diff(events[order]) * present[:-1]).sum()
    assert found.mean_jobs == pytest.approx(area / departure_s.max(), rel=1e-9)


def far(found, expected, false_alarms):
    """Whether independent means lie farther from the expected one than chance does."""
    found = np.asarray(found)
    error = found.std(ddof=1) / math.sqrt(found.size)
    return abs(found.mean() - expected) > t.isf(false_alarms / 2, found.size - 1) * error


def erlang_c(servers, offered):
    """Probability that an arrival waits (Erlang 1917)."""
    top = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return top / (sum(offered**i / math.factorial(i) for i in range(servers)) + top)


def means(policy, rate_per_s, demand, servers, column="response_s", **options):
    """One mean of 200,000 requests for each of 24 seeds."""
    runs = (simulate(policy, rate_per_s, demand, servers, 200_000, seed=seed, **options) for seed in range(24))
    return [getattr(run, column) for run in runs]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("policy", "servers"), [("fcfs", 1), ("fcfs", 2), ("fcfs", 8), ("ps", 1), ("ps", 2), ("ps", 8), ("rr", 2)]
)
def test_the_mean_response_is_that_of_erlang(policy, servers):
    """False-alarm rate 1e-4 each, by Student's law over 24 seeds; starting empty biases by a twentieth of that at most.

    Policies that do not look at demands share the birth-death chain of M/M/k, and so its mean.
    """
    rate_per_s = 0.7 * servers
    expected = 1.0 + erlang_c(servers, rate_per_s) / (servers - rate_per_s)
    assert not far(means(policy, rate_per_s, EXPONENTIAL, servers), expected, 1e-4)


@pytest.mark.statistical
def test_the_mean_response_is_that_of_pollaczek_and_khinchine():
    """False-alarm rate 1e-4: M/G/1, uniform demands of mean 3/2 and second moment 7/3."""
    rate_per_s = 0.7 / 1.5
    expected = 1.5 + rate_per_s * 7 / 3 / (2 * 0.3)
    assert not far(means("fcfs", rate_per_s, UNIFORM, 1), expected, 1e-4)


@pytest.mark.statistical
def test_processor_sharing_does_not_mind_the_law_of_demands():
    """False-alarm rate 1e-4: M/G/1-PS has mean response E[S] / (1 − ρ) for uniform demands too."""
    assert not far(means("ps", 0.7 / 1.5, UNIFORM, 1), 1.5 / 0.3, 1e-4)


@pytest.mark.statistical
def test_each_class_waits_for_those_before_it():
    """False-alarm rate 1e-4 each: preemptive resume M/M/1, 1 / ((1 − σ_{c−1}) (1 − σ_c)) with σ the load up to c."""
    runs = means("priority", 0.7, EXPONENTIAL, 1, "mean_s", class_shares=SHARES)
    load = 0.7 * np.cumsum([0.0, *SHARES])
    for c in range(3):
        assert not far([run[c] for run in runs], 1.0 / ((1 - load[c]) * (1 - load[c + 1])), 1e-4)


@pytest.mark.statistical
def test_draws_have_the_laws_that_were_asked_for():
    """False-alarm rate 1e-4 each: Kolmogorov and Smirnov for gaps and demands, the multinomial law for classes."""
    arrival_s, demand_s, classes = draw(traffic(2.0, UNIFORM, 3, SHARES), 100_000)
    assert kstest(np.diff(arrival_s, prepend=0.0), "expon", args=(0, 0.5)).pvalue > 1e-4
    assert kstest(demand_s, "uniform", args=(1, 1)).pvalue > 1e-4
    assert kstest(draw(traffic(2.0, EXPONENTIAL, 3), 100_000)[1], "expon").pvalue > 1e-4
    assert chisquare(np.bincount(classes), 100_000 * np.array(SHARES)).pvalue > 1e-4
    assert abs(np.corrcoef([np.diff(arrival_s), demand_s[1:], demand_s[:-1], classes[1:]]) - np.eye(4)).max() < 0.02


def test_a_seed_decides_everything_and_another_changes_everything():
    one, same, other = (simulate("ps", 0.7, EXPONENTIAL, 1, 1000, seed=seed) for seed in (0, 0, 1))
    assert one.mean_s == same.mean_s
    assert one.mean_s != other.mean_s


def test_memory_follows_the_number_present_and_not_the_number_served(monkeypatch):
    """Rows are asked for once, a block of them, unless the queue outgrows the block."""
    asked = []
    monkeypatch.setattr(fused, "_grown", lambda jobs: asked.append(jobs) or pytest.fail("the block has grown"))
    simulate("srpt", 2.8, EXPONENTIAL, 4, 50 * BLOCK, seed=1)
    assert not asked


def test_quantiles_are_right_to_a_bin():
    found = simulate("fcfs", 2.8, EXPONENTIAL, 4, 20_000, seed=1, class_shares=SHARES)
    response_s = responses("fcfs", 2.8, EXPONENTIAL, 4, 20_000)[0]
    for share in (0.5, 0.99, 1.0):
        exact = np.quantile(response_s, share, method="inverted_cdf")
        assert exact <= found.quantile_s(share) <= exact * (1 + 1 / 32)


def test_more_bins_are_the_same_response_times_cut_finer():
    coarse, fine = (simulate("ps", 0.7, EXPONENTIAL, 1, 5000, seed=1, per_octave=bins) for bins in (8, 64))
    np.testing.assert_array_equal(coarse.histogram, fine.histogram.reshape(1, -1, 8).sum(axis=2))
    np.testing.assert_array_equal(coarse.edges_s, fine.edges_s[::8])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"policy": "random"}, "policy is one of fcfs, ps, rr, srpt, priority, got random"),
        ({"rate_per_s": 0.0}, "rate_per_s is 0.0, it must be above 0 and finite"),
        ({"rate_per_s": math.nan}, "rate_per_s is nan, it must be above 0 and finite"),
        ({"servers": 0}, "servers is 0, at least 1 is needed"),
        ({"requests": 0}, "requests is 0, at least 1 is needed"),
        ({"quantum_s": -1.0}, "quantum_s is -1.0, it must be above 0 and finite"),
        ({"per_octave": 12}, "per_octave is 12, a power of two is needed"),
        ({"class_shares": (0.5, 0.6)}, r"class_shares are \(0.5, 0.6\), positive shares that sum to 1 are needed"),
        ({"class_shares": ()}, r"class_shares are \(\), positive shares that sum to 1 are needed"),
        ({"demand": Distribution("gamma", mean=1.0, cv=1.0)}, "demand is gamma, only .* are drawn here"),
        ({"demand": Distribution("exponential")}, "demand: mean is None, a finite number of at least 0 is needed"),
        ({"demand": Distribution("uniform", low=2.0, high=1.0)}, "demand: high is 1.0, below low, 2.0"),
    ],
)
def test_a_fault_is_named_with_its_value(arguments, fault):
    sound = {"policy": "fcfs", "rate_per_s": 0.5, "demand": EXPONENTIAL, "servers": 1, "requests": 10, "seed": 1}
    with pytest.raises(ValueError, match=f"^{fault}$"):
        simulate(**sound | arguments)
