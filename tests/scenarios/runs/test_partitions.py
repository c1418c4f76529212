"""Tables in parts are read as one: the fleet's numbers, its jobs and epochs, its truth; damage is told part by part."""

import shutil
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from scenarios.effects.effect import effect as effect_of
from scenarios.effects.observations import recorded
from scenarios.files.faults import FaultsError
from scenarios.files.schema import WSMeter
from scenarios.runs.execution import Workers, measure, obtain, reopen, validate
from scenarios.runs.rundir import Run, RunError, intact, open_run
from scenarios.wsmeter.measurements import Tables, change, change_of, job_quotas, run_measurements
from tests.helpers.cell_fleets import FLEET, quiet


def effect(*sources, **options):
    """What the command prints as JSON."""
    return effect_of(*sources, **options).payload()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return obtain(FLEET, tmp_path_factory.mktemp("here"), False, quiet, workers=Workers(processes=2))


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run.path, tmp_path / "copy")


def rows(run, table, cell):
    """The rows of a cell as it wrote them, without any code of the reader's."""
    return pq.ParquetFile(run.path / table / f"cell={cell}" / "part.parquet").read().to_pylist()


def test_any_reader_of_parquet_takes_a_table_with_its_cells(run):
    made = pd.read_parquet(run.path / "counters")
    assert sorted(made["cell"].unique()) == list(run.cells)
    assert len(made) == run.listed["counters"]["rows"] == sum(len(rows(run, "counters", cell)) for cell in run.cells)


def test_numbers_are_those_of_the_whole_fleet(run):
    machines, instances, counters = (run.table(name) for name in ("machines", "instances", "counters"))
    assert machines["machine"].tolist() == list(range(60))
    assert machines["rack"].tolist() == [machine // 5 for machine in range(60)]
    assert machines["power_domain"].nunique() == 6
    assert instances["residence"].tolist() == list(range(len(instances)))
    assert counters["residence"].isin(instances["residence"]).all()
    assert not counters["residence"].duplicated().any()
    at = instances.merge(machines, on="machine", suffixes=("", "_there"), validate="many_to_one")
    assert (at["rack"] == at["rack_there"]).all()
    assert (at["power_domain"] == at["power_domain_there"]).all()
    assert instances.groupby("instance")["job"].nunique().max() == 1
    cell = instances["machine"] // (60 // len(run.cells))
    assert cell.groupby([instances["job"], instances["shard"]]).nunique().max() == 1
    assert cell.groupby(instances["job"]).nunique().max() == len(run.cells)


def test_numbers_of_cells_do_not_meet_and_none_stays_none(run):
    of_cells = []
    for part in run.split():
        events, raw = part.table("events"), pd.DataFrame(rows(run, "events", part.cell))
        assert ((events["instance"] == -1) == (raw["instance"] == -1)).all()
        assert ((events["machine"] == -1) == (raw["machine"] == -1)).all()
        shift = (events["instance"] - raw["instance"])[raw["instance"] >= 0]
        assert len(set(shift)) == 1
        of_cells.append({*events["instance"], *part.table("instances")["instance"]} - {-1})
    assert (run.table("events")["instance"] == -1).any()
    assert sum(map(len, of_cells)) == len(set().union(*of_cells))


def test_a_job_is_known_by_its_name_in_every_cell(run):
    quota, count = defaultdict(float), defaultdict(int)
    for cell in run.cells:
        for row in rows(run, "jobs", cell):
            quota[row["name"]] += row["quota_vcpu"]
            count[row["name"]] += row["instances"]
    jobs = run.table("jobs")
    assert jobs["job"].tolist() == list(range(100))
    assert jobs["quota_vcpu"].is_monotonic_decreasing
    assert dict(zip(jobs["name"], jobs["instances"], strict=True)) == count
    assert dict(zip(jobs["name"], jobs["quota_vcpu"], strict=True)) == pytest.approx(quota)
    names = jobs.set_index("job")["name"]
    for part in run.split():
        own = {row["job"]: row["name"] for row in rows(run, "jobs", part.cell)}
        there = [own[row["job"]] for row in rows(run, "instances", part.cell)]
        assert names[part.table("instances")["job"]].tolist() == there
        assert set(names[part.table("jobs")["job"]]) == set(own.values())


def test_epochs_are_added_up(run):
    made = run.table("epochs")
    for name in ("cycles", "instances", "energy_j", "cpu_s"):
        each = [[row[name] for row in rows(run, "epochs", cell)] for cell in run.cells]
        assert made[name].tolist() == pytest.approx([sum(values) for values in zip(*each, strict=True)])
    shares = [[row["capped_share"] for row in rows(run, "epochs", cell)] for cell in run.cells]
    assert made["capped_share"].tolist() == pytest.approx(np.mean(shares, axis=0))
    assert made["epoch"].tolist() == list(range(6))
    assert run.table("truth_nowhere_epochs", ["epoch", "cycles"]).columns.tolist() == ["epoch", "cycles"]


def test_cells_one_by_one_are_the_whole(run):
    for table in ("counters", "instances", "machines", "events", "truth_jobs"):
        parts = [part.table(table) for part in run.split()]
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), run.table(table))


def test_a_column_or_a_table_that_is_not_there_is_told(run):
    with pytest.raises(RunError, match=r"counters has no column ipc; it has residence, window"):
        run.table("counters", ["ipc"])
    with pytest.raises(RunError, match="no table rounds; there are counters, epochs"):
        run.table("rounds")


