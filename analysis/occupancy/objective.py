"""What a service-level objective on a percentile needs: servers for a load, and the load that servers carry."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from analysis.occupancy.load import MOST, DrawnDay, RecordedLoad
from analysis.occupancy.percentiles import CONFIDENCE, TAIL, Percentile
from analysis.statistics import student_quantile
from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.policies import POLICIES, PolicyName
from models.queues.serve import serve

DAYS = 30
"""Days that are drawn for a band."""
_LEAST_DAYS, _MOST_DRAWN = 4, 3_000_000
"""Of long logs fewer days are drawn, with the second of requests in all, but never fewer than the first: Student's t
makes the band of few days wider, and no band at all would make no number of servers sure."""
_CROWDS = 9
"""A day's percentiles hang on few crowds, so their spread is as uncertain as that of nine independent pieces. The
number was chosen on simulated days other than those that the documents count (`benchmarks/percentile_bands.py`)."""
_CROWDS_OF_LOADS = 7
"""The same of the largest load that a day carries: a quiet day seems to carry more and to know it better. The number
was chosen on simulated hours other than those that the documents count (`tests/helpers/slo_days.py`)."""
_ROUNDING_S = 1e-9
"""Shorter waiting is what rounding leaves of none."""
MOST_SERVERS = 4096
"""No more servers are tried."""
_STEP = 1.25
"""By so much at a time the load of a drawn day is looked for from that of the recorded one."""
_ENOUGH = 4.0
"""Whether servers surely carry a load does not hang on days on which they carry so many times as much."""
_FINE, _FINE_DRAWN = 0.005, 0.01
"""The largest load of the recorded day, and of a drawn one, is known to so much of itself."""


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
    """The fewest on which 97.5% of other days meet it."""
    at: Percentile | None
    """The percentile on `servers`."""


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest load, as a multiple of the recorded one, with which an objective is met; 0: none."""

    load: float
    surely: float
    """The largest with which 97.5% of other days meet it."""


