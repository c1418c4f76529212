"""The written tables obey the laws of counting: what goes in comes out, whatever table one looks at."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models.fleet.world import Churn, Crossover, Feature, Fleet, Governor, Population, Recording, Rollout, Window, World
from models.tables import ARMS, TABLES
from sim.fleet import experiment as module
from sim.fleet.experiment import experiment

WINDOWS = (Window("morning", 300.0, 1200.0), Window("noon", 1200.0, 2400.0))
WORLD = World(
    seed=5,
    horizon_s=3000.0,
    fleet=Fleet(30, {"haswell_2698v3": 0.7, "skylake_6148": 0.3}, machines_per_rack=5, racks_per_power_domain=2),
    population=Population(70, 30, heavyweights=8),
    churn=Churn(exits_per_instance_day=3.0, restarts_per_instance_day=9.0, drains_per_machine_day=3.0),
    feature=Feature("dvfs", {"haswell_2698v3": "broadwell_2698v4"}, Governor("stall_aware")),
    recording=Recording(WINDOWS, True, 1.0, True),
)
SUMS = ["cycles", "instructions", "llc_misses", "cpu_s"]


class Run:
    """The tables of a run, read back."""

    def __init__(self, world, directory):
        directory.mkdir(exist_ok=True)
        self.directory, self.outcome = directory, experiment(world, directory)

    @property
    def digests(self):
        return {table.table: table.digest for table in self.outcome.tables}

    def __getattr__(self, name):
        return pd.read_parquet(self.directory / f"{name}.parquet")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(WORLD, tmp_path_factory.mktemp("run"))


OF_INCIDENTS = ("truth_incidents", "truth_shifts")


def epoch_windows(table):
    """Name of the window of each row's epoch, empty outside."""
    start_s = table["epoch"] * WORLD.epoch_s
    inside = [(start_s >= window.start_s) & (start_s < window.end_s) for window in WINDOWS]
    return np.select(inside, [window.name for window in WINDOWS], "")


def test_every_table_that_was_asked_for_is_there(run):
    of_queues = {"requests", "unserved", "servers", "replays", "cpu"}
    of_queues |= {"truth_requests", "truth_cpu", "truth_machine", "truth_one_way"}
    of_queues |= {"station_requests", "station_cpu", "truth_station_requests"}
    of_services = {"benchmarks", "truth_miss_curve", "truth_throughput"}
    of_services |= {name for name in TABLES if name.removeprefix("truth_").startswith("service")}
    of_profiles = {"monitor", "visits", "processes", "builds", "rates", "raw_samples", "raw_stacks", "symbols"}
    of_profiles |= {"sources", "samples", "locations", "stacks", "function_traits", "truth_functions", "truth_cpi"}
    of_profiles |= {"stay_requests", "stay_unserved"}
    of_profiles |= {"profile_machines", *(name for name in TABLES if name.startswith("truth_trial_"))}
    assert (
        set(run.digests) == set(TABLES) - {"rounds", "switches", *OF_INCIDENTS} - of_queues - of_services - of_profiles
    )
    assert all(table.rows > 0 for table in run.outcome.tables)


def test_counters_are_the_sums_of_their_epochs(run):
    epochs = run.instance_epochs
    epochs["window"] = epoch_windows(epochs)
    summed = epochs[epochs["window"] != ""].groupby(["residence", "window"])[SUMS].sum()
    counters = run.counters.astype({"window": str}).set_index(["residence", "window"])
    pd.testing.assert_frame_equal(counters[SUMS].sort_index(), summed.sort_index(), rtol=1e-12)
    present = epochs[epochs["window"] != ""].groupby(["residence", "window"]).size() * WORLD.epoch_s
    np.testing.assert_array_equal(counters["wall_s"].sort_index(), present.sort_index())


