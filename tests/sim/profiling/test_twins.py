"""Twins of a profiled fleet with a trial of hardware."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models.fleet.served import HardwareTrial
from models.fleet.world import Feature, Governor, Rollout
from sim.profiling.run import profile
from sim.profiling.served import example
from sim.profiling.trial import chosen, prepare_trial

OLD, NEW = "haswell_2698v3", "skylake_6148"


@pytest.fixture(scope="module")
def world():
    feature = Feature("calm", governor=Governor("stall_aware"), rollout=Rollout(0.5))
    return replace(example(), trial=HardwareTrial({OLD: NEW}, machines=5), feature=feature)


@pytest.fixture(scope="module")
def tables(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    made = profile(world, folder)
    return {table.table: pd.read_parquet(folder / f"{table.table}.parquet") for table in made.tables}


def of_machines(tables, name, machines):
    where = tables["instances"].set_index("residence")["machine"]
    table = tables[name]
    return table[table["residence"].map(where).isin(machines)].reset_index(drop=True)


def test_as_many_machines_as_asked_have_the_new_processors_and_room_stays(tables):
    machines = tables["machines"]
    assert (machines["platform"] == NEW).sum() == 5
    assert set(machines["vcpus"]) == {64}
    assert set(tables["visits"]["platform"]) == {OLD, NEW}


def test_all_that_may_and_none_have_them_in_the_twins(world):
    day = prepare_trial(world, "everywhere")
    assert [day.machines.platform_names[i] for i in np.unique(day.machines.platform)] == [NEW]
    assert chosen(world, prepare_trial(replace(world, trial=None)).machines, "nowhere").size == 0


def apart(left, right):
    """Return by how much the instructions per CPU second of the same stays differ, in the mean."""
    same = right.set_index("residence").loc[left["residence"]]
    speeds = [(table["instructions"] / table["cpu_s"]).to_numpy() for table in (left, same)]
    return float(np.nanmean(np.abs(speeds[0] / speeds[1] - 1)))


def test_each_machine_of_the_recorded_fleet_is_as_in_the_twin_that_has_its_processors(tables):
    """Machines of a domain share its power budget, through which others' processors act a little."""
    old, new = (
        of_machines(tables, "counters", np.flatnonzero(tables["machines"]["platform"] == p)) for p in (OLD, NEW)
    )
    nowhere, everywhere = (tables[f"truth_trial_{arm}_counters"] for arm in ("nowhere", "everywhere"))
    assert max(apart(old, nowhere), apart(new, everywhere)) < 0.02
    assert min(apart(new, nowhere), apart(old, everywhere)) > 0.05


def test_a_governor_changes_instructions_a_second_only_where_it_is(tables):
    on = np.flatnonzero(tables["machines"]["feature"])
    have = of_machines(tables, "counters", on), of_machines(tables, "truth_everywhere_counters", on)
    lack = of_machines(tables, "truth_nowhere_counters", on)
    hz = [table.set_index("residence")["mean_frequency_hz"] for table in (*have, lack)]
    assert (hz[0] / hz[1] - 1).abs().median() < 0.01
    assert (hz[0] / hz[2] - 1).abs().mean() > 0.01


def test_more_machines_than_there_are_is_refused(world):
    with pytest.raises(ValueError, match="should be at most 16, the machines of those platforms, got 17"):
        prepare_trial(replace(world, trial=HardwareTrial({OLD: NEW}, machines=17)))


def test_without_a_trial_the_day_is_as_it_was(world):
    plain = replace(world, trial=None)
    assert prepare_trial(plain).machines.platform_names == (OLD,)
    with pytest.raises(ValueError, match="the world has none"):
        chosen(plain, prepare_trial(plain).machines, "drawn")


def test_one_thread_writes_what_many_write(world, tmp_path):
    digests = []
    for threads in (1, 2):
        folder = tmp_path / str(threads)
        folder.mkdir()
        digests.append({table.table: table.digest for table in profile(world, folder, threads=threads).tables})
    assert "stay_requests" in digests[0]
    assert digests[0] == digests[1]


def test_functions_still_sum_to_the_counters(tables):
    sums = ["cycles", "instructions", "llc_misses"]
    counters = tables["counters"].merge(tables["instances"][["residence", "job"]], on="residence")
    names = tables["jobs"].set_index("job")["name"]
    by_counters = counters.groupby(counters["job"].map(names))[sums].sum()
    by_functions = tables["truth_functions"].groupby("application")[sums].sum()
    pd.testing.assert_frame_equal(by_functions, by_counters, rtol=1e-9, check_names=False)
