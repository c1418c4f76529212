"""Small systems of linear equations inside compiled code, by Gaussian elimination.

NumPy's `linalg.solve` gives the same and compiles for ten seconds wherever a compiled function calls it.
"""

from models.arrays import Floats
from models.code.compiled import njit

RIDGE = 1e-9
"""Of a covariate's own square, added to it: copies of one covariate share its slope."""
TINY = 1e-12
"""Added to every square: a covariate that does not vary has no slope."""


@njit(cache=False)
def solved(square: Floats, right: Floats) -> Floats:
    """Return the solution of square · solution = right, with partial pivoting (Golub and Van Loan 2013, section 3.4).

    Parameters
    ----------
    square : (K, K) array of numbers, no NaN; where it is singular, unknowns that nothing is left for are 0, and
        equations that contradict each other are not told
    right : (K,) array

    Examples
    --------
    >>> import numpy as np
    >>> solved(np.array([[0.0, 2.0], [2.0, 3.0]]), np.array([4.0, 8.0])).tolist()
    [1.0, 2.0]
    """
    size = right.size
    left, solution = square.copy(), right.copy()
    for k in range(size):
        pivot = k
        for row in range(k + 1, size):
            if abs(left[row, k]) > abs(left[pivot, k]):
                pivot = row
        for column in range(size):
            left[k, column], left[pivot, column] = left[pivot, column], left[k, column]
        solution[k], solution[pivot] = solution[pivot], solution[k]
        for row in range(k + 1, size):
            share = left[row, k] / left[k, k] if left[k, k] != 0.0 else 0.0
            for column in range(k, size):
                left[row, column] -= share * left[k, column]
            solution[row] -= share * solution[k]
    for k in range(size - 1, -1, -1):
        for column in range(k + 1, size):
            solution[k] -= left[k, column] * solution[column]
        solution[k] = solution[k] / left[k, k] if left[k, k] != 0.0 else 0.0
    return solution


@njit(cache=False)
def slopes(square: Floats, product: Floats) -> Floats:
    """Return the slopes of least squares on covariates, of which some may be copies or sums of others, or constant.

    Parameters
    ----------
    square : (K, K) array, products of the covariates with each other, each less its mean
    product : (K,) array, products of the covariates with what is explained

    Examples
    --------
    >>> import numpy as np
    >>> slopes(np.array([[2.0, 2.0], [2.0, 2.0]]), np.array([6.0, 6.0])).round(6).tolist()
    [1.5, 1.5]
    """
    ridged = square.copy()
    for k in range(product.size):
        ridged[k, k] += RIDGE * max(square[k, k], 0.0) + TINY
    return solved(ridged, product)
