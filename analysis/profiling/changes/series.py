"""Series of counts by function and time: what was sampled, what was expected, and how machines differ.

Samples of a function are expected where its applications have samples: in each application, on each platform in each
data centre, the function has its share of all time. So neither load nor a changed mix of applications, platforms or
places moves a function from what is expected; a change of its cost within them does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from scipy.sparse import coo_array, csr_array

from analysis.profiling.changes.scan import Geometry, Noise
from analysis.profiling.fleet_samples import of_fleet, visits_of_fleet
from analysis.profiling.formats.fleet import NOBODY
from analysis.profiling.query import Query, QueryError
from models.arrays import DAY_S, HOUR_S, Bools, Floats, Ints

if TYPE_CHECKING:
    from analysis.profiling.database import Database

Ask = Callable[[float, float], pd.DataFrame]
"""Returns rows between two times: function, application, visit, samples, value, and `own` samples of the function."""
MIN_SAMPLES = 20
"""Samples of a function over all time from which it is looked at."""
WEEK = 7
_USUAL = 0.01
"""Variance of log shares between machine-days where nothing tells it."""
_PRIOR_DAYS = 20.0
"""Weight of the usual variance, in machine-days."""
_FEW_DAYS = 5.0
"""Machine-days from which a function has a say in the usual variance where few have `_PRIOR_DAYS`."""
_TELLING = 7
"""Times `_PRIOR_DAYS` that functions have together if they tell the usual variance."""
_LASTING_PAIRS = 200
"""Pairs of function and application, the largest, by which the part of the variance that lasts is measured."""
MOST_BINS = 4_000


@dataclass(frozen=True, slots=True)
class Clock:
    """Bins of time: the first's start, their width, how many."""

    since_s: float
    width_s: float
    bins: int

    @property
    def day(self) -> int:
        """Bins of a day, at least 1."""
        return max(1, round(DAY_S / self.width_s))

    @property
    def period(self) -> int:
        """Bins after which hours repeat: a day's if there are two days, else 1."""
        return self.day if self.bins > self.day else 1

    def bin_of(self, start_s: Floats) -> Ints:
        """Return the bins of times."""
        return np.floor((start_s - self.since_s) / self.width_s).astype(np.int64)

    def start_s(self, at: int) -> float:
        """Return when a bin begins."""
        return self.since_s + at * self.width_s

    @classmethod
    def over(cls, start_s: Floats, width_s: float = HOUR_S) -> Self:
        """Return the clock whose bins hold all times; they begin at a multiple of the width.

        Raises
        ------
        QueryError
            If there would be too many bins.
        """
        bins = cls.count(start_s, width_s)
        if bins > MOST_BINS:
            least = f"they should be at least {least_width_s(start_s):g} s wide"
            raise QueryError(f"{bins:,} bins of time are more than {MOST_BINS:,}; {least}")
        return cls(float(np.floor(start_s.min() / width_s) * width_s), width_s, bins)

    @staticmethod
    def count(start_s: Floats, width_s: float) -> int:
        """Return how many bins hold all times."""
        since_s = float(np.floor(start_s.min() / width_s) * width_s)
        return int(np.floor((start_s.max() - since_s) / width_s)) + 1


def repeats_daily(width_s: float) -> bool:
    """Return whether bins of a width begin at the same hours every day: it divides a day, or is a number of days.

    Examples
    --------
    >>> [repeats_daily(hours * HOUR_S) for hours in (1.0, 1.5, 5.0, 48.0)]
    [True, True, False, True]
    """
    ratio = max(width_s / DAY_S, DAY_S / width_s)
    return bool(np.isclose(ratio, round(ratio), rtol=1e-9, atol=0.0))


def least_width_s(start_s: Floats) -> float:
    """Return the least width, in whole seconds that repeat daily, from which on bins are at most `MOST_BINS`.

    Examples
    --------
    >>> least_width_s(np.array([0.0, 2.0 * DAY_S])), least_width_s(np.array([0.0, 9_000.0 * DAY_S]))
    (45.0, 259200.0)
    """
    least = float(start_s.max() - start_s.min()) / (MOST_BINS - 1)
    if least > DAY_S:
        return float(np.ceil(least / DAY_S)) * DAY_S
    seconds = np.arange(max(1.0, np.ceil(least)), DAY_S + 1.0)
    return float(seconds[DAY_S % seconds == 0][0])


