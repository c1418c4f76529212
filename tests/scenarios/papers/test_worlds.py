"""Rows in many worlds: each measured once, kept, read again, and judged together; causes removed and shams beside."""

import ast
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from analysis.figures.criteria import Criterion, numbers
from scenarios.papers import catalogue, causes, reproduce, worlds
from scenarios.papers.causes import causes_of, population_of
from scenarios.papers.judged import CauseTrial
from scenarios.papers.reproduce import Asked, Reproduced
from scenarios.papers.rows import WORLDS, MeasuredRow, published
from scenarios.papers.sources import OBSERVED, Sources
from scenarios.runs.execution import Workers

ROW = "crossplatform/fig6"
SHORT = causes_of(ROW)[0].removed


def quiet(_what, _share):
    """Say nothing."""


@pytest.fixture
def counted(monkeypatch):
    """A row that holds in even worlds, and in all of them without its cause; and the worlds that were measured."""
    asked = []

    def measure(sources):
        asked.append((sources.world, dict(sources.changed)))
        ratio = 3.0 if sources.world % 2 == 0 or dict(SHORT).items() <= sources.changed.items() else 1.0
        return numbers(platform_ratio=ratio, workload_gap=0.01)

    row = MeasuredRow(ROW, "a row", ("cross_rubis",), measure)
    monkeypatch.setitem(catalogue.ROWS, ROW, row)
    return asked


def judged(tmp_path, count, explain=False):
    sources = Sources(lambda *_: None, quiet)
    asked = Asked(tmp_path, count, Workers(processes=1), explain)
    (row,) = reproduce.reproduce(ROW, tmp_path / "figures", sources, asked).rows
    return row


@pytest.mark.usefixtures("counted")
def test_a_row_is_judged_on_the_worlds_that_are_there(tmp_path):
    one = judged(tmp_path, 1)
    assert (one.worlds, one.complete, one.verdict) == ((1,), False, "does not hold")
    assert one.word == one.payload()["verdict"] == "does not hold in world 1, one of ten"
    assert one.payload()["holds"] is None
    assert repr(Reproduced((one,))) == f"<Reproduced: {ROW} does not hold in world 1, one of ten>"
    assert next(iter(Reproduced((one,)).section().blocks)).text.startswith("does not hold in world 1, one of ten  ")
    assert set(Reproduced((one,)).frame()["worlds"]) == {"1 of 10"}
    assert judged(tmp_path, 3).word == "depends on the world in worlds 1 to 3 of ten"
    ten = judged(tmp_path, 10)
    assert (ten.word, ten.payload()["holds"]) == ("depends on the world", False)
    assert (ten.worlds, ten.complete, ten.verdict) == (WORLDS, True, "depends on the world")
    ratio = next(criterion for criterion in ten.criteria if criterion.name == "platform_ratio")
    assert ratio.values == (1.0, 3.0) * 5
    assert ten.held_in_first is False
    assert [ten.verdict_of(name) for name in ("platform_ratio", "workload_gap", "no such number")] == [
        "depends on the world",
        "holds",
        None,
    ]
    payload = ten.payload()
    assert payload["worlds"] == list(WORLDS)
    assert {criterion["kind"] for criterion in payload["criteria"]} == {"finding"}
    assert [criterion["holds_in"] for criterion in payload["criteria"]] == [10, 5]


def test_what_was_measured_is_read_and_what_is_missing_is_measured(tmp_path, counted):
    judged(tmp_path, 3)
    assert [world for world, _ in counted] == [2, 3, 1]
    counted.clear()
    assert judged(tmp_path, None).worlds == (1, 2, 3)
    assert [world for world, _ in counted] == [1]  # the first is drawn, so it is measured each time
    judged(tmp_path, 5)
    assert [world for world, _ in counted] == [1, 4, 5, 1]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_other_bounds_ask_for_no_new_worlds_and_other_scenarios_do(tmp_path, counted, monkeypatch):
    judged(tmp_path, 2)
    counted.clear()
    monkeypatch.setattr(worlds, "_question", lambda row: ("another", row))
    judged(tmp_path, 2)
    assert [world for world, _ in counted] == [2, 1]


def test_a_cause_that_is_removed_stands_beside_a_sham(tmp_path, counted):
    without = judged(tmp_path, 10)
    assert without.trials == ()
    counted.clear()
    row = judged(tmp_path, 10, explain=True)
    (trial,) = row.trials
    held = (trial.without_cause.holds_in, trial.without_sham.holds_in, trial.here.holds_in)
    assert (*held, trial.worlds) == (10, 5, 5, 10)
    assert trial.explains
    assert "it holds in 10 of 10 worlds" in str(trial)
    assert "so this explains it in these worlds" in str(trial)
    assert len(counted) == 1 + 20
    counted.clear()
    assert judged(tmp_path, None).trials == row.trials
    assert len(counted) == 1


def tried(here, without, sham, pooled=(None, None, None), size=1.0):
    """Return a trial of a criterion that is true in so many of ten worlds, and at so high rates of all draws."""
    three = [
        Criterion("x", "at least", 1.0, "", tuple(float(world < true) for world in range(10)), pooled=rate)
        for true, rate in zip((here, without, sham), pooled, strict=True)
    ]
    return CauseTrial(three[0], "without it", three[1], "without that", three[2], size)


