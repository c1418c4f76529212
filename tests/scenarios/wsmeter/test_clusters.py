"""Test clusters are drawn from the whole fleet, cell by cell, and are what they would be of one table."""

from dataclasses import fields, replace

import numpy as np
import pytest

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.clusters import MachineRows, random_machines
from analysis.wsmeter.summaries import Current
from models.fleet.world import Rollout
from models.randomness import stream
from scenarios.files.schema import WSMeter
from scenarios.runs.execution import Workers, obtain
from scenarios.wsmeter.measure import clusters
from scenarios.wsmeter.measurements import by_own_machine, halves_of, run_measurements
from tests.helpers.cell_fleets import FLEET, quiet

SETTINGS = WSMeter(machines=(4, 8))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(out):
    return obtain(FLEET, out, False, quiet, workers=Workers(processes=2))


@pytest.fixture(scope="module")
def one(out):
    return obtain(replace(FLEET, cells=1), out, False, quiet)


def of_one_table(run, *, by_instance):
    """The same from the whole table at once."""
    table = run_measurements(run, SETTINGS)
    without, having = halves_of(by_own_machine(table) if by_instance else table)
    rows = MachineRows.of(having)
    drawn = {
        size: Current.of(having.take(random_machines(stream(3, f"test cluster/{size}"), rows, size)))
        for size in SETTINGS.machines
    }
    return [Current.of(without), *drawn.values()]


@pytest.mark.parametrize("by_instance", [False, True])
def test_a_fleet_of_one_cell_says_the_same_to_the_last_bit(one, by_instance):
    made = clusters(one, SETTINGS, 3, by_instance=by_instance)
    for here, there in zip([made.current, *made.new.values()], of_one_table(one, by_instance=by_instance), strict=True):
        for field in fields(Current):
            np.testing.assert_array_equal(getattr(here, field.name), getattr(there, field.name))


@pytest.mark.parametrize("by_instance", [False, True])
def test_cells_one_after_the_other_say_what_one_table_says(run, by_instance):
    made = clusters(run, SETTINGS, 3, by_instance=by_instance)
    for here, there in zip([made.current, *made.new.values()], of_one_table(run, by_instance=by_instance), strict=True):
        for field in fields(Current):
            np.testing.assert_allclose(
                getattr(here, field.name), getattr(there, field.name), rtol=1e-12, err_msg=field.name
            )


def test_without_a_feature_no_cluster_is_drawn(out):
    fleet = replace(FLEET, cells=1)
    for share in (0.0, 1.0):
        rolled = replace(fleet, feature=replace(fleet.feature, rollout=Rollout(share)))
        assert clusters(obtain(rolled, out, False, quiet), SETTINGS, 3) is None


def test_more_machines_than_there_are_is_told(run):
    with pytest.raises(NotEnoughDataError, match="31 machines are needed, 30 given"):
        clusters(run, WSMeter(machines=(31,)), 3)
