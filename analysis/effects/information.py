"""How much each look at a running experiment tells: from the autocorrelation of its own machines."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import nnls

from analysis.effects.cells import JobMachineSums
from analysis.effects.estimand import Target
from analysis.effects.study import EffectMethod, potential
from models.arrays import Floats, Ints
from models.errors import InputError

_MEMORIES = np.r_[0.0, 1.0 - np.geomspace(0.9, 0.01, 24)]
"""What a machine's course keeps from a period to the next, as tried."""
_DRAWS = 500
_FEWEST = 30
"""Drawn assignments that have an estimate at two looks, for a correlation."""


def machine_levels(rows: pd.DataFrame) -> Floats:
    """Return by how much each machine was above or below the others in each period, (M, T); NaN where it had no row.

    A value counts relative to its job's mean in its period, by its weight; the mean of each arm is taken away. No
    period's levels depend on another's.

    Parameters
    ----------
    rows : period, job, machine, weight, value, treated
    """
    relative = rows["value"] / rows.groupby(["job", "period"], observed=True)["value"].transform("mean") - 1.0
    table = rows.assign(part=rows["weight"] * relative)
    keys = ["machine", "period", "treated"]
    sums = table.groupby(keys, observed=True)[["part", "weight"]].sum().reset_index()
    sums["level"] = sums["part"] / sums["weight"]
    sums["level"] -= sums.groupby(["period", "treated"], observed=True)["level"].transform("mean")
    levels = sums.groupby(["machine", "period"], observed=True)["level"].mean()
    return levels.reset_index().pivot_table(index="machine", columns="period", values="level").to_numpy(np.float64)


@dataclass(frozen=True, slots=True)
class Autocovariance:
    """Covariance of a machine's levels in two periods, by the periods between: what lasts, a course, and noise."""

    lasting: float
    course: float
    """First-order autoregressive."""
    memory: float
    """What the course keeps from a period to the next, 0..1."""
    noise: float

    @classmethod
    def of(cls, levels: Floats, least_gain: float = 0.0) -> Self:
        """Return the one that fits the products of levels best, each lag weighed by its pairs.

        From one period nothing is known of what lasts: all is noise, so that information grows with the periods.

        Parameters
        ----------
        levels : (M, T) as `machine_levels`
        least_gain : lags times the logarithm by which a course has to lessen the squared distance, else there is none:
            0 takes any, 6 takes one of noise in a twentieth of all cases (twice the logarithm of a likelihood ratio)
        """
        lags, covariance, pairs = _by_lag(levels)
        if len(lags) < 2:
            return cls(0.0, 0.0, 0.0, float(covariance[0]) if len(lags) else 1.0)
        root, best = np.sqrt(pairs), (np.inf, cls(0.0, 0.0, 0.0, 1.0))
        least = math.exp(-least_gain / (2.0 * len(lags)))
        for memory in _MEMORIES:
            columns = np.stack([np.ones(len(lags)), memory**lags if memory else np.zeros(len(lags)), lags == 0], axis=1)
            parts, distance = nnls(columns * root[:, None], covariance * root)
            distance *= 1.0 if memory else least
            if distance < best[0] - 1e-12:
                best = (distance, cls(float(parts[0]), float(parts[1]), float(memory), float(parts[2])))
        return best[1]

    def __call__(self, lag: npt.ArrayLike) -> Floats:
        """Return the covariance of levels so many periods apart."""
        apart = np.abs(np.asarray(lag, dtype=np.float64))
        return np.asarray(self.lasting + self.course * self.memory**apart + self.noise * (apart == 0), dtype=np.float64)

    def clock(self, periods: int, past: int = 0) -> Floats:
        """Return the information of a machine's mean over the first 1, 2, … periods; 1 of all of them.

        It is that of the estimates with independent increments whose neighbours are correlated as these are: the share
        at n is the product of all squared correlations of neighbours from n on. With independent increments it is
        1 / variance. Means that forget their past have no such increments, and their variance may even grow.

        Parameters
        ----------
        periods : of the study
        past : periods right before it, whose mean foretells that of the study
        """
        now, before, n = np.arange(periods), -1 - np.arange(past), np.arange(1, periods + 1)
        lag = self(now)
        new = np.cumsum(lag) - lag[0]
        sums = n * lag[0] + 2.0 * (np.cumsum(new))
        variance, neighbours = sums / n**2, (sums[:-1] + new[1:]) / (n[:-1] * n[1:])
        if past and (known := float(self(before[:, None] - before).mean())) > 0.0:
            foretold = np.cumsum(self(now[:, None] - before).mean(axis=1)) / n / np.sqrt(known)
            variance, neighbours = variance - foretold**2, neighbours - foretold[:-1] * foretold[1:]
        square = neighbours**2 / np.maximum(variance[:-1] * variance[1:], 1e-300)
        logs = np.log(np.clip(square, 1e-4, 1.0))
        return np.asarray(np.exp(np.r_[np.cumsum(logs[::-1])[::-1], 0.0]), dtype=np.float64)


