"""A service on one machine: theory where there is one, and what must hold always."""

from dataclasses import fields, replace

import numpy as np
import pytest

from models.services.world import Application, Mechanisms, ServiceLoad, ServiceWorld
from sim.queues.laws import BrokenLawError
from sim.services import capacity, mixes, serving, work
from sim.services.sharing import share

OFF = Mechanisms(**{field.name: False for field in fields(Mechanisms)})
NOISE_ONLY = replace(OFF, request_noise=True)
STILL = ServiceLoad(requests_per_s=20.0, swing=0.0, mix_log_sd=0.0, trend_log_sd=0.0)
ONE_TYPE = ServiceWorld(
    seed=3,
    horizon_s=6000.0,
    platforms=("pres",),
    application=Application(types=1, request_cv=1.0, other_tiers_s=0.0, instructions_per_request=2.4e7),
    load=STILL,
    mechanisms=NOISE_ONLY,
)


def _run(world, platform):
    site = capacity.sites(world)[platform]
    load = mixes.draw(world, site.activities.popularity)
    jobs = work.draw(world, site.activities, load)
    return site, jobs, serving.run(site, jobs, np.append(load.start_s, world.horizon_s))


@pytest.mark.statistical
@pytest.mark.parametrize("cv", [0.0, 1.0, 2.0])
def test_with_all_off_and_one_type_response_is_that_of_processor_sharing(cv):
    """Two processors: demand / (1 − load²), M/M/2's, whatever the spread. False alarms below 1e-3 (error 1.2%)."""
    world = replace(ONE_TYPE, application=replace(ONE_TYPE.application, request_cv=cv))
    site, _, done = _run(world, "pres")
    demand_s = float(site.demands(np.zeros((1, 3))).cpu_s[0, 0])
    load = 20.0 * demand_s / 2
    assert 0.3 < load < 0.8
    assert done.response_s.mean() == pytest.approx(demand_s / (1 - load**2), rel=0.04)


@pytest.mark.statistical
def test_utilisation_is_demand_over_processors_and_time():
    """False alarms below 1e-3: 120,000 exponential demands."""
    site, _, done = _run(ONE_TYPE, "pres")
    demand_s = float(site.demands(np.zeros((1, 3))).cpu_s[0, 0])
    assert done.utilisation.mean() == pytest.approx(20.0 * demand_s / 2, rel=0.02)


def test_with_all_off_counters_are_instructions_and_misses_of_the_requests_that_came():
    world = replace(ONE_TYPE, application=Application(types=5), load=ServiceLoad(1.0), mechanisms=OFF)
    site, jobs, done = _run(world, "pres")
    counts = work.counts(jobs, 200, 5)
    needs = site.demands(np.zeros((1, 7)))
    instructions = needs.instructions[0, :5]
    misses = instructions[:, None] * needs.misses_per_instruction[0, :5, :2]
    expected = counts @ np.column_stack((instructions, misses))
    # A request in service at an interval's end is counted in both: about one in a hundred intervals' requests.
    assert np.median(abs(done.counters / expected - 1), axis=0).max() < 0.02
    np.testing.assert_allclose(done.counters.sum(axis=0), expected.sum(axis=0), rtol=2e-3)


def test_counters_and_utilisation_agree_on_what_the_machine_did():
    """Cycles per busy second cannot exceed the clock: instructions × CPI without memory is less than busy time."""
    world = ServiceWorld(horizon_s=3000.0, platforms=("piii",), load=ServiceLoad(volume=3.0))
    site, _, done = _run(world, "piii")
    busy_cycles = done.utilisation * 30.0 * 2 * site.machine.frequency_hz
    assert (done.counters[:, 0] < busy_cycles).all()
    assert (done.counters[:, 0] > 0.1 * busy_cycles).all()


def test_a_slower_machine_is_busier_under_the_same_requests():
    world = ServiceWorld(horizon_s=3000.0, platforms=("piii", "pd4"))
    slow, fast = (_run(world, name)[2] for name in world.platforms)
    assert (slow.utilisation > fast.utilisation).all()


def test_lost_work_is_told():
    demand_s = np.array([2.0, 2.0])
    served = share(np.array([0.0, 1.0]), demand_s, np.array([1.0]), np.array([0.0, 2.0, 3.0]))
    with pytest.raises(BrokenLawError, match="processors did 3 s, jobs got 2 s"):
        serving.obey(served, 0.5 * demand_s)
