"""Staged roll-outs drawn again and again: what `staged` says of them, from sums by machine, job and stage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects import wave_sums
from analysis.effects.cells import COVARIATE, Cells
from analysis.effects.covariates import covariates
from analysis.effects.method import Answers, Effect, concluded
from analysis.effects.per_job import between
from analysis.effects.stays import exposure, identity, stays
from analysis.effects.study import Study
from analysis.effects.study import example as small
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

NEVER = 2**30
"""Stage from which a machine has the feature that does not get it."""
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """`staged` of roll-outs by potential outcomes, one after another, in compiled code."""

    sums: wave_sums.Sums
    since: Ints
    """(R, M) the stage from which each machine has the feature in each draw, or `NEVER`."""
    name: str = "staged"
    """Its name in tables and on the command line."""

    def many(self, cells: Cells, treated: Bools) -> Answers:
        """Return what it says of the R draws that it was made for.

        Parameters
        ----------
        cells : of M machines; it has sums by stage of its own
        treated : (R, M) machines that get the feature

        Returns
        -------
        Answers
            NaN where no job is seen in both states in one stage.

        Raises
        ------
        ValueError
            If other machines are treated than those that it knows the stages of.

        Examples
        --------
        >>> made, method = example()
        >>> method.many(made.cells, made.treated[None, :]).change.round(2)
        array([0.1])
        """
        if treated.shape != self.since.shape or ((self.since < NEVER) != treated).any():
            raise InputError(f"stages are known of other machines than the {int(treated.sum())} with the feature")
        if len(cells.machines) != treated.shape[1]:
            raise InputError(f"stages are known of {treated.shape[1]} machines, not of {len(cells.machines)}")
        found = np.array([_answer(self.sums, draw) for draw in self.since]).reshape(-1, 3)
        return Answers(found[:, 0], found[:, 1], found[:, 2])

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment, its only draw; of a table `staged` says the same.

        Raises
        ------
        NotEnoughDataError
            If no job is seen in both states in one stage.
        ValueError
            As for `many`.

        Examples
        --------
        >>> made, method = example()
        >>> method.estimate(made).machines
        6
        """
        return concluded(self, study, confidence)


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

    Examples
    --------
    >>> past = pd.DataFrame({"period": 0, "job": "a", "machine": [1, 2], "weight": 1.0, "value": 2.0, "treated": 0})
    >>> now = pd.concat([past.assign(period=period) for period in (1, 2, 3)], ignore_index=True)
    >>> stage_rows(past, now, now.assign(value=3.0), [1, 2])[["stage", "machine", "off", "on"]].values.tolist()
    [[0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 2.0, 3.0], [1.0, 1.0, 2.0, 3.0], [1.0, 2.0, 2.0, 3.0]]
    """
    keys = identity(off)
    if len(off) != len(on) or (off[[*keys, "period"]].to_numpy() != on[[*keys, "period"]].to_numpy()).any():
        raise InputError("the study without and with the feature should hold the same stays and periods row by row")
    stage = np.searchsorted(starts, off["period"].to_numpy(), side="right") - 1
    group = off.assign(stage=stage).groupby([*keys, "stage"], sort=False, observed=True).ngroup().to_numpy()
    first = np.unique(group, return_index=True)[1]
    kept = [name for name in (*keys, "rack", "weight") if name in off]
    rows = off.iloc[first][kept].reset_index(drop=True).assign(stage=stage[first], treated=False)
    for name, table in (("off", off), ("on", on)):
        by = exposure(table)
        rows[name] = np.bincount(group, by * table["value"].to_numpy(dtype=np.float64)) / np.bincount(group, by)
    for name in ("present_s", "cpu_s"):
        if name in off:
            rows[name] = np.bincount(group, off[name].to_numpy(dtype=np.float64))
    rows = rows.assign(period=np.asarray(starts)[stage[first]], value=rows["off"])
    return _with_covariates(rows.sort_values("stage", kind="stable").reset_index(drop=True), before)


def sums_of(rows: pd.DataFrame, jobs: pd.DataFrame) -> tuple[wave_sums.Sums, pd.Index]:
    """Return the sums of rows by machine, job and stage, and the machines in the order of their numbers.

    Parameters
    ----------
    rows : as from `stage_rows`
    jobs : job, quota (of the whole fleet), scale (performance that values are relative to)

    Examples
    --------
    >>> row = {"machine": [1, 2], "stage": 0, "job": "a", "presence": 1.0, "off": [2.0, 4.0], "on": 6.0}
    >>> made, machines = sums_of(pd.DataFrame(row), pd.DataFrame({"job": ["a"], "quota": [3.0], "scale": [2.0]}))
    >>> made.y.tolist(), machines.tolist()
    ([[1.0, 3.0], [2.0, 3.0]], [1, 2])
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
        return np.stack(sums, axis=1) if sums else np.zeros((len(cell), 0))

    y = np.stack([rows[name].to_numpy(dtype=np.float64) / scale[job] for name in ("off", "on")], axis=1)
    quota = jobs["quota"].to_numpy(dtype=np.float64)
    return wave_sums.Sums(
        machine=cell // stages // len(index),
        job=cell // stages % len(index),
        stage=cell % stages,
        held=summed(np.ones(len(rows)))[:, 0],
        squares=summed(presence)[:, 0],
        x=summed(x),
        y=summed(y),
        xy=summed(y[:, :, None] * x[:, None, :]).reshape(len(cell), 2, len(names)),
        xx=(x * presence[:, None]).T @ x,
        weight=quota / quota.sum() * scale,
    ), pd.Index(machines)


