"""A statistic with its interval, quantiles and tails, what counts as rounding, and the error of too little data.

Quantiles and tails are those of `scipy.stats` to the last bit. That takes 0.6 s of processor time to import, a quarter
of what `wsc effect` takes.
"""

from typing import Literal, NamedTuple, cast, overload

import numpy as np
from scipy import special

from models.arrays import Floats, Ints
from models.errors import WscError

normal_cdf, normal_quantile = special.ndtr, special.ndtri
"""How likely a standard normal number is at most x, and its inverse."""
FalseDiscoveryControl = Literal["benjamini-hochberg", "benjamini-yekutieli"]
"""Which dependence of p-values their adjustment allows: a positive one, or any."""
ROUNDING = 1e-12
"""Relative differences up to here are rounding: what is no farther apart does not differ."""


class Statistic(NamedTuple):
    """An estimate and the two ends of its interval, in its unit; NaN where too little is known."""

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, half_width: float) -> "Statistic":
        """Return an estimate in the middle of its interval."""
        return cls(value, value - half_width, value + half_width)

    @property
    def half_width(self) -> float:
        """From the estimate to the upper end."""
        return self.high - self.value


UNKNOWN = Statistic(np.nan, np.nan, np.nan)


class NotEnoughDataError(WscError):
    """Too little data for the method; `needed` says how much would do, `have` what was given, `remedy` how to get more.

    Examples
    --------
    >>> NotEnoughDataError(2, 1, "machines")
    NotEnoughDataError('2 machines are needed, 1 given')
    >>> NotEnoughDataError(1, 0, "machines")
    NotEnoughDataError('no machines: at least 1 is needed')
    >>> NotEnoughDataError(73, 20, "machines", purpose="p99")
    NotEnoughDataError('73 machines are needed for p99, 20 given')
    """

    def __init__(
        self, needed: int, have: int, what: str = "measurements", remedy: str = "", *, purpose: str = ""
    ) -> None:
        lacks = f"{needed} {what} are needed{purpose and f' for {purpose}'}, {have} given"
        none = f"no {what}{purpose and f' for {purpose}'}: at least 1 is needed"
        super().__init__((none if (needed, have) == (1, 0) else lacks) + (remedy and f"; {remedy}"))
        self.needed, self.have = needed, have


def intraclass(values: Floats, group: Ints, spent: int = 0) -> tuple[float, float]:
    """Return the correlation of members of a group, by the analysis of variance, and the size of unequal groups.

    Below 0 where groups differ less than their members do; NaN where no group has two members (Donner 1986).

    Parameters
    ----------
    values, group : (n,)
    spent : degrees of freedom between groups that a fit took from the values, beside their mean's

    Examples
    --------
    >>> intraclass(np.array([1.0, 1.0, -1.0, -1.0]), np.array([0, 0, 1, 1]))
    (1.0, 2.0)
    """
    code = np.unique(group, return_inverse=True)[1]
    size = np.bincount(code)
    groups, count = len(size), len(code)
    if groups < 2 + spent or count <= groups:
        return np.nan, np.nan
    mean = np.bincount(code, values) / size
    between = float((size * (mean - values.mean()) ** 2).sum()) / (groups - 1 - spent)
    within = float(((values - mean[code]) ** 2).sum()) / (count - groups)
    typical = float(count - (size**2).sum() / count) / (groups - 1)
    spread = between + (typical - 1.0) * within
    return ((between - within) / spread if spread > 0 else 0.0), typical


@overload
def normal_tail(x: float) -> float: ...
@overload
def normal_tail(x: Floats) -> Floats: ...
def normal_tail(x: float | Floats) -> float | Floats:
    """Return how likely a standard normal number is above x.

    Examples
    --------
    >>> round(float(normal_tail(1.96)), 3)
    0.025
    """
    return special.ndtr(-x)


@overload
def normal_density(x: float) -> float: ...
@overload
def normal_density(x: Floats) -> Floats: ...
def normal_density(x: float | Floats) -> float | Floats:
    """Return the density of a standard normal number at x.

    Examples
    --------
    >>> round(float(normal_density(0.0)), 4)
    0.3989
    """
    return cast("float | Floats", np.exp(-np.square(x) / 2.0) / np.sqrt(2.0 * np.pi))


