"""The fast costs against their readable twin, number by number."""

import numpy as np
import pytest

from analysis.crossplatform.costs import (
    CountedWork,
    DepartingMachine,
    HardwareDepartures,
    ServiceDepartures,
    misses,
    processor_s,
    saturated,
)
from analysis.crossplatform.costs import saturated_rate_per_s as rate_of
from models.platforms import PLATFORMS
from tests.helpers import service_costs as slow

PIII = PLATFORMS["piii"]
TARGETS = [PLATFORMS[name] for name in ("piii", "pres", "pd4", "xeon_1h_1c_1p", "xeon_2h_2c_2p", "haswell_2698v3")]
SERVICE = slow.Service(3e7, 0.06, -0.83, core=1.1, overlap=1.4, branches=0.005, written=0.05, smt=0.6)
NOTHING_ELSE = slow.Service(3e7, 0.06, -0.83)
FACTORS = {"cpi": 1.1, "near": 0.9, "far": 1.2, "memory": 0.85, "overlap": 1.05, "cache_share": 0.8, "smt": 1.3}

each_target = pytest.mark.parametrize("platform", TARGETS, ids=lambda one: one.name)
each_service = pytest.mark.parametrize("service", [SERVICE, NOTHING_ELSE], ids=["rich", "plain"])


def columns(values):
    return [np.array([[np.log(value)]]) if value > 0 else np.array([[-np.inf]]) for value in values]


def machine(platform, factors):
    return DepartingMachine(platform, HardwareDepartures(*columns(factors.values())))


def software(service):
    logs = columns([service.core, service.overlap, service.branches, service.written, service.smt])
    return ServiceDepartures(*logs, np.zeros((1, 1)))


def work(service, factors=slow.NONE):
    counted = np.array(slow.misses(service, PIII, factors, 0.0))
    return CountedWork(machine(PIII, factors), np.array([service.instructions]), counted[:, None], counted, (1.0, 0.0))


@each_target
@each_service
@pytest.mark.parametrize("busy", [0.0, 0.5, 1.0])
def test_misses_at_other_sizes_follow_from_those_counted(platform, service, busy):
    found = misses(work(service), software(service), machine(platform, FACTORS), np.array([[busy]]))
    assert np.ravel(found) == pytest.approx(slow.misses(service, platform, FACTORS, busy), rel=1e-9)


@each_target
@each_service
def test_a_request_takes_as_long_as_its_twin(platform, service):
    rate = 3.0
    fast, _ = processor_s(
        work(service), software(service), machine(platform, FACTORS), np.zeros((1, 1)), np.array([rate])
    )
    assert fast[0, 0] == pytest.approx(slow.seconds(service, platform, FACTORS, rate), rel=1e-3)


@each_target
@each_service
def test_a_busy_machine_serves_as_many_as_its_twin(platform, service):
    fast = rate_of(saturated(work(service), software(service), machine(platform, FACTORS)), np.zeros((1, 1)))
    assert fast[0, 0] == pytest.approx(slow.score(service, platform, FACTORS), rel=1e-6)


def test_parameter_vectors_are_independent_rows():
    one, other = (machine(TARGETS[1], {**FACTORS, "cpi": cpi}) for cpi in (1.0, 1.5))
    both = DepartingMachine(
        TARGETS[1], HardwareDepartures(*(np.vstack(pair) for pair in zip(one.hardware, other.hardware, strict=True)))
    )
    rate, idle = np.array([0.1]), np.zeros((2, 1))
    apart = [processor_s(work(SERVICE), software(SERVICE), each, idle[:1], rate)[0][0, 0] for each in (one, other)]
    assert processor_s(work(SERVICE), software(SERVICE), both, idle, rate)[0][:, 0] == pytest.approx(apart)


def test_only_hardware_threads_slow_their_siblings():
    for platform in TARGETS:
        arguments = (work(SERVICE), software(SERVICE), machine(platform, FACTORS), np.zeros((1, 1)), np.array([1.0]))
        assert (processor_s(*arguments)[1][0, 0] > 0) == (platform.threads_per_core > 1)
