"""The commands that reports of scorecards and sweeps give ask the very same again."""

import inspect
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.effects.methods import names
from scenarios.commands.app import app
from scenarios.commands.scorecard import scorecard as command
from scenarios.effects.scorecard import scorecard as cards
from scenarios.effects.scorecard.card import Card
from scenarios.effects.scorecard.designs import DESIGNS, THINNED
from scenarios.files.loader import digest, load, load_each, settings
from scenarios.report import commands, scorecard, sweep
from scenarios.report.settings import dumped, flat
from scenarios.views.section import Code, Command

NAMES = names()


def pieces(asked, wanted):
    """Pieces as `pieces.judged` would return them, without a simulation: only what was asked is right."""
    rows = [
        {"design": design, "estimator": name, "machines": size, "draws": max(asked.draws // THINNED.get(design, 1), 1)}
        | {"answered": 1, "covered": 1, "detected": 0, "bias": 0.0, "sd": 0.01, "error": 0.01, "margin": 0.02}
        for design in asked.designs
        for name in (*asked.estimators, *([design] if design in THINNED else []))
        for size in asked.sizes
        if 2 * size <= asked.machines
    ]
    truths = dict.fromkeys(asked.designs, 0.01)
    return [one.named() | {"machines": asked.machines, "truths": truths, "rows": rows} for one in wanted]


def asked_by(words, monkeypatch):
    """What a command asks, and of which fleets."""
    kept = []
    payload = {name: [] for name in ("sizes", "pictures", "truths", "notes", *Card._fields)}
    payload |= {"fleets": 0, "machines": 0, "draws": 0, "folder": "", "digest": ""}

    def keep(asked, wanted, _fleets, out, _tell, **_where):
        kept.append((asked, wanted, out))
        return cards.restored(payload)

    monkeypatch.setattr(cards, "scorecard", keep)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return kept[0]


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--fleets 8 --draws 4 --machines 100 --sizes 10,20",
        "--fleets 5 --corners churn,base --seed 7 --machines 60 --designs staged,balanced --draws 40",
        "--fleets 3 --corners base --estimators adjusted,cuped --designs day,week --out 'my cards'",
        "--fleets 7 --corners tails_wide,base,churn --draws 505 --designs day,balanced,paired",
    ],
)
def test_the_command_of_a_scorecard_asks_the_same(options, monkeypatch, tmp_path):
    from scenarios.effects.scorecard.corners import CORNERS

    options = options.replace("tails_wide", list(CORNERS)[3]).replace("churn", list(CORNERS)[2])
    asked, wanted, out = asked_by(["scorecard", *shlex.split(options)], monkeypatch)
    made = pieces(asked, wanted)
    folder = Path(out, "scorecard-0123")
    monkeypatch.setattr(scorecard, "concluded", lambda judged, asked_, _: told(judged, asked_, folder))
    monkeypatch.setattr(scorecard, "page", lambda payload, _folder: commands.scorecard(payload))
    words = shlex.split(scorecard.of_pieces(made, folder))
    assert words[0] == "wsc"
    again, fleets, place = asked_by(words[1:], monkeypatch)
    assert place == out
    assert set(fleets) == set(wanted)
    fitting = tuple(size for size in asked.sizes if 2 * size <= asked.machines)
    assert tuple(size for size in again.sizes if 2 * size <= again.machines) == fitting
    assert (again.estimators, again.designs, again.machines) == (asked.estimators, asked.designs, asked.machines)
    for design in asked.designs:
        thinned = THINNED.get(design, 1)
        assert max(again.draws // thinned, 1) == max(asked.draws // thinned, 1)
    if not options:
        assert words == ["wsc", "scorecard"]


def told(made, asked, folder):
    """What `wsc scorecard` says of its question, without any sums."""
    names = dict.fromkeys(row["estimator"] for one in made for row in one["rows"])
    truths = tuple(cards.Truths(one["corner"], one["seed"], one["truths"]) for one in made)
    return card_of(truths, names, draws=asked.draws, sizes=asked.sizes, machines=asked.machines, folder=folder)


def card_of(truths, names, *, draws, sizes, machines, folder):
    """A scorecard in which nothing is summed up."""
    empty = pd.DataFrame()
    summed = Card(*[empty] * len(Card._fields))._replace(corners=pd.DataFrame({"estimator": list(names)}))
    return cards.Scorecard(draws, machines, sizes, len(truths), "", str(folder), (), truths, summed)


def test_all_designs_and_estimators_are_told_by_none():
    truths = (cards.Truths("base", 1, dict.fromkeys(DESIGNS, 0.01)),)
    card = card_of(truths, (*NAMES, "paired"), draws=500, sizes=(12, 25), machines=60, folder="runs/scorecard-1")
    assert commands.scorecard(card) == "wsc scorecard --fleets 1 --machines 60 --corners base"


SWEEP = """
name: rows
sweep:
  scenario: base.yaml
  axes:
    load.arrivals.cv: [0.5, 2, 10]
    station.policy: [fcfs, ps]
  seeds: [1, 2]
"""


@pytest.fixture
def swept(tmp_path):
    (tmp_path / "base.yaml").write_text("extends: queue_small\nname: mine\nstation: {servers: 3}\n")
    (tmp_path / "rows.yaml").write_text(SWEEP)
    return load_each(str(tmp_path / "rows.yaml"))


def runs_of(scenarios, folder):
    """Runs as a sweep's folder holds them, without anything simulated."""
    return [
        sweep.RunLine("queue", one.name, folder / one.name, flat(dumped(one)), {"busy": 0.5}, {}, scenario=one)
        for one in scenarios
    ]


def test_the_files_of_a_sweep_make_its_runs(swept, tmp_path):
    runs = runs_of(swept, tmp_path / "swept runs")
    (section,) = sweep._sections(runs[::-1])
    assert section.of(Command)[0].text == f"wsc run rows.yaml --out '{tmp_path}/swept runs'"
    parts = re.split(r"^# (\S+)\n", section.of(Code)[0].text, flags=re.MULTILINE)
    again = tmp_path / "again"
    again.mkdir()
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        (again / name).write_text(text)
    made = {one.name: digest(one) for one in load_each(str(again / "rows.yaml"))}
    assert made == {one.name: digest(one) for one in swept}


def test_runs_that_are_no_whole_sweep_have_a_command_each(swept, tmp_path):
    (section,) = sweep._sections(runs_of(swept[:-1], tmp_path))
    assert section.of(Command)[0].text == f"wsc run {swept[0].name}.yaml"
    assert section.of(Code) == []
    shipped = [load("queue_small", settings([f"station.servers={count}"])) for count in (2, 3)]
    (section,) = sweep._sections(runs_of(shipped, tmp_path))
    assert [one.text for one in section.of(Command)[:2]] == [
        "wsc run queue_small",
        "wsc run queue_small --set station.servers=3",
    ]


def test_what_is_usual_is_what_the_command_takes_by_itself():
    given = {name: one.default for name, one in inspect.signature(command).parameters.items()}
    defaults = {name: ",".join(map(str, one)) if isinstance(one, tuple) else str(one) for name, one in given.items()}
    assert commands.USUAL.items() <= defaults.items()
    assert not any(given[name] for name in ("corners", "estimators", "designs"))
