"""The designs that the scorecard offers: those asked for, where they make sense, each with cells and its own truth."""

import numpy as np
import pytest

from scenarios.effects.scorecard.designs import DESIGNS, designs
from scenarios.effects.scorecard.fleets import fleet

PLAIN = {"day", "week", "balanced", "covering", "paired", "one_job", "staged"}


@pytest.fixture(scope="module")
def mixed():
    return {one.name: one for one in designs("mixed", 1, 80, sorted(PLAIN | {"by_platform"}))}


def test_designs_are_those_asked_for(mixed):
    assert set(mixed) == PLAIN | {"by_platform"}
    assert [name for name in DESIGNS if name in mixed] == list(mixed)
    assert [one.name for one in designs("mixed", 1, 80, ["paired"])] == ["paired"]


def test_where_there_is_one_platform_nothing_is_drawn_by_platform():
    assert [one.name for one in designs("base", 1, 60, ["by_platform", "paired"])] == ["paired"]


def test_designs_of_a_day_share_its_cells_and_its_truth(mixed):
    for name in ("by_platform", "balanced", "covering", "paired"):
        assert mixed[name].courses[0].y.tolist() == mixed["day"].courses[0].y.tolist()
        assert mixed[name].truth == mixed["day"].truth
    assert mixed["staged"].truth == mixed["week"].truth


def test_estimators_of_designs_that_choose_their_machines_say_about_the_truth(mixed):
    for name in ("by_platform", "balanced", "paired", "staged"):
        one = mixed[name]
        method, treated = one.chosen.arrange(24, 30, np.random.default_rng(1))
        found = method.many(one.courses[0], treated)
        assert set(treated.sum(axis=1)) == {24}
        assert abs(found.change.mean() - one.truth) < 3 * found.error.mean()


def test_new_code_of_one_job_makes_its_stays_faster():
    made = fleet("base", 2, 60, switching=False, one_job=True)
    job, on = made.one_job.job, made.one_job.on
    assert set(on["job"]) == {job}
    assert job == made.jobs["quota"].idxmax()
    assert 0.002 < made.one_job.truth < 0.012
    off = made.day.off[made.day.off["job"] == job]
    assert off[["machine", "instance", "shard", "present_s"]].values.tolist() == (
        on[["machine", "instance", "shard", "present_s"]].values.tolist()
    )
    assert (on["value"].to_numpy() > off["value"].to_numpy()).mean() > 0.9
