"""Names that are not known, and what somebody who wrote one hears."""

import pytest

from models.platforms import PLATFORMS
from scenarios.views.numbers import closest, quantity


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("rome", "did you mean rome_7742?"),
        ("graniterapid6980p", "did you mean graniterapids_6980p?"),
        ("PIII", "did you mean piii?"),
        ("", "wsc platforms lists them"),
        ("xeon", "did you mean xeon_1h_1c_1p or xeon_1h_1c_2p or xeon_1h_2c_1p?"),
    ],
)
def test_names_that_begin_alike_or_are_spelt_alike_are_near(name, meant):
    assert closest(name, PLATFORMS) == meant


@pytest.mark.parametrize("exponent", range(22))
def test_times_are_said_to_four_digits(exponent):
    """Read back, a time is what it was."""
    size = {"ms": 1e-3, "s": 1.0, "min": 60.0, "hours": 3600.0, "days": 86400.0}
    number, unit = quantity(10**exponent, "nanoseconds").replace(",", "").split()
    if exponent >= 6:
        assert float(number) * size[unit] == pytest.approx(10**exponent / 1e9, rel=6e-4)
