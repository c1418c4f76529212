"""Entropy of profiles, and what sampling does to it."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.profiling.clusters import Clusters
from analysis.profiling.effective import share_variances
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats
from models.errors import InputError

Correction = Literal["none", "miller-madow", "chao-shen"]


def entropy(counts: Floats, *, correction: Correction = "miller-madow", bits: bool = False) -> float:
    """Return the entropy of a profile of independent samples, −Σ p log p (Shannon 1948; Ren et al. 2010).

    The plain value is too small on average. Miller and Madow (1955) add (K − 1) / 2n for K entries; Chao and Shen
    (2003) also allow for entries not seen, which needs counts of samples and not estimated events.

    Parameters
    ----------
    counts : (K,) samples of each entry; zeros do not matter
    correction : ``"none"``, ``"miller-madow"`` or ``"chao-shen"``
    bits : in bits and not in nats

    Raises
    ------
    NotEnoughDataError
        If there are no samples.
    ValueError
        If a count is negative or not finite, or the correction is unknown.

    Examples
    --------
    >>> entropy(np.array([5.0, 5.0]), correction="none", bits=True)
    1.0
    """
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise InputError("counts must be finite and not negative")
    seen = np.sort(counts[counts > 0])
    if not len(seen):
        raise NotEnoughDataError(1, 0, "samples")
    total = float(seen.sum())
    share = seen / total
    if correction == "none":
        nats = -float(share @ np.log(share))
    elif correction == "miller-madow":
        nats = -float(share @ np.log(share)) + (len(seen) - 1) / (2 * total)
    elif correction == "chao-shen":
        nats = _chao_shen(share, total, int(np.sum(seen == 1)))
    else:
        raise InputError(f"correction must be none, miller-madow or chao-shen, got {correction}")
    return nats / math.log(2) if bits else nats


def _chao_shen(share: Floats, total: float, singletons: int) -> float:
    """Return the entropy with shares lessened by the estimated coverage, weighted as Horvitz and Thompson do."""
    coverage = 1.0 - min(singletons, total - 1) / total
    shrunk = coverage * share
    return float(np.sum(-shrunk * np.log(shrunk) / -np.expm1(total * np.log1p(-np.minimum(shrunk, 1 - 1e-15)))))


@dataclass(frozen=True, slots=True)
class Entropy:
    """Entropy of a clustered profile, nats unless bits were asked for."""

    value: float
    """Corrected for its bias."""
    plain: float
    """As the formula has it."""
    standard_error: float
    """From the spread between clusters; NaN with one cluster."""
    entries: int
    samples: int


def clustered_entropy(clustered: pd.DataFrame, *, cluster: str = "machine", bits: bool = False) -> Entropy:
    """Return a profile's entropy with the error and the bias that its clusters give it.

    By the delta method: the error is that of Σ −log p, the bias −½ Σ var(p)/p, which is Miller and Madow's (1955) where
    samples are independent.

    Parameters
    ----------
    clustered : columns of keys, the cluster, samples, value
    cluster : what was drawn
    bits : in bits and not in nats

    Raises
    ------
    NotEnoughDataError
        If the profile is empty.

    Examples
    --------
    >>> table = pd.DataFrame({"f": ["a", "b"] * 2, "machine": [1, 1, 2, 2], "samples": 5, "value": 5})
    >>> found = clustered_entropy(table, bits=True)
    >>> found.plain, found.standard_error
    (1.0, 0.0)
    """
    data = Clusters.of(clustered, cluster)
    if not len(data.keys):
        raise NotEnoughDataError(1, 0, "samples")
    share, clusters = data.shares, len(data.size)
    surprise = -np.log(share)
    plain = float(share @ surprise)
    bias = float(np.sum(share_variances(data) / share)) / 2 if clusters > 1 else 0.0
    score = np.bincount(data.cluster, data.value * surprise[data.key], clusters) - plain * data.size
    leverage = np.minimum(data.size / data.total, 1 - 1e-9)
    error = math.sqrt(float(np.sum((score / data.total) ** 2 / (1 - leverage)))) if clusters > 1 else math.nan
    unit = math.log(2) if bits else 1.0
    return Entropy((plain + bias) / unit, plain / unit, error / unit, len(share), round(float(data.samples.sum())))
