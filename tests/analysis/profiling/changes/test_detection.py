"""Planted changes of drawn fleets are what they are called; shares that add up to 1 raise no alarm."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import poisson

from analysis.profiling.changes.detection import (
    WatchCriteria,
    changes,
    detectable,
    drift_of,
    drifting,
    hidden_by_drift,
)
from analysis.profiling.changes.scan import exemplary_root, threshold
from benchmarks.watch import series_of, watched
from models.randomness import stream
from tests.helpers.watched_fleets import HOURS, Design, WatchedFleet

DESIGN = Design(functions=8, days=20)


def alarms(world, what, hours_after=HOURS, design=DESIGN):
    fleet = WatchedFleet(world, what, design, hours_after)
    tags, counts = fleet.cells(fleet.counts())
    return fleet.planted, watched(world, tags, counts, design)


@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize(
    ("what", "kind", "hours"),
    [("regression", "growth", 24), ("improvement", "improvement", 24), ("transient", "transient", 72)],
)
def test_a_planted_change_is_named_with_its_cause(world, what, kind, hours):
    planted, named = alarms(world, what, hours)
    (own,) = (alarm for alarm in named if alarm.function == planted.function)
    assert (own.kind, own.dimension, own.value) == (kind, planted.dimension, planted.value)
    assert abs(own.start - planted.start) <= 6
    assert not [alarm for alarm in named if alarm.function != planted.function and alarm.kind == "growth"]


@pytest.mark.parametrize("world", [2, 3])
def test_cost_that_moves_between_functions_is_a_shift(world):
    planted, named = alarms(world, "refactoring")
    kinds = {alarm.function: alarm.kind for alarm in named}
    assert kinds[planted.function] == "shift"
    assert "growth" not in kinds.values()


def test_releases_without_effect_seasons_and_load_are_no_change():
    assert not [alarm for alarm in alarms(4, "nothing")[1] if alarm.kind != "transient"]


def of_one_stratum(counts):
    tags = pd.DataFrame([("a", "p", "d")], columns=["application", "platform", "datacentre"])
    still = replace(DESIGN, daily=1e-6, lasting=1e-6, churn=0.0)
    return series_of(tags, counts[:, None, :], still)


def test_where_one_function_grows_the_others_are_not_said_to_shrink():
    """Five equal functions; one doubles, so that shares of the others fall by a sixth."""
    rng = stream(6, "one grows")
    load = np.where(np.arange(240) >= 200, [[2.0], [1.0], [1.0], [1.0], [1.0]], 1.0)
    counts = rng.poisson(4000.0 * load / load.sum(axis=0)).astype(float)
    (only,) = changes(of_one_stratum(counts), WatchCriteria())
    assert (only.series, only.kind, only.start) == (0, "growth", 200)
    assert np.exp(only.log_factor) == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("hours", [40, 48])
def test_a_function_that_came_from_nothing_and_stays_grew_from_its_first_hour(hours):
    """Four days; its clearest window is a part of the change, whose other hours seemed a season of the day."""
    mean = np.array([np.where(np.arange(96) >= hours, 7500.0, 0.0), np.full(96, 5000.0)])
    noisy = of_one_stratum(stream(3, "from nothing").poisson(mean).astype(float))
    noisy = replace(noisy, noise=replace(noisy.noise, excess=np.array([50.0, 50.0])))
    [only] = [change for change in changes(noisy, WatchCriteria(), nested=True) if change.series == 0]
    assert (only.kind, only.start, only.end, only.nothing) == ("growth", hours, None, True)


def test_a_weekend_is_a_season_and_a_step_on_a_saturday_is_a_change():
    rng = stream(7, "weekends")
    hours = np.arange(28 * 24)
    weekend = np.where((hours // 24) % 7 >= 5, 1.3, 1.0)
    later = np.where(hours >= 26 * 24, 1.3, 1.0)
    mean = np.array([500.0 * weekend, 500.0 * later, 500.0 * weekend * later, np.full(len(hours), 5e5)])
    named = {one.series: one.kind for one in changes(of_one_stratum(rng.poisson(mean).astype(float)), WatchCriteria())}
    assert named == {1: "growth", 2: "growth"}


def test_what_a_weekend_has_beyond_its_season_must_be_beyond_chance_by_itself():
    """Weekends have 2% more. A Saturday with 4.2% (root 8.06) was growth; one with 10% is a transient."""
    hours = np.arange(28 * 24)
    weekend = np.where((hours // 24) % 7 >= 5, 1.02, 1.0)
    mean = 2000.0 * weekend * np.where(hours // 24 == 26, np.array([[1.022], [1.08]]), 1.0)
    counts = np.append(mean, np.full((1, len(hours)), 5e5), axis=0)
    named = changes(of_one_stratum(counts), WatchCriteria(), 800_000)
    assert [(one.series, one.kind) for one in named] == [(1, "transient")]


def test_drift_from_day_to_day_is_measured():
    """The root of 60 functions' drift over 20 days is within a tenth: over four standard errors."""
    rng = stream(8, "drift")
    daily = np.repeat(rng.normal(0.0, 0.05, (60, 20)), 24, axis=1)
    counts = np.append(rng.poisson(2000.0 * np.exp(daily)), np.full((1, 480), 1e7), axis=0).astype(float)
    series = of_one_stratum(counts)
    drift, walk, _ = drift_of(series)
    assert np.sqrt(drift) == pytest.approx(np.full(61, 0.05), rel=0.1)
    assert (np.sqrt(walk) < 0.01).all()
    assert not changes(drifting(series), WatchCriteria())


