"""Staged roll-outs: machines get a feature in waves, and are controls of the waves after theirs until then.

Sums by machine, job and stage are all that the estimator `staged` needs: of one table, or of potential outcomes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.cells import COVARIATE, NEVER, Stages, StageSums
from analysis.effects.covariates import covariates
from analysis.effects.observations import Observations, exposure, identity
from analysis.effects.stays import ObservedRows, scale_of
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats, Ints
from models.errors import InputError


class StagedRollout(NamedTuple):
    """A staged roll-out as it was observed."""

    rows: pd.DataFrame
    """One per stay and period in which both states were seen: stage, off and on (NaN where that was not seen) too."""
    jobs: pd.DataFrame
    """job, quota, scale of the whole fleet."""
    stages: Stages
    dropped: tuple[object, ...]
    """Periods in which all machines had the feature, or none."""


def observed(
    observations: Observations, jobs: pd.DataFrame | None = None, *, link: str = "shard", load: bool = True
) -> StagedRollout:
    """Return the roll-out that checked observations tell of; every period is a stage.

    Parameters
    ----------
    observations : of machines that keep the feature once they have it
    jobs : job, quota of the whole fleet; without it a job weighs as its rows of the study do
    link, load : as in `study.Study.of`
    """
    _never_back(observations)
    if not observations.treated.any():
        raise NotEnoughDataError(2, 0, "machines with the feature")
    table, past = observations.rows, ~observations.study
    states = table[~past].groupby("period")["treated"].nunique()
    dropped = states.index[states < 2].tolist()
    study = table[~past & ~table["period"].isin(dropped).to_numpy()]
    for arm, what in ((True, "with the feature"), (False, "without it while others have it")):
        machines = study.loc[study["treated"] == arm, "machine"].nunique()
        if machines < 2:
            raise NotEnoughDataError(2, machines, f"machines {what}")
    fleet = _fleet(table[~past], table[past], jobs)
    stage = pd.factorize(study["period"], sort=True)[0].astype(np.int64)
    rows = study.assign(stage=stage, off=study["value"], on=study["value"]).reset_index(drop=True)
    rows = _with_covariates(rows, table[past], fleet[["job", "scale"]], link=link, load=load)
    sums, machines_of = sums_of(rows, fleet)
    treated = rows["treated"].to_numpy(dtype=np.bool_)
    since = np.full(len(machines_of), NEVER)
    np.minimum.at(since, machines_of.get_indexer(pd.Index(rows["machine"]))[treated], rows["stage"].to_numpy()[treated])
    with_it = np.unique(pd.Index(fleet["job"]).get_indexer(pd.Index(rows["job"]))[treated]).astype(np.int64)
    stages = Stages(sums, since, rows.loc[~treated, "machine"].nunique(), with_it)
    rows = rows.assign(off=rows["off"].where(~treated), on=rows["on"].where(treated))
    return StagedRollout(rows, fleet, stages, tuple(dropped))


def _never_back(observations: Observations) -> None:
    if (lost := observations.lost).any():
        first = observations.rows.loc[lost, ["machine", "period"]].sort_values(["machine", "period"]).iloc[0]
        raise InputError(
            f"machine {first['machine']} has lost the feature again in period {first['period']}, which is no staged "
            "roll-out"
        )


def _fleet(study: pd.DataFrame, past: pd.DataFrame, jobs: pd.DataFrame | None) -> pd.DataFrame:
    """Return job, quota and scale: the job's mean before, or without the feature, or at all."""
    if jobs is None:
        quota = (study["weight"] * _presence(study, "period")).groupby(study["job"]).sum()
        fleet = pd.DataFrame({"job": quota.index, "quota": quota.to_numpy(dtype=np.float64)})
    else:
        fleet = jobs[["job", "quota"]].reset_index(drop=True)
    scale = pd.Series(np.nan, index=pd.Index(fleet["job"]), dtype=np.float64)
    for known in (past, study[~study["treated"]], study):
        scale = scale.fillna(known.groupby("job")["value"].mean())
    return fleet.assign(scale=scale.fillna(1.0).to_numpy())


def _presence(table: pd.DataFrame, by: str) -> Floats:
    """Return the time present relative to the longest in the period or stage; rows count by it."""
    if "present_s" not in table:
        return np.ones(len(table))
    longest = table.groupby(by)["present_s"].transform("max")
    return np.asarray((table["present_s"] / longest).to_numpy(dtype=np.float64))


