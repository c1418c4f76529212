"""Pairs taken apart in simulation: what is told is what the sums of instances say, and only colocate can be judged."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.profiling.questions.catalogue import QUESTIONS
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.profiling import affinity_trial, beside_trial, colocate_trial
from scenarios.profiling import ask as profile_ask
from scenarios.profiling.beside_trial import TriedPairs
from scenarios.profiling.colocate_trial import Pair, TakenApart, blocks, suffering, tried
from scenarios.views.section import Section
from scenarios.views.terminal import show
from sim.profiling import moving
from tests.helpers.profiled_fleets import small_fleet


@pytest.fixture
def snapshot(monkeypatch):
    """Four instances on four machines: jobs 0, 0, 1, 0; the first of job 0 is beside job 1 and goes elsewhere."""
    world = small_fleet()
    whole = moving.Snapshot.of(world)
    made = replace(
        whole,
        jobs=("a", "b"),
        job=np.array([0, 0, 1, 0]),
        shard=np.array([0, 1, 0, 2]),
        machine=np.array([0, 1, 0, 2]),
    )
    monkeypatch.setattr(affinity_trial, "world_of", lambda _run: world)
    monkeypatch.setattr(moving.Snapshot, "of", classmethod(lambda _cls, _world: made))
    monkeypatch.setattr(moving, "moved_apart", lambda *_: np.array([3, 1, 0, 2]))
    instructions = np.array([10.0, 10.0, 10.0, 20.0])

    def sums(_snapshot, machine):
        cpi = np.array([3.0, 1.0, 2.0, 1.0]) if machine[0] == 0 else np.array([2.0, 1.0, 1.0, 1.0])
        return cpi * instructions, instructions

    monkeypatch.setattr(moving, "instance_sums", sums)


def test_predicted_and_realised_changes_are_those_of_cycles_per_instruction(snapshot, tmp_path):
    """Half of a's 60 cycles move, 30 of the fleet's 80; their CPI falls from 3 to 2, b's from 2 to 1."""
    said = []
    (row,) = tried(tmp_path, [Pair("a", "b", 2.0, 1.25, 4.0)], lambda *told: said.append(told))
    assert (row.instances, row.moved, row.share) == (1, 1, 0.5)
    assert (row.predicted, row.predicted_low, row.predicted_high) == pytest.approx((-0.25, -0.375, -0.1))
    assert row.realised == pytest.approx(50 / 60 - 1)
    assert (row.moved_predicted, row.moved_realised) == pytest.approx((-0.5, 2 / 3 - 1))
    assert (row.fleet_predicted, row.fleet_realised) == pytest.approx((-30 / 80 / 2, 60 / 80 - 1))
    assert said[-1] == ("simulating", 1.0)
    text = io.StringIO()
    show(Section("", blocks([row])), Console(file=text, width=80))
    assert "-50.0% → -33.3%" in text.getvalue()
    assert "-25.0% → -16.7%" in text.getvalue()


def test_only_those_that_suffer_are_taken_apart():
    row = {"application": "a", "beside": "b", "low": 0.0, "high": 0.2}
    answer = pd.DataFrame([row | {"ratio": ratio} for ratio in (0.8, 1.0, 1.1)])
    assert [pair.ratio for pair in suffering(answer)] == [1.1]


def test_a_folder_that_was_not_simulated_cannot_be_judged(tmp_path):
    with pytest.raises(FaultsError, match="cannot be simulated"):
        tried(tmp_path, [])


def test_the_command_judges_answers_to_colocate_alone(monkeypatch, tmp_path):
    refused = CliRunner().invoke(app, ["profile", "ask", str(tmp_path), "shared", "--judge"])
    assert refused.exit_code == 2
    assert '--judge: only answers to colocate can be judged, got "shared"' in refused.output
    rows = [{"application": "a", "beside": "b", "ratio": 1.5, "low": 0.1, "high": 0.7}]
    answered = profile_ask.QuestionAnswer(QUESTIONS["colocate"], {}, pd.DataFrame(rows))
    monkeypatch.setattr(profile_ask, "ask", lambda *_: answered)
    apart = TakenApart("a", "b", 1, 1, *[0.5] * 9)
    monkeypatch.setattr(colocate_trial, "tried", lambda _run, pairs, _tell: [replace(apart, beside=pairs[0].beside)])
    monkeypatch.setattr(beside_trial, "judged", lambda *_: TriedPairs(4.0, ()))
    answer = CliRunner().invoke(app, ["profile", "ask", str(tmp_path), "colocate", "--judge", "--json"])
    assert json.loads(answer.stdout)["tried_together"]["pairs"] == []
    (pair,) = json.loads(answer.stdout)["tried"]
    assert (pair["beside"], pair["realised"]) == ("b", 0.5)
