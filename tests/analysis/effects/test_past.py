"""The past of a fleet: how long its periods are, and what longer studies gain by the formula."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.past import drift, period_length
from tests.helpers.effect_studies import past


def test_drift_of_levels_that_stay_and_white_noise_is_that_of_the_formula():
    own, noise = 0.05**2, 0.1**2
    spread = {length: own + noise / length for length in (6, 24)}
    left = {length: whole - own**2 / whole for length, whole in spread.items()}
    made = drift(past(periods=12, machines=400, sd=0.1), 24, 6)
    assert made == pytest.approx(np.sqrt(left[24] / left[6]), abs=0.04)


@pytest.mark.parametrize(
    ("columns", "length"),
    [
        ({"period": [0, 1]}, 86400.0),
        ({"period": [0, 1], "present_s": 3600.0}, 3600.0),
        ({"period": [0, 1], "present_s": 2700.0}, 3600.0),
        ({"period": [0, 1], "present_s": 86400.0}, 86400.0),
        ({"period": [0, 604800.0]}, 604800.0),
    ],
)
def test_how_long_periods_are(columns, length):
    assert period_length(pd.DataFrame(columns)) == length
