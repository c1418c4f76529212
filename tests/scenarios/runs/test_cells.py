"""Cells of a fleet: pieces that come out the same wherever, in whatever order and however often they are made."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.fleet.world import Recording
from scenarios.commands.app import app
from scenarios.commands.run import workers_of
from scenarios.files.faults import FaultsError
from scenarios.files.loader import digest, load, settings
from scenarios.runs.execution import HERE, DataCentre, Workers, alone, cells, gathered, obtain
from scenarios.runs.rundir import Draft, RunError, intact
from sim.fleet.experiment import experiment
from tests.helpers.cell_fleets import FLEET, quiet
from tests.helpers.clusters import cluster

ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path
from scenarios.runs.execution import Workers
from scenarios.runs.execution import obtain
from tests.helpers.cell_fleets import FLEET
def die(_what, share):
    if share > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
obtain(FLEET, Path(sys.argv[1]), False, die, workers=Workers(processes=1))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return obtain(FLEET, tmp_path_factory.mktemp("here"), False, quiet, workers=Workers(processes=1))


def digests(manifest):
    return {
        (table, cell): part["digest"]
        for table, said in manifest["tables"].items()
        for cell, part in said["partitions"].items()
    }


def test_a_cell_writes_what_it_writes_as_a_fleet_of_its_own(run, tmp_path):
    assert list(run.cells) == ["c0001", "c0002", "c0003"]
    for cell in cells(FLEET.seed, 3):
        own = obtain(alone(FLEET, cell), tmp_path, False, quiet)
        assert own.manifest["seed"] == cell.seed == run.manifest["cells"][cell.name]["seed"]
        assert {name: said["digest"] for name, said in own.listed.items()} == {
            table: digest for (table, name), digest in digests(run.manifest).items() if name == cell.name
        }


def test_cells_are_unlike_each_other(run):
    for table in ("machines", "jobs", "counters", "truth_everywhere_counters"):
        found = [digest for (name, _), digest in digests(run.manifest).items() if name == table]
        assert len(set(found)) == 3 or table == "machines"
    assert len({cell["seed"] for cell in run.manifest["cells"].values()}) == 3


def test_one_cell_is_the_fleet_as_it_always_was(tmp_path):
    one = replace(FLEET, cells=1)
    run = obtain(one, tmp_path, False, quiet)
    (tmp_path / "world").mkdir()
    made = experiment(one, tmp_path / "world")
    assert run.path.name == f"tiny-{digest(one)}"
    assert not run.cells
    assert "cells" not in run.manifest
    assert {name: said["digest"] for name, said in run.listed.items()} == {
        each.table: each.digest for each in made.tables
    }


def test_a_further_cell_changes_none_of_the_others(run, tmp_path):
    more = obtain(replace(FLEET, cells=4), tmp_path, False, quiet, workers=Workers(processes=1))
    assert more.path.name != run.path.name
    assert digests(run.manifest).items() < digests(more.manifest).items()
    assert more.manifest["counts"]["machines"] == 80


def test_two_processes_write_the_same(run, tmp_path):
    there = obtain(FLEET, tmp_path, False, quiet, workers=Workers(processes=2))
    assert there.manifest["tables"] == run.manifest["tables"]
    assert there.manifest["cells"] == run.manifest["cells"]


def test_a_cluster_of_one_worker_or_two_writes_the_same(run, tmp_path):
    distributed = pytest.importorskip("distributed")
    with cluster(1) as made:
        where = Workers(f"dask:{made.scheduler_address}")
        one = obtain(FLEET, tmp_path / "one", False, quiet, workers=where)
        made.scale(2)
        with distributed.Client(made) as client:
            client.wait_for_workers(2)
        two = obtain(FLEET, tmp_path / "two", False, quiet, workers=where)
    assert one.manifest["tables"] == two.manifest["tables"] == run.manifest["tables"]


def test_nothing_is_left_beside_a_finished_run_and_it_is_used_again(run):
    assert [one.name for one in run.path.parent.iterdir()] == [run.path.name]
    assert intact(run.path)
    before = (run.path / "manifest.json").stat().st_mtime_ns
    assert obtain(FLEET, run.path.parent, False, quiet).path == run.path
    assert (run.path / "manifest.json").stat().st_mtime_ns == before


def test_what_was_killed_goes_on_where_it_stopped(run, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as process:
        process.wait(timeout=120)
    assert process.returncode == -signal.SIGKILL
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.glob(".tiny-*.cells/c*/c*/manifest.json")}
    assert len(kept) >= 2
    assert not list(tmp_path.glob("tiny-*"))
    again = list[int]()

    def remembered(_what, share):
        again.append(share)
        if share == 1.0:
            assert all(file.stat().st_mtime_ns == then for file, then in kept.items())

    there = obtain(FLEET, tmp_path, False, remembered, workers=Workers(processes=1))
    assert again[-1] == 1.0
    assert there.manifest["tables"] == run.manifest["tables"]


def test_force_makes_the_cells_again(run, tmp_path):
    cell = obtain(alone(FLEET, cells(3, 3)[0]), tmp_path / f".{run.path.name}.cells/c0001", False, quiet)
    seen = []

    def look(_what, share):
        if share == 0.0:
            seen.append(cell.path.exists())

    obtain(FLEET, tmp_path, True, look, workers=Workers(processes=1))
    assert seen == [False]


class Backwards(Executor):
    """Works on what it is given at once, the last first."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, item):
        future = Future()
        self.waiting.append((future, function, item))
        if len(self.waiting) == FLEET.cells:
            for future, make, cell in reversed(self.waiting):
                future.set_result(make(cell))
        return self.waiting[-1][0]


