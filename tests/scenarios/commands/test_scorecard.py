"""`wsc scorecard`: options are checked before anything is simulated, and the answer is one JSON value or a table."""

import json
import re

import pytest
import typer
from typer.testing import CliRunner

from scenarios.commands import scorecard as command
from scenarios.commands.guard import guard
from scenarios.effects.scorecard import designs, scorecard
from scenarios.views.conclusion import Conclusion
from scenarios.views.section import Section
from tests.helpers.effect_fleets import fleet

app = typer.Typer()
app.command()(guard(command.scorecard))
SMALL = ["--fleets", "2", "--draws", "10", "--machines", "24", "--sizes", "8,4", "--corners", "base", "--workers", "1"]


def wsc(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--corners", "base,nowhere"], '--corners: should be of base, .*, got "nowhere"'),
        (["--designs", "day,month"], '--designs: should be of day, week, .*, got "month"'),
        (
            ["--estimators", "guess"],
            '--estimators: should be one of published, .*, or yours as mine.py:Mine, got "guess"',
        ),
        (["--estimators", "stratified"], r"\(stratified has a design of its own, in which wsc scorecard judges it\)"),
        (["--fleets", "0"], '--fleets: should be a whole number of at least 1, got "0"'),
        (["--draws", "many"], "--draws: should be a whole number"),
        (["--sizes", "12,x"], '--sizes: should be a whole number of at least 1, got "x"'),
        (["--machines", "20", "--sizes", "12"], "--sizes: should have one of at most half of 20 machines"),
        (
            ["--designs", "staged", "--estimators", "a.py:A"],
            "--designs: estimators of your own are judged on day, week",
        ),
        (["--executor", "threads"], "--executor: should be processes, or dask: and a scheduler"),
        (["--executor", "dask:nowhere://x"], '--executor: .*, got "dask:nowhere://x"'),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(tmp_path, words, told):
    done = wsc(*words, "--out", tmp_path)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert re.search(told, done.stderr)


def made_up(corner, seed, machines, names):
    """Fleets in no time, of the designs that are asked for."""
    return [one for one in fleet(corner, seed, machines) if one.name in names]


class Empty(Conclusion):
    """An answer that says nothing."""

    def payload(self):
        return {"kind": "scorecard"}

    def section(self):
        return Section("")

    def frame(self):
        return None


def test_designs_are_asked_for_in_any_order_and_kept_in_one_place(monkeypatch):
    asked = []
    monkeypatch.setattr(scorecard, "scorecard", lambda one, *_, **__: asked.append(one) or Empty())
    for words in ("week,day", "day, week", "day,week,day"):
        assert wsc(*SMALL, "--designs", words, "--json").exit_code == 0
    assert {one.designs for one in asked} == {("day", "week")}
    assert wsc(*SMALL, "--json").exit_code == 0
    assert asked[-1].designs == designs.DESIGNS


def test_the_answer_is_one_json_value(tmp_path, monkeypatch):
    monkeypatch.setattr(designs, "designs", made_up)
    done = wsc(*SMALL, "--estimators", "ratio,cuped", "--out", tmp_path, "--json")
    assert done.exit_code == 0, done.stderr
    made = json.loads(done.stdout)
    assert (made["kind"], made["fleets"], made["sizes"]) == ("scorecard", 2, [4, 8])
    assert {row["estimator"] for row in made["corners"]} == {"ratio", "cuped"}
    again = wsc(*SMALL, "--estimators", "ratio,cuped", "--out", tmp_path)
    assert made["digest"] in again.stdout