@pytest.mark.parametrize("arm", ["", *(f"truth_{arm}_" for arm in ARMS)])
def test_machines_are_the_sums_of_their_instances_and_epochs_of_machines(run, arm):
    counters = getattr(run, f"{arm}counters").merge(run.instances[["residence", "machine"]])
    counters["window"] = counters["window"].astype(str)
    windows = getattr(run, f"{arm}machine_windows").astype({"window": str}).set_index(["machine", "window"])
    summed = counters.groupby(["machine", "window"])[SUMS].sum().reindex(windows.index, fill_value=0.0)
    pd.testing.assert_frame_equal(windows[SUMS], summed, rtol=1e-9)
    epochs = getattr(run, f"{arm}epochs")
    inside = epochs.assign(window=epoch_windows(epochs)).groupby("window")[[*SUMS, "energy_j"]].sum().drop("")
    fleet = windows.groupby("window")[[*SUMS, "energy_j"]].sum()
    pd.testing.assert_frame_equal(inside, fleet, rtol=1e-9)


def test_energy_is_power_times_time(run):
    machines = run.machine_epochs
    machines["energy_j"] = machines["power_w"] * WORLD.epoch_s
    by_epoch = machines.groupby("epoch")["energy_j"].sum()
    np.testing.assert_allclose(by_epoch, run.epochs["energy_j"], rtol=1e-9)
    machines["window"] = epoch_windows(machines)
    by_window = machines[machines["window"] != ""].groupby(["machine", "window"])["energy_j"].sum()
    written = run.machine_windows.astype({"window": str}).set_index(["machine", "window"])["energy_j"]
    pd.testing.assert_series_equal(by_window.sort_index(), written.sort_index(), rtol=1e-9)


def test_no_machine_draws_less_than_idle_or_does_more_than_it_has(run):
    machines = run.machine_epochs.merge(run.machines, on="machine")
    assert (machines["utilisation"] <= 1.0).all()
    assert (machines["bandwidth_utilisation"] < 1.0).all()
    assert machines["power_w"].min() >= 90.0


def test_threads_busy_are_at_most_the_quota_and_quotas_at_most_the_machine(run):
    epochs = run.instance_epochs.merge(run.instances[["residence", "machine", "quota_vcpu"]])
    used = epochs["cpu_s"] / WORLD.epoch_s
    assert (used <= epochs["quota_vcpu"] * (1 + 1e-12)).all()
    asked = epochs.groupby(["machine", "epoch"])["quota_vcpu"].sum().reset_index().merge(run.machines, on="machine")
    assert (asked["quota_vcpu"] <= asked["vcpus"] * (1 + 1e-9)).all()
    busy = epochs.assign(used=used).groupby(["machine", "epoch"])["used"].sum()
    share = run.machine_epochs.set_index(["machine", "epoch"])["utilisation"].reindex(busy.index)
    arm_vcpus = np.where(run.machines.set_index("machine")["feature"], 80, run.machines.set_index("machine")["vcpus"])
    np.testing.assert_allclose(busy / arm_vcpus[busy.index.get_level_values(0)], share, rtol=1e-9)


def test_cycles_are_frequency_times_cpu_time(run):
    counters = run.counters
    np.testing.assert_allclose(counters["cycles"], counters["mean_frequency_hz"] * counters["cpu_s"], rtol=1e-12)
    epochs = run.instance_epochs.merge(run.instances[["residence", "machine"]])
    states = run.machine_epochs.set_index(["machine", "epoch"])["frequency_hz"]
    state = states.reindex(pd.MultiIndex.from_frame(epochs[["machine", "epoch"]])).to_numpy()
    frequency = (epochs["cycles"] / epochs["cpu_s"]).to_numpy()
    below_hz = state - frequency  # slowed down by a step of 300 MHz: never, always, or half of the time
    assert (abs(below_hz[:, None] - [0.0, 1.5e8, 3e8]).min(axis=1) < 1.0).all()
    assert (below_hz > 1.0).any()


def test_epochs_count_the_instances_that_run(run):
    running = run.instance_epochs.merge(run.instances[["residence", "quota_vcpu"]]).groupby("epoch")["quota_vcpu"]
    np.testing.assert_array_equal(run.epochs["instances"], running.size())
    np.testing.assert_allclose(run.epochs["quota_vcpu"], running.sum(), rtol=1e-9)
    assert (run.epochs["residual_max"] > 0).all()


def test_the_arms_share_who_runs_where(run):
    for arm in ARMS:
        np.testing.assert_array_equal(getattr(run, f"truth_{arm}_counters")["residence"], run.counters["residence"])


