from dataclasses import replace

import numpy as np
import pytest

from models.fleet.inventory import build_jobs, build_machines
from sim.fleet.day import load, wander
from tests.helpers.small_days import EPOCH_S, WORLD


@pytest.mark.statistical
def test_common_behaviour_wanders_with_the_autocorrelation_of_its_formula():
    """Mean 1, the spread asked for and five autocorrelations, within 4.5 standard errors each: 5 in 100,000 runs.

    An autocorrelation ρ is measured by how far two epochs are apart: the mean square of their difference is 2 (1 − ρ).
    """
    columns, log_sd = 6000, 0.3
    world = replace(WORLD, horizon_s=86400.0)
    factors = wander(world, "a test", np.full(columns, log_sd))
    logs = (np.log(factors) + log_sd**2 / 2) / log_sd
    assert abs(factors[100].mean() - 1) < 4.5 * np.sqrt(np.expm1(log_sd**2) / columns)
    assert abs((logs[200] ** 2).mean() - 1) < 4.5 * np.sqrt(2 / columns)
    for lag in (1, 6, 12, 36, 72):
        lag_s = lag * EPOCH_S
        expected = 0.45 * np.exp(-lag_s / 1800) + 0.55 * np.exp(-lag_s / 28800)
        apart = ((logs[10 + lag] - logs[10]) ** 2).mean() / 2
        assert apart == pytest.approx(1 - expected, rel=4.5 * np.sqrt(2 / columns))


def test_another_column_of_common_behaviour_changes_none_before_it():
    few, many = (wander(WORLD, "racks", np.full(count, 0.2)) for count in (5, 9))
    np.testing.assert_array_equal(few, many[:, :5])


def test_load_peaks_at_the_peak_hour_and_averages_to_one():
    world = replace(WORLD, horizon_s=86400.0)
    machines = build_machines(world)
    jobs = replace(build_jobs(world, machines), peak_hour=np.full(60, 9.0), diurnal_amplitude=np.full(60, 0.3))
    factor = load(world, jobs)
    np.testing.assert_allclose(factor.mean(axis=0), 1.0, rtol=1e-12)
    assert (factor.argmax(axis=0) == 9 * 12).all()
    np.testing.assert_allclose(factor.max(axis=0), 1.3)


@pytest.mark.statistical
def test_days_differ_in_the_load_of_jobs_that_serve_requests_and_of_no_others():
    """Mean 1 and the spread asked for, within 4.5 standard errors each: 3 in 100,000 runs."""
    year = replace(WORLD, horizon_s=365 * 86400.0, epoch_s=21600.0)
    behaviour = replace(WORLD.population.behaviour, day_load_log_sd=0.3)
    varied = replace(year, population=replace(WORLD.population, behaviour=behaviour))
    jobs = build_jobs(year, build_machines(year))
    ratio = (load(varied, jobs) / load(year, jobs)).reshape(365, 4, jobs.count)
    np.testing.assert_allclose(ratio, ratio[:, :1].repeat(4, axis=1), rtol=1e-12)
    of_days, serves = ratio[:, 0], jobs.latency_critical
    assert 0 < serves.sum() < jobs.count
    np.testing.assert_allclose(of_days[:, ~serves], 1.0, rtol=1e-12)
    draws = of_days[:, serves]
    assert abs(draws.mean() - 1) < 4.5 * np.sqrt(np.expm1(0.3**2) / draws.size)
    assert np.log(draws).std() == pytest.approx(0.3, rel=4.5 / np.sqrt(2 * draws.size))