@dataclass(frozen=True, slots=True, eq=False)
class CountSeries:
    """Counts of F functions in T bins and S strata: an application on a platform in a data centre."""

    event: str
    clock: Clock
    functions: "pd.Index[str]"
    strata: pd.DataFrame
    """(S,) application, platform, datacentre."""
    cells: csr_array
    """(F, S · T) samples."""
    exposure: Floats
    """(S, T) samples that the functions' are compared with: of everything, until `without` takes some out."""
    weight: Floats
    """(F,) how much a sample of the function stands for, over that of any sample."""
    everything: Floats
    """(T,) samples of everything."""
    noise: Noise
    geometry: Geometry
    weekly: Geometry | None = None
    """Of the same bins where hours of the week repeat; None: there is no second week."""

    def counts(self) -> Floats:
        """Return (F, T) samples."""
        strata, bins = self.exposure.shape
        together = csr_array((np.ones(strata * bins), (np.arange(strata * bins), np.tile(np.arange(bins), strata))))
        return np.asarray((self.cells @ together).todense(), dtype=np.float64)

    def expected(self) -> Floats:
        """Return (F, T) samples that are expected from each stratum's share over all time."""
        strata, bins = self.exposure.shape
        stratum = csr_array((np.ones(strata * bins), (np.arange(strata * bins), np.repeat(np.arange(strata), bins))))
        total = self.exposure.sum(axis=1)
        share = (self.cells @ stratum) @ csr_array(np.diag(1.0 / np.maximum(total, 1e-300)))
        return np.asarray(share @ self.exposure, dtype=np.float64)

    def without(self, functions: Sequence[int]) -> "CountSeries":
        """Return the series with samples of some functions taken out of what all others are compared with."""
        strata, bins = self.exposure.shape
        taken = np.asarray(self.cells[list(functions)].sum(axis=0)).reshape(strata, bins)
        return replace(self, exposure=np.maximum(self.exposure - taken, 0.0))

    def home(self) -> Ints:
        """Return (F,) the number of the application in which each function has most of its samples."""
        strata, bins = self.exposure.shape
        application = pd.factorize(self.strata["application"])[0]
        column = csr_array((np.ones(strata * bins), (np.arange(strata * bins), np.repeat(application, bins))))
        return np.asarray((self.cells @ column).todense().argmax(axis=1), dtype=np.int64).ravel()

    def of(self, function: int) -> Floats:
        """Return (S, T) samples of a function."""
        return np.asarray(self.cells[[function]].todense()).reshape(self.exposure.shape)


@dataclass(slots=True)
class _Spread:
    """Sums over days by which the spread between machines is measured; arrays of one entry for each function."""

    square: Floats
    """Σ squared deviations between machines within strata and days, less independent samples' part."""
    pairs: Floats
    """What a variance of log shares is multiplied by in them."""
    mean: Floats
    """Σ expected counts of machine-days."""
    concentration: Floats
    """Σ squared expected counts of machine-days."""

    @classmethod
    def of(cls, functions: int) -> Self:
        return cls(*np.zeros((4, functions)))

    def wider(self, functions: int) -> "_Spread":
        """Return the sums with room for more functions."""
        more = functions - len(self.mean)
        parts = (self.square, self.pairs, self.mean, self.concentration)
        return _Spread(*(np.concatenate([part, np.zeros(more)]) for part in parts))


@dataclass(slots=True)
class _Lasting:
    """Deviations of machines, day by day, of the pairs of function and stratum that are largest."""

    rows: list[pd.DataFrame] = field(default_factory=list)

    def share(self) -> float:
        """Return the part of the variance between machine-days that stays with the machine, 0..0.98."""
        if not self.rows:
            return 0.0
        rows = pd.concat(self.rows, ignore_index=True)
        own = rows.assign(square=rows["stray"] ** 2 - rows["mean"], size=rows["mean"] ** 2)
        machines = rows.groupby(["pair", "machine"], observed=True)[["stray", "mean"]].sum()
        apart = float((machines["stray"] ** 2).sum() - (rows["stray"] ** 2).sum())
        ways = float((machines["mean"] ** 2).sum() - own["size"].sum())
        if ways <= 0 or own["square"].sum() <= 0:
            return 0.0
        return float(np.clip((apart / ways) / (own["square"].sum() / own["size"].sum()), 0.0, 0.98))


