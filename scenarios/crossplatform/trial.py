"""A world's first half as evidence, its second half as judge: what every method says of mixes that came later.

This is the one place that holds both what a method may look at and what really happened (Stewart et al. 2008, section
4.2: calibrate on the first half of the trace, judge on the second).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.crossplatform.evidence import Evidence, Method, Prediction, Predictor, ServiceLog
from analysis.crossplatform.logs import from_tables
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.split import outside_hull, split
from models.arrays import Floats
from models.platforms import PLATFORMS
from scenarios.files.schema import ServiceScenario

Tables = Mapping[str, pd.DataFrame]
"""Tables of a run by name, columns as in `models.tables`; those that begin with ``truth_`` may be missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Actual:
    """What m test mixes really met on a platform: (m,) arrays, seconds; NaN where no request came."""

    service_time_s: Floats
    response_time_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What methods are calibrated on, the mixes that they are asked about, and what happened then."""

    evidence: Evidence
    """With the logs of all platforms that were measured."""
    test: ServiceLog
    """The calibration platform's log of the later intervals; methods see its counts alone."""
    mix: Floats
    """(J,) requests of each type in the whole trace: the mix at which throughputs are compared."""
    actual: Mapping[str, Actual]
    """By platform that is predicted for; NaN without the truth."""

    def fit(self, method: Method) -> Predictor:
        """Return a method calibrated on what it may see: all logs if it learns from several, that of one otherwise.

        Raises
        ------
        ValueError
            If the evidence does not suffice.
        """
        return method.fit(self.evidence if method.learns else self.evidence.of_one())

    def outside_hull(self) -> float:
        """Return the share of test mixes outside the convex hull of those that calibrate."""
        return outside_hull(self.evidence.log.counts, self.test.counts)

    def predict(self, predictor: Predictor, target: str) -> Prediction:
        """Return what a calibrated method says of the test mixes on a platform."""
        return predictor(self.evidence.platforms[target], self.test.counts, self.test.interval_s)


def trial(tables: Tables, scenario: ServiceScenario) -> Trial:
    """Return the trial that a scenario's run makes.

    Parameters
    ----------
    tables : of the run
    scenario : which platform predictions start from, which are predicted for, how the trace is split

    Raises
    ------
    ValueError
        If the tables do not hold the log of a platform that was measured.

    Examples
    --------
    >>> from sim.services.run import services
    >>> world = ServiceScenario(name="tiny", horizon_s=3600.0, platforms=("piii", "pres"))
    >>> made = trial(services(world, throughput=False, types=False), world)
    >>> len(made.test.start_s), list(made.actual)
    (60, ['pres'])
    """
    logs = {name: log_of(tables, name) for name in scenario.measured}
    parts = {name: split(log, scenario.analyses.crossplatform.split) for name, log in logs.items()}
    test = parts[scenario.calibration][1]
    evidence = Evidence(
        scenario.calibration, {name: train for name, (train, _) in parts.items()}, PLATFORMS, tables.get("benchmarks")
    )
    truth = tables.get("truth_service")
    actual = {name: _actual(truth, name, test.start_s) for name in scenario.targets}
    return Trial(evidence, test, logs[scenario.calibration].counts.sum(axis=0), actual)


def log_of(tables: Tables, platform: str) -> ServiceLog:
    """Return the whole log of a platform that was measured.

    Raises
    ------
    ValueError
        If it was not.
    """
    return from_tables(tables["service_counts"], tables["service_log"], tables["service_cpu"], platform)


def chosen(names: Sequence[str]) -> list[Method]:
    """Return methods by name, in the order of the registry; all of them if none is named.

    Examples
    --------
    >>> [method.name for method in chosen(("published", "cycle_mix"))]
    ['cycle_mix', 'published']
    """
    return [method for method in METHODS if method.name in names or not names]


def errors(said: Floats, actual: Floats) -> Floats:
    """Return |said - actual| / actual; NaN where either is unknown.

    Examples
    --------
    >>> errors(np.array([1.1, 2.0]), np.array([1.0, np.nan])).round(3)
    array([0.1, nan])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(said - actual) / actual)


def _actual(truth: pd.DataFrame | None, platform: str, start_s: Floats) -> Actual:
    if truth is None:
        return Actual(np.full(len(start_s), np.nan), np.full(len(start_s), np.nan))
    of = truth[truth["platform"] == platform].set_index("start_s").reindex(start_s)
    return Actual(of["service_time_s"].to_numpy(), of["response_time_s"].to_numpy())
