"""Cycles per instruction of pairs that were sampled little or not at all.

The best of many noisy numbers is too good to be true: an optimum over sampled CPI chooses pairs whose CPI was
underestimated (Smith and Winkler 2006, the optimiser's curse). So every log CPI is taken as the sum of an effect of
the job, one of the platform and an interaction, and the interaction is drawn towards 0 by as much as its own sampling
error makes advisable (empirical Bayes; Efron and Morris 1975): by τ² / (τ² + σ²), where τ² is the variance of
interactions between pairs. It is estimated from what residuals exceed their sampling errors (Paule and Mandel 1982).
Where a pair was not sampled, it is predicted: by the cross-platform model and what effects correct it by, or without
spec sheets and counters by the effects alone (`terms`). The error is that with which sampled pairs are predicted that
were left out and predicted by the rest (`compare`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.affinity.effects import LEAST_SE, fit, left_out, variance_until
from analysis.profiling.affinity.table import AffinityTable
from analysis.profiling.affinity.terms import STRUCTURES, Structure, structure_of, terms_of, without
from models.arrays import Bools, Floats

_LEAST_CELLS = 10


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Predictions of n sampled pairs, each without its own samples of any event."""

    log_error: Floats
    """(n,) log of the sampled over the predicted CPI."""
    square: Floats
    """(n,) squared error that samples and effects make expect of it, without any interaction."""
    cycles: Floats
    """(n,) cycles of the pairs."""

    @property
    def spread(self) -> float:
        """Variance of interactions where errors are as large as expected (Paule and Mandel 1982); 0 without pairs."""

        def excess(spread: float) -> bool:
            squares = self.log_error**2 / np.maximum(self.square + spread, 1e-300)
            return float(squares.sum()) > len(self.log_error)

        return round(variance_until(excess), 12)

    def error(self, weighted: bool = False) -> float:
        """Return the mean of |predicted / sampled − 1|, of pairs or, weighted, of cycles; NaN without pairs."""
        if not len(self.log_error):
            return float("nan")
        return float(np.average(np.abs(np.expm1(-self.log_error)), weights=self.cycles if weighted else None))


@dataclass(frozen=True, slots=True, eq=False)
class ShrunkCpi:
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


def estimate(table: AffinityTable) -> ShrunkCpi:
    """Return the CPI of every pair: as it is where known exactly, shrunk where sampled, predicted where not.

    Parameters
    ----------
    table : CPI with standard errors, 0 where known exactly
    """
    structure = structure_of(table)
    sampled = table.allowed & np.isfinite(table.cpi)
    exact = sampled & (table.cpi_se <= LEAST_SE * np.where(sampled, table.cpi, 1.0))
    if (exact == table.allowed).all():
        return ShrunkCpi(np.where(sampled, table.cpi, np.nan), np.zeros_like(table.cpi), 0.0, 0, 0, structure)
    terms = terms_of(table, structure)
    log_cpi, square = terms.log_cpi, terms.square
    spread, effects, effect_square = fit(terms)
    trust = np.where(exact, 1.0, spread / (spread + square)) if spread > 0 else exact.astype(np.float64)
    middle = np.where(trust > 0, effects + trust * (log_cpi - effects), effects)
    variance = trust * np.where(exact, 0.0, np.where(sampled, square, 0.0)) + (1.0 - trust) ** 2 * effect_square
    left = held_out(table, structure) if table.unobserved.any() else None
    between = left.spread if left is not None and len(left.cycles) >= _LEAST_CELLS else spread
    variance = np.where(sampled, variance, between + effect_square)
    return ShrunkCpi(
        np.where(exact, table.cpi, np.where(table.allowed, np.exp(terms.offset + middle), np.nan)),
        np.sqrt(np.where(table.allowed, variance, 0.0)),
        float(np.sqrt(spread)),
        int((sampled & ~exact).sum()),
        int(table.unobserved.sum()),
        structure,
        left,
    )


_MOST_CELLS = 1000


def held_out(table: AffinityTable, structure: Structure) -> HeldOut:
    """Return the errors of pairs predicted without their own samples, of jobs that were sampled elsewhere too.

    Of more than 1,000 pairs, at most so many in even distances are predicted. The variance of interactions is held.

    Parameters
    ----------
    table : CPI with standard errors
    structure : of those that the table allows
    """
    terms = terms_of(table, structure)
    cells = _cells(terms.observed)
    spread = fit(terms)[0] if cells.any() else 0.0
    errors = np.zeros((2, *cells.shape))
    for i in np.flatnonzero(cells.any(axis=0)):
        jobs = np.flatnonzero(cells[:, i])
        less = terms_of(without(table, int(i)), structure, table)
        effect, square = left_out(terms, less, int(i), jobs, spread)
        observed = terms.log_cpi[jobs, i] + terms.offset[jobs, i]
        errors[:, jobs, i] = observed - less.offset[jobs, i] - effect, square + terms.square[jobs, i]
    return HeldOut(errors[0][cells], errors[1][cells], (np.nan_to_num(table.cpi) * table.load)[cells])


def compare(table: AffinityTable, known: HeldOut | None = None) -> pd.DataFrame:
    """Return how well each structure that a table allows predicts pairs that are left out.

    Parameters
    ----------
    table : CPI with standard errors
    known : errors of the richest structure, if they were asked before

    Returns
    -------
    DataFrame
        structure, cells, weighted and unweighted (mean relative errors, of cycles and of pairs), used (whether it is
        the one by which pairs are filled).

    Examples
    --------
    >>> rows = [("a", "p", 1.0), ("a", "q", 2.0), ("b", "p", 3.0), ("b", "q", 6.0)]
    >>> frame = pd.DataFrame(rows, columns=["job", "platform", "cpi"]).assign(load=1.0, capacity=9.0)
    >>> compare(AffinityTable.of(frame)).round(9).to_dict("records")
    [{'structure': 'effects', 'cells': 4, 'weighted': 0.0, 'unweighted': 0.0, 'used': True}]
    """
    used = structure_of(table)
    models = [model for model in STRUCTURES if model.within(used)]
    rows = [(model, known if known is not None and model == used else held_out(table, model)) for model in models]
    return pd.DataFrame(
        {
            "structure": [model.name for model, _ in rows],
            "cells": [len(left.cycles) for _, left in rows],
            "weighted": [left.error(weighted=True) for _, left in rows],
            "unweighted": [left.error() for _, left in rows],
            "used": [model == used for model, _ in rows],
        }
    )


def _cells(sampled: Bools) -> Bools:
    """Return (J, I) which pairs are left out in turn."""
    cells: Bools = sampled & (sampled.sum(axis=1, keepdims=True) > 1)
    order = np.flatnonzero(cells)
    if len(order) > _MOST_CELLS:
        cells = np.zeros_like(cells)
        cells.flat[order[:: -(-len(order) // _MOST_CELLS)]] = True
    return cells
