"""Cycles per instruction of pairs that were sampled little or not at all.

The best of many noisy numbers is too good to be true: an optimum over sampled CPI chooses pairs whose CPI was
underestimated (Smith and Winkler 2006, the optimiser's curse). So every log CPI is taken as the sum of an effect of
the job, one of the platform and an interaction, and the interaction is drawn towards 0 by as much as its own sampling
error makes advisable (empirical Bayes; Efron and Morris 1975): by τ² / (τ² + σ²), where τ² is the variance of
interactions between pairs. It is estimated from what residuals exceed their sampling errors (Paule and Mandel 1982).
Where a pair was not sampled, it is predicted: by the cross-platform model and what effects correct it by, or without
spec sheets and counters by the effects alone (`terms`). The error is that with which sampled pairs are predicted that
were left out (`held_out`).
"""

from dataclasses import dataclass

import numpy as np

from analysis.profiling.affinity.effects import LEAST_SE, fit
from analysis.profiling.affinity.held_out import HeldOut, held_out
from analysis.profiling.affinity.table import Table
from analysis.profiling.affinity.terms import Structure, structure_of, terms_of
from models.arrays import Floats

_LEAST_CELLS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What is believed of every pair's CPI."""

    cpi: Floats
    """(J, I) cycles per instruction: the median of what is believed; NaN where a job may not run."""
    log_se: Floats
    """(J, I) standard deviation of its logarithm; 0: known exactly."""
    interaction_sd: float
    """Spread of the interactions of job and platform, in logarithms."""
    shrunk: int
    """Pairs that were drawn towards what is predicted of them."""
    filled: int
    """Pairs that were not sampled."""
    structure: Structure
    """What pairs that were not sampled are predicted by."""
    left_out: HeldOut | None = None
    """How well it predicts sampled pairs that are left out; none if there is no pair to fill."""


def estimate(table: Table) -> Estimate:
    """Return the CPI of every pair: as it is where known exactly, shrunk where sampled, predicted where not.

    Parameters
    ----------
    table : CPI with standard errors, 0 where known exactly

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a", "p", 1, 1.0, 9), ("a", "q", 1, 2.0, 9), ("b", "p", 1, 3.0, 9), ("b", "q", 1, 6.0, 9)]
    >>> frame = pd.DataFrame([*rows, ("c", "p", 1, 5.0, 9), ("c", "q", 0, np.nan, 9)])
    >>> found = estimate(Table.of(frame.set_axis(["job", "platform", "load", "cpi", "capacity"], axis=1)))
    >>> found.cpi.round(6).tolist(), found.filled
    ([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]], 1)
    """
    structure = structure_of(table)
    seen = table.allowed & np.isfinite(table.cpi)
    exact = seen & (table.cpi_se <= LEAST_SE * np.where(seen, table.cpi, 1.0))
    if (exact == table.allowed).all():
        return Estimate(np.where(seen, table.cpi, np.nan), np.zeros_like(table.cpi), 0.0, 0, 0, structure)
    terms = terms_of(table, structure)
    log_cpi, square = terms.log_cpi, terms.square
    spread, effects, effect_square = fit(terms)
    kept = np.where(exact, 1.0, spread / (spread + square)) if spread > 0 else exact.astype(np.float64)
    middle = np.where(kept > 0, effects + kept * (log_cpi - effects), effects)
    variance = kept * np.where(exact, 0.0, np.where(seen, square, 0.0)) + (1.0 - kept) ** 2 * effect_square
    left = held_out(table, structure) if table.unobserved.any() else None
    between = left.spread if left is not None and len(left.cycles) >= _LEAST_CELLS else spread
    variance = np.where(seen, variance, between + effect_square)
    return Estimate(
        np.where(exact, table.cpi, np.where(table.allowed, np.exp(terms.offset + middle), np.nan)),
        np.sqrt(np.where(table.allowed, variance, 0.0)),
        float(np.sqrt(spread)),
        int((seen & ~exact).sum()),
        int(table.unobserved.sum()),
        structure,
        left,
    )
