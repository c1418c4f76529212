"""Fleets whose every machine can switch a feature on and off, and crossovers of them that were observed."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from analysis.effects.cells import Cells, cells
from analysis.effects.course_error import course_variance
from analysis.effects.crossovers import gains
from analysis.effects.stays import checked, exposure, fleet_of, identity, racks_of, scale_of
from analysis.effects.switching import Switched, switched
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools

_NOTHING = "jobs seen both with and without the feature in one period of a crossover"


@dataclass(frozen=True, slots=True, eq=False)
class Switchable:
    """A fleet whose every machine can switch the feature on and off, to draw crossovers from."""

    made: Switched
    fleet: pd.DataFrame
    """job, quota, scale."""
    racks: pd.Series | None = None

    @classmethod
    def of(cls, never: pd.DataFrame, arms: tuple[pd.DataFrame, pd.DataFrame], jobs: pd.DataFrame | None = None) -> Self:
        """Return the fleet that these observations tell of.

        Parameters
        ----------
        never : observations in which nothing ever has the feature
        arms : of the same stays and periods, row by row: switched off, and on, at that time
        jobs : as in `study.Study.of`

        Raises
        ------
        ValueError
            As in `study.Study.of`.

        Examples
        --------
        >>> row = {"period": [0, 1, 0, 1], "job": "a", "machine": [1, 1, 2, 2], "weight": 1.0, "treated": 0}
        >>> off = pd.DataFrame(row | {"value": 2.0})
        >>> made = Switchable.of(off, (off, off.assign(value=2.2)))
        >>> made.cells(np.array([[True, False], [False, True]])).y[:, 1].round(9)
        array([1.1, 1.1])
        """
        never, off, on = (checked(table) for table in (never, *arms))
        fleet = fleet_of(never.iloc[:0], never, jobs)
        table = never.assign(never=never["value"], off=off["value"], on=on["value"])
        by = np.stack([exposure(off), exposure(on)], axis=1)
        return cls(switched(table, identity(never), by, scale_of(fleet)), fleet, racks_of(never))

    def cells(self, plan: Bools) -> Cells:
        """Return the cells of a plan, (M, P): who has the feature when."""
        return _crossed(self.made.planned(plan), self.fleet, self.racks)


def _crossed(made: Switched, fleet: pd.DataFrame, racks: pd.Series | None) -> Cells:
    """Return the cells of a crossover: of all machines that have a stay seen in both states."""
    rows = made.gains().dropna(subset=["gain"])
    if rows.empty:
        raise NotEnoughDataError(1, 0, _NOTHING)
    rows = rows.assign(off=np.nan, on=(1.0 + rows["gain"]) * rows["job"].map(scale_of(fleet)))
    whole = cells(rows, fleet, racks=racks, known=True, shared=course_variance(made))
    return replace(whole, switched=made.of(whole.machines))


def observed(study: pd.DataFrame, fleet: pd.DataFrame, racks: pd.Series | None, few: pd.Index | None) -> Cells:
    """Return the cells of a crossover that was observed.

    Parameters
    ----------
    study : checked observations
    fleet : job, quota, scale
    racks : rack of each machine, indexed by machine
    few : machines that switched, if there are enough others that never did; else what jobs do in common is learnt from
        those that switched

    Raises
    ------
    NotEnoughDataError
        If no job was seen both with and without the feature where they can be compared.

    Examples
    --------
    >>> row = {"period": [0, 1] * 4, "job": "a", "machine": [1, 1, 2, 2, 3, 3, 4, 4], "weight": 1.0}
    >>> treated = np.array([True, False, False, True, False, False, False, False])
    >>> table = pd.DataFrame(row | {"treated": treated, "value": np.where(treated, 2.2, 2.0)})
    >>> fleet = pd.DataFrame({"job": ["a"], "quota": [4.0], "scale": [2.0]})
    >>> observed(table, fleet, None, pd.Index([1, 2])).y[:, 1].round(9)
    array([1.1, 1.1])
    """
    by, keys, scale = exposure(study), identity(study), scale_of(fleet)
    if few is None:
        own = gains(study, keys, by, scale)
        return cells(own.stays, fleet, racks=racks, known=True, shared=own.shared)
    off, on = ~study["treated"], study["treated"]
    switching, always = study["machine"].isin(few), study.groupby("machine")["treated"].transform("all")
    seen = {"off": off & switching, "on": on & switching, "never": off & ~switching}
    table = study.assign(**{name: study["value"].where(where) for name, where in seen.items()})
    # A period in which nothing is without the feature all along cannot be told from the feature.
    told = ~always & seen["never"].groupby(study["period"]).transform("any")
    if not (told & switching).any():
        raise NotEnoughDataError(1, 0, _NOTHING)
    return _crossed(switched(table[told], keys, np.stack([by, by], axis=1)[told], scale), fleet, racks)
