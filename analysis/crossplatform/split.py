"""What of a log a model is fitted to and what it is judged on: earlier and later intervals, never a random choice."""

from typing import TypeAlias

import numpy as np
from scipy.optimize import nnls

from analysis.crossplatform.evidence import ServiceLog
from models.arrays import Bools, Floats
from models.errors import InputError

Halves: TypeAlias = tuple[ServiceLog, ServiceLog]

_AWAY = 1e-7
"""A mix that misses the hull by less than this, relative to the greatest counts, is on it."""


def halves(log: ServiceLog) -> Halves:
    """Return the first and the second half of the intervals, the published protocol (Stewart et al. 2008, section 4.2).

    Of an odd number of intervals the second half has one more.

    Raises
    ------
    ValueError
        If there are fewer than two intervals.

    Examples
    --------
    >>> none = np.zeros(3)
    >>> log = ServiceLog(("a",), 30.0, np.array([0.0, 30.0, 60.0]), none[:, None], none, none[:, None], none, none)
    >>> [part.start_s.tolist() for part in halves(log)]
    [[0.0], [30.0, 60.0]]
    """
    return split(log, "halves")


def split(log: ServiceLog, how: str) -> Halves:
    """Return what to fit to and what to judge on: the earlier intervals and the later ones.

    Parameters
    ----------
    how : "halves", or "share:S" for the first share S of the intervals, above 0 and below 1

    Raises
    ------
    ValueError
        If the split is random or unknown, or leaves either side without intervals.

    Examples
    --------
    >>> none = np.zeros(4)
    >>> log = ServiceLog(("a",), 30.0, 30.0 * np.arange(4), none[:, None], none, none[:, None], none, none)
    >>> [len(part.start_s) for part in split(log, "share:0.75")]
    [3, 1]
    """
    count = len(log.start_s)
    first = int(_share(how) * count)
    if not 0 < first < count:
        raise InputError(f"{how} must leave intervals to fit to and to judge on, got {count} intervals")
    return log.taken(slice(0, first)), log.taken(slice(first, count))


def outside_hull(train_counts: Floats, test_counts: Floats) -> float:
    """Return the share of test mixes that lie outside the convex hull of the training mixes: those extrapolated to.

    A mix is a vector of counts, as in the paper (sections 3.2 and 4.2.1), so volume counts too; give shares to ask
    about proportions alone.

    Parameters
    ----------
    train_counts : (n, J) array, n above 0
    test_counts : (m, J) array, m above 0

    Returns
    -------
    float
        0..1. Takes O(m n J²) time at worst: half a second for 600 mixes of 22 types among as many.

    Raises
    ------
    ValueError
        If there are no mixes, the types differ in number, or a count is not finite.

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    >>> outside_hull(square, np.array([[1.0, 1.0], [1.0, 2.0], [3.0, 1.0], [-1.0, 1.0]]))
    0.5
    """
    train, test = _scaled(train_counts, test_counts)
    outside = _separated(train, test)
    # In the hull: a mixture of training mixes, weights at least 0 whose sum is 1. As least squares: no error.
    corners = np.vstack([train.T, np.ones(len(train))])
    for at in np.flatnonzero(~outside):
        outside[at] = nnls(corners, np.append(test[at], 1.0), maxiter=30 * corners.shape[1])[1] > _AWAY
    return float(outside.mean())


def _separated(train: Floats, test: Floats) -> Bools:
    """Return which test mixes lie beyond all training mixes in the direction that Fisher's discriminant takes to them.

    Most of those outside the hull do, and this costs far less than to look for a mixture.
    """
    covariance = np.atleast_2d(np.cov(train.T, bias=True))
    toward = (test - train.mean(axis=0)) @ np.linalg.pinv(covariance, hermitian=True)
    beyond = (toward * test).sum(axis=1) - (toward @ train.T).max(axis=1)
    return np.asarray(beyond > _AWAY * np.linalg.norm(toward, axis=1))


def _share(how: str) -> float:
    """Return the share of intervals that come first."""
    if how == "halves":
        return 0.5
    if how.startswith("random"):
        raise InputError(
            f"split must not be {how}: intervals next to each other have nearly the same mix, so those judged on would "
            "hardly differ from those fitted to; say halves or share:S"
        )
    kind, _, share = how.partition(":")
    if kind == "share" and share.replace(".", "", 1).isdecimal() and 0 < float(share) < 1:
        return float(share)
    raise InputError(f"split must be halves or share:S with S above 0 and below 1, got {how!r}")


def _scaled(train_counts: Floats, test_counts: Floats) -> tuple[Floats, Floats]:
    """Return both sets of mixes in units of the greatest training count of each type."""
    train, test = (np.asarray(counts, dtype=np.float64) for counts in (train_counts, test_counts))
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1] or not (train.size and test.size):
        raise InputError(f"mixes must be (n, J) and (m, J) with n, m and J above 0, got {train.shape} and {test.shape}")
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise InputError("counts must be finite, got one that is not")
    largest: Floats = np.abs(train).max(axis=0)
    largest[largest == 0] = 1.0
    return train / largest, test / largest
