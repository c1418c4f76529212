"""Cycles per instruction told twice: by the instructions that were counted, and by another event of the same code.

Of a pair that few samples tell of, most of the error is that of counting. A job makes some events, such as
mispredictions, of its instructions at a rate that is much the same wherever it runs; cycles over such an event, times
the rate expected, are a second estimate of the same CPI, whose errors are partly others. Both are averaged with the
weights that leave the least variance (a composite estimator; Rao and Molina 2015, section 3.3). How far rates stray
from an effect of the job and one of the platform is asked of the data (`effects.fit`): the event is that whose rate
strays least, and the more it strays the less it weighs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.affinity.effects import fit
from analysis.profiling.affinity.pairs import BY, ratio
from analysis.profiling.affinity.terms import Terms
from models.arrays import Bools, Floats

_MOST_SQUARE = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class _Second:
    """What another event says of N pairs."""

    strays: float
    """Variance of its rates between pairs, in logarithms, beside effects of job and platform."""
    shift: Floats
    """(N,) by what the logarithm of the CPI is to be changed."""
    gained: Floats
    """(N,) by what its squared error becomes less."""


def composite(found: pd.DataFrame, clustered: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return CPI and its error, told by instructions and by the event whose rate strays least.

    Parameters
    ----------
    found : of `pairs.ratio`: cycles over instructions
    clustered : event to application, platform, visit, samples, value; cycles, instructions, and those to choose from

    Returns
    -------
    DataFrame
        as `found`, with other cpi and relative_se, and instructions that go with them.

    Examples
    --------
    >>> one = pd.DataFrame({"application": "a", "platform": "p", "visit": [1, 2, 3], "samples": 10, "value": [9, 8, 9]})
    >>> events = dict.fromkeys(("cycles", "instructions", "mispredictions"), one)
    >>> composite(ratio(one, one), events)["cpi"].tolist()
    [1.0]
    """
    others = [name for name in clustered if name not in ("cycles", "instructions")]
    said = [_second(found, clustered, name) for name in others]
    if not said:
        return found
    best = min(said, key=lambda each: each.strays)
    square = found["relative_se"] ** 2 - best.gained
    return found.assign(
        cpi=found["cpi"] * np.exp(best.shift),
        instructions=found["instructions"] * np.exp(-best.shift),
        relative_se=np.sqrt(np.maximum(square, 0.0)),
    )


def _second(found: pd.DataFrame, clustered: Mapping[str, pd.DataFrame], event: str) -> _Second:
    """Return what an event says of pairs; nothing of those where it was not counted, or of jobs on one platform."""
    keys = pd.MultiIndex.from_frame(found[list(BY)])
    rate, other = (
        ratio(*(clustered[name] for name in names)).set_index(list(BY)).reindex(keys)
        for names in ((event, "instructions"), ("cycles", event))
    )
    square = rate["relative_se"].to_numpy(np.float64) ** 2
    known = np.isfinite(square) & np.isfinite(other["relative_se"].to_numpy(np.float64))
    own, third = (each["relative_se"].to_numpy(np.float64) ** 2 for each in (found, other))
    square, third = np.where(known, square, 1.0), np.where(known, third, 0.0)
    common = np.clip(0.5 * (own + square - third), 0.0, np.sqrt(own * square))
    log_rate = np.log(np.where(known, rate["cpi"].to_numpy(np.float64), 1.0))
    strays, residual, platforms = _strays(found, log_rate, np.minimum(square, _MOST_SQUARE), known)
    weight = np.where(known, np.minimum(common / (square + strays), 1.0), 0.0)
    return _Second(strays, -weight * residual, weight * common * (1.0 - 1.0 / np.maximum(platforms, 1.0)))


def _strays(found: pd.DataFrame, log_rate: Floats, square: Floats, known: Bools) -> tuple[float, Floats, Floats]:
    """Return the variance of rates between pairs, (N,) residuals, and on how many platforms each job has a rate."""
    job, platform = (pd.factorize(found[name])[0] for name in BY)
    shape = job.max() + 1, platform.max() + 1
    rates, squares = np.zeros(shape), np.full(shape, np.inf)
    rates[job[known], platform[known]], squares[job[known], platform[known]] = log_rate[known], square[known]
    strays, effects, _ = fit(Terms(rates, squares, np.zeros(shape), np.ones((shape[0], 1))))
    platforms = np.isfinite(squares).sum(axis=1)[job].astype(np.float64)
    return strays, np.where(known, log_rate - effects[job, platform], 0.0), platforms
