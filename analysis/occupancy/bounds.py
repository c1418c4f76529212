"""The Capacity Adjustment Laws and what sharpens them: bounds on queueing with another number or speed of servers.

The sharper ones look at courses. A course says how many jobs are present with k' servers on each piece of the curve. It
never exceeds what was seen with k servers, rises by arrivals alone, and its busy servers do the work that was seen. The
last condition gets a price per second of a busy server: for given prices the best course follows by dynamic
programming, and by weak duality all prices give an upper bound (docs/laws.md). Compiled helpers live in this one file
because numba's cache does not look into others.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.occupancy.curve import Curve, curve, order_of
from analysis.occupancy.law import area
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError
from models.queues.open import times

NAN = float("nan")
COLUMNS = (
    *("servers", "queueing_s_low", "queueing_s_high", "change_s_paper_bound"),
    *("b0", "b1", "b2", "b3", "pairs", "tightness", "note"),
)
MOST_STATES, MOST_CHOICES = 200_000_000, 5_000_000
"""Jobs present summed over the pieces of a busy period that B2 takes on, and of all that B3 does: a few seconds."""
PRECISION = 1e-6
"""Relative gap to the best price at which a search stops."""
ROUNDS, PATIENCE = 200, 10
"""Courses looked at for B2 and for B3 in each busy period; how many in a row may fail before B3's target comes nearer.
Any price gives a bound, so a search may stop at any time."""
HOPE, LEAST_HOPE = 0.1, 1e-3
"""First and last relative distance of the target from the lowest bound so far."""
DEFLECTION = 0.7
"""How much of the last direction is kept, against zigzag (Camerini, Fratta and Maffioli 1975)."""


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


class Periods(NamedTuple):
    """The busy periods of a curve: pieces first[i], ..., last[i] − 1 of it have jobs present.

    It has no methods: compiled code keeps its class to the end of the process, and with methods all that they know.
    """

    first: Ints
    last: Ints
    closed: bool
    """Whether the last one ends within the curve; all others do."""


def sums(periods: Periods, piece: Floats | Ints) -> Floats:
    """Return the sum over each busy period of what belongs to the pieces and is 0 on idle ones.

    Parameters
    ----------
    periods : P busy periods
    piece : (N,) of each piece of the curve

    Returns
    -------
    (P,) array
        In the unit of `piece`.

    Examples
    --------
    >>> sums(Periods(np.array([0, 3]), np.array([2, 4]), closed=True), np.array([1.0, 2.0, 0.0, 5.0]))
    array([3., 5.])
    """
    return np.add.reduceat(piece, periods.first) if len(periods.first) else np.empty(0)


class Pieces(NamedTuple):
    """Pieces of the curve, one array element each."""

    width: Floats
    """Seconds."""
    jobs: Ints
    """Present with k servers: the most with k'."""
    arrivals: Ints
    """At the start of the piece."""
    allowed: Floats
    """Servers of the k' that would do the work of this piece."""


class Backlogs(NamedTuple):
    """Times at least one server is busy without a break: from, to, and from when on all may be; seconds."""

    start_s: Floats
    end_s: Floats
    full_s: Floats


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
    most_s, note = _most(curve, periods, servers, to, speed, per_job=per_job)
    b0, b1, b2, b3 = (max(seen_s - most, 0.0) for most in most_s)
    high_s = seen_s - (b3 if per_job else b2)
    low_s = high_s if (to, speed) == (servers, 1.0) else 0.0
    peak = int(curve.jobs.max(initial=0))
    tightness = max((peak - servers) / (to - servers), 1.0) if to > servers else 1.0
    return Bounds(servers, to, seen_s, b0, low_s, high_s, b1, b2, b3, tightness=tightness, note=note)


def faster(curve: Curve, servers: int, speed: float, *, per_job: bool = False, divides: bool = False) -> Bounds:
    """Return bounds on queueing when every server becomes faster (docs/laws.md, speed).

    As `expansion` to as many servers, under the same assumptions; the paper has no such bound, so `b0` is 0. Some
    policies are known to divide the queueing of every busy period at least by the speed
    (`catalogue.divides_queueing`); preemptive last come first served on two servers does not. The last busy period
    counts whole if it does not end within the curve: who waits at the end of the log may wait as long with both speeds.

    Parameters
    ----------
    curve : occupancy
    servers : k >= 1
    speed : new over old, at least 1
    per_job : as in `expansion`
    divides : whether queueing is known to be divided at least by the speed

    Raises
    ------
    ValueError
        If there is no server, or the speed is below 1 or not finite.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> occupancy = curve([0.0, 0.0, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    >>> [round(faster(occupancy, servers=1, speed=2.0, divides=known).queueing_high_s, 3) for known in (False, True)]
    [4.0, 2.5]
    """
    bounds = expansion(curve, servers, servers, speed=speed, per_job=per_job)
    periods = busy_periods(curve)
    waited_s = _above(curve, periods, servers)
    ended = len(waited_s) - (not periods.closed)
    known_s = float(waited_s[:ended].sum() / speed + waited_s[ended:].sum()) if divides else np.inf
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
    pairs, note = _by_pairs(curve, servers, to, arrival_s, departure_s)
    pairs -= seen_s
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


