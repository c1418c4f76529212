"""How good an assignment from samples is, where the truth is known: a profile's judged at its fleet's true CPI."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis.profiling.affinity.advice import Judgement, advise, judge
from analysis.profiling.affinity.sampled import aligned, table_of, true_table
from analysis.profiling.affinity.table import Table

if TYPE_CHECKING:
    from analysis.profiling.database import Database


@dataclass(frozen=True, slots=True)
class Trial:
    """What there is to gain, how much of it samples gain, and how near annealing comes to the optimum."""

    gain: float
    """Share of the time that the best assignment at the true CPI saves."""
    promised: float
    """Share that the assignment from samples promises."""
    saved: float
    """Share that it saves at the true CPI."""
    sampled_over_possible: float
    """Saved over gain."""
    capacity_excess: float
    """Largest share by which it exceeds a true capacity."""
    jobs: int
    """Jobs that run on several platforms."""
    platforms: int
    anneal_gap: float
    """Relative excess of annealing's cost over the optimum, at the true CPI."""


def trial(database: "Database", truth_cpi: pd.DataFrame) -> Trial:
    """Return how an assignment from a profile's samples does at the true CPI.

    Parameters
    ----------
    database : a profile with cycles and instructions
    truth_cpi : application, platform, cycles, instructions over the horizon

    Raises
    ------
    QueryError, ProfileError, AffinityError
        As `table_of` and `advise` do.
    """
    frame = table_of(database)
    table, truth = Table.of(frame), true_table(truth_cpi, frame)
    advised = advise(table)
    found = judge(aligned(advised.shares, table, truth), truth)
    return _trial(advised.saving, found, truth)


def _trial(promised: float, found: Judgement, truth: Table) -> Trial:
    best, annealed = advise(truth), advise(truth, "anneal")
    return Trial(
        gain=found.possible,
        promised=promised,
        saved=found.saving,
        sampled_over_possible=found.sampled_over_possible,
        capacity_excess=found.capacity_excess,
        jobs=int(((truth.load > 0).sum(axis=1) > 1).sum()),
        platforms=len(truth.platforms),
        anneal_gap=annealed.after / best.after - 1.0,
    )