@pytest.mark.parametrize(
    ("here", "without", "sham", "explains"),
    [
        (0, 8, 2, True),
        (0, 7, 2, False),
        (0, 10, 8, False),
        (0, 10, 7, True),
        (3, 10, 3, True),
        (5, 8, 5, False),  # three of five turn
        (6, 10, 8, False),
        (7, 9, 7, False),  # two of three turn
        (7, 10, 7, True),
        (8, 10, 3, False),  # eight of ten as they are: there is too little to turn
    ],
)
def test_a_cause_explains_if_the_effect_goes_with_it_and_with_nothing_else(here, without, sham, explains):
    assert tried(here, without, sham).explains is explains


def test_a_sham_of_less_than_half_the_size_shows_nothing():
    assert [tried(0, 10, 0, size=size).explains for size in (0.4, 0.5, 3.0)] == [False, True, True]


def test_only_worlds_that_failed_can_turn():
    """Eight of ten without the cause: three of the five that failed, or all five and three that held."""
    first = tried(5, 8, 0)
    last = replace(first, here=replace(first.here, values=first.here.values[::-1]))
    assert [(trial.turned, trial.failing, trial.explains) for trial in (first, last)] == [(3, 5, False), (5, 5, True)]


def test_a_rate_of_all_draws_must_hold_too():
    assert tried(2, 10, 2, (0.9, 1.1, 0.9)).explains
    assert not tried(2, 10, 0, (0.9, 0.99, 0.9)).explains
    assert not tried(2, 10, 2, (0.9, 1.1, 1.0)).explains
    assert not tried(8, 8, 8, (0.9, 1.1, 0.9)).explains
    assert "(1.1 in all draws), 8 of the 8 in which it fails" in str(tried(2, 10, 2, (0.9, 1.1, 0.9)))


def test_every_cause_belongs_to_findings_of_its_row_and_can_be_asked():
    """A scenario with the change, and one with the sham, can be loaded, and differ from the one that ships.

    Causes in the method have no change: their number is measured in the same worlds.
    """
    from scenarios.files.loader import Override, load
    from scenarios.views.terminal import dumps

    for cause in causes.CAUSES:
        bounds = published(cause.row)["series"]
        assert {f"finding:{name}" for name in cause.criteria} <= set(bounds), cause
        for name in catalogue.ROWS[cause.row].scenarios:
            for changed in (cause.removed, cause.instead)[1 if cause.measured_as else 0 :]:
                given = [Override(path, dumps(value), "value") for path, value in changed]
                assert load(name, given) != load(name, []), (cause.row, changed)


def test_every_row_that_has_several_worlds_has_a_place_for_them(tmp_path):
    rows = [row for row in catalogue.ROWS.values() if len(row.worlds) > 1]
    places = {worlds._folder(worlds.RowWorld(row.id, 2, changed), tmp_path) for row in rows for changed in ((), SHORT)}
    assert len(places) == 2 * len(rows) > 60


def test_every_population_is_chosen_by_a_sentence():
    for row in catalogue.ROWS:
        choice = population_of(row)
        assert choice is None or (choice.used != choice.other and len(choice.reason) > 20)
    assert population_of("crossplatform/fig5") is None


def test_code_that_draws_decides_no_number_and_code_that_measures_does(monkeypatch):
    before = worlds.measuring_digest.__wrapped__("occupancy")
    tree = worlds._tree

    def changed(name):
        def other(module):
            made = tree(module)
            for node in ast.walk(made):
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    node.body = [ast.Pass()]
            return made

        monkeypatch.setattr(worlds, "_tree", other)
        monkeypatch.setattr(worlds, "_decided", cache(worlds._decided.__wrapped__))
        return worlds.measuring_digest.__wrapped__("occupancy")

    assert changed("load") == before  # draws
    assert changed("measure_load") != before
    assert changed("expansion") != before  # in another room


def test_only_what_is_planned_is_measured_and_arithmetic_has_one_world():
    assert catalogue.ROWS["wsmeter/table2"].worlds == (1,)
    assert len(catalogue.ROWS["wsmeter/fig18"].worlds) == 10
    assert len(catalogue.ROWS["gwp/core-seconds"].worlds) == 3


@pytest.mark.usefixtures("counted")
def test_findings_are_counted_apart_and_so_is_what_one_world_says(tmp_path):
    told = "; ".join(Reproduced((judged(tmp_path, 10),)).counts())
    assert "1 of 2 findings hold, 1 depend on the world" in told
    assert "by one world alone, checks and slips counted too: 0 of 1 rows" in told


def test_a_row_without_enough_to_measure_fails_in_that_world(tmp_path, monkeypatch):
    from analysis.statistics import NotEnoughDataError

    def measure(sources):
        if sources.world == 2:
            raise NotEnoughDataError(10, 1, "machines")
        return numbers(platform_ratio=3.0, workload_gap=0.01)

    row = replace(catalogue.ROWS[ROW], measure=measure, draw=None)
    monkeypatch.setitem(catalogue.ROWS, ROW, row)
    ratio = judged(tmp_path, 3).criteria[1]
    assert ratio.holds_in == 2
    assert np.isnan(ratio.values[1])


def test_what_is_left_out_of_a_recorded_fleet_changes_none_of_its_tables(tmp_path):
    sources = catalogue.library(tmp_path, quiet)
    small = {"fleet.machines": 40, "population.jobs": 60, "population.common_jobs": 28, "population.heavyweights": 5}
    small |= {"horizon_s": 1800.0, "analyses.wsmeter.machines": (10,)}
    whole, lean = (sources.run("cpu_upgrade", **small, **left_out) for left_out in ({}, OBSERVED))
    digests = {name: lean.listed[name]["digest"] for name in lean.tables}
    assert "counters" in digests
    assert digests == {name: whole.listed[name]["digest"] for name in digests}
