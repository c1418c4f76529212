"""How profiles vary from day to day: Manhattan distances and entropy, with what sampling alone would make of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.profiling.intervals import ClusteredProfile, share_variances
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
    positive = np.sort(counts[counts > 0])
    if not len(positive):
        raise NotEnoughDataError(1, 0, "samples")
    total = float(positive.sum())
    share = positive / total
    if correction == "none":
        nats = -float(share @ np.log(share))
    elif correction == "miller-madow":
        nats = -float(share @ np.log(share)) + (len(positive) - 1) / (2 * total)
    elif correction == "chao-shen":
        nats = _chao_shen(share, total, int(np.sum(positive == 1)))
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
    >>> entropy = clustered_entropy(table, bits=True)
    >>> entropy.plain, entropy.standard_error
    (1.0, 0.0)
    """
    data = ClusteredProfile.of(clustered, cluster)
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


_MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)
"""Mean of the absolute value of a standard normal number."""


def manhattan(x: "pd.Series[float]", y: "pd.Series[float]", k: int | None = None) -> float:
    """Return Σ |p_x − p_y| over the k largest entries of x (Ren et al. 2010, "Stability of profiles").

    An entry that y lacks counts as 0 there. Without k, all entries of both count: the distance is symmetric, 0..2.

    Parameters
    ----------
    x, y : values indexed by entry, not negative; they are divided by their sums
    k : entries; ties go to the first in order of the index

    Raises
    ------
    NotEnoughDataError
        If one of them is empty.
    ValueError
        If k is below 1.

    Examples
    --------
    >>> x, y = pd.Series({"f": 3.0, "g": 1.0}), pd.Series({"f": 2.0, "h": 2.0})
    >>> manhattan(x, y), manhattan(x, y, k=1)
    (1.0, 0.25)
    """
    return float(_aligned(x, y, k)[1].sum())


def _aligned(x: "pd.Series[float]", y: "pd.Series[float]", k: int | None) -> tuple[pd.Index, Floats]:
    """Return the entries that are compared, in order, and the absolute difference of their shares."""
    if k is not None and k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    for values in (x, y):
        if not float(values.sum()) > 0:
            raise NotEnoughDataError(1, 0, "samples")
    entries = x.index.union(y.index)
    share = x.reindex(entries, fill_value=0.0).to_numpy(np.float64) / float(x.sum())
    other = y.reindex(entries, fill_value=0.0).to_numpy(np.float64) / float(y.sum())
    chosen = np.arange(len(entries))
    if k is not None:
        order = np.argsort(-share, kind="stable")[:k]
        chosen = np.sort(order[share[order] > 0])
    return entries[chosen], np.abs(share - other)[chosen]


def expected_distance(
    shares: Floats, samples: float, *, against: float = math.inf, fraction: float = 0.0, k: int | None = None
) -> float:
    """Return the Manhattan distance that sampling alone makes: √(2/π) Σ √(p (1 − p)) · √(1/n + 1/m).

    Shares of n independent samples against the true profile, or against m other samples of it; a part `fraction` of a
    finite whole against that whole has the factor √(1 − fraction) besides. Each entry's share is taken as normal.

    Parameters
    ----------
    shares : (K,) true shares
    samples : n, effective samples where samples are clustered
    against : m; infinite: the true profile
    fraction : part of the whole that the samples are, 0..1
    k : only the k largest entries

    Examples
    --------
    >>> round(expected_distance(np.array([0.5, 0.5]), 100), 6)
    0.079788
    """
    largest = np.sort(shares)[::-1][:k]
    constant = _MEAN_ABSOLUTE * float(np.sum(np.sqrt(largest * (1.0 - largest))))
    return constant * math.sqrt((1.0 / samples + 1.0 / against) * (1.0 - fraction))


@dataclass(frozen=True, slots=True)
class Distance:
    """Manhattan distance of two sampled profiles."""

    value: float
    expected: float
    """What sampling alone makes of two samples of the same profile, clusters allowed for; NaN: one cluster alone."""


@dataclass(frozen=True, slots=True, eq=False)
class _Profile:
    """Values and variances of shares by entry."""

    value: "pd.Series[float]"
    variance: "pd.Series[float]"

    @classmethod
    def of(cls, data: ClusteredProfile) -> "_Profile":
        """Take a clustered profile's totals and sampling variances."""
        value = pd.Series(data.shares * data.total, data.index, dtype=np.float64)
        return cls(value, pd.Series(share_variances(data), data.index, dtype=np.float64))


