"""What the best method measures on the calibration platform, and what it says of a log that does not suffice."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.crossplatform.departures import Priors
from analysis.crossplatform.evidence import ServiceLog
from analysis.crossplatform.measured import FULL, measure
from models.platforms import PLATFORMS

PIII = PLATFORMS["piii"]
CYCLES = 4.0


def log(utilisation=None):
    """Requests of one type and thirty million instructions, four cycles each."""
    counts = np.arange(60.0, 120.0)[:, None]
    work = 3e7 * counts[:, 0]
    busy = CYCLES * work / (PIII.vcpus * PIII.base_frequency_hz * 120.0)
    used = busy if utilisation is None else np.full(len(work), utilisation)
    start_s, answer = 120.0 * np.arange(len(work)), np.full(len(work), 0.2)
    return ServiceLog(("buy",), 120.0, start_s, counts, work, work[:, None] * [0.06, 0.02], answer, used)


def test_the_cpu_time_of_a_request_is_cycles_over_the_clock():
    measured = measure(log(), PIII, Priors())
    seconds = measured.processor_s(np.array([[90.0]]))
    np.testing.assert_allclose(seconds, 3e7 * CYCLES / PIII.base_frequency_hz, rtol=0.01)
    assert measured.rate_per_s == pytest.approx(89.5 / 120)


@pytest.mark.parametrize(
    ("utilisation", "said"),
    [
        (np.nan, "utilisation is not in the log of piii: "),
        (FULL, "utilisation is never below 95% in the log of piii: "),
        (0.0, "utilisation is 0 throughout the log of piii: "),
    ],
)
def test_what_is_wrong_with_the_utilisation_is_said(utilisation, said):
    with pytest.raises(ValueError, match=said + "no service time is known there; method published needs none"):
        measure(log(utilisation), PIII, Priors())


def test_intervals_that_are_full_are_left_out():
    half = log()
    mixed = replace(half, utilisation=np.where(np.arange(60) % 2, half.utilisation, 1.0))
    alike = [measure(each, PIII, Priors()).processor_s(np.array([[1.0]])) for each in (half, mixed)]
    np.testing.assert_allclose(*alike, rtol=1e-3)


def test_more_levels_than_the_machine_has_are_told_with_both_numbers():
    single = replace(PIII, name="a", caches=PIII.caches[:1])
    with pytest.raises(ValueError, match="misses of 2 cache levels, the spec sheet of a only 1: more are counted"):
        measure(log(), single, Priors())
