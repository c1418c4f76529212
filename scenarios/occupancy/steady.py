"""The steady state of a queue: response times of a run with an interval, and runs long enough for a precision."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.occupancy.steady import BATCHES, LEAST, UnsteadyError, steady, until
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats
from models.queues.world import LONGEST_S
from scenarios.files.findings import findings
from scenarios.files.schema import QueueScenario
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run, RunError
from scenarios.views.numbers import plural
from scenarios.views.terminal import Progress
from sim.queues.demands import mean_demand
from sim.queues.distributions import mean, mean_square
from sim.queues.offered import capacity
from sim.queues.service import is_contended

LEVEL = 0.95
"""Confidence of the interval."""
LASTS: Mapping[float, float] = {0.0: 0.0, 1.0: 0.2, 2.0: 0.31, 5.0: 0.45, 15.0: 0.66, 50.0: 0.81, 150.0: 0.89}
"""How often 95% intervals hold the mean of a run that is so many times as long as its queue's memory: means of 400 runs
each of M/M/1 and M/M/4 at 60, 80 and 90%, first come first served; below 5 of M/M/1 at 80%. At 500 it is 92%, at 1,500
94%. Of demands with a coefficient of variation of 2 or 3 it is some 10 points less."""
MOST_REQUESTS = 4_000_000
"""Requests, background work included, that a run is lengthened to at most."""


@dataclass(frozen=True, slots=True)
class Lengthened:
    """A scenario whose horizon is long enough, its run, and how many runs there were up to it."""

    scenario: QueueScenario
    run: Run
    runs: int


@dataclass(frozen=True, slots=True)
class Precision:
    """How long a run had to be for its mean response time to be known to a share of it."""

    asked: float
    horizon_s: float
    runs: int

    def lines(self) -> Iterator[str]:
        """Yield what people read, line by line."""
        runs = plural(self.runs, "run")
        yield f"±{self.asked:.3g} of the mean needed a horizon of {self.horizon_s:,.10g} s ({runs});"
        yield "a run that stops at a precision covers somewhat less often than it says"


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The mean response time of a run in steady state, or why there is none to be told: then all else is not known."""

    mean_response_s: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """Ends of the interval, seconds."""
    confidence: float = LEVEL
    requests: int | None = None
    warm_up_requests: int | None = None
    batches: int | None = None
    correlation: float | None = None
    """Of neighbouring batches."""
    settled: bool | None = None
    """Whether the warm-up ended in the first half."""
    independent: bool | None = None
    """Whether the batches look it; if not, the interval is too narrow."""
    memory_requests: float | None = None
    """Requests after which a queue has forgotten its past, by its load (`memory`); null: not known."""
    reason: str | None = None

    def lines(self) -> Iterator[str]:
        """Yield what people read, line by line."""
        if self.reason is not None:
            yield f"no steady state: {self.reason}"
            return
        mean_s = self.mean_response_s
        width = f"±{(self.high - mean_s) / mean_s:.1%}" if mean_s else "±0%"
        yield (
            f"steady state: mean response {mean_s:.4g} s ({self.low:.4g} to {self.high:.4g}, {width} at "
            f"{self.confidence:.0%}), {self.warm_up_requests:,} requests of warm-up"
        )
        if not self.settled:
            yield "note: too short to tell the warm-up from the steady state"
        if not self.independent:
            yield "note: too short for independent batches; the interval is too narrow"
        memory = self.memory_requests
        lasts = (self.requests or 0) / memory if memory else math.inf
        if lasts < max(LASTS):
            holds = float(np.interp(lasts, [*LASTS], [*LASTS.values()]))
            yield f"note: intervals of so short a run hold the mean in some {holds:.0%} of cases;"
            enough = max(LASTS)
            past = f"such a queue remembers ({memory:,.0f} requests)"
            yield f"it is {lasts:.{0 if lasts >= 10 else 1}f} times as long as {past}, not {enough:.0f}"


def steady_state(scenario: QueueScenario, log: pd.DataFrame) -> SteadyState:
    """Return the mean response time of a run in steady state, or why there is none to be told.

    Of the requests sent before the horizon, in order of arrival, the first tenth is dropped as the warm-up; the
    interval is of batch means (`analysis.occupancy.steady`).

    Parameters
    ----------
    scenario : of the run
    log : columns arrival_s and departure_s, seconds, as the client saw them
    """
    if why := unsteady(scenario):
        return SteadyState(reason=why)
    response_s = _responses(scenario, log)
    if len(response_s) < LEAST:
        return SteadyState(reason=f"too short: at least {LEAST} requests are needed, {len(response_s)} were served")
    mean = steady(response_s, LEVEL)
    return SteadyState(
        mean_response_s=mean.mean,
        low=mean.low,
        high=mean.high,
        confidence=mean.level,
        requests=mean.observations,
        warm_up_requests=mean.dropped,
        batches=BATCHES,
        correlation=mean.correlation,
        settled=mean.settled,
        independent=mean.independent,
        memory_requests=memory(scenario),
    )


def memory(scenario: QueueScenario) -> float | None:
    """Return over how many requests the responses of a queue are correlated; None where its load does not tell.

    The integrated autocorrelation time of the number in an M/M/1 queue is (1 + ρ) / (1 − ρ)² services (Whitt 1989,
    Management Science 35, equation 25); k servers are as one that is k times as fast, and time grows with the mean of
    the squared coefficients of variation of gaps and demands, as waiting does in heavy traffic (Kingman 1962).
    """
    load, station = scenario.load, scenario.station
    others = load.sessions, load.job, scenario.scaling, scenario.machine, *scenario.stations
    plain = all(part is None for part in others) and not station.limited and not is_contended(scenario)
    if load.arrivals is None or load.arrivals.bursts is not None or not plain:
        return None
    share, weight = _offered_share(scenario), sum(kind.weight for kind in load.types)
    square = sum(kind.weight * mean_square(kind.demand_s) for kind in load.types) / weight
    variability = (load.arrivals.cv**2 + square / mean_demand(load) ** 2 - 1.0) / 2
    return share * (1 + share) * variability / (1 - share) ** 2 if share < 1 else None


