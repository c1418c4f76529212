"""Trait models of cache size: data misses per instruction as a function of it (Stewart et al. 2008, section 3.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from models.arrays import Floats
from models.errors import InputError

Form: TypeAlias = Literal["logarithmic", "exponential", "power_law", "log_normal"]
"""The columns of table 2: y = A + B ln x, ln y = A + B x, ln y = A + B ln x, ln y = A + B ln x + B' ln² x."""
FORMS: tuple[Form, ...] = get_args(Form)

_FEATURES: dict[Form, Callable[[Floats], list[Floats]]] = {
    "logarithmic": lambda size: [np.ones_like(size), np.log(size)],
    "exponential": lambda size: [np.ones_like(size), size],
    "power_law": lambda size: [np.ones_like(size), np.log(size)],
    "log_normal": lambda size: [np.ones_like(size), np.log(size), np.log(size) ** 2],
}


@dataclass(frozen=True, slots=True, eq=False)
class MissModel:
    """Misses per instruction of any cache size, of one service or of many mixes at once."""

    form: Form
    coefficients: Floats
    """(..., 2) A and B, or (..., 3) A, B and B' of the log-normal; leading axes are those of the misses fitted."""

    @property
    def exponent(self) -> Floats:
        """B, the slope of log misses over log size of a power law: (...)."""
        return np.asarray(self.coefficients[..., 1])

    def __call__(self, size_bytes: Floats) -> Floats:
        """Return misses per instruction of caches of some sizes.

        Beyond the sizes fitted the curve goes on, but never below 0 or above 1: no log tells how often an instruction
        refers to memory, and few do more than once.

        Parameters
        ----------
        size_bytes : (S,) array, above 0

        Returns
        -------
        (..., S) array
        """
        linear = self.coefficients @ _features(self.form, np.asarray(size_bytes, dtype=np.float64))
        return np.clip(linear if self.form == "logarithmic" else np.exp(np.minimum(linear, 0.0)), 0.0, 1.0)


def fit(size_bytes: Floats, misses_per_instruction: Floats, form: Form = "power_law") -> MissModel:
    """Return the trait model that fits some caches' misses, by least squares (Stewart et al. 2008, section 3.3).

    The squares are of errors of the logarithm of misses, except those of the logarithmic form, whose misses may be 0.
    As many sizes as coefficients are fitted exactly: the published power law goes through the first two levels.

    Parameters
    ----------
    size_bytes : (L,) array, above 0, at least as many different ones as the form has coefficients
    misses_per_instruction : (..., L) array, above 0
    form : one of `FORMS`

    Raises
    ------
    ValueError
        If a size or a rate is not above 0, shapes differ or there are too few sizes.

    Examples
    --------
    >>> size = np.array([2.0**15, 2.0**17])
    >>> model = fit(size, np.array([0.06, 0.015]))
    >>> round(float(model.exponent), 6), model(np.array([2.0**19])).round(6)
    (-1.0, array([0.00375]))
    """
    size, misses = _checked(size_bytes, misses_per_instruction, form)
    target = misses if form == "logarithmic" else np.log(misses)
    # Columns are centred and scaled before the least squares: bytes and their squared logarithms differ by 10^7.
    features = _features(form, size)
    shift, scale = features[1:].mean(axis=1, keepdims=True), np.ptp(features[1:], axis=1)
    slopes = (target @ np.linalg.pinv((features[1:] - shift) / scale[:, None])) / scale
    intercept = target.mean(axis=-1, keepdims=True) - slopes @ shift
    return MissModel(form, np.concatenate([intercept, slopes], axis=-1))


def normalised_residuals(actual: Floats, predicted: Floats) -> Floats:
    """Return |predicted − actual| / actual, the paper's error metric (Stewart et al. 2008, section 3.1).

    Parameters
    ----------
    actual, predicted : arrays of shapes that broadcast, in the same unit

    Returns
    -------
    Array of their common shape; NaN where the actual value is not above 0 or either is missing.

    Examples
    --------
    >>> normalised_residuals(np.array([4.0, 0.0]), np.array([3.0, 3.0]))
    array([0.25,  nan])
    """
    actual, predicted = np.broadcast_arrays(actual, predicted)
    above = actual > 0
    return np.where(above, np.abs(predicted - actual), np.nan) / np.where(above, actual, 1.0)


def _features(form: Form, size: Floats) -> Floats:
    """Return what the form is linear in: (coefficients, S)."""
    return np.stack(_FEATURES[form](size))


def _checked(size_bytes: Floats, misses_per_instruction: Floats, form: Form) -> tuple[Floats, Floats]:
    """Return sizes and rates as arrays that the form can be fitted to."""
    if form not in FORMS:
        raise InputError(f"form must be one of {', '.join(FORMS)}, got {form!r}")
    size = np.asarray(size_bytes, dtype=np.float64)
    misses = np.asarray(misses_per_instruction, dtype=np.float64)
    if size.ndim != 1 or misses.ndim < 1 or misses.shape[-1] != len(size):
        raise InputError(f"sizes must be (L,) and misses (..., L), got {size.shape} and {misses.shape}")
    for name, values, least in (("size", size, True), ("misses per instruction", misses, form != "logarithmic")):
        wrong = ~(np.isfinite(values) & ((values > 0) if least else (values >= 0)))
        if wrong.any():
            raise InputError(f"{name} must be {'above 0' if least else 'at least 0'}, got {values[wrong][0]:g}")
    needed, have = 3 if form == "log_normal" else 2, len(np.unique(size))
    if have < needed:
        raise InputError(f"{form} needs {needed} different cache sizes, got {have}")
    return size, misses
