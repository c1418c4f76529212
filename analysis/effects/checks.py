"""Checks that every estimator of a change should pass: of units, order, repeated rows, healthy tables and coverage.

The experiments come from a small generator of their own, in which jobs, machines and instances differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom

from analysis.effects.estimator import ExperimentTables
from analysis.statistics import Statistic
from models.errors import InputError, WscError

Estimate = Callable[[ExperimentTables], Statistic]
CHANGE = 0.05
"""Relative change of the experiments that have one."""
DRAWS = 200
FALSE_ALARM = 0.001
"""Chance that an estimator whose intervals are right fails a check that counts."""
_SAME = 1e-6
"""Relative difference up to which two answers are the same; estimators add in other orders."""
_NARROWEST = 0.95
"""Of the interval's width, where every row is there twice."""
_SEED = 21


class EstimatorCheck(NamedTuple):
    """One check: what should hold, whether it does, and what was found."""

    check: str
    passed: bool
    found: str


@dataclass(frozen=True, slots=True)
class Generator:
    """Experiments: values are lognormal in jobs, machines, instances and periods; machines with the feature at random.

    Half of the change's spread over jobs is the change itself, so that jobs gain unlike.
    """

    machines: int = 40
    jobs: int = 6
    instances: int = 6
    """Of each machine."""
    periods: int = 2
    """Before the feature, and as many with it."""
    share: float = 0.5
    """Of the machines that get it."""
    log_sd: tuple[float, float, float, float] = (0.5, 0.04, 0.08, 0.05)
    """Of jobs, machines, instances and periods."""

    def experiment(self, rng: np.random.Generator, change: float) -> ExperimentTables:
        """Return an experiment on a fleet that the feature changes by so much, relative."""
        count = self.machines * self.instances
        machine = np.repeat(np.arange(self.machines), self.instances)
        quota = rng.dirichlet(np.full(self.jobs, 2.0))
        job = rng.choice(self.jobs, count, p=quota)
        of_job, of_machine, of_instance, of_period = self.log_sd
        level = np.exp(rng.normal(0, of_job, self.jobs))
        gain = rng.uniform(0.5, 1.5, self.jobs)
        gain *= change / ((quota * level * gain).sum() / (quota * level).sum())
        treated = rng.permutation(self.machines)[machine] < round(self.share * self.machines)
        stay = rng.normal(0, of_machine, self.machines)[machine] + rng.normal(0, of_instance, count)
        mean = of_machine**2 / 2 + of_instance**2 / 2 + of_period**2 / 2
        periods = []
        for period in range(2 * self.periods):
            value = level[job] * np.exp(stay + rng.normal(0, of_period, count) - mean)
            on = treated & (period >= self.periods)
            rows = {"period": period, "job": job, "machine": machine, "instance": np.arange(count), "weight": 1.0}
            periods.append(pd.DataFrame({**rows, "value": value * np.where(on, 1 + gain[job], 1.0), "treated": on}))
        jobs = pd.DataFrame({"job": np.arange(self.jobs), "quota": quota})
        return ExperimentTables(pd.concat(periods, ignore_index=True), jobs)


def check(
    estimate: Estimate, draws: int = DRAWS, tell: Callable[[float], None] = lambda _share: None
) -> list[EstimatorCheck]:
    """Return what an estimator does right and wrong, check by check.

    Parameters
    ----------
    estimate : returns the answer to one experiment
    draws : experiments of each check that counts
    tell : told the share that is done

    Raises
    ------
    InputError
        If there are no draws.

    Examples
    --------
    >>> from analysis.effects.estimator import OnTables
    >>> from analysis.effects.methods import method
    >>> all(found.passed for found in check(OnTables(method("ratio")).estimate, draws=2))
    True
    """
    if draws < 1:
        raise InputError(f"draws should be at least 1, got {draws}")
    experiment = Generator().experiment(np.random.default_rng(_SEED), CHANGE)
    rows, jobs = experiment.observations.copy(), experiment.jobs.copy()
    answers_at_all = "answers with a change and its interval"
    try:
        first = estimate(experiment)
    except WscError as error:
        return [EstimatorCheck(answers_at_all, False, str(error))]
    if first.low == first.high:
        return [EstimatorCheck(answers_at_all, False, f"an interval of width 0: {_shown(first)}")]
    found = [EstimatorCheck(answers_at_all, True, _shown(first))]
    untouched = rows.equals(experiment.observations) and jobs.equals(experiment.jobs)
    found.append(EstimatorCheck("leaves the tables as they are", untouched, "unchanged" if untouched else "changed"))
    found += _single(estimate, replace(experiment, observations=rows, jobs=jobs), first)
    generator, rng = Generator(), np.random.default_rng(_SEED)
    for number, change in enumerate((0.0, CHANGE)):
        answers = []
        for draw in range(draws):
            tell((number * draws + draw) / (2 * draws))
            answers.append(estimate(generator.experiment(rng, change)))
        found.append(_counted(answers, change))
    return found


