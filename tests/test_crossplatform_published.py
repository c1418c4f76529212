"""The published method: exact where the truth has its own form, silent about what it does not know."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.crossplatform.evidence import Evidence, ServiceLog
from analysis.crossplatform.published import calibrated, compose, kappa, published
from models.platforms import Cache, Platform

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
    with pytest.raises(ValueError, match="misses of 1 cache levels, must be from 2 to the 2 of source"):
        compose(replace(log(SOURCE), misses=log(SOURCE).misses[:, :1]), SOURCE)
