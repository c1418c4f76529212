"""Names that are not known, and what somebody who wrote one hears."""

import pytest

from models.platforms import PLATFORMS
from scenarios.views.wording import closest


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
