"""The published method: exact where the truth has its own form, silent about what it does not know."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest

from analysis.crossplatform import service
from analysis.crossplatform.evidence import Evidence, ServiceLog
from analysis.crossplatform.logs import from_tables
from analysis.crossplatform.published import calibrated, compose, kappa, published
from models.platforms import PLATFORMS, Cache, Platform
from models.services.world import Application, Mechanisms, ServiceWorld
from sim.services.run import services

KIB = 2.0**10


def machine(name, cores, hertz, cpi_factor, memory_s, *caches):
    levels = tuple(Cache(size * KIB, cycles) for size, cycles in caches)
    watts = (80.0, 40.0)
    return Platform(
        name, cores, 1, hertz, hertz, hertz, 0.0, memory_s, 1e9, 1e9, *watts, cpi_factor, "test", caches=levels
    )


SOURCE = machine("source", 2, 1.1e9, 2.0, 110e-9, (32, 3), (128, 7))
TARGETS = [
    machine("smaller_first", 2, 2.2e9, 2.6, 100e-9, (16, 4), (512, 18)),
    machine("many", 8, 2.8e9, 2.5, 90e-9, (32, 4), (2048, 27)),
    machine("three_levels", 4, 3.4e9, 2.5, 95e-9, (32, 4), (4096, 30), (16384, 80)),
]
SLOPE, TYPES = -0.83, 8


def world(seed, sampling=0.0):
    """Mixes of types that follow one power law and cost what the paper's equation says; nothing of the lens is used."""
    rng = np.random.default_rng(seed)
    volume = 60.0 * np.exp(0.5 * np.sin(np.arange(600) / 40.0))
    popularity = np.exp(np.cumsum(rng.normal(0.0, 0.12, (600, TYPES)), axis=0)) / np.arange(1, TYPES + 1)
    counts = rng.poisson(volume[:, None] * popularity / popularity.sum(axis=1, keepdims=True)).astype(float)
    instructions_each = 4e7 * np.exp(rng.normal(0.0, 0.8, TYPES))
    misses_each = 0.06 * np.exp(rng.normal(0.0, 0.35, TYPES))

    def seconds(platform):
        """CPU seconds of each interval on one logical processor."""
        rates = [misses_each * (cache.size_bytes / (32 * KIB)) ** SLOPE for cache in platform.caches]
        cycles, hits_before = 0.85 * platform.core_cpi_factor, rates[0]
        for cache, rate in zip(platform.caches[1:], rates[1:], strict=True):
            cycles = cycles + (hits_before - rate) * cache.latency_cycles
            hits_before = rate
        cycles = cycles + hits_before * platform.memory_latency_s * platform.base_frequency_hz
        return counts @ (instructions_each * cycles) / platform.base_frequency_hz

    def log(platform):
        levels = [(cache.size_bytes / (32 * KIB)) ** SLOPE for cache in platform.caches[:2]]
        exact = np.stack(
            [counts @ instructions_each, *(counts @ (instructions_each * misses_each * x) for x in levels)]
        )
        seen = sampling * rng.poisson(exact / sampling) if sampling else exact
        used = seconds(platform) / (30.0 * platform.cores)
        response = used * 30.0 / counts.sum(axis=1) * (1 + used / (1 - used)) + 0.05
        names = tuple(f"type{j}" for j in range(TYPES))
        return ServiceLog(names, 30.0, 30.0 * np.arange(600), counts, seen[0], seen[1:].T, response, used)

    return counts, seconds, log


def evidence_of(log):
    return Evidence("source", {"source": log}, {each.name: each for each in (SOURCE, *TARGETS)})


@pytest.mark.parametrize("method", [published, calibrated])
@pytest.mark.parametrize("target", TARGETS, ids=lambda each: each.name)
def test_a_truth_of_the_models_own_form_is_predicted_exactly(method, target):
    counts, seconds, log = world(seed=1)
    predict = method(evidence_of(log(SOURCE).taken(slice(0, 300))))
    said = predict(target, counts[300:], 30.0)
    actual = seconds(target)[300:] / target.cores / counts[300:].sum(axis=1)
    np.testing.assert_allclose(said.service_time_s, actual, rtol=1e-9)
    used = actual * counts[300:].sum(axis=1) / 30.0
    np.testing.assert_allclose(said.response_time_s, actual * (1 + used / (1 - used)) + 0.05, rtol=1e-9)


@pytest.mark.parametrize("target", TARGETS, ids=lambda each: each.name)
def test_sampled_counters_leave_a_median_error_of_at_most_three_percent(target):
    counts, seconds, log = world(seed=2, sampling=24_000.0)
    predict = published(evidence_of(log(SOURCE).taken(slice(0, 300))))
    actual = seconds(target)[300:] / target.cores / counts[300:].sum(axis=1)
    error = np.abs(predict(target, counts[300:], 30.0).service_time_s / actual - 1)
    assert np.median(error) <= 0.03
    assert np.median(error) > 0.0


