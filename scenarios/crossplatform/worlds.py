"""Worlds of services, and how right methods of prediction were in each and over many: `wsc validate`.

This is the one place that holds both what a method may look at and what really happened: methods are calibrated on the
first half of the trace, and judged on the second (Stewart et al. 2008, section 4.2).
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

import numpy as np
import pandas as pd
from scipy.stats import t

from analysis.crossplatform.choice import loss_of_best, rated_power_w, wrong_choices
from analysis.crossplatform.evidence import Evidence, Method, Prediction, Predictor, ServiceLog
from analysis.crossplatform.logs import from_tables
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.split import outside_hull, split
from analysis.crossplatform.throughput import bounded_throughput
from models.arrays import Floats
from models.errors import WscError
from models.platforms import PLATFORMS
from scenarios.files.schema import ServiceScenario
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.output import Progress
from sim.services.run import services

BEST = "testbed"
"""The method that is put forward."""
RIVALS = ("cycle_scalar", "cycle_mix", "benchmark", "network", "modern")
"""What others would do instead."""
_CONFIDENCE = 0.95
_JUDGES = ("scikit-learn", "scipy", "pandas")
"""Libraries that decide what methods say, beside those that decide a run."""
PARTS = frozenset({"seed", "outside_hull", "methods", "choices", "platforms", "notes"})
"""What every judged world has."""
LEAST_WORLDS = 5
"""Worlds from which a share's interval and standard error over worlds are told."""
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
        """Return a method calibrated on what it may see: all logs if it learns from several, that of one otherwise."""
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
    >>> evidence = trial(services(world, throughput=False, types=False), world)
    >>> len(evidence.test.start_s), list(evidence.actual)
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
    """Return methods by name, in the order of the registry; all of them if none is named."""
    return [method for method in METHODS if method.name in names or not names]


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
    for method in chosen(settings.methods):
        try:
            predictor = halves.fit(method)
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


def _scores(halves: Trial, predictor: Predictor, method: str, target: str, measured: bool) -> TargetErrors:
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
    halves: Trial, predictor: Predictor, method: str, scenario: ServiceScenario, throughput: Mapping[str, float]
) -> ChoiceLoss:
    """Return how often the best of so many platforms is not the one chosen, and what that costs."""
    settings, names = scenario.analyses.crossplatform, list(throughput)
    unknown: ChoiceLoss = {"method": method, "wrong": math.nan, "loss": math.nan}
    watts = np.array([rated_power_w(PLATFORMS[name]) for name in names])
    actual = np.array([throughput[name] for name in names]) / watts
    if len(names) < settings.choices or not (actual > 0).any():
        return unknown
    bounded = [bounded_throughput(predictor, PLATFORMS[name], halves.mix, settings.bound_s) for name in names]
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


def worlds(scenario: ServiceScenario, out: Path, force: bool, progress: Progress) -> list[JudgedWorld]:
    """Return how every method did in each world of a scenario, by seed.

    Worlds that were judged before by this very code are read; the others are judged in as many processes as there are
    processors, and each is kept as soon as it is done: what was interrupted goes on where it stopped.

    Parameters
    ----------
    scenario : the first world; the next ones have the next seeds
    out : folder of all runs; the worlds are kept in `place`
    force : judge again what was judged before
    progress : told the share of the worlds that is done

    Raises
    ------
    FolderError
        If the folder cannot be made.
    ValueError
        If a world cannot be simulated.
    """
    seeds = range(scenario.seed, scenario.seed + scenario.analyses.crossplatform.worlds)
    parts = computed_parts(seeds, partial(_judged, scenario), place(scenario, out), PARTS, progress, force=force)
    return cast(list[JudgedWorld], parts)


def place(scenario: ServiceScenario, out: Path) -> Path:
    """Return the folder of a scenario's judged worlds: same question and same code, same place, whatever the seed."""
    question = asdict(replace(scenario, seed=0).world) | asdict(scenario.analyses.crossplatform) | {"worlds": 0}
    return folder_of(out, f"{scenario.name}-worlds", question, _JUDGES)


class MethodScores(TypedDict):
    """What many worlds say of one method: medians over pairs of world and target, means of choices over worlds."""

    method: str
    service_error: float
    service_error_p90: float
    response_error: float
    coverage: float
    """Of 90% intervals, with its 95% interval over worlds."""
    coverage_low: float
    coverage_high: float
    half_width: float
    response_coverage: float
    response_coverage_low: float
    response_coverage_high: float
    response_half_width: float
    wrong: float
    loss: float
    beaten: float
    """Share of pairs in which the best method errs less."""


class RivalWins(TypedDict):
    """In which share of pairs of world and target the best method errs less than one rival."""

    rival: str
    share: float
    se: float


class BestMethod(TypedDict):
    """How the best method does beside its rivals, on pairs of world and target without a log."""

    method: str
    rivals: list[str]
    beats_every_rival: float
    """Share of pairs in which it errs less than the least of them, with low, high and standard error over worlds."""
    low: float
    high: float
    se: float
    beats: list[RivalWins]
    beats_each_rival: float
    """The smallest of those shares."""


class WorldsSummary(TypedDict):
    """What many worlds say of the methods; plain numbers, ready for JSON."""

    worlds: int
    outside_hull: float
    methods: list[MethodScores]
    targets: list[dict[Hashable, Any]]
    """Medians by method and target."""
    best: BestMethod
    platforms: list[dict[Hashable, Any]]
    """Medians over worlds."""
    notes: list[str]


