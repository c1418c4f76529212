"""What an objective on a percentile needs: how many servers, how large a load."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from analysis.occupancy.hours import Hour, HourNeeds, least_requests, needs_by_hour
from analysis.occupancy.load import recorded
from analysis.occupancy.logs.log import Cleaned, in_seconds
from analysis.occupancy.objective import Fewest, Largest, Objective, ReplayStation
from analysis.occupancy.percentiles import Percentile, percentiles
from analysis.occupancy.replay import explained
from models.arrays import Floats
from models.queues.policies import POLICIES, PolicyName
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import plural
from scenarios.views.section import Block, Says, Table, table

_SAME = 0.02
"""A policy whose replay on the log's own servers misses its percentile by more does not explain it."""
_TWO_BRACKETS = "brackets by policy are of days that are served again, those of the requests above of blocks of time"


@dataclass(frozen=True, slots=True)
class PolicyNeeds:
    """What an objective needs under one policy that fits the log."""

    policy: PolicyName
    at_load: Percentile
    """The percentile on the log's own servers, with the load that is asked about."""
    fewest: Fewest
    largest: Largest


@dataclass(frozen=True, slots=True)
class SloAnswer:
    """Whether an objective is met, and what it would take."""

    objective: Objective
    servers: int
    load: float
    """Of the recorded load."""
    now: Percentile
    """Of the log."""
    needs: tuple[PolicyNeeds, ...]
    """One policy if it is known, else every policy that fits."""
    note: str = ""
    hours: tuple[HourNeeds, ...] = ()
    """If they were asked about."""
    clock: str = ""
    """The zone whose hours they are; empty: hours count from the log's own 0."""

    @property
    def met(self) -> bool:
        """Whether the log itself meets the objective."""
        return bool(self.now.value_s <= self.objective.bound_s)

    def payload(self) -> Payload:
        """Return what ``--json`` has."""
        rows = [
            {
                "policy": row.policy,
                "at_load": asdict(row.at_load),
                "fewest_servers": row.fewest.servers,
                "fewest_servers_surely": row.fewest.surely,
                "largest_load": row.largest.load,
                "largest_load_surely": row.largest.surely,
            }
            for row in self.needs
        ]
        return {
            "objective": asdict(self.objective),
            "load": self.load,
            "now": asdict(self.now),
            "met": self.met,
            "needs": rows,
            "note": self.note,
            **({"hours": [asdict(row) for row in self.hours], "clock": self.clock} if self.hours else {}),
        }

    def by_hour(self) -> pd.DataFrame:
        """Return what each hour needs, a row each; no rows if that was not asked."""
        return pd.DataFrame([asdict(row) for row in self.hours], columns=list(HourNeeds.__slots__))

    def blocks(self) -> Iterator[Block]:
        """Yield what people read."""
        verdict = "met" if self.met else "not met"
        yield Says(f"objective {self.objective.name}: {verdict}, {self.now.name} is {in_seconds(self.now.value_s)}")
        if self.needs:
            yield self._table()
        if self.note:
            yield Says(f"note: {self.note}")
        if self.hours:
            yield from self._hours()

    def _hours(self) -> Iterator[Block]:
        """Yield what each hour needs, and of which the log is too short to tell."""
        headings = ("hour", "times", "requests", self.now.name, "servers", "surely", "largest load", "surely")
        whose = f"in {self.clock}" if self.clock else "from the log's own 0"
        caption = f"what the objective needs by hour, {whose}" + (f", load × {self.load:g}" if self.load != 1 else "")
        yield table(headings, [_hour_cells(row) for row in self.hours], caption)
        if len(self.needs) > 1:
            yield Says("note: each hour under the worst of these policies")
        if sum(row.known for row in self.hours) > 1:
            yield Says("note: each hour is by itself: the queue that a busier hour before it leaves comes on top")
        short = sum(not row.known for row in self.hours)
        if short:
            least = least_requests(self.objective)
            yield Says(
                f"note: {short} of {len(self.hours)} hours have fewer than {least:,} requests, too few for "
                f"{self.now.name}: a longer log tells"
            )
        once = sum(row.times == 1 for row in self.hours if row.known)
        if once:
            how = "how days or weeks differ in it" if once == 1 else "how days or weeks differ in them"
            yield Says(f"note: seen once: {plural(once, 'hour')}; {how} is not in the log")

    def _table(self) -> Table:
        times = "this load" if self.load == 1 else f"load × {self.load:g}"
        headings = (
            "policy",
            f"{self.now.name} on {self.servers}",
            f"servers for {times}",
            "surely",
            "largest load",
            "surely",
        )
        return table(headings, [_cells(row) for row in self.needs], "what the objective needs")


