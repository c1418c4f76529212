"""Shares of a profile with intervals: what a sample of machines is worth, design effects, and how much more is needed.

Samples of one machine (or of one visit) resemble each other, so a profile of n samples from few machines knows less
than n independent samples. Everything here takes one row per key and cluster, as `Database.clustered` gives them.
The cluster is what was drawn at random: the visit, where every round draws machines anew; the machine, where a fixed
part of the machines was looked at. Clusters are taken as few of many: no factor for a finite fleet.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import betaincinv, ndtri, stdtrit

from analysis.profiling.combinations import distinct, numbered
from analysis.profiling.fleet_samples import visits_of
from analysis.profiling.frames import AnyInts
from analysis.profiling.query import Profile, Query, restriction_text
from analysis.profiling.shelf import give_back_memory
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats, Ints
from models.errors import InputError

MEASURES = ("samples", "value")
"""Columns that count; every other one but the cluster is a key."""
_FEW = 10_000
"""Rows up to which it is cheaper to name each of them than to sum whatever has their values."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusteredProfile:
    """A clustered profile as arrays: K keys, M clusters, one row for each pair that occurs."""

    keys: pd.DataFrame
    """(K,) keys, largest value first, then in order of the keys."""
    key: Ints
    """(rows,) place of the row's key in `keys`."""
    cluster: Ints
    """(rows,) cluster, 0..M−1."""
    value: Floats
    """(rows,) estimated events of the fleet."""
    samples: Floats
    """(rows,) samples."""
    size: Floats
    """(M,) value of each cluster over all keys."""

    @classmethod
    def of(cls, clustered: pd.DataFrame, cluster: str = "machine") -> "ClusteredProfile":
        """Sort a table into keys and clusters; rows of the same pair are added up.

        Parameters
        ----------
        clustered : columns of keys, the cluster, samples, value
        cluster : name of the column that says what was drawn

        Raises
        ------
        ValueError
            If a column is missing, a value is negative or not finite, or there is no key.

        Examples
        --------
        >>> table = pd.DataFrame({"function": ["a", "b"], "machine": [1, 1], "samples": [1, 2], "value": [10, 20]})
        >>> ClusteredProfile.of(table).keys["function"].tolist()
        ['b', 'a']
        """
        by = _keys(clustered, cluster)
        own = clustered["value"].to_numpy(dtype=np.float64)
        if not (np.isfinite(own).all() and (own >= 0).all()):
            raise InputError("value must be finite and not negative in every row")
        known = own > 0
        for name in (*by, cluster):
            known &= clustered[name].notna().to_numpy(np.bool_)
        table = clustered if known.all() else clustered[known]
        del own, known
        number, keys = distinct(table, by)
        code = pd.factorize(table[cluster], sort=True)[0].astype(np.int64, copy=False)
        give_back_memory()
        pair, first = numbered([number, code])
        value, samples = (
            np.bincount(pair, table[name].astype(np.float64), len(first)).astype(np.float64)
            for name in ("value", "samples")
        )
        del pair
        return cls.of_numbers(keys, (number[first], code[first]), samples, value)

    @classmethod
    def of_numbers(
        cls, keys: pd.DataFrame, pairs: tuple[AnyInts, AnyInts], samples: Floats, value: Floats
    ) -> "ClusteredProfile":
        """Return what is in numbers already; keys and clusters without samples are left out.

        Parameters
        ----------
        keys : names, in order
        pairs : (rows,) places of keys and numbers of clusters, each pair once
        samples, value : (rows,) above 0
        """
        key, cluster = pairs
        total = np.bincount(key, value, len(keys))
        order = np.argsort(-total, kind="stable")[: int((total > 0).sum())]
        place = np.empty(len(keys), dtype=np.int64)
        place[order] = np.arange(len(order))
        size = np.bincount(cluster, value)
        number = np.cumsum(size > 0) - 1
        keys = keys.iloc[order].reset_index(drop=True)
        return cls(keys, place[key], number[cluster], value, samples, size[size > 0].astype(np.float64))

    @property
    def total(self) -> float:
        """Value of everything."""
        return float(self.size.sum())

    @property
    def shares(self) -> Floats:
        """(K,) share of each key."""
        return np.bincount(self.key, self.value, len(self.keys)) / max(self.total, 1.0)

    @property
    def counts(self) -> Floats:
        """(K,) samples of each key."""
        return np.bincount(self.key, self.samples, len(self.keys)).astype(np.float64)

    @property
    def index(self) -> pd.Index:
        """(K,) keys as an index: plain for one key, a MultiIndex for several."""
        return pd.Index(self.keys.iloc[:, 0]) if self.keys.shape[1] == 1 else pd.MultiIndex.from_frame(self.keys)

    def moment(self, power: int) -> Floats:
        """Return (K,) Σ over clusters of the linearised residual of the share, to a power (2 or 4).

        The residual of cluster m is (y_m − p x_m) / X (Kish and Frankel 1974), divided by √(1 − x_m / X) because the
        residual of a large cluster is too small.
        """
        leverage = self.size / max(self.total, 1.0)
        scale = 1.0 / np.maximum(1.0 - leverage, 1e-9) ** (power / 2)
        share = self.shares
        inside = self.value / max(self.total, 1.0) - share[self.key] * leverage[self.cluster]
        within = np.bincount(self.key, scale[self.cluster] * inside**power, len(self.keys))
        own = leverage**power * scale
        elsewhere = np.maximum(own.sum() - np.bincount(self.key, own[self.cluster], len(self.keys)), 0.0)
        return np.asarray(within + share**power * elsewhere, dtype=np.float64)


