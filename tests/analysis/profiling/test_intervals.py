"""Effective sample sizes and intervals of shares under machine-clustered sampling."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, t

from analysis.profiling.intervals import (
    ClusteredProfile,
    design,
    intervals_of,
    needed,
    share_intervals,
    share_variances,
)
from analysis.profiling.query import Query
from analysis.statistics import NotEnoughDataError
from models.randomness import stream
from tests.helpers.profile_in_memory import ProfileTable

FUNCTIONS, JOBS = 200, 15


def as_table(counts, weight=1000):
    machine, function = np.nonzero(counts)
    seen = counts[machine, function]
    return pd.DataFrame({"function": function, "machine": machine, "samples": seen, "value": seen * weight})


def dirichlet_counts(rng, machines, shares, concentration=60.0, samples=200):
    """Counts (machines, functions): each machine has shares of its own and a number of samples of its own."""
    sizes = rng.negative_binomial(3, 3 / (3 + samples), machines)
    own = rng.dirichlet(shares * concentration, machines)
    return np.array([rng.multinomial(size, share) for size, share in zip(sizes, own, strict=True)])


def job_profiles(rng):
    profiles = np.zeros((JOBS, FUNCTIONS))
    for profile in profiles:
        profile[rng.permutation(FUNCTIONS)[:40]] = 1 / np.arange(1, 41)
    return profiles / profiles.sum(axis=1, keepdims=True)


def job_counts(rng, machines, profiles, samples=300):
    """Counts where every machine runs four of the jobs in random proportions."""
    counts = np.zeros((machines, FUNCTIONS), dtype=np.int64)
    for machine in range(machines):
        loads = rng.dirichlet(np.full(4, 3.0))
        for job, load in zip(rng.choice(JOBS, 4, replace=False), loads, strict=True):
            own = rng.dirichlet(profiles[job] * 60 + 1e-9)
            counts[machine] += rng.multinomial(rng.poisson(samples * load), own)
    return counts


def covered(found, truth, top):
    found = found.set_index("function").reindex(top)
    low, high = found["low"].fillna(0.0), found["high"].fillna(1e-4)
    return float(((low <= truth[top]) & (truth[top] <= high)).mean())


def slow_variances(counts):
    """The linearised variances, machine by machine."""
    sizes, total = counts.sum(axis=1), counts.sum()
    made = []
    for column in counts.T:
        share, variance = column.sum() / total, 0.0
        for mine, size in zip(column, sizes, strict=True):
            variance += ((mine - share * size) / total) ** 2 / (1 - size / total)
        made.append(variance)
    return np.array(made)


def test_variances_are_those_of_a_loop_over_machines():
    counts = dirichlet_counts(stream(1, "loop"), 12, np.full(8, 1 / 8))
    data = ClusteredProfile.of(as_table(counts))
    expected = slow_variances(counts)[data.keys["function"]]
    np.testing.assert_allclose(share_variances(data), expected, rtol=1e-9)


def test_the_effective_number_of_samples_has_the_same_sum_of_squared_errors():
    """With n independent samples Σ p (1 − p) / n; a sample of weight w counts w times in Kish's n Σw² / (Σw)²."""
    counts = dirichlet_counts(stream(10, "worth"), 15, np.array([0.5, 0.3, 0.2]), samples=40)
    share = counts.sum(axis=0) / counts.sum()
    found = design(as_table(counts))
    expected = np.sum(share * (1 - share)) / slow_variances(counts).sum()
    assert found.effective_samples == pytest.approx(expected)
    assert (found.samples, found.clusters) == (counts.sum(), int((counts.sum(axis=1) > 0).sum()))
    assert found.design_effect == pytest.approx(counts.sum() / expected)
    table = pd.DataFrame({"function": ["f", "g"], "machine": [1, 2], "samples": [2, 1], "value": [2, 9]})
    assert design(table).weighting_effect == pytest.approx(3 * (1 + 1 + 81) / (1 + 1 + 9) ** 2)


def test_degrees_and_intervals_are_the_formulas_written_out():
    """Satterthwaite's degrees; Clopper and Pearson's limits with effective samples times (z / t)²."""
    counts = dirichlet_counts(stream(11, "degrees"), 30, np.array([0.6, 0.3, 0.1]), 8.0, 50)
    found = share_intervals(as_table(counts)).set_index("function")
    sizes, total, machines = counts.sum(axis=1), counts.sum(), int((counts.sum(axis=1) > 0).sum())
    for function, column in enumerate(counts.T):
        share = column.sum() / total
        squares = ((column - share * sizes) / total) ** 2 / (1 - sizes / total)
        degrees = 2 * squares.sum() ** 2 / ((squares**2).sum() - squares.sum() ** 2 / machines)
        assert 1 < degrees < machines - 1
        assert found.loc[function, "degrees"] == pytest.approx(degrees)
        number = share * (1 - share) / squares.sum() * (1.959964 / t.ppf(0.975, degrees)) ** 2
        yes, no = share * number, (1 - share) * number
        limits = beta.ppf(0.025, yes, no + 1), beta.ppf(0.975, yes + 1, no)
        assert (found.loc[function, "low"], found.loc[function, "high"]) == pytest.approx(limits, rel=1e-5)


