"""One job of a fleet: what estimators say of it is what they say of a fleet of that job alone."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.cells import cells
from analysis.effects.methods import method
from analysis.effects.one_job import only
from analysis.effects.study import example
from analysis.statistics import NotEnoughDataError
from models.randomness import stream
from tests.helpers.effect_studies import fleet_jobs, fleet_rows


@pytest.mark.parametrize("name", ["adjusted", "unadjusted", "ratio", "concurrent"])
def test_estimators_say_what_they_say_of_a_fleet_of_that_job_alone(name):
    rng = stream(1, "one job")
    rows, jobs = fleet_rows(rng, machines=40), fleet_jobs(rng)
    of_job = only(cells(rows, jobs), 2)
    alone = cells(rows[rows["job"] == 2], jobs[jobs["job"] == 2])
    assert of_job.machines.tolist() == alone.machines.tolist()
    treated = np.arange(len(alone.machines)) % 3 == 0
    found, expected = (method(name).many(one, treated[None, :]) for one in (of_job, alone))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_the_past_is_that_of_the_job():
    past = pd.DataFrame({"period": 0, "job": [0, 2, 2, 2], "machine": [1, 1, 1, 5], "instance": range(4)})
    past = past.assign(weight=[9.0, 1.0, 3.0, 2.0], value=[9.0, 2.0, 4.0, 5.0], treated=0)
    made = only(example().cells, 2, past)
    assert made.before[[1, 5]].tolist() == [[14.0, 4.0], [10.0, 2.0]]
    assert made.before.sum() == 30.0
    assert only(example().cells, 2, past[past["job"] == 0]).before.sum() == 0.0


def test_a_job_that_is_nowhere_is_refused():
    with pytest.raises(NotEnoughDataError, match="machines with job 17"):
        only(example().cells, 17)
