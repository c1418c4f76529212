"""One world of services, and how right methods of prediction were in it.

This is the one place that holds both what a method may look at and what really happened: methods are calibrated on the
first half of the trace, and judged on the second (Stewart et al. 2008, section 4.2).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import pandas as pd

from analysis.crossplatform.choice import loss_of_best, rated_power_w, wrong_choices
from analysis.crossplatform.evidence import Evidence, Prediction, PredictionMethod, Predictor, ServiceLog
from analysis.crossplatform.logs import from_tables
from analysis.crossplatform.own_methods import named_methods
from analysis.crossplatform.split import outside_hull, split
from analysis.crossplatform.throughput import bounded_throughput
from models.arrays import Floats
from models.code.parts import PartError
from models.errors import WscError
from models.platforms import sheets_of
from scenarios.files.schema import ServiceScenario

Tables = Mapping[str, pd.DataFrame]
"""Tables of a run by name, columns as in `models.tables`; those that begin with ``truth_`` may be missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Actual:
    """What m test mixes really met on a platform: (m,) arrays, seconds; NaN where no request came."""

    service_time_s: Floats
    response_time_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PredictionTrial:
    """What methods are calibrated on, the mixes that they are asked about, and what happened then."""

    evidence: Evidence
    """With the logs of all platforms that were measured."""
    test: ServiceLog
    """The calibration platform's log of the later intervals; methods see its counts alone."""
    mix: Floats
    """(J,) requests of each type in the whole trace: the mix at which throughputs are compared."""
    actual: Mapping[str, Actual]
    """By platform that is predicted for; NaN without the truth."""

    def fit(self, method: PredictionMethod) -> Predictor:
        """Return a method calibrated on what it may see: all logs if it learns from several, that of one otherwise."""
        return method.fit(self.evidence if method.learns else self.evidence.of_one())

    def outside_hull(self) -> float:
        """Return the share of test mixes outside the convex hull of those that calibrate."""
        return outside_hull(self.evidence.log.counts, self.test.counts)

    def predict(self, predictor: Predictor, target: str) -> Prediction:
        """Return what a calibrated method says of the test mixes on a platform."""
        return predictor(self.evidence.platforms[target], self.test.counts, self.test.interval_s)


def trial(tables: Tables, scenario: ServiceScenario) -> PredictionTrial:
    """Return the trial that a scenario's run makes.

    Raises
    ------
    ValueError
        If the tables do not hold the log of a platform that was measured.
    """
    logs = {name: log_of(tables, name) for name in scenario.measured}
    parts = {name: split(log, scenario.analyses.crossplatform.split) for name, log in logs.items()}
    test = parts[scenario.calibration][1]
    evidence = Evidence(
        scenario.calibration,
        {name: train for name, (train, _) in parts.items()},
        scenario.sheets,
        tables.get("benchmarks"),
        sheets_of(scenario.own_platforms) if scenario.clocks else None,
    )
    truth = tables.get("truth_service")
    actual = {name: _actual(truth, name, test.start_s) for name in scenario.targets}
    return PredictionTrial(evidence, test, logs[scenario.calibration].counts.sum(axis=0), actual)


def log_of(tables: Tables, platform: str) -> ServiceLog:
    """Return the whole log of a platform that was measured.

    Raises
    ------
    ValueError
        If it was not.
    """
    return from_tables(tables["service_counts"], tables["service_log"], tables["service_cpu"], platform)


def errors(predicted: Floats, actual: Floats) -> Floats:
    """Return |said - actual| / actual; NaN where either is unknown.

    Examples
    --------
    >>> errors(np.array([1.1, 2.0]), np.array([1.0, np.nan])).round(3)
    array([0.1, nan])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(predicted - actual) / actual)


def _actual(truth: pd.DataFrame | None, platform: str, start_s: Floats) -> Actual:
    if truth is None:
        return Actual(np.full(len(start_s), np.nan), np.full(len(start_s), np.nan))
    of = truth[truth["platform"] == platform].set_index("start_s").reindex(start_s)
    return Actual(of["service_time_s"].to_numpy(), of["response_time_s"].to_numpy())


class TargetErrors(TypedDict):
    """How one method did on one platform: medians over test intervals of errors, and how its 90% intervals did."""

    method: str
    target: str
    measured: bool
    """Whether a log of it is there, from which methods may learn."""
    service_error: float
    """Of |predicted - actual| / actual."""
    response_error: float
    coverage: float
    """Share of intervals of service time that held the actual one."""
    half_width: float
    """Median, relative to what is predicted."""
    response_coverage: float
    response_half_width: float


class ChoiceLoss(TypedDict):
    """What choosing the best of so many platforms for throughput per watt by one method costs."""

    method: str
    wrong: float
    """Share of subsets of platforms whose best was not chosen."""
    loss: float
    """Mean loss of throughput per watt."""


class PlatformTimes(TypedDict):
    """What a platform really did over the whole trace."""

    platform: str
    utilisation: float
    peak_utilisation: float
    saturated: float
    """Share of intervals in which all processors were busy."""
    service_time_s: float
    response_time_s: float


class JudgedWorld(TypedDict):
    """How every method did in one world: plain numbers, ready for JSON, which is how worlds are kept."""

    seed: int
    outside_hull: float
    """Share of test mixes."""
    methods: list[TargetErrors]
    choices: list[ChoiceLoss]
    platforms: list[PlatformTimes]
    notes: list[str]
    """Of methods that could not be calibrated."""


def judge(tables: Tables, scenario: ServiceScenario) -> JudgedWorld:
    """Return how every method did in a world.

    Parameters
    ----------
    tables : of the world's run; without its ``truth_`` tables what is judged against them is NaN
    scenario : its analyses
    """
    halves, settings = trial(tables, scenario), scenario.analyses.crossplatform
    rows, choices, notes = list[TargetErrors](), list[ChoiceLoss](), list[str]()
    throughput = actual_throughput(tables, scenario)
    for method in named_methods(settings.methods):
        try:
            predictor = halves.fit(method)
        except PartError:
            raise
        except WscError as error:
            notes.append(f"{method.name}: {error}")
            continue
        rows += [_scores(halves, predictor, method.name, name, name in scenario.measured) for name in scenario.targets]
        choices.append(_choice(halves, predictor, method.name, scenario, throughput))
    return {
        "seed": scenario.seed,
        "outside_hull": halves.outside_hull(),
        "methods": rows,
        "choices": choices,
        "platforms": list(_platforms(tables, scenario)),
        "notes": notes,
    }


def actual_throughput(tables: Tables, scenario: ServiceScenario) -> Mapping[str, float]:
    """Return the greatest throughput of every target under the scenario's bound; none without the truth."""
    table = tables.get("truth_throughput")
    if table is None:
        return {}
    of = table[np.isclose(table["bound_s"], scenario.analyses.crossplatform.bound_s)]
    known = of.set_index("platform")["throughput_per_s"].to_dict()
    return {name: float(known[name]) for name in scenario.targets if name in known}


