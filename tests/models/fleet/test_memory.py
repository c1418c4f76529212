"""Latency over bandwidth against measured points, which are typed here from the published curves."""

import numpy as np
import pytest

from models.arrays import Floats
from models.fleet.memory import BEYOND, CUT, latency_factor

THEORY = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
"""Shares of the theoretical bandwidth at which latency was measured (Esmaili-Dokht et al. 2024)."""
MEASURED = [
    pytest.param(0.85, [1.05, 1.10, 1.16, 1.22, 1.30, 1.39, 1.49, 1.66], id="Cascade Lake 5218, reads"),
    pytest.param(0.745, [1.06, 1.10, 1.14, 1.19, 1.28, 1.44, 1.93], id="Cascade Lake 5218, 3 reads to a write"),
    pytest.param(0.71, [1.03, 1.07, 1.11, 1.19, 1.34, 1.63], id="Cascade Lake 5218, 1 read to a write"),
    pytest.param(0.87, [1.02, 1.04, 1.06, 1.09, 1.14, 1.21, 1.31, 1.50], id="Sapphire Rapids 8460Y+, reads"),
    pytest.param(0.78, [1.03, 1.06, 1.11, 1.17, 1.28, 1.49, 1.70], id="Sapphire Rapids 8460Y+, 3 reads to a write"),
]
"""Share of the theoretical bandwidth at which a machine saturates, and latencies relative to idle."""


@pytest.mark.parametrize(("saturated", "latency"), MEASURED)
def test_the_curve_is_within_its_residual_of_measured_latencies(saturated: float, latency: list[float]) -> None:
    off = latency_factor(THEORY[: len(latency)] / saturated) - np.array(latency)
    assert np.sqrt(np.mean(np.square(off))) <= 0.15
    assert abs(off).max() <= 2 * 0.13


@pytest.mark.parametrize(
    ("use", "median"), [(0.3, 1.06), (0.4, 1.12), (0.5, 1.17), (0.6, 1.26), (0.7, 1.36), (0.8, 1.47), (0.9, 1.63)]
)
def test_the_curve_goes_through_the_median_of_all_machines(use: float, median: float) -> None:
    assert latency_factor(use) == pytest.approx(median, abs=0.07)


def test_latency_only_grows_and_has_no_step_where_measurements_end() -> None:
    use = np.linspace(0.0, 2.0, 2001)
    factor: Floats = latency_factor(use)
    assert factor[0] == 1.0
    assert (np.diff(factor) > 0).all()
    assert np.diff(factor).max() <= 1.001 * BEYOND * 1e-3
    assert latency_factor(CUT + 0.1) - latency_factor(CUT) == pytest.approx(0.1 * BEYOND)
