"""What looks add: against formulas of known processes, and drawn assignments."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.information import Autocovariance, Redrawn, machine_levels, shares, without_effect
from analysis.effects.methods import method
from analysis.effects.spending import canonical
from models.errors import InputError


def course(rng, machines, periods, memory):
    level = rng.standard_normal((machines, periods))
    for period in range(1, periods):
        level[:, period] = memory * level[:, period - 1] + np.sqrt(1 - memory**2) * level[:, period]
    return level


def test_what_lasts_what_wanders_and_what_is_noise_are_told_apart():
    """Of 20 such fits to 4,000 machines the parts are all within a tenth."""
    rng = np.random.default_rng(1)
    levels = (
        np.sqrt(0.5) * rng.standard_normal((4000, 1))
        + np.sqrt(0.3) * course(rng, 4000, 30, 0.8)
        + np.sqrt(0.2) * rng.standard_normal((4000, 30))
    )
    levels[rng.random(levels.shape) < 0.1] = np.nan
    found = Autocovariance.of(levels)
    assert [found.lasting, found.course, found.noise] == pytest.approx([0.5, 0.3, 0.2], abs=0.06)
    assert found.memory == pytest.approx(0.8, abs=0.1)


def test_independent_periods_tell_alike_and_what_lasts_is_known_at_once():
    noise, lasting = Autocovariance(0.0, 0.0, 0.0, 1.0), Autocovariance(1.0, 0.0, 0.0, 0.0)
    np.testing.assert_allclose(noise.clock(8), np.arange(1, 9) / 8)
    np.testing.assert_allclose(noise.clock(8, past=3), np.arange(1, 9) / 8)
    np.testing.assert_allclose(lasting.clock(8), 1.0)


@pytest.mark.parametrize("past", [0, 1, 4])
def test_the_clock_is_that_of_the_covariances_of_all_looks(past):
    found, periods = Autocovariance(0.4, 0.5, 0.9, 0.1), 12
    at = np.arange(-past, periods)
    covariance = found(at[:, None] - at)
    means = np.tril(np.ones((periods, periods))) / np.arange(1, periods + 1)[:, None]
    takes = np.hstack([np.zeros((periods, past)), means])
    looks = takes @ covariance @ takes.T
    if past:
        before = np.r_[np.full(past, 1 / past), np.zeros(periods)]
        with_past = takes @ covariance @ before
        looks -= np.outer(with_past, with_past) / (before @ covariance @ before)
    neighbours = np.diag(looks, 1) ** 2 / (np.diag(looks)[1:] * np.diag(looks)[:-1])
    np.testing.assert_allclose(found.clock(periods, past), np.r_[np.cumprod(neighbours[::-1])[::-1], 1.0], rtol=1e-10)


def test_a_share_depends_on_no_later_period_and_the_planned_end_has_all():
    levels = course(np.random.default_rng(2), 60, 14, 0.9)
    whole = shares(levels, 2, list(range(1, 13)), 10)
    np.testing.assert_array_equal(shares(levels[:, :7], 2, list(range(1, 6)), 10), whole[:5])
    assert (np.diff(whole) >= 0).all()
    assert whole[9] == 1 < whole[11]
    assert 0.3 < whole[0] < 0.9


def observed(rng, machines=40, periods=6, change=0.0):
    machine, job = np.divmod(np.arange(machines * 3), 3)
    level = np.repeat(course(rng, machines, periods + 2, 0.7), 3, axis=0)
    tables = []
    for period in range(periods + 2):
        having = (period >= 2) & (machine % 3 == 0)
        value = (1 + 0.05 * level[:, period] + 0.01 * rng.standard_normal(len(job))) * (1 + change * having)
        rows = {"period": period, "job": job, "machine": machine, "weight": 1.0, "value": value}
        tables.append(pd.DataFrame(rows | {"treated": having.astype(int)}))
    return pd.concat(tables, ignore_index=True)


def test_levels_are_each_machine_s_own_and_free_of_arm_and_period():
    rows = observed(np.random.default_rng(3), change=0.2)
    levels = machine_levels(rows)
    assert levels.shape == (40, 8)
    having = np.arange(40) % 3 == 0
    np.testing.assert_allclose(levels[having][:, 2:].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(levels.mean(axis=0), 0.0, atol=1e-12)
    assert np.corrcoef(levels[:, 4], levels[:, 5])[0, 1] > 0.4


def test_drawn_assignments_have_the_correlations_of_the_machines_means():
    """A difference of means over drawn machines is correlated as the means are over machines.

    500 draws err by 0.045 (1 - correlation²) in one standard error; 4 are allowed.
    """
    rows = observed(np.random.default_rng(4), change=0.1)
    rows, redrawn, ends = rows[rows["job"] == 0], Redrawn(method("unadjusted")), (2, 4, 7)
    plain = rows.assign(value=rows["value"] / np.where(rows["treated"] > 0, 1.1, 1.0))
    means = []
    for end in ends:
        redrawn.look(without_effect(rows[rows["period"] <= end], None, 0.1), 14)
        means.append(plain[plain["period"].between(2, end)].groupby("machine")["value"].mean())
    expected = np.corrcoef(means)
    found = redrawn.correlation()
    assert (np.abs(found - expected) <= 0.18 * (1 - expected**2) + 0.01).all()
    assert expected[0, 2] < canonical([1.0, 1.1, 1.2])[0, 2]


def test_what_needs_pairs_cannot_be_drawn_anew():
    with pytest.raises(InputError, match="staged cannot be drawn anew without stages"):
        Redrawn(method("staged"))
