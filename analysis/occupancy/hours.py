"""What an objective needs in each hour of the day, or of the week: the hours of a log, each replayed by itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.occupancy.load import recorded
from analysis.occupancy.logs.clocks import BY_UTC, LogClock
from analysis.occupancy.objective import Objective, ReplayStation
from analysis.occupancy.percentiles import TAIL
from models.arrays import Floats, Ints
from models.errors import InputError

HOUR_S = 3600.0
_WEEKLY_S = 14 * 86_400.0
"""Shorter logs have less than two of each hour of the week, and are divided by hours of the day."""


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of the day or of the week: when it was in a log."""

    name: str
    """``09``, or ``Mon 09``."""
    start_s: tuple[float, ...]
    end_s: tuple[float, ...]
    """As far as the log covers them."""

    @property
    def length_s(self) -> float:
        """How much of the log it is."""
        return float(np.sum(self.end_s) - np.sum(self.start_s))

    def days(self) -> tuple[tuple[float, float], ...]:
        """Return from when to when each of its days lies if they follow each other; one half missing is none.

        Examples
        --------
        >>> Hour("09", (0.0, 86_400.0, 172_800.0), (3600.0, 90_000.0, 172_900.0)).days()
        ((0.0, 3600.0), (3600.0, 7200.0))
        """
        length_s = np.subtract(self.end_s, self.start_s)
        end_s = np.cumsum(length_s)
        whole = np.flatnonzero(length_s > length_s.max(initial=0.0) / 2)
        return tuple((float(end_s[at] - length_s[at]), float(end_s[at])) for at in whole)

    def joined(self, time_s: Floats) -> tuple[Ints, Floats]:
        """Return which times lie in the hour, and where they lie if its stretches follow each other.

        Parameters
        ----------
        time_s : (n,) array, non-decreasing, seconds
        """
        rows, times, before = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], 0.0
        for start, end in zip(self.start_s, self.end_s, strict=True):
            inside = np.arange(*np.searchsorted(time_s, [start, end]))
            rows.append(inside)
            times.append(time_s[inside] - start + before)
            before += end - start
        return np.concatenate(rows), np.concatenate(times)


@dataclass(frozen=True, slots=True)
class HourNeeds:
    """What an objective needs in one hour, under the worst of the policies that fit the log."""

    hour: str
    times: int
    """How often the log has the hour."""
    length_s: float
    requests: int
    percentile_s: float
    """Of the log's own responses to the requests that arrived in the hour; NaN: too few to tell."""
    fewest: int | None
    """Servers; None: no number, or unknown."""
    surely: int | None
    largest_load: float
    """As a multiple of the recorded load of that hour; NaN: unknown."""
    largest_load_surely: float

    @property
    def known(self) -> bool:
        """Whether enough requests arrived in the hour to tell."""
        return bool(np.isfinite(self.percentile_s))


def hours(start_s: float, end_s: float, origin_s: float = 0.0, clock: LogClock = BY_UTC) -> tuple[Hour, ...]:
    """Return the hours of a log: of the week if it has two weeks and a calendar, else of the day.

    Parameters
    ----------
    start_s, end_s : of the log, seconds
    origin_s : what these count from, in seconds since 1970; 0: there is no calendar, hours count from 0
    clock : by which hours are told

    Examples
    --------
    >>> [(hour.name, hour.length_s) for hour in hours(0.0, 5400.0, 1_718_010_000.0)]
    [('09', 3600.0), ('10', 1800.0)]
    >>> hours(0.0, 15 * 86_400.0, 1_718_010_000.0, LogClock("Europe/Berlin"))[11].name
    'Mon 11'
    """
    past_s = float(clock.local_s(np.array([origin_s + start_s]))[0]) % HOUR_S
    edges = np.append(np.arange(start_s - past_s, end_s, HOUR_S), end_s)
    edges[0] = start_s
    middles = pd.to_datetime(clock.local_s(origin_s + (edges[:-1] + edges[1:]) / 2), unit="s")
    weekly = bool(origin_s) and end_s - start_s >= _WEEKLY_S
    names = middles.strftime("%a %H" if weekly else "%H").to_numpy()
    rank = middles.hour.to_numpy() + (24 * middles.day_of_week.to_numpy() if weekly else 0)
    alike = [np.flatnonzero(rank == at) for at in np.unique(rank)]
    return tuple(Hour(str(names[at[0]]), tuple(edges[at].tolist()), tuple(edges[at + 1].tolist())) for at in alike)


def needs_by_hour(
    calendar: Sequence[Hour],
    stations: Sequence[ReplayStation],
    objective: Objective,
    servers: int,
    response_s: Floats,
    *,
    factor: float = 1.0,
) -> Iterator[HourNeeds]:
    """Yield what an objective needs in each hour, as if that hour lasted.

    The stretches of an hour are served one after the other, so a queue that is left at the end of one meets the next:
    servers that cannot keep up with an hour fail, and what the hour before left is not in it.

    Parameters
    ----------
    calendar : the hours of the log
    stations : the policies that fit, each with the log's load
    objective : a percentile and its bound
    servers : k >= 1 of the log
    response_s : (n,) array, seconds, in order of arrival
    factor : of the load, for which the fewest servers are asked

    Raises
    ------
    InputError
        If there is no station.
    """
    if not stations:
        raise InputError("no policy fits the log, so no hour can be replayed")
    least = least_requests(objective)
    for hour in calendar:
        rows, arrival_s = hour.joined(stations[0].load.arrival_s)
        about = (hour.name, len(hour.start_s), hour.length_s, len(rows))
        if len(rows) < least:
            yield HourNeeds(*about, np.nan, None, None, np.nan, np.nan)
            continue
        days = hour.days()
        alone = [_alone(station, rows, arrival_s, response_s[rows], days) for station in stations]
        fewest = [station.fewest(objective, factor) for station in alone]
        largest = [station.largest(objective, servers) for station in alone]
        yield HourNeeds(
            *about,
            float(np.nanquantile(response_s[rows], objective.level, method="inverted_cdf")),
            _worst([answer.servers for answer in fewest]),
            _worst([answer.surely for answer in fewest]),
            min(answer.load for answer in largest),
            min(answer.surely for answer in largest),
        )


def least_requests(objective: Objective) -> int:
    """Return how many requests an hour needs so that ten lie beyond the percentile.

    Examples
    --------
    >>> least_requests(Objective(0.99, 0.3))
    1000
    """
    return int(np.ceil(TAIL / (1 - objective.level) - 1e-6))


def _alone(
    station: ReplayStation, rows: Ints, arrival_s: Floats, response_s: Floats, days: tuple[tuple[float, float], ...]
) -> ReplayStation:
    classes = None if station.load.priority is None else station.load.priority[rows]
    load = recorded(arrival_s, station.load.demand_s[rows], response_s, classes)
    return ReplayStation(load, station.policy, station.quantum_s, days)


def _worst(servers: Sequence[int | None]) -> int | None:
    return None if None in servers else max(number for number in servers if number is not None)
