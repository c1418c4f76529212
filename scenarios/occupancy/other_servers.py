"""What other numbers of servers, or servers of another speed, would have made of a request log."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from analysis.occupancy.bounds import Bounds, faster, others
from analysis.occupancy.catalogue import divides_queueing, never_more_work
from analysis.occupancy.curve import Curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.log import Cleaned
from analysis.occupancy.objective import ReplayStation
from analysis.occupancy.percentiles import LEVELS, Percentile
from analysis.occupancy.replay import Replay
from scenarios.occupancy.discipline import Discipline, replayed
from scenarios.views.numbers import number

NOTHING = "says nothing"
"""What stands in place of bounds that exclude nothing."""
_HUGE = 100.0
"""An interval for fewer servers that begins at today's queueing and ends at so many response times says nothing."""
SHOWN = "p99"
"""Percentile that people see of other servers."""


@dataclass(frozen=True, slots=True)
class OtherServers:
    """What another number of servers would have made of a log."""

    bounds: Bounds
    bounds_say_nothing: bool
    """Whether the interval excludes nothing that was not plain before."""
    change_says_nothing: bool
    """The same of the bound on the change."""
    replay: Replay | None
    """Under the policy, where there is one."""
    percentiles: tuple[Percentile, ...] = ()
    """Of the response times of the replay."""

    def within(self) -> str:
        """Return the interval that queueing lies in, as people read it."""
        return _within(self.bounds.queueing_low_s, self.bounds.queueing_high_s, self.bounds_say_nothing)

    def change(self) -> str:
        """Return the bound on the change; without a sign where nobody waits that more servers could help."""
        bound_s, more = self.bounds.change_s_paper_bound, self.bounds.to >= self.bounds.servers
        if self.change_says_nothing:
            return NOTHING
        if bound_s == 0 and more:
            return _number(bound_s)
        return f"{'≤' if more else '≥'} {'+' if bound_s > 0 else ''}{_number(bound_s)}"

    def payload(self) -> dict[str, object]:
        """Return the row as ``--json`` has it."""
        empty = {"bounds_say_nothing": self.bounds_say_nothing, "change_says_nothing": self.change_says_nothing}
        return {**self.bounds.row(), **empty, **_replay_payload(self.replay, self.percentiles)}


@dataclass(frozen=True, slots=True)
class OtherSpeed:
    """What as many servers of another speed would have made of a log; slower ones have no bounds."""

    speed: float
    queueing_s_low: float
    queueing_s_high: float
    bounds_say_nothing: bool
    note: str
    replay: Replay | None
    percentiles: tuple[Percentile, ...] = ()
    """As of `OtherServers`."""

    def within(self) -> str:
        """Return the interval that queueing lies in, as people read it."""
        return _within(self.queueing_s_low, self.queueing_s_high, self.bounds_say_nothing)

    def payload(self) -> dict[str, object]:
        """Return the row as ``--json`` has it."""
        names = ("speed", "queueing_s_low", "queueing_s_high", "bounds_say_nothing", "note")
        return {**{name: getattr(self, name) for name in names}, **_replay_payload(self.replay, self.percentiles)}


def capacity(
    log: Cleaned, present: Curve, discipline: Discipline, to: Iterable[int], station: ReplayStation | None = None
) -> tuple[OtherServers, ...]:
    """Return bounds on queueing, and the replay where there is a policy, for each number of servers.

    Parameters
    ----------
    log, present, discipline : requests, how many were there, and how they were served
    to : numbers of servers
    station : what serves the log again, for percentiles; None: there are none
    """
    matched = (log.arrival_s, log.departure_s) if log.paired else None
    now = law(present, discipline.servers)
    return tuple(
        OtherServers(
            row,
            *_empty(row, now.queueing_time_s, now.response_time_s),
            _replay(log, discipline, row.to, 1.0),
            () if station is None else station.percentiles(LEVELS, row.to),
        )
        for row in others(present, discipline.servers, to, matched, per_job=_per_job(discipline))
    )


def speeds(
    log: Cleaned,
    present: Curve,
    discipline: Discipline,
    factors: Iterable[float],
    station: ReplayStation | None = None,
) -> tuple[OtherSpeed, ...]:
    """Return bounds on queueing, and the replay where there is a policy, with as many servers of each other speed.

    Parameters
    ----------
    log, present, discipline, station : as of `capacity`
    factors : speeds, in that of the log's servers
    """
    divides = discipline.policy is not None and divides_queueing(discipline.policy, discipline.servers)
    rows = []
    for factor in factors:
        if 0 < factor < 1:
            note = "bounds are about servers that are not slower"
            within = (math.nan, math.nan, True, note)
        else:
            row = faster(present, discipline.servers, factor, per_job=_per_job(discipline), divides=divides)
            empty = factor > 1 and row.queueing_s > 0 and row.queueing_high_s >= row.queueing_s * (1 - 1e-9)
            within = (row.queueing_low_s, row.queueing_high_s, empty, row.note)
        again = () if station is None else station.faster(factor).percentiles(LEVELS, discipline.servers)
        rows.append(OtherSpeed(factor, *within, _replay(log, discipline, discipline.servers, factor), again))
    return tuple(rows)


def _empty(row: Bounds, queueing_s: float, response_s: float) -> tuple[bool, bool]:
    """Return whether an interval, and a change, exclude nothing: more servers do not add queueing, fewer take none."""
    off_s = 1e-9 * response_s
    waits, unmoved = queueing_s > 0, abs(row.change_s_paper_bound) <= off_s
    if row.to > row.servers:
        return waits and row.queueing_high_s >= queueing_s - off_s, waits and unmoved
    fewer = row.to < row.servers
    loose = row.queueing_low_s <= queueing_s + off_s and row.queueing_high_s >= _HUGE * response_s
    return fewer and loose, fewer and unmoved


def _per_job(discipline: Discipline) -> bool:
    """Return whether other servers surely have no more work left."""
    return discipline.policy is not None and never_more_work(discipline.policy)


def _replay(log: Cleaned, discipline: Discipline, to: int, speed: float) -> Replay | None:
    return None if discipline.policy is None else replayed(log, discipline, to, speed)


def _replay_payload(again: Replay | None, within: Sequence[Percentile]) -> dict[str, object]:
    times = dict.fromkeys(("replay_s", "replay_low", "replay_high"), math.nan)
    if again is not None:
        times = {"replay_s": again.queueing_s, "replay_low": again.low_s, "replay_high": again.high_s}
    return {**times, "response_percentiles": [asdict(at) for at in within]}


def replay_cells(again: Replay | None, within: Sequence[Percentile]) -> tuple[str, ...]:
    """Return what people read of a replay and of the percentiles of its response times; nothing without one."""
    if again is None:
        return ()
    shown = next((str(at) for at in within if at.name == SHOWN), "–")
    return _number(again.queueing_s), f"{_number(again.low_s)} to {_number(again.high_s)}", shown


def _within(low_s: float, high_s: float, says_nothing: bool) -> str:
    if math.isnan(low_s):
        return "unknown"
    return NOTHING if says_nothing else f"{_number(low_s)} to {_number(high_s)}"


def _number(seconds: float) -> str:
    if abs(seconds) >= 1e7:
        return number(seconds, ".3g")
    return f"{seconds:,.0f}" if abs(seconds) >= 1000 else f"{round(seconds, 1) + 0.0:.1f}"