def _cells(row: PolicyNeeds) -> tuple[str, ...]:
    servers = (_count(row.fewest.servers), _count(row.fewest.surely))
    loads = tuple(_factor(value) for value in (row.largest.load, row.largest.surely))
    return row.policy, str(row.at_load), *servers, *loads


def _hour_cells(row: HourNeeds) -> tuple[str, ...]:
    if not row.known:
        return row.hour, f"{row.times:,}", f"{row.requests:,}", *["cannot tell"] * 5
    servers = (_count(row.fewest), _count(row.surely))
    loads = (_factor(row.largest_load), _factor(row.largest_load_surely))
    return row.hour, f"{row.times:,}", f"{row.requests:,}", in_seconds(row.percentile_s), *servers, *loads


def _count(servers: int | None) -> str:
    return "no number" if servers is None else f"{servers:,}"


def _factor(load: float) -> str:
    return f"× {load:.3g}" if load else "none"


def station_of(log: Cleaned, policy: PolicyName, servers: int, demand_s: Floats, quantum_s: float) -> ReplayStation:
    """Return what serves a log's requests again; those without a departure count until the end of the log."""
    response_s = log.departure_s - log.arrival_s
    load = recorded(log.arrival_s, np.maximum(demand_s, 0.0), response_s, log.priority)
    return ReplayStation(load, policy, quantum_s)


def slo_answer(
    log: Cleaned,
    objective: Objective,
    servers: int,
    *,
    load: float,
    station: ReplayStation | None,
    quantum_s: float,
    stated: PolicyName | None = None,
    calendar: tuple[Hour, ...] = (),
    clock: str = "",
) -> SloAnswer:
    """Return what an objective needs, under the policy if it is known, else under every policy that fits the log.

    Parameters
    ----------
    log : requests with pairs
    objective : a percentile and its bound
    servers : that the log was made with
    load : the load that is asked about, as a multiple of the recorded one
    station : what the requests are served by, if the policy is known
    quantum_s : slice of round robin
    stated : the policy that somebody said, whether or not requests can be served by it again
    calendar : the hours that are asked about, too
    clock : the zone whose hours they are; empty: none
    """
    (now,) = percentiles(log.departure_s - log.arrival_s, log.arrival_s, [objective.level])
    stations = [station] if station is not None else list(_fitting(log, servers, objective, now.value_s, quantum_s))
    needs = tuple(
        PolicyNeeds(
            each.policy,
            each.percentiles([objective.level], servers, load)[0],
            each.fewest(objective, load),
            each.largest(objective, servers),
        )
        for each in stations
    )
    note = ""
    if station is None:
        names = ", ".join(each.policy for each in stations) or "none"
        unknown = "no policy known" if stated is None else f"no replay under {stated}"
        note = f"{unknown}: these fit the log: {names}; the truth may lie between them"
        note += ", and --policy settles it" if stated is None else ""
        if stations:
            note += f"; {_TWO_BRACKETS}"
    by_hour: tuple[HourNeeds, ...] = ()
    if calendar and stations:
        order = np.argsort(log.arrival_s, kind="stable")
        response_s = (log.departure_s - log.arrival_s)[order]
        by_hour = tuple(needs_by_hour(calendar, stations, objective, servers, response_s, factor=load))
    return SloAnswer(objective, servers, load, now, needs, note, by_hour, clock if by_hour else "")


def _fitting(
    log: Cleaned, servers: int, objective: Objective, now_s: float, quantum_s: float
) -> Iterator[ReplayStation]:
    """Yield the policies that do not contradict a log and make its percentile again on its own servers."""
    for policy, kind in POLICIES.items():
        if (kind.hidden and servers > 1) or (kind.order == "class" and log.priority is None) or kind.order == "drawn":
            continue
        if kind.sliced:
            continue  # with another slice it is another policy; short ones are processor sharing
        trial = explained(policy, log.arrival_s, log.departure_s, servers, priority=log.priority, quantum_s=quantum_s)
        if trial.reason:
            continue
        station = station_of(log, policy, servers, trial.reconstruction.demand_s, quantum_s)
        (again,) = station.percentiles([objective.level], servers, days=0)
        if abs(again.value_s - now_s) <= _SAME * now_s:
            yield station