def summary(judged: Sequence[JudgedWorld]) -> WorldsSummary:
    """Return what many worlds say of the methods, one world at least.

    Examples
    --------
    >>> row = {"target": "pres", "measured": False, "response_error": 0.1, "coverage": 0.9, "half_width": 0.1,
    ...        "response_coverage": 0.9, "response_half_width": 0.2}
    >>> rows = [row | {"method": "testbed", "service_error": 0.05}, row | {"method": "cycle_mix", "service_error": 0.4}]
    >>> choices = [{"method": name, "wrong": 0.1, "loss": 0.01} for name in ("testbed", "cycle_mix")]
    >>> world = {"seed": 1, "outside_hull": 0.7, "methods": rows, "choices": choices, "platforms": [], "notes": []}
    >>> answer = summary([world])
    >>> answer["best"]["beats_every_rival"], [method["service_error"] for method in answer["methods"]]
    (1.0, [0.05, 0.4])
    """
    rows = pd.DataFrame([{"seed": world["seed"], **row} for world in judged for row in world["methods"]])
    choices = pd.DataFrame([{"seed": world["seed"], **row} for world in judged for row in world["choices"]])
    platforms = pd.DataFrame([row for world in judged for row in world["platforms"]])
    medians = rows.drop(columns=["seed", "measured"]).groupby(["method", "target"], sort=False).median()
    return {
        "worlds": len(judged),
        "outside_hull": float(np.median([world["outside_hull"] for world in judged])),
        "methods": [_method(name, rows, choices) for name in rows["method"].drop_duplicates()],
        "targets": medians.reset_index().to_dict("records"),
        "best": _best(rows),
        "platforms": _medians(platforms),
        "notes": sorted({note for world in judged for note in world["notes"]}),
    }


def _method(name: str, rows: pd.DataFrame, choices: pd.DataFrame) -> MethodScores:
    own, chose = rows[rows["method"] == name], choices[choices["method"] == name]
    service, response = (_clustered(own, column) for column in ("coverage", "response_coverage"))
    return {
        "method": name,
        "service_error": float(own["service_error"].median()),
        "service_error_p90": float(own["service_error"].quantile(0.9)),
        "response_error": float(own["response_error"].median()),
        "coverage": service.mean,
        "coverage_low": service.low,
        "coverage_high": service.high,
        "half_width": float(own["half_width"].median()),
        "response_coverage": response.mean,
        "response_coverage_low": response.low,
        "response_coverage_high": response.high,
        "response_half_width": float(own["response_half_width"].median()),
        "wrong": float(chose["wrong"].mean()),
        "loss": float(chose["loss"].mean()),
        "beaten": float(_less(rows, [name]).mean()),
    }


def _best(rows: pd.DataFrame) -> BestMethod:
    """Return in which share of pairs of world and target the best method errs less than its rivals, all and each.

    Targets of which there is a log are left out: methods that learn from it need not go from one platform to another.
    Intervals and standard errors take worlds, not pairs, as independent. Rivals that say nothing do not count.
    """
    unseen = rows[~rows["measured"].astype(bool)]
    speaking = set(rows.loc[rows["service_error"].notna(), "method"])
    rivals = [name for name in RIVALS if name in speaking]
    together, *alone = (_wins(unseen, names) for names in (rivals, *([name] for name in rivals)))
    return {
        "method": BEST,
        "rivals": rivals,
        "beats_every_rival": together.mean,
        "low": together.low,
        "high": together.high,
        "se": together.se,
        "beats": [{"rival": name, "share": won.mean, "se": won.se} for name, won in zip(rivals, alone, strict=True)],
        "beats_each_rival": min((won.mean for won in alone), default=math.nan),
    }


def _wins(rows: pd.DataFrame, rivals: Sequence[str]) -> "_Share":
    return _clustered(_less(rows, rivals).rename("less").reset_index(), "less")


def _less(rows: pd.DataFrame, rivals: Sequence[str]) -> "pd.Series[float]":
    """Return for each pair of seed and target of which a rival says anything whether the best method errs less."""
    wide = rows.pivot_table(index=["seed", "target"], columns="method", values="service_error", sort=False)
    others = [name for name in rivals if name in wide and name != BEST]
    if BEST not in wide or not others:
        return pd.Series(dtype=float, index=wide.index[:0])
    least = wide[others].min(axis=1)
    return (wide[BEST] < least)[least.notna()].astype(float)


class _Share(NamedTuple):
    """A share over worlds, its standard error and the ends of its 95% interval."""

    mean: float
    se: float = math.nan
    low: float = math.nan
    high: float = math.nan


def _clustered(rows: pd.DataFrame, column: str) -> _Share:
    """Return the mean over worlds of a share, and how well it is known: what one world shares is one observation.

    The interval is Student's, cut at 0 and 1; of fewer than `LEAST_WORLDS` it is NaN.
    """
    shares = rows.groupby("seed")[column].mean().dropna().to_numpy()
    if not len(shares):
        return _Share(math.nan)
    mean = float(shares.mean())
    if len(shares) < LEAST_WORLDS:
        return _Share(mean)
    se = float(shares.std(ddof=1)) / math.sqrt(len(shares))
    half = float(t.ppf((1 + _CONFIDENCE) / 2, len(shares) - 1)) * se
    return _Share(mean, se, max(mean - half, 0.0), min(mean + half, 1.0))


def _medians(platforms: pd.DataFrame) -> list[dict[Hashable, Any]]:
    if not len(platforms):
        return []
    return platforms.groupby("platform", sort=False).median().reset_index().to_dict("records")


def _judged(scenario: ServiceScenario, seed: int) -> dict[str, Any]:  # JSON, which is how worlds are kept
    """Judge one world."""
    world = replace(scenario, seed=seed)
    return dict(judge(services(world.world, types=False), world))