@overload
def student_quantile(p: float, freedom: float) -> float: ...
@overload
def student_quantile(p: float | Floats | Ints, freedom: float | Floats | Ints) -> Floats: ...
def student_quantile(p: float | Floats | Ints, freedom: float | Floats | Ints) -> float | Floats:
    """Return the p-quantile of Student's t.

    Parameters
    ----------
    p : shares, 0..1
    freedom : degrees of freedom above 0; NaN is returned where they are not

    Examples
    --------
    >>> round(float(student_quantile(0.975, 9)), 3)
    2.262
    """
    lowest = np.where(np.equal(p, 0.0) & np.greater(freedom, 0.0), -np.inf, special.stdtrit(freedom, p))
    return cast("float | Floats", lowest[()])


@overload
def student_tail(x: float, freedom: float) -> float: ...
@overload
def student_tail(x: float | Floats | Ints, freedom: float | Floats | Ints) -> Floats: ...
def student_tail(x: float | Floats | Ints, freedom: float | Floats | Ints) -> float | Floats:
    """Return how likely Student's t of so many degrees of freedom is above x; NaN where these are not above 0.

    Examples
    --------
    >>> round(float(student_tail(2.262, 9)), 3)
    0.025
    """
    return cast("float | Floats", special.stdtr(freedom, -x))


@overload
def chi2_quantile(p: float, freedom: float) -> float: ...
@overload
def chi2_quantile(p: float | Floats | Ints, freedom: float | Floats | Ints) -> Floats: ...
def chi2_quantile(p: float | Floats | Ints, freedom: float | Floats | Ints) -> float | Floats:
    """Return the p-quantile of χ², of degrees of freedom above 0.

    Examples
    --------
    >>> round(float(chi2_quantile(0.95, 1)), 2)
    3.84
    """
    return cast("float | Floats", 2.0 * special.gammaincinv(freedom / 2.0, p))


@overload
def chi2_tail(x: float, freedom: float) -> float: ...
@overload
def chi2_tail(x: float | Floats | Ints, freedom: float | Floats | Ints) -> Floats: ...
def chi2_tail(x: float | Floats | Ints, freedom: float | Floats | Ints) -> float | Floats:
    """Return how likely χ² is above x; NaN where the degrees of freedom are not above 0.

    Examples
    --------
    >>> round(float(chi2_tail(3.84, 1)), 2), float(chi2_tail(-1.0, 1))
    (0.05, 1.0)
    """
    known = np.where(np.greater(freedom, 0.0), freedom, np.nan)
    return cast("float | Floats", special.chdtrc(known, np.maximum(x, 0.0)))


def adjusted_p_values(p_values: Floats, control: FalseDiscoveryControl) -> Floats:
    """Return p-values adjusted for the false discovery rate.

    Of those up to q, a share of q is expected to be false at most (Benjamini and Hochberg 1995; Benjamini and Yekutieli
    2001).

    Parameters
    ----------
    p_values : (n,) array, 0..1
    control : by which of the two

    Examples
    --------
    >>> adjusted_p_values(np.array([0.01, 0.04, 0.03]), "benjamini-hochberg").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    order, rank = np.argsort(p_values, kind="stable"), np.arange(1, len(p_values) + 1)
    steps = p_values[order] * (len(p_values) / rank)
    if control == "benjamini-yekutieli":
        steps *= np.sum(1 / rank)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum.accumulate(steps[::-1])[::-1]
    return np.clip(adjusted, 0.0, 1.0)


def binomial_p_value(successes: int, trials: int, probability: float) -> float:
    """Return the two-sided p-value of so many successes: the chance of all numbers that are not more likely.

    Parameters
    ----------
    successes : 0 to `trials`
    trials : one or more
    probability : of a success, 0..1

    Raises
    ------
    ValueError
        If the probability is none.

    Examples
    --------
    >>> round(binomial_p_value(1, 10, 0.5), 4)
    0.0215
    """
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"probability should be from 0 to 1, got {probability:g}")
    counts = np.arange(trials + 1)
    logs = special.gammaln(trials + 1) - special.gammaln(counts + 1) - special.gammaln(trials - counts + 1)
    chance = np.exp(logs + special.xlogy(counts, probability) + special.xlog1py(trials - counts, -probability))
    return float(min(chance[chance <= chance[successes] * (1 + 1e-7)].sum(), 1.0))
