"""What is known of stays before a study: their shard's past, their machine's, and how busy the machine is.

None of what is known before the study can be an effect: performance in the past is taken apart into what belongs to
the shard (its input), what belongs to the machine (its silicon, its rack), and what its residents did to each other
(power caps, shared caches), which follows how much they are used to compute. So an instance that has moved is expected
to do as its shard does on its new machine, filled as that one is now. Placement must not depend on the feature.
"""

from dataclasses import dataclass

import numpy as np

from analysis.effects.observations import numbered
from analysis.effects.stays import ObservedRows, ratio
from models.arrays import Floats, Ints

SHARD, MACHINE, LOAD, LOAD_SQUARE, LOAD_BEFORE, LOAD_BEFORE_SQUARE = range(6)
"""Columns of covariates."""
_SWEEPS = 30
_SHARD_PRIOR, _MACHINE_PRIOR = 0.05, 1.0
"""Stays of the whole past by which a shard's, and a machine's, effect is half known."""


@dataclass(frozen=True, slots=True)
class PastParts:
    """Additive parts of relative performance in the past."""

    unit: Floats
    """(U,) of each shard, or instance."""
    machine: Floats
    """(M,)"""
    load: Floats
    """(2,) slopes on the load and its square."""


def covariates(
    past: ObservedRows, study: ObservedRows, scale: Floats, *, link: str = "shard", load: bool = True
) -> Floats:
    """Return the covariates of each stay of the study, (S, K); 0 where nothing is known.

    0: what its shard did in the past, other things equal; 1: what its machine did. 2 and 3: how busy the machine is
    expected to be while it is there, relative to the fleet's mean, and its square; 4 and 5: the same of the
    past, since a past of few periods cannot tell a slow machine from a full one.

    Parameters
    ----------
    past, study : observations by period, numbered together
    scale : of each job by number, NaN of a job that is not in the fleet
    link : shard: by job and shard, wherever that was served; own: by instance and machine; none: nothing is linked
    load : whether to tell 2 to 5

    Returns
    -------
    (S, K) array
        No column without a past.
    """
    known = np.isfinite(scale[past.job[past.first]])
    if link == "none" or not known.any():
        return np.zeros((len(study.first), 0))
    first, presence = past.first[known], past.presence[known]
    unit, machine = _units(past, link)[first], past.machine[first]
    deviation = past.level[known] / scale[past.job[first]] - 1.0
    loads = _loads(past, study, link) if load else None
    parts = taken_apart(deviation, presence, unit, machine, None if loads is None else loads[0][known])
    machine_now = study.machine[study.first]
    columns = [_looked_up(parts.unit, _units(study, link)[study.first]), _looked_up(parts.machine, machine_now)]
    if loads is not None:
        mean = ratio(np.bincount(machine, presence * loads[0][known]), np.bincount(machine, presence))
        before = _looked_up(np.nan_to_num(mean), machine_now)
        columns += [loads[1], loads[1] ** 2, before, before**2]
    return np.stack(columns, axis=1)


def _units(rows: ObservedRows, link: str) -> Ints:
    """Return (N,) numbers by which instances are known again: of their job's shard, or of the stay."""
    return rows.shard if link == "shard" and rows.shard is not None else rows.stay


def _looked_up(values: Floats, number: Ints) -> Floats:
    """Return the values of numbers, 0 of those that are beyond them."""
    return np.asarray(np.append(values, 0.0)[np.minimum(number, len(values))], dtype=np.float64)


def taken_apart(deviation: Floats, presence: Floats, unit: Ints, machine: Ints, load: Floats | None) -> PastParts:
    """Return the parts of stays' relative performance, each shrunk by how little of it was seen.

    Fitted by backfitting (Breiman and Friedman 1985); the parts of units and machines are random effects.

    Parameters
    ----------
    deviation : (N,) relative to the job's mean
    presence : (N,) 0..1
    unit, machine : (N,) numbers from 0
    load : (N,) of the machine while it was there, relative to the mean; None: not looked at
    """
    of_unit: Floats = np.zeros(unit.max() + 1)
    of_machine: Floats = np.zeros(machine.max() + 1)
    slope: Floats = np.zeros(2)
    columns = np.zeros((len(deviation), 2)) if load is None else np.stack([load, load**2], axis=1)
    root = np.sqrt(presence)
    least_squares = np.linalg.pinv(columns * root[:, None], rtol=np.finfo(np.float64).eps * len(root)) * root
    totals = np.bincount(unit, presence) + _SHARD_PRIOR, np.bincount(machine, presence) + _MACHINE_PRIOR
    for _ in range(_SWEEPS):
        rest = deviation - columns @ slope
        of_machine = np.bincount(machine, presence * (rest - of_unit[unit])) / totals[1]
        of_unit = np.bincount(unit, presence * (rest - of_machine[machine])) / totals[0]
        slope = least_squares @ (deviation - of_unit[unit] - of_machine[machine])
    return PastParts(of_unit, of_machine, slope)


def _loads(past: ObservedRows, study: ObservedRows, link: str) -> tuple[Floats, Floats]:
    """Return how busy each stay's machine is expected to be while it is there, relative to the fleet's mean."""
    then, now = _expected_rates(past, study, link)
    return _of_stays(past, then), _of_stays(study, now)


def _expected_rates(past: ObservedRows, study: ObservedRows, link: str) -> tuple[Floats, Floats]:
    """Return how many CPU seconds a second each row's job or shard used in the past, or may use; (N,) of each table.

    Of a shard without a past it is the mean of its job's shards, and of a job without one that of all rows.
    """
    job = np.append(past.job, study.job)
    sharded = link == "shard" and study.shard is not None
    unit, first = numbered([np.append(_units(past, link), _units(study, link)) if sharded else job])
    before, units, jobs = unit[: len(past)], len(first), len(study.jobs)
    used, time = (past.weight, np.ones(len(past))) if past.cpu_s is None else (past.cpu_s, past.present)
    rate = ratio(np.bincount(before, used, units), np.bincount(before, time, units))
    rated = np.isfinite(rate)
    of_job = job[first][rated]
    whole = ratio(np.bincount(of_job, rate[rated], jobs), np.bincount(of_job, minlength=jobs))
    of_row = np.where(rated[unit], rate[unit], whole[job])
    tables = []
    for table in (of_row[: len(past)], of_row[len(past) :]):
        usable = np.isfinite(table)
        tables.append(np.where(usable, table, table[usable].mean() if usable.any() else 1.0))
    return tables[0], tables[1]


def _of_stays(rows: ObservedRows, rate: Floats) -> Floats:
    """Return the mean load of each stay's machine over its periods; (S,).

    Parameters
    ----------
    rows : of one time, by period
    rate : (N,) CPU seconds a second that are expected of them
    """
    host, _ = numbered([rows.machine, rows.period])
    busy = np.bincount(host, rate * rows.present)[host]
    load = busy / np.average(busy, weights=rows.present) - 1.0
    return np.asarray(np.bincount(rows.place, rows.present * load) / np.bincount(rows.place, rows.present))