def busy_periods(curve: Curve) -> Periods:
    """Return the busy periods of a curve: the longest stretches without an idle moment."""
    change = np.diff(np.concatenate(([False], curve.jobs > 0, [False])).astype(np.int8))
    return Periods(np.flatnonzero(change == 1), np.flatnonzero(change == -1), curve.final == 0)


def busiest(curve: Curve, periods: Periods, to: int, seconds: Floats) -> Floats:
    """Return ∫ (N − k')⁺ over the seconds of each busy period with the highest N: B1 (docs/laws.md, bound B1).

    Parameters
    ----------
    curve : occupancy
    periods : its busy periods
    to : k' >= 1, the other number of servers
    seconds : (n,) array, how long all k' servers can have been busy in each period

    Returns
    -------
    (n,) array, seconds
    """
    return _busiest(curve.time_s, curve.jobs, to, periods, seconds)


def most_queueing(curve: Curve, periods: Periods, to: int, allowed: Floats, suffixes: bool = False) -> Floats:
    """Return the most queueing with k' servers in each busy period: B2, or B3 with `suffixes` (docs/laws.md).

    Parameters
    ----------
    curve : occupancy with k servers
    periods : its busy periods
    to : k' >= k, the other number of servers
    allowed : (m,) array, servers of the k' that would do the work of each piece: min(N, k) over their speed
    suffixes : whether from no moment on may more work be left in a busy period than was seen: holds if no job is ever
        further behind with k' servers (B3)

    Returns
    -------
    (n,) array, seconds
        B2 is at most 1e-6 above the least bound that a price gives. Infinite where a busy period does not end within
        the curve, or has more than `MOST_STATES`; B3 goes on until `MOST_CHOICES` are used up.
    """
    pieces = Pieces(np.diff(curve.time_s), curve.jobs, curve.arrivals, np.ascontiguousarray(allowed, dtype=np.float64))
    states = 1.0 * (sums(periods, curve.jobs) + periods.last - periods.first)
    small = np.cumsum(states) <= MOST_CHOICES if suffixes else states <= MOST_STATES
    small[len(small) - 1 :] &= periods.closed
    most = np.full(len(small), np.inf)
    rising_rounds = ROUNDS if suffixes else 0
    bounded = periods._replace(first=periods.first[small], last=periods.last[small])
    most[small] = _most_of_each(pieces, bounded, to, ROUNDS, rising_rounds)
    return most


def least_queueing(
    arrival_s: Floats, departure_s: Floats, servers: int, to: int, *, present: Curve | None = None
) -> float:
    """Return queueing time that no policy avoids on k' servers, from matched pairs (docs/laws.md, reduction by pairs).

    A job is in service whenever no more than k jobs are present, so its demand is at least that time. No policy on k'
    servers beats shortest remaining time first on one server as fast as all of them (Schrage 1968), and whatever work
    is left over makes some job later by its length.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; pairs served by `servers` of one speed
    servers : k >= 1 that served them
    to : k' >= 1
    present : the curve of these pairs, if there is one already

    Returns
    -------
    float
        Seconds; may be below 0, and says nothing then.
    """
    if not np.all(departure_s >= arrival_s):
        raise InputError("every job needs a departure, not before its arrival")
    present = curve(arrival_s, departure_s) if present is None else present
    order = order_of(arrival_s)
    # Copies: what cannot be written to would be compiled for once more.
    demand_s = _alone(present.time_s, present.jobs <= servers, np.array(arrival_s), np.array(departure_s), order)
    if np.isnan(demand_s).any():
        raise InputError("the curve is not that of the pairs: some come or go when it shows neither")
    _, done_s = times("srpt", arrival_s[order], demand_s[order] / to, 1)
    work_s = area(present, servers)
    return float(np.sum(done_s - arrival_s[order]) + (work_s - np.sum(demand_s)) / to) - work_s