def _keys(clustered: pd.DataFrame, cluster: str) -> list[str]:
    missing = [name for name in (cluster, *MEASURES) if name not in clustered.columns]
    if missing:
        raise InputError(f"columns are missing: {', '.join(missing)}")
    by = [str(name) for name in clustered.columns if name not in (cluster, *MEASURES)]
    if not by:
        raise InputError("there is no key: every column is the cluster, samples or value")
    return by


OTHERS = -1
"""Number of everything that was not asked for."""
ROUNDING = 1e-12
"""Variance of a share, relative to that of one sample, which is rounding: all clusters are alike."""


@dataclass(frozen=True, slots=True)
class ProfileTotals:
    """What a clustered profile as a whole is worth."""

    samples: int
    clusters: int
    effective_samples: float
    """Independent samples with the same mean squared error of the shares."""
    design_effect: float
    """Samples over effective samples; below 1 where samples within a cluster are more alike than the draw's."""
    weighting_effect: float
    """Part of it that unequal weights alone would make: n Σw² / (Σw)² (Kish 1965, section 11.7)."""


def share_intervals(clustered: pd.DataFrame, *, cluster: str = "machine", confidence: float = 0.95) -> pd.DataFrame:
    """Return every key's share with an interval that knows of the clusters.

    The share is a ratio of two totals, linearised over clusters. The interval is that of Korn and Graubard (1998):
    Clopper and Pearson's with the effective number of samples, lessened by Student's t with Satterthwaite's degrees
    of freedom. It stays within 0..1 and is lopsided for small shares.

    Parameters
    ----------
    clustered : columns of keys, the cluster, samples, value (events of the fleet)
    cluster : what was drawn: ``"machine"`` or ``"visit"``
    confidence : 0..1

    Returns
    -------
    DataFrame
        the keys, share, low, high, standard_error, samples, effective_samples, design_effect, degrees; largest share
        first. With one cluster alone, the interval is 0..1 and the error NaN.

    Raises
    ------
    ValueError
        If a column is missing or a number is out of its range.

    Examples
    --------
    >>> table = pd.DataFrame({"function": ["a", "b"] * 20, "machine": np.repeat(np.arange(20), 2), "samples": 50})
    >>> shares = share_intervals(table.assign(value=[5, 15] * 20))
    >>> shares["function"].tolist(), shares["share"].tolist()
    (['b', 'a'], [0.75, 0.25])
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence:g}")
    return ShareMoments.of(ClusteredProfile.of(clustered, cluster)).intervals(confidence)


@dataclass(frozen=True, slots=True, eq=False)
class ShareMoments:
    """What the intervals of K shares rest on."""

    keys: pd.DataFrame
    """(K,)"""
    share: Floats
    """(K,)"""
    second: Floats
    """(K,) Σ over clusters of squares of the linearised residuals of the share, as of `ClusteredProfile.moment`."""
    fourth: Floats
    """(K,) the same of their fourth powers."""
    samples: Floats
    """(K,)"""
    clusters: int

    @classmethod
    def of(cls, data: ClusteredProfile) -> "ShareMoments":
        """Return those of a profile."""
        return cls(data.keys, data.shares, data.moment(2), data.moment(4), data.counts, len(data.size))

    def at(self, rows: Ints, keys: pd.DataFrame) -> "ShareMoments":
        """Return those of some shares, under the keys that are given."""
        return ShareMoments(
            keys, self.share[rows], self.second[rows], self.fourth[rows], self.samples[rows], self.clusters
        )

    @property
    def variance(self) -> Floats:
        """(K,) sampling variance of every share; NaN with fewer than two clusters."""
        return self.second if self.clusters > 1 else np.full(len(self.keys), np.nan)

    @property
    def degrees(self) -> Floats:
        """(K,) degrees of freedom of the variances, from the fourth moments of the residuals (Satterthwaite)."""
        spread = np.maximum(self.fourth - self.second**2 / self.clusters, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            degrees = np.where(spread > 0, 2 * self.second**2 / spread, np.inf)
        return np.asarray(np.clip(degrees, 1.0, max(self.clusters - 1, 1)), dtype=np.float64)

    def errors(self) -> pd.DataFrame:
        """Return the keys, share, standard_error and degrees, in order of the keys."""
        return self.keys.assign(share=self.share, standard_error=self.standard_error, degrees=self.degrees)

    @property
    def standard_error(self) -> Floats:
        """(K,) of every share; NaN with fewer than two clusters."""
        return np.sqrt(self.variance)

    def intervals(self, confidence: float) -> pd.DataFrame:
        """Return the columns of `share_intervals`, in order of the keys."""
        share, variance = self.share, self.variance
        binomial = share * (1.0 - share)
        with np.errstate(divide="ignore", invalid="ignore"):
            varies = (variance > ROUNDING * binomial) & (binomial > 1e-15)
            effective = np.where(varies, binomial / variance, float(self.clusters))
            degrees = self.degrees
        shrunk = (ndtri(0.5 + confidence / 2) / stdtrit(degrees, 0.5 + confidence / 2)) ** 2
        low, high = _beta(share, effective * np.where(varies, shrunk, 1.0), confidence)
        unknown = ~np.isfinite(variance)
        return self.keys.assign(
            share=share,
            low=np.where(unknown, 0.0, low),
            high=np.where(unknown, 1.0, high),
            standard_error=np.sqrt(variance),
            samples=self.samples.astype(np.int64),
            effective_samples=effective,
            design_effect=self.samples.sum() / effective,
            degrees=degrees,
        )


def welch(variances: Sequence[Floats], degrees: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the variances of differences of independent shares, and their degrees of freedom (Welch 1947).

    Parameters
    ----------
    variances, degrees : of both shares, (K,) each

    Examples
    --------
    >>> welch((np.array([1.0, 0.0]), np.array([1.0, 0.0])), (np.array([9.0, 9.0]), np.array([9.0, 9.0])))
    (array([2., 0.]), array([18.,  1.]))
    """
    whole, parts = variances[0] + variances[1], variances[0] ** 2 / degrees[0] + variances[1] ** 2 / degrees[1]
    return whole, np.divide(whole**2, parts, out=np.ones(len(whole)), where=parts > 0)


