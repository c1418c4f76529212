"""Who gets a feature when: the machines of a planned experiment, drawn once, as a table to roll out by."""

import numpy as np
import pandas as pd

from analysis.effects.planning import DesignPlan
from analysis.effects.switching import coins
from models.arrays import Bools, Floats, Ints

COLUMNS = ("machine", "start_s", "end_s", "treated")
_DRAWN = 104_729
"""Beside the seed: the machines that are taken are no draw that a rehearsal has seen."""


def assigned(plan: DesignPlan, seed: int = 1) -> pd.DataFrame:
    """Return who has the feature when, for one experiment as it was planned.

    Machines are drawn as in the rehearsals, of those that the latest stretch of the past holds. Where they switch, a
    coin of each machine's own says for each pair of periods which of both has the feature.

    Parameters
    ----------
    plan : a design with so many machines
    seed : of the draw

    Returns
    -------
    pd.DataFrame
        machine, start_s, end_s (since the study begins), treated (0 or 1), one row per machine, or per period of a
        machine that switches, in this order.
    """
    rehearsal, rng = plan.rehearsal, np.random.default_rng((seed, _DRAWN))
    course = rehearsal.courses[-1]
    _, drawn = course.arrange(plan.forecast.machines, 1, rng)
    machines, end_s = course.cells.machines, 3600.0 * rehearsal.hours
    if not rehearsal.switching:
        return _table(machines, np.arange(len(machines)), np.array([0.0, end_s]), drawn[0, :, None])
    edges = np.linspace(0.0, end_s, rehearsal.switching + 1)
    which, others = np.flatnonzero(drawn[0]), np.flatnonzero(~drawn[0])
    switching = _table(machines, which, edges, coins((len(which), rehearsal.switching), rng))
    never = _table(machines, others, edges[[0, -1]], np.zeros((len(others), 1), dtype=np.bool_))
    return pd.concat([switching, never]).sort_values(["machine", "start_s"], ignore_index=True)


def _table(machines: pd.Index, which: Ints, edges_s: Floats, having: Bools) -> pd.DataFrame:
    """Return a row for each of these machines and each span between two edges, (P + 1,), given the states, (n, P)."""
    periods = having.shape[1]
    return pd.DataFrame(
        {
            "machine": machines[np.repeat(which, periods)],
            "start_s": np.tile(edges_s[:-1], len(which)),
            "end_s": np.tile(edges_s[1:], len(which)),
            "treated": having.ravel().astype(np.int8),
        }
    )
