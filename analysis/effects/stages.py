"""Staged roll-outs: machines get a feature in waves, and are controls of the waves after theirs until then.

Sums by machine, job and stage are all that the estimator `staged` needs: of one table, or of potential outcomes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.cells import (
    COVARIATE,
    NEVER,
    Stages,
    StageSums,
    StudyStays,
    centred,
    numbered_stays,
    study_stays,
    sums_of_columns,
)
from analysis.effects.covariates import covariates
from analysis.effects.observations import Observations, exposure, identity, quotas_of
from analysis.effects.stays import ObservedRows, job_means, quotas_seen, scale_of, with_scales
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats, Ints
from models.errors import InputError


class StagedRollout(NamedTuple):
    """A staged roll-out as it was observed."""

    stays: StudyStays
    """One per stay and period in which both states were seen."""
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
    past, study = ObservedRows.of(observations)[0].split(observations.study)
    total, having = (np.bincount(study.period, part, len(observations.periods)) for part in (None, study.treated))
    mixed = (having > 0) & (having < total)
    rows = study[mixed[study.period]]
    for arm, what in ((True, "with the feature"), (False, "without it while others have it")):
        machines = len(np.unique(rows.machine[rows.treated == arm]))
        if machines < 2:
            raise NotEnoughDataError(2, machines, f"machines {what}")
    fleet, stage = _fleet(past, study, jobs), np.cumsum(mixed)[rows.period] - 1
    presence = _presence(rows.present, stage)
    known = covariates(past, rows, scale_of(fleet, rows.jobs), link=link, load=load)[rows.place]
    x, values = centred(known, rows.job, presence), np.stack([rows.value, rows.value], axis=1)
    both = numbered_stays(rows, slice(None), fleet, presence, values, x=x)
    since = np.full(len(both.machines), NEVER)
    np.minimum.at(since, both.machine[rows.treated], stage[rows.treated])
    controls = len(np.unique(rows.machine[~rows.treated]))
    stages = Stages(stage_sums(both, stage), since, controls, np.unique(both.job[rows.treated]))
    arms = np.where(np.stack([~rows.treated, rows.treated], axis=1), values, np.nan)
    dropped = observations.periods[(total > 0) & ~mixed].tolist()
    return StagedRollout(both._replace(arms=arms, measured=arms), stages, tuple(dropped))


def _never_back(observations: Observations) -> None:
    if (lost := observations.lost).any():
        first = observations.rows.loc[lost, ["machine", "period"]].sort_values(["machine", "period"]).iloc[0]
        raise InputError(
            f"machine {first['machine']} has lost the feature again in period {first['period']}, which is no staged "
            "roll-out"
        )


def _fleet(past: ObservedRows, study: ObservedRows, jobs: pd.DataFrame | None) -> pd.DataFrame:
    """Return job, quota and scale: the job's mean before, or without the feature, or at all."""
    if jobs is None:
        quotas = quotas_seen(study, study.job, study.weight * _presence(study.present, study.period))
    else:
        quotas = quotas_of(jobs)
    means = [job_means(rows, rows.job, rows.value, np.ones(len(rows))) for rows in (past, study.controls, study)]
    return with_scales(quotas, study.jobs, means)


def _presence(present: Floats, stage: Ints) -> Floats:
    """Return the time present relative to the longest in the period or stage; rows count by it."""
    longest = np.zeros(int(stage.max(initial=-1)) + 1)
    np.maximum.at(longest, stage, present)
    return np.asarray(present / longest[stage])


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
    whole = study_stays(rows, jobs)
    return stage_sums(whole, rows["stage"].to_numpy(dtype=np.int64)), whole.machines


def stage_sums(stays: StudyStays, stage: Ints) -> StageSums:
    """Return the sums of stays by machine, job and stage.

    Parameters
    ----------
    stays : one for each stage that they were there in, with values in both arms
    stage : (S,)
    """
    stages, jobs, presence = int(stage.max()) + 1, len(stays.fleet), stays.presence
    scale, quota = (stays.fleet[name].to_numpy(dtype=np.float64) for name in ("scale", "quota"))
    cell, inverse = np.unique((stays.machine * jobs + stays.job) * stages + stage, return_inverse=True)
    x, y = stays.x.T, [arm / scale[stays.job] for arm in stays.arms.T]

    def sums(columns: Iterable[Floats], count: int) -> Floats:
        return sums_of_columns(inverse, len(cell), (presence * column for column in columns), count)

    return StageSums(
        machine=cell // stages // jobs,
        job=cell // stages % jobs,
        stage=cell % stages,
        presence=sums([np.ones(len(presence))], 1)[:, 0],
        squares=sums([presence], 1)[:, 0],
        x=sums(x, len(x)),
        y=sums(y, 2),
        xy=sums((arm * column for arm in y for column in x), 2 * len(x)).reshape(len(cell), 2, len(x)),
        xx=(x * presence) @ x.T,
        weight=quota / quota.sum() * scale,
    )


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


def _with_covariates(rows: pd.DataFrame, before: pd.DataFrame, scales: pd.DataFrame) -> pd.DataFrame:
    """Return rows with their presence in the stage, and covariates centred within jobs."""
    past, study = ObservedRows.of(Observations.of(before), Observations.of(rows))
    presence = _presence(study.present, rows["stage"].to_numpy(dtype=np.int64))
    x = centred(covariates(past, study, scale_of(scales, study.jobs))[study.place], study.job, presence)
    columns = {f"{COVARIATE}{k}": column for k, column in enumerate(x.T)}
    return rows.rename(columns={"weight": "quota"}).assign(**columns, presence=presence)
