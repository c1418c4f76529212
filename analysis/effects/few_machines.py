"""What a job on few machines can say: variances that lean on the controls', and tests exact under randomisation."""

import numpy as np
from scipy.special import digamma, polygamma

from models.arrays import Floats, Ints

_GRID = 16.0
"""Scores are rounded to this part of their standard deviation."""
_LEAST_JOBS = 10
"""Jobs from which it is learnt how far variances of both arms agree."""
_MOST = 200.0
"""Degrees of freedom that the controls' variance counts for at most."""


def moderated(variance: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Return treated machines' variances drawn towards those of the same job's controls, with their freedom.

    Empirical Bayes as Smyth (2004, section 3) does for genes: the logarithms of the ratios tell by what factor the
    feature changes variances, and how far jobs differ in that. A job's controls then count for so many degrees
    of freedom.

    Parameters
    ----------
    variance : (J, 2) of one machine of each job, without and with the feature; NaN or 0 where unknown
    freedom : (J, 2) their degrees of freedom

    Returns
    -------
    tuple of Floats
        Variances with the feature and their freedom, (J,); as they are where fewer than ten jobs can tell.

    Examples
    --------
    >>> variance = np.stack([np.ones(12), np.r_[4.0, 0.25, np.ones(10)]], axis=1)
    >>> made, freedom = moderated(variance, np.stack([np.full(12, 99.0), np.full(12, 2.0)], axis=1))
    >>> made[0].round(1), freedom[0].round(0)
    (np.float64(1.8), np.float64(68.0))
    """
    known = np.isfinite(variance).all(axis=1) & (variance > 0).all(axis=1) & (freedom > 0.5).all(axis=1)
    made, grown = variance[:, 1].copy(), freedom[:, 1].copy()
    if known.sum() < _LEAST_JOBS:
        return made, grown
    seen, free = variance[known], freedom[known]
    shift = digamma(free / 2) - np.log(free / 2)
    logs = np.log(seen[:, 1] / seen[:, 0]) - shift[:, 1] + shift[:, 0]
    factor, agreement = _agreement(logs, polygamma(1, free / 2).sum(axis=1))
    prior = 1 / (1 / agreement + 1 / free[:, 0])
    grown[known] = prior + free[:, 1]
    made[known] = (prior * factor * seen[:, 0] + free[:, 1] * seen[:, 1]) / grown[known]
    return made, grown


def _agreement(logs: Floats, noise: Floats) -> tuple[float, float]:
    """Return the typical ratio, and the degrees of freedom of a chi-square of as much spread as ratios have."""
    excess = 0.0
    for _ in range(30):
        trust = 1 / (noise + excess)
        middle = float((trust * logs).sum() / trust.sum())
        found = float((trust * (logs - middle) ** 2).sum()) - (len(logs) - 1)
        excess = max(excess + found / float(trust.sum()), 0.0)
    # The trigamma function at half of the freedom is about 2 / freedom + 2 / freedom².
    wide = (1 + np.sqrt(1 + 2 * excess)) / excess if excess > 2 / _MOST else _MOST
    return float(np.exp(middle)), float(min(wide, _MOST))


def randomisation_p(score: Floats, chosen: Ints) -> float:
    """Return how often a random choice of as many machines has a sum of scores at least as far from the middle.

    All choices are counted, none is drawn: machine by machine the number of choices with each sum is kept (Pagano
    and Tritchler 1983). So the p-value is exact if the feature does nothing to the job and the machines were chosen at
    random, whatever the scores' distribution. Scores are rounded to a sixteenth of their standard deviation, which
    makes other scores of them and leaves the test exact.

    Parameters
    ----------
    score : (n,) one number a machine
    chosen : places of the machines with the feature

    Examples
    --------
    >>> randomisation_p(np.array([3.0, -1.0, -1.0, -1.0]), np.array([0]))
    0.25
    """
    spread = float(np.std(score))
    if spread <= 0 or not 0 < len(chosen) < len(score):
        return 1.0
    centred = np.rint((score - score.mean()) * (_GRID / spread)).astype(np.int64)
    few = np.arange(len(score))[~np.isin(np.arange(len(score)), chosen)] if 2 * len(chosen) > len(score) else chosen
    size = len(few)
    reach = int(np.sort(np.abs(centred))[-size:].sum())
    ways = np.zeros((size + 1, 2 * reach + 1))
    ways[0, reach] = 1.0
    for shift in centred.tolist():
        moved = np.zeros((size, 2 * reach + 1))
        if shift >= 0:
            moved[:, shift:] = ways[:-1, : 2 * reach + 1 - shift]
        else:
            moved[:, :shift] = ways[:-1, -shift:]
        ways[1:] += moved
    expected = size * float(centred.mean())
    sums = np.abs(np.arange(-reach, reach + 1) - expected)
    seen = abs(float(centred[few].sum()) - expected)
    return float(ways[size][sums >= seen - 1e-9].sum() / ways[size].sum())
