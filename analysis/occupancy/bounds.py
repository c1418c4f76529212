"""The Capacity Adjustment Laws and what sharpens them: bounds on queueing with another number or speed of servers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.occupancy.curve import Curve
from analysis.occupancy.extremes import Periods, busiest, busy_periods, least_queueing, most_backlog, most_queueing
from analysis.occupancy.law import area
from models.arrays import Floats
from models.errors import InputError

NAN = float("nan")
COLUMNS = (
    *("servers", "queueing_s_low", "queueing_s_high", "change_s_paper_bound"),
    *("b0", "b1", "b2", "b3", "pairs", "tightness", "note"),
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How queueing time changes at least with other servers, and the interval that it lies in (docs/laws.md).

    `b0` to `b3` are seconds by which aggregate queueing falls at least when servers are added or become faster, each at
    least the one before; when servers are taken away, `b0` and `pairs` are seconds by which it grows at least. NaN says
    that a bound does not apply.
    """

    servers: int
    to: int
    queueing_s: float
    """Q_k, seen with `servers`."""
    b0: float
    """The paper's, from monotonic completions alone."""
    queueing_low_s: float
    queueing_high_s: float
    b1: float = NAN
    """And the work of a busy period stays the same."""
    b2: float = NAN
    """And departures cannot be undone."""
    b3: float = NAN
    """And never more work is left, which `expansion` is told by `per_job`."""
    pairs: float = NAN
    """From matched pairs of arrival and departure."""
    tightness: float = 1.0
    """The true change is at most so many times `b0`."""
    note: str = ""
    """What was left out of the sharper bounds, and why."""

    @property
    def change_s_paper_bound(self) -> float:
        """The paper's bound with the sign of its table 2: negative when queueing falls."""
        return -self.b0 if self.to >= self.servers else self.b0

    def row(self) -> dict[str, float | str]:
        """Return what a table says of it, by column."""
        change_s, within = self.change_s_paper_bound, (self.queueing_low_s, self.queueing_high_s)
        chain = (self.b0, self.b1, self.b2, self.b3, self.pairs)
        return dict(zip(COLUMNS, (self.to, *within, change_s, *chain, self.tightness, self.note), strict=True))


def expansion(curve: Curve, servers: int, to: int, *, speed: float = 1.0, per_job: bool = False) -> Bounds:
    """Return bounds on queueing with more servers (Kelly et al. 2008, result 2, and docs/laws.md, B1 to B3).

    They hold over the curve's time if completions are monotonic: no fewer jobs are complete at any time with the other
    servers. B1 to B3 also need servers of one speed, open arrivals and fixed demands. A last busy period that does not
    end within the curve counts by B0. Servers of unequal speeds are out of scope beyond B0.

    Parameters
    ----------
    curve : occupancy with k servers
    servers : k >= 1
    to : k' >= k
    speed : of each of the k' servers relative to now, at least 1
    per_job : whether no job is ever further behind with the other servers, or at least never more work left: first
        come first served, static preemptive priority, preemptive last come first served, processor sharing,
        foreground-background, shortest remaining time; not round robin or else anything without preemption

    Raises
    ------
    ValueError
        If `to` is below `servers`, there is no server, or the speed is below 1 or not finite.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> bounds = expansion(curve([0.0, 0.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0]), servers=1, to=2)
    >>> bounds.queueing_s, bounds.b0, round(bounds.b2, 3), round(bounds.queueing_high_s, 3)
    (5.0, 3.0, 3.0, 2.0)
    """
    _check(1 <= servers <= to, f"an expansion needs 1 <= servers <= to, got {servers} and {to}")
    _check(1.0 <= speed < np.inf, f"speed must be at least 1 and finite, got {speed}")
    periods = busy_periods(curve)
    seen_s = float(np.sum(_above(curve, periods, servers)))
    most_s, note = _most(curve, periods, (servers, to, speed), per_job)
    b0, b1, b2, b3 = (max(seen_s - most, 0.0) for most in most_s)
    high_s = seen_s - (b3 if per_job else b2)
    low_s = high_s if (to, speed) == (servers, 1.0) else 0.0
    peak = int(curve.jobs.max(initial=0))
    tightness = max((peak - servers) / (to - servers), 1.0) if to > servers else 1.0
    return Bounds(servers, to, seen_s, b0, low_s, high_s, b1, b2, b3, tightness=tightness, note=note)


def faster(curve: Curve, servers: int, speed: float, *, per_job: bool = False, fcfs: bool = False) -> Bounds:
    """Return bounds on queueing when every server becomes faster (docs/laws.md, speed).

    As `expansion` to as many servers, under the same assumptions; the paper has no such bound, so `b0` is 0. First come
    first served is known to divide queueing at least by the speed; preemptive last come first served does not.

    Parameters
    ----------
    curve : occupancy
    servers : k >= 1
    speed : new over old, at least 1
    per_job : as in `expansion`
    fcfs : whether jobs are served first come first served without preemption

    Raises
    ------
    ValueError
        If there is no server, or the speed is below 1 or not finite.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> occupancy = curve([0.0, 0.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    >>> [round(faster(occupancy, servers=1, speed=2.0, fcfs=known).queueing_high_s, 3) for known in (False, True)]
    [4.0, 2.5]
    """
    bounds = expansion(curve, servers, servers, speed=speed, per_job=per_job)
    known_s = bounds.queueing_s / speed if fcfs else np.inf
    return replace(bounds, queueing_high_s=min(bounds.queueing_high_s, known_s))


