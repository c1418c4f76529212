"""A fleet beside its counterfactual twins: read from a run, observed in parts, and planned for."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd

from models.fleet.world import World
from scenarios.files.schema import Scenario
from scenarios.runs.execution import obtain
from scenarios.wsmeter.loop import observe, touched
from scenarios.wsmeter.rollouts import Twins
from sim.fleet.arms import everywhere
from sim.fleet.day import prepare
from tests.helpers.rollout_worlds import CODE, MACHINES, TIGHT, same, twins


def test_no_job_is_asked_for_more_instances_than_were_measured():
    of = twins(MACHINES)
    whole = of.allocation(0.02, 20).set_index("job")["instances"]
    first = of.without["job"] == 0
    assert whole[0] > 5
    scarce = replace(of, without=pd.concat([of.without[~first], of.without[first].head(5)]))
    planned = scarce.allocation(0.02, 20)
    assert planned.set_index("job")["instances"][0] == 5
    rows = scarce.chosen(np.random.default_rng(0), planned)
    assert rows["job"].value_counts()[0] == 5
    assert rows["instance"].is_unique


def test_an_instance_that_moved_counts_once_where_all_of_a_job_are_asked_for():
    of = twins(MACHINES)
    first = of.without["job"] == 0
    few = of.without[first].drop_duplicates("instance").head(5)
    again = few.head(3).assign(machine=lambda stays: stays["machine"] + 1, residence=range(10**6, 10**6 + 3))
    planned = replace(of, without=pd.concat([of.without[~first], few, again])).allocation(0.02, 20)
    assert planned.set_index("job")["instances"][0] == 5


def test_what_is_observed_around_machines_is_what_the_whole_fleet_shows_of_them():
    of = twins(TIGHT, "ips")
    some = observe(of.day, everywhere(of.day), "ips", around=np.array([3, 47]))
    assert same(some, of.having[of.having["machine"].isin([3, 47])])


def test_a_feature_of_hardware_and_code_is_about_all_jobs():
    day = prepare(CODE)
    jobs = pd.DataFrame({"job": range(day.jobs.count)})
    both = replace(CODE.feature, platforms={"haswell_2698v3": "broadwell_2698v4"})
    assert len(touched(day, jobs)) == 1
    assert len(touched(replace(day, world=replace(CODE, feature=both)), jobs)) == len(jobs)
    assert len(touched(replace(day, world=replace(CODE, feature=None)), jobs)) == len(jobs)


def test_twins_of_a_run_are_its_counterfactual_fleets(tmp_path):
    values = {field.name: getattr(MACHINES, field.name) for field in fields(World)}
    made = Twins.of(obtain(Scenario(name="tiny", **values), tmp_path, False, lambda *_: None), "ipc")
    expected = twins(MACHINES)
    assert same(made.without.drop(columns="feature"), expected.without.drop(columns="feature"))
    assert same(made.having.drop(columns="feature"), expected.having.drop(columns="feature"))
    assert made.jobs["quota"].tolist() == expected.jobs["quota"].tolist()
    np.testing.assert_array_equal(made.day.timeline.machine, expected.day.timeline.machine)
