"""Request-mix regression: what a request of each type adds to a counter (Stewart et al. 2008, section 3.4, equation 2).

A counter of an interval is the sum over types of requests times cost: C = Σ_j α_j N_j. No experiment tells the α_j; the
fluctuations of the mix do, if there are enough of them.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy.special import ndtri

from analysis.crossplatform.least_squares import DecomposedDesign, nearest, posterior
from models.arrays import Bools, Floats
from models.errors import InputError

Regression: TypeAlias = Literal["ols", "nnls", "bayes"]
REGRESSIONS: tuple[Regression, ...] = get_args(Regression)

COLLINEAR = 30.0
"""Condition numbers of the scaled design from here on harm estimates (Belsley, Kuh and Welsch 1980, section 3.2)."""
WIDE = 0.5
"""A type's cost is not told when half the width of its 90% interval is more than this share of it."""
ENOUGH = 0.8
"""Share of requests whose types' costs have to be told for the log to identify the types."""
STATIONARY = 1.5
"""Below this dispersion the mix varies by itself less than half as much as by chance."""


@dataclass(frozen=True, slots=True, eq=False)
class MixModel:
    """The cost of a request of each of J types, and how well the log tells it."""

    method: Regression
    coefficients: Floats
    """(J,) units of the metric per request."""
    covariance: Floats
    """(J, J) of the coefficients; of `nnls` that before they were made non-negative."""
    condition_number: float
    """Largest over smallest singular value of the design, columns scaled to length 1, types that came only."""
    dispersion: float
    """Variance of the mix over that by chance, the index of dispersion (Fisher 1925, section 16): 1 if stationary."""
    residual_sd: float
    """Deviation of an interval of one request; of N requests it is N^(noise_exponent / 2) times as much."""
    noise_exponent: float
    shares: Floats
    """(J,) share of all requests that were of the type."""
    crowding: float = 0.0
    """What a request adds for each that comes in the same interval."""

    @property
    def half_widths(self) -> Floats:
        """Half the widths of the coefficients' 90% intervals: (J,)."""
        return float(ndtri(0.95)) * np.sqrt(np.diag(self.covariance))

    @property
    def told(self) -> Bools:
        """Whether the log tells a type's cost, to `WIDE`: (J,)."""
        return (self.half_widths <= WIDE * np.abs(self.coefficients)) & (self.shares > 0)

    @property
    def identified(self) -> bool:
        """Whether per-type costs may be shown: no collinear design, and most requests of types whose cost is told.

        Nor may the mix be stationary. Chance moves its counts then, and although that tells costs too, it is no more
        than what requests do that arrive in one interval and are served in the next.
        """
        return not self._refusals()

    @property
    def verdict(self) -> str:
        """Whether the log identifies the types, in a line: every criterion that refuses, or how well all are met."""
        refusals = self._refusals()
        if refusals:
            return f"the mix does not identify the types: {'; '.join(refusals)}"
        told, share = int(self.told.sum()), float(self.shares[self.told].sum())
        return (
            f"the mix identifies the types: condition number {self.condition_number:.3g} (harmful from {COLLINEAR:g}), "
            f"the mix varies {self.dispersion:.3g} times as much as by chance (stationary below {STATIONARY:g}), "
            f"the costs of {told} of {len(self.shares)} types, {share:.0%} of requests, are known to ±{WIDE:.0%}"
        )

    def _refusals(self) -> list[str]:
        """Return the criteria that are not met, each with its number and bound."""
        share = float(self.shares[self.told].sum())
        criteria = {
            f"it varies only {self.dispersion:.3g} times as much as by chance, must be {STATIONARY:g} or more": (
                self.dispersion >= STATIONARY
            ),
            f"types come together, condition number {self.condition_number:.3g}, must be below {COLLINEAR:g}": (
                self.condition_number < COLLINEAR
            ),
            f"types whose cost is known to ±{WIDE:.0%} make {share:.0%} of requests, must be {ENOUGH:.0%} or more": (
                share >= ENOUGH
            ),
        }
        return [reason for reason, met in criteria.items() if not met]

    def predict(self, counts: Floats) -> Floats:
        """Return the metric of some mixes, (m, J) counts of requests: (m,); with crowding, of single intervals."""
        counts = np.asarray(counts, dtype=np.float64)
        return np.asarray(counts @ self.coefficients + self.crowding * counts.sum(axis=1) ** 2)

    def noise_sd(self, counts: Floats) -> Floats:
        """Return the deviation of single intervals around `predict`, (m, J) counts of requests: (m,)."""
        return self.residual_sd * _volumes(np.asarray(counts, dtype=np.float64)) ** (self.noise_exponent / 2)


