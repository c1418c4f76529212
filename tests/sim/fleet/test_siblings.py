"""Siblings by the machine's mean against hardware threads that are paired at random, pair by pair."""

import numpy as np
import pytest

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Population, World
from models.randomness import stream
from sim.fleet import slots
from sim.fleet.kernel import _slow_down_siblings
from sim.fleet.layout import Residents

RELIEF, CHANCE, RESIDENTS = 0.5, 0.35, 20


@pytest.fixture(scope="module")
def drawn():
    """Core CPI, stall cycles, slowdown and busy threads of twenty instances drawn from a fleet's jobs."""
    world = World(population=Population(jobs=300, common_jobs=60))
    jobs = build_jobs(world, build_machines(world))
    chosen = stream(1, "residents of a machine").choice(jobs.count, RESIDENTS, replace=False)
    stall = (jobs.reference_cpi - jobs.core_cpi) * 1.2
    busy = jobs.utilisation * jobs.instance_quota_vcpu
    return tuple(values[chosen] for values in (jobs.core_cpi, stall, jobs.smt_slowdown, busy))


def _beside(drawn, a, b):
    """CPI of resident a while a thread of b is its sibling all the time, both solved together."""
    core, stall, slowdown, _ = (values[[a, b]] for values in drawn)
    waits = np.array([0.5, 0.5])
    for _ in range(60):
        slowed = core * (1 + slowdown * (1 + RELIEF * (0.5 - waits[::-1])))
        waits = 1 - slowed / (slowed + stall)
    return (slowed + stall)[0]


def _by_the_mean(drawn, chance):
    """CPI of each resident if its sibling waits as the mean thread does."""
    core, stall, slowdown, busy = drawn
    hot, waits = np.zeros((slots.FIELDS, RESIDENTS)), np.full(RESIDENTS, 0.5)
    hot[slots.SMT], hot[slots.USE] = slowdown, busy
    for _ in range(60):
        hot[slots.CORE_NOW] = core
        _slow_down_siblings(Residents(hot, np.zeros((1, RESIDENTS), np.int64), RESIDENTS), waits, chance, RELIEF)
        waits = 1 - hot[slots.CORE_NOW] / (hot[slots.CORE_NOW] + stall)
    return hot[slots.CORE_NOW] + stall


def test_the_mean_sibling_is_what_random_pairing_comes_to(drawn):
    """Within 0.5% for every resident, where who the sibling is changes its CPI by several per cent."""
    share = drawn[3] / drawn[3].sum()
    beside = np.array([[_beside(drawn, a, b) for b in range(RESIDENTS)] for a in range(RESIDENTS)])
    assert (np.ptp(beside, axis=1) / beside.mean(axis=1)).max() > 0.05
    alone = drawn[0] + drawn[1]
    by_the_mean = _by_the_mean(drawn, 1.0)
    np.testing.assert_allclose((1 / beside) @ share, 1 / by_the_mean, rtol=5e-3)
    np.testing.assert_allclose(beside @ share, by_the_mean, rtol=5e-3)
    paired = (1 - CHANCE) * alone + CHANCE * (beside @ share)
    np.testing.assert_allclose(paired, _by_the_mean(drawn, CHANCE), rtol=1e-2)
