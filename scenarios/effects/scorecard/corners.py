"""Corners of the sweep that estimators are judged on: one base world, with some of its values low or high.

The base is the library's `fortnight`. Ends of an axis are published figures, or switch the mechanism off:

- persistence: spread within jobs, 7.4% of compute jobs (Lee et al. 2018, table 2) and 0.30 (Google cell, 2019: median
  CV of CPI, an upper bound);
- autocorrelation of what instances do of their own, from hour to hour: 0, 0.5, 0.8 (0.14 in the base; Google cell,
  2019: 0.57 for a job of 20,000 tasks);
- churn: none, and about 40% of the instances moved a day;
- covariance: none, and that of cloud machines (Azure D8s_v5: memory latency 10%, bandwidth 5%, cache 14%, of which half
  of the variance persists; racks share a part);
- feature: new code of all jobs, by which each gains differently (the base) or all the same, new processors, a governor;
- power: that governor where power is short, so that caps bind about half of the time and what one core saves another
  can use; and there without budgets that machines share, so that none feels what another does;
- tails: all jobs equally spread and heavyweights alike, or very unequal (Google cell, 2011: 1% of jobs hold 54%);
- swing: loads that follow the day by 37% (Alibaba);
- mixed: three generations of servers, as in the library's `profiled_fleet`;
- overcommitted: 20% more CPU quota on machines than they have hardware threads, as in the library's `overcommitted`;
- incidents: machines with slow hours, jobs whose level changes for good, as in the library's `incidents`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from json import dumps
from typing import Any, Literal

import numpy as np

from models.errors import InputError
from models.fleet.inventory import drawn_names
from models.fleet.world import Crossover, Feature, Recording, Rollout, Software, World
from models.randomness import stream
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.loader import Override, load
from scenarios.files.schema import Scenario

Change = Literal["jobs", "software", "platform", "governor"]
Values = Mapping[str, float]

BASE = "fortnight"
CROSSOVER_PERIOD_S, WASH_S, SETTLE_S, CROSSOVER_EPOCH_S = 5400.0, 3600.0, 900.0, 300.0
"""In the fleets' crossovers: how long machines keep a state, what is left out of that time, how long the old state acts
after a switch, and the epoch. When the new state begins to act, governors, caches and the budgets of power domains
still need up to an hour to find their balance: half of what is left of the old one is gone in 10 to 20 minutes."""
_DOMAINS = 4
"""Power domains from which on they switch as wholes; in fleets of fewer, machines do so one by one."""
DRAWN = 5
_DRAWN = "drawn_"
_JOBS_PER_MACHINE = 0.65
_UNIFORM = 1.0075
"""By how much less CPI new code has."""
UNLIKE = 0.02
"""Spread between jobs of the logarithm of that, where each gains differently: about a third lose."""

_PERSISTENCE = "population.behaviour.input_log_sd"
_WANDER = "population.behaviour.wander_time_factor"
_SPREAD = "population.behaviour.input_log_sd_spread"
_HEAVY, _QUOTA = "population.heavyweight_log_sd", "population.instance_quota_log_sd"
_CHURN = tuple(
    f"churn.{name}_day"
    for name in ("restarts_per_instance", "exits_per_instance", "drains_per_machine", "failures_per_machine")
)
_COVARIANCE = tuple(
    f"conditions.{name}_log_sd"
    for name in ("machine_latency", "machine_bandwidth", "rack_latency", "rack_power", "rack_access", "machine_access")
)

PERSISTENCE: tuple[Values, Values] = ({_PERSISTENCE: 0.074}, {_PERSISTENCE: 0.30})
AUTOCORRELATION: Mapping[float, Values] = {0.0: {_WANDER: 0.2}, 0.5: {_WANDER: 2.885}, 0.8: {_WANDER: 8.963}}
CHURN: tuple[Values, Values] = (dict.fromkeys(_CHURN, 0.0), dict(zip(_CHURN, (0.40, 0.10, 0.05, 0.002), strict=True)))
COVARIANCE: tuple[Values, Values] = (
    dict.fromkeys(_COVARIANCE, 0.0),
    dict(zip(_COVARIANCE, (0.10, 0.05, 0.03, 0.04, 0.05, 0.10), strict=True)),
)
TAILS: tuple[Values, Values] = ({_SPREAD: 0.0, _HEAVY: 0.3, _QUOTA: 0.2}, {_SPREAD: 0.9, _HEAVY: 1.3, _QUOTA: 0.8})
SWING: Values = {"population.behaviour.diurnal_amplitude": 0.37}
PLATFORMS: Values = {
    f"fleet.platforms.{name}": share
    for name, share in (("haswell_2698v3", 0.5), ("broadwell_2698v4", 0.3), ("skylake_6148", 0.2))
}
TIGHT_POWER: Values = {"power.cap_share": 0.7, "power.domain_budget_share": 0.68}
OVERCOMMITTED: Values = {"fleet.overcommit": 1.4}
INCIDENTS: Values = {
    f"incidents.{name}": value
    for name, value in (
        ("memory_per_machine_day", 0.5),
        ("clock_per_machine_day", 0.5),
        ("duration_s", 7200.0),
        ("shifts_per_job_day", 0.1),
        ("shift_log_sd", 0.1),
    )
}


@dataclass(frozen=True, slots=True)
class Corner:
    """A place in the sweep: what of the base world is different there."""

    name: str
    values: Values = field(default_factory=dict)
    """Dotted paths of scenario values."""
    change: Change = "jobs"
    """What the feature is."""
    times: int = 1
    """Machines for each one that is asked for."""


@cache
def corner(name: str) -> Corner:
    """Return the corner of a name."""
    if name not in CORNERS:
        fault = Fault("corner", 0, 0, "name", f"should be one of {', '.join(CORNERS)}", repr(name))
        raise FaultsError([fault])
    return CORNERS[name]


def drawn(seed: int) -> Corner:
    """Return a corner drawn at random: every axis anywhere between its ends, any feature.

    Parameters
    ----------
    seed : at least 0
    """
    rng = stream(seed, "corner of the sweep")
    ends = (PERSISTENCE, (AUTOCORRELATION[0.0], AUTOCORRELATION[0.8]), CHURN, COVARIANCE, TAILS)
    values: dict[str, float] = {}
    for low, high in ends:
        at = float(rng.random())
        values |= {key: round(low[key] + at * (high[key] - low[key]), 6) for key in low}
    changes: tuple[Change, ...] = ("jobs", "software", "platform")
    return _with(f"{_DRAWN}{seed}", values, change=changes[int(rng.integers(3))])


def was_drawn(name: str) -> bool:
    """Return whether a corner of this name is one drawn at random, to be told beside the others.

    Examples
    --------
    >>> was_drawn("drawn_1"), was_drawn("base")
    (True, False)
    """
    return name.startswith(_DRAWN)


def world(where: Corner, seed: int, machines: int = 1000) -> Scenario:
    """Return the world of a corner: two weeks of a fleet, and the feature that is to be measured.

    Parameters
    ----------
    where : what is different from the base
    seed : of the fleet
    machines : times those of the corner; the number of jobs follows
    """
    count = machines * where.times
    jobs = max(round(_JOBS_PER_MACHINE * count), 50)
    values: dict[str, Any] = {
        "seed": seed, "fleet.machines": count, "population.jobs": jobs, "population.common_jobs": max(jobs // 2, 40),
        "analyses.wsmeter.machines": [1], **where.values,
    }  # fmt: skip
    if where.change == "platform":
        values |= {"feature.platforms": {"haswell_2698v3": "broadwell_2698v4"}, "feature.governor": None}
    scenario = load(BASE, [Override(key, dumps(value)) for key, value in values.items()])
    if not isinstance(scenario, Scenario) or scenario.feature is None:
        raise TypeError(f"{BASE} is no fleet with a feature")
    if where.change in {"governor", "platform"}:
        return scenario
    code = _compiled(drawn_names(scenario.population, seed), UNLIKE if where.change == "jobs" else 0.0, seed)
    return replace(scenario, feature=replace(scenario.feature, name="new compiler", governor=None, software=code))


def _compiled(jobs: Sequence[str], log_sd: float, seed: int) -> tuple[Software, ...]:
    """Return new code of jobs: all of them gain alike, or each by a draw of its own."""
    if not log_sd:
        return (_less(1 / _UNIFORM, *jobs),)
    drawn = stream(seed, "gains of jobs").normal(0.0, log_sd, len(jobs))
    return tuple(_less(float(np.exp(-gain)) / _UNIFORM, job) for job, gain in zip(jobs, drawn, strict=True))


def _less(factor: float, *jobs: str) -> Software:
    return Software(jobs, core_cpi_factor=factor, memory_accesses_factor=factor)


def crossover(of: World) -> World:
    """Return a day of the same fleet in which all machines switch the feature on and off, every 90 minutes.

    The machines of a power domain switch together: they share a budget, so what one saves is what others gain.
    """
    if of.feature is None or of.feature.platforms:
        raise InputError("a crossover needs a feature that can be switched off, not another platform")
    domain = of.fleet.machines_per_rack * of.fleet.racks_per_power_domain
    unit: Literal["machine", "domain"] = "domain" if of.fleet.machines > (_DOMAINS - 1) * domain else "machine"
    plan = Rollout(1.0, unit, crossover=Crossover(CROSSOVER_PERIOD_S, wash_s=WASH_S))
    feature = replace(of.feature, settle_s=SETTLE_S, rollout=plan)
    return replace(of, horizon_s=86400.0, epoch_s=CROSSOVER_EPOCH_S, feature=feature, recording=Recording())


def rebuilt(of: World, job: str) -> World:
    """Return the same fleet with another feature: new code of one job that has less CPI.

    Parameters
    ----------
    of : a fleet
    job : its name
    """
    return replace(of, feature=Feature(f"new code of {job}", software=(_less(1 / _UNIFORM, job),)))


def _with(name: str, *parts: Values, change: Change = "jobs", times: int = 1) -> Corner:
    """Return a corner; values of later parts win."""
    values: dict[str, float] = {}
    for part in parts:
        values |= part
    return Corner(name, values, change, times)


_ROUGH = (CHURN[1], COVARIANCE[1], TAILS[1], AUTOCORRELATION[0.0])
CORNERS: Mapping[str, Corner] = {
    corner.name: corner
    for corner in (
        _with("base"),
        _with("persistence_low", PERSISTENCE[0]),
        _with("persistence_high", PERSISTENCE[1]),
        *(_with(f"autocorrelation_{round(100 * at):02}", part) for at, part in AUTOCORRELATION.items()),
        _with("churn_low", CHURN[0]),
        _with("churn_high", CHURN[1]),
        _with("covariance_low", COVARIANCE[0]),
        _with("covariance_high", COVARIANCE[1]),
        _with("governor", change="governor"),
        _with("tight_power", TIGHT_POWER, change="governor"),
        _with("domains_apart", TIGHT_POWER, {"power.domain_budget_share": 10.0}, change="governor"),
        _with("uniform", change="software"),
        _with("upgrade", change="platform"),
        _with("tails_low", TAILS[0]),
        _with("tails_high", TAILS[1]),
        _with("swing", SWING),
        _with("mixed", PLATFORMS),
        _with("overcommitted", OVERCOMMITTED),
        _with("incidents", INCIDENTS),
        _with("calm", PERSISTENCE[0], CHURN[0], COVARIANCE[0], TAILS[0]),
        _with("sticky", PERSISTENCE[1], CHURN[0], AUTOCORRELATION[0.8]),
        _with("rough", *_ROUGH),
        _with("rough_uniform", *_ROUGH, change="software"),
        _with("rough_upgrade", *_ROUGH, change="platform"),
        _with("fine", {"epoch_s": 300.0}),
        _with("large", times=6),
        *(drawn(seed) for seed in range(1, DRAWN + 1)),
    )
}
"""Every corner by its name; `fine` has epochs of five minutes, `large` six times the machines."""
