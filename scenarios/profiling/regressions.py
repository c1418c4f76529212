"""Planted regressions of simulated fleets: does the alarm find them, name what is at fault, and else keep quiet?

Each pair of profiles is one collector's of one fleet: the first half of its horizon and the second, while roll-outs go
on. A regression is planted in some of the pairs, by causes in turn: a revision that is rolled out in the second half,
the new compiler, a platform, or a data centre, the last two from the midnight between. Its function is drawn from those
worth finding (`scenarios.profiling.planted`), its factor log-uniformly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.profiling.regressions.comparison import alarms
from models.errors import InputError
from models.profiling.world import Incident
from models.randomness import stream
from scenarios.profiling.planted import CAUSES, FACTORS, WORTH, Fleet, chosen, world_of, worth_finding
from scenarios.runs.kept import each, folder_of
from scenarios.views.output import Progress

PER_FLEET = 10
"""Pairs of each kind that share a simulated fleet; every pair has a collector of its own."""
_OUTCOMES = ("right", "otherwise", "silent")


def regressions(planted: int, healthy: int, out: Path, progress: Progress) -> dict[str, Any]:
    """Return how often planted regressions were named, and healthy pairs left alone.

    Fleets that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    planted, healthy : pairs of profiles of each kind, at least one
    out : folder of all runs
    progress : told what is being done and the share done

    Returns
    -------
    dict
        named: share of the planted of which the clearest alarm names function and cause, named_error (its standard
        error over fleets; none of one fleet); quiet: share of the healthy without any alarm, quiet_error; causes: for
        each planted cause, pairs, right, otherwise (another function or cause named first), silent, and beside (alarms
        about other functions); trials: every planted pair; alarms: those of healthy pairs.

    Raises
    ------
    ValueError
        If there is nothing to plant or to leave alone.
    """
    if min(planted, healthy) < 1:
        raise InputError(f"at least one planted and one healthy pair are needed, got {planted} and {healthy}")
    fleets = -(-max(planted, healthy) // PER_FLEET)
    question = {"world": asdict(world_of(0)), "factors": FACTORS, "worth": WORTH, "per_fleet": PER_FLEET}
    shares = {seed: [_within(total, seed) for total in (planted, healthy)] for seed in range(fleets)}
    folder = folder_of(out, "regressions", question | {"pairs": list(shares.values())}, ["scipy", "pandas"])
    make = partial(judged, shares=shares)
    judged_fleets = each(range(fleets), make, folder, {"planted", "healthy"}, progress, what="planting regressions")
    return summary(
        [pair for fleet in judged_fleets for pair in fleet["planted"]],
        [pair for f in judged_fleets for pair in f["healthy"]],
    )


def _within(total: int, fleet: int) -> int:
    return min(max(total - fleet * PER_FLEET, 0), PER_FLEET)


def summary(planted: Sequence[Mapping[str, Any]], healthy: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what all pairs together say.

    Examples
    --------
    >>> one = {"fleet": 0, "cause": "platform", "outcome": "right", "beside": 0}
    >>> made = summary([one, one | {"fleet": 1, "outcome": "silent"}], [{"fleet": 0, "alarms": []}])
    >>> made["named"], made["named_error"], made["quiet"], made["causes"][2]["silent"]
    (0.5, 0.5, 1.0, 1)
    """
    named, named_error = _share(planted, [pair["outcome"] == "right" for pair in planted])
    quiet, quiet_error = _share(healthy, [not pair["alarms"] for pair in healthy])
    causes = []
    for cause in CAUSES:
        mine = [pair for pair in planted if pair["cause"] == cause]
        counts = {outcome: sum(pair["outcome"] == outcome for pair in mine) for outcome in _OUTCOMES}
        causes.append({"cause": cause, "pairs": len(mine), **counts, "beside": sum(pair["beside"] for pair in mine)})
    return {
        "named": named,
        "named_error": named_error,
        "quiet": quiet,
        "quiet_error": quiet_error,
        "causes": causes,
        "trials": list(planted),
        "alarms": [alarm for pair in healthy for alarm in pair["alarms"]],
    }


def _share(pairs: Sequence[Mapping[str, Any]], well: Sequence[bool]) -> tuple[float, float | None]:
    """Return the share that went well and its standard error, that of a ratio of sums over fleets drawn at random.

    Cochran (1977), equation 2.46; pairs of a fleet are alike. One fleet alone tells no error.
    """
    share, code = sum(well) / len(well), np.unique([pair["fleet"] for pair in pairs], return_inverse=True)[1]
    apart = np.bincount(code, np.array(well) - share)
    if len(apart) == 1:
        return share, None
    return share, float(np.sqrt(len(apart) / (len(apart) - 1) * (apart**2).sum())) / len(well)


def judged(seed: int, shares: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """Return what the alarm said of a fleet's pairs.

    Parameters
    ----------
    seed : number of the fleet
    shares : how many pairs are planted and how many healthy, for each fleet

    Returns
    -------
    dict
        seed; planted: fleet, collector, cause, value, application, function, factor, share (of the fleet's cycles),
        outcome, said (the clearest alarm), beside; healthy: fleet, collector, alarms.
    """
    planted, healthy = shares[seed]
    fleet = Fleet.of(world_of(seed), planted + healthy)
    worth = worth_finding(fleet.setting, fleet.spent())
    trials, quiet = [], []
    for i in range(planted):
        cause = CAUSES[(seed * PER_FLEET + i) % len(CAUSES)]
        incident, share = chosen(worth[worth["cause"] == cause], stream(seed, f"regression {i}"), fleet.half_s)
        about = {"fleet": seed, "collector": i, "cause": cause, "value": getattr(incident, cause)}
        raised = alarms(*fleet.pair(i, (incident,)), cluster="machine")
        trials.append(about | _of(incident) | {"share": share} | _outcome(cause, incident, raised))
    for i in range(planted, planted + healthy):
        raised = alarms(*fleet.pair(i), cluster="machine")
        quiet.append({"fleet": seed, "collector": i, "alarms": raised.to_dict("records")})
    return {"seed": seed, "planted": trials, "healthy": quiet}


def _of(incident: Incident) -> dict[str, Any]:
    return {"application": incident.application, "function": incident.function, "factor": incident.factor}


def _outcome(cause: str, incident: Incident, told: pd.DataFrame) -> dict[str, Any]:
    """Return whether the clearest alarm is about the incident, what it says, and how many are about others."""
    if not len(told):
        return {"outcome": "silent", "said": "", "beside": 0}
    first = told.iloc[0]
    wanted = (incident.function, cause, getattr(incident, cause), incident.application)
    blamed = tuple(str(first[name]) for name in ("function", "dimension", "value", "application"))
    outcome = "right" if blamed == wanted else "otherwise"
    return {
        "outcome": outcome,
        "said": " ".join(blamed),
        "beside": int((told["function"] != incident.function).sum()),
    }
