"""Every check that an estimator should pass fails for an estimator that breaks just that."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.effects.checks import CHANGE, COUNTED, Generator, UnlikeJobs, check, count
from analysis.effects.estimator import OnTables
from analysis.effects.methods import method
from analysis.statistics import NotEnoughDataError, Statistic
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
    ("estimate", "check_"),
    [
        (changing, "leaves the tables as they are"),
        (random, "answers the same twice"),
        (in_units, "is free of units (values x 1000)"),
        (first_row, "does not look at the order of rows"),
        (by_rows, "is no surer if every row is there twice"),
        (sure, "is wider for more confidence (80%, 99%)"),
    ],
)
def test_an_estimator_that_breaks_a_rule_fails_its_check(estimate, check_):
    assert check_ in [found.check for found in check(estimate, draws=1) if not found.passed]


def test_intervals_that_are_too_narrow_find_changes_where_there_are_none():
    assert not count(narrow, COUNTED[0], draws=15).passed


def median_of_differences(experiment):
    """Hodges and Lehmann's, of machines' mean values relative to their jobs' means: jobs weigh as they have rows."""
    rows = experiment.study
    level = rows[~rows["treated"]].groupby("job")["value"].mean()
    relative = (rows["value"] / rows["job"].map(level)).groupby([rows["treated"], rows["machine"]]).mean()
    off, on = relative[False].to_numpy(), relative[True].to_numpy()
    differences = np.sort(np.subtract.outer(on, off).ravel())
    pairs = len(differences)
    cut = int(pairs / 2 - 1.96 * (pairs * (len(off) + len(on) + 1) / 12) ** 0.5)
    return Statistic(*np.quantile(differences, [0.5, cut / pairs, 1 - cut / pairs]))


def test_an_estimator_of_another_mean_fails_where_jobs_are_unlike_and_there_alone():
    assert [count(median_of_differences, each, draws=25).passed for each in COUNTED] == [True, True, False]


@pytest.mark.parametrize("name", ["ratio", "adjusted"])
def test_estimators_of_the_stated_change_hold_it_where_jobs_are_unlike(name):
    """Each of them fails by chance in 0.1% of cases, or less often; the seed is fixed."""
    assert count(OnTables(method(name)).estimate, COUNTED[-1], draws=15).passed


def test_the_unlike_jobs_have_the_change_that_they_are_said_to_have():
    """Of the sums by quota over all rows of a fleet with the feature on all machines, less a common course."""
    wide = UnlikeJobs(machines=3000, share=1.0, log_sd=(0.3, 0.0, 0.01, 0.0))
    rows = wide.experiment(np.random.default_rng(1), CHANGE).observations
    sums = (rows["weight"] * rows["value"]).groupby(rows["treated"]).sum()
    assert sums[True] / sums[False] - 1 == pytest.approx(CHANGE, abs=1e-4)
    plain = rows["value"].groupby([rows["job"], rows["treated"]]).mean().unstack()
    assert (plain[True] / plain[False] - 1).mean() > 1.2 * CHANGE


def test_too_little_data_in_an_experiment_is_no_answer():
    def never(_experiment):
        raise NotEnoughDataError(99, 60, "machines")

    found = count(never, COUNTED[0], draws=2)
    assert (found.passed, found.found) == (False, "too little data in experiment 1: 99 machines are needed, 60 given")


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
