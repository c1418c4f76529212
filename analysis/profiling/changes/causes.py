"""What a change goes with: versions, compilers, kernels, platforms, data centres, applications, each fitted alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Ints

VERSIONS = ("revision", "compiler", "kernel")
"""Dimensions whose values replace each other: what comes with a value and lasts acts wherever the value is."""
PLACES = ("platform", "datacentre", "application")
"""Dimensions whose values stay: what happens there acts from the change on."""
RANKS = (*VERSIONS, *PLACES, "everywhere")
_EQUAL_DEVIANCE = 2.0
"""Dispersions of deviance within which the cause that is likelier beforehand, the earlier of `RANKS`, is named."""
_ABSENT = ("", "[none]", "nan", "None")


@dataclass(frozen=True, slots=True)
class Explanation:
    """A value of a dimension that a change goes with, alone among all that were tried."""

    dimension: str
    value: str
    application: str
    """Whose revision it is; empty for others."""
    log_factor: float
    """Of the function's cost where it acts."""
    explained: float
    """Drop in deviance over the dispersion."""


def explanations(
    counts: Floats, exposure: Floats, tags: pd.DataFrame, start: int, end: int, *, dispersion: float, grew: bool
) -> list[Explanation]:
    """Return what could explain a function's change, the best first.

    In each application on each platform in each data centre the function has a share of its own, which the cause
    multiplies by one factor. Given the samples of such a stratum, those where the cause acts are binomial; the factor
    is the one of greatest likelihood (the strata's shares are conditioned away).

    Parameters
    ----------
    counts : (C, T) samples of the function in cells of equal tags, by time
    exposure : (C, T) samples of everything that the function is compared with
    tags : (C,) application and what is known of revision, compiler, kernel, platform, datacentre
    start, end : bins between which the change was there
    dispersion : of the counts, at least 1
    grew : whether it became more expensive
    """
    since = np.zeros(counts.shape[1], dtype=np.bool_)
    since[start:end] = True
    places = [name for name in ("application", "platform", "datacentre") if name in tags]
    stratum: Ints = np.asarray(tags.groupby(places, observed=True, sort=False).ngroup(), dtype=np.int64)
    observed, exposed = _sides(counts, since), _sides(exposure, since)
    fitted = []
    lasts = end == counts.shape[1]
    grown = exposure[:, :start].sum(axis=1), exposed[:, 1]
    for dimension, value, application, cells in _hypotheses(tags, *grown):
        acts = np.column_stack([cells & (lasts and dimension in VERSIONS), cells])
        log_factor, deviance = _fit(observed, exposed, stratum, acts)
        if deviance > 0 and (log_factor > 0) == grew:
            fitted.append(Explanation(dimension, value, application, log_factor, deviance / dispersion))
    return _ranked(fitted)


def _ranked(fitted: Sequence[Explanation]) -> list[Explanation]:
    """Return explanations by deviance; the likeliest beforehand of those that explain as much comes first."""
    order = sorted(fitted, key=lambda cause: (-cause.explained, RANKS.index(cause.dimension)))
    if not order:
        return []
    best = [cause for cause in order if cause.explained >= order[0].explained - _EQUAL_DEVIANCE]
    first = min(best, key=lambda cause: (RANKS.index(cause.dimension), -cause.explained))
    return [first, *(cause for cause in order if cause is not first)]


def _sides(values: Floats, since: Bools) -> Floats:
    """Return (C, 2) sums outside the change's time and within it."""
    return np.column_stack([values[:, ~since].sum(axis=1), values[:, since].sum(axis=1)])


def _hypotheses(tags: pd.DataFrame, before: Floats, within: Floats) -> list[tuple[str, str, str, Bools]]:
    """Return dimension, value, application and the cells where it acts; (C,) exposures before and within."""
    everywhere = np.ones(len(tags), dtype=np.bool_)
    tried: list[tuple[str, str, str, Bools]] = [("everywhere", "", "", everywhere)]
    for dimension in (*VERSIONS, *PLACES):
        if dimension not in tags:
            continue
        value = tags[dimension].astype(str).to_numpy(object)
        owner = tags["application"].astype(str).to_numpy(object) if dimension == "revision" else np.full(len(tags), "")
        for name, application in sorted(set(zip(value.tolist(), owner.tolist(), strict=True))):
            cells = np.asarray((value == name) & (owner == application), dtype=np.bool_)
            if name in _ABSENT or (dimension in VERSIONS and not _comes(before, within, cells)):
                continue
            tried.append((dimension, name, application, cells))
    return tried


def _comes(before: Floats, within: Floats, cells: Bools) -> bool:
    """Return whether a version's share of the samples grows: what goes away is not what came."""
    shares = (float(part[cells].sum() / max(part.sum(), 1e-300)) for part in (before, within))
    earlier, later = shares
    return later > earlier


def _fit(observed: Floats, exposed: Floats, stratum: Ints, acts: Bools) -> tuple[float, float]:
    """Return the logarithm of the factor of greatest likelihood and the drop in deviance.

    Parameters
    ----------
    observed, exposed : (C, 2) before and after
    stratum : (C,) number of each cell's stratum
    acts : (C, 2) where the cause acts
    """
    strata = int(stratum.max()) + 1
    group = np.repeat(stratum, 2)
    acting = acts.ravel()
    n1, n0, y1, y = (
        np.bincount(group, weights, strata)
        for weights in (
            exposed.ravel() * acting,
            exposed.ravel() * ~acting,
            observed.ravel() * acting,
            observed.ravel(),
        )
    )
    informative = (n1 > 0) & (n0 > 0) & (y > 0)
    n1, n0, y1, y = n1[informative], n0[informative], y1[informative], y[informative]
    if not len(y):
        return 0.0, 0.0
    low, high = -12.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2.0
        odds = n1 * np.exp(middle)
        low, high = (middle, high) if float((y1 - y * odds / (odds + n0)).sum()) > 0 else (low, middle)
    factor = (low + high) / 2.0
    gain = y1.sum() * factor - (y * np.log((n0 + n1 * np.exp(factor)) / (n0 + n1))).sum()
    return factor, float(2.0 * gain)