def _distance(profile: _Profile, other: _Profile, variance: "pd.Series[float]", k: int | None) -> Distance:
    entries, differences = _aligned(profile.value, other.value, k)
    value = float(differences.sum())
    spread = np.sqrt(np.maximum(variance.reindex(entries).to_numpy(np.float64), 0.0))
    expected = _MEAN_ABSOLUTE * float(np.sum(spread))
    return Distance(value, expected)


def periods(
    clustered: pd.DataFrame, *, period: str = "day", cluster: str = "visit", k: int | None = None, bits: bool = False
) -> pd.DataFrame:
    """Return entropy of each period's profile, and its distance to the one before and to the mean of all.

    Parameters
    ----------
    clustered : columns of keys, the period, the cluster, samples, value
    period : name of the column that says when (or where: a machine, a data centre)
    cluster : what was drawn
    k : entries that distances count; None: all of both
    bits : entropy in bits

    Returns
    -------
    DataFrame
        the period, samples, clusters, entropy, entropy_error, effective_samples, design_effect, previous,
        previous_expected, mean, mean_expected (distances, and what sampling alone makes of them; NaN: unknown);
        in order of the period.

    Raises
    ------
    NotEnoughDataError
        If there are no samples.

    Examples
    --------
    >>> rows = {"f": ["a", "b"] * 4, "day": [0] * 4 + [1] * 4, "visit": np.repeat(range(4), 2)}
    >>> table = pd.DataFrame(rows).assign(samples=5, value=[6, 4, 4, 6, 8, 2, 8, 2])
    >>> periods(table)["previous"].round(3).tolist()
    [nan, 0.6]
    """
    used = clustered[clustered["value"] > 0]
    if not len(used):
        raise NotEnoughDataError(1, 0, "samples")
    parts = {name: part.drop(columns=period) for name, part in used.groupby(period, sort=True, observed=True)}
    data = [ClusteredProfile.of(part, cluster) for part in parts.values()]
    profiles = [_Profile.of(clusters) for clusters in data]
    mean, weights = _mean(profiles)
    rows = [
        {
            period: name,
            **_worth(data[at]),
            **_entropies(clustered_entropy(part, cluster=cluster, bits=bits)),
            **_named("previous", _previous(profiles, at, k)),
            **_named("mean", _distance(profiles[at], mean, _around(profiles[at], mean, weights[at]), k)),
        }
        for at, (name, part) in enumerate(parts.items())
    ]
    return pd.DataFrame(rows)


def _mean(profiles: Sequence[_Profile]) -> tuple[_Profile, Floats]:
    """Return the profile of all periods together, and the weight that each has in it."""
    totals = np.array([float(profile.value.sum()) for profile in profiles])
    weights = totals / totals.sum()
    values = pd.concat([profile.value for profile in profiles], axis=1).fillna(0.0).sum(axis=1)
    parts = [profile.variance * weight**2 for profile, weight in zip(profiles, weights, strict=True)]
    return _Profile(values, pd.concat(parts, axis=1).sum(axis=1, skipna=True)), weights


def _around(profile: _Profile, mean: _Profile, weight: float) -> "pd.Series[float]":
    """Return the variances of a period's share less that of the mean, of which the period is a part."""
    return (profile.variance * (1 - 2 * weight)).add(mean.variance, fill_value=0.0)


def _previous(profiles: Sequence[_Profile], at: int, k: int | None) -> Distance:
    if not at:
        return Distance(math.nan, math.nan)
    before, now = profiles[at - 1], profiles[at]
    return _distance(now, before, now.variance.add(before.variance, fill_value=0.0), k)


def _worth(data: ClusteredProfile) -> dict[str, float]:
    error, samples = float(np.sum(share_variances(data))), float(data.samples.sum())
    effective = float(1.0 - data.shares @ data.shares) / error if error > 0 else math.nan
    return {
        "samples": round(samples),
        "clusters": len(data.size),
        "effective_samples": effective,
        "design_effect": samples / effective if effective > 0 else math.nan,
    }


def _entropies(entropy: Entropy) -> dict[str, float]:
    return {"entropy": entropy.value, "entropy_error": entropy.standard_error}


def _named(name: str, distance: Distance) -> dict[str, float]:
    return {name: distance.value, f"{name}_expected": distance.expected}
