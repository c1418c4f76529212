"""Which tag of the samples explains that a function became dearer: every possible cause fitted to the same cells.

A cell is an application's code of one revision and compiler, on one platform in one data centre, in one of the two
periods. Within a cell the odds of a function's share are multiplied by what its cost is multiplied by, whatever else
the machine runs; so changes of the mix of jobs, platforms or builds move cells' sizes and not their odds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2

from analysis.statistics import Bools, Floats, Ints

TAGS = ("revision", "compiler", "kernel", "platform", "datacentre")
"""Tags that can be at fault, the likelier first where two explain the same cells."""
RANKS = (*TAGS, "application", "everywhere")
_ROLLED_OUT = ("revision", "compiler", "kernel")
"""Tags whose values replace each other, so that old and new stand side by side within a period."""
_BLOCK = ("platform", "datacentre")
"""Where a function's share differs anyway."""
MIN_SAMPLES = 20
"""Samples in an application, both periods, from which a function is looked at there."""
_PRIOR_CLUSTERS = 10.0
"""Weight of an application's usual spread between clusters against a function's own."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible cause: a tag's value, in one application (a revision's own) or in all."""

    dimension: str
    value: str
    application: str = ""
    since: bool = True
    """Only in the later period; otherwise wherever the tag is, in both."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of one application: R rows, F functions."""

    application: str
    tags: pd.DataFrame
    """(R,) later (whether of the later period) and the tags."""
    functions: Ints
    """(F,) places of the functions."""
    odds: Floats
    """(R, F) logarithms of the odds of the functions' shares."""
    variance: Floats
    """(R, F) their sampling variance, clusters allowed for."""
    value: Floats
    """(R, F) estimated events of the fleet."""
    clusters: Ints
    """(R,) machines or visits."""


def cells(table: pd.DataFrame, cluster: str) -> Iterator[Cells]:
    """Yield the cells of every application that was seen in both periods.

    Parameters
    ----------
    table : columns later, application, function (place), tags, the cluster, samples, value; one row each

    Examples
    --------
    >>> row = {"application": "a", "function": [0, 1] * 2, "platform": "p", "machine": 1, "samples": 30, "value": 3.0}
    >>> next(cells(pd.DataFrame(row).assign(later=[False, False, True, True]), "machine")).odds.round(6)
    array([[0., 0.],
           [0., 0.]])
    """
    tags = [name for name in TAGS if name in table.columns]
    for application, part in table.groupby("application", sort=True, observed=True):
        if part["later"].nunique() == 2:
            found = _cells(str(application), part, ["later", *tags], cluster)
            if len(found.functions):
                yield found


def _cells(application: str, part: pd.DataFrame, tags: list[str], cluster: str) -> Cells:
    row, rows = _numbered(part, tags)
    value, samples = part["value"].to_numpy(np.float64), part["samples"].to_numpy(np.float64)
    function = part["function"].to_numpy(np.int64)
    functions = np.flatnonzero(np.bincount(function, samples) >= MIN_SAMPLES).astype(np.int64)
    machine, machines = pd.factorize(part[cluster])
    pair = pd.factorize(row * len(machines) + machine)[0].astype(np.int64)
    size = np.bincount(pair, value)
    home = np.zeros(len(size), dtype=np.int64)
    home[pair] = row
    total, count = (np.bincount(row, one).astype(np.float64) for one in (value, samples))
    many = np.bincount(home).astype(np.int64)
    column = np.minimum(np.searchsorted(functions, function), max(len(functions) - 1, 0))
    kept = functions[column] == function if len(functions) else np.zeros(len(function), dtype=np.bool_)
    shape = (len(rows), len(functions))
    place = (row * shape[1] + column)[kept]

    def sums(weights: Floats) -> Floats:
        return np.bincount(place, weights[kept], shape[0] * shape[1]).reshape(shape).astype(np.float64)

    inside = sums(value)
    share = inside / total[:, None]
    squares = np.bincount(home, size**2, len(rows))
    spread = sums(value**2) - 2 * share * sums(value * size[pair]) + share**2 * squares[:, None]
    variance = np.maximum(spread, 0.0) / total[:, None] ** 2
    odds, variance = _odds(share, variance, count, (many, squares / total**2))
    return Cells(application, rows, functions, odds, variance, inside, many)


def _numbered(part: pd.DataFrame, tags: list[str]) -> tuple[Ints, pd.DataFrame]:
    """Return each row's number among the distinct combinations of tags, and these in order."""
    code = np.zeros(len(part), dtype=np.int64)
    for name in tags:
        place, values = pd.factorize(part[name], sort=True)
        code = code * len(values) + place
    _, first, row = np.unique(code, return_index=True, return_inverse=True)
    return row.astype(np.int64), part[tags].iloc[first].reset_index(drop=True)


