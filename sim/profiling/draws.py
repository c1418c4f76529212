"""Draws that belong to keys, and choices by weight from them: the same for who or whatever asks, in any order."""

from dataclasses import dataclass

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
    """
    keys = np.array(key(f"{name} {seed}"), np.uint64)
    for number in numbers:
        keys = mixed(keys, number.astype(np.uint64))
    return keys


def mixed(first: Keys, second: Keys) -> Keys:
    """Return keys that belong to both of each pair of keys; arrays broadcast."""
    with np.errstate(over="ignore"):
        return _scramble(_scramble(first + _GOLDEN) + _GOLDEN * second)


def uniforms(keys: Keys) -> Floats:
    """Return a draw in 0..1, both excluded, that belongs to each key."""
    with np.errstate(over="ignore"):
        drawn = _scramble(keys + _GOLDEN)
    return ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def normals(keys: Keys) -> Floats:
    """Return a standard normal draw that belongs to each key, by Box and Muller (1958)."""
    radius = np.sqrt(-2.0 * np.log(uniforms(keys)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniforms(keys ^ _MIX_1)))


def _scramble(x: Keys) -> Keys:
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * _MIX_1
        x = (x ^ (x >> np.uint64(27))) * _MIX_2
        return np.asarray(x ^ (x >> np.uint64(31)))


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of things with weights: those of list i are `start[i]` to `start[i + 1]`."""

    start: Ints
    upper: Floats
    """Number of the list plus the share of its weight up to and with each thing."""

    @classmethod
    def of(cls, start: Ints, weight: Floats) -> "Lists":
        """Return lists to choose from.

        Parameters
        ----------
        start : (n + 1,) array, ascending; no list is empty
        weight : things' weights, of any sum
        """
        count = np.diff(start)
        running = np.cumsum(weight)
        before = np.repeat(np.concatenate([[0.0], running])[start[:-1]], count)
        total = np.repeat(np.add.reduceat(weight, start[:-1]), count)
        of = np.repeat(np.arange(count.size, dtype=np.float64), count)
        return cls(start, of + np.minimum((running - before) / total, 1.0))

    def pick(self, which: Ints, uniform: Floats) -> Ints:
        """Return one thing of each list asked for.

        Parameters
        ----------
        which : (n,) array of lists
        uniform : (n,) array in 0..1, the draws
        """
        place = np.searchsorted(self.upper, which + uniform, side="right")
        return np.clip(place, self.start[which], self.start[which + 1] - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """n samples: the cell and the function that each fell on, and a key for what else is drawn of it."""

    cell: Ints
    """Row × events + event."""
    function: Ints
    key: Keys


def draw_samples(expected: Floats, keys: Keys) -> Draws:
    """Return the samples of every row and event, each on a function.

    Their number is the expected one rounded up or down at random, as a counter that has run for long overflows; each
    falls on a function in proportion to what is expected of it.

    Parameters
    ----------
    expected : (R, F, K) samples expected of each row's functions, by event
    keys : (R, K) keys of the draws
    """
    rows, functions, events = expected.shape
    if functions == 0 or rows == 0:
        return Draws(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))
    wide = np.ascontiguousarray(expected.transpose(0, 2, 1)).reshape(rows * events, functions)
    total = wide.sum(axis=1)
    flat = keys.reshape(-1)
    count = np.floor(total + uniforms(flat)).astype(np.int64)
    cell = np.repeat(np.arange(count.size), count)
    ordinal = np.arange(cell.size) - np.repeat(np.cumsum(count) - count, count)
    key = mixed(flat[cell], ordinal.astype(np.uint64))
    nonzero = np.flatnonzero(count)
    place = np.zeros(count.size, np.int64)
    place[nonzero] = np.arange(nonzero.size)
    upper = np.cumsum(wide[nonzero], axis=1)
    upper /= upper[:, -1:]
    upper += np.arange(nonzero.size)[:, None]
    row = place[cell]
    function = np.searchsorted(upper.reshape(-1), row + uniforms(key), side="right") - row * functions
    return Draws(cell, np.clip(function, 0, functions - 1), key)
