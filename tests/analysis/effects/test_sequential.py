"""Intervals that may be looked at any time: the boundary against integrals, and how often they miss."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import nct, norm, t

from analysis.effects.sequential import Boundary, LooksError, monitor, price
from models.randomness import stream
from tests.helpers.monitored_looks import crossing, looks

LOOKS = np.arange(1, 29) / 28


def mixed_normal(z, information):
    """Likelihood of z under effects of any size over that under none, by integration over the size."""
    spread = np.sqrt(information)
    return quad(lambda at: norm.pdf(z, at) * norm.pdf(at, 0, spread), -8 * spread, 8 * spread, limit=200)[0] / norm.pdf(
        z
    )


def mixed_student(value, freedom, information):
    spread = np.sqrt(information)
    at = np.linspace(-9, 9, 4001)
    density = nct.pdf(value, freedom, at * spread) * norm.pdf(at)
    return np.trapezoid(density, at) / t.pdf(value, freedom)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 1.5])
def test_at_the_boundary_the_integrated_likelihood_is_one_over_the_error(share):
    boundary = Boundary(np.inf, 0.9)
    assert mixed_normal(float(boundary.multiplier(share)), boundary.horizon * share) == pytest.approx(10, rel=1e-4)


@pytest.mark.parametrize("freedom", [5.0, 11.0, 49.0])
def test_with_few_clusters_the_noncentral_t_is_integrated(freedom):
    boundary = Boundary(freedom)
    critical = float(boundary.multiplier(1.0))
    assert mixed_student(critical, freedom, boundary.horizon) == pytest.approx(20, rel=2e-3)
    assert float(boundary.evidence(2.0, 1.0)) == pytest.approx(mixed_student(2.0, freedom, boundary.horizon), rel=2e-3)


@pytest.mark.parametrize("freedom", [3.0, 11.0, 199.0, np.inf])
@pytest.mark.parametrize("confidence", [0.9, 0.99])
def test_the_mixture_makes_the_horizon_s_interval_the_narrowest(freedom, confidence):
    boundary = Boundary(freedom, confidence)
    # With another mixture the planned horizon would lie at another share of this one's.
    others = boundary.multiplier(np.exp(np.linspace(-3, 3, 4001)))
    assert float(boundary.multiplier(1.0)) == pytest.approx(others.min(), rel=1e-6)


def test_the_price_is_about_one_and_a_half_and_higher_with_few_clusters():
    assert price() == pytest.approx(1.549, abs=5e-4)
    assert price(199.0) < price(24.0) < price(11.0) < price(5.0) < 1.9


@pytest.mark.parametrize("persistent", [0.0, 0.3, 0.9])
def test_over_28_looks_the_recursion_finds_fewer_misses_than_promised(persistent):
    information = 1 / ((1 - persistent) / np.arange(1, 29) + persistent)
    boundary = Boundary(np.inf)
    assert crossing(boundary.multiplier(information / information[-1]), information) < 0.02
    assert crossing(boundary.multiplier(LOOKS), information) < 0.02
    naive = crossing(np.full(28, 1.96), information)
    assert naive == pytest.approx({0.0: 0.279, 0.3: 0.150, 0.9: 0.073}[persistent], abs=0.01)


@pytest.mark.parametrize("freedom", [11.0, np.inf])
def test_a_late_first_look_makes_the_intervals_narrower_and_no_more_misses(freedom):
    information = np.geomspace(0.5, 4.0, 60)
    early, late = Boundary(freedom), Boundary(freedom, start=0.5)
    assert late.multiplier(1.0) < 0.985 * early.multiplier(1.0)
    assert late.multiplier(0.5) < early.multiplier(0.5)
    # Looked at 60 times up to four horizons a motion leaves it more often, and still less than promised.
    if np.isinf(freedom):
        assert crossing(early.multiplier(information), information) < crossing(
            late.multiplier(information), information
        )
        assert 0.015 < crossing(late.multiplier(information), information) < 0.05
    bound = late.evidence(late.multiplier(0.7), 0.7)
    assert float(late.p_value(bound)) == pytest.approx(0.05, rel=1e-6)


def cumulative(rng, fleets, treated, controls, persistent):
    """Differences of machines' cumulative means with Welch's errors; days of a machine are alike and autocorrelated."""
    sides = []
    for machines in (treated, controls):
        noise = rng.standard_normal((fleets, machines, 28))
        for day in range(1, 28):
            noise[:, :, day] = 0.3 * noise[:, :, day - 1] + np.sqrt(1 - 0.3**2) * noise[:, :, day]
        values = np.sqrt(persistent) * rng.standard_normal((fleets, machines, 1)) + np.sqrt(1 - persistent) * noise
        means = np.cumsum(values, axis=2) / np.arange(1, 29)
        sides.append((means.mean(axis=1), means.var(axis=1, ddof=1) / machines, machines - 1))
    (one, var_one, free_one), (other, var_other, free_other) = sides
    total = var_one + var_other
    freedom = total**2 / (var_one**2 / free_one + var_other**2 / free_other)
    return one - other, np.sqrt(total), freedom


@pytest.mark.statistical
@pytest.mark.parametrize("persistent", [0.05, 0.5])
@pytest.mark.parametrize("treated", [6, 25])
def test_equal_fleets_are_told_apart_in_at_most_six_of_a_hundred(treated, persistent):
    """The true rate is 2.5% at most: of 600 fleets more than 6% miss with probability below 1e-5."""
    change, error, freedom = cumulative(stream(1, f"{treated} {persistent}"), 600, treated, 2 * treated, persistent)
    always = np.stack([Boundary(treated - 1.0).multiplier(LOOKS, each) for each in freedom])
    naive = t.ppf(0.975, freedom)
    missed = (np.abs(change) > always * error).any(axis=1).mean()
    assert missed <= 0.06
    assert (np.abs(change) > naive * error).any(axis=1).mean() > 0.08
    # The boundary of estimates with known errors misses more with so few machines: 4.7% against 2.5%.
    if treated == 6 and persistent == 0.05:
        assert (np.abs(change) > Boundary(np.inf).multiplier(LOOKS) * error).any(axis=1).mean() > 1.5 * missed


def test_what_was_excluded_stays_excluded_and_the_p_value_never_rises():
    found = monitor(looks())
    assert found["excluded"].tolist() == [False, True, True]
    assert (np.diff(found["p_value"]) <= 0).all()
    assert ((found["p_value"] <= 0.05) == found["excluded"]).all()
    assert (found["low"] < found["fixed_low"]).all()
    assert (found["high"] > found["fixed_high"]).all()


def test_another_null_moves_what_is_excluded_and_nothing_else():
    found, other = monitor(looks()), monitor(looks(), null=0.02)
    assert other["excluded"].tolist() == [True, True, True] or other["excluded"].tolist() == [False, False, True]
    assert found[["low", "high"]].equals(other[["low", "high"]])


def test_a_share_said_too_low_widens_the_interval():
    boundary = Boundary(20.0)
    shares = np.linspace(0.02, 1.0, 200)
    widths = boundary.multiplier(shares)
    known = widths[np.isfinite(widths)]
    assert (np.diff(known) <= 1e-12).all()


def test_with_two_machines_the_first_looks_say_nothing():
    found = monitor(looks(freedom=2.0, share=[0.01, 0.5, 1.0]))
    assert np.isinf(found["low"].iloc[0])
    assert np.isfinite(found["low"].iloc[2])
    assert not found["excluded"].iloc[0]


def test_every_fault_of_the_looks_is_told():
    with pytest.raises(LooksError) as caught:
        monitor(looks(error=[0.1, 0.0, np.nan], freedom=[1.0, np.inf, -1.0], share=[0.5, 0.4, 1.0]))
    assert str(caught.value).splitlines() == [
        "look 1: error should be finite and above 0, got 0",
        "look 2: error should be finite and above 0, got nan",
        "look 2: freedom should be above 0, got -1",
        "look 1: share should not fall, got 0.4 after 0.5",
    ]
    with pytest.raises(LooksError, match="columns are missing: share"):
        monitor(looks().drop(columns="share"))
    with pytest.raises(LooksError, match="should be one at least"):
        monitor(looks().iloc[:0])
    with pytest.raises(
        LooksError, match="freedom must be above 0, got 0\nconfidence must be at least 1e-06 and below 1, got 1"
    ):
        Boundary(0.0, 1.0)


def test_a_look_that_spends_no_error_excludes_nothing():
    """At the same share twice, or past the planned end, there is nothing left to spend: its interval has no ends."""
    looks = pd.DataFrame({"change": 0.03, "error": 0.01, "freedom": 49.0, "share": [0.5, 0.5, 1.0, 1.2]})
    said = monitor(looks, spending="pocock")
    assert said["low"].tolist()[1::2] == [-np.inf, -np.inf]
    assert said["high"].tolist()[1::2] == [np.inf, np.inf]
    quiet = monitor(looks.assign(change=1e-4), spending="pocock")
    assert not quiet["excluded"].any()
