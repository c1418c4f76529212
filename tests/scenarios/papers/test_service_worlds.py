"""Rows about services beyond the paper: what they ask of the worlds can be asked, and what comes back is summed up."""

import math

import pytest

from analysis.figures.criteria import number
from scenarios.files.loader import Override, load
from scenarios.files.schema import ServiceScenario
from scenarios.papers.catalogue import ROWS
from scenarios.papers.sources import Sources
from scenarios.views.terminal import dumps

METHODS = ("cycle_mix", "published", "shrunken", "calibrated", "testbed")


def judged(error):
    """A judge of two worlds that first builds the scenario asked for; `error` says the error of a method in it."""

    def judge(name, values, _progress):
        asked = load(name, [Override(path, dumps(value), "value") for path, value in values.items()])
        assert isinstance(asked, ServiceScenario)
        rest = {"target": "pres", "measured": False, "response_error": 0.1, "coverage": 0.9, "half_width": 0.1}
        rest |= {"response_coverage": math.nan, "response_half_width": math.nan}
        rows = [{"method": name, "service_error": error(asked, name), **rest} for name in METHODS]
        told = {"choices": [{"method": name, "wrong": 0.1, "loss": 0.0} for name in METHODS]}
        told |= {"outside_hull": 1.0, "platforms": [], "notes": [], "methods": rows}
        return [{"seed": seed, **told} for seed in (1, 2)]

    return judge


def row(name, error):
    def never(*_asked):
        raise AssertionError("this row needs no run")

    return ROWS[name].outcome(Sources(never, lambda _what, _share: None, judged(error)))


def test_every_mechanism_is_switched_off_by_itself_and_all_together():
    def error(asked, _method):
        return 0.2 * asked.mechanisms.overlap + 0.05 * asked.mechanisms.coherence + 0.01

    made = row("world/prediction-ablation", error)
    moved = made.table.set_index("off")["moved"]
    assert moved["overlap"] == pytest.approx(0.2)
    assert moved["coherence"] == pytest.approx(0.05)
    assert moved.drop(["overlap", "coherence", "everything"]).eq(0).all()
    assert (number(made.measured, "nothing_left"), number(made.measured, "shares_found")) == (pytest.approx(0.01), 2)


def test_many_worlds_are_judged_as_shipped_and_with_hardware_that_departs_twice_as_far():
    def error(asked, method):
        return METHODS[::-1].index(method) * 0.1 + asked.hardware.cpi_log_sd / 10

    made = row("world/prediction", error)
    assert number(made.measured, "best_rubis") == pytest.approx(0.01)
    assert number(made.measured, "best_doubled_tpcw") == pytest.approx(0.02)
    assert number(made.measured, "calibrated_stockonline") == pytest.approx(0.11)
    assert number(made.measured, "beats_rivals") == 1.0
    assert len(made.table) == 15
