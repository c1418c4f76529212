"""The error within strata: unbiased under repeated selection within them, and the plain one where there is one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.in_slots import InSlots, within_strata
from analysis.effects.slots import cut
from analysis.effects.strata import StratifiedFleet
from analysis.effects.study import Study
from tests.helpers.outside_fleets import CONDITIONS
from tests.helpers.outside_slots import untreated


def influences(value, treated):
    """Return what each machine adds to the difference of two means."""
    apart = (value - value[arm].mean() for arm in (treated, ~treated))
    with_it, without = (of / arm.sum() for of, arm in zip(apart, (treated, ~treated), strict=True))
    return np.where(treated, with_it, without)


@pytest.mark.statistical
def test_it_is_the_variance_of_differences_that_were_drawn_within_strata():
    """4,000 selections: the variance of their differences errs by 2.2%, so by 8% in 3 of 10,000 tests."""
    rng = np.random.default_rng(41)
    stratum, apart, stated, plain = np.repeat(np.arange(6), 10), [], [], []
    for _ in range(4000):
        treated = np.concatenate([rng.permutation(10) < 4 for _ in range(6)])
        value = 3.0 * stratum + rng.normal(size=60) * (1.0 + stratum)
        u = influences(value, treated)
        apart.append(value[treated].mean() - value[~treated].mean())
        stated.append(within_strata(u, treated, stratum))
        plain.append(float(u @ u))
    assert np.mean(stated) == pytest.approx(np.var(apart), rel=0.08)
    assert np.mean(plain) > 2.0 * np.var(apart)


def test_arms_with_other_shares_of_strata_err_by_what_that_sets_them_apart():
    stratum = np.arange(40) // 20
    even, uneven = np.arange(40) % 2 == 0, np.arange(40) < 10
    value = 10.0 * stratum
    assert within_strata(influences(value, even), even, stratum) == pytest.approx(0.0, abs=1e-9)
    assert within_strata(influences(value, uneven), uneven, stratum) > 1.0


def test_slots_of_a_fleet_whose_platforms_differ_have_a_smaller_error():
    condition = replace(CONDITIONS["three_platforms"], machines=300, before=1, study=1, change=0.0)
    table = untreated(condition, np.random.default_rng(3)).drop(columns="shard")
    fleet = StratifiedFleet.of(table[table["period"] < 1].drop(columns="cluster"))
    slot = pd.Series(cut(fleet, 3).slot, fleet.names).reindex(table["machine"]).to_numpy()
    having = ((slot == 0) & (table["period"] == 1)).astype(int)
    study = Study.of(table.assign(treated=having))
    strata = pd.Series(fleet.stratum, fleet.names)
    plain, within = (of.estimate(study) for of in (Adjusted(covariates=0), InSlots(Adjusted(covariates=0), strata)))
    assert within.change == plain.change
    assert within.error < 0.9 * plain.error
    alike = InSlots(Adjusted(covariates=0), pd.Series(0, fleet.names)).estimate(study)
    assert (alike.error, alike.freedom) == (plain.error, plain.freedom)