@dataclass(frozen=True, slots=True)
class WatchSpan:
    """The time that is looked at, and in what steps."""

    since_s: float | None = None
    """Visits from this time on; None: from the first."""
    until_s: float | None = None
    """Visits before this time; None: to the last."""
    width_s: float = HOUR_S
    """Width of the bins of time."""

    def holds(self, start_s: Floats) -> Bools:
        """Return which times are within."""
        after = start_s >= (-np.inf if self.since_s is None else self.since_s)
        return np.asarray(after & (start_s < (np.inf if self.until_s is None else self.until_s)), dtype=np.bool_)


def read(database: "Database", event: str, span: WatchSpan, *, subtrees: bool = False) -> CountSeries:
    """Return the series of all functions, read day by day.

    Parameters
    ----------
    database : asked
    event : generic event
    span : time that is looked at
    subtrees : of functions with all that they call, from the samples that have call paths

    Raises
    ------
    QueryError
        If there are no samples, or too many bins.
    """
    visits = visits_of_fleet(database)
    visits = visits[span.holds(visits["start_s"].to_numpy(np.float64))].set_index("visit")
    if visits.empty:
        raise QueryError("there are no visits in this time")
    clock = Clock.over(visits["start_s"].to_numpy(np.float64), span.width_s)
    query = of_fleet(database, event, ("function", "application"))
    ask = (_with_callees if subtrees else _alone)(database, query)
    return _Reading(ask, clock, visits, set(database.values("collection"))).series(event)


def _alone(database: "Database", query: Query) -> "Ask":
    """Return how a time is asked for samples in functions themselves."""

    def ask(since_s: float, until_s: float) -> pd.DataFrame:
        rows = database.clustered(replace(query, since_s=since_s, until_s=until_s), "visit")
        return rows.assign(own=rows["samples"])

    return ask


def _with_callees(database: "Database", query: Query) -> "Ask":
    """Return how a time is asked for samples in functions and all that they call."""

    def ask(since_s: float, until_s: float) -> pd.DataFrame:
        bounded = replace(query, by=(), since_s=since_s, until_s=until_s)
        rows = database.inclusive(bounded, apart=("application", "visit"))
        value = np.maximum(rows["value"].to_numpy(np.float64), 1.0)
        return rows.assign(own=rows["own"].to_numpy(np.float64) * rows["samples"] / value)

    return ask


