"""What a service-level objective on a percentile needs: servers for a load, and the load that servers carry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from analysis.occupancy.load import MOST, RecordedLoad
from analysis.occupancy.percentiles import CONFIDENCE, TAIL, Percentile
from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.policies import POLICIES, PolicyName
from models.queues.serve import serve

DAYS = 30
"""Days that are drawn for a band."""
_LEAST_DAYS, _MOST_DRAWN = 4, 3_000_000
"""Of long logs fewer days are drawn, with the second of requests in all, but never fewer than the first: Student's t
makes the band of few days wider, and no band at all would make no number of servers sure."""
_ROUNDING_S = 1e-9
"""Shorter waiting is what rounding leaves of none."""
MOST_SERVERS = 4096
"""No more servers are tried."""
_FINE = 0.005
"""The largest load is known to so much of itself."""


@dataclass(frozen=True, slots=True)
class Objective:
    """A percentile of response time that should not be longer than a bound."""

    level: float
    """0..1: 0.99 is p99."""
    bound_s: float

    @property
    def name(self) -> str:
        """p99 ≤ 0.3 s."""
        return f"p{100 * self.level:.4g} ≤ {self.bound_s:g} s"

    @classmethod
    def parse(cls, text: str) -> "Objective":
        """Return an objective from text such as ``p99=300ms``.

        Examples
        --------
        >>> Objective.parse("p99.9=1.5s")
        Objective(level=0.999, bound_s=1.5)
        """
        from analysis.tables.quantities import DURATIONS

        name, _, bound = text.replace(" ", "").partition("=")
        number = bound.rstrip("abcdefghijklmnopqrstuvwxyzµμ")
        unit = bound[len(number) :] or "s"
        try:
            level, bound_s = round(float(name.removeprefix("p")) / 100, 12), float(number) * DURATIONS[unit]
        except (KeyError, ValueError):
            level, bound_s = np.nan, np.nan
        if not (name.startswith("p") and 0 < level < 1 and bound_s > 0 and np.isfinite(bound_s)):
            raise InputError(f"should be a percentile and a time, such as p99=300ms, got {text}")
        return cls(level, bound_s)


@dataclass(frozen=True, slots=True)
class Fewest:
    """The fewest servers that meet an objective."""

    servers: int | None
    """None: not even 4,096 do, as where single requests take longer than the bound."""
    surely: int | None
    """The fewest whose whole band meets it."""
    at: Percentile | None
    """The percentile on `servers`."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest load, as a multiple of the recorded one, with which an objective is met; 0: none."""

    load: float
    surely: float
    """The largest with which the whole band meets it."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplayStation:
    """Servers that a recorded load is served by: everything but how many there are."""

    load: RecordedLoad
    policy: PolicyName
    quantum_s: float = 0.1

    def response(self, servers: int, factor: float = 1.0) -> tuple[Floats, Floats]:
        """Return response times and demands of `factor` times the load on so many servers, in order of arrival."""
        return self._served(servers, *self.load.scaled(factor))

    def percentiles(
        self, levels: Sequence[float], servers: int, factor: float = 1.0, *, days: int | None = None
    ) -> tuple[Percentile, ...]:
        """Return percentiles of response times on so many servers, with bands for another day.

        Other days are drawn from the recorded one (`RecordedLoad.another_day`) and served. The band holds another day's
        percentile: it has the error of the recorded day and that of the other, on the logarithm, by Student's t.

        Parameters
        ----------
        levels : 0..1
        servers : k >= 1
        factor : of the load
        days : drawn days; None: as many as `days_for` says; fewer than 2: no band
        """
        return self.response_and_waiting(levels, servers, factor, days=days)[0]

    def response_and_waiting(
        self, levels: Sequence[float], servers: int, factor: float = 1.0, *, days: int | None = None
    ) -> tuple[tuple[Percentile, ...], tuple[Percentile, ...]]:
        """Return percentiles of response times, as `percentiles`, and of waiting times, which lack the demand."""
        rng, own = np.random.default_rng(1), self.response(servers, factor)
        requests = len(own[0])
        drawn = days_for(len(self.load.arrival_s)) if days is None else days
        rows = [_of_both(*own, levels)]
        for _ in range(drawn):  # one at a time: a long day is not held beside the others
            rows.append(_of_both(*self._served(servers, *self.load.another_day(factor, rng)), levels))
        first, second = (
            tuple(_with_band(level, at[0], at[1:], requests) for level, at in zip(levels, kind.T, strict=True))
            for kind in np.array(rows).transpose(1, 0, 2)
        )
        return first, second

    def least_servers(self, objective: Objective, factor: float = 1.0) -> int | None:
        """Return the fewest servers on which `factor` times the recorded load meets an objective; None: none do."""
        return _least(lambda servers: self._at(objective, servers, factor) <= objective.bound_s)

    def fewest(self, objective: Objective, factor: float = 1.0) -> Fewest:
        """Return the fewest servers that meet an objective with `factor` times the load, and that surely do."""
        point = self.least_servers(objective, factor)
        if point is None:
            return Fewest(None, None, None)
        surely = _least(lambda k: self._high(objective, k, factor) <= objective.bound_s, point, 64 * point)
        return Fewest(point, surely, self.percentiles([objective.level], point, factor)[0])

    def largest(self, objective: Objective, servers: int) -> Largest:
        """Return the largest load with which so many servers meet an objective."""
        point = _most(lambda factor: self._at(objective, servers, factor) <= objective.bound_s)
        if not point:
            return Largest(0.0, 0.0)
        return Largest(point, _most(lambda factor: self._high(objective, servers, factor) <= objective.bound_s, point))

    def _at(self, objective: Objective, servers: int, factor: float) -> float:
        return float(_quantiles(self.response(servers, factor)[0], [objective.level])[0])

    def _high(self, objective: Objective, servers: int, factor: float) -> float:
        """Return the upper end of the band, infinite where there is none: nothing is sure."""
        (here,) = self.percentiles([objective.level], servers, factor)
        return float(np.nan_to_num(here.high_s, nan=np.inf))

    def _served(self, servers: int, arrival_s: Floats, demand_s: Floats, classes: Ints | None) -> tuple[Floats, Floats]:
        kind = POLICIES[self.policy]
        served = serve(
            self.policy,
            arrival_s,
            demand_s,
            servers,
            priority=classes if kind.order == "class" else None,
            choice=np.random.default_rng(0).random(len(arrival_s)) if kind.order == "drawn" else None,
            quantum_s=self.quantum_s,
        )
        return served.departure_s - arrival_s, demand_s


def days_for(requests: int) -> int:
    """Return how many days are drawn from a log of so many requests.

    Examples
    --------
    >>> days_for(1_000), days_for(200_000), days_for(10_000_000)
    (30, 15, 4)
    """
    return int(np.clip(_MOST_DRAWN // max(requests, 1), _LEAST_DAYS, DAYS))


def _of_both(response_s: Floats, demand_s: Floats, levels: Sequence[float]) -> tuple[Floats, Floats]:
    """Return percentiles of response and of waiting times."""
    return _quantiles(response_s, levels), _quantiles(response_s - demand_s, levels)


def _quantiles(times_s: Floats, levels: Sequence[float]) -> Floats:
    if not len(times_s):
        return np.zeros(len(levels))
    return np.quantile(np.where(times_s < _ROUNDING_S, 0.0, times_s), levels, method="inverted_cdf")


def _with_band(level: float, value: float, drawn: Floats, requests: int) -> Percentile:
    """Return a percentile with its band; without one if nobody waits so long, or too few requests lie beyond."""
    known = drawn[drawn > 0]
    if value <= 0 or len(known) < max(2, len(drawn)) or requests * (1 - level) < TAIL:
        return Percentile(float(level), float(value), np.nan, np.nan)
    spread = float(np.std(np.log(known), ddof=1)) * 2.0**0.5
    reach = float(student.ppf((1 + CONFIDENCE) / 2, len(known) - 1)) * spread
    return Percentile(float(level), float(value), float(value * np.exp(-reach)), float(value * np.exp(reach)))


def _least(holds: Callable[[int], bool], first: int = 1, most: int = MOST_SERVERS) -> int | None:
    """Return the least number from `first` on for which a condition holds that goes on holding; None up to `most`."""
    low, high, most = first - 1, first, min(most, MOST_SERVERS)
    while not holds(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _most(holds: Callable[[float], bool], most: float = MOST) -> float:
    """Return the largest factor up to `most` for which a condition holds that stops holding; 0 if none is found."""
    low, high = 0.0, min(1.0, most)
    while high < most and holds(high):
        low, high = high, min(2 * high, most)
    if high == most and holds(high):
        return most
    while high - low > _FINE * high and high > 1 / 64:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
