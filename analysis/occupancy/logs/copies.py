"""Rows of a request log that are there more than once: copies for certain, or alike in more pairs than by chance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import poisson

from models.arrays import Bools, Floats, Ints

LEVEL = 0.001
"""So rarely chance makes as many pairs alike as are reported."""
MARGIN = 2.0
"""Pairs are compared with so many times those that chance explains: neighbours are not quite independent."""
MOST_WRITTEN = 3
"""A request is written so many times at most; names that fewer than n / 3 rows differ in name something else."""
LEAST = 30
"""Rows that repeat whole: fewer may be of requests that a file happens not to tell apart."""
MOST_REUSED = 0.1
"""Names of requests come again with other times, as retries do, so often at most; an `id` does per row that repeats."""
_DECIMALS = 6
"""Times are compared to the microsecond: differences of floats differ in their last bits."""


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Which rows are certainly copies of an earlier one, and how many pairs are alike."""

    again: Bools
    """(n,) rows that repeat one before them, name and times; all False where that is not certain."""
    pairs: int
    """Pairs of rows alike in all that the log says, m (m - 1) / 2 for m of them; 0 where copies are certain."""
    by_chance: float
    """Pairs that requests which came in the same tick have by chance."""
    usual: int
    """Rows in the usual group of rows alike."""
    conflicts: int
    """Rows whose id was there before with other times; 0 if ids do not name requests at all, or there are none."""

    @property
    def beyond_chance(self) -> bool:
        """Whether more pairs are alike than chance makes, at the level of 0.001, with a margin of twice as many."""
        return self.pairs > 0 and bool(poisson.sf(self.pairs - 1, MARGIN * self.by_chance) < LEVEL)


def might_repeat(arrival_s: Floats, departure_s: Floats) -> bool:
    """Return whether any two rows have both times in common, so that what else they say matters.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds

    Examples
    --------
    >>> might_repeat(np.array([0.0, 1.0, 1.0]), np.array([2.0, 2.0, 3.0]))
    False
    """
    came = pd.Series(np.round(arrival_s, _DECIMALS))
    together = came.duplicated(keep=False).to_numpy()
    left = np.round(departure_s[together], _DECIMALS)
    return bool(pd.DataFrame({"came": came[together].to_numpy(), "left": left}).duplicated().any())