def stage_rows(before: pd.DataFrame, off: pd.DataFrame, on: pd.DataFrame, starts: Sequence[int]) -> pd.DataFrame:
    """Return one row per stay and stage, its periods taken together, with covariates from before the first stage.

    Parameters
    ----------
    before : observations of the past
    off, on : of the study without and with the feature, the same stays and periods row by row
    starts : the first period of each stage, ascending; the first is that of the study

    Returns
    -------
    DataFrame
        stage, period (the first of the stage), job, machine, quota, presence (in 0..1, relative to the longest of the
        stage), off, on, covariates x0, x1, …, and what else tells stays apart.

    Raises
    ------
    ValueError
        If `off` and `on` do not hold the same rows.
    """
    keys = identity(off)
    if len(off) != len(on) or (off[[*keys, "period"]].to_numpy() != on[[*keys, "period"]].to_numpy()).any():
        raise InputError("the study without and with the feature should hold the same stays and periods row by row")
    stage = np.searchsorted(starts, off["period"].to_numpy(), side="right") - 1
    group = off.assign(stage=stage).groupby([*keys, "stage"], sort=False, observed=True).ngroup().to_numpy()
    first = np.unique(group, return_index=True)[1]
    columns = [name for name in (*keys, "rack", "weight") if name in off]
    rows = off.iloc[first][columns].reset_index(drop=True).assign(stage=stage[first], treated=False)
    for name, table in (("off", off), ("on", on)):
        by = exposure(table)
        rows[name] = np.bincount(group, by * table["value"].to_numpy(dtype=np.float64)) / np.bincount(group, by)
    for name in ("present_s", "cpu_s"):
        if name in off:
            rows[name] = np.bincount(group, off[name].to_numpy(dtype=np.float64))
    rows = rows.assign(period=np.asarray(starts)[stage[first]], value=rows["off"])
    rows = rows.sort_values("stage", kind="stable").reset_index(drop=True)
    scale = before.groupby("job")["value"].mean().reindex(rows["job"].unique())
    scale = scale.fillna(rows.groupby("job")["off"].mean())
    return _with_covariates(rows, before, scale.rename("scale").rename_axis("job").reset_index())


def sums_of(rows: pd.DataFrame, jobs: pd.DataFrame) -> tuple[StageSums, pd.Index]:
    """Return the sums of rows by machine, job and stage, and the machines in the order of their numbers.

    Parameters
    ----------
    rows : as from `stage_rows`
    jobs : job, quota (of the whole fleet), scale (performance that values are relative to)
    """
    machine, machines = pd.factorize(rows["machine"], sort=True)
    index = pd.Index(jobs["job"])
    job = index.get_indexer(pd.Index(rows["job"])).astype(np.int64)
    if (job < 0).any():
        raise InputError(f"job {rows['job'].to_numpy()[job < 0][0]} is not among the fleet's jobs")
    stages = int(rows["stage"].max()) + 1
    pair = machine.astype(np.int64) * len(index) + job
    cell, inverse = np.unique(pair * stages + rows["stage"].to_numpy(), return_inverse=True)
    presence = rows["presence"].to_numpy(dtype=np.float64)
    scale = jobs["scale"].to_numpy(dtype=np.float64)
    names = [name for name in map(str, rows.columns) if name.startswith(COVARIATE) and name[1:].isdigit()]
    x = rows[names].to_numpy(dtype=np.float64)

    def summed(value: Floats) -> Floats:
        flat = value.reshape(len(value), -1).T
        sums = [np.bincount(inverse, presence * column, len(cell)) for column in flat]
        return np.stack(sums, axis=1, dtype=np.float64) if sums else np.zeros((len(cell), 0))

    y = np.stack([rows[name].to_numpy(dtype=np.float64) / scale[job] for name in ("off", "on")], axis=1)
    quota = jobs["quota"].to_numpy(dtype=np.float64)
    sums = StageSums(
        machine=cell // stages // len(index),
        job=cell // stages % len(index),
        stage=cell % stages,
        presence=summed(np.ones(len(rows)))[:, 0],
        squares=summed(presence)[:, 0],
        x=summed(x),
        y=summed(y),
        xy=summed(y[:, :, None] * x[:, None, :]).reshape(len(cell), 2, len(names)),
        xx=(x * presence[:, None]).T @ x,
        weight=quota / quota.sum() * scale,
    )
    return sums, pd.Index(machines)


def rolled_out(machines: int, sizes: Sequence[int], rng: np.random.Generator) -> Ints:
    """Draw a roll-out: the stage from which each machine has the feature, `NEVER` for most.

    Parameters
    ----------
    machines : M, of the fleet
    sizes : machines that have it from each stage on, ascending
    rng : where the draw comes from
    """
    since = np.full(machines, NEVER)
    since[rng.permutation(machines)[: sizes[-1]]] = np.searchsorted(sizes, np.arange(sizes[-1]), side="right")
    return since


def _with_covariates(
    rows: pd.DataFrame, before: pd.DataFrame, scales: pd.DataFrame, *, link: str = "shard", load: bool = True
) -> pd.DataFrame:
    """Return rows with their presence in the stage, and covariates centred within jobs."""
    past, study = ObservedRows.of(Observations.of(before), Observations.of(rows))
    known = covariates(past, study, scale_of(scales, study.jobs), link=link, load=load)[study.place]
    presence = _presence(rows, "stage")
    total = np.bincount(study.job, presence)[study.job]
    columns = {
        f"{COVARIATE}{k}": column - np.bincount(study.job, presence * column)[study.job] / total
        for k, column in enumerate(known.T)
    }
    return rows.rename(columns={"weight": "quota"}).assign(**columns, presence=presence)
