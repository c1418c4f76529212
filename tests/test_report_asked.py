"""The commands and the file that a report gives make the very run again."""

import shlex

import pytest

from scenarios.execution import reopen
from scenarios.loader import load
from scenarios.report.asked import settings as told
from scenarios.report.section import Subject
from scenarios.source import digest, settings
from tests.report_pages import made


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
    words = shlex.split(section(run).commands[0])
    assert words[:3] == ["wsc", "run", name]
    assert set(words[3::2]) == {"--set"}
    again = load(name, settings(words[4::2]))
    assert digest(again) == run.manifest["digest"]


def test_a_shipped_scenario_needs_no_more_than_its_name(tmp_path):
    run = made("queue_small", tmp_path)
    made_ = section(run)
    assert made_.commands == ("wsc run queue_small", f"wsc report {run.path}")
    assert made_.code == ""
    rows = {tuple(cell.text for cell in row) for row in made_.tables[0].rows}
    assert ("station.servers", "2", "4") in rows
    assert ("horizon_s", "600", "3600") in rows
    assert not any(path == "seed" for path, _, _ in rows)


def test_another_scenario_comes_with_its_file(tmp_path):
    run = made("small", tmp_path, "fleet.machines=60", "name=mine", "feature=null", "seed=4")
    made_ = section(run)
    assert made_.commands[0] == "wsc run mine.yaml"
    file = tmp_path / "mine.yaml"
    file.write_text(made_.code)
    again = load(str(file))
    assert again.name == "mine"
    assert digest(again) == run.manifest["digest"]
