"""Machines that switch a feature on and off while most others never have it: rows of all courses that a draw needs.

What the instances of a job, and those of a rack, do together in a period is learnt from the machines that never switch.
Each stay of a machine that does is then its own control.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from analysis.effects.keys import numbered
from analysis.effects.levels import Common, Own, Rows, alone, shared
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

_MIXED = 0.05
"""Share of domains and periods in which a domain's machines may differ and still be said to switch together."""


class Beside(NamedTuple):
    """Rows of machines that never switch: machine, job, period, rack, presence, and deviations as of `Rows`, (C, 2)."""

    machine: Ints
    job: Ints
    period: Ints
    rack: Ints
    there: Floats
    apart: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Switched:
    """A crossover of some machines: what they do switched off and on, and what all that never switch have in common."""

    rows: Rows
    common: Common
    stays: pd.DataFrame
    """One row per stay: job, machine, quota, presence."""
    plan: Bools
    """(M, P) who has the feature when."""
    unit: Ints
    """(M,) machines of one unit switch together."""
    own: Own
    scale: Floats
    """(S,) performance that a stay's values are relative to."""
    beside: Beside
    """Empty if every machine can switch."""

    @property
    def machines(self) -> pd.Index:
        """(M,) their names."""
        names: pd.Index = pd.Index(self.stays["machine"].to_numpy()[self.rows.stay[self.rows.start]])
        return names

    def of(self, machines: pd.Index) -> Self:
        """Return the crossover of some of its machines; the others, though they switch, tell nothing any more."""
        at = self.machines.get_indexer(machines)
        rows = self.rows._replace(start=self.rows.start[at], end=self.rows.end[at], rack=self.rows.rack[at])
        return replace(self, rows=rows, plan=self.plan[at], unit=self.unit[at])

    def planned(self, plan: Bools) -> Self:
        """Return the same machines, each a unit of its own, switching by another plan, (M, P)."""
        return replace(self, plan=plan, unit=np.arange(len(plan)), own=_own(self.rows, plan))

    def gains(self) -> pd.DataFrame:
        """Return the stays with their gain by the feature, each machine beside all others that never switch.

        Returns
        -------
        pd.DataFrame
            job, machine, quota, presence, gain (relative to the job's mean without the feature; NaN of a stay that was
            not seen in both states).

        Examples
        --------
        >>> example().gains()["gain"].round(9).unique().tolist()
        [0.1]
        """
        level = np.full((len(self.stays), 2), np.nan)
        alone(self.rows, self.common, self.own, level)
        seen = np.flatnonzero(np.isfinite(level).all(axis=1))
        job, presence = (self.stays[name].to_numpy()[seen] for name in ("job", "presence"))
        group, _ = numbered([pd.Series(job)])
        held = np.bincount(group, presence)
        mean = np.bincount(group, presence * level[seen, 0]) / held
        share = level[seen, 0] / mean[group]
        gain = level[seen, 1] / mean[group] - share
        typical = (np.bincount(group, presence * gain) / held)[group]
        made = np.full(len(self.stays), np.nan)
        # The mean gain is a ratio, so what varies is a stay's gain less what its level lets expect.
        made[seen] = typical + gain - typical * share
        return self.stays.assign(gain=made)

    def totals(self) -> Floats:
        """Return each machine's performance without and with the feature, (M, 2), as it was seen: sums over its stays.

        Stays weigh by quota and presence, and count if they were seen in both states.

        Examples
        --------
        >>> example().totals()[0].round(9)
        array([2. , 2.2])
        """
        sums = [
            np.bincount(self.rows.stay, np.where(self.own.state == state, part, 0.0), len(self.stays))
            for part in (self.own.above, self.own.by)
            for state in (0, 1)
        ]
        seen = (sums[2] > 0) & (sums[3] > 0)
        weight = np.where(seen, self.stays["quota"] * self.stays["presence"], 0.0) * self.scale
        machine = self.machines.get_indexer(pd.Index(self.stays["machine"]))
        mean = [np.divide(sums[at], sums[at + 2], out=np.zeros(len(seen)), where=seen) for at in (0, 1)]
        return np.stack([np.bincount(machine[seen], (weight * each)[seen], len(self.plan)) for each in mean], axis=1)


