"""Counts of samples by machine and function, and the variances of their shares, written out."""

import numpy as np
import pandas as pd

SHARES = 1 / np.arange(1, 31) / np.sum(1 / np.arange(1, 31))


def table(counts, **more):
    """A clustered profile from counts (machines, functions)."""
    machine, function = np.nonzero(counts)
    seen = counts[machine, function]
    return pd.DataFrame({"function": function, "machine": machine, "samples": seen, "value": seen * 10, **more})


def clustered(rng, shares=SHARES, machines=80, concentration=50.0, samples=150):
    own = rng.dirichlet(shares * concentration, machines)
    return np.array([rng.multinomial(rng.poisson(samples), share) for share in own])


def slow_variances(counts):
    """Linearised variances of shares, entry by entry and machine by machine."""
    sizes, total = counts.sum(axis=1), counts.sum()
    return np.array(
        [
            sum(
                ((mine - column.sum() / total * size) / total) ** 2 / (1 - size / total)
                for mine, size in zip(column, sizes, strict=True)
            )
            for column in counts.T
        ]
    )
