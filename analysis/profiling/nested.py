"""The inverse covariance of rows in units in blocks, where units have something in common and blocks are free."""

from dataclasses import dataclass

import numpy as np

from analysis.profiling.cells import summed
from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """The inverse covariance of R rows in U units in B blocks, for F functions; levels of blocks are projected out."""

    weight: Floats
    """(R, F) precision within units."""
    unit: Ints
    """(R,) each row's unit."""
    block: Ints
    """(U,) each unit's block."""
    kept: Floats
    """(U, F) share of a unit's mean that is its block's and not its own."""
    load: Floats
    """(U, F) sums of the weights."""
    level: Floats
    """(B, F) precision of a block's level."""

    @classmethod
    def of(cls, weight: Floats, lasting: Floats, unit: Ints, block: Ints) -> "Nested":
        """Return that of rows.

        Parameters
        ----------
        weight : (R, F) precision within units
        lasting : variance between units, that goes with (U, F)
        unit : (R,) each row's
        block : (U,) each unit's

        Examples
        --------
        >>> zero = np.zeros(2, np.int64)
        >>> Nested.of(np.ones((2, 1)), np.ones((1, 1)), zero, zero[:1]).weighted(np.array([[0.0], [1.0]]))
        array([[-0.5],
               [ 0.5]])
        """
        load = summed(weight, unit, len(block))
        kept = 1.0 / (1.0 + load * lasting)
        return cls(weight, unit, block, kept, load, summed(load * kept, block, int(block.max()) + 1))

    def levels(self, values: Floats) -> Floats:
        """Return (B, F) levels of blocks by generalised least squares, of (R, F) values."""
        return self._levels(self._inside(values))

    def weighted(self, values: Floats) -> Floats:
        """Return the inverse covariance times (R, F) values, levels projected out."""
        inside = self._inside(values)
        own = (1.0 - self.kept) * inside / self.load + self.kept * self._levels(inside)[self.block]
        return np.asarray(self.weight * (values - own[self.unit]), dtype=np.float64)

    def square(self, acts: Floats) -> Floats:
        """Return (F,) the product of (R,) values, 0 or 1, with themselves in that metric."""
        there = np.flatnonzero(acts)
        weight = self.weight[there]
        inside = summed(weight, self.unit[there], len(self.block))
        level = summed(inside * self.kept, self.block, len(self.level))
        units = ((1.0 - self.kept) * inside**2 / self.load).sum(axis=0)
        return np.asarray(weight.sum(axis=0) - units - (level**2 / self.level).sum(axis=0), dtype=np.float64)

    def _inside(self, values: Floats) -> Floats:
        return summed(self.weight * values, self.unit, len(self.block))

    def _levels(self, inside: Floats) -> Floats:
        return np.asarray(summed(inside * self.kept, self.block, len(self.level)) / self.level, dtype=np.float64)


def tied(own: Floats, drift: float) -> Floats:
    """Return by what a product is lessened when two periods' deviations, of variance `drift` each, are free to move.

    Of the deviations their difference is left, of variance 2 `drift`: one further term in the inverse (Woodbury 1950).

    Parameters
    ----------
    own : product of the later period's indicator with itself
    drift : variance

    Examples
    --------
    >>> tied(np.array([1.0]), 0.5), tied(np.array([1.0]), 0.0)
    (array([0.5]), array([0.]))
    """
    return own * 0.0 if drift <= 0 else 1.0 / (own + 0.5 / drift)