def switched(table: pd.DataFrame, identity: list[str], by: Floats, scale: "pd.Series[float]") -> Switched:
    """Return a crossover as arrays.

    Machines with a value `off` or `on` can switch; all rows with a value `never` tell what never switches.

    Parameters
    ----------
    table : period, job, machine, weight, never, off, on (performance, NaN where not observed), treated (boolean, the
        plan), perhaps rack, present_s
    identity : columns that tell one stay from another
    by : (N, 2) exposure of each row switched off (and never switched), and on
    scale : performance of each job, indexed by job

    Raises
    ------
    ValueError
        If a job has no scale.

    Examples
    --------
    >>> made = example()
    >>> made.plan.shape, len(made.stays), made.common.job_held
    ((6, 4), 6, array([[6., 6., 6., 6.]]))
    """
    job = pd.Index(scale.index).get_indexer(table["job"]).astype(np.int64)
    if (job < 0).any():
        raise InputError(f"job {table['job'].to_numpy()[job < 0][0]} is not among the fleet's jobs")
    period, periods = pd.factorize(table["period"], sort=True)
    rack, _ = pd.factorize(table["rack"] if "rack" in table else table["machine"])
    there = table["present_s"].to_numpy(dtype=np.float64) if "present_s" in table else np.ones(len(table))
    there = there / there.max()
    never, states = table["never"].to_numpy(dtype=np.float64), table[["off", "on"]].to_numpy(dtype=np.float64)
    known, can = np.isfinite(never), np.isfinite(states).any(axis=1)
    stay, _ = numbered([table[name] for name in identity])
    told = there * known
    apart = _apart(np.where(known, never, 0.0), known * by[:, 0], stay)
    # A rack of its own tells nothing of a machine but itself.
    racked = told * float("rack" in table)
    common, rest = _common((job, rack, period), (len(scale), len(periods)), told, racked, apart)
    seen = Beside(pd.factorize(table["machine"])[0], job, period, rack, told, np.stack([apart, rest], axis=1))
    machine, machines = pd.factorize(table["machine"].to_numpy()[can], sort=True)
    taken = np.flatnonzero(can)[np.lexsort((stay[can], machine))]
    machine = np.sort(machine)
    number, first = numbered([stay[taken]])
    start, end = (np.searchsorted(machine, np.arange(len(machines)), side) for side in ("left", "right"))
    level = scale.to_numpy(dtype=np.float64)[job[taken]]
    rows = Rows(
        start=start,
        end=end,
        rack=rack[taken[start]].astype(np.int64),
        stay=number.astype(np.int32),
        job=job[taken].astype(np.int32),
        period=period[taken].astype(np.int32),
        by=by[taken],
        value=states[taken] / level[:, None],
        there=told[taken],
        apart=seen.apart[taken],
    )
    plan = np.zeros((len(machines), len(periods)), dtype=np.bool_)
    plan[machine, rows.period] = table["treated"].to_numpy(dtype=np.bool_)[taken]
    return Switched(
        rows=rows,
        common=common,
        stays=_stays(table.iloc[taken[first]], np.asarray(np.bincount(number, there[taken]), dtype=np.float64)),
        plan=plan,
        unit=_units(table, taken[start], plan),
        own=_own(rows, plan),
        scale=level[first],
        beside=Beside(*(each[known & ~can] for each in seen)),
    )