def most_backlog(curve: Curve, servers: int, to: int) -> float:
    """Return queueing time that no work-conserving policy exceeds on k' servers (docs/laws.md, reduction, upper side).

    Work is done at least at the speed of one server while any is present, so the backlogs end no later than if each
    busy period's work came at its start to one server (Lindley 1952). Within a backlog at most all arrivals so far are
    present, and more than k' of them only while all k' servers are busy.

    Parameters
    ----------
    curve : occupancy with k servers of one speed
    servers : k >= 1
    to : k' >= 1

    Returns
    -------
    float
        Seconds, within the curve if jobs are still present at its end, otherwise until all have left.
    """
    periods = busy_periods(curve)
    if not len(periods.first):
        return 0.0
    piece = np.diff(curve.time_s)
    piece *= np.minimum(curve.jobs, servers)
    work_s = sums(periods, piece)
    start_s, done_s = curve.time_s[periods.first], np.cumsum(work_s)
    end_s = done_s + np.maximum.accumulate(start_s - done_s + work_s)
    opens = np.flatnonzero(np.concatenate(([True], start_s[1:] > end_s[:-1])))
    start_s, end_s = start_s[opens], end_s[np.append(opens[1:], len(end_s)) - 1]
    full_s = end_s - np.add.reduceat(work_s, opens) / to
    if not periods.closed:
        end_s[-1], full_s[-1] = curve.end_s, start_s[-1]
    return _waiting(curve, to, start_s, end_s, full_s)


def _check(holds: bool, fault: str) -> None:
    if not holds:
        raise InputError(fault)


def _above(curve: Curve, periods: Periods, level: int) -> Floats:
    above, piece = curve.jobs - level, np.diff(curve.time_s)
    piece *= np.maximum(above, 0, out=above)
    return sums(periods, piece)


def _most(
    curve: Curve, periods: Periods, servers: int, to: int, speed: float, *, per_job: bool
) -> tuple[tuple[float, float, float, float], str]:
    """Return the most queueing with the other servers by B0, B1, B2 and B3 (NaN unless per job), and what fell back."""
    q0, allowed = _above(curve, periods, to), np.minimum(curve.jobs, servers) / speed
    piece = np.diff(curve.time_s)
    piece *= allowed
    q1 = np.minimum(busiest(curve, periods, to, sums(periods, piece) / to), q0)
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
    curve: Curve, servers: int, to: int, arrival_s: ArrayLike | None, departure_s: ArrayLike | None
) -> tuple[float, str]:
    """Return the queueing that the pairs prove, in seconds; NaN and the reason if they prove nothing."""
    if arrival_s is None or departure_s is None:
        return NAN, ""
    arrival, departure = np.asarray(arrival_s, dtype=np.float64), np.asarray(departure_s, dtype=np.float64)
    if curve.initial or curve.final:
        return NAN, "jobs are present at the start or the end: pairs not used"
    came = int(np.sum(curve.arrivals))
    _check(len(arrival) == len(departure) == came, f"{len(arrival)} pairs for a curve of {came} arrivals")
    return least_queueing(arrival, departure, servers, to, present=curve), ""


@njit(cache=True)
def _busiest(time_s: Floats, jobs: Ints, to: int, periods: Periods, seconds: Floats) -> Floats:
    integral = np.zeros(len(periods.first))
    for b in range(len(periods.first)):
        first, last = periods.first[b], periods.last[b]
        peak = 0
        for i in range(first, last):
            peak = max(peak, jobs[i] - to)
        time = np.zeros(peak + 1)
        for i in range(first, last):
            time[max(jobs[i] - to, 0)] += time_s[i + 1] - time_s[i]
        left = seconds[b]
        for n in range(peak, 0, -1):
            used = min(time[n], left)
            integral[b] += used * n
            left -= used
    return integral


@njit(cache=True)
def _most_of_each(pieces: Pieces, periods: Periods, to: int, rounds: int, rising_rounds: int) -> Floats:
    """Return B2 of each busy period, or B3 if there are rounds for it."""
    most = np.zeros(len(periods.first))
    for b in range(len(most)):
        i, j = periods.first[b], periods.last[b]
        piece = Pieces(pieces.width[i:j], pieces.jobs[i:j], pieces.arrivals[i:j], pieces.allowed[i:j])
        if _peak(piece) > to:
            most[b], price = _one_price(piece, to, rounds)
            most[b] = _rising_prices(piece, to, price, most[b], rising_rounds)
    return most