def _odds(share: Floats, variance: Floats, count: Floats, groups: tuple[Ints, Floats]) -> tuple[Floats, Floats]:
    """Return (R, F) log odds (half a sample added to each side) and their variances, smoothed over rows.

    The variance is that of independent samples and one between clusters, which all rows of a function share.
    """
    many, concentration = groups
    each = count[:, None]
    seen = share * each
    odds = np.log((seen + 0.5) / (each - seen + 0.5))
    middle = (seen + 0.5) / (each + 1.0)
    both = middle * (1 - middle)
    alone = 1.0 / (each * both)
    usable = (many[:, None] > 1) & (seen >= 5)
    correct = many / np.maximum(many - 1, 1)
    excess = np.where(usable, correct[:, None] * variance / both**2 - alone, 0.0) * many[:, None]
    weight = np.sum(usable * (many * concentration)[:, None], axis=0)
    known = weight > 0
    own = np.divide(excess.sum(axis=0), weight, out=np.zeros(len(weight)), where=known)
    usual = max(float(np.median(own[known])), 0.0) if known.any() else 0.25
    support = np.sum(usable * many[:, None], axis=0)
    between = np.maximum((own * support + usual * _PRIOR_CLUSTERS) / (support + _PRIOR_CLUSTERS), 0.0)
    return odds, alone + between * concentration[:, None]


def candidates(found: Cells, rolled: pd.DataFrame) -> list[tuple[Cause, Floats]]:
    """Return the causes that could act in an application's cells, and in which rows each would act.

    Parameters
    ----------
    found : cells of one application
    rolled : columns dimension, application ("" for all), value: tags whose share of their application grows

    Examples
    --------
    >>> tags = pd.DataFrame({"later": [False, True], "platform": ["p", "p"]})
    >>> none = np.zeros((2, 1))
    >>> one = Cells("a", tags, np.array([0]), none, none, none, np.array([1, 1]))
    >>> [cause.dimension for cause, _ in candidates(one, pd.DataFrame(columns=["dimension", "application", "value"]))]
    ['platform', 'application', 'everywhere']
    """
    later = found.tags["later"].to_numpy(bool)
    growing = set(rolled[["dimension", "application", "value"]].itertuples(index=False, name=None))
    made = [
        (Cause("application", found.application, found.application), later.astype(np.float64)),
        (Cause("everywhere", ""), later.astype(np.float64)),
    ]
    for name in (name for name in TAGS if name in found.tags.columns):
        own = found.application if name == "revision" else ""
        tags = found.tags[name].to_numpy(object)
        for value in sorted(set(tags)):
            has = np.asarray(tags == value, dtype=np.bool_)
            made.append((Cause(name, str(value), own), (has & later).astype(np.float64)))
            if (name, own, str(value)) in growing:
                made.append((Cause(name, str(value), own, since=False), has.astype(np.float64)))
    return sorted(made, key=lambda one: RANKS.index(one[0].dimension))


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """Every cause fitted alone to every function: H causes, F functions; zero where a cause says nothing."""

    causes: list[Cause]
    information: Floats
    """(H, F) inverse variance of the estimated log factor."""
    score: Floats
    """(H, F) estimate times information."""
    change: Floats
    """(F,) weighted sum of squares of all odds about their cells' level, before any cause."""
    exposure: Floats
    """(H, F) events of the function in the later period where the cause acts."""
    clusters: Ints
    """(H, F) clusters of the later period there."""
    rank: Floats
    """(H,) the lower, the likelier beforehand: in the order of `RANKS`, tags whose share does not grow last."""


def fit(all_cells: list[Cells], rolled: pd.DataFrame, functions: int, drift: float) -> Fits:
    """Fit every cause to every function by generalised least squares (Aitken 1936).

    Each application has a level of its own on each platform in each data centre, and in each period a deviation of
    variance `drift` common to all its cells (requests differ from day to day).

    Parameters
    ----------
    all_cells : of `cells`
    rolled : as in `candidates`
    functions : F
    drift : variance of the deviation of an application's log odds in a period

    Examples
    --------
    >>> fit([], pd.DataFrame(columns=["dimension", "application", "value"]), 2, 0.0).change
    array([0., 0.])
    """
    place: dict[Cause, int] = {}
    parts = []
    change = np.zeros(functions)
    for found in all_cells:
        causes = candidates(found, rolled)
        design = np.column_stack([rows for _, rows in causes])
        weight = _weights(found, drift)
        pull = np.einsum("frs,sf->fr", weight, found.odds)
        change[found.functions] += np.einsum("fr,rf->f", pull, found.odds)
        later = design * found.tags["later"].to_numpy(np.float64)[:, None]
        at = np.array([place.setdefault(cause, len(place)) for cause, _ in causes])
        information = np.einsum("rh,frs,sh->hf", design, weight, design, optimize=True)
        parts.append((at, found, information, design.T @ pull.T, later))
    shape = (len(place), functions)
    fits = Fits(
        list(place),
        np.zeros(shape),
        np.zeros(shape),
        change,
        np.zeros(shape),
        np.zeros(shape, dtype=np.int64),
        _ranks(list(place), rolled),
    )
    for at, found, information, score, later in parts:
        where = np.ix_(at, found.functions)
        fits.information[where] += information
        fits.score[where] += score
        fits.exposure[where] += later.T @ found.value
        fits.clusters[where] += (later.T @ found.clusters).astype(np.int64)[:, None]
    return fits


