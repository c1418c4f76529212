"""How right one collector was, from tables by hand."""

import numpy as np
import pandas as pd
import pytest

from scenarios.files.schema import GWP
from scenarios.profiling.validate import _functions

TRUE = pd.DataFrame({"image": "m", "function": ["f", "g", "h"], "true": [0.5, 0.47, 0.03]})


def clustered(shares, visits=40, samples=25):
    """So many visits, each of the same samples."""
    rows = [
        (name, visit, share * samples, share * samples) for visit in range(visits) for name, share in shares.items()
    ]
    return pd.DataFrame(rows, columns=["function", "visit", "samples", "value"]).assign(image="m")


def test_a_function_that_was_never_seen_is_a_miss():
    said = _functions(clustered({"f": 0.52, "g": 0.48}), TRUE, GWP(top_functions=3))
    assert len(said["covered"]) == 3
    assert said["covered"][2] == 0
    assert said["naive"][2] == 0
    assert np.isfinite(said["half_width"])


@pytest.mark.parametrize(("confidence", "naive"), [(0.95, [1, 1]), (0.5, [0, 0])])
def test_naive_intervals_are_of_the_confidence_that_is_asked(confidence, naive):
    """Of 1,000 samples a share of 0.52 has the standard error 0.0158, so that 0.5 is 1.27 of them away."""
    settings = GWP(top_functions=2, confidence=confidence)
    assert _functions(clustered({"f": 0.52, "g": 0.48}), TRUE[:2].assign(true=[0.5, 0.5]), settings)["naive"] == naive


def test_an_interval_that_knows_of_the_visits_holds_what_the_naive_one_misses():
    rng = np.random.default_rng(1)
    drawn = rng.beta(2, 2, 60)
    rows = pd.concat([clustered({"f": p, "g": 1 - p}, 1, 1000).assign(visit=i) for i, p in enumerate(drawn)])
    said = _functions(rows, TRUE[:2].assign(true=[drawn.mean() + 0.03, drawn.mean() - 0.03]), GWP(top_functions=2))
    assert (said["covered"][0], said["naive"][0]) == (1, 0)
    assert said["design_effect"] > 50
