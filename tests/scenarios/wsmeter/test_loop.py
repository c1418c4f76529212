"""The loop of plan, roll out, check and plan again: what it asks for, when it stops, and that it learns."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.estimators import WSMeter
from analysis.wsmeter.plan import plan, plannable
from models.fleet.world import Feature, Fleet, Loop, Population, Rollout, Service, Software, World
from models.randomness import stream
from models.tables import ROUNDS
from scenarios.wsmeter.loop import observe, rounds
from sim.fleet.arms import nowhere, on_machines
from sim.fleet.day import prepare
from sim.recorder import write_table

MACHINES = World(
    seed=3,
    horizon_s=1800.0,
    epoch_s=300.0,
    fleet=Fleet(machines=80, machines_per_rack=10, racks_per_power_domain=2),
    population=Population(jobs=60, common_jobs=50, heavyweights=12),
    feature=Feature("upgrade", platforms={"haswell_2698v3": "broadwell_2698v4"}),
)
SERVICES = (Service("shop", 160, 4.0, 0.8, 0.01, input_log_sd=0.2), Service("mail", 80, 2.0, 0.6, 0.002))
CODE = replace(
    MACHINES,
    population=replace(MACHINES.population, services=SERVICES),
    feature=Feature("build", software=(Software(("shop", "mail"), 0.9),), rollout=Rollout(unit="instance")),
)
DAY, CODE_DAY = prepare(MACHINES), prepare(CODE)
FIRST = Loop(target_margin=0.05, top_jobs=20)


def quiet(_what, _share):
    """Say nothing."""


def made(day=DAY, settings=FIRST, **changed):
    return rounds(day, replace(settings, **changed), quiet)


def jobs_of(day):
    return pd.DataFrame({"job": range(day.jobs.count), "quota": day.jobs.quota_vcpu, "instances": day.jobs.instances})


def test_a_round_says_every_column_and_can_be_written(tmp_path):
    table = made()
    assert list(table) == [column.name for column in ROUNDS]
    assert write_table(tmp_path, "rounds", {str(name): table[name] for name in table}).rows == len(table)


def test_a_margin_that_is_met_is_accepted_and_ends_the_loop():
    table = made(target_margin=0.03)
    assert table["accepted"].tolist() == [False] * (len(table) - 1) + [True]
    assert (table["accepted"] == (table["margin"] <= table["target_margin"])).all()
    assert table["round"].tolist() == list(range(1, len(table) + 1))


def test_a_wider_target_needs_fewer_machines():
    sizes = [made(target_margin=margin)["machines"].to_numpy() for margin in (0.015, 0.02, 0.03)]
    for narrow, wide in itertools.pairwise(sizes):
        assert wide[0] < narrow[0]
        assert wide[-1] < narrow[-1]


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_more_headroom_never_takes_more_rounds(seed):
    day = prepare(replace(MACHINES, seed=seed))
    counts = [len(made(day, target_margin=0.03, headroom=headroom)) for headroom in (1.0, 1.5, 3.0)]
    assert counts == sorted(counts, reverse=True)


def test_the_first_round_takes_the_machines_that_hold_the_plan_times_the_headroom():
    table = made(headroom=1.5)
    jobs = jobs_of(DAY).nlargest(20, "quota")
    planned = plan(plannable(observe(DAY, nowhere(DAY), "ipc"), jobs), 0.05)
    needed = planned.cost / jobs["quota"].sum() * 80
    assert table["machines"][0] == math.ceil(1.5 * needed)
    assert table["planned_margin"][0] == pytest.approx(planned.margin)


def test_a_round_says_what_wsmeter_says_of_just_those_machines():
    table = made()
    which = stream(3, "loop").permutation(80)[: table["machines"][0]]
    current = observe(DAY, nowhere(DAY), "ipc")
    current = current[current["job"] < 20]
    new = observe(DAY, on_machines(DAY, which), "ipc", around=which)
    found = WSMeter().estimate(current, new, jobs_of(DAY))
    assert table.loc[0, ["change", "margin", "quota_coverage"]].tolist() == pytest.approx(
        [found.change, found.margin, found.quota_coverage]
    )
    assert table["jobs"][0] == found.jobs


def test_a_missed_margin_is_followed_by_as_many_more_machines_as_it_was_too_wide_squared():
    table = made(target_margin=0.025, headroom=1.0)
    assert len(table) >= 2
    for before, after in itertools.pairwise(table.to_dict("records")):
        assert after["machines"] >= min(40, before["machines"] * (before["margin"] / 0.025) ** 2)
        assert after["machines"] > before["machines"]


def test_the_next_plan_knows_the_spreads_that_were_seen():
    table = made(target_margin=0.025, headroom=1.0)
    jobs = jobs_of(DAY).nlargest(20, "quota")
    current = observe(DAY, nowhere(DAY), "ipc")
    which = stream(3, "loop").permutation(80)[: table["machines"][0]]
    new = observe(DAY, on_machines(DAY, which), "ipc", around=which)
    count = new["job"].value_counts()
    seen = new[new["job"].isin(count.index[count >= 4])].groupby("job")["value"].std()
    before = plannable(current, jobs)
    again = before.assign(std=[seen.get(job, std) for job, std in zip(before["job"], before["std"], strict=True)])
    assert table["planned_margin"][1] == pytest.approx(plan(again, 0.025).margin, rel=1e-12)
    assert plan(again, 0.025).cost != plan(before, 0.025).cost


def test_a_target_out_of_reach_takes_half_the_fleet_once_and_is_not_accepted():
    (row,) = made(target_margin=1e-4).to_dict("records")
    assert row["machines"] == 40
    assert row["planned_margin"] > 1e-4
    assert row["margin"] > 1e-4
    assert not row["accepted"]


def test_rounds_end_when_they_are_used_up():
    assert len(made(target_margin=0.02, headroom=1.0)) > 1
    assert len(made(target_margin=0.02, headroom=1.0, rounds=1)) == 1


def test_a_cluster_that_covers_no_job_is_a_round_without_an_answer_and_is_doubled():
    population = replace(MACHINES.population, services=(Service("shop", 30, 4.0, 0.8, 0.01),))
    world = replace(MACHINES, population=population, feature=Feature("build", software=(Software(("shop",), 0.9),)))
    days = (prepare(replace(world, seed=seed)) for seed in range(9))
    tables = (made(day, target_margin=0.5, headroom=1.0) for day in days)
    first, second = next(table for table in tables if len(table) > 1).to_dict("records")[:2]
    assert (first["jobs"], first["quota_coverage"], first["accepted"]) == (0, 0.0, False)
    assert np.isnan([first["margin"], first["change"]]).all()
    assert second["machines"] == 2 * first["machines"]


def test_new_code_goes_to_the_planned_number_of_instances_of_each_job():
    table = made(CODE_DAY, metric="requests_per_s", target_margin=0.06, headroom=1.3)
    jobs = jobs_of(CODE_DAY)[np.isin(np.array(CODE_DAY.jobs.names), ["shop", "mail"])]
    planned = plan(plannable(observe(CODE_DAY, nowhere(CODE_DAY), "requests_per_s"), jobs), 0.06).allocation
    assert planned["instances"].nunique() == 2
    assert table["machines"][0] == np.ceil(1.3 * planned["instances"]).sum()
    assert table["jobs"].tolist() == [2] * len(table)
    share = jobs["quota"].sum() / CODE_DAY.jobs.quota_vcpu.sum()
    assert table["quota_coverage"].to_numpy() == pytest.approx(share)
    assert table["change"].iloc[-1] > 0.05


def test_no_job_gives_more_than_half_of_its_instances():
    assert made(CODE_DAY, metric="requests_per_s", target_margin=1e-4)["machines"].tolist() == [80 + 40]


def test_jobs_too_small_to_plan_for_are_an_error():
    with pytest.raises(NotEnoughDataError, match=r"^100000 instances of one job in the fleet are needed, \d+ given$"):
        made(min_instances=100_000)


def test_the_same_day_gives_the_same_rounds_and_progress_reaches_the_end():
    told = []
    again = rounds(DAY, FIRST, lambda what, share: told.append((what, share)))
    pd.testing.assert_frame_equal(again, made())
    assert told[-1] == ("rolling out", 1.0)
    assert [share for _, share in told] == sorted(share for _, share in told)