def rolled_out(machines: int, sizes: Sequence[int], rng: np.random.Generator) -> Ints:
    """Draw a roll-out: the stage from which each machine has the feature, `NEVER` for most.

    Parameters
    ----------
    machines : M, of the fleet
    sizes : machines that have it from each stage on, ascending
    rng : where the draw comes from

    Examples
    --------
    >>> np.bincount(rolled_out(9, [1, 2, 5], np.random.default_rng(1)).clip(max=3))
    array([1, 1, 3, 4])
    """
    since = np.full(machines, NEVER)
    since[rng.permutation(machines)[: sizes[-1]]] = np.searchsorted(sizes, np.arange(sizes[-1]), side="right")
    return since


def example() -> tuple[Study, Waves]:
    """Return a small study with an effect of 10%, and its roll-out in two stages to 6 of 12 machines.

    Examples
    --------
    >>> example()[1].since.tolist()[0][:3]
    [0, 1073741824, 1]
    """
    study = small()
    rng = np.random.default_rng(1)
    row = {"job": np.arange(48) % 4, "machine": np.arange(48) // 4, "weight": 1.0, "treated": 0}
    days = [pd.DataFrame(row | {"period": day, "value": 1.0 + 0.01 * rng.standard_normal(48)}) for day in range(3)]
    off = pd.concat(days[1:], ignore_index=True)
    rows = stage_rows(days[0], off, off.assign(value=1.1 * off["value"]), [1, 2])
    sums, _ = sums_of(rows, pd.DataFrame({"job": range(4), "quota": 1.0, "scale": 1.0}))
    since = np.where(study.treated, (np.arange(12) // 2) % 2, NEVER)
    return study, Waves(sums, since[None, :])


def _with_covariates(rows: pd.DataFrame, before: pd.DataFrame) -> pd.DataFrame:
    """Return rows with their presence in the stage, and covariates centred within jobs."""
    whole = stays(rows)
    scale = before.groupby("job")["value"].mean().reindex(whole["job"].unique())
    scale = scale.fillna(rows.groupby("job")["off"].mean())
    past = stays(before) if len(before) else before
    known = covariates(whole, past, rows, before, scale.rename("scale").rename_axis("job").reset_index())
    keys = identity(rows)
    made = rows.merge(pd.concat([whole[keys], known], axis=1), on=keys).rename(columns={"weight": "quota"})
    presence = np.ones(len(made))
    if "present_s" in made:
        presence = (made["present_s"] / made.groupby("stage")["present_s"].transform("max")).to_numpy(dtype=np.float64)
    job = pd.factorize(made["job"])[0]
    held = np.bincount(job, presence)[job]
    for name in known.columns:
        made[name] -= np.bincount(job, presence * made[name].to_numpy())[job] / held
    return made.assign(presence=presence)


class _Jobs(NamedTuple):
    """How jobs are pooled: what each effect counts for, and the effects that residuals are taken from."""

    gain: Floats
    fitted: Floats
    left: float
    change: float


def _answer(sums: wave_sums.Sums, since: Ints) -> tuple[float, float, float]:
    """Return change, standard error and degrees of freedom of one draw."""
    seen = wave_sums.seen(sums, since)
    if not seen.there.any():
        return np.nan, np.nan, np.nan
    pooled = _pooled(sums, seen)
    influence = wave_sums.influences(sums, since, seen, pooled.gain, pooled.fitted)
    ever = since < NEVER
    parts, freedoms = [], []
    for arm in (ever, ~ever):
        machines = int(arm.sum())
        few = machines / (machines - 1) if machines > 1 else 1.0
        parts.append(float((influence[arm] ** 2).sum()) * few)
        freedoms.append(max(machines - 1.0, 1.0))
    total = sum(parts) + pooled.left
    guessed = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
    freedom = max(total**2 / guessed, freedoms[0]) if guessed > 0 else freedoms[0]
    return pooled.change, float(np.sqrt(total)), freedom


def _pooled(sums: wave_sums.Sums, seen: wave_sums.Seen) -> _Jobs:
    """Return jobs' effects pooled: each shrunk towards the others by how little is known of it."""
    there, variance = seen.there, seen.variance
    weight = sums.weight * seen.level
    share = weight / weight.sum()
    within = max(between(seen.effect[there], variance[there]), _TINY) if there.sum() > 1 else _TINY
    trust = np.where(there, within / (within + np.where(there, variance, 1.0)), 0.0)
    centre = share * trust / (share * trust).sum()
    gain: Floats = share * trust + (share * (1 - trust)).sum() * centre
    middle = float((centre * seen.effect).sum())
    fitted: Floats = np.where(there, middle + trust * (seen.effect - middle), 0.0)
    left = within * float(((gain - share) ** 2).sum())
    return _Jobs(gain, fitted, left, float((gain * seen.effect).sum()))
