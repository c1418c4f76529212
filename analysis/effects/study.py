"""An experiment on a fleet as its tables tell it: who had the feature when, and what was known before."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from analysis.effects import stages
from analysis.effects.cells import Cells, cells
from analysis.effects.covariates import covariates
from analysis.effects.crossovers import observed
from analysis.effects.method import Design
from analysis.effects.observations import checked, fleet_of, identity, racks_of, scale_of, stays
from analysis.effects.switching import FEW
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Ints

Link = Literal["none", "own", "shard"]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The cells of an experiment, and which machines had the feature."""

    cells: Cells
    treated: Bools
    """(M,)"""
    design: Design
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        observations: pd.DataFrame,
        jobs: pd.DataFrame | None = None,
        link: Link = "shard",
        load: bool = True,
        *,
        staged: bool = False,
    ) -> "Study":
        """Return the study that a table of observations tells of.

        Periods before anything had the feature are the past, from which covariates come; all others are the study. A
        machine that has the feature in some periods of the study only makes it a crossover: each instance is then its
        own control, less what its job's instances did in common at the same time. That is learnt from machines that
        never have it if they are as many at least (`switching`), else from those that switch (`crossovers`).

        Parameters
        ----------
        observations : one row per instance's stay and period: period (sortable), job, machine, weight (CPU quota),
            value (performance), treated (0 or 1), and perhaps instance, shard, rack, present_s, cpu_s, exposure
        jobs : job, quota of the whole fleet; without it a job weighs as its rows do
        link : own: an instance is compared with itself before, where it was on the same machine; shard: otherwise with
            whatever served its shard
        load : whether to adjust for how much the machine's residents are used to compute
        staged : whether machines got the feature in waves; the study then has its sums by stage

        Raises
        ------
        ValueError
            If a column or an identifier is missing, a number makes no sense, a job is there twice or not among the
            fleet's, or a machine has the feature only for part of a period.
        NotEnoughDataError
            If nothing has the feature, or nothing is without it.
        """
        table = checked(observations)
        if staged:
            return cls._staged(table, jobs, link=link, load=load)
        for arm, what in ((table["treated"], "with the feature"), (~table["treated"], "without the feature")):
            if not arm.any():
                raise NotEnoughDataError(1, 0, f"observations {what}")
        past = table["period"] < table.loc[table["treated"], "period"].min()
        study, before = table[~past], table[past]
        fleet = fleet_of(before, study, jobs)
        racks = racks_of(table)
        share = study.groupby("machine")["treated"].mean()
        switching, never = (share > 0) & (share < 1), share == 0
        if switching.any():
            whole = observed(study, fleet, racks, share[switching].index if never.sum() >= switching.sum() else None)
            return cls(whole, np.ones(len(whole.machines), dtype=np.bool_), "crossover")
        measured, level = stays(study)["value"], _level(before if len(before) else study[~study["treated"]])
        study = _without(study, course(study[~study["treated"]], fleet))
        before = _without(before, course(before, fleet))
        rows = stays(study)
        having = rows["treated"]
        arms = {"off": rows["value"].where(~having), "on": rows["value"].where(having)}
        arms |= {"measured_off": measured.where(~having), "measured_on": measured.where(having)}
        whole = _cells(rows.assign(**arms), study, before, fleet, racks=racks, level=level, link=link, load=load)
        treated = rows.groupby("machine")["treated"].any().reindex(whole.machines).to_numpy(dtype=np.bool_)
        return cls(replace(whole, platform=_platforms(observations, whole.machines)), treated, "concurrent")

    @classmethod
    def _staged(cls, table: pd.DataFrame, jobs: pd.DataFrame | None, *, link: Link, load: bool) -> "Study":
        rollout = stages.observed(table, jobs, link=link, load=load)
        whole = cells(rollout.rows, rollout.jobs)
        since = rollout.stages.since
        treated = np.zeros(len(whole.machines), dtype=np.bool_) if since is None else since < stages.NEVER
        names = ", ".join(map(str, rollout.dropped))
        notes = (f"periods without a machine that lacks the feature were left out: {names}",) if names else ()
        return cls(replace(whole, stages=rollout.stages), treated, "staged", notes)


def design_of(observations: pd.DataFrame) -> Design:
    """Return when machines had the feature, as a table of observations shows it.

    Parameters
    ----------
    observations : columns period, machine, treated
    """
    if is_staged(observations):
        return "staged"
    having = observations["treated"].astype(bool)
    study = observations[observations["period"] >= observations.loc[having, "period"].min()]
    share = study.groupby("machine")["treated"].mean()
    return "crossover" if ((share > 0) & (share < 1)).any() else "concurrent"


