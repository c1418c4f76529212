"""Monitoring: intervals that hold at all looks together, beside those that hold at one look alone."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import lambertw

from analysis.effects.spending import SHAPES, Shape, boundaries, canonical
from analysis.statistics import normal_tail, student_quantile, student_tail
from models.arrays import Floats
from models.errors import WscError

_COLUMNS = ("change", "error", "freedom", "share")
_NORMAL = 1e6
"""Degrees of freedom from which Student's distribution is taken for the normal one."""
Spending: TypeAlias = Literal["any-time"] | Shape
"""How the error is spent over looks: at any time, for ever; or all up to the planned end, in two shapes."""
LEAST_SPENT = 1e-3
"""Least p-value of a spent error, below which boundaries are not known well: it may be any smaller one, too."""
_LEVELS = (LEAST_SPENT, 0.01, 0.03, 0.05, 0.1, 0.2, 0.5)
"""Errors between which the p-value of a spent error is interpolated."""
_LEAST = 1e-6
"""Least confidence: nearer to 0, a float hardly tells the error from 1."""


class LooksError(WscError):
    """A table of looks cannot be used; one line a fault."""


@dataclass(frozen=True)
class Boundary:
    """How many standard errors an interval needs that may be looked at any time (normal mixture, studentised).

    The score of cumulative estimates is a Brownian motion in information time (Jennison and Turnbull 1997, section 2).
    Mixing its likelihood ratio over effects that are normal round the null gives a martingale that starts at 1 and
    exceeds 1/(1 − confidence) with probability 1 − confidence at most (Ville 1939; Robbins 1970; Johari et al. 2022;
    Howard et al. 2021, proposition 5). With a standard error from few clusters the ratio of the
    t statistics' densities takes its place (Lindon et al. 2022; Wang and Ramdas 2024), in which
    every look counts the clusters once, because all looks see the same ones: it is an e-value at every look, and that
    it holds over looks is shown by simulation. With infinite freedom it is the asymptotic confidence sequence
    of Waudby-Smith et al. 2024, theorem 2.2.

    No error is spent on the time before the first look: from then on the martingale exceeds a bound with the
    probability that it does so at once, or later by Ville's inequality given where it is (as Robbins 1970).

    Parameters
    ----------
    freedom : degrees of freedom for which the mixture is tuned, above 0; may be infinite
    confidence : 0..1, of all looks together
    start : share of the planned information at the first look; 0 if looks may begin at any time
    """

    freedom: float
    confidence: float = 0.95
    start: float = 0.0

    def __post_init__(self) -> None:
        faults = []
        if not self.freedom > 0:
            faults.append(f"freedom must be above 0, got {self.freedom:g}")
        if not _LEAST <= self.confidence < 1:
            faults.append(f"confidence must be at least {_LEAST:g} and below 1, got {self.confidence:g}")
        if not 0 <= self.start < np.inf:
            faults.append(f"start must be finite and not below 0, got {self.start:g}")
        if faults:
            raise LooksError("\n".join(faults))

    @cached_property
    def horizon(self) -> float:
        """Information at the planned horizon over the mixture's precision, for which the interval there is narrowest.

        Known from Lambert's function without estimated variance (Howard et al. 2021, proposition 3) if looks may begin
        at any time, else searched.
        """
        error = 1 - self.confidence
        known = -float(lambertw(-(error**2) / np.e, -1).real) - 1
        if self.freedom >= _NORMAL and self.start == 0.0:
            return known
        # Below this freedom the interval is unbounded up to a horizon of error^(−2/freedom) − 1.
        least = max(np.log(known) - 1, -2 * np.log(error) / self.freedom)
        most = least + 2 * max(np.log(known), 0.0) + 2 + (4.0 if self.start else 0.0)
        narrowest = minimize_scalar(self._log_width, bounds=(least, most), method="bounded")
        return float(np.exp(narrowest.x))

    def _log_width(self, log_horizon: float) -> float:
        horizon, known = float(np.exp(log_horizon)), np.array([min(self.freedom, _NORMAL)])
        critical = self._critical(np.array([horizon]), known, self._log_bound(horizon))
        return float(np.log(critical[0]))

    def multiplier(self, share: npt.ArrayLike, freedom: npt.ArrayLike | None = None) -> Floats:
        """Return the half-width at each look in standard errors of that look; infinite where it says nothing yet.

        Parameters
        ----------
        share : (n,) share of the planned information at hand, above 0; above 1 past the horizon. A share that is too
            low makes the interval wider before the horizon, never narrower.
        freedom : (n,) degrees of freedom at each look; those of the boundary if left out
        """
        information = self.horizon * np.asarray(share, dtype=np.float64)
        return self._critical(information, self._freedom(freedom, information), self._log_bound(self.horizon))

    def evidence(self, t: npt.ArrayLike, share: npt.ArrayLike, freedom: npt.ArrayLike | None = None) -> Floats:
        """Return the e-value against the null at each look: likelihood of the mixture over that of the null.

        Parameters
        ----------
        t : (n,) distance from the null in standard errors
        share, freedom : as in `multiplier`
        """
        information = self.horizon * np.asarray(share, dtype=np.float64)
        ratio, known = 1 + information, self._freedom(freedom, information)
        square = np.asarray(t, dtype=np.float64) ** 2
        with np.errstate(over="ignore"):
            normal = np.exp(np.minimum(square / 2 * (1 - 1 / ratio), 700.0))
            logs = np.log1p(square / known) - np.log1p(square / (known * ratio))
            small = np.exp(np.minimum((known + 1) / 2 * logs, 700.0))
        return np.asarray(np.where(known >= _NORMAL, normal, small) / np.sqrt(ratio), dtype=np.float64)

    def p_value(self, evidence: Floats) -> Floats:
        """Return the chance under the null that any look from the first on has as much evidence, at most.

        Parameters
        ----------
        evidence : as `evidence` returns it; the most of the looks so far
        """
        return np.exp(np.minimum(self._log_p(np.log(np.maximum(evidence, 1e-300)), self.horizon), 0.0))

    def _log_bound(self, horizon: float) -> float:
        """Logarithm of the evidence at which the null is ruled out."""
        log_error = float(np.log1p(-self.confidence))
        if self.start == 0.0:
            return -log_error
        least = -np.log1p(horizon * self.start) / 2  # the least evidence that there can be at the first look
        return float(
            brentq(lambda log: float(self._log_p(np.array([log]), horizon)[0]) - log_error, least, -log_error + 1e-9)
        )

    def _log_p(self, log: Floats, horizon: float) -> Floats:
        """Return the logarithm of the chance that the evidence from the first look on exceeds exp(log), or more."""
        if self.start == 0.0:
            return -log
        information, known = np.full(log.shape, horizon * self.start), np.full(log.shape, self.freedom)
        critical = self._critical(information, known, log)
        outside = _both_tails(critical, self.freedom)
        later = 1.0 - _both_tails(critical / np.sqrt(1.0 + information), self.freedom)
        with np.errstate(over="ignore", divide="ignore"):
            return np.asarray(np.log(outside + later * np.exp(np.minimum(-log, 700.0))), dtype=np.float64)

    def _freedom(self, freedom: npt.ArrayLike | None, like: Floats) -> Floats:
        given = np.asarray(self.freedom if freedom is None else freedom, dtype=np.float64)
        return np.broadcast_to(np.minimum(given, _NORMAL), np.broadcast_shapes(given.shape, like.shape))

    def _critical(self, information: Floats, freedom: Floats, log_bound: Floats | float) -> Floats:
        """Return the t at which the e-value is exp(log_bound); 0 where it is more at any t."""
        ratio = 1 + information
        log = np.maximum(np.log(ratio) / 2 + log_bound, 0.0)
        known = np.minimum(freedom, _NORMAL)
        growth = np.expm1(2 * log / (known + 1))
        room = 1 - (1 + growth) / ratio
        with np.errstate(divide="ignore", invalid="ignore"):
            small = np.where(room > 0, np.sqrt(known * growth / np.where(room > 0, room, 1.0)), np.inf)
            normal = np.sqrt(2 * log * ratio / information)
        return np.asarray(np.where(known >= _NORMAL, normal, small), dtype=np.float64)


