"""Plans: the size found is that of the formula where there is one, and holds later."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import norm

from analysis.effects.planning import Wanted, fewest, forecast, ranked
from analysis.effects.rehearsals import Assumed, Course, Rehearsal, spans
from analysis.effects.study import Answers
from tests.helpers.effect_studies import past
from tests.helpers.effect_studies import small_study as study


class Told(NamedTuple):
    """An estimator that errs as it is told: normal, with standard deviation sd / √machines round the truth."""

    sd: float
    seed: int
    bias: float = 0.0
    name: str = "told"

    def many(self, _cells, treated):
        size = treated.sum(axis=1)
        error = self.sd / np.sqrt(size)
        draws = np.random.default_rng(self.seed).standard_normal(len(treated))
        return Answers(0.01 + self.bias + error * draws, error, np.full(len(treated), 1e9))


def told(sd, machines=4000, bias=0.0, courses=1):
    """Return a rehearsal of that estimator; cells are not looked at."""

    def arrange(size, draws, rng):
        treated = np.zeros((draws, machines), dtype=bool)
        treated[:, :size] = True
        return Told(sd, int(rng.integers(10**9)), bias), treated

    return Rehearsal("told", "told", (Course(study().cells, 0.01, arrange),) * courses, 24.0, 2, machines // 2)


@pytest.mark.statistical
def test_machines_margin_and_power_are_those_of_the_formula():
    """False alarms: below 1e-3 of seeds; 4000 draws, n known to 2%, tolerance 6%."""
    sd, wanted = 0.04, Wanted(detect=0.01, draws=4000)
    plan = fewest(told(sd), wanted)
    exact = (sd * (norm.ppf(0.975) + norm.ppf(0.95)) / 0.01) ** 2
    assert plan.enough
    assert plan.trusted
    assert plan.forecast.machines == pytest.approx(exact, rel=0.06)
    assert plan.forecast.margin == pytest.approx(norm.ppf(0.975) * sd / np.sqrt(plan.forecast.machines), rel=1e-6)
    assert plan.forecast.power == pytest.approx(0.95, abs=0.015)
    assert plan.forecast.coverage == pytest.approx(0.95, abs=0.015)
    assert plan.machine_hours == 24.0 * plan.forecast.machines


def test_a_fleet_that_is_too_small_says_what_it_can_see():
    plan = fewest(told(0.04, machines=40), Wanted(detect=0.01, draws=2000))
    assert not plan.enough
    assert plan.forecast.machines == 20
    assert plan.forecast.smallest == pytest.approx(0.04 / np.sqrt(20) * (1.96 + 1.645), rel=0.05)


def test_scale_widens_all_errors():
    plain, wide = (forecast(replace(told(0.04), scale=scale), 100, Wanted(draws=500)) for scale in (1.0, 2.0))
    assert wide.margin == pytest.approx(2 * plain.margin)
    assert wide.smallest == pytest.approx(2 * plain.smallest)
    assert wide.coverage == plain.coverage


def test_designs_whose_intervals_miss_the_truth_come_last():
    wanted = Wanted(draws=500)
    biased, honest = fewest(told(0.01, bias=0.01), wanted), fewest(told(0.05), wanted)
    assert not biased.trusted
    assert biased.forecast.machines < honest.forecast.machines
    assert ranked([biased, honest]) == [honest, biased]


def test_monte_carlo_error_counts_what_courses_differ_by():
    rows = forecast(told(0.04, courses=4), 100, Wanted(draws=400))
    share = rows.power
    assert rows.power_error >= np.sqrt(share * (1 - share) / 400) - 1e-12


@pytest.mark.parametrize(("name", "value"), [("detect", 0.0), ("power", 1.0), ("confidence", -1.0), ("draws", 5)])
def test_what_makes_no_sense_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        replace(Wanted(), **{name: value})


@pytest.mark.statistical
def test_a_plan_holds_on_later_periods_of_the_same_fleet():
    """False alarms: below 1% of seeds; the margin is known to 2% of 3000 draws, fleets of 200 machines differ by 3%."""
    whole = past(periods=12, machines=200, sd=0.04)
    first, later = (
        replace(whole, table=whole.table[rows].reset_index(drop=True))
        for rows in (whole.table["period"] < 6, whole.table["period"] >= 6)
    )
    wanted = Wanted(detect=0.01, draws=1000)
    planned, seen = (next(spans(one, 1.0, Assumed(0.01, 0.0, 0.0), ["adjusted"])) for one in (first, later))
    plan = fewest(planned, wanted)
    real = forecast(seen, plan.forecast.machines, replace(wanted, seed=2))
    assert plan.forecast.margin == pytest.approx(real.margin, rel=0.08)
    assert plan.forecast.power == pytest.approx(real.power, abs=0.05)