def _ranks(causes: list[Cause], rolled: pd.DataFrame) -> Floats:
    growing = set(rolled[["dimension", "application", "value"]].itertuples(index=False, name=None))
    stale = [
        cause.dimension in _ROLLED_OUT and (cause.dimension, cause.application, cause.value) not in growing
        for cause in causes
    ]
    ranks = [RANKS.index(cause.dimension) + 0.5 * (not cause.since) for cause in causes]
    return np.array(ranks, dtype=np.float64) + len(RANKS) * np.array(stale, dtype=np.float64)


def _weights(found: Cells, drift: float) -> Floats:
    """Return (F, R, R) the inverse covariance with the levels of the application's blocks projected out."""
    later = found.tags["later"].to_numpy(bool)
    same = (later[:, None] == later[None, :]).astype(np.float64)
    inverse = np.linalg.inv(found.variance.T[:, :, None] * np.eye(len(later)) + drift * same)
    names = [name for name in _BLOCK if name in found.tags.columns]
    block = _numbered(found.tags, names)[0]
    levels = (block[:, None] == np.arange(block.max() + 1)[None, :]).astype(np.float64)
    loaded = inverse @ levels
    middle = np.linalg.inv(levels.T @ loaded)
    return np.asarray(inverse - loaded @ middle @ loaded.transpose(0, 2, 1), dtype=np.float64)


def drift_of(all_cells: list[Cells], rolled: pd.DataFrame) -> float:
    """Return the variance of healthy deviations of an application's log odds in a period.

    The median of the squared changes over all functions of all applications is what it should be under a normal law (an
    empirical null, Efron 2004): a few functions that did become dearer do not matter.

    Examples
    --------
    >>> drift_of([], pd.DataFrame(columns=["dimension", "application", "value"]))
    0.0
    """
    squares, variances = [], []
    for found in all_cells:
        alone = fit([found], rolled, int(found.functions.max()) + 1, 0.0)
        at = next(place for place, cause in enumerate(alone.causes) if cause.dimension == "application")
        information = alone.information[at, found.functions]
        known = information > 1e-9
        squares.append((alone.score[at, found.functions][known] / information[known]) ** 2)
        variances.append(1.0 / information[known])
    if not squares or not sum(map(len, squares)):
        return 0.0
    return _root(np.concatenate(squares), np.concatenate(variances))


def _root(square: Floats, variance: Floats) -> float:
    """Return d so that the median of square / (variance + 2 d) is that of χ² with one degree of freedom; at least 0."""
    middle = float(chi2.ppf(0.5, 1))
    low, high = 0.0, float(np.median(square)) / middle + 1e-12
    if float(np.median(square / variance)) <= middle:
        return 0.0
    for _ in range(60):
        between = (low + high) / 2
        above = float(np.median(square / (variance + 2 * between))) > middle
        low, high = (between, high) if above else (low, between)
    return high


def rolled_out(table: pd.DataFrame) -> pd.DataFrame:
    """Return which tags' values gain in share within applications from the earlier period to the later.

    Parameters
    ----------
    table : as in `cells`

    Returns
    -------
    DataFrame
        dimension, application ("" where the tag is not an application's own), value.

    Examples
    --------
    >>> rows = {"application": "a", "later": [False, True, True], "revision": ["r1", "r1", "r2"], "value": 1.0}
    >>> rolled_out(pd.DataFrame(rows)).values.tolist()
    [['revision', 'a', 'r2']]
    """
    totals = table.groupby(["application", "later"], observed=True)["value"].sum()
    both = totals.groupby(level=0, observed=True).size()
    used = table[table["application"].isin(both.index[both == 2])]
    share = used["value"] / totals.reindex(pd.MultiIndex.from_frame(used[["application", "later"]])).to_numpy(
        np.float64
    )
    change = used.assign(gain=share.where(used["later"], -share))
    made: list[tuple[str, str, str]] = []
    for name in (name for name in _ROLLED_OUT if name in table.columns):
        owner = change["application"] if name == "revision" else pd.Series("", change.index)
        gain = change.assign(owner=owner).groupby(["owner", name], observed=True, as_index=False)["gain"].sum()
        gaining = gain[gain["gain"] > 1e-9]
        made += [(name, str(own), str(tag)) for own, tag in zip(gaining["owner"], gaining[name], strict=True)]
    return pd.DataFrame(made, columns=["dimension", "application", "value"])


def eligible(fits: Fits) -> Bools:
    """Return (H, F) whether a cause's estimate exists and rests on two clusters at least.

    Examples
    --------
    >>> none = np.zeros((1, 1))
    >>> eligible(Fits([Cause("everywhere", "")], none, none, none[0], none, none.astype(np.int64), none[0]))
    array([[False]])
    """
    return np.asarray((fits.information > 1e-9) & (fits.clusters > 1) & (fits.exposure > 0), dtype=np.bool_)
