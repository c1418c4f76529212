import numpy as np
import pytest

from models.errors import InputError
from models.fleet.world import Crossover, Feature, Fleet, Population, Rollout, World
from sim.fleet.arms import NEVER, crossover, everywhere, nowhere, on_instances, on_machines, recorded
from sim.fleet.day import prepare

FLEET, POPULATION = Fleet(20), Population(60, 50)


@pytest.fixture(scope="module")
def day():
    feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
    return prepare(World(3, 900.0, 300.0, FLEET, POPULATION, feature=feature))


def test_nothing_or_everything_has_the_feature_all_day(day):
    assert (nowhere(day).machine_from == NEVER).all()
    assert (nowhere(day).stay_from == NEVER).all()
    assert not everywhere(day).machine_from.any()
    assert not everywhere(day).stay_from.any()


def test_the_recorded_arm_is_that_of_the_roll_out(day):
    arm = recorded(day)
    assert int((arm.machine_from == 0).sum()) == 10
    np.testing.assert_array_equal(arm.stay_from, arm.machine_from[day.timeline.machine])


def test_machines_have_the_feature_with_all_that_runs_there(day):
    arm = on_machines(day, np.array([4, 7]), from_epoch=2)
    assert np.flatnonzero(arm.machine_from == 2).tolist() == [4, 7]
    np.testing.assert_array_equal(arm.stay_from == 2, np.isin(day.timeline.machine, [4, 7]))
    with pytest.raises(IndexError):
        on_machines(day, np.array([20]))


def test_instances_have_it_wherever_they_stay(day):
    arm = on_instances(day, np.array([4, 7]))
    assert np.unique(day.timeline.instance[arm.stay_from == 0]).tolist() == [4, 7]
    assert (arm.machine_from == NEVER).all()


def test_in_a_crossover_every_machine_has_it_half_of_the_periods(day):
    feature = Feature("calm", rollout=Rollout(1.0, crossover=Crossover(period_s=300.0)))
    switching = prepare(World(3, 1200.0, 300.0, FLEET, POPULATION, feature=feature))
    assert set(crossover(switching).switched.sum(axis=1)) == {2}
    assert recorded(switching).switched is not None
    with pytest.raises(InputError, match="has no crossover"):
        crossover(day)
