"""Random streams that belong to names, so that adding a consumer shifts nobody's draws."""

import hashlib
from collections.abc import Sequence

import numpy as np


def key(name: str) -> int:
    """Return the 64-bit key that belongs to `name`.

    Examples
    --------
    >>> key("machines") == key("machines"), key("machines") == key("jobs")
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def stream(seed: int, name: str) -> np.random.Generator:
    """Return the generator that belongs to `name` under `seed`.

    Parameters
    ----------
    seed : non-negative integer
    name : what the draws are for, such as ``"drains"``

    Examples
    --------
    >>> a, b = stream(1, "drains"), stream(1, "drains")
    >>> bool(a.random() == b.random())
    True
    """
    return np.random.default_rng(np.random.SeedSequence([seed, key(name)]))


def streams(seed: int, what: str, names: Sequence[str]) -> list[np.random.Generator]:
    """Return a generator for each of several things, which belongs to its name: a further one shifts nobody's draws.

    Parameters
    ----------
    seed : non-negative integer

    Examples
    --------
    >>> few, more = streams(1, "states", ["a", "b"]), streams(1, "states", ["c", "a", "b"])
    >>> [rng.random() for rng in few] == [rng.random() for rng in more[1:]]
    True
    """
    return [stream(seed, f"{what} of {name}") for name in names]