def test_one_large_steady_function_does_not_decide_that_nothing_drifts():
    """Two days of 60 functions differ by 3%; none was said to drift in 29 of 30 worlds."""
    rng = stream(16, "steady beside drift")
    roots = []
    for _ in range(10):
        daily = np.repeat(rng.normal(0.0, 0.03, (60, 2)), 24, axis=1)
        mean = np.append(200.0 * np.exp(daily), np.full((1, 48), 1e7), axis=0)
        roots.append(np.sqrt(drift_of(of_one_stratum(rng.poisson(mean).astype(float)))[0][0]))
    assert np.mean(roots) == pytest.approx(0.03, rel=0.2)
    assert min(roots) > 0.0


def of_applications(counts):
    """Return the series of (functions, applications, bins) counts."""
    names = [f"a{at}" for at in range(counts.shape[1])]
    tags = pd.DataFrame({"application": names, "platform": "p", "datacentre": "d"})
    return series_of(tags, counts, replace(DESIGN, daily=1e-6, lasting=1e-6, churn=0.0))


def drifting_applications(together):
    """Return counts of 40 functions of one application of 25 each and of 40 of all, whose days differ by 5%."""
    rng = stream(11, "drift of applications")
    daily = rng.normal(0.0, 0.05, (80, 1 if together else 25, 20))
    own = np.arange(80)[:, None] >= 40
    at_home = own | (np.arange(25) == np.arange(80)[:, None] % 25)
    mean = 2000.0 * np.exp(np.repeat(daily, 24, axis=2)) * (at_home / at_home.sum(axis=1, keepdims=True))[:, :, None]
    return np.append(rng.poisson(mean), np.full((1, 25, 480), 1e5), axis=0).astype(float)


def test_a_function_of_many_applications_drifts_less_where_each_goes_its_own_way():
    """Roots of 5% and of 5%/√25; both were said to be 2.2%: seven were named falsely, the one that grew was not."""
    counts = drifting_applications(together=False)
    series = of_applications(counts)
    assert series.concentration()[[0, 40]] == pytest.approx([1.0, 0.04], abs=1e-3)
    drift = np.sqrt(drift_of(series)[0])
    assert drift[:40] == pytest.approx(np.full(40, 0.05), rel=0.1)
    assert drift[40:80] == pytest.approx(np.full(40, 0.01), rel=0.15)
    criteria = WatchCriteria(min_cost=0.0)
    assert not changes(drifting(series), criteria)
    counts[40, :, 456:] *= 1.1
    (growth,) = changes(drifting(of_applications(counts)), criteria)
    assert (growth.series, growth.kind) == (40, "growth")


def test_functions_of_many_applications_that_drift_together_drift_as_much():
    drift = np.sqrt(drift_of(of_applications(drifting_applications(together=True)))[0])
    assert drift[:80] == pytest.approx(np.full(80, 0.05), rel=0.2)


