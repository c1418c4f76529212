"""The steady state of a queue: response times of a run with an interval, and runs long enough for a precision."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from scenarios.views.output import Progress
from sim.queues.demands import mean_demand
from sim.queues.offered import capacity
from sim.queues.service import is_contended

LEVEL = 0.95
"""Confidence of the interval."""
MOST_REQUESTS = 4_000_000
"""Requests, background work included, that a run is lengthened to at most."""


@dataclass(frozen=True, slots=True)
class Lengthened:
    """A scenario whose horizon is long enough, its run, and how many runs there were up to it."""

    scenario: QueueScenario
    run: Run
    runs: int


def steady_state(scenario: QueueScenario, log: pd.DataFrame) -> dict[str, Any]:
    """Return the mean response time of a run in steady state, or why there is none to be told.

    Of the requests sent before the horizon, in order of arrival, the warm-up is dropped by MSER-5; the interval is of
    batch means (`analysis.occupancy.steady`).

    Parameters
    ----------
    scenario : of the run
    log : columns arrival_s and departure_s, seconds, as the client saw them

    Returns
    -------
    dict
        mean_response_s, low, high (seconds), confidence, requests, warm_up_requests, batches, correlation (of
        neighbouring batches), settled (whether the warm-up ended in the first half), independent (whether the batches
        look it; if not, the interval is too narrow), and reason: why all the others are NaN or null, else null.

    Examples
    --------
    >>> from scenarios.files.loader import load
    >>> log = pd.DataFrame({"arrival_s": np.arange(100.0), "departure_s": np.arange(100.0) + 0.5})
    >>> made = steady_state(load("queue_small"), log)
    >>> made["mean_response_s"], made["requests"], made["reason"]
    (0.5, 100, None)
    >>> steady_state(load("queue_small"), log[:30])["reason"]
    'too short: at least 40 requests are needed, 30 came'
    """
    if why := unsteady(scenario):
        return _nothing(why)
    response_s = _responses(scenario, log)
    if len(response_s) < LEAST:
        return _nothing(f"too short: at least {LEAST} requests are needed, {len(response_s)} came")
    made = steady(response_s, LEVEL)
    return {
        "mean_response_s": made.mean,
        "low": made.low,
        "high": made.high,
        "confidence": made.level,
        "requests": made.observations,
        "warm_up_requests": made.dropped,
        "batches": BATCHES,
        "correlation": made.correlation,
        "settled": made.settled,
        "independent": made.independent,
        "reason": None,
    }


def unsteady(scenario: QueueScenario) -> str:
    """Return why a queue has no steady state to ask for; empty where its load is constant and can be served.

    That contention leaves less than the servers' capacity is not seen here.

    Examples
    --------
    >>> from scenarios.files.loader import load
    >>> from scenarios.files.source import settings
    >>> unsteady(load("queue_small")), unsteady(load("queue_small", settings(["load.arrivals.rate_per_s=4"])))
    ('', 'overloaded: 112% of what the servers can do is asked of them')
    >>> unsteady(load("queue_job"))
    "demands follow a fleet's job, whose pace changes over the day"
    """
    load = scenario.load
    if load.trace is not None:
        return "a trace is as it was recorded, and ends"
    if load.arrivals is not None and len({point.factor for point in load.arrivals.load}) > 1:
        return "the load varies by load.arrivals.load"
    if load.job is not None:
        return "demands follow a fleet's job, whose pace changes over the day"
    share = _offered_share(scenario)
    return f"overloaded: {share:.0%} of what the servers can do is asked of them" if share >= 1 else ""


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

    Raises
    ------
    RunError
        If there is no steady state to ask for, or no run that is short enough to be made does.
    """
    if why := unsteady(scenario):
        raise RunError(f"{scenario.name}: has no steady state that --precision could ask for: {why}")
    made = list[Lengthened]()
    try:
        # Contention may leave less than the servers' capacity, and how much less is only seen.
        stable = scenario.load.clients is not None or not is_contended(scenario)
        until(_longer(scenario, out, force, progress, made), share, level=LEVEL, stable=stable)
    except UnsteadyError as error:
        raise RunError(
            f"{scenario.name}: has no steady state that --precision could ask for: the mean response time "
            f"keeps growing with the horizon, to {error.mean:.4g} s at {made[-1].scenario.horizon_s:g} s"
        ) from None
    except NotEnoughDataError as error:
        raise RunError(
            f"{scenario.name}: {error.have:,} requests do not do for --precision {share:.3g}, about {error.needed:,} "
            f"would; {_limit(made[-1])}. The longest run is {made[-1].run.path}"
        ) from None
    return made[-1]


def said(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is printed of a steady state, line by line.

    Parameters
    ----------
    state : as `steady_state` returns it

    Examples
    --------
    >>> print(*said(_nothing("a trace is as it was recorded, and ends")))
    no steady state: a trace is as it was recorded, and ends
    """
    if state["reason"] is not None:
        yield f"no steady state: {state['reason']}"
        return
    mean_s, low_s, high_s = (state[name] for name in ("mean_response_s", "low", "high"))
    width = f"±{(high_s - mean_s) / mean_s:.1%}" if mean_s else "±0%"
    yield (
        f"steady state: mean response {mean_s:.4g} s ({low_s:.4g} to {high_s:.4g}, {width} at "
        f"{state['confidence']:.0%}), {state['warm_up_requests']:,} requests of warm-up"
    )
    if not state["settled"]:
        yield "note: too short to tell the warm-up from the steady state"
    if not state["independent"]:
        yield "note: too short for independent batches; the interval is too narrow"


def _longer(
    scenario: QueueScenario, out: Path, force: bool, progress: Progress, made: list[Lengthened]
) -> Iterator[Floats]:
    """Yield the response times of runs with doubling horizons, and keep account of the runs."""
    while True:
        run = obtain(scenario, out, force, progress)
        made.append(Lengthened(scenario, run, len(made) + 1))
        yield _responses(scenario, run.table("requests", ["arrival_s", "departure_s"]))
        if _limit(made[-1]):
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


def _offered_share(scenario: QueueScenario) -> float:
    """Return the work asked for over the servers' capacity; clients that wait for answers ask for no more than it."""
    load, seen = scenario.load, scenario.observation
    if load.arrivals is None:
        return seen.background_share
    factor = load.arrivals.load[0].factor if load.arrivals.load else 1.0
    asks = load.sessions.requests if load.sessions is not None else 1
    work = load.arrivals.rate_per_s * factor * asks * mean_demand(load)
    return work / capacity(scenario.station) + seen.background_share


def _nothing(reason: str) -> dict[str, Any]:
    numbers = dict.fromkeys(("mean_response_s", "low", "high"), math.nan)
    others = dict.fromkeys(("requests", "warm_up_requests", "batches", "correlation", "settled", "independent"))
    return numbers | {"confidence": LEVEL} | others | {"reason": reason}