def _scores(halves: PredictionTrial, predictor: Predictor, method: str, target: str, measured: bool) -> TargetErrors:
    predicted, actual = halves.predict(predictor, target), halves.actual[target]
    served = (predicted.service_time_s, predicted.service_low_s, predicted.service_high_s)
    answered = (predicted.response_time_s, predicted.response_low_s, predicted.response_high_s)
    coverage, half_width = _interval(*served, actual.service_time_s)
    response_coverage, response_half_width = _interval(*answered, actual.response_time_s)
    return {
        "method": method,
        "target": target,
        "measured": measured,
        "service_error": _median(errors(predicted.service_time_s, actual.service_time_s)),
        "response_error": _median(errors(predicted.response_time_s, actual.response_time_s)),
        "coverage": coverage,
        "half_width": half_width,
        "response_coverage": response_coverage,
        "response_half_width": response_half_width,
    }


def _interval(middle: Floats, low: Floats, high: Floats, actual: Floats) -> tuple[float, float]:
    """Return how often intervals held what happened, and their median half-width relative to their middle."""
    known = ~np.isnan(low) & ~np.isnan(high) & np.isfinite(actual)
    holds = (low <= actual) & (actual <= high)
    with np.errstate(divide="ignore", invalid="ignore"):
        half = (high - low) / (2 * middle)
    return float(holds[known].mean()) if known.any() else math.nan, _median(half)


def _choice(
    halves: PredictionTrial,
    predictor: Predictor,
    method: str,
    scenario: ServiceScenario,
    throughput: Mapping[str, float],
) -> ChoiceLoss:
    """Return how often the best of so many platforms is not the one chosen, and what that costs."""
    settings, names = scenario.analyses.crossplatform, list(throughput)
    unknown: ChoiceLoss = {"method": method, "wrong": math.nan, "loss": math.nan}
    watts = np.array([rated_power_w(scenario.sheets[name]) for name in names])
    actual = np.array([throughput[name] for name in names]) / watts
    if len(names) < settings.choices or not (actual > 0).any():
        return unknown
    bounded = [bounded_throughput(predictor, scenario.sheets[name], halves.mix, settings.bound_s) for name in names]
    predicted = np.array([platform.throughput_per_s for platform in bounded]) / watts
    if np.isnan(predicted).all():
        return unknown
    (wrong,) = wrong_choices(actual, predicted, settings.choices, (1,))
    return {"method": method, "wrong": float(wrong), "loss": loss_of_best(actual, predicted, settings.choices)}


def _platforms(tables: Tables, scenario: ServiceScenario) -> Iterator[PlatformTimes]:
    """Yield what every platform really did over the whole trace; nothing without the truth."""
    truth = tables.get("truth_service")
    if truth is None:
        return
    for name in scenario.platforms:
        of = truth[truth["platform"] == name]
        requests = of["requests"].to_numpy(dtype=np.float64)
        yield {
            "platform": name,
            "utilisation": float(of["utilisation"].mean()),
            "peak_utilisation": float(of["utilisation"].max()),
            "saturated": float((of["utilisation"] > 0.99).mean()),
            "service_time_s": _weighted(of["service_time_s"], requests),
            "response_time_s": _weighted(of["response_time_s"], requests),
        }


def _weighted(values: pd.Series, weights: Floats) -> float:
    known = np.isfinite(values.to_numpy()) & (weights > 0)
    return float(np.average(values.to_numpy()[known], weights=weights[known])) if known.any() else math.nan


def _median(values: Floats | Sequence[float]) -> float:
    known = np.asarray(values)[~np.isnan(values)]  # of what is said to be endless, the error is endless too
    return float(np.median(known)) if known.size else math.nan
