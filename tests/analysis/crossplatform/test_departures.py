"""The posterior against closed forms, and what it says of machines that scatter more than assumed."""

import numpy as np
import pytest

from analysis.crossplatform.departures import (
    COMMON,
    Departures,
    Parameters,
    Priors,
    jacobian,
    model_of,
    posterior,
    prior,
)
from models.platforms import PLATFORMS

NARROW = Priors()


def conjugate(design, seen, noise, mean, covariance):
    """Posterior of a linear model by information matrices (Gelman et al. 2013, section 14.8)."""
    information = np.linalg.inv(covariance) + design.T @ np.diag(noise**-2) @ design
    after = np.linalg.inv(information)
    return after @ (np.linalg.inv(covariance) @ mean + design.T @ (seen / noise**2)), after


def test_a_linear_model_has_the_conjugate_posterior():
    rng = np.random.default_rng(1)
    design, seen, noise = rng.normal(size=(5, 3)), rng.normal(size=5), rng.uniform(0.1, 1.0, 5)
    root = rng.normal(size=(3, 3))
    before = rng.normal(size=3), root @ root.T + np.eye(3)
    mean, covariance, scale = posterior(lambda among: among @ design.T, (seen, noise), before, first_hardware=3)
    expected = conjugate(design, seen, noise, *before)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-4)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-4)
    assert scale >= 1.0


def test_a_nonlinear_model_ends_at_its_mode():
    mean, _, _ = posterior(np.exp, (np.array([2.0]), np.array([1e-4])), (np.zeros(1), np.eye(1)), first_hardware=1)
    assert mean[0] == pytest.approx(np.log(2.0), abs=1e-4)


def test_scores_that_scatter_widely_widen_the_machines_and_nothing_else():
    before = np.zeros(9), np.diag([1.0] + [0.01] * 8)
    noise = np.full(8, 0.01)
    calm, wild = (
        posterior(lambda among: among[:, 1:], (size * np.array([1.0, -1.0] * 4), noise), before, first_hardware=1)
        for size in (0.05, 0.25)
    )
    assert calm[2] < 1.3
    assert wild[2] > 2.0
    assert calm[1][0, 0] == pytest.approx(1.0)
    assert wild[1][0, 0] == pytest.approx(1.0)


def test_measurements_that_contradict_the_prior_widen_everything_by_the_root_of_chi_square():
    """Three parameters of the same prior, measured directly: all scales of machines are idle, so this is Birge's."""
    before, noise = (np.zeros(3), np.diag([0.04, 0.04, 0.01])), np.full(2, 0.1)
    near, far = (
        posterior(lambda among: among[:, :2], (seen, noise), before, first_hardware=3)
        for seen in (np.array([0.1, -0.1]), np.array([1.0, -2.0]))
    )
    expected = (1.0 / 0.05 + 4.0 / 0.05) / 2
    np.testing.assert_allclose(far[1], expected * near[1], rtol=1e-6, atol=1e-12)
    assert near[1][2, 2] == pytest.approx(0.01)
    assert near[1][0, 0] == pytest.approx(1 / (1 / 0.04 + 1 / 0.01), rel=1e-6)
    assert far[2] == pytest.approx(near[2] * np.sqrt(expected), rel=1e-6)


def test_derivatives_are_of_the_parameters_asked_for():
    values, slopes = jacobian(lambda x: x**3, np.array([1.0, 2.0, 3.0]), np.array([2]))
    assert values.tolist() == [1.0, 8.0, 27.0]
    assert slopes.ravel() == pytest.approx([0.0, 0.0, 27.0], abs=1e-3)


def test_what_no_counter_tells_is_alike_in_service_and_benchmark_but_for_the_miss_curve():
    _, covariance = prior(["piii"], Priors(likeness=0.5), (0.04, 0.05), 0.02)
    sd = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sd, sd)
    assert np.diag(correlation[:6, 6:12]) == pytest.approx([0.5] * 5 + [0.0])
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert sd[[5, 11, COMMON - 1]] == pytest.approx([0.04, 0.05, 0.02])


def test_every_name_finds_its_own_columns():
    models = ("piii", "xeon_2h_2c_2p")
    parameters = Parameters(models, np.arange(COMMON + 14.0)[None])
    piii, xeon = (parameters.machine(PLATFORMS[name]).hardware for name in ("piii", "xeon_1h_1c_1p"))
    columns = [*parameters.service(), *parameters.benchmark(), parameters.memory(), parameters.benchmark_work()]
    assert np.ravel([*columns, *piii, *xeon]).tolist() == list(range(COMMON + 14))
    assert parameters.places("xeon_2h_2c_2p").tolist() == list(range(COMMON + 7, COMMON + 14))


def test_a_server_model_nobody_scored_is_as_its_spec_sheet_says_with_the_priors_spread():
    known = Departures(("piii",), np.ones(COMMON + 7), np.eye(COMMON + 7), np.full(7, 0.2))
    more = known.including("pres")
    assert more.mean[-7:].tolist() == [0.0] * 7
    assert np.diag(more.covariance)[-7:] == pytest.approx(np.full(7, 0.04))
    assert more.including("pres") is more


def test_configurations_are_of_one_server_model():
    assert {model_of(each) for name, each in PLATFORMS.items() if name.startswith("xeon_")} == {"xeon_2h_2c_2p"}
