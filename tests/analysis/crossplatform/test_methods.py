"""The list of methods: names, order, and that what each refuses it refuses in words."""

import numpy as np
import pytest

from analysis.crossplatform.evidence import Evidence, ServiceLog
from analysis.crossplatform.methods import METHODS
from models.platforms import PLATFORMS


def test_methods_come_in_the_order_of_the_tables():
    names = [method.name for method in METHODS]
    assert names == [
        "cycle_scalar", "cycle_mix", "benchmark", "published", "calibrated", "shrunken", "testbed", "network", "modern",
    ]  # fmt: skip
    assert len({method.what for method in METHODS}) == len(METHODS)


@pytest.mark.parametrize("method", [each for each in METHODS if each.name != "published"], ids=lambda each: each.name)
def test_all_but_the_published_method_say_that_they_need_more_than_counters(method):
    counts = np.array([[3.0, 1.0], [1.0, 3.0], [2.0, 2.0], [4.0, 1.0], [1.0, 1.0], [2.0, 5.0]])
    work, nothing = counts @ [1e6, 2e6], np.full(6, np.nan)
    log = ServiceLog(
        ("a", "b"), 30.0, 30.0 * np.arange(6), counts, work, work[:, None] * [0.06, 0.02], nothing, nothing
    )
    with pytest.raises(ValueError, match=r"utilisation|benchmarks|log"):
        method.fit(Evidence("piii", {"piii": log}, PLATFORMS))