def slow_truth(run):
    """The change of the quota-weighted mean IPC, row by row from the files: every stay of at least a tenth."""
    quota, means = defaultdict(float), {}
    for cell in run.cells:
        for row in rows(run, "jobs", cell):
            quota[row["name"]] += row["quota_vcpu"]
    for arm in ("nowhere", "everywhere"):
        values = defaultdict(list)
        for cell in run.cells:
            name = {row["job"]: row["name"] for row in rows(run, "jobs", cell)}
            job = {row["residence"]: name[row["job"]] for row in rows(run, "instances", cell)}
            for row in rows(run, f"truth_{arm}_counters", cell):
                if row["wall_s"] >= 180.0 and row["cycles"] > 0:
                    values[job[row["residence"]]].append(row["instructions"] / row["cycles"])
        means[arm] = {job: sum(each) / len(each) for job, each in values.items()}
    totals = [sum(quota[job] * mean for job, mean in means[arm].items()) for arm in ("nowhere", "everywhere")]
    return totals[1] / totals[0] - 1


def test_the_truth_is_of_all_cells(run):
    settings = WSMeter()
    assert change_of(run, settings) == pytest.approx(slow_truth(run), rel=1e-12)
    assert change(Tables.of(run, settings)) == pytest.approx(slow_truth(run), rel=1e-12)
    cells = [change_of(part, settings) for part in run.split()]
    assert min(cells) < change_of(run, settings) < max(cells)


def test_a_run_and_a_validation_speak_of_the_whole_fleet(run):
    payload = measure(FLEET, run, run.path.parent, quiet).payload()
    assert payload["counts"]["machines"] == 60
    assert payload["truth"]["change"] == pytest.approx(slow_truth(run), rel=1e-12)
    assert {row["machines"] for row in payload["estimates"]} == {4, 8}
    assert 0.7 < payload["fleet"]["allocated_share"] < 0.9
    judged = validate(FLEET, run.path.parent, False, quiet).payload()
    assert judged["truth"]["change"] == pytest.approx(slow_truth(run), rel=1e-12)


def test_jobs_that_matter_may_be_of_one_cell(run):
    local = next(row["name"] for row in rows(run, "jobs", "c0002") if row["name"].startswith("local-"))
    settings = WSMeter(jobs=("heavyweight-01", local))
    made = run_measurements(run, settings)
    assert set(made["job"]) == set(job_quotas(run, settings)["job"])
    assert made["machine"].max() >= 40
    assert np.isfinite(change_of(run, settings))
    with pytest.raises(ValueError, match="no job is named nobody"):
        run_measurements(run, WSMeter(jobs=("nobody",)))


def test_an_effect_is_of_all_cells(run):
    table, _ = recorded(run)
    assert table["machine"].nunique() == 60
    assert table.groupby("machine")["treated"].nunique().max() == 1
    payload = effect([run.path])
    assert payload["machines"] + payload["controls"] == 60
    assert payload["quota_coverage"] > 0.5


def test_a_copy_without_its_truth_opens(copy):
    for folder in copy.glob("truth_*"):
        shutil.rmtree(folder)
    scenario, run = reopen(copy)
    assert not run.has("truth_nowhere_counters")
    payload = measure(scenario, run, copy.parent, quiet).payload()
    assert np.isnan(payload["truth"]["change"])
    assert payload["estimates"]


def damage_missing(copy):
    (copy / "counters/cell=c0002/part.parquet").unlink()
    return "counters/cell=c0002/part.parquet: is not there, though the run lists it"


def damage_cut(copy):
    file = copy / "machines/cell=c0001/part.parquet"
    file.write_bytes(file.read_bytes()[:100])
    return "machines/cell=c0001/part.parquet: should have .* bytes; is it cut off.*, got 100"


def damage_foreign(copy):
    shutil.copytree(copy / "jobs/cell=c0001", copy / "jobs/cell=c0009")
    return "jobs/cell=c0009/part.parquet: is not of this run, which does not list it"


DAMAGES = (damage_missing, damage_cut, damage_foreign)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_named(copy, damage):
    told = damage(copy)
    for command in (reopen, lambda path: effect([path])):
        with pytest.raises(FaultsError, match=told) as found:
            command(copy)
        assert len(found.value.faults) == 1
        assert found.value.faults[0].file.startswith(str(copy))
    assert not intact(copy)


def test_all_damaged_parts_are_named_together(copy):
    for damage in DAMAGES:
        damage(copy)
    with pytest.raises(FaultsError) as found:
        open_run(copy)
    assert len(found.value.faults) == 3


def test_a_part_that_holds_something_else_is_named_when_it_is_read(copy):
    file = copy / "machines/cell=c0003/part.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    run = open_run(copy)
    with pytest.raises(FaultsError, match=r"cell=c0003/part\.parquet: holds something else than this run wrote"):
        run.table("machines")
    assert not intact(copy)


def test_a_damaged_run_is_made_again(copy):
    place = copy.rename(copy.parent / obtained_name(copy))
    damage_cut(place)
    again = obtain(FLEET, place.parent, False, quiet, workers=Workers(processes=1))
    assert again.path == place
    assert intact(place)


def obtained_name(copy):
    manifest = Run(copy, open_run(copy).manifest).manifest
    return f"tiny-{manifest['digest']}"


def test_a_customers_jobs_are_known_in_a_fleet_of_one_cell_too(tmp_path):
    one = obtain(replace(FLEET, cells=1), tmp_path, False, quiet)
    assert [part.path for part in one.split()] == [one.path]
    assert change_of(one, WSMeter()) == change(Tables.of(one, WSMeter()))