def _common(
    keys: tuple[Ints, Ints, Ints], size: tuple[int, int], told: Floats, racked: Floats, apart: Floats
) -> tuple[Common, Floats]:
    """Return what jobs, and racks, do in common by period, and what the course of its job leaves of each row, (N,).

    Keys are the rows' job, rack and period, and size how many jobs and periods there are; rows tell by `told` of their
    job, by `racked` of their rack.
    """
    job, rack, period = keys
    racks = int(rack.max(initial=-1)) + 1
    held, total = (_summed(job, period, told * part, size) for part in (1.0, apart))
    rest = apart - shared(held, total)[job, period]
    of_rack = (_summed(rack, period, racked * part, (racks, size[1])) for part in (1.0, rest))
    return Common(held, total, *of_rack), rest


def _stays(first: pd.DataFrame, presence: Floats) -> pd.DataFrame:
    """Return job, machine, quota and relative presence of stays, given the first row of each."""
    stays = first[["job", "machine", "weight"]].rename(columns={"weight": "quota"}).reset_index(drop=True)
    return stays.assign(presence=presence / max(presence.max(initial=0.0), 1e-300))


def _own(rows: Rows, plan: Bools) -> Own:
    state = plan[np.repeat(np.arange(len(plan)), rows.end - rows.start), rows.period].astype(np.int8)
    by, value = (np.where(state == 1, each[:, 1], each[:, 0]) for each in (rows.by, rows.value))
    return Own(state, by, by * value)


def _units(table: pd.DataFrame, first: Ints, plan: Bools) -> Ints:
    """Return the number of each machine's domain if those of a domain switch together, else its own."""
    if "domain" not in table:
        return np.arange(len(plan))
    domain, domains = pd.factorize(table["domain"].to_numpy()[first])
    having = np.stack([np.bincount(domain, each, len(domains)) for each in plan.T], axis=1)
    mixed = (having > 0) & (having < np.bincount(domain)[:, None])
    return domain.astype(np.int64) if mixed.mean() < _MIXED else np.arange(len(plan))


def coins(shape: tuple[int, ...], rng: np.random.Generator) -> Bools:
    """Return a plan, (machines, periods): of two periods after each other one is with the feature, by a fair coin.

    Of an odd number of periods the last has none with it.

    Examples
    --------
    >>> coins((100, 4), np.random.default_rng(1)).reshape(100, 2, 2).sum(axis=2).tolist()[:2]
    [[1, 1], [1, 1]]
    """
    first = rng.random((shape[0], shape[1] // 2)) < 0.5
    plan = np.zeros(shape, dtype=np.bool_)
    plan[:, 0 : shape[1] // 2 * 2 : 2], plan[:, 1::2] = first, ~first
    return plan


def _apart(value: Floats, by: Floats, stay: Ints) -> Floats:
    """Return by how much each value is above its stay's mean, relative to that; 0 where nothing is known."""
    held = np.bincount(stay, by)
    mean = np.divide(np.bincount(stay, by * value), held, out=np.ones(len(held)), where=held > 0)
    return np.where(by > 0, value / np.where(mean > 0, mean, 1.0)[stay] - 1.0, 0.0)


def _summed(group: Ints, period: Ints, value: Floats, shape: tuple[int, int]) -> Floats:
    return np.bincount(group * shape[1] + period, value, shape[0] * shape[1]).reshape(shape).astype(np.float64)


def example() -> Switched:
    """Return a small crossover without noise and an effect of 10%: one job on six machines that switch in four periods.

    Examples
    --------
    >>> example().plan.sum(axis=1).tolist()
    [2, 2, 2, 2, 2, 2]
    """
    machine, period = (each.ravel() for each in np.indices((6, 4)))
    row = {"period": period, "job": "a", "machine": machine, "weight": 1.0, "treated": (machine + period) % 2 == 0}
    table = pd.DataFrame(row).assign(never=2.0, off=2.0, on=2.2)
    return switched(table, ["machine"], np.ones((24, 2)), pd.Series({"a": 2.0}))
