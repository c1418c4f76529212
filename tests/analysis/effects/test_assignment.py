"""Who gets the feature when: as many machines as planned, drawn anew, and a study that can be made of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects.assignment import assigned
from analysis.effects.methods import method
from analysis.effects.past import Past
from analysis.effects.planning import Wanted, fewest
from analysis.effects.rehearsals import Assumed, crossover, spans
from analysis.effects.study import Study
from models.arrays import HOUR_S
from tests.helpers.effect_studies import small_rehearsal as example

WANTED = Wanted(detect=0.05, draws=100)


def past(period_s, periods, machines=40):
    """Return a fleet's past: three jobs on every machine, whose names are strings."""
    rng = np.random.default_rng(1)
    machine, job = np.divmod(np.arange(3 * machines), 3)
    names = np.array([f"m{number:02}" for number in range(machines)])
    own = 1.0 + 0.05 * rng.standard_normal(3 * machines)
    tables = [
        pd.DataFrame({"period": k * period_s, "job": job, "machine": names[machine], "weight": 1.0 + job}).assign(
            treated=0, value=own * (1.0 + 0.02 * rng.standard_normal(3 * machines))
        )
        for k in range(periods)
    ]
    return Past(pd.concat(tables, ignore_index=True), period_s)


def test_as_many_machines_as_planned_keep_the_feature_to_the_end():
    plan = fewest(example(), WANTED)
    table = assigned(plan)
    assert table["treated"].sum() == plan.forecast.machines
    assert table["machine"].is_unique
    assert (table["start_s"] == 0).all()
    assert (table["end_s"] == 24 * HOUR_S).all()
    assert set(table["machine"]) == set(plan.rehearsal.courses[-1].cells.machines)


def test_another_seed_draws_others_and_the_same_seed_the_same():
    plan = fewest(example(), WANTED)
    pd.testing.assert_frame_equal(assigned(plan, 3), assigned(plan, 3))
    assert (assigned(plan, 3)["treated"] != assigned(plan, 4)["treated"]).any()


def test_machines_are_none_that_the_rehearsals_drew():
    """By chance they would be in fewer than 1 of 10,000 seeds: 6 of 60 machines can be chosen in 5 × 10^7 ways."""
    rehearsal, rehearsed = example(), []

    def recorded(course):
        def arrange(machines, draws, rng):
            made, treated = course.arrange(machines, draws, rng)
            rehearsed.extend(set(course.cells.machines[draw]) for draw in treated)
            return made, treated

        return course._replace(arrange=arrange)

    plan = fewest(replace(rehearsal, courses=tuple(map(recorded, rehearsal.courses))), WANTED)
    assert plan.forecast.machines >= 6
    for seed in (WANTED.seed, 2, 3):
        table = assigned(plan._replace(rehearsal=rehearsal), seed)
        assert set(table.loc[table["treated"] == 1, "machine"]) not in rehearsed


@pytest.mark.parametrize("design", ["balanced", "paired"])
def test_a_design_draws_its_machines_in_its_own_way(design):
    found = [made for made in spans(past(86400.0, 4), 1.0, Assumed(0.05), ["adjusted"]) if made.estimator == design]
    plan = fewest(found[0], WANTED)
    assert assigned(plan)["treated"].sum() == plan.forecast.machines


def test_machines_of_a_crossover_have_the_feature_in_one_of_every_two_periods():
    plan = fewest(crossover(past(HOUR_S, 8), Assumed(0.05)), WANTED)
    table = assigned(plan)
    rows = table.groupby("machine").size()
    assert (rows == 8).sum() == plan.forecast.machines
    assert (rows == 1).sum() == 40 - plan.forecast.machines
    switching = table[table["machine"].isin(rows.index[rows == 8])]
    of_pair = switching.groupby(["machine", switching["start_s"] // (2 * HOUR_S)])["treated"].sum()
    assert (of_pair == 1).all()
    assert table.loc[~table["machine"].isin(switching["machine"]), "treated"].eq(0).all()
    assert len(switching.groupby("machine")["treated"].apply(tuple).unique()) > 1
    assert table.equals(table.sort_values(["machine", "start_s"], ignore_index=True))


def test_a_crossover_that_followed_the_table_is_estimated():
    before = past(HOUR_S, 8)
    table = assigned(fewest(crossover(before, Assumed(0.05)), WANTED))
    on = table[table["treated"] == 1]
    seen = before.table.assign(
        treated=[
            ((on["machine"] == machine) & (on["start_s"] <= period) & (period < on["end_s"])).any()
            for machine, period in zip(before.table["machine"], before.table["period"], strict=True)
        ]
    )
    seen["value"] *= 1.0 + 0.05 * seen["treated"]
    study = Study.of(seen)
    assert study.design == "crossover"
    found = method("adjusted").estimate(study)
    assert found.low < 0.05 < found.high
    assert found.margin < 0.05