def test_rows_of_the_same_pair_and_their_order_do_not_matter():
    table = as_table(dirichlet_counts(stream(2, "order"), 9, np.full(5, 0.2)))
    halves = pd.concat(
        [table.assign(samples=table["samples"] * 0, value=500), table.assign(value=table["value"] - 500)]
    )
    shuffled = halves.sample(frac=1.0, random_state=3)
    pd.testing.assert_frame_equal(share_intervals(table), share_intervals(shuffled))


def test_samples_each_of_a_machine_of_its_own_give_the_exact_binomial_interval():
    n, k = 4000, 600
    table = pd.DataFrame({"function": np.arange(n) < k, "machine": range(n), "samples": 1, "value": 7})
    row = share_intervals(table).set_index("function").loc[True]
    exact = binomtest(k, n).proportion_ci(0.95, method="exact")
    assert row["design_effect"] == pytest.approx(1.0, rel=2e-3)
    assert (row["low"], row["high"]) == pytest.approx((exact.low, exact.high), rel=2e-3)


@pytest.mark.statistical
def test_intervals_of_the_hundred_largest_shares_cover_under_clustering():
    """Coverage of 100 functions over 25 fleets of 120 machines in 0.93..0.97, for either kind of clustering.

    Functions of one fleet go together, so the coverage's standard error is about 0.006: false alarm below 1e-2.
    """
    rng = stream(3, "coverage")
    shares = 1 / np.arange(1, FUNCTIONS + 1)
    shares /= shares.sum()
    profiles = job_profiles(rng)
    kinds = {
        "dirichlet": (shares, lambda: dirichlet_counts(rng, 120, shares)),
        "jobs": (profiles.mean(axis=0), lambda: job_counts(rng, 120, profiles)),
    }
    for truth, draw in kinds.values():
        top = np.argsort(-truth)[:100]
        coverage = np.mean([covered(share_intervals(as_table(draw())), truth, top) for _ in range(25)])
        assert 0.93 <= coverage <= 0.97


@pytest.mark.statistical
def test_intervals_that_ignore_the_clusters_would_not_cover():
    """The same with every sample taken as independent covers below 0.75; far from any chance of passing."""
    rng = stream(4, "naive")
    shares = np.full(50, 0.02)
    inside = []
    for _ in range(20):
        counts = dirichlet_counts(rng, 60, shares).sum(axis=0)
        p = counts / counts.sum()
        half = 1.96 * np.sqrt(p * (1 - p) / counts.sum())
        inside.append(np.mean(np.abs(p - shares) <= half))
    assert np.mean(inside) < 0.75


@pytest.mark.statistical
def test_the_design_effect_is_that_of_the_beta_binomial_law():
    """With m samples on each machine it is 1 + (m − 1) / (a + 1) (Kish 1965); within 15%, about 4 standard errors."""
    rng = stream(5, "effect")
    shares, concentration, each = np.full(20, 0.05), 40.0, 100
    own = rng.dirichlet(shares * concentration, 400)
    counts = np.array([rng.multinomial(each, share) for share in own])
    assert design(as_table(counts)).design_effect == pytest.approx(1 + (each - 1) / (concentration + 1), rel=0.15)


@pytest.mark.statistical
def test_unequal_weights_have_kishs_effect():
    """Independent samples, half of weight 1 and half of weight 9: n Σw² / (Σw)² = 1.64; within 10%, 4 errors."""
    rng = stream(6, "weights")
    n = 6000
    weight = np.where(np.arange(n) % 2, 9, 1)
    table = pd.DataFrame({"function": rng.integers(0, 10, n), "machine": range(n), "samples": 1, "value": weight})
    found = design(table)
    assert found.weighting_effect == pytest.approx(1.64)
    assert found.design_effect == pytest.approx(1.64, rel=0.1)


@pytest.mark.statistical
def test_as_many_machines_as_are_said_to_be_needed_give_the_half_width():
    """The half-width of the largest share with that many machines is within 25% of the one wanted (over 4 errors)."""
    rng = stream(8, "needed")
    shares = np.array([0.3, 0.3, 0.2, 0.2])
    first = share_intervals(as_table(dirichlet_counts(rng, 100, shares)))
    clusters = int(needed(first, 100, 0.01)["clusters_needed"].iloc[0])
    row = share_intervals(as_table(dirichlet_counts(rng, clusters, shares))).iloc[0]
    assert clusters > 100
    assert (row["high"] - row["low"]) / 2 == pytest.approx(0.01, rel=0.25)