def copies(log: pd.DataFrame, tick_s: float) -> Copies:
    """Return which rows of a log are copies of others, and how many pairs are alike without being so for certain.

    A row is a copy for certain if its times are those of an earlier row and so is its name: its `request`, else its
    `id`, else all that the file says beside the times, `rest`. That is a name only if at least a third of the rows
    differ in it and it hardly comes with other times: a tenth of the names of `request` at most, one row for ten that
    repeat of `id`, and none of `rest`. Of the last two 30 rows must repeat. Where `own` is there, `rest` without what
    several requests share, the evidence is its own: a trace of two requests is no request written twice. Without such
    names nothing is certain: requests that came in one tick of the clock may have taken equally long. How many pairs
    have is estimated from pairs of requests in adjacent ticks, which cannot be copies: the share of those that took
    equally long (and say the same), or of those a single tick apart that did or left together, times the pairs in one
    tick.

    Parameters
    ----------
    log : columns arrival_s and departure_s, NaN: not seen; perhaps `request`, `id`, or `rest` and `own`, and `stamp_s`,
        the stamp as it was written if the times were put between ticks
    tick_s : what stamps are multiples of; 0: of nothing

    Examples
    --------
    >>> log = pd.DataFrame({"arrival_s": [0.0, 1.0, 1.0, 2.0], "departure_s": [2.0, 3.0, 3.0, 3.0]})
    >>> copies(log.assign(request=[1, 2, 2, 3]), 1.0).again
    array([False, False,  True, False])
    >>> copies(log, 1.0).again.tolist(), copies(log, 1.0).pairs
    ([False, False, False, False], 1)
    """
    came, left = (log[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    took = np.round(left - came, _DECIMALS)
    moved = "stamp_s" in log
    stamp = log["stamp_s"].to_numpy(dtype=np.float64) if moved else came
    kind = next((each for each in ("request", "id", "rest") if each in log and log[each].notna().all()), None)
    codes = None if kind is None else pd.factorize(log[kind])[0].astype(np.int64)
    if (codes is None and not might_repeat(stamp, stamp + took)) or (codes is not None and _unique(codes)):
        return Copies(np.zeros(len(log), dtype=np.bool_), 0, 0.0, 0, 0)
    times = _codes([np.round(stamp, _DECIMALS), took if moved else np.round(left, _DECIMALS)])
    conflicts = 0
    if kind is not None and codes is not None:
        # Without pairs a name comes twice, with an arrival and with a departure.
        ends = [np.isnan(came)] if np.isnan(took).all() else []
        again = pd.Series(_codes([codes, *ends, times])).duplicated().to_numpy()
        own = codes if kind != "rest" or "own" not in log else pd.factorize(log["own"])[0].astype(np.int64)
        named = _codes([own, *ends])
        names, rows = _number(named), _number(_codes([named, times]))
        if MOST_WRITTEN * names >= len(log):
            conflicts = 0 if kind == "rest" else rows - names
            if _certain(kind, names, rows - names, int(again.sum())):
                return Copies(again, 0, 0.0, 0, conflicts)
    pairs, by_chance, usual = _alike(stamp, took, codes, tick_s)
    return Copies(np.zeros(len(log), dtype=np.bool_), pairs, by_chance, usual, conflicts)


def _certain(kind: str, names: int, others: int, repeated: int) -> bool:
    """Return whether so many rows that repeat are copies, where so many others have an earlier name and other times."""
    if kind == "request":
        return repeated > 0 and others <= MOST_REUSED * names
    return repeated >= LEAST and others <= (MOST_REUSED * repeated if kind == "id" else 0)


def _codes(columns: Sequence[np.ndarray]) -> Ints:
    """Return a whole number for each row, the same for the same values in all columns."""
    total = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code, values = pd.factorize(column, use_na_sentinel=False)
        total = pd.factorize(total * max(len(values), 1) + code)[0]
    return total


def _alike(stamp: Floats, took: Floats, codes: Ints | None, tick_s: float) -> tuple[int, float, int]:
    """Return pairs alike in the same tick, those that chance explains, and the usual size of groups of rows alike."""
    whole = ~np.isnan(took) & ~np.isnan(stamp)
    at = np.rint(stamp[whole] / tick_s) if tick_s > 0 else stamp[whole]
    ticks, tick, there = np.unique(at, return_inverse=True, return_counts=True)
    together = _pairs(there)
    names = [] if codes is None else [codes[whole]]
    cells = _Cells(tick, _codes([took[whole], *names]))
    if not _pairs(cells.count):
        return 0, 0.0, 0
    usual = int(np.bincount(cells.count[cells.count > 1]).argmax())
    adjacent, near = there[1:] * there[:-1], np.diff(ticks) == 1.0
    if not len(adjacent):
        return _pairs(cells.count), np.inf, usual
    equal = cells.equal(len(ticks))
    # One more than was seen: none among few pairs does not show that there are none.
    share = (equal.sum() + 1) / adjacent.sum()
    if tick_s > 0 and near.any():
        # Requests of one tick see the same queue: those that come a tick later take as long, or leave together.
        ends = _Cells(tick, _codes([np.round(stamp + took, _DECIMALS)[whole], *names])).equal(len(ticks))
        share = max(share, (equal + ends)[near].sum() / adjacent[near].sum())
    return _pairs(cells.count), together * float(min(share, 1.0)), usual


class _Cells:
    """How many rows of each kind came in each tick."""

    def __init__(self, tick: Ints, kind: Ints) -> None:
        self.kinds = int(kind.max(initial=0)) + 1
        self.code, self.count = np.unique(tick * self.kinds + kind, return_counts=True)

    def equal(self, ticks: int) -> Ints:
        """Return how many pairs are of the same kind, one in each tick and the other in the next."""
        following = np.minimum(np.searchsorted(self.code, self.code + self.kinds), len(self.code) - 1)
        pairs = np.where(self.code[following] == self.code + self.kinds, self.count * self.count[following], 0)
        return np.bincount(self.code // self.kinds, pairs, minlength=ticks)[:-1].astype(np.int64)


def _unique(codes: Ints) -> bool:
    return _number(codes) == len(codes)


def _number(codes: Ints) -> int:
    return int(codes.max(initial=-1)) + 1


def _pairs(counts: Ints) -> int:
    return int(np.sum(counts * (counts - 1)) // 2)