class _Reading:
    """Adds up the days of a profile."""

    def __init__(self, ask: "Ask", clock: Clock, visits: pd.DataFrame, nameless: set[str]) -> None:
        self.ask, self.clock, self.visits, self.nameless = ask, clock, visits, nameless
        self.functions: dict[str, int] = {}
        self.strata: dict[tuple[str, str, str], int] = {}
        self.machines: dict[object, int] = {}
        self.spread, self.lasting = _Spread.of(0), _Lasting()
        self.largest: set[int] = set()
        self.parts: list[pd.DataFrame] = []
        self.exposures: list[pd.DataFrame] = []

    def series(self, event: str) -> CountSeries:
        """Return the series of everything that was read."""
        for since_s, until_s in days_of(self.visits):
            rows = self.ask(since_s, until_s)
            rows = rows[rows["visit"].isin(self.visits.index)]
            if len(rows):
                self._add(rows)
        if not self.parts:
            raise QueryError(f"the event {event} has no samples in this time")
        rows = pd.concat(self.parts, ignore_index=True)
        bins, strata = self.clock.bins, len(self.strata)
        column = rows["stratum"].to_numpy(np.int64) * bins + rows["bin"].to_numpy(np.int64)
        function = rows["function"].to_numpy(np.int64)
        samples = rows["samples"].to_numpy(np.float64)
        shape = (len(self.functions), strata * bins)
        exposure = (
            np.bincount(column, rows["own"].to_numpy(np.float64), strata * bins)
            .reshape(strata, bins)
            .astype(np.float64)
        )
        total = np.bincount(function, samples, shape[0])
        value = np.bincount(function, rows["value"].to_numpy(np.float64), shape[0])
        large = np.flatnonzero(total >= MIN_SAMPLES)
        cells = coo_array((samples, (function, column)), shape=shape).tocsr()[large]
        return CountSeries(
            event,
            self.clock,
            pd.Index(np.array(list(self.functions), dtype=object)[large]),
            pd.DataFrame(list(self.strata), columns=["application", "platform", "datacentre"]),
            csr_array(cells),
            exposure,
            (value / np.maximum(total, 1.0))[large] * samples.sum() / max(float(value.sum()), 1e-300),
            exposure.sum(axis=0),
            self._noise(large),
            *self._geometries(),
        )

    def _geometries(self) -> tuple[Geometry, Geometry | None]:
        machines, clock = self._machines(), self.clock
        week = WEEK * clock.day
        weekly = Geometry.of(machines, clock.day, week) if clock.bins > week and clock.width_s <= DAY_S else None
        return Geometry.of(machines, clock.day, clock.period), weekly

    def _add(self, rows: pd.DataFrame) -> None:
        about = self.visits.loc[rows["visit"]]
        application = programs(rows["application"], self.nameless)
        table = pd.DataFrame(
            {
                "function": _numbered(self.functions, rows["function"]),
                "stratum": _numbered(self.strata, application, about["platform"], about["datacentre"]),
                "machine": _numbered(self.machines, about["machine"]),
                "bin": self.clock.bin_of(about["start_s"].to_numpy(np.float64)),
                "samples": rows["samples"].to_numpy(np.float64),
                "value": rows["value"].to_numpy(np.float64),
                "own": rows["own"].to_numpy(np.float64),
            }
        )
        sums = ["samples", "value", "own"]
        self.parts.append(table.groupby(["function", "stratum", "bin"], as_index=False)[sums].sum())
        self.exposures.append(table.groupby(["machine", "bin"], as_index=False)[["own"]].sum())
        self.spread = self.spread.wider(len(self.functions))
        self._measure(table)

    def _measure(self, table: pd.DataFrame) -> None:
        """Add a day's differences between machines."""
        count = table.groupby(["function", "stratum", "machine"], as_index=False)[["samples"]].sum()
        size = table.assign(size=table["own"]).groupby(["stratum", "machine"], as_index=False)[["size"]].sum()
        size = size[size["size"] > 0]
        strata = len(self.strata)
        n1, n2, n3 = (np.bincount(size["stratum"], size["size"] ** power, strata) for power in (1, 2, 3))
        joined = count.merge(size, on=["stratum", "machine"])
        sums = joined.assign(square=joined["samples"] ** 2, cross=joined["samples"] * joined["size"])
        pair = sums.groupby(["function", "stratum"], as_index=False)[["samples", "square", "cross"]].sum()
        at = pair["stratum"].to_numpy(np.int64)
        share = pair["samples"].to_numpy(np.float64) / n1[at]
        square = pair["square"] - 2.0 * share * pair["cross"] + share**2 * n2[at]
        alone = share * (1.0 - share) * (n1[at] - n2[at] / n1[at])
        pairs = share**2 * (n2[at] - 2.0 * n3[at] / n1[at] + n2[at] ** 2 / n1[at] ** 2)
        places, functions = pair["function"], len(self.functions)
        self.spread.square += np.bincount(places, square - alone, functions)
        self.spread.pairs += np.bincount(places, np.maximum(pairs, 0.0), functions)
        self.spread.mean += np.bincount(places, pair["samples"], functions)
        self.spread.concentration += np.bincount(places, share**2 * n2[at], functions)
        self._remember(pair.assign(share=share), joined, size)

    def _remember(self, pair: pd.DataFrame, joined: pd.DataFrame, size: pd.DataFrame) -> None:
        """Keep the deviations of machines of the largest pairs."""
        key = pair["function"] * 2**31 + pair["stratum"]
        if not self.largest:
            self.largest = set(key[pair["samples"].nlargest(_LASTING_PAIRS).index].tolist())
        wanted = pair.assign(pair=key)[key.isin(self.largest)]
        rows = wanted[["pair", "function", "stratum", "share"]].merge(size, on="stratum")
        rows = rows.merge(joined[["function", "stratum", "machine", "samples"]], "left").fillna({"samples": 0.0})
        mean = rows["share"] * rows["size"]
        strays = rows[["pair", "machine"]].assign(stray=rows["samples"] - mean, mean=mean)
        self.lasting.rows.append(strays)

    def _noise(self, large: Ints) -> Noise:
        spread = self.spread
        mean, concentration = np.maximum(spread.mean[large], 1e-300), spread.concentration[large]
        own = spread.square[large] / np.maximum(spread.pairs[large], 1e-300)
        days, usual_count = mean**2 / np.maximum(concentration, 1e-300), concentration / mean
        variance = smoothed(own, spread.pairs[large] / np.maximum(concentration, 1e-300) * days, usual_count)
        return Noise(variance * usual_count, self.lasting.share())

    def _machines(self) -> Floats:
        """Return (M, T) samples of each machine in each bin."""
        rows = pd.concat(self.exposures, ignore_index=True)
        shape = (len(self.machines), self.clock.bins)
        at = rows["machine"].to_numpy(np.int64) * shape[1] + rows["bin"].to_numpy(np.int64)
        return np.bincount(at, rows["own"], shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _numbered(known: dict[Any, int], *columns: pd.Series) -> Ints:
    """Return the numbers of rows' names, or of their tuples if there are several columns; new ones get the next."""
    parts = [pd.factorize(column) for column in columns]
    code = parts[0][0].astype(np.int64)
    for own, names in parts[1:]:
        code = code * max(len(names), 1) + own
    unlike, first, place = np.unique(code, return_index=True, return_inverse=True)
    number = np.empty(len(unlike), dtype=np.int64)
    for at in np.argsort(first).tolist():
        name = tuple(names[own[first[at]]] for own, names in parts)
        number[at] = known.setdefault(name if len(name) > 1 else name[0], len(known))
    return np.asarray(number[place])


def days_of(visits: pd.DataFrame) -> list[tuple[float, float]]:
    """Return beginning and end of each day that has visits."""
    days = np.unique(np.floor(visits["start_s"].to_numpy(np.float64) / DAY_S))
    return [(float(day) * DAY_S, float(day + 1) * DAY_S) for day in days.tolist()]


def programs(application: "pd.Series[str]", nameless: set[str]) -> "pd.Series[str]":
    """Return applications; files that name no program, which otherwise go by their own names, are of one."""
    names = application.astype(object)
    return names.mask(names.isin(nameless), NOBODY)


def smoothed(own: Floats, machine_days: Floats, counts: Floats) -> Floats:
    """Return (F,) variances of log shares between machine-days, as far as counts do not tell them the usual one.

    Parameters
    ----------
    own : (F,) estimates from each function's samples
    machine_days : (F,) how many told them
    counts : (F,) mean count of the machine-day that a sample is in

    Examples
    --------
    >>> smoothed(np.array([0.04]), np.array([0.0]), np.array([5.0]))
    array([0.01])
    """
    usual = _usual(own[counts >= 2.0], machine_days[counts >= 2.0])
    inside = usual * counts
    support = machine_days * (inside / (1.0 + inside)) ** 2
    return np.asarray(np.maximum((own * support + usual * _PRIOR_DAYS) / (support + _PRIOR_DAYS), 0.0))


def _usual(own: Floats, machine_days: Floats) -> float:
    """Return the variance of a function in the middle, of those that enough machine-days tell, or all together do."""
    for least in (_PRIOR_DAYS, _FEW_DAYS):
        telling = machine_days >= least
        if telling.any() and machine_days[telling].sum() >= _TELLING * _PRIOR_DAYS:
            return max(float(np.median(own[telling])), 0.0)
    return _USUAL
