import numpy as np
import pytest
from scipy.optimize import curve_fit

from analysis.crossplatform.traits import FORMS, fit, normalised_residuals

SIZES = np.array([16, 32, 128, 512, 2048, 4096, 16384]) * 1024.0
"""The seven data caches of the paper's machines."""
MISSES = 0.058 * (SIZES / 32768) ** -0.83 * np.exp([0.05, -0.04, 0.03, -0.05, 0.02, 0.04, -0.05])


def test_two_sizes_are_fitted_exactly_by_every_form_of_two_coefficients():
    size, misses = SIZES[[1, 3]], np.array([0.06, 0.007])
    for form in FORMS[:3]:
        np.testing.assert_allclose(fit(size, misses, form)(size), misses, rtol=1e-12)


def test_the_power_law_through_two_points_is_the_textbook_one():
    model = fit(np.array([2.0**15, 2.0**17]), np.array([0.08, 0.01]))
    assert float(model.exponent) == pytest.approx(-1.5)
    assert np.exp(model.coefficients[0]) == pytest.approx(0.08 * 2.0**22.5)


def test_power_law_and_log_normal_are_polynomials_in_logarithms():
    for form, degree in (("power_law", 1), ("log_normal", 2)):
        expected = np.polyfit(np.log(SIZES), np.log(MISSES), degree)[::-1]
        np.testing.assert_allclose(fit(SIZES, MISSES, form).coefficients, expected, rtol=1e-8)


def test_the_exponential_minimises_squared_errors_of_logarithms():
    curve, _ = curve_fit(lambda mib, a, b: a + b * mib, SIZES / 2**20, np.log(MISSES), p0=(-4.0, -0.1))
    np.testing.assert_allclose(fit(SIZES, MISSES, "exponential").coefficients, curve / [1, 2**20], rtol=1e-6)


def test_the_logarithmic_minimises_squared_errors_of_misses_and_takes_zeros():
    misses = np.array([*MISSES[:-1], 0.0])
    curve, _ = curve_fit(lambda size, a, b: a + b * np.log(size), SIZES, misses, p0=(0.2, -0.01))
    np.testing.assert_allclose(fit(SIZES, misses, "logarithmic").coefficients, curve, rtol=1e-6)


def test_many_mixes_are_fitted_as_one_by_one():
    many = MISSES * np.random.default_rng(1).uniform(0.5, 2.0, (3, 4, 1))
    for form in FORMS:
        model = fit(SIZES, many, form)
        assert model(SIZES[:2]).shape == (3, 4, 2)
        np.testing.assert_allclose(model(SIZES)[2, 1], fit(SIZES, many[2, 1], form)(SIZES), rtol=1e-9)


def test_no_curve_leaves_zero_to_one():
    beyond = np.array([1.0, 64.0, 2.0**40])
    for form in FORMS:
        misses = fit(SIZES[:3], MISSES[:3], form)(beyond)
        assert ((misses >= 0) & (misses <= 1)).all()


def test_where_misses_follow_a_power_law_it_has_the_smallest_residuals_of_two_coefficients():
    median = {form: np.median(normalised_residuals(MISSES, fit(SIZES, MISSES, form)(SIZES))) for form in FORMS}
    assert median["power_law"] < min(median["logarithmic"], median["exponential"]) / 10
    assert median["log_normal"] == pytest.approx(median["power_law"], rel=0.1)


def test_residuals_are_relative_to_what_was_measured():
    residuals = normalised_residuals(np.array([2.0, 2.0, 0.0, np.nan, 1.0]), np.array([3.0, 1.0, 1.0, 1.0, np.nan]))
    np.testing.assert_array_equal(residuals, [0.5, 0.5, np.nan, np.nan, np.nan])


@pytest.mark.parametrize(
    ("size", "misses", "form", "message"),
    [
        ([1e4, 1e5], [0.1, 0.01], "weibull", "form must be one of logarithmic, exponential, power_law, log_normal"),
        ([1e4, 1e5], [0.1, 0.0], "power_law", "misses per instruction must be above 0, got 0"),
        ([1e4, 1e5], [0.1, -0.1], "logarithmic", "misses per instruction must be at least 0, got -0.1"),
        ([1e4, 1e5], [0.1, np.nan], "exponential", "misses per instruction must be above 0, got nan"),
        ([0.0, 1e5], [0.1, 0.2], "power_law", "size must be above 0, got 0"),
        ([1e4, 1e4], [0.1, 0.2], "power_law", "power_law needs 2 different cache sizes, got 1"),
        ([1e4, 1e5], [0.1, 0.2], "log_normal", "log_normal needs 3 different cache sizes, got 2"),
        ([], [], "power_law", "power_law needs 2 different cache sizes, got 0"),
        ([1e4, 1e5], [0.1], "power_law", r"sizes must be \(L,\) and misses \(..., L\), got \(2,\) and \(1,\)"),
    ],
)
def test_what_no_curve_can_be_fitted_to_is_refused(size, misses, form, message):
    with pytest.raises(ValueError, match=message):
        fit(np.array(size), np.array(misses), form)
