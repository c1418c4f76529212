"""A profile as one row for each key and each cluster of samples that was drawn together."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from models.arrays import Floats, Ints
from models.errors import InputError

MEASURES = ("samples", "value")
"""Columns that count; every other one but the cluster is a key."""


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
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
    def of(cls, clustered: pd.DataFrame, cluster: str = "machine") -> "Clusters":
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
        >>> Clusters.of(table).keys["function"].tolist()
        ['b', 'a']
        """
        by = _keys(clustered, cluster)
        table = clustered.groupby([*by, cluster], sort=True, observed=True, as_index=False)[list(MEASURES)].sum()
        value, samples = (table[name].to_numpy(dtype=np.float64) for name in ("value", "samples"))
        if not (np.isfinite(value).all() and (value >= 0).all()):
            raise InputError("value must be finite and not negative in every row")
        kept = value > 0
        table, value, samples = table[kept], value[kept], samples[kept]
        total = table.groupby(by, sort=True, observed=True)["value"].sum()
        keys = total.reset_index().sort_values("value", ascending=False, kind="stable").reset_index(drop=True)
        place = pd.MultiIndex.from_frame(keys[by]).get_indexer(pd.MultiIndex.from_frame(table[by]))
        code, names = pd.factorize(table[cluster], sort=True)
        return cls(
            keys[by],
            place.astype(np.int64),
            code.astype(np.int64),
            value,
            samples,
            np.bincount(code, value, len(names)).astype(np.float64),
        )

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
        seen = np.bincount(self.key, scale[self.cluster] * inside**power, len(self.keys))
        own = leverage**power * scale
        elsewhere = np.maximum(own.sum() - np.bincount(self.key, own[self.cluster], len(self.keys)), 0.0)
        return np.asarray(seen + share**power * elsewhere, dtype=np.float64)


def _keys(clustered: pd.DataFrame, cluster: str) -> list[str]:
    missing = [name for name in (cluster, *MEASURES) if name not in clustered.columns]
    if missing:
        raise InputError(f"columns are missing: {', '.join(missing)}")
    by = [str(name) for name in clustered.columns if name not in (cluster, *MEASURES)]
    if not by:
        raise InputError("there is no key: every column is the cluster, samples or value")
    return by
