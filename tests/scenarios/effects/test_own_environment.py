"""An estimator in an environment of its own answers as it does in ours, and what goes wrong there is its author's."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects.checks import Generator
from analysis.effects.estimator import PotentialTables
from analysis.statistics import NotEnoughDataError
from models.code.parts import PartError, part
from models.errors import InputError
from scenarios.effects.own import OwnEstimator

MEANS = """
class Means:
    name = "means"

    def estimate(self, experiment):
        import os
        import wsc

        print("what an estimator prints is no answer")
        if experiment.confidence == 0.5:
            return experiment.study["gone"]
        if experiment.confidence == 0.6:
            return float("nan"), 0.0, 0.0
        if experiment.confidence == 0.7:
            os.write(2, b"out of memory")
            os._exit(3)
        means = experiment.study.groupby(["treated", "machine"])["value"].mean()
        if not all(arm in means for arm in (False, True)):
            raise wsc.NotEnoughData(1, 0, "machines")
        change = means[True].mean() / means[False].mean() - 1
        before = len(experiment.before) / len(experiment.observations)
        return change, change - before, change + experiment.jobs["quota"].sum()


class Missing(Means):
    environment = ENVIRONMENT

    def estimate(self, experiment):
        missing = float(experiment.observations["rack"].isna().sum())
        return missing, missing, missing + (experiment.observations["rack"] == "a").sum()


class Truncated(Means):
    environment = ENVIRONMENT

    def estimate(self, experiment):
        import os, struct
        for pipe in range(3, 9):
            try:
                os.write(pipe, struct.pack("<q", 9) + b"no arrays")
            except OSError:
                pass
        os._exit(0)


class Apart(Means):
    environment = ENVIRONMENT


class Nowhere(Means):
    environment = "gone"
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    place = tmp_path_factory.mktemp("own") / "means.py"
    place.write_text(MEANS.replace("ENVIRONMENT", repr(sys.prefix)))
    return place


@pytest.fixture(scope="module")
def apart(file):
    return OwnEstimator.of_part(part(f"{file}:Apart"))


@pytest.fixture(scope="module")
def experiment():
    return Generator(machines=10).experiment(np.random.default_rng(1), 0.05)


def test_it_answers_the_same_there_and_here(file, apart, experiment):
    here = OwnEstimator.of_part(part(f"{file}:Means"))
    assert (apart.name, apart.estimate(experiment)) == ("means", here.estimate(experiment))
    rows = experiment.observations
    named = replace(experiment, observations=rows.assign(machine="m" + rows["machine"].astype(str)))
    assert apart.estimate(named) == here.estimate(named)


def test_it_sees_of_each_draw_what_it_would_see_here(file, apart, experiment):
    off = experiment.study.assign(treated=False)
    machines = pd.Index(off["machine"].drop_duplicates().sort_values())
    treated = np.arange(10) < np.array([[3], [5], [0]])
    on = off.assign(value=1.1 * off["value"])
    tables = PotentialTables(experiment.before, off, on, machines, treated, experiment.jobs)
    there, here = apart.many(tables), OwnEstimator.of_part(part(f"{file}:Means")).many(tables)
    assert there == pytest.approx(here, nan_ok=True)
    assert np.isnan(there).all(axis=1).tolist() == [False, False, True]


def test_missing_texts_are_missing_there_too(file, experiment):
    rows = experiment.observations
    rack = np.where(np.arange(len(rows)) < 3, None, "a").astype(object)
    rack[5] = np.nan
    answer = OwnEstimator.of_part(part(f"{file}:Missing")).estimate(
        replace(experiment, observations=rows.assign(rack=rack))
    )
    assert tuple(answer) == (4.0, 4.0, len(rows))


def test_a_reply_that_is_no_table_is_the_end_of_its_process(file, experiment):
    with pytest.raises(PartError, match="its process ended with status 0"):
        OwnEstimator.of_part(part(f"{file}:Truncated")).estimate(experiment)


def test_what_it_does_wrong_is_said_with_its_line(apart, experiment):
    with pytest.raises(PartError, match=r"means\.py:11: KeyError: 'gone'"):
        apart.estimate(replace(experiment, confidence=0.5))
    with pytest.raises(PartError, match="should answer with finite numbers, got change nan"):
        apart.estimate(replace(experiment, confidence=0.6))
    with pytest.raises(NotEnoughDataError, match="no machines: at least 1 is needed"):
        apart.estimate(replace(experiment, observations=experiment.observations.assign(treated=False)))
    assert apart.estimate(experiment).value


def test_a_process_that_ends_leaves_what_it_wrote_and_another_is_started(apart, experiment):
    with pytest.raises(PartError, match=r"(?s)means\.py: its process ended with status 3; it wrote: .*out of memory"):
        apart.estimate(replace(experiment, confidence=0.7))
    assert apart.estimate(experiment).value


def test_an_environment_that_is_not_there_is_refused_at_once(file):
    with pytest.raises(PartError, match=r"there is no environment 'gone' beside it: python -m venv .*/gone"):
        OwnEstimator.of_part(part(f"{file}:Nowhere"))
    with pytest.raises(InputError, match=r"is named by its file, as mine\.py:Mine"):
        OwnEstimator.of(part(f"{file}:Apart").load())
