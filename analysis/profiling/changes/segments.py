"""When a series' level changed: the partition of its bins with the greatest likelihood less a price for each change."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit

_PRIOR_SAMPLES = 10.0
"""Samples by which an hour's factor is drawn to 1."""
_MOST_PIECES = 600
"""Pieces from which neighbouring bins are put together before they are partitioned."""


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """K stretches of constant level."""

    start: Ints
    """(K,) first bins."""
    counts: Floats
    """(K,) samples."""
    expected: Floats
    """(K,) samples expected at level 1."""

    @property
    def log_level(self) -> Floats:
        """(K,) logarithm of counts over expected; half a sample is added to both."""
        return np.log((self.counts + 0.5) / (self.expected + 0.5))

    def error(self, dispersion: float) -> Floats:
        """Return (K,) standard errors of `log_level`."""
        return np.sqrt(dispersion / (self.counts + 0.5))

    def apart(self, dispersion: float) -> Floats:
        """Return (K,) roots of the likelihood ratio of another level than the first stretch's; 0 samples tell, too."""
        counts = np.stack([self.counts, np.full(len(self.counts), self.counts[0])])
        expected = np.stack([self.expected, np.full(len(self.counts), self.expected[0])])
        mean = expected * (counts.sum(axis=0) / np.maximum(expected.sum(axis=0), 1e-300))
        ratio = np.where(counts > 0, counts / np.maximum(mean, 1e-300), 1.0)
        return np.asarray(np.sqrt(np.maximum(2.0 * (counts * np.log(ratio)).sum(axis=0), 0.0) / dispersion))


def by_hour(counts: Floats, expected: Floats, period: int, outside: Floats) -> Floats:
    """Return (T,) what is expected with the season of the hours, learnt where nothing changed.

    Parameters
    ----------
    counts, expected : (T,)
    period : bins after which hours repeat
    outside : (T,) 1 where the season is learnt, 0 elsewhere
    """
    hour = np.arange(len(counts)) % period
    observed, usual = (np.bincount(hour, part * outside, period) for part in (counts, expected))
    level = observed.sum() / max(float(usual.sum()), 1e-300)
    season = (observed + _PRIOR_SAMPLES) / (usual * level + _PRIOR_SAMPLES)
    return np.asarray(expected * season[hour])


def partition(counts: Floats, expected: Floats, price: float) -> Segments:
    """Return the partition with the greatest log likelihood of Poisson counts less the price of every change.

    Exact, by dynamic programming over the last change (Jackson et al. 2005), O(T²). A stretch begins where something is
    expected.

    Parameters
    ----------
    counts, expected : (T,)
    price : of a change, in units of log likelihood

    Examples
    --------
    >>> partition(np.array([5.0, 4, 6, 5, 15, 14, 16]), np.full(7, 5.0), 5.0).start
    array([0, 4])
    """
    step = -(-len(counts) // _MOST_PIECES)
    edges = np.append(np.arange(0, len(counts), step), len(counts))
    observed, usual = (np.append(0.0, np.cumsum(part))[edges] for part in (counts, expected))
    pieces = len(edges) - 1
    best, last = np.zeros(pieces + 1), np.zeros(pieces + 1, dtype=np.int64)
    best[0] = price
    _put_last_changes(observed, usual, price, best, last)
    cuts = [pieces]
    while cuts[-1] > 0:
        cuts.append(int(last[cuts[-1]]))
    at = np.array(cuts[::-1], dtype=np.int64)
    exposed_at = np.append(np.flatnonzero(np.diff(usual) > 0), pieces)
    start = np.append(0, exposed_at[np.searchsorted(exposed_at, at[1:-1])]).astype(np.int64)
    return Segments(edges[start].astype(np.int64), np.diff(observed[at]), np.diff(usual[at]))


@njit(nogil=True, borrows=True, error_model="numpy")
def _put_last_changes(observed: Floats, usual: Floats, price: float, best: Floats, last: Ints) -> None:
    """Fill in where the last stretch of the best partition of each beginning of n pieces begins, and its score.

    Parameters
    ----------
    observed, usual : (n + 1,) sums up to each piece
    price : of a change
    best, last : (n + 1,) the score of no pieces is given
    """
    for end in range(1, len(observed)):
        greatest = -np.inf
        for start in range(end):
            inside, exposed = observed[end] - observed[start], usual[end] - usual[start]
            score = best[start]
            if inside > 0:
                score += inside * np.log(max(inside, 1e-9) / max(exposed, 1e-9))
            score -= price
            if score > greatest:
                greatest, last[end] = score, start
        best[end] = greatest
