"""Which tag of the samples explains that a function costs more: every possible cause fitted to the same cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2

from analysis.profiling.regressions.cells import TAGS, CostCells, summed
from analysis.profiling.regressions.factors import Nested, tied
from models.arrays import Bools, Floats

RANKS = (*TAGS, "application", "everywhere")
_ENOUGH = 10
"""Functions of an application from which their median change is a level that all of them share."""
_ROLLED_OUT = ("revision", "compiler", "kernel")
"""Tags whose values replace each other, so that old and new stand side by side within a period."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible cause: a tag's value, in one application (a revision's own) or in all."""

    dimension: str
    value: str
    application: str = ""
    since: bool = True
    """Only in the later period; otherwise wherever the tag is, in both."""


def candidates(cells: CostCells, rolled: pd.DataFrame) -> list[tuple[Cause, Floats]]:
    """Return the causes that could act in an application's cells, and in which (C,) cells each would act.

    A revision, compiler or kernel that is being replaced is none: what comes while it goes did not come with it, and
    what changes where it still is changes in the application, or in the place.

    Parameters
    ----------
    found : cells of one application
    rolled : columns dimension, application ("" for all), value: tags whose share of their application grows
    """
    later = cells.tags["later"].to_numpy(np.float64)
    growing = set(rolled[["dimension", "application", "value"]].itertuples(index=False, name=None))
    causes = [
        (Cause("application", cells.application, cells.application), later),
        (Cause("everywhere", ""), later),
    ]
    for name in (name for name in TAGS if name in cells.tags.columns):
        own = cells.application if name == "revision" else ""
        tags = cells.tags[name].to_numpy(object)
        for value in sorted(set(tags)):
            has = np.asarray(tags == value, dtype=np.float64)
            if name not in _ROLLED_OUT:
                causes.append((Cause(name, str(value), own), has * later))
            elif (name, own, str(value)) in growing:
                causes.append((Cause(name, str(value), own), has * later))
                causes.append((Cause(name, str(value), own, since=False), has))
    return sorted(causes, key=lambda pair: RANKS.index(pair[0].dimension))


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """Every cause fitted alone to every function: H causes, F functions; zero where a cause says nothing."""

    causes: list[Cause]
    information: Floats
    """(H, F) inverse variance of the estimated log factor, were there none."""
    score: Floats
    """(H, F) how much more was seen where the cause acts than expected, in units of the log factor's estimate times
    information: the score of Rao (1948)."""
    change: Floats
    """(F,) weighted sum of squares of all strays about their blocks' levels, before any cause, less chance's part."""
    exposure: Floats
    """(H, F) events of the function in the later period where the cause acts."""
    earlier: Floats
    """(F,) events of the function in the earlier period."""
    rank: Floats
    """(H,) the lower, the likelier beforehand: in the order of `RANKS`."""

    def eligible(self, *, cheaper: bool = False) -> Bools:
        """Return (H, F) whether a cause says anything of a function; a function that is gone can only be cheaper."""
        known = (self.exposure > 0) | ((self.earlier > 0) & cheaper)
        return np.asarray((self.information > 1e-9) & known, dtype=np.bool_)

    def statistic(self, *, cheaper: bool = False) -> Floats:
        """Return (H, F) χ² with one degree of freedom of the causes that make a function more expensive; 0 for others.

        Parameters
        ----------
        cheaper : of those that make it cheaper instead
        """
        here = self.eligible(cheaper=cheaper) & (self.score < 0 if cheaper else self.score > 0)
        return np.divide(self.score**2, self.information, out=np.zeros_like(self.score), where=here)


def fit(all_cells: Sequence[CostCells], rolled: pd.DataFrame, functions: int, drift: float) -> Fits:
    """Fit every cause to every function by generalised least squares (Aitken 1936).

    Each application has a level of its own on each platform in each data centre, and in each period a deviation of
    variance `drift` common to all its cells (requests differ from day to day).

    Parameters
    ----------
    all_cells : of `analysis.profiling.regressions.cells.cells`
    rolled : as in `candidates`
    functions : F
    drift : variance of the deviation of an application's log odds in a period
    """
    place: dict[Cause, int] = {}
    parts = []
    change, earlier = np.zeros((2, functions))
    for cells in all_cells:
        causes = candidates(cells, rolled)
        at = np.array([place.setdefault(cause, len(place)) for cause, _ in causes])
        design = np.column_stack([where for _, where in causes])
        information, score, squares = _fitted(cells, design, drift)
        change[cells.functions] += squares - (len(cells.count) - cells.block.max() - 1)
        later = cells.tags["later"].to_numpy(np.float64)
        earlier[cells.functions] += (1.0 - later) @ cells.value
        exposure = (design.T * later) @ cells.value
        parts.append((np.ix_(at, cells.functions), information, score, exposure))
    information, score, exposure = np.zeros((3, len(place), functions))
    for where, more_information, more_score, more_exposure in parts:
        information[where] += more_information
        score[where] += more_score
        exposure[where] += more_exposure
    ranks = [RANKS.index(cause.dimension) + 0.5 * (not cause.since) for cause in place]
    return Fits(list(place), information, score, change, exposure, earlier, np.array(ranks, dtype=np.float64))


def _fitted(cells: CostCells, design: Floats, drift: float) -> tuple[Floats, Floats, Floats]:
    """Return (H, F) information and scores of the (C, H) causes, and the (F,) sums of squares."""
    nested = Nested.of(cells.precision, cells.lasting, cells.unit, cells.block)
    later = cells.later[:, None]
    pulled = nested.weighted(cells.stray)
    period = nested.weighted(later)
    places = len(cells.tags)
    alone = np.array([nested.square(where[cells.cell]) for where in design.T])
    score = design.T @ summed(pulled, cells.cell, places)
    common = design.T @ summed(period, cells.cell, places)
    shift = tied((later * period).sum(axis=0), drift)
    pull = (later * pulled).sum(axis=0)
    squares = (cells.stray * pulled).sum(axis=0) - shift * pull**2
    return alone - shift * common**2, score - shift * common * pull, squares


