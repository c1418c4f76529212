"""Every check that an estimator should pass fails for an estimator that breaks just that."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.effects.checks import CHANGE, Generator, check
from analysis.effects.estimator import OnTables
from analysis.effects.methods import method
from analysis.statistics import Statistic
from models.errors import InputError

RIGHT = OnTables(method("ratio")).estimate


def changing(experiment):
    experiment.observations["value"] *= 1.0001
    return RIGHT(experiment)


def random(experiment):
    answer = RIGHT(experiment)
    return Statistic(answer.value, answer.low, answer.high + np.random.default_rng().random())


def in_units(experiment):
    answer = RIGHT(experiment)
    return Statistic(answer.value, answer.low, answer.high + experiment.observations["value"].mean())


def first_row(experiment):
    answer = RIGHT(experiment)
    return Statistic(answer.value, answer.low, answer.high + float(experiment.observations["value"].iloc[0]) / 1e3)


def by_rows(experiment):
    answer, rows = RIGHT(experiment), len(experiment.observations)
    return Statistic.around(answer.value, 40 * answer.half_width / rows**0.5)


def sure(experiment):
    return Statistic.around(RIGHT(experiment).value, RIGHT(replace(experiment, confidence=0.95)).half_width)


def narrow(experiment):
    answer = RIGHT(experiment)
    return Statistic.around(answer.value, answer.half_width / 3)


@pytest.mark.parametrize(
    ("estimate", "draws", "check_"),
    [
        (changing, 1, "leaves the tables as they are"),
        (random, 1, "answers the same twice"),
        (in_units, 1, "is free of units (values x 1000)"),
        (first_row, 1, "does not look at the order of rows"),
        (by_rows, 1, "is no surer if every row is there twice"),
        (sure, 1, "is wider for more confidence (80%, 99%)"),
        (narrow, 25, "finds nothing where nothing changed"),
    ],
)
def test_an_estimator_that_breaks_a_rule_fails_its_check(estimate, draws, check_):
    assert check_ in [found.check for found in check(estimate, draws=draws) if not found.passed]


def raising(_experiment):
    raise InputError("no such column")


@pytest.mark.parametrize(
    ("estimate", "found"),
    [(raising, "no such column"), (lambda _: Statistic(0.0, 0.0, 0.0), "an interval of width 0: +0.00%")],
)
def test_an_estimator_without_an_answer_fails_the_first_check_alone(estimate, found):
    (first,) = check(estimate, draws=1)
    assert not first.passed
    assert first.found.startswith(found)


def test_the_checks_after_a_changed_table_see_it_as_it_was():
    seen = []

    def zeroing(experiment):
        seen.append((experiment.observations["value"].sum(), experiment.jobs["quota"].sum()))
        answer = RIGHT(experiment)
        experiment.observations["value"] = 0.0
        experiment.jobs["quota"] = 0.0
        return answer

    failed = [found.check for found in check(zeroing, draws=1) if not found.passed]
    assert failed == ["leaves the tables as they are"]
    assert all(value > 0 and quota == pytest.approx(1) for value, quota in seen)


def test_there_is_no_check_without_draws():
    with pytest.raises(InputError, match="draws should be at least 1, got 0"):
        check(RIGHT, draws=0)


def test_the_generator_has_the_change_that_it_says():
    """The mean over jobs by quota, of many instances, without and with the feature."""
    wide = Generator(machines=4000, jobs=3, instances=4, log_sd=(0.5, 0.04, 0.08, 0.05))
    experiment = wide.experiment(np.random.default_rng(1), CHANGE)
    means = experiment.study.groupby(["treated", "job"])["value"].mean()
    quota = experiment.jobs.set_index("job")["quota"]
    change = (quota * means[True]).sum() / (quota * means[False]).sum() - 1
    assert change == pytest.approx(CHANGE, abs=0.004)