def _both_tails(critical: Floats, freedom: float) -> Floats:
    """Return the chance to lie farther from 0, of Student's distribution."""
    tail = normal_tail(critical) if freedom >= _NORMAL else student_tail(critical, freedom)
    return np.asarray(2.0 * tail, dtype=np.float64)


def monitor(
    looks: pd.DataFrame,
    confidence: float = 0.95,
    null: float = 0.0,
    *,
    spending: Spending = "any-time",
    correlation: Floats | None = None,
) -> pd.DataFrame:
    """Return the intervals of an effect at each look: of all looks together, and valid only if this were the one look.

    All intervals together hold the effect with the confidence. Those at any time hold it however many looks are taken
    and whenever monitoring stops; the mixture is tuned for the freedom of the first look and for the horizon at which
    share is 1. Those of a spent error (`spending`) hold it at all looks up to that at which share is 1, and say nothing
    later; a look has the quantile of Student's distribution with as much beyond it (Pocock 1977).

    Parameters
    ----------
    looks : columns change, error (standard error), freedom, share (of the information planned, above 0, not
        falling); cumulative estimates, one row a look; change and error in the same unit; others are kept
    confidence : 0..1
    null : change to be excluded
    spending : how the error is spent over looks
    correlation : (K, K) of the looks' estimates, for a spent error; that of independent increments if left out

    Returns
    -------
    DataFrame
        The looks' columns and low, high (of all looks together; infinite where the look says nothing), fixed_low,
        fixed_high (Student's, for one look alone), p_value (of all looks so far: never rises), excluded (the null lies
        outside of the interval of all looks at this look or lay so at an earlier one).

    Raises
    ------
    LooksError
        With every fault of the table.

    Examples
    --------
    >>> looks = pd.DataFrame({"change": [0.02, 0.012], "error": [0.01, 0.003], "freedom": 49.0, "share": [0.1, 1.0]})
    >>> monitor(looks)[["low", "high", "fixed_low", "fixed_high", "excluded"]].round(4).values.tolist()
    [[-0.0214, 0.0614, -0.0001, 0.0401, False], [0.0025, 0.0215, 0.006, 0.018, True]]
    >>> monitor(looks, spending="obrien-fleming")[["low", "high"]].round(4).values.tolist()
    [[-0.0723, 0.1123], [0.006, 0.018]]
    """
    _check(looks)
    change, error, freedom, share = (looks[name].to_numpy(dtype=np.float64) for name in _COLUMNS)
    distance = np.abs(change - null) / error
    if spending == "any-time":
        boundary = Boundary(float(freedom[0]), confidence, float(share[0]))
        critical = boundary.multiplier(share, freedom)
        p_value = boundary.p_value(np.maximum.accumulate(boundary.evidence(distance, share, freedom)))
    else:
        related = canonical(share) if correlation is None else correlation
        critical = _spent(spending, share, freedom, related, 1 - confidence)
        p_value = _repeated(spending, distance, share, freedom, related)
    once = student_quantile((1 + confidence) / 2, np.minimum(freedom, _NORMAL)) * error
    return looks.assign(
        low=change - critical * error,
        high=change + critical * error,
        fixed_low=change - once,
        fixed_high=change + once,
        p_value=p_value,
        excluded=np.logical_or.accumulate(distance > critical),
    ).reset_index(drop=True)