def common_changes(all_cells: Sequence[CostCells], moved: Sequence[tuple[Floats, Floats]], functions: int) -> Floats:
    """Return (F,) by how much functions' log odds changed because all of their applications' did.

    Shares add up to 1: where a large function becomes cheaper, all others of its application have more. What the median
    function did (of at least ten, weighted by precision) is no change of any of them. A function of several
    applications has the mean of theirs, weighted by its events.

    Parameters
    ----------
    all_cells : of all applications
    moved : `changes` of them
    functions : F
    """
    shift, weight = np.zeros((2, functions))
    for cells, (change, variance) in zip(all_cells, moved, strict=True):
        events = cells.value.sum(axis=0)
        weight[cells.functions] += events
        if len(change) >= _ENOUGH:
            shift[cells.functions] += events * _middle(change, variance)
    return np.divide(shift, weight, out=np.zeros(functions), where=weight > 0)


def drift_of(all_cells: Sequence[CostCells]) -> float:
    """Return the variance of healthy deviations of an application's log odds in a period.

    The median of the squared changes over all functions of all applications, each about the median change of its
    application, is what it should be under a normal law (an empirical null, Efron 2004): a few functions that did
    become more expensive do not matter, nor that all others then have less.
    """
    return drift_behind(changes(all_cells))


def changes(all_cells: Sequence[CostCells]) -> list[tuple[Floats, Floats]]:
    """Return, for each application, the changes of its functions' log odds between the periods and their variances.

    Parameters
    ----------
    all_cells : of `analysis.profiling.regressions.cells.cells`
    """
    moved = []
    for cells in all_cells:
        information, score, _ = _fitted(cells, cells.tags["later"].to_numpy(np.float64)[:, None], 0.0)
        known = information[0] > 1e-9
        moved.append((score[0, known] / information[0, known], 1.0 / information[0, known]))
    return moved


def drift_behind(changes: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the variance of deviations that makes changes of log odds as large as they are, in the median.

    Parameters
    ----------
    changes : as `changes` returns them

    Examples
    --------
    >>> drift_behind([(np.array([0.1, -0.2, 0.3]), np.array([1e-9, 1e-9, 1e-9]))]) > 0.04
    True
    """
    if not sum(len(change) for change, _ in changes):
        return 0.0
    return _root(
        np.concatenate([_apart(change, variance) ** 2 for change, variance in changes]),
        np.concatenate([variance for _, variance in changes]),
    )


def _apart(change: Floats, variance: Floats) -> Floats:
    """Return an application's changes about their median, weighted by precision; of few functions, as they are.

    Shares add up to 1: where one large function grows, all others of its application fall by the same amount, which is
    no drift. Taken for one, it would hide the growth, and the more so the larger that is.
    """
    if len(change) < _ENOUGH:
        return change
    return np.asarray(change - _middle(change, variance), dtype=np.float64)


def _middle(change: Floats, variance: Floats) -> float:
    """Return the median of changes, weighted by precision."""
    order = np.argsort(change, kind="stable")
    weight = np.cumsum(1.0 / variance[order])
    return float(change[order[int(np.searchsorted(weight, weight[-1] / 2.0))]])


_CHI2_MEDIAN = float(chi2.ppf(0.5, 1))


def _root(square: Floats, variance: Floats) -> float:
    """Return d so that the median of square / (variance + 2 d) is that of χ² with one degree of freedom; at least 0."""
    low, high = 0.0, _median(square) / _CHI2_MEDIAN + 1e-12
    if _median(square / variance) <= _CHI2_MEDIAN:
        return 0.0
    for _ in range(60):
        between = (low + high) / 2
        above = _median(square / (variance + 2 * between)) > _CHI2_MEDIAN
        low, high = (between, high) if above else (low, between)
    return high


def _median(values: Floats) -> float:
    """Return the median; of a hundred numbers in a tenth of the time of NumPy's, which looks for what is no number."""
    middle = [(len(values) - 1) // 2, len(values) // 2]
    return float(np.partition(values, middle)[middle].sum() / 2)


def rolled_out(table: pd.DataFrame) -> pd.DataFrame:
    """Return which tags' values gain in share within applications from the earlier period to the later.

    Parameters
    ----------
    table : columns application, later, tags, value

    Returns
    -------
    DataFrame
        dimension, application ("" where the tag is not an application's own), value.
    """
    names = [name for name in _ROLLED_OUT if name in table.columns]
    used = table.groupby(["application", "later", *names], observed=True, as_index=False)["value"].sum()
    totals = used.groupby(["application", "later"], observed=True)["value"].transform("sum")
    both = used.groupby("application", observed=True)["later"].transform("nunique") == 2
    share = (used["value"] / totals).astype(np.float64)
    change = used.assign(gain=share.where(used["later"].astype(bool), -share))[both]
    gains: list[tuple[str, str, str]] = []
    for name in names:
        owner = change["application"] if name == "revision" else pd.Series("", change.index)
        gain = change.assign(owner=owner).groupby(["owner", name], observed=True, as_index=False)["gain"].sum()
        gaining = gain[gain["gain"] > 1e-9]
        gains += [(name, str(own), str(tag)) for own, tag in zip(gaining["owner"], gaining[name], strict=True)]
    return pd.DataFrame(gains, columns=["dimension", "application", "value"])
