"""The noise floor of pairs of slots: that of the estimator where few, near it where many, and true on later days."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects import noise_floor
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.in_slots import InSlots
from analysis.effects.noise_floor import NoiseFloor
from analysis.effects.past import Past
from analysis.effects.slots import cut
from analysis.effects.strata import StratifiedFleet
from analysis.effects.study import Study, potential
from analysis.statistics import NotEnoughDataError
from tests.helpers.outside_fleets import CONDITIONS
from tests.helpers.outside_slots import differences, untreated


@pytest.fixture(scope="module")
def fleet():
    """A fleet's past of two days, cut into ten slots of 30 machines."""
    table = untreated(replace(CONDITIONS["base"], machines=300, before=1, study=1), np.random.default_rng(1))
    return table, cut(StratifiedFleet.of(table), 10)


@pytest.fixture(autouse=True)
def _few_pairs_alone(monkeypatch):
    """Study four pairs by themselves."""
    monkeypatch.setattr(noise_floor, "_ALONE", 4)


def alone(table, done, first, other):
    """Return what the estimator says of two slots by themselves on the last day, with the past of all."""
    names, last = done.machines.names, table["period"].max()
    rows = table[(table["period"] < last) | table["machine"].isin(names[np.isin(done.slot, (first, other))])]
    having = (rows["period"] == last) & rows["machine"].isin(names[done.slot == first])
    study = Study.of(rows.assign(treated=having.astype(int)))
    strata = pd.Series(done.machines.stratum, names)
    return InSlots(Adjusted(), strata).many(study.cells, study.treated[None])


def test_pairs_are_near_what_the_estimator_says_of_them_alone(fleet):
    table, done = fleet
    floor = NoiseFloor.of(Past(table, 86400.0), done.machines.names, done.slot, done.machines.stratum)
    pairs = floor.pairs().set_index(["slot", "other"])
    assert len(pairs) == 45
    known = floor.alone.set_index(["slot", "other"]).index
    assert len(known) == 4
    others = [pair for pair in pairs.index if pair not in known][::14]
    answers = {pair: alone(table, done, *pair) for pair in [known[3], *others]}
    errors = [float(answers[pair].error[0]) / pairs.loc[pair, "error"] for pair in answers]
    widths = [float(answers[pair].margin()[0]) / pairs.loc[pair, "half_width"] for pair in answers]
    assert errors[0] == pytest.approx(1.0)
    assert widths[0] == pytest.approx(1.0)
    assert np.mean(errors[1:]) == pytest.approx(1.0, abs=0.12)
    assert np.mean(widths[1:]) == pytest.approx(1.0, abs=0.12)
    assert pairs.loc[known[3], "difference"] == pytest.approx(float(answers[known[3]].change[0]))


@pytest.mark.statistical
def test_later_differences_are_within_the_noise_floor_as_often_as_it_says():
    """All 45 pairs of two fleets, 95% promised: below 82% or all within in 1 of 100 tests."""
    within = list[float]()
    condition = replace(CONDITIONS["base"], machines=120, before=2, study=1, change=0.0)
    for number in range(2):
        table = untreated(condition, np.random.default_rng([7, number]))
        past, today = table[table["period"] < 2], table[table["period"] == 2]
        done = cut(StratifiedFleet.of(past), 10, number)
        names = done.machines.names
        pairs = NoiseFloor.of(Past(past, 86400.0), names, done.slot, done.machines.stratum).pairs()
        cells = potential(table[table["period"] == 1], today, today)  # a day is its past, as in the noise floor
        for first, other, width in pairs[["slot", "other", "half_width"]].itertuples(index=False):
            (apart,) = differences(cells, names[done.slot == first], names[done.slot == other], ["adjusted"])
            within.append(abs(apart) / width)
    assert 0.82 <= np.mean(np.array(within) <= 1.0) < 1.0


@pytest.mark.parametrize(("slots", "periods", "needed"), [(2, 1, "periods"), (1, 2, "slots")])
def test_what_it_needs(slots, periods, needed):
    row = {"job": "a", "machine": range(8), "weight": 1.0, "value": np.arange(1.0, 9.0), "treated": 0}
    table = pd.concat([pd.DataFrame({"period": period, **row}) for period in range(periods)], ignore_index=True)
    with pytest.raises(NotEnoughDataError, match=needed):
        NoiseFloor.of(Past(table, 86400.0), pd.RangeIndex(8), np.arange(8) % slots, np.zeros(8, dtype=np.int64))
