"""Least squares of a weighted design that may be collinear: solutions, covariances, and what the rows do not tell."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from models.arrays import Floats

NULL = 1e-7
"""Singular values of the scaled design below this share of the largest are rounding errors of counts."""
_SPREADS = np.geomspace(0.05, 5.0, 21)
"""Deviations of coefficients, relative to the prior's unit, among which the evidence chooses."""


@dataclass(frozen=True, slots=True, eq=False)
class DecomposedDesign:
    """Singular value decomposition of weighted counts whose columns were scaled to length 1."""

    length: Floats
    left: Floats
    singular: Floats
    right: Floats

    @classmethod
    def of(cls, rows: Floats) -> "DecomposedDesign":
        """Decompose (n, J) rows."""
        length = np.linalg.norm(rows, axis=0)
        length[length == 0] = 1.0
        # At least as many rows as types, so that `right` has a row for each type; rows of zeros change nothing.
        missing = max(rows.shape[1] - len(rows), 0)
        left, singular, right = np.linalg.svd(np.pad(rows / length, ((0, missing), (0, 0))), full_matrices=False)
        return cls(length, left[: len(rows)], singular, right)

    @property
    def rank(self) -> int:
        """Coefficients, or sums of them, that the rows tell."""
        return int((self.singular > NULL * self.singular[0]).sum())

    @property
    def root(self) -> Floats:
        """(J, rank) from scores to coefficients."""
        return np.asarray((self.right[: self.rank] / self.length).T / self.singular[: self.rank])

    def solve(self, target: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients with the least squares, the smallest such, and the errors that they leave."""
        scores = self.left[:, : self.rank].T @ target
        return self.root @ scores, target - self.left[:, : self.rank] @ scores

    def robust_covariance(self, error: Floats, residual_sd: float) -> Floats:
        """Return the covariance HC3; an interval that alone tells a cost has no error of its own, so the mean one."""
        left = self.left[:, : self.rank]
        free = 1.0 - (left**2).sum(axis=1)
        alone = free < 0.01
        inflated = left * np.where(alone, residual_sd, error / np.where(alone, 1.0, free))[:, None]
        half = inflated @ self.root.T
        return np.asarray(half.T @ half)

    def untold(self) -> Floats:
        """Return the projection on directions in which coefficients may move and change no interval: (J, J)."""
        basis, _ = np.linalg.qr((self.right[self.rank :] / self.length).T)
        return np.asarray(basis @ basis.T)

    def condition_number(self, types: int) -> float:
        """Return the largest over the smallest singular value of the types that came."""
        return float(self.singular[0] / self.singular[types - 1]) if self.rank == types else np.inf


def posterior(rows: Floats, beyond: Floats, unit: float, noise_sd: float) -> tuple[Floats, Floats]:
    """Return mean and covariance of coefficients whose normal prior is around 0: (J,) and (J, J).

    The prior's deviation s is the share of its unit with the greatest evidence, that of beyond ~ N(0, noise² I + s² X
    Xᵀ), in the eigenvectors of Xᵀ X (MacKay 1992, section 4).

    Parameters
    ----------
    rows : (n, J) array X
    beyond : (n,) array, what is to be explained
    unit : at least 0
    noise_sd : deviation of the errors of the best explanation
    """
    values, vectors = np.linalg.eigh(rows.T @ rows)
    # Directions that are rounding errors tell nothing; noise is no smaller than them.
    told = values > NULL**2 * values[-1]
    values, moment = np.where(told, values, 0.0), np.where(told, vectors.T @ (rows.T @ beyond), 0.0)
    unit = max(unit, np.finfo(np.float64).tiny ** 0.25)
    noise = max(noise_sd, 1e-9 * unit * float(np.sqrt(values[-1] / len(rows)))) ** 2
    spread = (_SPREADS[:, None] * unit) ** 2
    evidence = (spread * moment**2 / (noise + spread * values) / noise - np.log1p(spread * values / noise)).sum(axis=1)
    precision = values / noise + 1.0 / spread[evidence.argmax()]
    covariance: Floats = (vectors / precision) @ vectors.T
    return vectors @ (moment / noise / precision), covariance


def nearest(gram: Floats, coefficients: Floats) -> Floats:
    """Return the non-negative coefficients nearest to some, squared distances measured by a matrix (J, J).

    Where it is that of a design, they are its non-negative least squares (Lawson and Hanson 1974, chapter 23).
    """
    if (coefficients >= 0).all():
        return coefficients
    values, vectors = np.linalg.eigh(gram)
    # What changes no interval is held a little, so that the nearest is one.
    root = np.sqrt(np.maximum(values, 1e-12 * values[-1]))[:, None] * vectors.T
    return np.asarray(nnls(root, root @ coefficients)[0])