@njit(cache=False, borrows=True)
def _peak(piece: Pieces) -> int:
    """Return the most jobs present."""
    peak = 0
    for i in range(piece.jobs.size):
        peak = max(peak, piece.jobs[i])
    return peak


@njit(cache=False, borrows=True)
def _last_best(value: Floats, top: int) -> int:
    """Return the first number of jobs up to the top whose value is largest."""
    best = 0
    for n in range(1, top + 1):
        if value[n] > value[best]:
            best = n
    return best


@njit(cache=False)
def _one_price(piece: Pieces, to: int, rounds: int) -> tuple[float, float]:
    """Return the lowest bound that one price gives, and the price (Kelley 1960).

    The bound is convex in the price: each evaluation gives a line below it, and the next price is where the last
    falling and the last rising line meet. The first rising line belongs to the course without any job.
    """
    work = 0.0
    for i in range(piece.width.size):
        work += piece.width[i] * piece.allowed[i]
    state = np.empty((4, _peak(piece) + 1))
    left, best, right, bound_right, slope_right = 0.0, 0.0, 0.0, 0.0, work
    bound_left, slope_left = _bound(piece, to, work, left, state)
    lowest = bound_left
    for _ in range(rounds):
        if not slope_left < 0.0 < slope_right:
            break
        price = (bound_right - bound_left + slope_left * left - slope_right * right) / (slope_left - slope_right)
        if lowest - (bound_left + slope_left * (price - left)) <= PRECISION * lowest:
            break
        bound, slope = _bound(piece, to, work, price, state)
        if bound < lowest:
            best, lowest = price, bound
        if slope < 0.0:
            left, bound_left, slope_left = price, bound, slope
        else:
            right, bound_right, slope_right = price, bound, slope
    return lowest, best


@njit(cache=False, borrows=True)
def _bound(piece: Pieces, to: int, work: float, price: float, state: Floats) -> tuple[float, float]:
    """Return the bound for one price, and how fast it rises with the price.

    value[n] is the best so far with n jobs present, used[n] its time of busy servers; cost[n] and busy[n] what a second
    with n jobs adds to them.
    """
    value, used, cost, busy = state[0], state[1], state[2], state[3]
    for n in range(len(cost)):
        busy[n] = min(n, to)
        cost[n] = n - busy[n] - price * busy[n]
    value[0], used[0], top = 0.0, 0.0, 0
    for i in range(len(piece.jobs)):
        width, most, came = piece.width[i], piece.jobs[i], piece.arrivals[i] if i > 0 else piece.jobs[i]
        best, so_far = -np.inf, 0.0
        for n in range(top + came, -1, -1):
            if n >= came and value[n - came] > best:
                best, so_far = value[n - came], used[n - came]
            if n <= most:
                value[n] = best + width * cost[n]
                used[n] = so_far + width * busy[n]
        top = most
    last = _last_best(value, top)
    return value[last] + price * work, work - used[last]


@njit(cache=False)
def _rising_prices(piece: Pieces, to: int, start: float, most: float, rounds: int) -> float:
    """Return the lowest bound met with prices that never fall, one for each suffix, from `most` of one price on.

    Subgradient steps of the length of Polyak (1969), towards a target that comes nearer when steps fail, each brought
    back to a price that never falls (pools of adjacent violators; Ayer et al. 1955).
    """
    if rounds == 0:
        return most
    states = 0
    for i in range(piece.jobs.size):
        states += piece.jobs[i] + 1
    before = np.empty(states, np.int32)
    price, best = np.full(len(piece.jobs), start), np.full(len(piece.jobs), start)
    slope, hope, failed = np.zeros(len(price)), HOPE, 0
    for _ in range(rounds):
        bound, used = _course(piece, to, price, before)
        if bound < most * (1.0 - 1e-5):
            most, best, failed = bound, price.copy(), 0
        else:
            failed += 1
        if failed >= PATIENCE:
            hope, failed = hope / 2.0, 0
            price = best.copy()
        length = 0.0
        for i in range(slope.size):
            slope[i] = piece.allowed[i] - used[i] + DEFLECTION * slope[i]
            length += piece.width[i] * slope[i] * slope[i]
        if length == 0.0 or hope < LEAST_HOPE:
            break
        step = (bound - most * (1.0 - hope)) / length
        for i in range(slope.size):
            price[i] -= slope[i] * step
        _never_falling(price, piece.width)
    return most