@pytest.mark.parametrize(
    "extra",
    [{"machine_epochs": True}, {"instance_epoch_share": 0.3}, {"truth": True}],
    ids=lambda extra: next(iter(extra)),
)
def test_one_more_recorded_table_changes_no_other(tmp_path, extra):
    few = Run(replace(WORLD, recording=Recording(WINDOWS, False)), tmp_path / "few").digests
    more = Run(replace(WORLD, recording=replace(Recording(WINDOWS, False), **extra)), tmp_path / "more").digests
    assert len(more) > len(few)
    assert {name: more[name] for name in few} == few


def test_windows_change_only_what_is_summed_over_them(tmp_path, run):
    other = Run(replace(WORLD, recording=replace(WORLD.recording, windows=())), tmp_path / "whole")
    differ = {name for name, digest in run.digests.items() if other.digests[name] != digest}
    assert len(differ) == 6
    assert all(name.endswith(("counters", "machine_windows")) for name in differ)
    total = other.counters[SUMS].sum()
    np.testing.assert_allclose(total, other.epochs[SUMS].sum(), rtol=1e-9)


def test_traced_instances_are_a_part_of_all(tmp_path, run):
    part = Run(replace(WORLD, recording=Recording(WINDOWS, False, 0.3)), tmp_path / "part")
    rows = part.instance_epochs
    same = run.instance_epochs.merge(rows[["residence", "epoch"]])
    pd.testing.assert_frame_equal(same, rows)
    instances = run.instances.set_index("residence")["instance"]
    chosen = set(instances[rows["residence"]])
    assert 0.2 < len(chosen) / instances.nunique() < 0.4
    assert set(instances.index[instances.isin(chosen)]) >= set(rows["residence"])


def test_a_crossover_says_who_was_to_switch_when(tmp_path):
    plan = Rollout(0.8, start_s=600.0, crossover=Crossover(period_s=600.0, pairs=2))
    feature = Feature("dvfs", governor=Governor("stall_aware"), settle_s=300.0, rollout=plan)
    run = Run(replace(WORLD, feature=feature, recording=Recording(truth=False)), tmp_path / "run")
    switches, machines = run.switches, run.machines
    assert list(switches.columns) == [column.name for column in TABLES["switches"]]
    assert switches[["start_s", "end_s"]].drop_duplicates().to_numpy().tolist() == [
        [600.0, 1200.0],
        [1200.0, 1800.0],
        [1800.0, 2400.0],
        [2400.0, 3000.0],
    ]
    on = switches[switches["feature"]]
    assert len(switches) == 30 * 4
    assert on["machine"].value_counts().eq(2).all()
    assert sorted(on["machine"].unique()) == machines.loc[machines["feature"], "machine"].tolist()
    assert machines["feature"].sum() == 24
    first_s = machines["machine"].map(on.groupby("machine")["start_s"].min())
    pd.testing.assert_series_equal(machines["feature_from_s"], first_s, check_names=False)
    names = ["before"] + [f"{part}.{period:03}" for period in range(4) for part in ("wash", "rest")]
    assert run.counters["window"].unique().tolist() == names


def test_tables_do_not_depend_on_threads(tmp_path, run):
    one = experiment(WORLD, tmp_path, threads=1)
    assert {table.table: table.digest for table in one.tables} == run.digests


def test_another_seed_gives_other_tables(tmp_path, run):
    other = Run(replace(WORLD, seed=6), tmp_path / "other").digests
    assert all(other[name] != digest for name, digest in run.digests.items())


def test_progress_rises_to_the_whole(tmp_path):
    seen = []
    experiment(WORLD, tmp_path, progress=lambda what, share: seen.append((what, share)))
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert [what for what, _ in dict(seen).items()] == [
        "placing instances",
        "simulating the recorded fleet",
        "simulating nowhere",
        "simulating everywhere",
    ]


def test_a_failure_on_the_way_leaves_no_half_written_table(tmp_path, monkeypatch):
    def fails(_day, _block):
        raise KeyboardInterrupt

    monkeypatch.setitem(module._BLOCK_COLUMNS, "machine_windows", fails)
    with pytest.raises(KeyboardInterrupt):
        experiment(WORLD, tmp_path)
    assert not list(tmp_path.glob("*counters*"))
    assert not list(tmp_path.glob("*machine_windows*"))