def _single(estimate: Estimate, experiment: ExperimentTables, first: Statistic) -> Iterator[EstimatorCheck]:
    """Yield the checks of an estimator that answers `first` to an experiment."""
    rows, jobs = experiment.observations, experiment.jobs
    yield _alike("answers the same twice", first, estimate(_with(experiment, rows)))
    yield _alike(
        "is free of units (values x 1000)", first, estimate(_with(experiment, rows.assign(value=rows["value"] * 1e3)))
    )
    yield _alike(
        "does not look at the order of rows",
        first,
        estimate(_with(experiment, rows.sample(frac=1, random_state=_SEED))),
    )
    named = replace(
        _with(experiment, rows.assign(machine="m" + rows["machine"].astype(str), job="j" + rows["job"].astype(str))),
        jobs=jobs.assign(job="j" + jobs["job"].astype(str)),
    )
    yield _alike("does not look at what jobs and machines are called", first, estimate(named))
    twice = estimate(_with(experiment, pd.concat([rows, rows], ignore_index=True)))
    narrower = (twice.high - twice.low) / (first.high - first.low)
    yield EstimatorCheck(
        "is no surer if every row is there twice", narrower >= _NARROWEST, f"{narrower:.2f} times the width"
    )
    widths = [estimate(replace(_with(experiment, rows), confidence=level)) for level in (0.8, 0.99)]
    narrow, wide = (width.high - width.low for width in widths)
    times = f"{wide / narrow:.2f} times as wide" if narrow else "an interval of width 0 at 80%"
    yield EstimatorCheck("is wider for more confidence (80%, 99%)", wide > narrow > 0, times)
    yield _of_little(estimate, experiment, rows)


def _of_little(estimate: Estimate, experiment: ExperimentTables, rows: pd.DataFrame) -> EstimatorCheck:
    """Return whether an estimator says of one machine in each arm that it is too little, or anything sensible."""
    name = "says so if there is too little data (a machine in each arm)"
    having = rows.groupby("machine")["treated"].any()
    few = [having.index[having][0], having.index[~having][0]]
    try:
        answer = estimate(_with(experiment, rows[rows["machine"].isin(few)]))
    except WscError as error:
        return EstimatorCheck(name, type(error).__name__ != "PartError", str(error))
    return EstimatorCheck(name, False, f"answers {_shown(answer)}")


def _counted(answers: list[Statistic], change: float) -> EstimatorCheck:
    """Return whether so many intervals hold the change as intervals of 95% do, but for chance."""
    missed = sum(not answer.low <= change <= answer.high for answer in answers)
    most = int(binom.isf(FALSE_ALARM, len(answers), 0.05))
    what = (
        "finds nothing where nothing changed"
        if not change
        else f"holds the change in 95% of experiments ({change:+.0%})"
    )
    detected = "" if not change else f"; zero is ruled out in {_share(a.low > 0 or a.high < 0 for a in answers)}"
    return EstimatorCheck(what, missed <= most, f"{missed} of {len(answers)} intervals missed, {most} may{detected}")


def _with(experiment: ExperimentTables, rows: pd.DataFrame) -> ExperimentTables:
    return replace(experiment, observations=rows.copy(), jobs=experiment.jobs.copy())


def _alike(name: str, first: Statistic, other: Statistic) -> EstimatorCheck:
    width = first.high - first.low
    same = all(abs(a - b) <= _SAME * max(abs(a), width) for a, b in zip(first, other, strict=True))
    return EstimatorCheck(name, same, "the same" if same else f"{_shown(first)}, then {_shown(other)}")


def _shown(answer: Statistic) -> str:
    return f"{answer.value:+.2%} ({answer.low:+.2%} to {answer.high:+.2%})"


def _share(holds: Iterator[bool]) -> str:
    counted = list(holds)
    return f"{sum(counted) / len(counted):.0%}"