@pytest.mark.parametrize(
    ("error", "effect", "wanted", "clusters", "samples"),
    [(0.1, 4.0, 0.008, 13, 500), (0.04, 0.64, 0.0008, 20, 200), (0.05, 0.5, 0.0025, 10, 50)],
)
def test_what_is_needed_is_where_the_variance_is_as_wanted(error, effect, wanted, clusters, samples):
    """Between and within are 0.0075 and 0.25 / 100; then 0 and 0.0016 of 100 samples; then as it is."""
    one = pd.DataFrame({"f": ["a"], "share": [0.5], "standard_error": [error], "samples": [7], "design_effect": effect})
    found = needed(one, 10, 1.959964 * wanted**0.5 * (1 + 1e-7))
    assert found[["clusters_needed", "samples_needed"]].to_numpy().tolist() == [[clusters, samples]]


def test_no_number_of_samples_helps_where_machines_differ_too_much():
    counts = dirichlet_counts(stream(9, "never"), 50, np.array([0.5, 0.5]), concentration=5.0)
    found = needed(share_intervals(as_table(counts)), 50, 0.01)
    assert np.isinf(found["samples_needed"]).all()
    assert (found["clusters_needed"] > 50).all()


counted = st.lists(st.lists(st.integers(0, 50), min_size=3, max_size=3), min_size=1, max_size=8)


@settings(max_examples=25)
@given(counted)
def test_shares_lie_in_their_intervals_and_these_in_0_to_1(counts):
    counts = np.array(counts)
    if counts.sum() == 0:
        return
    found = share_intervals(as_table(counts))
    assert found["share"].sum() == pytest.approx(1.0)
    assert ((found["low"] >= 0) & (found["high"] <= 1)).all()
    assert ((found["low"] <= found["share"] + 1e-9) & (found["share"] <= found["high"] + 1e-9)).all()


def test_machines_all_alike_leave_no_interval_beyond_rounding():
    found = share_intervals(as_table(np.array([[7, 0, 4]] * 3)))
    assert ((found["low"] < found["share"]) & (found["share"] < found["high"])).all()
    assert (found["effective_samples"] == 3).all()


def test_one_machine_alone_says_nothing_of_the_fleet():
    table = pd.DataFrame({"function": ["f", "g"], "machine": 1, "samples": 500, "value": 500})
    found = share_intervals(table)
    assert found[["low", "high"]].to_numpy().tolist() == [[0.0, 1.0]] * 2
    with pytest.raises(NotEnoughDataError, match="2 clusters"):
        design(table)


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ({"function": ["f"], "samples": [1], "value": [1]}, {}, "columns are missing: machine"),
        ({"machine": [1], "samples": [1], "value": [1]}, {}, "there is no key"),
        ({"function": ["f"], "machine": [1], "samples": [1], "value": [-1]}, {}, "not negative"),
        ({"function": ["f"], "machine": [1], "samples": [1], "value": [1]}, {"confidence": 1.0}, "confidence"),
    ],
)
def test_what_is_wrong_is_said(table, options, said):
    with pytest.raises(ValueError, match=said):
        share_intervals(pd.DataFrame(table), **options)


def test_intervals_of_some_are_those_that_they_have_among_all():
    rng = stream(4, "intervals of some")
    rows = as_table(dirichlet_counts(rng, 30, rng.dirichlet(np.ones(12)))).rename(columns={"machine": "visit"})
    rows = rows.assign(function="f" + rows["function"].astype(str), event="cycles")
    some = intervals_of(ProfileTable(rows), Query("cycles", ("function",)), pd.DataFrame({"function": ["f3", "f7"]}))
    among_all = share_intervals(rows.drop(columns="event"), cluster="visit").set_index("function")
    expected = among_all.loc[some["function"]].reset_index()
    assert set(some["function"]) == {"f3", "f7"}
    pd.testing.assert_frame_equal(some, expected)


@pytest.mark.parametrize("seed", range(20))
def test_a_profile_of_one_key_is_worth_its_samples(seed):
    """Rounding left an error of some 1e-17, by which nothing was divided."""
    samples = stream(seed, "one key").integers(1, 10**10, 11)
    rows = {"f": "only", "machine": range(11), "samples": samples, "value": samples * 0.3}
    worth = design(pd.DataFrame(rows))
    assert (worth.effective_samples, worth.design_effect) == (samples.sum(), 1.0)
