"""A feature of one job, such as new code: the machines that hold it, and nothing else that they hold."""

from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.effects.cells import Cells
from analysis.effects.stays import stays
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats


def only(cells: Cells, job: object, before: pd.DataFrame | None = None) -> Cells:
    """Return the cells of one job, whose change is then what estimators estimate.

    Covariates stay what they were, so what the machine's other residents tell of it is not lost.

    Parameters
    ----------
    cells : of a fleet
    job : one of its jobs
    before : observations before the study, for `Cells.before`; without it that is unknown

    Raises
    ------
    NotEnoughDataError
        If no machine holds the job.

    Examples
    --------
    >>> from analysis.effects.study import example
    >>> made = only(example().cells, 2)
    >>> len(made.job), made.jobs.tolist(), made.share.tolist()
    (12, [2], [1.0])
    """
    place = int(cells.jobs.get_indexer(pd.Index([job]))[0])
    kept = np.flatnonzero(cells.job == place)
    if place < 0 or not len(kept):
        raise NotEnoughDataError(1, 0, f"machines with job {job}")
    machine = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start))[kept]
    per_cell = ("count", "instances", "quota", "x", "xx", "y", "yy", "xy")
    machines = cells.machines[machine]
    past = np.zeros((len(kept), 2))
    if before is not None:
        seen = stays(before[before["job"] == job]) if (before["job"] == job).any() else before.iloc[:0]
        past = _past(seen, machines)
    return replace(
        cells,
        start=np.arange(len(kept) + 1),
        job=np.zeros(len(kept), dtype=np.int64),
        **{name: getattr(cells, name)[kept] for name in per_cell},
        share=np.ones(1),
        scale=cells.scale[[place]],
        before=past,
        machines=machines,
        jobs=cells.jobs[[place]],
        rack=cells.rack[machine],
    )


def _past(seen: pd.DataFrame, machines: pd.Index) -> Floats:
    """Return quota times performance, and quota, of the job's stays on each machine before the study; (M, 2)."""
    if seen.empty:
        return np.zeros((len(machines), 2))
    quota = seen["weight"] * seen["presence"]
    sums = seen.assign(value=quota * seen["value"], quota=quota).groupby("machine")[["value", "quota"]].sum()
    return sums.reindex(machines).fillna(0.0).to_numpy(dtype=np.float64)
