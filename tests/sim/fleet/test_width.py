"""No hardware thread retires more instructions in a cycle than its core is wide, however short of stalls it is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.processors import PROCESSORS
from models.fleet.world import Behaviour, Feature, Fleet, Population, World
from sim.fleet import day
from sim.fleet.experiment import experiment

SHARES = {"pres": 0.2, "haswell_2698v3": 0.3, "icelake_8380": 0.3, "turin_9755": 0.2}
NARROW = {"pres": 3, "haswell_2698v3": 4, "icelake_8380": 5, "turin_9755": 8}
SWIFT = Behaviour(
    core_cpi=0.02, core_cpi_log_sd=0.5, memory_accesses_per_instruction=1e-6, instance_log_sd=0.6, smt_slowdown=0.0,
    inner_miss_cycles=0.0,
)  # fmt: skip
WORLD = World(
    seed=4,
    horizon_s=1800.0,
    fleet=Fleet(20, SHARES),
    population=Population(40, 20, behaviour=SWIFT),
    feature=Feature("turin", {"haswell_2698v3": "turin_9755"}),
)


def retired(world, directory):
    """Instructions a cycle of every row of the counters, and the platform on which it was counted."""
    directory.mkdir()
    experiment(world, directory)
    counters, stays, machines = (
        pd.read_parquet(directory / f"{name}.parquet") for name in ("counters", "instances", "machines")
    )
    rows = counters.merge(stays[["residence", "machine"]], on="residence").merge(
        machines[["machine", "platform"]], on="machine"
    )
    return rows["instructions"] / rows["cycles"], rows["platform"]


@pytest.mark.parametrize("events", [False, True])
def test_code_that_never_stalls_retires_what_its_core_is_wide(events, tmp_path):
    """All jobs would retire 50 a cycle; at their fastest they get their core's width, but for the rare miss."""
    world = replace(WORLD, feature=None, simulation="events" if events else "epochs")
    ipc, platform = retired(world, tmp_path / "run")
    assert set(platform) == set(NARROW)
    for name, width in NARROW.items():
        here = ipc[platform == name]
        assert here.max() <= width * (1.0 + 1e-12), name
        assert here.max() > 0.999 * width, name


def test_a_width_that_nobody_reaches_changes_nothing(monkeypatch, tmp_path):
    slow = replace(WORLD.population.behaviour, core_cpi=2.0, core_cpi_log_sd=0.1, instance_log_sd=0.05)
    world = replace(WORLD, population=replace(WORLD.population, behaviour=slow))
    digests = []
    for at, factor in enumerate((1, 1000)):
        wide = {name: replace(its, width=factor * its.width) for name, its in PROCESSORS.items()}
        monkeypatch.setattr(day, "processor", lambda name, own, wide=wide: wide[name])
        (tmp_path / str(at)).mkdir()
        digests.append({table.table: table.digest for table in experiment(world, tmp_path / str(at)).tables})
    assert digests[0] == digests[1]


def test_a_job_needs_the_cycles_of_the_reference_core_at_least():
    jobs = build_jobs(WORLD, build_machines(WORLD))
    np.testing.assert_array_equal(jobs.core_cpi, 0.25)
    assert (jobs.reference_cpi > 0.25).all()