@dataclass(frozen=True, slots=True, eq=False)
class ReplayStation:
    """Servers that a recorded load is served by: everything but how many there are."""

    load: RecordedLoad
    policy: PolicyName
    quantum_s: float = 0.1
    stretches_s: tuple[tuple[float, float], ...] = ()
    """From when to when the load has each of several days; none: it is one day."""

    def faster(self, speed: float) -> "ReplayStation":
        """Return what serves the same load by servers of another speed."""
        return replace(self, load=replace(self.load, demand_s=self.load.demand_s / speed))

    def response(self, servers: int, factor: float = 1.0) -> tuple[Floats, Floats]:
        """Return response times and demands of `factor` times the load on so many servers, in order of arrival."""
        return self._served(servers, *self.load.scaled(factor))

    def percentiles(
        self, levels: Sequence[float], servers: int, factor: float = 1.0, *, days: int | None = None
    ) -> tuple[Percentile, ...]:
        """Return percentiles of response times on so many servers, with bands for another day.

        Other days are drawn from the recorded one (`RecordedLoad.another_day`) and served. The band holds another day's
        percentile: it has the error of the recorded day and that of the other, on the logarithm, by Student's t of at
        most eight degrees of freedom.

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
        drawn = days_for(len(self.load.arrival_s)) if days is None else days
        scale = _Scale.of(own[0] - own[1])
        rows = [_of_both(*own, levels, scale)]
        for _ in range(drawn):  # one at a time: a long day is not held beside the others
            rows.append(_of_both(*self._served(servers, *self.load.another_day(factor, rng)), levels, scale))
        requests, table = len(own[0]), np.array(rows)
        return (
            tuple(_banded(level, at, requests, 0.0) for level, at in zip(levels, table[:, 0].T, strict=True)),
            tuple(_banded(level, at, requests, scale.usual_s) for level, at in zip(levels, table[:, 1].T, strict=True)),
        )

    def by_class(
        self, levels: Sequence[float], servers: int, code: Ints, *, days: int | None = None
    ) -> list[tuple[Percentile, ...]]:
        """Return percentiles of the response times of each class of requests, as `percentiles`.

        All are served together in the drawn days, so that the wait of a class is that among the others.

        Parameters
        ----------
        levels : 0..1
        servers : k >= 1
        code : (n,) class of each request, from 0, in order of arrival
        days : as of `percentiles`
        """
        rng, size = np.random.default_rng(1), np.bincount(code)
        drawn = days_for(len(code)) if days is None else days
        table = np.empty((1 + drawn, len(size), len(levels)))
        table[0] = _by_class(self.response(servers)[0], code, len(size), levels)
        for day in range(1, 1 + drawn):
            rows, at_s = self.load.rows_of_another_day(1.0, rng)
            classes = None if self.load.priority is None else self.load.priority[rows]
            response_s, _ = self._served(servers, at_s, self.load.demand_s[rows], classes)
            table[day] = _by_class(response_s, code[rows], len(size), levels)
        return [
            tuple(_banded(level, table[:, at, place], count, 0.0) for place, level in enumerate(levels))
            for at, count in enumerate(size.tolist())
        ]

    def least_servers(self, objective: Objective, factor: float = 1.0) -> int | None:
        """Return the fewest servers on which `factor` times the recorded load meets an objective; None: none do."""
        return _least(lambda servers: self._at(objective, servers, factor) <= objective.bound_s)

    def fewest(self, objective: Objective, factor: float = 1.0) -> Fewest:
        """Return the fewest servers that meet an objective with `factor` times the load, and that surely do."""
        point = self.least_servers(objective, factor)
        if point is None:
            return Fewest(None, None, None)
        most = min(_ENOUGH * factor, MOST)
        surely = _least(lambda k: self._surely_carry(objective, k, factor, most), point, 64 * point)
        return Fewest(point, surely, self.percentiles([objective.level], point, factor)[0])

    def largest(self, objective: Objective, servers: int) -> Largest:
        """Return the largest load with which so many servers meet an objective, and with which they surely do.

        Each drawn day has a largest load of its own, found as that of the recorded day, and a larger one has all
        requests of a smaller one. So the bracket is one of loads, on the logarithm, and nothing is chosen because its
        bracket came out narrow; near full servers loads are also less skewed than the percentiles that they lead to.
        Where demands alone nearly miss the objective, the bracket of the percentile tells that of loads does not.
        """
        point, within = self._of_days(objective, servers, MOST)
        return Largest(point, _most(partial(self._surely_carries, objective, servers), within))

    def _surely_carry(self, objective: Objective, servers: int, factor: float, most: float) -> bool:
        """Return whether other days' largest loads, and the bracket of the percentile, allow a load."""
        _, within = self._of_days(objective, servers, most)
        return within >= factor and self._surely_carries(objective, servers, factor)

    def _of_days(self, objective: Objective, servers: int, most: float) -> tuple[float, float]:
        """Return the largest load that the recorded day carries, and the one that 97.5% of other days do; 0: none."""
        point = _most(lambda factor: self._at(objective, servers, factor) <= objective.bound_s, most)
        drawn = np.array(list(self._drawn_loads(objective, servers, point, most)) if point else [])
        if len(drawn) < 2 or not drawn.all():
            return point, 0.0
        reach = self._reach(np.log(drawn), _CROWDS_OF_LOADS)
        return point, min(point, float(np.exp(np.log(drawn).mean()))) * float(np.exp(-reach))

    def _reach(self, drawn: Floats, crowds: int) -> float:
        """Return by how much another day may differ from what the recorded ones have together, given drawn days."""
        wide = float(student_quantile((1 + CONFIDENCE) / 2, min(len(drawn), crowds) - 1))
        recorded_too = float(np.sqrt(1 + 1 / max(len(self.stretches_s), 1)))
        return wide * float(np.std(drawn, ddof=1)) * recorded_too

    def _drawn_loads(self, objective: Objective, servers: int, point: float, most: float) -> Iterator[float]:
        """Yield the largest load that each drawn day carries, up to the first that carries none."""
        for day in self._days():
            load = _near(partial(self._carries, objective, servers, day), point, most)
            yield load
            if not load:
                return

    def _days(self) -> Iterator[DrawnDay]:
        """Yield other days, of the several that the load has in turn."""
        rng = np.random.default_rng(1)
        spans = self.stretches_s or ((-np.inf, np.inf),)
        for at in range(days_for(len(self.load.arrival_s))):
            yield DrawnDay(self.load, rng, *spans[at % len(spans)])

    def _surely_carries(self, objective: Objective, servers: int, factor: float) -> bool:
        """Return whether the bracket of a percentile meets an objective: demands alone may be what misses it."""
        if factor * len(self.load.arrival_s) * (1 - objective.level) < TAIL:
            return False
        drawn = [_quantiles(self._served(servers, *day.scaled(factor))[0], [objective.level]) for day in self._days()]
        reach = self._reach(np.log(np.maximum(np.concatenate(drawn), _ROUNDING_S)), _CROWDS)
        return self._at(objective, servers, factor) * float(np.exp(reach)) <= objective.bound_s

    def _carries(self, objective: Objective, servers: int, day: DrawnDay, factor: float) -> bool:
        response_s, _ = self._served(servers, *day.scaled(factor))
        return bool(_quantiles(response_s, [objective.level])[0] <= objective.bound_s)

    def _at(self, objective: Objective, servers: int, factor: float) -> float:
        return float(_quantiles(self.response(servers, factor)[0], [objective.level])[0])

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


