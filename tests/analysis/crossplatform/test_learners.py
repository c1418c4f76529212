"""Knowledge-free learners: good on new mixes of platforms they saw, and open about what they cannot learn."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.crossplatform.evidence import Evidence, ServiceLog
from analysis.crossplatform.learners import modern, network, spec_sheet
from models.platforms import PLATFORMS

COST = np.array([0.4e7, 1.0e7, 2.5e7])
"""Cycles of a request of each type on every machine: all that a platform matters for is its clock."""
EVERY = (network, modern)


def mixes(seed, n=120):
    return np.random.default_rng(seed).integers(5, 120, (n, 3)).astype(float)


def service_s(platform, counts):
    return counts @ COST / counts.sum(axis=1) / (platform.vcpus * platform.base_frequency_hz)


def log(platform, counts, noise=0.02, seed=3):
    service = service_s(platform, counts)
    factor = np.exp(noise * np.random.default_rng(seed).standard_normal((2, len(counts))))
    return ServiceLog(
        types=("a", "b", "c"),
        interval_s=30.0,
        start_s=30.0 * np.arange(len(counts)),
        counts=counts,
        instructions=counts @ COST,
        misses=np.ones((len(counts), 2)),
        response_time_s=(0.05 + platform.vcpus * service) * factor[0],
        utilisation=service * factor[1] * counts.sum(axis=1) / 30.0,
    )


def evidence(*names, **changes):
    logs = {name: replace(log(PLATFORMS[name], mixes(7)), **changes) for name in names}
    return Evidence(names[0], logs, PLATFORMS)


@pytest.fixture(scope="module", params=EVERY, ids=lambda method: method.__name__)
def method(request):
    return request.param


@pytest.fixture(scope="module")
def predictor(method):
    return method(evidence("piii", "pres"))


def median_error(predicted, actual):
    return np.median(np.abs(predicted / actual - 1))


@pytest.mark.parametrize("name", ["piii", "pres"])
def test_new_mixes_on_platforms_that_were_seen_are_predicted(method, predictor, name):
    new, platform = mixes(8), PLATFORMS[name]
    made = predictor(platform, new, 30.0)
    if method is network:  # as in the paper, it knows response times alone
        assert np.isnan(made.service_time_s).all()
    else:
        assert median_error(made.service_time_s, service_s(platform, new)) < 0.08
    assert median_error(made.response_time_s, 0.05 + platform.vcpus * service_s(platform, new)) < 0.05


def test_a_mix_is_the_same_in_an_interval_of_another_length(predictor):
    short, long = (predictor(PLATFORMS["pres"], k * mixes(8, 5), 30.0 * k) for k in (1.0, 4.0))
    np.testing.assert_allclose(short.response_time_s, long.response_time_s)


def test_a_mix_without_requests_is_not_spoken_of(predictor):
    made = predictor(PLATFORMS["pres"], np.array([[0.0, 0.0, 0.0], [20.0, 30.0, 40.0]]), 30.0)
    assert np.isnan(made.response_time_s).tolist() == [True, False]
    nothing = predictor(PLATFORMS["pres"], np.zeros((2, 3)), 30.0)
    assert np.isnan(nothing.service_time_s).all()


def test_the_same_evidence_gives_the_same_predictions(method, predictor):
    again = method(evidence("piii", "pres"))(PLATFORMS["xeon_2h_2c_2p"], mixes(9), 30.0)
    first = predictor(PLATFORMS["xeon_2h_2c_2p"], mixes(9), 30.0)
    np.testing.assert_array_equal(again.response_time_s, first.response_time_s)


def test_one_log_teaches_nothing_of_platforms(method):
    with pytest.raises(ValueError, match="logs must be of at least 2 platforms, got 1"):
        method(evidence("piii"))


def test_a_few_intervals_teach_nothing(method):
    few = evidence("piii", "pres")
    logs = {name: each.taken(slice(0, 9)) for name, each in few.logs.items()}
    with pytest.raises(ValueError, match=r"log of piii has 9 intervals with \w+, a learner needs 10"):
        method(replace(few, logs=logs))


def test_what_was_not_measured_everywhere_is_not_spoken_of(method):
    some = evidence("piii", "pres")
    uncounted = replace(some.logs["pres"], utilisation=np.full(120, np.nan))
    made = method(replace(some, logs={**some.logs, "pres": uncounted}))(PLATFORMS["pres"], mixes(8), 30.0)
    assert np.isnan(made.service_time_s).all()
    assert np.isfinite(made.response_time_s).all()


@pytest.mark.statistical
def test_intervals_of_the_process_cover_new_mixes_of_platforms_that_were_seen():
    """A nominal 90% of 500 mixes: five standard deviations are 0.067, the rest is the process's; seeds are fixed."""
    made = modern(evidence("piii", "pres"))
    new, platform = mixes(10, 500), PLATFORMS["pres"]
    actual = log(platform, new, seed=10).response_time_s
    said = made(platform, new, 30.0)
    inside = np.mean((said.response_low_s <= actual) & (actual <= said.response_high_s))
    assert inside == pytest.approx(0.9, abs=0.09)


def test_the_process_goes_on_as_a_power_of_the_clock():
    source = PLATFORMS["piii"]
    clocks = {name: replace(source, name=name, base_frequency_hz=hz) for name, hz in {"a": 1e9, "b": 1.6e9}.items()}
    logs = {name: log(platform, mixes(11, 80), noise=0.005) for name, platform in clocks.items()}
    target = replace(source, name="c", base_frequency_hz=2.2e9)
    made = modern(Evidence("a", logs, clocks))(target, mixes(12), 30.0)
    assert median_error(made.service_time_s, service_s(target, mixes(12))) < 0.1


def test_a_spec_sheet_without_caches_has_its_last_level():
    bare = replace(PLATFORMS["haswell_2698v3"], caches=())
    assert np.exp(spec_sheet(bare)[2:5]) == pytest.approx([bare.llc_bytes] * 3)
