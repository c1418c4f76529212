"""The row about rates between platforms: its scheduler, and every criterion measured on a small fleet."""

import numpy as np
import pytest

from analysis.figures.criteria import judge
from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Fleet, Population, World
from scenarios.papers import rates
from scenarios.papers.catalogue import ROWS
from scenarios.papers.rows import published
from scenarios.papers.sources import Sources


def test_heavy_jobs_are_on_new_machines_which_are_fuller_and_none_is_overfull():
    platforms = {rates.OLD: 0.5, rates.NEW: 0.5}
    world = World(fleet=Fleet(200, platforms), population=Population(jobs=200, common_jobs=90, heavyweights=15))
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    instances = rates.placed(machines, jobs, 0.5, np.random.default_rng(1))
    assert np.bincount(instances.job, minlength=jobs.count).tolist() == jobs.instances.tolist()
    placed = np.bincount(instances.machine, jobs.instance_quota_vcpu[instances.job], machines.count)
    assert (placed <= machines.vcpus).all()
    full = [placed[machines.platform == number].mean() for number in (0, 1)]
    assert full[1] / full[0] == pytest.approx(1.1, abs=0.04)
    on_new = [(machines.platform[instances.machine[instances.job == job]] == 1).mean() for job in (0, jobs.count - 1)]
    assert on_new[0] > on_new[1] + 0.3


def test_every_criterion_is_measured(monkeypatch):
    """On 300 machines, where the truth is that of two simulations, rates are near it and the plain ratio is not."""
    monkeypatch.setattr(rates, "SCENARIO", "small")
    measured = ROWS["world/rates"].outcome(Sources(None, lambda _what, _share: None, world=2))
    checks = {check.name: check for check in judge(measured.measured, published("world/rates"))}
    names = ("naive", "fleet", "fleet_held", "head", "coverage_min", "coverage_max", "filled_min", "filled_max")
    assert set(checks) == {"machines", *names, *(f"strict_{name}" for name in names)}
    assert checks["machines"].measured == 300
    assert checks["fleet"].measured < 0.02
    assert checks["naive"].measured > 0.08
    assert measured.table["of"].tolist()[:2] == ["fleet", "head"]