def reduction(
    curve: Curve,
    servers: int,
    to: int,
    arrival_s: ArrayLike | None = None,
    departure_s: ArrayLike | None = None,
) -> Bounds:
    """Return bounds on queueing with fewer servers (Kelly et al. 2008, result 3, and docs/laws.md, reduction).

    The lower side needs completions to be monotonic, or matched pairs; the upper one holds for every work-conserving
    policy. Both sharper ones need servers of one speed, open arrivals and fixed demands. If jobs are present when the
    curve ends, they are about queueing up to then; if not, about all until the last job has left the fewer servers.

    Parameters
    ----------
    curve : occupancy with k servers
    servers : k
    to : k' <= k, at least 1
    arrival_s, departure_s : (n,) arrays, seconds; the pairs behind the curve, if they are known
    """
    _check(1 <= to <= servers, f"a reduction needs 1 <= to <= servers, got {to} and {servers}")
    seen_s = float(np.sum(_above(curve, busy_periods(curve), servers)))
    if to == servers:
        return Bounds(servers, to, seen_s, 0.0, seen_s, seen_s)
    b0 = area(curve, servers) - area(curve, to)
    pairs, note = _by_pairs(curve, (servers, to, seen_s), arrival_s, departure_s)
    low_s = seen_s + float(np.fmax(b0, pairs))
    high_s = max(most_backlog(curve, servers, to), low_s)
    tightness = (high_s - seen_s) / b0 if b0 > 0 else np.inf if high_s > seen_s else 1.0
    return Bounds(servers, to, seen_s, b0, low_s, high_s, pairs=pairs, tightness=float(tightness), note=note)


def capacity(
    curve: Curve,
    servers: int,
    to: Iterable[int],
    matched: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    per_job: bool = False,
) -> pd.DataFrame:
    """Return how queueing changes with other numbers of servers, one row each (Kelly et al. 2008, table 2).

    Parameters
    ----------
    curve : occupancy with k servers
    servers : k >= 1
    to : other numbers of servers
    matched : arrivals and departures of the same jobs, (n,) arrays in seconds, if they are known
    per_job : as in `expansion`

    Returns
    -------
    DataFrame
        servers, queueing_s_low, queueing_s_high (seconds, between which queueing lies), change_s_paper_bound (seconds;
        negative: it falls at least by so much), b0, b1, b2, b3, pairs (seconds, as in `Bounds`), tightness, note.
    """
    return pd.DataFrame(
        [bounds.row() for bounds in others(curve, servers, to, matched, per_job=per_job)], columns=COLUMNS
    )


def others(
    curve: Curve,
    servers: int,
    to: Iterable[int],
    matched: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    per_job: bool = False,
) -> Iterator[Bounds]:
    """Yield the bounds with each other number of servers; arguments as of `capacity`."""
    for other in to:
        if other >= servers:
            yield expansion(curve, servers, other, per_job=per_job)
        else:
            yield reduction(curve, servers, other, *(matched or ()))


def _check(holds: bool, fault: str) -> None:
    if not holds:
        raise InputError(fault)


def _above(curve: Curve, periods: Periods, level: int) -> Floats:
    above, piece = curve.jobs - level, np.diff(curve.time_s)
    piece *= np.maximum(above, 0, out=above)
    return periods.sums(piece)


def _most(
    curve: Curve, periods: Periods, change: tuple[int, int, float], per_job: bool
) -> tuple[tuple[float, float, float, float], str]:
    """Return the most queueing with the other servers by B0, B1, B2 and B3 (NaN unless per job), and what fell back."""
    servers, to, speed = change
    q0, allowed = _above(curve, periods, to), np.minimum(curve.jobs, servers) / speed
    piece = np.diff(curve.time_s)
    piece *= allowed
    q1 = np.minimum(busiest(curve, periods, to, periods.sums(piece) / to), q0)
    q1[len(q1) - (not periods.closed) :] = q0[len(q0) - (not periods.closed) :]
    exact = most_queueing(curve, periods, to, allowed)
    q2 = np.minimum(exact, q1)
    sharper = most_queueing(curve, periods, to, allowed, suffixes=True) if per_job else np.full(1, NAN)
    q3 = np.minimum(sharper, q2) if per_job else sharper
    notes = [] if periods.closed else ["the last busy period is open: B0"]
    for most, name, instead in ((exact, "B2", "B1"), (sharper, "B3", "B2")):
        large = np.count_nonzero(np.isinf(most)) - (not periods.closed)
        notes += [f"{large} busy periods too large for {name}: {instead}"] if large > 0 else []
    return (float(np.sum(q0)), float(np.sum(q1)), float(np.sum(q2)), float(np.sum(q3))), "; ".join(notes)


def _by_pairs(
    curve: Curve, change: tuple[int, int, float], arrival_s: ArrayLike | None, departure_s: ArrayLike | None
) -> tuple[float, str]:
    """Return how much more queueing the pairs prove; NaN and the reason if they prove nothing."""
    if arrival_s is None or departure_s is None:
        return NAN, ""
    servers, to, seen_s = change
    arrival, departure = np.asarray(arrival_s, dtype=np.float64), np.asarray(departure_s, dtype=np.float64)
    if curve.initial or curve.final:
        return NAN, "jobs are present at the start or the end: pairs not used"
    came = int(np.sum(curve.arrivals))
    _check(len(arrival) == len(departure) == came, f"{len(arrival)} pairs for a curve of {came} arrivals")
    return least_queueing(arrival, departure, servers, to, present=curve) - seen_s, ""