def share_variances(data: ClusteredProfile) -> Floats:
    """Return (K,) sampling variance of every share; NaN with fewer than two clusters.

    Examples
    --------
    >>> table = pd.DataFrame({"f": ["a", "b"] * 2, "machine": [1, 1, 2, 2], "samples": 1, "value": [1, 3, 3, 1]})
    >>> share_variances(ClusteredProfile.of(table)).round(3)
    array([0.062, 0.062])
    """
    return data.moment(2) if len(data.size) > 1 else np.full(len(data.keys), np.nan)


def design(clustered: pd.DataFrame, *, cluster: str = "machine") -> ProfileTotals:
    """Return what the profile as a whole is worth in independent samples.

    The effective number is (1 − Σp²) / Σ variance of p: as many independent samples have the same sum of squared
    errors.

    Parameters
    ----------
    clustered, cluster : as in `share_intervals`

    Raises
    ------
    NotEnoughDataError
        If there are fewer than two clusters.

    Examples
    --------
    >>> rows = {"f": ["a", "b", "a", "b"], "machine": [1, 1, 2, 2], "samples": [9, 1, 1, 9]}
    >>> design(pd.DataFrame(rows).assign(value=rows["samples"])).effective_samples < 4
    True
    """
    data = ClusteredProfile.of(clustered, cluster)
    if len(data.size) < 2:
        raise NotEnoughDataError(2, len(data.size), f"clusters ({cluster})")
    error, apart = float(share_variances(data).sum()), float(1.0 - data.shares @ data.shares)
    samples = float(data.samples.sum())
    # Of one key the error is 0, but for rounding.
    effective = apart / error if error > 0 and apart > ROUNDING else samples
    return ProfileTotals(round(samples), len(data.size), effective, samples / effective, _weighting(data))


