"""Draws that belong to keys: the same for who or whatever asks, in any order (splitmix64; Steele, Lea, Flood 2014)."""

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.randomness import key

Keys = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def keys_of(seed: int, name: str, *numbers: Ints) -> Keys:
    """Return keys that belong to a seed, what the draws are for, and numbers.

    Parameters
    ----------
    seed, name : as of a stream
    numbers : arrays that broadcast against each other, none negative

    Examples
    --------
    >>> one, other = keys_of(1, "shards", np.array([3, 4]), np.array([7])), keys_of(1, "days", np.array([3, 4]))
    >>> one.shape, bool((one != other).all())
    ((2,), True)
    """
    made = np.array(key(f"{name} {seed}"), np.uint64)
    for number in numbers:
        made = mixed(made, number.astype(np.uint64))
    return made


def mixed(first: Keys, second: Keys) -> Keys:
    """Return keys that belong to both of each pair of keys; arrays broadcast.

    Examples
    --------
    >>> a, b = np.array([1, 2], np.uint64), np.array([[5], [6]], np.uint64)
    >>> np.unique(mixed(a, b)).size
    4
    """
    with np.errstate(over="ignore"):
        return _scramble(_scramble(first + _GOLDEN) + _GOLDEN * second)


def uniforms(keys: Keys) -> Floats:
    """Return a draw in 0..1, both excluded, that belongs to each key.

    Examples
    --------
    >>> bool(abs(uniforms(np.arange(10_000, dtype=np.uint64)).mean() - 0.5) < 0.02)
    True
    """
    with np.errstate(over="ignore"):
        drawn = _scramble(keys + _GOLDEN)
    return ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def normals(keys: Keys) -> Floats:
    """Return a standard normal draw that belongs to each key, by Box and Muller (1958).

    Examples
    --------
    >>> bool(abs(normals(np.arange(10_000, dtype=np.uint64)).std() - 1) < 0.03)
    True
    """
    radius = np.sqrt(-2.0 * np.log(uniforms(keys)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniforms(keys ^ _MIX_1)))


def _scramble(x: Keys) -> Keys:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * _MIX_1
        x = (x ^ (x >> np.uint64(27))) * _MIX_2
        return np.asarray(x ^ (x >> np.uint64(31)))