@pytest.fixture(scope="module")
def simulated():
    """A simulated service that leaves nothing out of the equation: its log on piii, what other machines did."""
    plain = Application(types=6, reuse_log_sd=0.0, type_reuse_log_sd=0.0, miss_exponent_sd=0.0, core_cpi_log_sd=0.0)
    off = Mechanisms(**{field.name: False for field in fields(Mechanisms)})
    asked = ServiceWorld(
        seed=5, horizon_s=3600.0, platforms=("piii", *SIMULATED), application=plain, mechanisms=off
    )  # fmt: skip
    tables = services(asked, throughput=False, types=False)
    log = from_tables(tables["service_counts"], tables["service_log"], tables["service_cpu"], "piii")
    truth = tables["truth_service"].pivot_table(index="start_s", columns="platform", values="service_time_s")
    return log, truth.reindex(log.start_s)


def simulated_error(simulated, name):
    log, truth = simulated
    predict = published(Evidence("piii", {"piii": log.taken(slice(0, 60))}, PLATFORMS))
    said = predict(PLATFORMS[name], log.counts[60:], log.interval_s).service_time_s
    return float(np.nanmedian(np.abs(said / truth[name].to_numpy()[60:] - 1)))


SIMULATED = ("pres", "pd4", "xeon_1h_2c_1p", "xeon_2h_2c_2p")


@pytest.mark.parametrize("name", SIMULATED)
def test_the_simulator_with_every_mechanism_off_is_predicted_within_three_percent(simulated, name):
    """What is left: working sets end, so that the curve is no exact power law, and work runs over into an interval."""
    assert simulated_error(simulated, name) <= 0.03


def test_first_level_hits_that_are_priced_twice_would_show(simulated, monkeypatch):
    twice = partial(service.cycles_per_instruction, first_level_hits=0.3)
    monkeypatch.setattr("analysis.crossplatform.published.cycles_per_instruction", twice)
    assert min(simulated_error(simulated, name) for name in SIMULATED) > 0.1


def test_every_level_starts_from_what_was_measured_there_and_a_further_one_from_the_last():
    """Types whose misses fall off differently: mixes have slopes of their own, the power law has that of them all."""
    counts = np.random.default_rng(8).integers(5, 60, (40, 2)).astype(float)
    instructions = np.array([2e7, 5e7])
    misses = np.array([[0.08, 0.05], [0.01, 0.03]]) * instructions
    nothing = np.full(40, np.nan)
    levels = np.stack([counts @ each for each in misses], axis=1)
    log = ServiceLog(("a", "b"), 30.0, 30.0 * np.arange(40), counts, counts @ instructions, levels, nothing, nothing)
    known = compose(log, SOURCE)
    slope = np.log(levels[:, 1].sum() / levels[:, 0].sum()) / np.log(128 / 32)
    assert known.slope == pytest.approx(slope)
    for mix in np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]]):
        first, second = (mix @ each / (mix @ instructions) for each in misses)
        there = [first, second * (4096 / 128) ** slope, second * (16384 / 128) ** slope]
        np.testing.assert_allclose(known.misses_per_instruction(TARGETS[2], mix[None])[:, 0], there, rtol=1e-9)
        np.testing.assert_allclose(known.misses_per_instruction(SOURCE, mix[None])[:, 0], [first, second], rtol=1e-9)


def test_kappa_is_one_where_the_spec_sheet_is_right_and_takes_up_a_slower_machine():
    _, _, log = world(seed=3)
    right = evidence_of(log(SOURCE))
    assert kappa(right) == pytest.approx(1.0, rel=1e-9)
    slower = replace(SOURCE, base_frequency_hz=SOURCE.base_frequency_hz / 1.2, memory_latency_s=1.2 * 110e-9)
    assert kappa(evidence_of(replace(log(SOURCE), utilisation=log(slower).utilisation))) == pytest.approx(1.2, rel=1e-9)


def test_a_log_without_utilisation_is_enough_for_the_published_method_and_named_by_the_calibrated_one():
    counts, _, log = world(seed=4)
    blind = replace(log(SOURCE), utilisation=np.full(600, np.nan))
    said = published(evidence_of(blind))(TARGETS[0], counts, 30.0)
    assert np.isfinite(said.response_time_s).all()
    with pytest.raises(ValueError, match="utilisation is not in the log of source"):
        calibrated(evidence_of(blind))


def test_a_log_without_response_times_says_service_times_alone():
    counts, _, log = world(seed=5)
    silent = replace(log(SOURCE), response_time_s=np.full(600, np.nan))
    said = published(evidence_of(silent))(TARGETS[0], counts, 30.0)
    assert np.isfinite(said.service_time_s).all()
    assert np.isnan(said.response_time_s).all()


def test_an_interval_without_requests_has_no_service_time():
    _, _, log = world(seed=6)
    said = published(evidence_of(log(SOURCE)))(TARGETS[0], np.zeros((1, TYPES)), 30.0)
    assert np.isnan(said.service_time_s).all()
    assert np.isnan(said.response_time_s).all()


def test_a_power_law_needs_two_cache_levels():
    _, _, log = world(seed=7)
    with pytest.raises(ValueError, match="misses of 1 cache level, must be of at least 2"):
        compose(replace(log(SOURCE), misses=log(SOURCE).misses[:, :1]), SOURCE)
