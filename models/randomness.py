"""Random streams that belong to names, so that adding a consumer shifts nobody's draws."""

import hashlib

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