def fit(
    counts: Floats, metric: Floats, method: Regression = "ols", noise_exponent: float = 0.0, crowding: bool = False
) -> MixModel:
    """Return the cost of a request of each type from the counters of many intervals.

    What the log does not tell, as the cost of a type that never came or how two types that always come together share
    theirs, is as of the mean request, and as uncertain as all of it. Covariances are robust to unequal noise (HC3,
    MacKinnon and White 1985), except the posterior's.

    Parameters
    ----------
    counts : (n, J) requests of each type in each interval, at least 0
    metric : (n,) instructions, misses or seconds of all of them together
    method : ols, least squares, as published; nnls, the same with no cost below 0 (Lawson and Hanson 1974, chapter 23);
        bayes, a normal prior around the mean request's cost, whose spread has the greatest evidence (MacKay 1992)
    noise_exponent : variance of the noise grows with the requests to this power: 0, as published; 1, requests differ
        independently; 2, errors are in proportion. Intervals weigh by the inverse.
    crowding : whether requests may cost more where more come, as on a busier machine: a term in the square of their
        number, which the published model lacks

    Raises
    ------
    ValueError
        If shapes differ, no request came, there are fewer intervals than types that came and two more, or a number is
        not finite or a count negative.

    Examples
    --------
    >>> counts = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [3.0, 1.0]])
    >>> model = fit(counts, counts @ np.array([2.0, 5.0]))
    >>> model.coefficients.round(6), model.predict(np.array([[10.0, 10.0]])).round(6)
    (array([2., 5.]), array([70.]))
    """
    counts, target = _checked(counts, metric, method)
    weight = _volumes(counts) ** (-noise_exponent / 2)
    requests, types, mean = counts.sum(axis=1), counts.shape[1], float(target.sum() / counts.sum())
    # Over the mean volume, so that what crowding adds has the unit of a cost.
    columns = np.column_stack([counts, requests**2 / requests.mean()]) if crowding else counts
    rows = columns * weight[:, None]
    beyond = target * weight - rows[:, :types].sum(axis=1) * mean
    design = DecomposedDesign.of(rows)
    extra, error = design.solve(beyond)
    residual_sd = float(np.sqrt(error @ error / (len(error) - design.rank)))
    if method == "bayes":
        extra, covariance = posterior(rows, beyond, abs(mean), residual_sd)
    else:
        covariance = design.robust_covariance(error, residual_sd) + mean**2 * design.untold()
    costs = extra + mean * (np.arange(columns.shape[1]) < types)
    costs = nearest(rows.T @ rows, costs) if method == "nnls" else costs
    return MixModel(
        method,
        costs[:types],
        covariance[:types, :types],
        design.condition_number(int(columns.any(axis=0).sum())),
        _dispersion(counts),
        residual_sd,
        noise_exponent,
        counts.sum(axis=0) / counts.sum(),
        float(costs[types:].sum() / requests.mean()),
    )


def _dispersion(counts: Floats) -> float:
    """Return Pearson's chi-square of equal mixes over its degrees of freedom; infinite if all are of one type."""
    some = counts[np.ix_(counts.any(axis=1), counts.any(axis=0))]
    freedom = (some.shape[0] - 1) * (some.shape[1] - 1)
    if not freedom:
        return np.inf
    expected = np.outer(some.sum(axis=1), some.sum(axis=0)) / some.sum()
    return float(((some - expected) ** 2 / expected).sum() / freedom)


def _volumes(counts: Floats) -> Floats:
    """Return the requests of each interval, one where none came, since an empty interval is noisy too."""
    return np.asarray(np.maximum(counts.sum(axis=1), 1.0))


def _checked(counts: Floats, metric: Floats, method: Regression) -> tuple[Floats, Floats]:
    """Return counts and metric as arrays that a regression can be run on."""
    counts, target = np.asarray(counts, dtype=np.float64), np.asarray(metric, dtype=np.float64)
    if method not in REGRESSIONS:
        raise InputError(f"method must be one of {', '.join(REGRESSIONS)}, got {method!r}")
    if counts.ndim != 2 or target.shape != counts.shape[:1]:
        raise InputError(f"counts must be (n, J) and the metric (n,), got {counts.shape} and {target.shape}")
    wrong = ~(np.isfinite(counts) & (counts >= 0)).all(axis=1) | ~np.isfinite(target)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"counts must be at least 0 and all finite, got {counts[row]} and {target[row]} in row {row}")
    came = int(counts.any(axis=0).sum())
    if not came:
        raise InputError("requests must have come in some interval, got none")
    if len(counts) < came + 2:
        raise InputError(f"{came} types need at least {came + 2} intervals, got {len(counts)}")
    return counts, target