def unsteady(scenario: QueueScenario) -> str:
    """Return why a queue has no steady state to ask for; empty where its load is constant and can be served.

    That contention leaves less than the servers' capacity is not seen here.
    """
    load = scenario.load
    if load.trace is not None:
        return "a trace is as it was recorded, and ends"
    if load.arrivals is not None and len({point.factor for point in load.arrivals.load}) > 1:
        return "the load varies by load.arrivals.load"
    if load.job is not None:
        return "demands follow a fleet's job, whose pace changes over the day"
    if scenario.scaling is not None or scenario.stations:
        return "the number of servers changes" if scenario.scaling else _overfull(scenario)
    share = _offered_share(scenario)
    if scenario.station.limited:  # whom it cannot serve it does not keep
        return ""
    return f"overloaded: {share:.0%} of the servers' capacity is demanded" if share >= 1 else ""


def lengthen(scenario: QueueScenario, share: float, out: Path, force: bool, progress: Progress) -> Lengthened:
    """Return the first run whose mean response time is known to a share of it, of horizons that double.

    Each is a run like any other, kept in its folder, so that what was found can be made again by its horizon alone.
    Nothing of one stays in memory while the next is made.

    Parameters
    ----------
    scenario : its horizon is the first
    share : half-width of the interval over the mean, above 0
    out : folder of all runs
    force : simulate even if an intact run is there
    progress : told what is being done
    """
    if why := unsteady(scenario):
        raise RunError(f"{scenario.name}: has no steady state, which --precision needs: {why}")
    runs = list[Lengthened]()
    try:
        # Contention may leave less than the servers' capacity, and how much less is only seen.
        stable = scenario.load.clients is not None or not is_contended(scenario)
        until(_longer(scenario, out, force, progress, runs), share, level=LEVEL, stable=stable)
    except UnsteadyError as error:
        raise RunError(
            f"{scenario.name}: has no steady state, which --precision needs: the mean response time "
            f"keeps growing with the horizon, to {error.mean:.4g} s at {runs[-1].scenario.horizon_s:g} s"
        ) from None
    except NotEnoughDataError as error:
        raise RunError(
            f"{scenario.name}: {error.have:,} requests do not do for --precision {share:.3g}, about {error.needed:,} "
            f"would; {_limit(runs[-1])}. The longest run is {runs[-1].run.path}"
        ) from None
    return runs[-1]


def _longer(
    scenario: QueueScenario, out: Path, force: bool, progress: Progress, runs: list[Lengthened]
) -> Iterator[Floats]:
    """Yield the response times of runs with doubling horizons, and keep account of the runs."""
    while True:
        run = obtain(scenario, out, force, progress)
        runs.append(Lengthened(scenario, run, len(runs) + 1))
        yield _responses(scenario, run.table("requests", ["arrival_s", "departure_s"]))
        if _limit(runs[-1]):
            return
        scenario = _doubled(scenario)


def _limit(last: Lengthened) -> str:
    """Return why a run is not made twice as long; empty if it can be."""
    counts, longer = last.run.manifest["counts"], _doubled(last.scenario)
    if 2 * (counts["requests"] + counts["background"]) > MOST_REQUESTS:
        return f"a run is lengthened to {MOST_REQUESTS:,} at most, background work included"
    if longer.horizon_s > LONGEST_S:
        return f"horizon_s may be {LONGEST_S:g} at most"
    wrong = next(iter(findings(longer)), None)
    return "" if wrong is None else f"{'.'.join(map(str, wrong.keys))} {wrong.problem}"


def _doubled(scenario: QueueScenario) -> QueueScenario:
    return replace(scenario, horizon_s=2 * scenario.horizon_s)


def _responses(scenario: QueueScenario, log: pd.DataFrame) -> Floats:
    """Return response times in order of arrival; what sessions ask after the horizon meets less and less load."""
    before = log[log["arrival_s"] < scenario.horizon_s]
    return (before["departure_s"] - before["arrival_s"]).to_numpy(np.float64)


def _overfull(scenario: QueueScenario) -> str:
    """Return which of several stations is asked for more than it can do; empty if none is, as clients wait."""
    if scenario.load.clients is not None:
        return ""
    shares = {
        station.name: _asked_per_s(scenario) * mean(station.demand_s) / station.servers for station in scenario.stations
    }
    fullest = max(shares, key=lambda name: shares[name])
    share = shares[fullest]
    return f"overloaded: {share:.0%} of the capacity of station {fullest} is demanded" if share >= 1 else ""


def _asked_per_s(scenario: QueueScenario) -> float:
    """Return how many requests a second come from outside."""
    load = scenario.load
    if load.arrivals is None:
        return 0.0
    factor = load.arrivals.load[0].factor if load.arrivals.load else 1.0
    return load.arrivals.rate_per_s * factor * (load.sessions.requests if load.sessions is not None else 1)


def _offered_share(scenario: QueueScenario) -> float:
    """Return the work asked for over the servers' capacity; clients that wait for answers ask for no more than it."""
    load, observation = scenario.load, scenario.observation
    if load.arrivals is None:
        return observation.background_share
    work = _asked_per_s(scenario) * mean_demand(load)
    return work / capacity(scenario.station) + observation.background_share
