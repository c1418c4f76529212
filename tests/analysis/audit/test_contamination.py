"""Controls that have the feature, and clocks that differ between the arms, on fleets of another making."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from analysis.audit import clocks, contamination
from analysis.audit.case import Audited, examine
from analysis.audit.guards import GUARDS
from analysis.effects.observations import FlaggedRows
from tests.helpers.outside_guards import planted


def finding_of(code, strength, number=1):
    table, made = planted(code, strength, 5, number)
    (finding,) = examine(table, pd.DataFrame(made.jobs), guards={code: GUARDS[code]}).findings
    return finding, made


def test_share_and_jump_of_contaminated_controls_are_those_planted():
    finding, made = finding_of("contaminated_controls", 0.5)
    assert finding.evidence["share"] == pytest.approx(0.5, abs=0.11)
    change = made.truth["instances"]
    assert finding.evidence["jump"] == pytest.approx(change / (1 + change / 2), abs=0.05)  # of what controls now do


def test_the_machines_it_names_are_those_that_have_the_feature():
    """Half of 50 controls have a gain of 30% and do not say so: nine in ten of those named are among them."""
    finding, made = finding_of("contaminated_controls", 0.5)
    table, _ = planted("contaminated_controls", 0.5, 5, 1)
    hidden = (table["value"] == made.rows["on"]) & (made.rows["on"] != made.rows["off"]) & (table["treated"] == 0)
    having = set(table.loc[hidden & (table["period"] >= made.condition.before), "machine"].astype(str))
    named = [name.removeprefix("machine ") for name in finding.evidence if name.startswith("machine ")]
    assert np.mean([name in having for name in named]) >= 0.9
    assert len(named) >= 10
    assert finding.what.endswith("others")


def test_the_likelihood_ratio_of_a_mixture_is_that_of_its_densities():
    """One share and one jump, machine by machine, with SciPy's densities."""
    rng = np.random.default_rng(4)
    controls, treated = (values - values.mean() for values in (rng.normal(0, 1, 30), rng.normal(0, 1, 20)))
    controls[:15] += 1.0
    controls -= controls.mean()
    ratio, share, jump = contamination._mixture(controls, treated, np.array([1.5]))
    everything = np.r_[controls, treated]
    sd = (everything.var() - 0.6 * share * (1 - share) * jump**2) ** 0.5
    expected = norm.logpdf(treated, 0, sd).sum() - norm.logpdf(everything, 0, everything.std()).sum()
    for change in controls:
        low, high = norm.pdf(change, -share * jump, sd), norm.pdf(change, (1 - share) * jump, sd)
        expected += np.log((1 - share) * low + share * high)
    assert ratio == pytest.approx(expected, rel=1e-9)
    assert jump == 1.5


def test_equal_changes_are_no_mixture():
    assert contamination._mixture(np.zeros(9), np.zeros(9), np.array([0.1])) == (0.0, 0.0, 0.0)


def test_late_clocks_are_told_by_how_much_and_which_way():
    finding, _ = finding_of("shifted_clocks", 1.0)
    assert finding.evidence["shift"] == -1.0
    assert "rows of machines with the feature are 1 too late" in finding.what
    assert "subtract 1 from period" in finding.remedy


@pytest.mark.parametrize("shift", [-2, 0, 1])
def test_the_correlation_of_shifted_steps_is_that_of_pairs(shift):
    """Each pair of a job's steps so many periods apart, one by one."""
    rng = np.random.default_rng(2)
    treated, others = rng.normal(size=(2, 3, 6))
    rows, rows_of_others = rng.integers(0, 5, (2, 3, 6)).astype(float)
    xy = xx = yy = 0.0
    for job in range(3):
        for here in range(6):
            if 0 <= here + shift < 6:
                m, n = rows[job, here], rows_of_others[job, here + shift]
                weight = m * n / max(m + n, 1)
                x, y = treated[job, here], others[job, here + shift]
                xy, xx, yy = xy + weight * x * y, xx + weight * x * x, yy + weight * y * y
    found = clocks._correlation(treated, others, rows, rows_of_others, shift)
    assert found == pytest.approx(xy / (xx * yy) ** 0.5, rel=1e-12)


def test_the_feature_itself_is_no_part_of_a_course():
    """Courses of both arms are the same to the digit, but for a gain of 50% from the study's first period on."""
    period, machine, job = (part.ravel() for part in np.indices((8, 40, 3)))
    course = np.random.default_rng(3).normal(0.0, 0.02, (8, 3))[period, job]
    table = pd.DataFrame({"period": period, "job": job, "machine": machine, "weight": 1.0})
    table = table.assign(treated=((machine < 20) & (period >= 4)) * 1)
    table = table.assign(value=(1.0 + course) * (1.0 + 0.5 * table["treated"]))
    courses = clocks.Courses.of(Audited.under(FlaggedRows.of(table)))
    _, best, apart = courses.agreement(np.arange(40) < 20, 2)
    assert best - apart == pytest.approx(1.0, abs=0.05)


def test_without_a_pre_period_or_a_third_period_nothing_is_checked():
    table, made = planted("contaminated_controls", 0.5, 5, 1)
    jobs = pd.DataFrame(made.jobs)
    codes = {code: GUARDS[code] for code in ("contaminated_controls", "shifted_clocks")}
    assert examine(table[table["period"] > 1], jobs, guards=codes).checked == ()
