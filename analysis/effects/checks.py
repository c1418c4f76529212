"""Checks that every estimator of a change should pass: of units, order, repeated rows, healthy tables and coverage.

The experiments come from a small generator of their own, in which jobs, machines and instances differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.estimator import ExperimentTables
from analysis.statistics import NotEnoughDataError, Statistic
from models.arrays import Floats, Ints
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

    def _jobs(self, rng: np.random.Generator) -> "_Jobs":
        """Return jobs that take turns on all machines alike: each instance weighs the same, whatever its job gains."""
        quota = rng.dirichlet(np.full(self.jobs, 2.0))
        job = rng.choice(self.jobs, self.machines * self.instances, p=quota)
        level = np.exp(rng.normal(0, self.log_sd[0], self.jobs))
        return _Jobs(job, quota, np.ones(self.jobs), level, rng.uniform(0.5, 1.5, self.jobs))

    def experiment(self, rng: np.random.Generator, change: float) -> ExperimentTables:
        """Return an experiment on a fleet that the feature changes by so much, relative."""
        count = self.machines * self.instances
        machine = np.repeat(np.arange(self.machines), self.instances)
        job, quota, weight, level, gain = self._jobs(rng)
        _, of_machine, of_instance, of_period = self.log_sd
        gain = gain * change / ((quota * level * gain).sum() / (quota * level).sum())
        treated = rng.permutation(self.machines)[machine] < round(self.share * self.machines)
        stay = rng.normal(0, of_machine, self.machines)[machine] + rng.normal(0, of_instance, count)
        mean = of_machine**2 / 2 + of_instance**2 / 2 + of_period**2 / 2
        periods = []
        for period in range(2 * self.periods):
            value = level[job] * np.exp(stay + rng.normal(0, of_period, count) - mean)
            on = treated & (period >= self.periods)
            rows = {
                "period": period,
                "job": job,
                "machine": machine,
                "instance": np.arange(count),
                "weight": weight[job],
            }
            periods.append(pd.DataFrame({**rows, "value": value * np.where(on, 1 + gain[job], 1.0), "treated": on}))
        jobs = pd.DataFrame({"job": np.arange(self.jobs), "quota": quota})
        return ExperimentTables(pd.concat(periods, ignore_index=True), jobs[jobs["quota"] > 0].reset_index(drop=True))


@dataclass(frozen=True, slots=True)
class UnlikeJobs(Generator):
    """Experiments on fleets whose machines have different mixes of jobs of different weights; light jobs gain more.

    Here the mean over rows and the mean over jobs by their quota are different numbers.
    """

    machines: int = 60
    log_sd: tuple[float, float, float, float] = (0.3, 0.04, 0.08, 0.05)
    spread_of_weights: float = 0.8
    """Standard deviation of the logarithm of an instance's weight between jobs."""
    mixing: float = 8.0
    """Of the Dirichlet distribution of a machine's mix of jobs; the less, the more unlike machines are."""

    def _jobs(self, rng: np.random.Generator) -> "_Jobs":
        """Return jobs whose gain is the less, the heavier and the quicker their instances are."""
        mixes = rng.dirichlet(self.mixing * rng.dirichlet(np.full(self.jobs, 4.0)), self.machines)
        ends = np.repeat(mixes.cumsum(axis=1)[:, :-1], self.instances, axis=0)
        job = (rng.random(len(ends))[:, None] > ends).sum(axis=1)
        weight = np.exp(rng.normal(0, self.spread_of_weights, self.jobs))
        level = np.exp(rng.normal(0, self.log_sd[0], self.jobs))
        gain = rng.uniform(0.8, 1.2, self.jobs) / (weight * level)
        quota = np.bincount(job, weight[job], self.jobs)
        return _Jobs(job, quota / quota.sum(), weight, level, gain)


class _Jobs(NamedTuple):
    """The J jobs of N instances."""

    job: Ints
    """(N,) of each instance."""
    quota: Floats
    """(J,)"""
    weight: Floats
    """(J,) of an instance."""
    level: Floats
    """(J,)"""
    gain: Floats
    """(J,) in any unit."""


class _Counted(NamedTuple):
    """A check that counts intervals: what should hold, in which experiments, with which change."""

    check: str
    generator: Generator
    change: float


COUNTED = (
    _Counted("finds nothing where nothing changed", Generator(), 0.0),
    _Counted(f"holds the change in 95% of experiments ({CHANGE:+.0%})", Generator(), CHANGE),
    _Counted(
        f"holds the change ({CHANGE:+.0%}) where jobs differ in weight and gain, and machines in their jobs",
        UnlikeJobs(),
        CHANGE,
    ),
)
"""The last is of what every estimator is to say: the change of the mean over jobs by their quota."""


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
    for number, counted in enumerate(COUNTED):
        found.append(count(estimate, counted, draws, partial(_tell_of, tell, number)))
    return found


def count(
    estimate: Estimate, counted: _Counted, draws: int, tell: Callable[[float], None] = lambda _share: None
) -> EstimatorCheck:
    """Return whether so many intervals hold the change as intervals of 95% do, but for chance.

    Parameters
    ----------
    estimate, draws, tell : as for `check`
    counted : one of `COUNTED`

    Examples
    --------
    >>> count(lambda experiment: Statistic(0.01, 0.005, 0.015), COUNTED[1], draws=4).passed
    False
    """
    answers, rng = list[Statistic](), np.random.default_rng(_SEED + COUNTED.index(counted))
    for draw in range(draws):
        tell(draw / draws)
        try:
            answers.append(estimate(counted.generator.experiment(rng, counted.change)))
        except NotEnoughDataError as error:
            return EstimatorCheck(counted.check, False, f"too little data in experiment {draw + 1}: {error}")
    missed = sum(not answer.low <= counted.change <= answer.high for answer in answers)
    from scipy.stats import binom

    most = int(binom.isf(FALSE_ALARM, len(answers), 0.05))
    detected = f"; zero is ruled out in {_share(a.low > 0 or a.high < 0 for a in answers)}" if counted.change else ""
    bias = sum(answer.value - counted.change for answer in answers) / draws
    far = f"; the mean error is {bias:+.2%}" if missed > most else ""
    return EstimatorCheck(
        counted.check, missed <= most, f"{missed} of {draws} intervals missed, {most} may{detected}{far}"
    )


def _tell_of(tell: Callable[[float], None], number: int, done: float) -> None:
    """Tell the share that is done of all checks that count, given that of one of them."""
    tell((number + done) / len(COUNTED))


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