def is_staged(observations: pd.DataFrame) -> bool:
    """Return whether machines get the feature after others did, and all keep it.

    Parameters
    ----------
    observations : columns period, machine, treated
    """
    states = observations.groupby(["machine", "period"])["treated"].max().astype(bool)
    lost = (~states & states.groupby("machine").cummax()).any()
    first = states[states].index.get_level_values("period").min()
    share = states[states.index.get_level_values("period") >= first].groupby("machine").mean()
    return not lost and bool(((share > 0) & (share < 1)).any())


def potential(
    before: pd.DataFrame,
    off: pd.DataFrame,
    on: pd.DataFrame,
    jobs: pd.DataFrame | None = None,
    *,
    link: Link = "shard",
    load: bool = True,
) -> Cells:
    """Return the cells of a fleet whose course without the feature and with it are both known, to draw studies from.

    Parameters
    ----------
    before : observations of the past; none has the feature
    off, on : observations of the study without and with the feature, of the same stays
    jobs, link, load : as in `Study.of`

    Raises
    ------
    ValueError
        As in `Study.of`.

    Examples
    --------
    >>> past = pd.DataFrame({"period": 0, "job": "a", "machine": [1, 2], "weight": 1.0, "value": 2.0, "treated": 0})
    >>> now = past.assign(period=1)
    >>> potential(past, now, now.assign(value=3.0)).y
    array([[1. , 1.5],
           [1. , 1.5]])
    """
    before, off, on = map(checked, (before, off, on))
    fleet = fleet_of(before, off, jobs)
    level = _level(before if len(before) else off)
    measured = [stays(table)["value"] for table in (off, on)]
    common = course(off, fleet)
    before, off, on = _without(before, course(before, fleet)), _without(off, common), _without(on, common)
    rows, keys = stays(off).assign(measured_off=measured[0]), identity(off)
    with_it = stays(on).assign(measured_on=measured[1])[[*keys, "value", "measured_on"]].rename(columns={"value": "on"})
    both = rows.rename(columns={"value": "off"}).merge(with_it, on=keys)
    rows, racks = both.assign(value=both["off"]), racks_of(off)
    return _cells(rows, off, before, fleet, racks=racks, level=level, link=link, load=load)


def course(table: pd.DataFrame, fleet: pd.DataFrame) -> pd.Series:
    """Return by how much each job's instances were above or below its mean in each period, by job and period.

    What all instances of a job do together is no effect of the feature, but would look like one where instances were
    there at different times. A job of few instances shows its course badly, so it counts for less.

    Parameters
    ----------
    table : observations without the feature
    fleet : job, scale
    """
    if table["period"].nunique() < 2:
        return pd.Series(dtype=np.float64)
    keys = ["job", "period"]
    present = table["present_s"].to_numpy(dtype=np.float64) if "present_s" in table else np.ones(len(table))
    sums_by_period = (
        table.assign(there=present, part=present * table["value"]).groupby(keys, observed=True)[["there", "part"]].sum()
    )
    scale = scale_of(fleet).reindex(sums_by_period.index.get_level_values("job")).to_numpy()
    deviation = sums_by_period["part"] / sums_by_period["there"] / scale - 1.0
    sums = sums_by_period.assign(part=sums_by_period["there"] * deviation).groupby(level="job").transform("sum")
    instances = sums_by_period["there"] / present.max()
    course_: pd.Series[float] = (deviation - sums["part"] / sums["there"]) * instances / (instances + FEW)
    return course_


def _platforms(table: pd.DataFrame, machines: pd.Index) -> Ints | None:
    """Return the number of each machine's platform; nothing where the table does not say."""
    if "platform" not in table:
        return None
    platform = table.groupby("machine")["platform"].first().reindex(machines)
    return pd.factorize(platform, sort=True)[0].astype(np.int64)


def _without(table: pd.DataFrame, common: pd.Series) -> pd.DataFrame:
    """Return observations less the course of their jobs."""
    if common.empty:
        return table
    of_rows = common.reindex(pd.MultiIndex.from_frame(table[["job", "period"]])).fillna(0.0).to_numpy()
    return table.assign(value=table["value"] / (1.0 + of_rows))


def _cells(
    rows: pd.DataFrame,
    study: pd.DataFrame,
    past: pd.DataFrame,
    fleet: pd.DataFrame,
    *,
    racks: pd.Series | None,
    level: "pd.Series[float]",
    link: Link,
    load: bool,
) -> Cells:
    before = stays(past) if len(past) else past
    known = covariates(rows, before, study, past, fleet, link=link, load=load)
    whole = pd.concat([rows.rename(columns={"weight": "quota"}), known], axis=1)
    return cells(whole, fleet, _before(before), racks, level)


def _level(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the mean over each job's stays as they were measured, each alike."""
    mean: pd.Series[float] = stays(table).groupby("job")["value"].mean()
    return mean


def _before(before: pd.DataFrame) -> pd.DataFrame | None:
    if before.empty:
        return None
    quota = before["weight"] * before["presence"]
    return before.assign(value=quota * before["value"], quota=quota).groupby("machine")[["value", "quota"]].sum()
