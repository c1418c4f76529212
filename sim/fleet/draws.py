"""Draws that belong to a key and a counter: what is random in an epoch of the compiled kernel."""

import numpy as np

from models.arrays import Floats
from models.code.compiled import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
OWN = np.uint64(0x5851F42D4C957F2D)
"""Tells an instance's draws from those of machines and jobs."""
OF_LOAD = np.uint64(0xA0761D6478BD642F)
"""Tells an instance's draws of load from its others."""
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(cache=True, inline="always")
def mix(x: np.uint64) -> np.uint64:
    """Return a number that looks unrelated to `x` (splitmix64; Steele, Lea and Flood 2014, fig. 13)."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def noise(key: np.uint64, epoch: int) -> float:
    """Return a draw that belongs to (key, epoch): four 16-bit uniforms summed, mean 0, variance 1."""
    x, low = mix(key + np.uint64(epoch) * _GOLDEN), np.uint64(0xFFFF)
    total = (x & low) + ((x >> np.uint64(16)) & low) + ((x >> np.uint64(32)) & low) + (x >> np.uint64(48))
    return (np.float64(np.int64(total)) / 65536.0 - 2.0 + 2.0 / 65536.0) * 1.7320508075688772


@njit(cache=True)
def noises(key: np.uint64, first: int, last: int) -> Floats:
    """Return the draws of `noise` that belong to a key and the counters from one to before another."""
    draws = np.empty(last - first)
    for i in range(last - first):
        draws[i] = noise(key, first + i)
    return draws


@njit(borrows=True)
def uniform(key: np.uint64, counter: int) -> float:
    """Return a draw from 0 to 1 that belongs to (key, counter)."""
    return float(
        (np.float64(np.int64(mix(key ^ mix(np.uint64(counter + 1))) >> np.uint64(11))) + 0.5) / 9007199254740992.0
    )


@njit(borrows=True)
def normal(key: np.uint64, counter: int) -> float:
    """Return a standard normal draw that belongs to (key, counter), by Box and Muller (1958)."""
    a = mix(key + np.uint64(2 * counter + 1) * _GOLDEN)
    b = mix(key + np.uint64(2 * counter + 2) * _GOLDEN)
    u = (np.float64(np.int64(a >> np.uint64(11))) + 0.5) / 9007199254740992.0
    v = np.float64(np.int64(b >> np.uint64(11))) / 9007199254740992.0
    return float(np.sqrt(-2.0 * np.log(u)) * np.cos(6.283185307179586 * v))
