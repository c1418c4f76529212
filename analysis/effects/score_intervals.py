"""Intervals of differences of proportions on few clusters: the variance is that of the difference in question.

A share of yes has the variance p (1 − p), so an arm that happens to show few yes shows little variance, too, and an
interval by the variance that is seen is short where the estimate is too low. Here a difference δ is in the interval if
the arms do not refute it with the variances that they would have if it were δ (Mee 1984; Miettinen and Nurminen 1985;
Farrington and Manning 1990, appendix). Clusters count by their design effect (Rao and Scott 1992).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analysis.statistics import student_quantile
from models.arrays import Floats

_HALVINGS = 50


class Proportions(NamedTuple):
    """How values near 1 are proportions: `origin` + `unit` × (value − 1)."""

    origin: float
    unit: float


@dataclass(frozen=True, slots=True, eq=False)
class ProportionArms:
    """Shares of yes in both arms of J comparisons, and how well they are known; (J, 2) without and with the feature."""

    share: Floats
    """0..1"""
    unit: Floats
    """The variance of each share is so many times an instance's."""
    variance: Floats
    """Of each share, as its clusters show it."""
    freedom: Floats
    """Of that variance."""

    @property
    def design_effect(self) -> Floats:
        """(J,) by how much more instances vary than independent ones with the same share of yes; of both arms."""
        # What a share's own variance takes from p (1 − p) is given back: E p̂ (1 − p̂) = p (1 − p) − Var p̂.
        expected = self.share * (1.0 - self.share) + self.variance
        with np.errstate(divide="ignore", invalid="ignore"):
            shown = self.variance / self.unit
            return np.asarray((self.freedom * shown).sum(axis=1) / (self.freedom * expected).sum(axis=1))

    @property
    def change(self) -> Floats:
        """(J,) the difference."""
        return np.asarray(self.share[:, 1] - self.share[:, 0])

    @property
    def joined(self) -> Floats:
        """(J,) degrees of freedom of the design effect."""
        return np.asarray(self.freedom.sum(axis=1))

    @property
    def error(self) -> Floats:
        """(J,) of the difference, were there none."""
        likely = restricted(self.share, self.unit, np.zeros(len(self.share)))
        return np.asarray(np.sqrt(self.design_effect * (likely * (1.0 - likely) * self.unit).sum(axis=1)))

    def distance(self, change: Floats) -> Floats:
        """Return by how many standard errors the arms differ more than by so much; (J,)."""
        likely = restricted(self.share, self.unit, change)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(self.design_effect * (likely * (1.0 - likely) * self.unit).sum(axis=1))
            return np.asarray((self.change - change) / error)

    def ends(self, confidence: float) -> tuple[Floats, Floats]:
        """Return the ends of the differences that are not refuted; NaN where nothing is known of a variance."""
        width = np.asarray(student_quantile(0.5 + confidence / 2, self.joined))
        known = np.isfinite(width) & np.isfinite(self.change) & (self.design_effect > 0)
        ends = []
        for sign in (-1.0, 1.0):
            inside, outside = self.change.copy(), np.full(len(width), sign)
            for _ in range(_HALVINGS):
                middle = (inside + outside) / 2
                refuted = np.abs(self.distance(middle)) > width
                inside, outside = np.where(refuted, inside, middle), np.where(refuted, middle, outside)
            ends.append(np.where(known, inside, np.nan))
        return ends[0], ends[1]


def restricted(share: Floats, unit: Floats, change: Floats) -> Floats:
    """Return the likeliest shares of both arms that differ by so much (Farrington and Manning 1990, appendix).

    Parameters
    ----------
    share, unit : (J, 2) as `ProportionArms`
    change : (J,) -1..1

    Returns
    -------
    Floats
        (J, 2), 0..1.

    Examples
    --------
    >>> restricted(np.array([[0.2, 0.4]]), np.array([[0.01, 0.01]]), np.array([0.0])).round(6)
    array([[0.3, 0.3]])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = unit[:, 1] / unit[:, 0]
        a = 1.0 + ratio
        b = -(a + share[:, 1] + ratio * share[:, 0] + change * (ratio + 2.0)) / (3.0 * a)
        c = (change**2 + change * (2.0 * share[:, 1] + a) + share[:, 1] + ratio * share[:, 0]) / (3.0 * a)
        d = -share[:, 1] * change * (1.0 + change) / a
        v = b**3 - 1.5 * b * c + d / 2.0
        u = np.where(v >= 0, 1.0, -1.0) * np.sqrt(np.maximum(b**2 - c, 0.0))
        angle = (np.pi + np.arccos(np.clip(np.where(u != 0, v / u**3, 0.0), -1.0, 1.0))) / 3.0
    on = np.clip(2.0 * u * np.cos(angle) - b, np.maximum(change, 0.0), np.minimum(1.0 + change, 1.0))
    return np.stack([on - change, on], axis=1)