def _by_lag(levels: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the lags that have pairs, the mean product of levels at each, and the numbers of pairs."""
    known = np.isfinite(levels)
    filled = np.where(known, levels, 0.0)
    periods = levels.shape[1]
    products = np.array([float((filled[:, : periods - lag] * filled[:, lag:]).sum()) for lag in range(periods)])
    pairs = np.array([float((known[:, : periods - lag] & known[:, lag:]).sum()) for lag in range(periods)])
    there = np.flatnonzero(pairs > 0)
    return there, products[there] / pairs[there], pairs[there]


def shares(levels: Floats, past: int, ends: Sequence[int], planned: int) -> Floats:
    """Return the share of the information at the planned end that is there at each look, as known at that look.

    What later periods add is forecast from the autocovariance of levels up to the look (`Autocovariance.clock`), so a
    share never depends on what comes after it. Shares do not fall; the planned end has 1, and later looks have more.

    Parameters
    ----------
    levels : (M, T) as `machine_levels`, first those of the past
    past : periods before the study
    ends : (K,) periods of the study at each look
    planned : looks until the planned end

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(size=(200, 5))
    >>> shares(noise, 1, [1, 2, 3], 4).round(1).tolist()
    [0.2, 0.5, 0.8]
    """
    highest, found = 0.0, np.ones(len(ends))
    for place, end in enumerate(ends[:planned]):
        whole = end if place + 1 == planned else max(round(end * planned / (place + 1)), end)
        clock = Autocovariance.of(levels[:, : past + end]).clock(whole, past)
        highest = found[place] = max(highest, float(clock[end - 1]))
    for place, end in enumerate(ends[planned:], start=planned):
        clock = Autocovariance.of(levels[:, : past + end]).clock(end, past)
        highest = found[place] = max(highest, 1.0 / float(clock[ends[planned - 1] - 1]))
    return found


def without_effect(
    rows: pd.DataFrame, jobs: pd.DataFrame | None, change: float, target: Target = "instances"
) -> JobMachineSums:
    """Return the cells of an experiment up to a look as if the feature did nothing, to draw assignments from.

    Parameters
    ----------
    rows : observations, as `Study.of` takes them; machines keep the feature from one time on
    jobs : job, quota; or none
    change : relative change that rows with the feature are divided by
    target : as in `Study.of`
    """
    having = rows["treated"] > 0
    plain = rows.assign(value=rows["value"].where(~having, rows["value"] / (1.0 + change)), treated=0)
    past = rows["period"] < rows.loc[having, "period"].min()
    return potential(plain[past], plain[~past], plain[~past].assign(treated=1), jobs, target=target)


class Redrawn:
    """Assignments drawn anew, alike at every look: how an estimator's answers at two looks go together without effect.

    Parameters
    ----------
    method : an estimator that knows nothing of how machines were drawn
    """

    def __init__(self, method: EffectMethod) -> None:
        if method.needs:
            raise InputError(f"the estimator {method.name} cannot be drawn anew without {', '.join(method.needs)}")
        self._method, self._changes = method, list[Floats]()
        self._places: dict[object, int] = {}
        self._draws = np.zeros((0, _DRAWS))
        self._stream = np.random.default_rng(0)

    def look(self, cells: JobMachineSums, treated: int) -> None:
        """Add a look.

        Parameters
        ----------
        cells : up to the look, as `without_effect`
        treated : machines with the feature
        """
        for machine in cells.machines:
            self._places.setdefault(machine, len(self._places))
        fresh = len(self._places) - len(self._draws)
        self._draws = np.concatenate([self._draws, self._stream.random((fresh, _DRAWS))])
        number = self._draws[[self._places[machine] for machine in cells.machines]]
        chosen = number.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable") < treated
        self._changes.append(self._method.many(cells, np.ascontiguousarray(chosen.T)).change)

    def correlation(self) -> Floats:
        """Return the correlations of the looks' estimates, (K, K); 1 where too few draws have an answer at both."""
        changes = pd.DataFrame(np.array(self._changes).T)
        found = changes.corr(min_periods=_FEWEST).fillna(0.0).to_numpy(dtype=np.float64, copy=True)
        np.fill_diagonal(found, 1.0)
        return found
