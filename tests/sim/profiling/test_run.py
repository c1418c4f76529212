"""A profiled fleet end to end: its tables fit together, sum up to the fleet's counters and do not depend on threads."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models.arrays import DAY_S
from models.fleet.world import Churn, Feature, Fleet, Governor, Population, Recording, Rollout
from models.platforms import PLATFORMS
from models.profiling.served import HardwareTrial
from models.profiling.world import Collector, Compiler, Incident, Kernel, ProfileWorld, Profiling, Releases, Watch
from models.tables import TABLES
from scenarios.files.loader import load
from sim.fleet import arms
from sim.fleet.arms import run_arm
from sim.profiling.collection import Collection, visits_of
from sim.profiling.hardware_trial import chosen, prepare_trial
from sim.profiling.run import profile
from sim.profiling.sampling import OWN_SHARE
from sim.profiling.setting import ProfileSetting
from tests.helpers.profiled_fleets import serving_fleet

WORLD = ProfileWorld(
    seed=5,
    horizon_s=2 * DAY_S,
    fleet=Fleet(24, {"haswell_2698v3": 0.6, "broadwell_2698v4": 0.4}, machines_per_rack=3, racks_per_power_domain=2),
    population=Population(24, 12, heavyweights=5),
    churn=Churn(drains_per_machine_day=0.2),
    feature=Feature("refresh", {"haswell_2698v3": "skylake_6148"}, rollout=Rollout(0.5, start_s=DAY_S)),
    profiling=Profiling(
        releases=Releases(share=1.0, wave_shares=(0.5, 1.0)),
        compiler=Compiler(start_s=0.0, until_s=DAY_S),
        kernel=Kernel(start_s=0.0, waves=2),
        collector=Collector(
            one_in=6, round_s=14400.0, watches=(Watch("hot", job="heavyweight-01", one_in=6, end_s=DAY_S),)
        ),
    ),
)
NOT_OF_PROFILES = {
    "instance_epochs",
    "machine_epochs",
    "rounds",
    "requests",
    "stay_requests",
    "stay_unserved",
    "unserved",
    "servers",
    "replays",
    "station_cpu",
    "station_requests",
    "truth_station_requests",
    "cpu",
    "benchmarks",
    "switches",
}
LEFT_TO_SYMBOLISE = {"samples", "locations", "stacks"}


def run(folder, world=WORLD, threads=None):
    return profile(world, folder, threads), {file.stem: pd.read_parquet(file) for file in folder.glob("*.parquet")}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return run(tmp_path_factory.mktemp("profiled"), threads=2)


@pytest.fixture(scope="module")
def tables(made):
    return made[1]


def test_every_table_of_a_profiled_fleet_is_there_and_holds_something(made, tables):
    others = {name for name in TABLES if name.startswith(("service_", "truth_")) and name not in tables}
    assert set(tables) == set(TABLES) - NOT_OF_PROFILES - LEFT_TO_SYMBOLISE - others
    assert {"truth_jobs", "truth_functions", "truth_cpi"} <= set(tables)
    assert all(len(table) for table in tables.values())
    assert made[0].counts["visits"] == len(tables["visits"])


def test_cycles_instructions_and_misses_of_functions_are_the_counters(tables):
    sums = ["cycles", "instructions", "llc_misses"]
    counters = tables["counters"].merge(tables["instances"][["residence", "job"]], on="residence")
    counters["application"] = tables["jobs"].set_index("job")["name"].reindex(counters["job"]).to_numpy()
    by_functions = tables["truth_functions"].groupby("application")[sums].sum()
    by_counters = counters.groupby("application")[sums].sum()
    pd.testing.assert_frame_equal(by_functions, by_counters, rtol=1e-9, check_names=False)


def test_true_cpi_is_that_of_the_functions_by_platform(tables):
    by_functions = tables["truth_functions"].groupby(["application", "platform"])[["cycles", "instructions"]].sum()
    told = tables["truth_cpi"].set_index(["application", "platform"])[["cycles", "instructions"]]
    pd.testing.assert_frame_equal(told.sort_index(), by_functions.sort_index(), rtol=1e-9)


def test_the_hardware_that_is_rolled_out_does_cycles_from_its_day_on(tables):
    upgraded = tables["machines"].query("platform == 'haswell_2698v3' and feature")["machine"]
    assert len(upgraded)
    visits = tables["visits"].query("machine in @upgraded")
    late = visits["start_s"] >= DAY_S
    assert set(visits[late]["platform"]) <= {"skylake_6148"}
    assert set(visits[~late]["platform"]) <= {"haswell_2698v3"}
    # Cycles of the new platform in the truth are those of the upgraded machines on the second day.
    days = tables["machine_windows"].query("machine in @upgraded and window == 'day-001'")
    truth = tables["truth_functions"].query("platform == 'skylake_6148'")
    assert truth["cycles"].sum() == pytest.approx(days["cycles"].sum(), rel=1e-9)


def test_the_monitor_is_the_cpu_time_of_instances_and_what_machines_do_of_their_own(tables):
    monitor = tables["monitor"]
    machine = tables["machines"].set_index("machine").loc[monitor["machine"]]
    upgraded = (machine["feature_from_s"].to_numpy() <= monitor["start_s"]) & (
        machine["platform"] == "haswell_2698v3"
    ).to_numpy()
    platform = np.where(upgraded, "skylake_6148", machine["platform"])
    out, visits = down_epochs(tables["events"]), tables["visits"].query("status == 'ok'")
    assert 0 < len(out) < 0.1 * len(monitor) * 288
    day = np.rint(monitor["start_s"] / DAY_S).astype(int)
    up_s = [300.0 * sum((m, e) not in out for e in range(288 * d, 288 * d + 288)) for m, d in
            zip(monitor["machine"], day, strict=True)]  # fmt: skip
    own_s = OWN_SHARE * np.array(up_s) * [PLATFORMS[name].vcpus for name in platform]
    spent = (visits["overhead_cycles"] / visits["frequency_hz"]).groupby(
        [visits["machine"], visits["start_s"] // DAY_S]
    )
    spent_s = spent.sum().reindex(pd.MultiIndex.from_arrays([monitor["machine"], day]), fill_value=0.0).to_numpy()
    assert spent_s.sum() > 0
    windows = tables["machine_windows"].sort_values(["machine", "window"])
    busy_s = windows["cpu_s"].to_numpy() + own_s
    np.testing.assert_allclose(monitor["busy_s"] - busy_s, spent_s, atol=1e-9 * busy_s.max())


def down_epochs(events):
    """Return machine and epoch wherever a machine is drained or broken, event by event."""
    found = set()
    for begins, ends in (("drain", "drain_end"), ("failure", "repair")):
        for row in events[events["kind"] == begins].itertuples():
            back = events[(events["kind"] == ends) & (events["machine"] == row.machine)]["time_s"]
            until = back[back >= row.time_s].min() if (back >= row.time_s).any() else WORLD.horizon_s
            found |= {(row.machine, epoch) for epoch in range(int(row.time_s // 300), int(np.ceil(until / 300)))}
    return found


def test_processes_and_samples_refer_to_what_is_there(tables):
    visits, processes, samples = tables["visits"], tables["processes"], tables["raw_samples"]
    assert processes["process"].tolist() == list(range(len(processes)))
    assert set(processes["visit"]) == set(visits.query("status == 'ok'")["visit"])
    assert set(samples["process"]) <= set(processes["process"])
    assert set(samples["event"]) <= set(tables["rates"]["event"])
    assert samples["build"].isin([-1, *tables["builds"]["build"]]).all()
    assert samples["stack"].isin([-1, *tables["raw_stacks"]["stack"]]).all()
    assert (samples["count"] > 0).all()
    residents = processes.query("residence >= 0").merge(visits, on="visit").merge(tables["instances"], on="residence")
    assert (residents["machine_x"] == residents["machine_y"]).all()
    inside = (residents["start_s_y"] <= residents["start_s_x"]) & (residents["start_s_x"] < residents["end_s"])
    assert inside.mean() > 0.99  # a stay that begins within the visited epoch is there too


def test_tables_are_the_same_however_machines_are_cut_into_blocks_and_shared_out_among_threads(
    made, tables, tmp_path, monkeypatch
):
    """Sums of the truth alone follow the order of the blocks, up to rounding."""
    monkeypatch.setattr(arms, "MACHINES_IN_FLIGHT", 12)
    outcome, cut = run(tmp_path, threads=1)
    digests, expected = ({one.table: one.digest for one in two.tables} for two in (outcome, made[0]))
    assert {name for name in digests if digests[name] != expected[name]} <= {"truth_functions", "truth_cpi"}
    for name in ("truth_functions", "truth_cpi"):
        keys = [column for column in cut[name] if cut[name][column].dtype.kind not in "f"]
        told, before = (one[name].sort_values(keys, ignore_index=True) for one in (cut, tables))
        pd.testing.assert_frame_equal(told, before, rtol=1e-12)


def test_without_truth_nothing_but_the_truth_is_missing(made, tmp_path):
    outcome, _ = run(tmp_path, replace(WORLD, recording=Recording(truth=False)))
    digests = {table.table: table.digest for table in outcome.tables}
    expected = {table.table: table.digest for table in made[0].tables}
    twins = ("truth_nowhere_", "truth_everywhere_")
    truth = {name for name in expected if name.startswith(twins)} | {"truth_functions", "truth_cpi"}
    assert digests == {name: one for name, one in expected.items() if name not in truth}
    assert {"truth_nowhere_counters", "truth_everywhere_counters"} <= truth


def test_another_collector_looks_at_the_same_fleet(made, tmp_path):
    collector = replace(WORLD.profiling.collector, seed=1, one_in=3)
    outcome, _ = run(tmp_path, replace(WORLD, profiling=replace(WORLD.profiling, collector=collector)))
    before, after = ({table.table: table.digest for table in one.tables} for one in (made[0], outcome))
    same = {name for name in before if before[name] == after[name]}
    assert {"counters", "epochs", "machine_windows", "truth_functions", "truth_cpi", "builds"} <= same
    assert not {"visits", "raw_samples", "processes"} & same


def test_incidents_about_functions_or_revisions_that_there_are_not_are_refused_all_at_once(tmp_path):
    wrong = (Incident("no_such", 2.0), Incident("longest_match", 2.0, revision="r0"), Incident("longest_match", 2.0))
    with pytest.raises(ValueError, match=r"incidents\.0\.function: .*no_such.*\n.*incidents\.1\.revision: .*r0"):
        profile(replace(WORLD, profiling=replace(WORLD.profiling, incidents=wrong)), tmp_path)


def test_what_ends_a_run_early_leaves_no_table_unfinished(tmp_path):
    def interrupt(what, share):
        if what == "simulating and profiling" and share > 0:
            raise KeyboardInterrupt

    few = replace(WORLD, profiling=replace(WORLD.profiling, collector=Collector(one_in=24, round_s=DAY_S)))
    with pytest.raises(KeyboardInterrupt):
        profile(few, tmp_path, progress=interrupt)
    assert not list(tmp_path.glob("*.partial"))


def test_collectors_that_are_simulated_together_see_what_each_would_alone():
    setting = ProfileSetting.of(WORLD)
    collections = [Collection.of(setting.with_collector(seed)) for seed in (1, 2)]
    every = visits_of(collections)
    for one in collections:
        together = [one.view(block, every) for block in run_arm(setting.day, setting.arm, visits=every)]
        alone = list(run_arm(setting.day, setting.arm, visits=one.visits))
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_array_equal(a.visit_sums, b.visit_sums)
            np.testing.assert_array_equal(a.visit_rows, b.visit_rows)
            np.testing.assert_array_equal(a.visit_power_w, b.visit_power_w)


def test_the_shipped_regressions_are_about_functions_and_revisions_that_there_are():
    asked = load("profiled_regression").world
    software = ProfileSetting.of(asked).software
    struck = [incident for incident in asked.profiling.incidents if incident.revision]
    builds = software.builds
    for incident in struck:
        image = software.programs.image_of_program[software.programs.names.index(incident.application)]
        assert builds.revision[builds.of_image[image, 1]] == incident.revision
        assert builds.revision[builds.of_image[image, 0]] != incident.revision
    assert struck


OLD, NEW = "haswell_2698v3", "skylake_6148"


@pytest.fixture(scope="module")
def world():
    feature = Feature("calm", governor=Governor("stall_aware"), rollout=Rollout(0.5))
    return replace(serving_fleet(), trial=HardwareTrial({OLD: NEW}, machines=5), feature=feature)


@pytest.fixture(scope="module")
def tried(world, tmp_path_factory):
    return run(tmp_path_factory.mktemp("twins"), world, threads=2)


@pytest.fixture(scope="module")
def twins(tried):
    return tried[1]


def of_machines(twins, name, machines):
    where = twins["instances"].set_index("residence")["machine"]
    table = twins[name]
    return table[table["residence"].map(where).isin(machines)].reset_index(drop=True)


def test_as_many_machines_as_asked_have_the_new_processors_and_room_stays(twins):
    machines = twins["machines"]
    assert (machines["platform"] == NEW).sum() == 5
    assert set(machines["vcpus"]) == {64}
    assert set(twins["visits"]["platform"]) == {OLD, NEW}


def test_all_that_may_and_none_have_them_in_the_twins(world):
    day = prepare_trial(world, "everywhere")
    assert [day.machines.platform_names[i] for i in np.unique(day.machines.platform)] == [NEW]
    assert chosen(world, prepare_trial(replace(world, trial=None)).machines, "nowhere").size == 0


def apart(left, right):
    """Return by how much the instructions per CPU second of the same stays differ, in the mean."""
    same = right.set_index("residence").loc[left["residence"]]
    speeds = [(table["instructions"] / table["cpu_s"]).to_numpy() for table in (left, same)]
    return float(np.nanmean(np.abs(speeds[0] / speeds[1] - 1)))


def test_each_machine_of_the_recorded_fleet_is_as_in_the_twin_that_has_its_processors(twins):
    """Machines of a domain share its power budget, through which others' processors act a little."""
    old, new = (of_machines(twins, "counters", np.flatnonzero(twins["machines"]["platform"] == p)) for p in (OLD, NEW))
    nowhere, everywhere = (twins[f"truth_trial_{arm}_counters"] for arm in ("nowhere", "everywhere"))
    assert max(apart(old, nowhere), apart(new, everywhere)) < 0.02
    assert min(apart(new, nowhere), apart(old, everywhere)) > 0.05


def test_a_governor_changes_instructions_a_second_only_where_it_is(twins):
    on = np.flatnonzero(twins["machines"]["feature"])
    have = of_machines(twins, "counters", on), of_machines(twins, "truth_everywhere_counters", on)
    lack = of_machines(twins, "truth_nowhere_counters", on)
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


def test_one_thread_writes_what_many_write(tried, world, tmp_path):
    outcomes = (profile(world, tmp_path, threads=1), tried[0])
    digests = [{table.table: table.digest for table in outcome.tables} for outcome in outcomes]
    assert "stay_requests" in digests[0]
    assert digests[0] == digests[1]


def test_functions_still_sum_to_the_counters(twins):
    sums = ["cycles", "instructions", "llc_misses"]
    counters = twins["counters"].merge(twins["instances"][["residence", "job"]], on="residence")
    names = twins["jobs"].set_index("job")["name"]
    by_counters = counters.groupby(counters["job"].map(names))[sums].sum()
    by_functions = twins["truth_functions"].groupby("application")[sums].sum()
    pd.testing.assert_frame_equal(by_functions, by_counters, rtol=1e-9, check_names=False)
