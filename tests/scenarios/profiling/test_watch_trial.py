"""What is counted of planted incidents that were watched for: what could be found, what was, and with which cause."""

import math
from dataclasses import replace

import pytest

from analysis.profiling.changes.detection import DetectableGrowth, WatchCriteria
from models.errors import InputError
from models.profiling.world import Incident
from scenarios.profiling.watch import NamedCause, ProfileWatch, WatchedChange
from scenarios.profiling.watch_trial import _outcome, fleet_of, summary, watched

STRUCK = Incident("f", 3.0, 0.0, "a", revision="r2")


def answered(*alarms):
    """A watch that names such functions with such causes, and states 2 x for functions of 1%, 4 x for 0.01%."""
    changes = tuple(
        WatchedChange(function, False, "growth", 0.0, None, 0.0, 2.0, 1.5, 2.5, 0.01, 9.0, (NamedCause(*cause, 5.0),))
        for function, cause in alarms
    )
    sizes = (
        DetectableGrowth(0.0001, 9, 4.0, None),
        DetectableGrowth(0.001, 9, None, None),
        DetectableGrowth(0.01, 9, 2.0, None),
    )
    return ProfileWatch("cycles", "", WatchCriteria(), 1, 1, 0, 1, 3600.0, changes, sizes, 0.8)


@pytest.mark.parametrize(
    ("alarms", "found", "right", "beside"),
    [
        ([("f", ("revision", "r2", "a"))], True, True, 0),
        ([("g", ("revision", "r2", "a")), ("f", ("revision", "r2", "a"))], True, True, 1),
        ([("f", ("revision", "r2", "b"))], True, False, 0),
        ([("f", ("platform", "r2", ""))], True, False, 0),
        ([("g", ("revision", "r2", "a"))], False, False, 1),
        ([], False, False, 0),
    ],
)
def test_an_incident_is_found_by_its_function_and_right_by_its_cause(alarms, found, right, beside):
    """A quarter of a function of 0.1% becomes three times as expensive: 1.5 x over the fleet; 2.8 x is stated."""
    outcome = _outcome(answered(*alarms), STRUCK, "revision", (0.001, 0.00025), (0, 0))
    assert (outcome.detected, outcome.right, outcome.beside) == (found, right, beside)
    assert (outcome.growth, outcome.stated) == (1.5, pytest.approx(math.sqrt(8)))


def test_what_could_not_be_found_is_not_held_against_the_watch():
    found = _outcome(answered(("f", ("revision", "r2", "a"))), STRUCK, "revision", (0.01, 0.01), (0, 0))
    missed = replace(found, detected=False, right=False)
    small = replace(missed, growth=1.9)
    trial = summary([found, found, missed, small], [0, 0, 1, 0])
    assert (trial.power, trial.right, trial.quiet) == (pytest.approx(2 / 3), 1.0, 0.75)
    (row,) = [row for row in trial.causes if row.incidents]
    assert (row.cause, row.incidents, row.could_be_found, row.detected_of_those, row.detected) == (
        "revision",
        4,
        3,
        2,
        2,
    )
    assert math.isnan(summary([small], [0]).power)


def test_nothing_to_plant_is_refused(tmp_path):
    with pytest.raises(InputError, match="at least one planted and one healthy"):
        watched(0, 1, tmp_path, print)


def test_nothing_else_in_these_fleets_changes_what_functions_cost():
    profiling = fleet_of(3).profiling
    assert (profiling.compiler, profiling.kernel, profiling.incidents) == (None, None, ())
