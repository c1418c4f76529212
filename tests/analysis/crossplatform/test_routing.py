"""Shares of types for machines, against a general optimiser, all shares on a grid and a simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from analysis.crossplatform.evidence import Prediction
from analysis.crossplatform.routing import ALONE_PER_S, alone, expected_rates, least_mean, to_the_best
from models.platforms import PLATFORMS
from models.queues.dispatch import dispatch

TABLE_8 = {
    "actual": [[53, 48], [423, 314], [102, 89], [80, 132]],
    "predicted": [[49, 47], [411, 354], [110, 92], [75, 109]],
}
"""Milliseconds of four types on PRES and dual-core Xeon (Stewart et al. 2008, table 8)."""


def number_present(work, servers):
    """Jobs in M/M/k by its two textbook sums."""
    terms = [1.0]
    for n in range(1, servers + 1):
        terms.append(terms[-1] * work / n)
    used = work / servers
    waiting = terms[-1] / (1 - used)
    return work + waiting / (sum(terms[:-1]) + waiting) * used / (1 - used)


def instance(seed, types, machines):
    rng = np.random.default_rng(seed)
    cores = rng.integers(1, 5, machines)
    time = rng.lognormal(0.0, 0.5, (types, machines))
    rate = rng.dirichlet(np.ones(types))
    rate *= rng.uniform(0.2, 0.7) * cores.sum() / (rate @ time.mean(axis=1))
    return rate, time, cores, [np.arange(1, k + 1) for k in cores]


def test_the_papers_types_go_where_they_really_are_quickest():
    chosen = to_the_best(TABLE_8["predicted"])
    np.testing.assert_array_equal(chosen, to_the_best(TABLE_8["actual"]))
    np.testing.assert_array_equal(chosen.argmax(axis=1), [1, 1, 1, 0])


def test_a_platform_of_which_nothing_is_said_is_not_taken():
    np.testing.assert_array_equal(to_the_best([[np.nan, 2.0], [1.0, np.inf]]), [[0.0, 1.0], [1.0, 0.0]])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_other_shares_of_two_types_on_two_machines_are_better(seed):
    rate, time, cores, rates = instance(seed, 2, 2)
    plan = least_mean(rate, time, rates, 0.95)
    first, second = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, 41), np.linspace(0, 1, 41)))
    means = []
    for a, b in zip(first, second, strict=True):
        work = [(rate * time[:, 0]) @ [a, b], (rate * time[:, 1]) @ [1 - a, 1 - b]]
        if (np.array(work) <= 0.95 * cores).all():
            means.append(sum(number_present(w, int(k)) for w, k in zip(work, cores, strict=True)) / rate.sum())
    assert plan.response_s <= min(means) * (1 + 1e-6)
    assert plan.at_least_s <= plan.response_s <= plan.at_least_s * (1 + 2e-6)


def test_a_search_that_is_cut_short_says_what_no_shares_can_go_below(monkeypatch):
    """One linear programme alone: its shares are not the best, what it says of the best is below all on a grid."""
    monkeypatch.setattr("analysis.crossplatform.routing.CUTS", 1)
    for seed in range(5):
        rate, time, cores, rates = instance(seed, 2, 2)
        plan, shares = least_mean(rate, time, rates, 0.95), np.linspace(0, 1, 81)
        work = [(np.array([[a, b], [1 - a, 1 - b]]) * rate * time.T).sum(axis=1) for a in shares for b in shares]
        means = [
            sum(number_present(w, int(k)) for w, k in zip(each, cores, strict=True)) / rate.sum()
            for each in work
            if (each <= 0.95 * cores).all()
        ]
        assert 0.5 * min(means) < plan.at_least_s < min(0.9999 * plan.response_s, *means)


@pytest.mark.parametrize("seed", range(4))
def test_a_general_optimiser_finds_nothing_better(seed):
    rate, time, cores, rates = instance(seed, 3, 3)
    plan = least_mean(rate, time, rates, 0.95)

    def mean(flat):
        work = (flat.reshape(3, 3) * rate[:, None] * time).sum(axis=0)
        spare = np.minimum(work, 0.95 * cores)
        beyond = ((work - spare) * 1e3).sum()
        return sum(number_present(w, int(k)) for w, k in zip(spare, cores, strict=True)) / rate.sum() + beyond

    even = np.tile(cores / cores.sum(), 3)
    rows = {"type": "eq", "fun": lambda flat: flat.reshape(3, 3).sum(axis=1) - 1}
    found = minimize(mean, even, bounds=[(0, 1)] * 9, constraints=[rows], method="SLSQP", options={"maxiter": 300})
    assert plan.response_s <= found.fun * (1 + 1e-5)
    assert plan.response_s == pytest.approx(mean(plan.share.ravel()), rel=1e-9)
    np.testing.assert_allclose(plan.share.sum(axis=1), 1.0)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), types=st.integers(1, 8), machines=st.integers(1, 5))
def test_few_types_are_split_however_many_there_are(seed, types, machines):
    """A vertex of the linear programme has no more positive flows than it has rows that bind."""
    rate, time, _, rates = instance(seed, types, machines)
    plan = least_mean(rate, time, rates, 0.97)
    assert (plan.share > 1e-9).sum() <= types + 2 * machines
    assert (plan.used <= 0.97 + 1e-9).all()


@pytest.mark.statistical
def test_a_cluster_routed_by_the_shares_responds_as_promised():
    """Ten runs of 20,000 requests each routed by chance, five standard errors: called false in about 1 of 1,000."""
    rate, time, cores, rates = instance(11, 3, 3)
    plan, means = least_mean(rate, time, rates), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        arrival_s = np.cumsum(rng.exponential(1 / rate.sum(), 20_000))
        kind = rng.choice(3, 20_000, p=rate / rate.sum())
        choice = (rng.random((20_000, 1)) > np.cumsum(plan.share, axis=1)[kind]).sum(axis=1)
        demand_s = time[kind] * rng.gamma(2.0, 0.5, (20_000, 1))
        done = dispatch("fixed", arrival_s, demand_s, cores, choice=np.minimum(choice, 2))
        means.append((done.departure_s - arrival_s)[2000:-2000].mean())
    error = np.std(means, ddof=1) / np.sqrt(10)
    assert error < 0.05 * plan.response_s
    assert abs(np.mean(means) - plan.response_s) < 5 * error


def test_with_little_to_do_every_type_goes_where_it_is_quickest():
    time = np.array(TABLE_8["predicted"]) / 1000
    np.testing.assert_allclose(least_mean(np.full(4, 1e-3), time, [[1.0], [1.0]]).share, to_the_best(time))


def test_a_type_that_never_comes_has_shares_all_the_same():
    plan = least_mean([1.0, 0.0], [[0.5, 0.5], [1.0, 2.0]], [[1.0], [1.0]])
    np.testing.assert_allclose(plan.share.sum(axis=1), 1.0)


def test_more_than_the_machines_may_do_is_refused():
    with pytest.raises(ValueError, match="used more than most_used"):
        least_mean([10.0], [[0.2, 0.2]], [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"rate_per_s": [0.0]}, "rate_per_s must be one finite rate"),
        ({"rate_per_s": [-1.0]}, "none negative"),
        ({"processor_s": [[0.2]]}, r"processor_s must be \(1, 2\), positive and finite"),
        ({"processor_s": [[0.2, np.nan]]}, "positive and finite"),
        ({"rates": [[1.0], [1.0, 2.5]]}, r"rates\[1\] must grow, by no more from one processor to the next"),
        ({"rates": [[1.0], []]}, r"rates\[1\] must grow"),
        ({"most_used": 1.0}, "most_used is 1, must be above 0 and below 1"),
        ({"most_used": 0.0, "rate_per_s": []}, "rate_per_s must .*; most_used is 0"),
    ],
)
def test_faults_are_named_all_at_once(fault, message):
    asked = {"rate_per_s": [1.0], "processor_s": [[0.2, 0.3]], "rates": [[1.0], [1.0]], "most_used": 0.9} | fault
    with pytest.raises(ValueError, match=message):
        least_mean(asked["rate_per_s"], asked["processor_s"], asked["rates"], asked["most_used"])


@pytest.mark.parametrize(
    ("time_s", "message"),
    [([1.0], r"shape \(1,\)"), (np.empty((0, 2)), "must be"), ([[1.0, 2.0], [np.nan] * 2], "nothing of type 1")],
)
def test_what_cannot_be_compared_is_refused(time_s, message):
    with pytest.raises(ValueError, match=message):
        to_the_best(time_s)


def test_types_are_asked_about_one_at_a_time_ten_a_second():
    asked = []

    def predictor(platform, counts, interval_s):
        asked.append(counts)
        size = counts @ [1.0, 3.0] / counts.sum(axis=1)
        return Prediction(*[size / platform.vcpus] * 3, *[size + 1.0] * 3)

    processor_s, response_s = alone(predictor, [PLATFORMS["piii"], PLATFORMS["pd4"]], 2, interval_s=60.0)
    np.testing.assert_allclose(processor_s, [[1.0, 1.0], [3.0, 3.0]])
    np.testing.assert_allclose(response_s, processor_s + 1.0)
    np.testing.assert_array_equal(asked[0], 60.0 * ALONE_PER_S * np.eye(2))
    with pytest.raises(ValueError, match="got 0 and 2"):
        alone(predictor, [], 2)


def test_the_second_thread_of_a_core_adds_a_fifth():
    assert expected_rates(PLATFORMS["xeon_2h_2c_2p"])[[3, 7]] == pytest.approx([4.0, 4.0 * 1.21], rel=0.01)
    np.testing.assert_array_equal(expected_rates(PLATFORMS["pd4"]), np.arange(1, 9))