def _spent(shape: Shape, share: Floats, freedom: Floats, correlation: Floats, error: float) -> Floats:
    """Return the half-widths, in standard errors, of looks over which an error is spent."""
    normal = boundaries(SHAPES[shape](share, error), correlation)
    return np.asarray(-student_quantile(normal_tail(normal), np.minimum(freedom, _NORMAL)), dtype=np.float64)


def _repeated(shape: Shape, distance: Floats, share: Floats, freedom: Floats, correlation: Floats) -> Floats:
    """Return the least error whose boundary has been crossed at each look or before, interpolated between levels."""
    critical = np.array([_spent(shape, share, freedom, correlation, level) for level in _LEVELS])
    logs = np.log(_LEVELS)
    p_value = np.ones(len(share))
    for look, reached in enumerate(distance):
        known = np.isfinite(critical[:, look])
        if known.any() and reached > critical[-1, look]:
            # Boundaries fall as the error rises.
            p_value[look] = np.exp(np.interp(-reached, -critical[known, look], logs[known]))
    return np.minimum.accumulate(p_value)


def price(freedom: float = np.inf, confidence: float = 0.95, start: float = 0.0) -> float:
    """Return how many times as wide as Student's the interval at any time is at the planned horizon.

    Parameters
    ----------
    freedom, confidence, start : as in `Boundary`

    Raises
    ------
    LooksError
        If one is out of bounds.

    Examples
    --------
    >>> round(price(), 3), round(price(24.0), 3), round(price(24.0, start=0.5), 3)
    (1.549, 1.604, 1.529)
    """
    always = float(Boundary(freedom, confidence, start).multiplier(1.0))
    return always / float(student_quantile((1 + confidence) / 2, min(freedom, _NORMAL)))


def _check(looks: pd.DataFrame) -> None:
    missing = [name for name in _COLUMNS if name not in looks.columns]
    if missing:
        raise LooksError(f"columns are missing: {', '.join(missing)}")
    if not len(looks):
        raise LooksError("looks: there should be one at least, got none")
    faults = []
    share = looks["share"].to_numpy(dtype=np.float64)
    for name in _COLUMNS:
        value = looks[name].to_numpy(dtype=np.float64)
        wrong = np.isnan(value) | (np.isinf(value) & (name != "freedom"))
        if name != "change":
            wrong |= ~(value > 0)
        bound = "finite" if name == "change" else "above 0" if name == "freedom" else "finite and above 0"
        faults += [f"look {row}: {name} should be {bound}, got {value[row]:g}" for row in np.flatnonzero(wrong)]
    for row in np.flatnonzero(np.diff(share) < 0) + 1:
        faults.append(f"look {row}: share should not fall, got {share[row]:g} after {share[row - 1]:g}")
    if faults:
        raise LooksError("\n".join(faults))
