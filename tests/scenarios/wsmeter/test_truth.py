import numpy as np
import pandas as pd
import pytest

from analysis.statistics import NotEnoughDataError
from scenarios.files.schema import WSMeter
from scenarios.runs.rundir import Run
from scenarios.wsmeter.measurements import Tables, by_own_machine, halves_of, truth
from tests.helpers.job_means import weighted

COUNTERS = ("counters", "truth_nowhere_counters", "truth_everywhere_counters")


def world(gain=0.1):
    """Return a fleet of ten jobs of unlike size, one of which runs nowhere, with a feature on half of its machines."""
    rng = np.random.default_rng(4)
    machine, job = np.repeat(np.arange(30), 5), rng.integers(0, 9, 150)
    off = rng.lognormal(0.2 * job, 0.1)
    on = off * (1 + gain * rng.uniform(0.5, 1.5, 10)[job])
    table = pd.DataFrame({"job": job, "machine": machine, "weight": 1.0, "value": off, "exposure": 1.0 + job})
    observed = table.assign(value=np.where(machine < 15, on, off), feature=machine < 15)
    jobs = {"job": np.arange(10), "quota": rng.uniform(1, 9, 10), "instances": np.arange(3, 33, 3)}
    return Tables(observed, pd.DataFrame(jobs), table, table.assign(value=on))


@pytest.fixture(scope="module")
def tables():
    return world()


def test_the_truth_weighs_every_job_by_its_share_of_the_quota(tables):
    quota = dict(zip(tables.jobs["job"], tables.jobs["quota"], strict=True))
    there = {job: share for job, share in quota.items() if job in set(tables.nowhere["job"])}
    expected = weighted(tables.everywhere, there) / weighted(tables.nowhere, there) - 1
    assert truth(tables)["change"] == pytest.approx(expected)


def test_the_machine_level_truth_is_the_change_of_the_mean_machine(tables):
    means = []
    for table in (tables.nowhere, tables.everywhere):
        machines = [
            (rows["value"] * rows["exposure"]).sum() / rows["exposure"].sum() for _, rows in table.groupby("machine")
        ]
        means.append(sum(machines) / len(machines))
    assert truth(tables)["machine_change"] == pytest.approx(means[1] / means[0] - 1)


def test_a_feature_that_does_nothing_has_no_true_change():
    true = truth(world(gain=0.0))
    assert (true["change"], true["machine_change"]) == (0.0, 0.0)
    assert true["reference"] != 0.0


@pytest.mark.parametrize(("feature", "what"), [(True, "without"), (False, "with")])
def test_a_fleet_without_two_halves_is_refused(tables, feature, what):
    with pytest.raises(NotEnoughDataError, match=rf"^no measured instances {what} the feature: at least 1 is needed$"):
        halves_of(tables.observed.assign(feature=feature))


def test_the_halves_are_the_machines_with_and_without_the_feature(tables):
    without, having = halves_of(tables.observed)
    assert (set(without["machine"]), set(having["machine"])) == (set(range(15, 30)), set(range(15)))
    assert without.index.tolist() == list(range(len(without)))


def test_the_references_compare_the_recorded_halves(tables):
    without, having = halves_of(tables.observed)
    quota = dict(zip(tables.jobs["job"], tables.jobs["quota"], strict=True))
    both = {job: share for job, share in quota.items() if job in set(without["job"]) & set(having["job"])}
    assert truth(tables)["reference"] == pytest.approx(weighted(having, both) / weighted(without, both) - 1)


def test_by_instance_every_row_of_every_table_is_a_machine(tables):
    cut = tables.by_instance()
    assert all(table["machine"].is_unique for table in (cut.observed, *cut.arms))
    pd.testing.assert_frame_equal(cut.observed.drop(columns="machine"), tables.observed.drop(columns="machine"))
    assert by_own_machine(tables.nowhere)["machine"].tolist() == list(range(150))


def test_a_runs_tables_are_measured_as_the_settings_say(tmp_path):
    counters = {"residence": [0], "window": ["day"], "instructions": [6.0], "cycles": [4.0], "cpu_s": [2.0]}
    counters = pd.DataFrame(counters | {"wall_s": [9.0], "requests": [1.0]})
    for at, name in enumerate(COUNTERS, start=1):
        counters.assign(instructions=6.0 * at).to_parquet(tmp_path / f"{name}.parquet")
    stay = {"residence": [0], "instance": 0, "job": 3, "machine": 5, "rack": 1, "quota_vcpu": 2.0, "feature": True}
    pd.DataFrame(stay).to_parquet(tmp_path / "instances.parquet")
    pd.DataFrame({"job": [3], "quota_vcpu": [2.0], "instances": [1]}).to_parquet(tmp_path / "jobs.parquet")
    tables = Tables.of(Run(tmp_path, {}), WSMeter(metric="ips", window="day"))
    assert [each["value"].item() for each in (tables.observed, *tables.arms)] == [3.0, 6.0, 9.0]
    assert list(tables.jobs) == ["job", "quota", "instances"]
