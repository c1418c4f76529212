"""Which part of an image's samples has a name is known while it is sampled, and stays what it was until it is again."""

import numpy as np
import pandas as pd
import pytest

from analysis.profiling.changes.coverage import NamedParts
from benchmarks.watch import series_of
from tests.helpers.watched_fleets import Design

TAGS = pd.DataFrame(
    [("search", "haswell", "east"), ("search", "skylake", "east"), ("mail", "haswell", "east")],
    columns=["application", "platform", "datacentre"],
)
HOURS = [2, 3, 50, 60]
"""At which the image is sampled, of 72."""


class Sampled:
    """A profile of one image, which `search` alone has: visits every hour, and rows by path of some of them."""

    def __init__(self):
        self.visits = pd.DataFrame({"visit": np.arange(72), "start_s": np.arange(72) * 3600.0, "collection": "fleet"})
        self.rows = pd.DataFrame(
            {
                "application": "search",
                "visit": [2, 2, 3, 50, 50, 60],
                "named": [True, False, True, True, False, False],
                "samples": [3, 1, 4, 1, 4, 5],
            }
        )

    def table(self, _):
        return self.visits

    def values(self, _):
        return ["fleet"]

    def images_of(self, function):
        return ("image",) if function == "inside" else ("",)

    def named(self, query, images):
        assert images == ("image",)
        start_s = self.rows["visit"] * 3600.0
        return self.rows[(start_s >= query.since_s) & (start_s < query.until_s)]


@pytest.fixture
def parts():
    series = series_of(TAGS, np.full((2, 3, 72), 5.0), Design(functions=1, days=3))
    return NamedParts(Sampled(), series, paths=True)


def test_while_an_image_is_not_sampled_its_named_part_is_that_of_the_time_before_or_of_the_first_after(parts):
    own = parts.of("inside")
    assert own.shape == (3, 72)
    by_hour = np.repeat([0.75, 1.0, 0.2, 0.0], [3, 47, 10, 12])
    series = parts.series.strata["application"].to_numpy()
    for stratum in np.flatnonzero(series == "search"):
        np.testing.assert_allclose(own[stratum], by_hour)
    for stratum in np.flatnonzero(series == "mail"):
        np.testing.assert_array_equal(own[stratum], 1.0)


def test_a_function_without_an_image_has_no_named_part(parts):
    assert parts.of("outside") is None
