"""The commands and the file that a report gives make the very run again."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from models.fleet.world import Population, Service
from scenarios.files.loader import digest, load, settings
from scenarios.files.schema import Analyses, Scenario, WSMeter
from scenarios.report.settings import facts
from scenarios.report.settings import settings as told
from scenarios.report.subject import Subject
from scenarios.runs.execution import reopen
from scenarios.runs.rundir import Run
from scenarios.views.section import Code, Command, Table
from tests.helpers.report_pages import made


def section(run):
    return told(Subject(*reopen(run.path)))


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("queue_small", ["station.servers=3", "seed=7", "load.arrivals.cv=2.5"]),
        (
            "small",
            ["fleet.machines=60", 'fleet.platforms={"haswell_2698v3": 0.4, "skylake_6148": 0.6}', "feature=null"],
        ),
    ],
)
def test_the_command_says_what_differs_from_the_shipped_scenario(tmp_path, name, overrides):
    run = made(name, tmp_path, *overrides)
    words = shlex.split(section(run).of(Command)[0].text)
    assert words[:3] == ["wsc", "run", name]
    assert set(words[3::2]) == {"--set"}
    again = load(name, settings(words[4::2]))
    assert digest(again) == run.manifest["digest"]


def test_a_shipped_scenario_needs_no_more_than_its_name(tmp_path):
    run = made("queue_small", tmp_path)
    made_ = section(run)
    assert [one.text for one in made_.of(Command)] == ["wsc run queue_small", f"wsc report {run.path}"]
    assert made_.of(Code) == []
    rows = {tuple(cell.text for cell in row) for row in made_.of(Table)[0].rows}
    assert ("station.servers", "2", "4") in rows
    assert ("horizon_s", "600", "3600") in rows
    assert not any(path == "seed" for path, _, _ in rows)


def test_values_are_told_plainly():
    services = Service("search", 8, 2.0, 0.85, 0.01), Service("report", 6, 2.0, 1.1, 0.006)
    scenario = Scenario(name="mine", population=Population(services=services))
    scenario = replace(scenario, analyses=Analyses(WSMeter(machines=(10, 20))))
    rows = {row[0].text: row[1].text for row in told(Subject(scenario, Run(Path("runs/mine"), {}))).of(Table)[0].rows}
    assert rows["analyses.wsmeter.machines"] == "10, 20"
    first, _, second = rows["population.services"].partition("; ")
    assert first.startswith("name search, instances 8, ")
    assert second.startswith("name report, instances 6, ")
    assert not {*'[]{}"'} & set("".join(rows.values()))


def test_one_of_a_kind_is_no_plural():
    run = Run(Path("runs/day"), {"counts": {"machines": 1200, "days": 1}})
    assert facts(Subject(Scenario(name="day"), run))["holds"] == "1,200 machines, 1 day"


def test_another_scenario_comes_with_its_file(tmp_path):
    run = made("small", tmp_path, "fleet.machines=60", "name=mine", "feature=null", "seed=4")
    made_ = section(run)
    assert made_.of(Command)[0].text == "wsc run mine.yaml"
    file = tmp_path / "mine.yaml"
    file.write_text(made_.of(Code)[0].text)
    again = load(str(file))
    assert again.name == "mine"
    assert digest(again) == run.manifest["digest"]