@njit(cache=False)
def _never_falling(price: Floats, width: Floats) -> None:
    """Change a price to the nearest that neither falls nor is negative, each piece weighing by its width."""
    mean, weight, until = np.empty(len(price)), np.empty(len(price)), np.empty(len(price), np.int64)
    pools = 0
    for i in range(len(price)):
        mean[pools], weight[pools], until[pools] = price[i], width[i], i + 1
        pools += 1
        while pools > 1 and mean[pools - 2] >= mean[pools - 1]:
            both = weight[pools - 2] + weight[pools - 1]
            mean[pools - 2] += (mean[pools - 1] - mean[pools - 2]) * weight[pools - 1] / both
            weight[pools - 2], until[pools - 2] = both, until[pools - 1]
            pools -= 1
    i = 0
    for pool in range(pools):
        while i < until[pool]:
            price[i] = max(mean[pool], 0.0)
            i += 1


@njit(cache=False)
def _course(piece: Pieces, to: int, price: Floats, before: NDArray[np.int32]) -> tuple[float, Floats]:
    """Return the bound for a price on each piece, and the busy servers on each piece in the best course."""
    value, start, top = np.zeros(_peak(piece) + 1), 0, 0
    for i in range(len(price)):
        width, most, came = piece.width[i], piece.jobs[i], piece.arrivals[i] if i > 0 else piece.jobs[i]
        best, chosen = -np.inf, 0
        for n in range(top + came, -1, -1):
            if n >= came and value[n - came] > best:
                best, chosen = value[n - came], n - came
            if n <= most:
                busy = min(n, to)
                value[n] = best + width * (n - busy - price[i] * busy)
                before[start + n] = chosen
        start += most + 1
        top = most
    n, allowed, used = _last_best(value, top), 0.0, np.empty(len(price))
    for i in range(len(price)):
        allowed += piece.width[i] * piece.allowed[i] * price[i]
    bound = value[n] + allowed
    for i in range(len(price) - 1, -1, -1):
        used[i] = min(n, to)
        start -= piece.jobs[i] + 1
        n = int(before[start + n])
    return bound, used


def _waiting(curve: Curve, to: int, start_s: Floats, end_s: Floats, full_s: Floats) -> float:
    """Return ∫ (arrivals since the backlog's start − k')⁺ from `full_s` to `end_s` of each backlog."""
    waiting_s: Floats = _least_of_each(
        curve.time_s, curve.arrivals, curve.initial, to, Backlogs(start_s, end_s, full_s)
    )
    return float(np.sum(waiting_s))


@njit(cache=True)
def _least_of_each(time_s: Floats, arrivals: Ints, initial: int, to: int, backlogs: Backlogs) -> Floats:
    """Return seconds waited by those who come at each time, whoever comes first being served the longest."""
    start_s, end_s, full_s = backlogs.start_s, backlogs.end_s, backlogs.full_s
    waiting_s, backlog, present = np.zeros(len(time_s)), -1, 0
    for i in range(len(time_s)):
        came = arrivals[i] + (initial if i == 0 else 0)
        while backlog + 1 < len(start_s) and start_s[backlog + 1] <= time_s[i]:
            backlog += 1
            present = 0
        present += came
        if backlog >= 0:
            left_s = end_s[backlog] - max(time_s[i], full_s[backlog])
            waiting_s[i] = min(max(present - to, 0), came) * max(left_s, 0.0)
    return waiting_s


@njit(cache=True)
def _alone(time_s: Floats, free: Bools, arrival_s: Floats, departure_s: Floats, order: Ints) -> Floats:
    """Return for how long a server was free for each job of the log while it stayed; NaN if it did not come or go."""
    alone_s, demand_s, at = np.zeros(len(time_s)), np.full(len(order), np.nan), 0
    for i in range(len(free)):
        alone_s[i + 1] = alone_s[i] + (time_s[i + 1] - time_s[i]) * free[i]
    for job in order:
        while at < len(time_s) - 1 and time_s[at] < arrival_s[job]:
            at += 1
        # It left soon: look twice as far each time.
        near, reach = at, 1
        while near + reach < len(time_s) and time_s[near + reach] < departure_s[job]:
            near, reach = near + reach, 2 * reach
        left, beyond = near, min(near + reach + 1, len(time_s))
        while left < beyond:
            middle = (left + beyond) // 2
            if time_s[middle] < departure_s[job]:
                left = middle + 1
            else:
                beyond = middle
        if left < len(time_s) and time_s[at] == arrival_s[job] and time_s[left] == departure_s[job]:
            demand_s[job] = alone_s[left] - alone_s[at]
    return demand_s