def needed(intervals: pd.DataFrame, clusters: int, half_width: float, confidence: float = 0.95) -> pd.DataFrame:
    """Return how many clusters, or how many samples in the same clusters, a wanted half-width of the interval takes.

    More clusters with the same samples in each shrink the whole variance; more samples in the same clusters only the
    part within them, so often no number of samples is enough.

    Parameters
    ----------
    intervals : of `share_intervals`
    clusters : clusters that these rest on
    half_width : wanted, as a share
    confidence : 0..1

    Returns
    -------
    DataFrame
        the keys, clusters_needed, samples_needed (both in all; inf: no number is enough; NaN: unknown).
    """
    if not half_width > 0:
        raise InputError(f"half_width must be above 0, got {half_width:g}")
    wanted = (half_width / ndtri(0.5 + confidence / 2)) ** 2
    error, share, effect = (
        intervals[name].to_numpy(dtype=np.float64) for name in ("standard_error", "share", "design_effect")
    )
    variance = error**2
    with np.errstate(divide="ignore", invalid="ignore"):
        samples = np.where(variance > 0, share * (1 - share) * effect / variance, np.nan)
        within = np.fmin(share * (1 - share) / samples, variance)
        room = wanted - (variance - within)
        more = np.where(room > 0, np.ceil(samples * within / room), np.inf)
    return intervals[[name for name in intervals.columns if name not in _RESULTS]].assign(
        clusters_needed=np.ceil(np.round(clusters * variance / wanted, 6)),
        samples_needed=np.where(np.isfinite(samples), more, np.nan),
    )


_RESULTS = {
    "share",
    "low",
    "high",
    "standard_error",
    "samples",
    "effective_samples",
    "design_effect",
    "degrees",
}


def _beta(share: Floats, effective: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return (K,) Clopper and Pearson's (1934) limits for a share of so many effective samples."""
    tail = (1.0 - confidence) / 2
    yes, no = share * effective, (1.0 - share) * effective
    low = np.where(yes > 0, betaincinv(np.maximum(yes, 1e-12), no + 1.0, tail), 0.0)
    high = np.where(no > 0, betaincinv(yes + 1.0, np.maximum(no, 1e-12), 1.0 - tail), 1.0)
    return low, high


def _weighting(data: ClusteredProfile) -> float:
    """Return n Σw² / (Σw)² over samples, a row's weight being its value for each of its samples."""
    known = data.samples > 0
    squares = float(np.sum(data.value[known] ** 2 / data.samples[known]))
    return float(data.samples.sum()) * squares / max(data.total, 1.0) ** 2


def intervals_of(database: Profile, query: Query, rows: pd.DataFrame) -> pd.DataFrame:
    """Return shares of some rows with intervals over visits; these are NaN where visits were not drawn at random.

    Parameters
    ----------
    database : asked
    query : what is asked; no cluster is among its dimensions
    rows : its dimensions, of the rows that are wanted

    Returns
    -------
    DataFrame
        as of `share_intervals`; rows without samples are left out.

    Raises
    ------
    QueryError
        If the question cannot be answered.
    """
    by = list(query.by)
    shares = share_intervals(within_visits(database, query, rows), cluster="visit")
    shares = shares[shares["row"] != OTHERS].reset_index(drop=True)
    keys = rows[by].iloc[shares["row"].to_numpy()].reset_index(drop=True)
    return known(pd.concat([keys, shares.drop(columns="row")], axis=1), database.undrawn(query))


def within_visits(database: Profile, query: Query, rows: pd.DataFrame) -> pd.DataFrame:
    """Return what each visit has of some rows of a query, and of all others together, so that it is little.

    Parameters
    ----------
    database, query, rows : as of `intervals_of`

    Returns
    -------
    DataFrame
        row (its place in `rows`, or `OTHERS`), visit, samples, value.
    """
    by = list(query.by)
    some = query
    for key in by:
        some = some.restricted(key, *dict.fromkeys(map(restriction_text, rows[key])))
    numbered_rows = rows[by].assign(row=np.arange(len(rows)))
    few = rows[by] if len(rows) <= _FEW else None
    inside = database.clustered(some, "visit", few).merge(numbered_rows, on=by)[["row", "visit", *MEASURES]]
    visits = visits_of(database, query)
    own = inside.groupby("visit")[list(MEASURES)].sum().reindex(visits["visit"], fill_value=0)
    amounts = {name: visits[name].to_numpy() - own[name].to_numpy() for name in MEASURES}
    rest = visits[["visit"]].assign(row=OTHERS, **amounts)
    return pd.concat([inside, rest], ignore_index=True)


def known(table: pd.DataFrame, undrawn: str = "") -> pd.DataFrame:
    """Return shares whose intervals are NaN where nothing is known of them: undrawn, or of one cluster alone.

    Parameters
    ----------
    table : of `share_intervals`
    undrawn : why there are no intervals at all; empty: there are
    """
    estimated = table["standard_error"].notna() & (not undrawn)
    return table.assign(low=table["low"].where(estimated), high=table["high"].where(estimated))
