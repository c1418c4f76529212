"""One world's methods judged: errors by target, how often intervals were right, and what their choices cost."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.crossplatform.choice import loss_of_best, rated_power_w, wrong_choices
from analysis.crossplatform.evidence import Prediction, Predictor
from analysis.crossplatform.throughput import bounded_throughput
from models.arrays import Floats
from models.errors import WscError
from models.platforms import PLATFORMS
from scenarios.crossplatform.trial import Actual, Tables, Trial, chosen, errors, trial
from scenarios.files.schema import ServiceScenario


def judge(tables: Tables, scenario: ServiceScenario) -> dict[str, Any]:
    """Return how every method did in a world; plain numbers, ready for JSON.

    Parameters
    ----------
    tables : of the world's run; without its ``truth_`` tables what is judged against them is NaN
    scenario : its analyses

    Returns
    -------
    dict
        seed; outside_hull, share of test mixes; methods: method, target, measured (whether a log of it is there, from
        which methods may learn), service_error and response_error (medians over test intervals of
        |predicted - actual| / actual), coverage and response_coverage (shares of intervals whose 90% interval held the
        actual value), half_width and response_half_width (median, relative to what is predicted); choices: method,
        wrong (share of subsets of platforms whose best was not chosen) and loss (mean loss of throughput per watt);
        platforms: platform, utilisation, peak_utilisation, service_time_s, response_time_s; notes, of methods that
        could not be calibrated.

    Raises
    ------
    ValueError
        As `trial.trial`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from scenarios.files.schema import CrossPlatform, ServiceAnalyses
    >>> from sim.services.run import services
    >>> only = ServiceAnalyses(CrossPlatform(methods=("cycle_scalar",)))
    >>> world = ServiceScenario(name="tiny", horizon_s=3600.0, platforms=("piii", "pres"), analyses=only)
    >>> made = judge(services(world, types=False), world)
    >>> [(row["method"], row["target"]) for row in made["methods"]], 0 < made["methods"][0]["service_error"] < 2
    ([('cycle_scalar', 'pres')], True)
    """
    asked, settings = trial(tables, scenario), scenario.analyses.crossplatform
    rows, choices, notes = list[dict[str, Any]](), list[dict[str, Any]](), list[str]()
    throughput = actual_throughput(tables, scenario)
    for method in chosen(settings.methods):
        try:
            predictor = asked.fit(method)
        except WscError as error:
            notes.append(f"{method.name}: {error}")
            continue
        rows += [
            {"method": method.name, "target": name, "measured": name in scenario.measured}
            | _scores(asked, predictor, name)
            for name in scenario.targets
        ]
        choices.append({"method": method.name} | _choice(asked, predictor, scenario, throughput))
    return {
        "seed": scenario.seed,
        "outside_hull": asked.outside_hull(),
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


def _scores(asked: Trial, predictor: Predictor, target: str) -> dict[str, float]:
    said, actual = asked.predict(predictor, target), asked.actual[target]
    return {
        "service_error": _median(errors(said.service_time_s, actual.service_time_s)),
        "response_error": _median(errors(said.response_time_s, actual.response_time_s)),
        **_intervals(said, actual),
    }


def _intervals(said: Prediction, actual: Actual) -> dict[str, float]:
    served = (said.service_time_s, said.service_low_s, said.service_high_s)
    answered = (said.response_time_s, said.response_low_s, said.response_high_s)
    coverage, half_width = _interval(*served, actual.service_time_s)
    response_coverage, response_half_width = _interval(*answered, actual.response_time_s)
    return {
        "coverage": coverage,
        "half_width": half_width,
        "response_coverage": response_coverage,
        "response_half_width": response_half_width,
    }


def _interval(middle: Floats, low: Floats, high: Floats, actual: Floats) -> tuple[float, float]:
    """Return how often intervals held what happened, and their median half-width relative to their middle."""
    known = ~np.isnan(low) & ~np.isnan(high) & np.isfinite(actual)
    held = (low <= actual) & (actual <= high)
    with np.errstate(divide="ignore", invalid="ignore"):
        half = (high - low) / (2 * middle)
    return float(held[known].mean()) if known.any() else math.nan, _median(half)


def _choice(
    asked: Trial, predictor: Predictor, scenario: ServiceScenario, throughput: Mapping[str, float]
) -> dict[str, float]:
    """Return how often the best of so many platforms is not the one chosen, and what that costs."""
    settings, names = scenario.analyses.crossplatform, list(throughput)
    nothing = {"wrong": math.nan, "loss": math.nan}
    watts = np.array([rated_power_w(PLATFORMS[name]) for name in names])
    actual = np.array([throughput[name] for name in names]) / watts
    if len(names) < settings.choices or not (actual > 0).any():
        return nothing
    bounded = [bounded_throughput(predictor, PLATFORMS[name], asked.mix, settings.bound_s) for name in names]
    said = np.array([each.throughput_per_s for each in bounded]) / watts
    if np.isnan(said).all():
        return nothing
    (wrong,) = wrong_choices(actual, said, settings.choices, (1,))
    return {"wrong": float(wrong), "loss": loss_of_best(actual, said, settings.choices)}


def _platforms(tables: Tables, scenario: ServiceScenario) -> Iterator[dict[str, Any]]:
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