def of_rare_functions():
    """Return counts of 30 functions of 25 applications whose days differ by 5%, and of 40 rare ones.

    Of these each sample is of another application, so that no two are of one.
    """
    rng = stream(12, "rare functions")
    daily = np.repeat(rng.normal(0.0, 0.05, (30, 25, 4)), 24, axis=2)
    rare = np.zeros((40, 25, 96))
    for function in range(40):
        rare[function, rng.permutation(25)[:20], rng.integers(96, size=20)] = 1.0
    return np.concatenate([rng.poisson(70.0 * np.exp(daily)), rare, np.full((1, 25, 96), 1e5)])


def test_rare_functions_of_many_applications_hide_no_growth():
    """Their concentration of 0 was divided by: drift was said to be 10^144, so that nothing was ever found."""
    counts = of_rare_functions()
    counts[7, :, 72:] *= 3.0
    series = drifting(of_applications(counts))
    assert (series.concentration()[30:70] == 0.0).all()
    assert np.sqrt(series.noise.drift).max() < 0.06
    (growth,) = changes(series, WatchCriteria())
    assert (growth.series, growth.kind) == (7, "growth")
    hidden = hidden_by_drift(replace(series, chance=None), WatchCriteria(), 71)
    assert hidden.least_drift == pytest.approx(np.sqrt(series.noise.of_days(1.0, np.full(1, 3.0))[0, 0]), rel=0.01)
    assert hidden.most_drift == pytest.approx(hidden.least_drift, rel=0.01)


@pytest.mark.parametrize("steps", ["walk", "slope"])
def test_functions_that_drift_slowly_are_not_named_and_one_that_grows_is(steps):
    """Only days that have nothing to do with others were measured: one walk of 60 was named, and six of 60 slopes."""
    rng = stream(8, "slow drift")
    daily = rng.normal(0.0, 0.008, (60, 20)) if steps == "walk" else np.tile(rng.normal(0.0, 0.003, (60, 1)), 20)
    mean = 2000.0 * np.exp(np.repeat(np.cumsum(daily, axis=1), 24, axis=1))
    counts = np.append(rng.poisson(mean), np.full((1, 480), 1e6), axis=0).astype(float)
    series = of_one_stratum(counts)
    if steps == "walk":
        assert np.sqrt(drift_of(series)[1]) == pytest.approx(np.full(61, 0.008), rel=0.25)
    assert not changes(drifting(series), WatchCriteria())
    counts[0, 456:] = rng.poisson(1.3 * mean[0, 456:])
    (growth,) = changes(drifting(of_one_stratum(counts)), WatchCriteria())
    assert (growth.series, growth.kind) == (0, "growth")


def test_growth_is_seen_beside_the_weeks_before_it_where_all_time_hides_it():
    """Of a walk of 0.8% a day a day's level differs from that of 27 days by 2.4%, and from that of 7 days by 1.4%."""
    rng = stream(10, "slow drift and growth")
    mean = 20_000.0 * np.exp(np.repeat(np.cumsum(rng.normal(0.0, 0.008, (60, 28)), axis=1), 24, axis=1))
    mean[0, 27 * 24 :] *= 1.12
    counts = np.append(rng.poisson(mean), np.full((1, 672), 1e7), axis=0).astype(float)
    series = drifting(of_one_stratum(counts))
    (growth,) = changes(series, WatchCriteria())
    assert (growth.series, growth.kind, growth.start) == (0, "growth", 27 * 24)
    assert growth.log_factor == pytest.approx(np.log(1.12), abs=3.0 * growth.error)
    assert growth.error < 0.02
    assert not changes(replace(series, reach=None), WatchCriteria())


def test_what_drift_hides_is_that_of_the_days_that_a_window_is_compared_with():
    """By hand: days of sd 3% and steps of 1%, of 28 days; one function is compared with 7 of them, others with 27."""
    series = of_one_stratum(np.full((3, 672), 1e4))
    noise = replace(series.noise, drift=np.full(1, 0.03**2), walk=np.full(1, 0.01**2))
    series = replace(series, noise=noise, reach=np.array([7 * 24, 0, 0]))
    hidden = hidden_by_drift(series, WatchCriteria(), 3)
    near, far = (
        np.sqrt(0.03**2 * (1 + 1 / days) + 0.01**2 * ((1 + days) / 3 + (1 + 1 / days) / 6)) for days in (7, 27)
    )
    assert [hidden.least_drift, hidden.most_drift] == pytest.approx([near, far], rel=1e-9)
    bound = threshold(3, len(series.geometry.lengths) * 672, 0.01)
    assert [hidden.least, hidden.most] == pytest.approx(np.exp([bound * near, bound * far]), rel=1e-9)


