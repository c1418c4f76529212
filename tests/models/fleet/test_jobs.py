"""The jobs of a warehouse-scale computer fill it as asked, and their miss curves are possible."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.fleet.jobs import REFERENCE_SHARE_BYTES, build_jobs, miss_curve
from models.fleet.machines import build_machines
from models.fleet.world import Behaviour, Fleet, Population, Service, World

WORLD = World(fleet=Fleet(400), population=Population(500, 200, heavyweights=20))
SHOP = Service("shop", 12, 3.0, 0.9, 0.02, open_load=True)
traits = st.tuples(st.floats(0.0, 0.1), st.floats(1e4, 1e9), st.floats(0.0, 1.0))


def jobs_of(world):
    return build_jobs(world, build_machines(world))


def populated(**changes):
    return replace(WORLD, population=replace(WORLD.population, **changes))


@given(traits, st.lists(st.floats(0.0, 1e10), min_size=2))
def test_misses_never_rise_with_the_cache_share(one, shares):
    curve = miss_curve(*(np.array([trait]) for trait in one))
    misses = np.array([curve(share)[0] for share in sorted(shares)])
    assert (np.diff(misses) <= 1e-12 * misses[0]).all()
    assert (misses >= 0).all()


@given(traits)
def test_misses_at_the_reference_share_are_those_asked_for(one):
    curve = miss_curve(*(np.array([trait]) for trait in one))
    assert curve(REFERENCE_SHARE_BYTES)[0] == pytest.approx(one[0], rel=1e-9)


@given(traits)
def test_no_cache_removes_the_streaming_part(one):
    accesses, _, streaming = one
    curve = miss_curve(*(np.array([trait]) for trait in one))
    assert curve(1e15)[0] >= accesses * streaming * (1 - 1e-9)
    assert curve(0.0)[0] <= accesses * (1 + 10 * (1 - streaming)) * (1 + 1e-9)


def test_quotas_fill_the_allocated_share():
    for share in (0.3, 0.86):
        jobs = jobs_of(populated(allocated_share=share))
        assert jobs.quota_vcpu.sum() == pytest.approx(share * 400 * 64)
        assert (jobs.instances >= 1).all()


def test_jobs_come_in_order_of_falling_quota():
    assert (np.diff(jobs_of(populated(services=(SHOP,))).quota_vcpu) <= 1e-9).all()


def test_heavyweights_hold_their_share():
    jobs = jobs_of(WORLD)
    heavy = np.array([name.startswith("heavyweight") for name in jobs.names])
    assert heavy.sum() == 20
    assert jobs.quota_vcpu[heavy].sum() / jobs.quota_vcpu.sum() == pytest.approx(0.84)


def test_two_wscs_of_a_universe_share_their_common_jobs():
    here, there = jobs_of(WORLD), jobs_of(replace(WORLD, seed=9))
    common = {name for name in here.names if not name.startswith("local")}
    assert common == set(here.names) & set(there.names)
    assert len(common) == 200
    for name in ("overlap", "working_set_bytes", "smt_slowdown"):
        of_here = dict(zip(here.names, getattr(here, name), strict=True))
        of_there = dict(zip(there.names, getattr(there, name), strict=True))
        assert all(of_here[job] == of_there[job] for job in common)
    assert (here.quota_vcpu != there.quota_vcpu).any()


def test_another_universe_has_other_jobs():
    here, there = jobs_of(WORLD), jobs_of(populated(universe=7))
    assert not np.isin(here.overlap, there.overlap[there.overlap > 1]).all()


def test_a_service_is_what_was_said():
    jobs = jobs_of(populated(services=(SHOP,)))
    at = jobs.names.index("shop")
    assert jobs.instances[at] == 12
    for name in ("core_cpi", "memory_accesses_per_instruction", "overlap", "instructions_per_request"):
        assert getattr(jobs, name)[at] == getattr(SHOP, name)
    assert jobs.instance_quota_vcpu[at] == 3.0
    assert jobs.open_load[at]


@pytest.mark.parametrize(
    "sizes",
    [{"jobs": 0, "common_jobs": 0, "heavyweights": 0}, {"heavyweights": 0}, {"common_jobs": 20}, {"jobs": 200}],
    ids=str,
)
def test_any_kind_of_jobs_may_be_missing(sizes):
    jobs = jobs_of(populated(services=(SHOP,), **sizes))
    assert jobs.count == sizes.get("jobs", 500) + 1
    assert np.isfinite(jobs.reference_cpi).all()


def test_heavyweights_alone_hold_everything():
    jobs = jobs_of(populated(jobs=20, common_jobs=20))
    assert jobs.quota_vcpu.sum() == pytest.approx(0.86 * 400 * 64)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_that_leaves_some_jobs_nothing_is_refused(share):
    with pytest.raises(ValueError, match=f"leave quota to 20 heavyweights and 480 other jobs, got {share:g}"):
        jobs_of(populated(heavyweight_share=share))


def test_services_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="ask for 25600 vCPUs; the allocated share holds 22016"):
        jobs_of(populated(services=(replace(SHOP, instances=6400, quota_vcpu=4.0),)))


@pytest.mark.statistical
def test_behaviour_has_the_medians_and_spreads_asked_for():
    """Four medians and two spreads of 20,000 jobs within 4.5 standard errors each: 4 in 100,000 runs."""
    how = Behaviour(size_exponent=0.0)
    jobs = jobs_of(replace(WORLD, fleet=Fleet(6000), population=Population(20_000, 10_000, behaviour=how)))
    asked = {
        "core_cpi": (how.core_cpi, how.core_cpi_log_sd),
        "working_set_bytes": (how.working_set_bytes, how.working_set_log_sd),
        "memory_accesses_per_instruction": (how.memory_accesses_per_instruction, how.memory_accesses_log_sd),
    }
    for name, (median, log_sd) in asked.items():
        logs = np.log(getattr(jobs, name))
        assert abs(logs.mean() - np.log(median)) < 4.5 * log_sd / np.sqrt(20_000)
        assert logs.std() == pytest.approx(log_sd, rel=4.5 / np.sqrt(40_000))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_at_the_ends_are_exact(share):
    behaviour = Behaviour(streaming_share=share, utilisation=share, latency_critical_share=share)
    jobs = jobs_of(populated(behaviour=behaviour))
    for drawn in (jobs.streaming_share, jobs.utilisation, jobs.latency_critical):
        assert (drawn == share).all()