def test_the_order_of_the_work_does_not_matter(run, tmp_path):
    order = []

    def make(cell):
        order.append(cell.name)
        return obtain(alone(FLEET, cell), tmp_path / "pieces", False, quiet).path

    draft = Draft(tmp_path / "draft", tmp_path / "run")
    counts = gathered(FLEET, draft, make, Backwards(), quiet)
    assert order == ["c0003", "c0002", "c0001"]
    assert list(draft.cells) == ["c0001", "c0002", "c0003"]
    assert {name: said["partitions"] for name, said in run.listed.items()} == draft.parts
    assert counts == run.manifest["counts"]


def test_counts_are_of_all_cells(run):
    counts, each = run.manifest["counts"], [cell["counts"] for cell in run.manifest["cells"].values()]
    assert counts["cells"] == 3
    assert counts["machines"] == 60
    assert counts["epochs"] == 6
    assert counts["jobs"] == run.table("jobs")["name"].nunique() == 40 + 3 * 20
    for name in ("instances", "residences"):
        assert counts[name] == sum(cell[name] for cell in each)


def test_a_folder_that_workers_do_not_share_is_told(tmp_path):
    draft = Draft(tmp_path / "draft", tmp_path / "run")
    with pytest.raises(RunError, match="should be a folder that all workers share"):
        gathered(FLEET, draft, lambda cell: tmp_path / cell.name, Backwards(), quiet)


def test_the_command_says_how_many_cells_there_are_and_measures_a_run_that_is_there(tmp_path):
    small = ["cells=2", "fleet.machines=40", "horizon_s=1800", "analyses.wsmeter.machines=[4]"]
    sets = [word for value in small for word in ("--set", value)]
    done = CliRunner().invoke(app, ["run", "cells", *sets, "--workers", "2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("cells (seed 1): 2 cells, 80 machines, ")
    folder = str(next(tmp_path.glob("cells-*")))
    again = CliRunner().invoke(app, ["run", folder])
    assert again.stdout == done.stdout
    refused = CliRunner().invoke(app, ["run", folder, "--workers", "2"])
    assert refused.exit_code == 2
    assert refused.stderr == "--workers: is only for fleets of several cells that are to be simulated, got 2\n"


def test_a_seed_belongs_to_the_fleet_and_to_the_cell():
    assert cells(1, 2)[0] != cells(2, 2)[0]
    many = cells(1, 1000)
    assert len({cell.seed for cell in many}) == len({cell.name for cell in many}) == 1000
    assert [cell.name for cell in many] == sorted(cell.name for cell in many)


@pytest.mark.parametrize(
    ("where", "count", "told"),
    [
        ("threads", None, "--executor: should be processes, or dask:"),
        ("dask:tcp://127.0.0.1:1", 2, "--workers: is only for processes"),
    ],
)
def test_workers_that_cannot_be_are_refused(where, count, told):
    with pytest.raises(FaultsError, match=told):
        workers_of([FLEET], where, count)


def test_workers_are_refused_where_nothing_has_cells():
    with pytest.raises(FaultsError) as told:
        workers_of([replace(FLEET, cells=1)], "processes", 2)
    assert [(fault.file, fault.got) for fault in told.value.faults] == [("--executor", "processes"), ("--workers", "2")]
    assert workers_of([], None, None) == HERE


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["cells=0"], "cells: should be at least 1, got 0"),
        (["cells=-4"], "cells: should be at least 1, got -4"),
        (["cells=1001"], "cells: should be at most 1000, got 1001"),
        (["cells=1.5"], "cells: should be a whole number, got 1.5"),
        (["cell=4"], r"cell: unknown key \(did you mean cells"),
        (["recording.loop={}"], "recording.loop: should be null where there are 4 cells"),
        (
            ["feature.platforms={}", "feature.software=[{jobs: [local-1-00001, common-00001]}]"],
            'software.0.jobs.0: should be a service or a common job, which all 4 cells run, got "local-1-00001"',
        ),
        (["analyses.wsmeter.machines=[601]"], "should be at most the 600 machines with the feature"),
    ],
)
def test_cells_that_cannot_be_are_faults(values, told):
    with pytest.raises(FaultsError, match=told) as found:
        load("cells", settings(values))
    assert len(found.value.faults) == 1


def test_as_many_cells_as_there_may_be_are_understood():
    assert load("cells", settings(["cells=1000", "analyses.wsmeter.machines=[600]"])).cells == 1000


def test_a_queue_follows_an_instance_of_one_cell(tmp_path):
    with pytest.raises(RunError, match="has 4 cells, where one is needed"):
        obtain(load("queue_job", settings(["load.job.scenario=cells"])), tmp_path, False, quiet)


def test_a_cell_is_the_fleet_with_its_own_name_and_seed():
    assert alone(FLEET, DataCentre("c0007", 9)) == replace(FLEET, name="c0007", seed=9, cells=1)
    assert FLEET.recording == Recording()