@dataclass(frozen=True, slots=True)
class _Scale:
    """On which waiting times are compared: in proportion if they are long, by their difference if they are short."""

    usual_s: float
    """Mean waiting time."""
    per_share_s: float
    """By how much waiting grows with the share of the requests, just above those that do not wait."""

    @classmethod
    def of(cls, waiting_s: Floats) -> "_Scale":
        """Return the scale of a recorded day's waiting."""
        waited = waiting_s[waiting_s > _ROUNDING_S]
        if not len(waited):
            return cls(0.0, 0.0)
        tenth = float(np.quantile(waited, 0.1, method="inverted_cdf"))
        return cls(float(waited.sum()) / len(waiting_s), tenth * len(waiting_s) / (0.1 * len(waited)))

    def percentiles(self, waiting_s: Floats, levels: Sequence[float]) -> Floats:
        """Return percentiles of a day; where that request does not wait, how far below none it is, as a negative time.

        So a day in which 49% wait and one in which 30% do differ in their medians, although both are 0.
        """
        at = _quantiles(waiting_s, levels)
        free = float(np.count_nonzero(waiting_s <= _ROUNDING_S)) / max(len(waiting_s), 1)
        return np.where(at > 0, at, (np.asarray(levels) - free) * self.per_share_s)


def _of_both(response_s: Floats, demand_s: Floats, levels: Sequence[float], scale: _Scale) -> tuple[Floats, Floats]:
    """Return percentiles of response and of waiting times."""
    return _quantiles(response_s, levels), scale.percentiles(response_s - demand_s, levels)


def _by_class(response_s: Floats, code: Ints, classes: int, levels: Sequence[float]) -> Floats:
    """Return percentiles of each class, (classes, levels)."""
    return np.stack([_quantiles(response_s[code == at], levels) for at in range(classes)])


def _quantiles(times_s: Floats, levels: Sequence[float]) -> Floats:
    if not len(times_s):
        return np.zeros(len(levels))
    return np.quantile(np.where(times_s < _ROUNDING_S, 0.0, times_s), levels, method="inverted_cdf")


def _banded(level: float, days_s: Floats, requests: int, usual_s: float) -> Percentile:
    """Return a percentile of the recorded day, the first, with the band of another day.

    Parameters
    ----------
    level : 0..1
    days_s : (1 + drawn,) the percentile in each day
    requests : in the recorded day; without ten beyond the percentile there is no band
    usual_s : shorter times differ by their difference, longer ones in proportion; 0: all in proportion
    """
    value, drawn = max(0.0, float(days_s[0])), days_s[1:]  # in this order -0.0 becomes 0.0
    unknown = Percentile(float(level), value, np.nan, np.nan)
    if len(drawn) < 2 or requests * (1 - level) < TAIL or not (usual_s > 0 or (days_s > 0).all()):
        return unknown
    places = np.arcsinh(days_s / usual_s) if usual_s > 0 else np.log(days_s)
    wide = float(student_quantile((1 + CONFIDENCE) / 2, min(len(drawn), _CROWDS) - 1))
    reach = wide * float(np.std(places[1:], ddof=1)) * 2.0**0.5
    ends = places[0] + reach * np.array([-1.0, 1.0])
    low, high = (np.sinh(ends) * usual_s if usual_s > 0 else np.exp(ends)).tolist()
    return Percentile(float(level), value, max(0.0, low), max(0.0, high))


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


def _near(holds: Callable[[float], bool], point: float, most: float) -> float:
    """Return the largest factor up to `most` for which a condition holds that stops holding; 0 if none is found."""
    low = high = point
    if holds(point):
        while high < most:
            low, high = high, min(high * _STEP, most)
            if not holds(high):
                break
        else:
            return most
    else:
        while low > 1 / 64:
            low, high = low / _STEP, low
            if holds(low):
                break
        else:
            return 0.0
    while high - low > _FINE_DRAWN * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
