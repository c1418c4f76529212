"""The scorecard as a whole: the same answer from one process, two, or a cluster, and after any interruption."""

import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from analysis.effects.methods import names
from scenarios.effects.scorecard import scorecard as cards
from scenarios.effects.scorecard.designs import designs
from scenarios.effects.scorecard.pieces import Piece, ScorecardQuestion, cut
from scenarios.effects.scorecard.scorecard import place, restored, scorecard
from scenarios.views.terminal import dumps, show
from tests.helpers.clusters import cluster
from tests.helpers.effect_fleets import fleet

ROOT = Path(__file__).parents[4]
ASKED = ScorecardQuestion(("ratio", "cuped", "published"), (4, 8), draws=20, machines=24)
PIECES = cut(("base", "wide"), 4)
SCRIPT = """
import sys
from pathlib import Path
import typer
from scenarios.commands.guard import guard
from scenarios.effects.scorecard.scorecard import restored, scorecard
from scenarios.views.terminal import dumps
from scenarios.views.terminal import show
from tests.helpers.effect_fleets import slow_fleet
from tests.scenarios.effects.scorecard.test_scorecard import ASKED, PIECES, one_place
one_place()
try:
    guard(scorecard)(ASKED, PIECES, slow_fleet, Path(sys.argv[1]), lambda what, share: None, workers=2)
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""


def one_place():
    """Keep pieces in one place, whatever the state of the code."""
    cards.folder_of = lambda out, stem, *_: out / stem
    return cards.folder_of


@pytest.fixture(autouse=True, scope="module")
def _one_place():
    before = cards.folder_of
    one_place()
    yield
    cards.folder_of = before


def quiet(_what, _share):
    pass


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    out = tmp_path_factory.mktemp("here")
    return scorecard(ASKED, PIECES, fleet, out, quiet, workers=1).payload()


def files(out):
    return {file.name: file.read_bytes() for file in place(ASKED, out).glob("*.json")}


def test_it_says_what_was_asked_and_what_was_found(here):
    assert (here["fleets"], here["draws"], here["sizes"], len(here["digest"])) == (4, 20, [4, 8], 64)
    assert {row["corner"] for row in here["corners"]} == {"base", "wide"}
    assert [Path(name).name for name in here["pictures"]] == [
        "coverage-day.png",
        "coverage-day.pdf",
        "coverage-day.svg",
        "curves.png",
        "curves.pdf",
        "curves.svg",
    ]
    assert all(Path(name).stat().st_size for name in here["pictures"])


def test_two_processes_say_the_same(here, tmp_path):
    there = scorecard(ASKED, PIECES, fleet, tmp_path, quiet, workers=2).payload()
    assert there["digest"] == here["digest"]
    assert there["corners"] == here["corners"]
    assert files(tmp_path) == files(Path(here["folder"]).parent)


def test_simulated_fleets_are_judged_alike_by_one_process_and_a_cluster(tmp_path):
    """Two features of 60 machines, and all that goes with a real fleet: simulation, cells, every estimator."""
    asked = ScorecardQuestion(names(), (12, 25), draws=18, machines=60)
    fleets, pieces = partial(designs, names=("day", "crossover")), cut(("base", "upgrade"), 2)
    here = scorecard(asked, pieces, fleets, tmp_path / "here", quiet, workers=1).digest
    with cluster(2) as made:
        where = f"dask:{made.scheduler_address}"
        assert scorecard(asked, pieces, fleets, tmp_path / "cluster", quiet, where=where).digest == here


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_what_was_interrupted_goes_on_and_ends_the_same(here, tmp_path, end):
    begun = tmp_path / "begun"
    begun.mkdir()
    # Of a group of its own, so that a signal to the group is a terminal's Ctrl-C.
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"EFFECT_FLEETS_BEGUN": str(begun), "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        slow = [begun / "base-2", begun / "wide-2"]
        try:
            until(lambda: all(file.is_file() and file.read_text() for file in slow) and len(files(tmp_path)) == 2)
            workers = [int(file.read_text()) for file in slow]
            if end == signal.SIGINT:
                os.killpg(process.pid, end)
            else:
                process.send_signal(end)
            _, told = process.communicate(timeout=20)
        finally:
            process.kill()
    until(lambda: not any(map(runs, workers)))
    assert process.returncode == (130 if end == signal.SIGINT else -end)
    assert told == "interrupted\n" or end == signal.SIGKILL
    assert {file.name for file in place(ASKED, tmp_path).iterdir()} == {"base-1.json", "wide-1.json"}
    (place(ASKED, tmp_path) / f".base-2.json.{process.pid}.0a1b2c3d.partial").write_text("{")
    assert scorecard(ASKED, PIECES, fleet, tmp_path, quiet, workers=1).digest == here["digest"]
    assert not list(place(ASKED, tmp_path).glob("*.partial"))


def test_what_was_printed_is_the_same_scorecard(here):
    again = restored(json.loads(dumps(here), object_hook=nan_for_none))
    assert dumps(again.payload()) == dumps(here)
    assert again.frame()["estimator"].tolist() == [row["estimator"] for row in here["estimators"]]


def nan_for_none(value):
    return {name: math.nan if field is None else field for name, field in value.items()}


def test_more_fleets_use_those_that_are_there(here):
    told, pieces = [], [*PIECES, Piece("base", 3)]
    out = Path(here["folder"]).parent
    more = scorecard(ASKED, pieces, fleet, out, lambda _, share: told.append(share), workers=1)
    assert told == [0.8, 1.0]
    assert more.fleets == 5


def test_it_is_shown(here):
    text = io.StringIO()
    show(restored(here).section(), Console(file=text, width=140))
    said = text.getvalue()
    assert "4 fleets of 24 machines, 20 draws of each size" in said
    assert f"digest: {here['digest']}" in said
    assert all(name in said for name in ("published", "cuped", "ratio", "±"))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_estimator_and_no_coverage_is_lost_on_a_narrow_terminal(here, width):
    text = io.StringIO()
    show(restored(here).section(), Console(file=text, width=width))
    rows = [line.split() for line in text.getvalue().splitlines()]
    assert {row["estimator"] for row in here["estimators"]} <= {row[1] for row in rows if len(row) > 2}
    assert "coverage" in text.getvalue().partition("coverage:")[0]
    assert "…" not in text.getvalue()


@pytest.mark.parametrize(
    ("covered", "said"), [((19, 20, 20), "98.3% ± 1.7"), ((19, 19, 19), "95.0% ± –"), ((19, 20), "97.5% ± –")]
)
def test_an_error_is_told_where_fleets_can_tell_it_and_their_number_always(here, covered, said):
    row = {"design": "day", "estimator": "cuped", "machines": 8, "draws": 20, "answered": 20, "detected": 20}
    row |= {"bias": 0.0, "sd": 0.01, "error": 0.01, "margin": 0.02}
    pieces = [
        {"corner": "base", "seed": seed, "rows": [row | {"covered": count}]} for seed, count in enumerate(covered)
    ]
    text = io.StringIO()
    show(restored(here | cards.summary(pieces).records()).section(), Console(file=text, width=160))
    line = next(line for line in text.getvalue().splitlines() if line.split()[:2] == ["day", "cuped"])
    assert line.split()[2:4] == [str(len(covered)), str(20 * len(covered))]
    assert said in line


def until(done, seconds=300.0):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def runs(process):
    """Whether a process is there and no zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False
