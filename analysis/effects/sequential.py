"""Monitoring at any time: intervals that hold at all looks together, beside those that hold at one look alone."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import lambertw
from scipy.stats import t as student

from models.arrays import Floats
from models.errors import WscError

_COLUMNS = ("change", "error", "freedom", "share")
_NORMAL = 1e6
"""Degrees of freedom from which Student's distribution is taken for the normal one."""
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

    Parameters
    ----------
    freedom : degrees of freedom for which the mixture is tuned, above 0; may be infinite
    confidence : 0..1, of all looks together
    """

    freedom: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        faults = []
        if not self.freedom > 0:
            faults.append(f"freedom must be above 0, got {self.freedom:g}")
        if not _LEAST <= self.confidence < 1:
            faults.append(f"confidence must be at least {_LEAST:g} and below 1, got {self.confidence:g}")
        if faults:
            raise LooksError("\n".join(faults))

    @cached_property
    def horizon(self) -> float:
        """Information at the planned horizon over the mixture's precision, for which the interval there is narrowest.

        Known from Lambert's function without estimated variance (Howard et al. 2021, proposition 3), searched with it.
        """
        error = 1 - self.confidence
        known = -float(lambertw(-(error**2) / np.e, -1).real) - 1
        if self.freedom >= _NORMAL:
            return known
        # Below this freedom the interval is unbounded up to a horizon of error^(−2/freedom) − 1.
        least = max(np.log(known) - 1, -2 * np.log(error) / self.freedom)
        narrowest = minimize_scalar(
            lambda log: float(np.log(self._critical(np.exp(np.array([log])), np.array([self.freedom]))[0])),
            bounds=(least, least + 2 * max(np.log(known), 0.0) + 2),
            method="bounded",
        )
        return float(np.exp(narrowest.x))

    def multiplier(self, share: npt.ArrayLike, freedom: npt.ArrayLike | None = None) -> Floats:
        """Return the half-width at each look in standard errors of that look; infinite where it says nothing yet.

        Parameters
        ----------
        share : (n,) share of the planned information at hand, above 0; above 1 past the horizon. A share that is too
            low makes the interval wider before the horizon, never narrower.
        freedom : (n,) degrees of freedom at each look; those of the boundary if left out
        """
        information = self.horizon * np.asarray(share, dtype=np.float64)
        return self._critical(information, self._freedom(freedom, information))

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

    def _freedom(self, freedom: npt.ArrayLike | None, like: Floats) -> Floats:
        given = np.asarray(self.freedom if freedom is None else freedom, dtype=np.float64)
        return np.broadcast_to(np.minimum(given, _NORMAL), np.broadcast_shapes(given.shape, like.shape))

    def _critical(self, information: Floats, freedom: Floats) -> Floats:
        """Return the t at which the e-value is 1 / (1 − confidence)."""
        ratio = 1 + information
        log = np.log(ratio) / 2 - np.log1p(-self.confidence)
        known = np.minimum(freedom, _NORMAL)
        growth = np.expm1(2 * log / (known + 1))
        room = 1 - (1 + growth) / ratio
        with np.errstate(divide="ignore", invalid="ignore"):
            small = np.where(room > 0, np.sqrt(known * growth / np.where(room > 0, room, 1.0)), np.inf)
            normal = np.sqrt(2 * log * ratio / information)
        return np.asarray(np.where(known >= _NORMAL, normal, small), dtype=np.float64)


def monitor(looks: pd.DataFrame, confidence: float = 0.95, null: float = 0.0) -> pd.DataFrame:
    """Return the intervals of an effect at each look: always valid, and valid only if this were the one look.

    All always-valid intervals together hold the effect with the confidence, however many looks are taken and whenever
    monitoring stops. The mixture is tuned for the freedom of the first look and for the horizon at which share is 1.

    Parameters
    ----------
    looks : columns change, error (standard error), freedom, share (of the information planned, above 0, not
        falling); cumulative estimates, one row a look; change and error in the same unit; others are kept
    confidence : 0..1
    null : change to be excluded

    Returns
    -------
    DataFrame
        The looks' columns and low, high (always valid; infinite where the look says nothing), fixed_low, fixed_high
        (Student's, for one look alone), p_value (always valid: never rises), excluded (the null lies outside of the
        always-valid interval at this look or lay so at an earlier one).

    Raises
    ------
    LooksError
        With every fault of the table.

    Examples
    --------
    >>> looks = pd.DataFrame({"change": [0.02, 0.012], "error": [0.01, 0.003], "freedom": 49.0, "share": [0.1, 1.0]})
    >>> monitor(looks)[["low", "high", "fixed_low", "fixed_high", "excluded"]].round(4).values.tolist()
    [[-0.0217, 0.0617, -0.0001, 0.0401, False], [0.0025, 0.0215, 0.006, 0.018, True]]
    """
    _check(looks)
    change, error, freedom, share = (looks[name].to_numpy(dtype=np.float64) for name in _COLUMNS)
    boundary = Boundary(float(freedom[0]), confidence)
    always = boundary.multiplier(share, freedom) * error
    once = student.ppf((1 + confidence) / 2, np.minimum(freedom, _NORMAL)) * error
    evidence = boundary.evidence((change - null) / error, share, freedom)
    p_value = np.minimum(1 / np.maximum.accumulate(evidence), 1.0)
    outside = np.abs(change - null) > always
    return looks.assign(
        low=change - always,
        high=change + always,
        fixed_low=change - once,
        fixed_high=change + once,
        p_value=p_value,
        excluded=np.logical_or.accumulate(outside),
    ).reset_index(drop=True)


def price(freedom: float = np.inf, confidence: float = 0.95) -> float:
    """Return how many times as wide as Student's the always-valid interval is at the planned horizon.

    Parameters
    ----------
    freedom, confidence : as in `Boundary`

    Raises
    ------
    LooksError
        If one is out of bounds.

    Examples
    --------
    >>> round(price(), 3), round(price(24.0), 3)
    (1.549, 1.604)
    """
    always = float(Boundary(freedom, confidence).multiplier(1.0))
    return always / float(student.ppf((1 + confidence) / 2, min(freedom, _NORMAL)))


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
