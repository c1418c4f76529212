"""Ratios of two events for every pair of job and platform, with errors between visits that other pairs steady."""

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from analysis.profiling.metrics import cpi
from models.arrays import Floats

BY = ("application", "platform")
CLUSTER = "visit"
"""What the collector draws anew each time."""
_PRIOR_VISITS, _ROUNDS = 8.0, 8


def ratio(above: pd.DataFrame, below: pd.DataFrame) -> pd.DataFrame:
    """Return the ratio of two events of every pair that was sampled of both.

    Parameters
    ----------
    above, below : columns application, platform, visit, samples, value

    Returns
    -------
    DataFrame
        application, platform, cpi (the ratio), relative_se, cycles and instructions (what is above and below), samples
        (of both), clusters (visits).

    Examples
    --------
    >>> one = pd.DataFrame({"application": "a", "platform": "p", "visit": [1, 2, 3], "samples": 10, "value": [9, 8, 9]})
    >>> ratio(one, one.assign(value=[3, 4, 6]))["cpi"].tolist()
    [2.0]
    """
    found = cpi(above, below, cluster=CLUSTER)
    found = found[(found["cycles"] > 0) & (found["instructions"] > 0)].reset_index(drop=True)
    kept = [*BY, "cpi", "cycles", "instructions", "samples", "clusters"]
    return found.assign(relative_se=_relative_errors(found))[[*kept[:3], "relative_se", *kept[3:]]]


def _relative_errors(found: pd.DataFrame) -> Floats:
    """Return relative standard errors, steadied by those of all pairs.

    An error that few visits tell of is itself uncertain, so its square is averaged with what the pair's samples and
    visits make expect, α / samples + β / visits, fitted over all pairs; the latter counts as `_PRIOR_VISITS` visits.
    """
    own = ((found["standard_error"] / found["cpi"]) ** 2).to_numpy(np.float64)
    samples, visits = (found[name].to_numpy(np.float64) for name in ("samples", "clusters"))
    known = np.isfinite(own) & (visits > _PRIOR_VISITS) & (own < 1.0)
    inputs = np.column_stack([1.0 / samples, 1.0 / visits])
    fitted = np.array([2.0, 0.0])
    for _ in range(_ROUNDS if known.sum() > 2 else 0):
        weight = np.sqrt(visits[known]) / (inputs[known] @ fitted)
        fitted = nnls(inputs[known] * weight[:, None], own[known] * weight)[0]
        fitted = fitted if fitted.any() else np.array([2.0, 0.0])
    heard = np.where(np.isfinite(own), np.maximum(visits - 1.0, 0.0), 0.0)
    own = np.where(heard > 0, np.minimum(np.nan_to_num(own), 1.0), 0.0)
    return np.asarray(np.sqrt((heard * own + _PRIOR_VISITS * (inputs @ fitted)) / (heard + _PRIOR_VISITS)))