def drifted(rng, days, sd):
    """Return the series of 60 functions whose days differ by a standard deviation, beside all others."""
    daily = np.repeat(rng.normal(0.0, sd, (60, days)), 24, axis=1)
    counts = np.append(rng.poisson(1000.0 * np.exp(daily)), np.full((1, 24 * days), 1e5), axis=0)
    return drifting(of_one_stratum(counts.astype(float)))


def test_of_drift_that_may_be_chance_nothing_is_said():
    """In many healthy worlds a variance above 0 is fitted; in none of these it is beyond two of its standard errors."""
    rng = stream(14, "chance of drift")
    healthy = [drifted(rng, 4, 0.0) for _ in range(20)]
    assert sum(series.noise.drifts for series in healthy) >= 5
    assert [hidden_by_drift(series, WatchCriteria(), 61) for series in healthy] == [None] * 20


def test_the_error_of_drift_is_its_spread_over_worlds():
    """Of 20 worlds: the standard error of a standard deviation is 16% of it."""
    rng = stream(15, "error of drift")
    worlds = [drifted(rng, 10, 0.05) for _ in range(20)]
    assert all(hidden_by_drift(series, WatchCriteria(), 61) for series in worlds)
    spread = np.std([series.noise.drift[0] for series in worlds])
    assert np.mean([series.chance.drift[0] for series in worlds]) == pytest.approx(spread, rel=0.5)


@pytest.mark.parametrize(("part", "low", "high"), [(0.65, 0, 8), (1.0, 6, 26), (1.35, 24, 30)])
def test_growth_is_found_beyond_what_drift_hides_and_hardly_below(part, low, high):
    """Steps of 2% a day for 56 days; said was 2.4 times as large a growth, of all days before instead of 7."""
    rng = stream(13, "hidden by drift")
    criteria, found = WatchCriteria(min_cost=0.0), 0
    for _ in range(3):
        walk = np.repeat(np.cumsum(rng.normal(0.0, 0.02, (60, 56)), axis=1), 24, axis=1)
        mean = np.append(2e4 * np.exp(walk), np.full((1, 56 * 24), 1e8), axis=0)
        hidden = hidden_by_drift(drifting(of_one_stratum(mean)), criteria, 61)
        mean[:10, -24:] *= hidden.least**part
        named = changes(drifting(of_one_stratum(rng.poisson(mean).astype(float))), criteria)
        found += sum(change.series < 10 and change.kind == "growth" and change.start >= 54 * 24 for change in named)
    assert low <= found <= high


def test_growth_by_the_stated_factor_is_found_four_times_in_five():
    """Of 200 draws 160 are expected, ± 6, by the last window alone; growth by half of it is found in less than half."""
    rng = stream(9, "stated factor")
    mean = np.full((1, 240), 300.0)
    rest = np.full((1, 240), 3e9)
    healthy = of_one_stratum(np.concatenate([mean, rest]))
    criteria = WatchCriteria(min_cost=0.0)
    size = float(healthy.counts()[0].sum() / healthy.everything.sum())
    (stated,) = detectable(healthy, criteria, 1000, [size])
    assert stated.limit < stated.factor
    found = {}
    for part, name in ((1.0, "whole"), (0.5, "half")):
        grown = np.where(np.arange(240) >= 216, 1.0 + part * (stated.factor - 1.0), 1.0)
        draws = np.concatenate([rng.poisson(mean * grown, (200, 240)).astype(float), rest])
        named = changes(of_one_stratum(draws), criteria, 1000)
        found[name] = sum(one.kind == "growth" for one in named)
    assert found["whole"] >= 140
    assert found["half"] < 100


def test_the_threshold_is_chernoffs_bound():
    """A count of mean 3 exceeds what root 4 stands for less often than exp(−8)."""
    counts = np.arange(3, 60)
    roots = exemplary_root(counts / 3.0, np.full(57, 3.0), np.full(57, 3e9), np.ones(57))
    over = counts[roots >= 4.0][0]
    assert poisson.sf(over - 1, 3.0) <= np.exp(-8.0)
    assert threshold(1, 1, 2.0 * np.exp(-8.0)) == pytest.approx(4.0)
