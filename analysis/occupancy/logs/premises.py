"""What in a log speaks against one pool of servers: servers that come or go, several queues, time-outs, long polls."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from analysis.occupancy.curve import Pairs, pairs
from analysis.occupancy.logs.log import LogFinding, counted, in_seconds
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

CHANCE = 1e-12
"""So rarely chance makes a run of departures without the youngest in service, at any of its places."""
IN_ORDER = 0.02
"""Share of departures in a crowd that may leave more older requests behind than servers have room for."""
CROWD, LARGE_CROWD = 2, 4
"""Times the number of servers: in such crowds the order of departures tells how requests are served. Several queues are
told apart from equal sharing by chains of requests that overtake one another, which grow like the root of a crowd: it
must be half the square of the servers, too."""
LEAST = 100
"""Least number of departures from a crowd."""
SHARED, STEADY, MIDDLE = (0.4, 0.62), 0.07, 0.25
"""Mean place of those that leave among those present, by age, that equal sharing makes (0.5 for exponential demands);
how much it may differ between small and large crowds, as it does in a queue; least share in the middle two fifths,
which classes with priorities leave empty."""
WINDOWS, SUDDEN, FACTOR = (50, 100, 200), 4.5, 1.5
"""Departures on both sides of a moment; standard errors and factor from which completions changed suddenly."""
USUAL_ERROR = 0.6745
"""Median of the absolute value of a normal variable."""
GROWTH, SURE = 1.1, 4.0
"""Factor and standard errors from which completions grow with more requests present than servers."""
APART, BEHIND, PLACE, CHAINED = (0.1, 0.5), 0.35, 0.2, 0.005
"""Of several queues: share of departures that leave more older ones than servers behind, mean place of all, least mean
place of those, and largest share at the end of a chain longer than the number of servers."""
NARROW, PILE, SIDES, ABOVE = 0.005, 20, 10, 0.1
"""Relative width, least number of responses, times its neighbours and largest share beyond it of a pile."""
TICKS = 200
"""Shorter responses, in ticks of the stamps, are not told from their neighbours."""
TYPICAL, SHORT = 3.0, 0.05
"""A pile below so many short responses, which so large a share do not exceed, is that of a service which always takes
equally long."""
LONG, LIKELY, STRETCH = 10.0, 15.0, 50
"""Times the usual response of long requests; log likelihood by which they hold no server; arrivals of a stretch."""
UNHURT, FEW = 0.7, 3.0
"""Least share of the departures in a crowd of others that long requests have if these do not matter to them; fewer such
departures tell nothing."""


class DepartureOrder(NamedTuple):
    """Departures in order of time, and who was present just before each."""

    time_s: Floats
    older: Ints
    """Requests present that came before the one that leaves."""
    present: Ints
    """Requests present, the one that leaves among them."""
    chain: Ints
    """Requests in the longest chain that ends with the one that leaves, each of which overtook the one before."""

    @property
    def place(self) -> Floats:
        """Where the one that leaves stands among those present: 0 the oldest, 1 the youngest."""
        return (self.older + 0.5) / self.present


def premises(
    arrival_s: Floats, departure_s: Floats, servers: int, tick_s: float, *, prioritised: bool = False
) -> Iterator[LogFinding]:
    """Yield what speaks against one pool of so many servers that all work whenever a request waits.

    Each test compares like with like, so that demands may follow the load: the order in which requests leave, which
    demands do not change if all get longer; the same requests before and after a moment; completions within a stretch
    of time.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays of pairs, seconds, in order of arrival; NaN departures have not left
    servers : k >= 1
    tick_s : what stamps are multiples of; 0: of nothing
    prioritised : whether requests are of several priorities: those that are urgent may be short, too, so that more
        complete per second in a crowd
    """
    first_s = float(arrival_s[0])
    events = pairs(arrival_s, departure_s)
    departures = departure_order(events)
    took_s = departure_s - arrival_s
    pile = _pile(took_s, tick_s)
    if pile is not None:
        yield _one_value(pile)
    yield from _without_server(events, arrival_s, departure_s, servers)
    crowd = departures.present >= CROWD * servers
    if np.count_nonzero(crowd) < LEAST:
        return
    if np.mean((departures.older >= servers)[departures.present > servers]) <= IN_ORDER:
        yield from _fewer_in_order(departures, servers, first_s, _served(events, took_s, pile))
    elif _shares(departures, servers):
        yield from _sudden(events, servers, first_s, timed_out=pile is not None)
        if not prioritised:
            yield from _still_growing(events, servers)
    else:
        yield from _several_queues(departures, servers)


def departure_order(events: Pairs) -> DepartureOrder:
    """Return the departures of a log.

    Examples
    --------
    >>> departure_order(pairs(np.array([0.0, 1.0, 2.0, 2.0]), np.array([5.0, 3.0, 4.0, 6.0]))).older
    array([1, 1, 0, 0])
    """
    leaves = np.flatnonzero(events.job < 0)
    older, chain = np.empty(len(leaves), dtype=np.int64), np.empty(len(leaves), dtype=np.int64)
    _count_older(events.job, len(events.order), older)
    _chains(-1 - events.job[leaves], len(events.order), chain)
    return DepartureOrder(events.time_s[leaves], older, events.present[leaves] + 1, chain)


def _shares(departures: DepartureOrder, servers: int) -> bool:
    """Return whether the order of departures is that of equal sharing."""
    small, large = _crowds(departures, servers)
    if min(len(small), len(large)) < LEAST:
        return False
    mean = float(large.mean())
    steady = abs(float(small.mean()) - mean) <= STEADY
    return SHARED[0] <= mean <= SHARED[1] and steady and float(np.mean(np.abs(large - 0.5) < 0.2)) >= MIDDLE


def _prefers_young(departures: DepartureOrder, servers: int) -> bool:
    """Return whether the younger are served first, as under srpt or fb: then long requests wait, by choice."""
    small, large = _crowds(departures, servers)
    if min(len(small), len(large)) < LEAST // 3:
        return False
    return float(large.mean()) > max(SHARED[1], float(small.mean()) + STEADY)


def _crowds(departures: DepartureOrder, servers: int) -> tuple[Floats, Floats]:
    """Return the places of those that leave a small crowd and a large one."""
    small = (departures.present > servers) & (departures.present <= CROWD * servers)
    return departures.place[small], departures.place[departures.present > CROWD * servers]


def _served(events: Pairs, took_s: Floats, pile: "_Pile | None") -> Bools:
    """Return which departures, in order of time, do not end at the value of a time-out: those may be the oldest ones
    that wait, so their order does not tell how requests are served."""
    took = took_s[events.order][-1 - events.job[events.job < 0]]
    return np.ones(len(took), dtype=np.bool_) if pile is None else np.abs(took / pile.value_s - 1.0) > NARROW


def _fewer_in_order(departures: DepartureOrder, servers: int, first_s: float, served: Bools) -> Iterator[LogFinding]:
    """Yield that for a while only the oldest of fewer requests than servers left, first come first served.

    The longest run of departures from a crowd that leave fewer than m older ones behind is compared with all other such
    runs, whose lengths weighted by themselves are twice the mean of a geometric law, and more where runs cluster.
    """
    crowded = np.flatnonzero((departures.present >= servers) & served)
    older = departures.older[crowded]
    best, surprise = (0, 0, 0), np.log(CHANCE)
    for fewer in range(1, servers):
        beyond = older >= fewer
        ends = np.flatnonzero(np.concatenate(([True], beyond, [True])))
        lengths = np.diff(ends)
        longest = int(np.argmax(lengths))
        run, rest = int(lengths[longest]) - 1, np.delete(lengths, longest).astype(np.float64)
        if len(rest) < LEAST:
            continue
        chance = -2.0 * run / float((rest**2).sum() / rest.sum()) + np.log(len(older) * servers)
        if run >= LEAST and chance < surprise:
            best, surprise = (fewer, int(ends[longest]), run), chance
    fewer, start, run = best
    if run:
        from_s, to_s = first_s + departures.time_s[crowded[[start, start + run - 1]]]
        evidence = (
            f"from {from_s:.6g} s to {to_s:.6g} s only the {fewer} oldest of those present left, "
            f"of {counted(servers, 'server')}"
        )
        yield LogFinding("servers came or went", run, evidence, _CAME_OR_WENT)


def _sudden(events: Pairs, servers: int, first_s: float, *, timed_out: bool) -> Iterator[LogFinding]:
    """Yield that the same requests suddenly completed at another rate, sharing the servers equally."""
    z, factor, at, usual = 0.0, 1.0, 0, math.nan
    for window in WINDOWS:
        changes, middles = _changes(events, window, servers)
        if not len(changes):
            break
        errors = np.abs(changes[:, 0])
        if math.isnan(usual):
            # Long requests in service make completions cluster all over the log.
            usual = max(1.0, float(np.median(errors)) / USUAL_ERROR)
        best = int(np.argmax(errors))
        if errors[best] / usual > z:
            z, factor, at = float(errors[best]) / usual, float(changes[best, 1]), int(middles[best])
    if z > SUDDEN and max(factor, 1.0 / factor) > FACTOR:
        when = first_s + float(events.time_s[at])
        evidence = f"at {when:.6g} s those present began to complete at {factor:.2g} times the rate"
        rival = "; or clients gave up, as those whose responses end at one value may have" if timed_out else ""
        yield LogFinding("servers came or went", len(events.order), evidence, _CAME_OR_WENT + rival)


def _still_growing(events: Pairs, servers: int) -> Iterator[LogFinding]:
    """Yield that completions grow with more requests present than servers, which share them equally."""
    length_s, present = np.diff(events.time_s), events.present[:-1]
    leaves = events.job[1:] < 0
    few, many = (present >= servers) & (present <= 1.5 * servers), present >= CROWD * servers
    counts = np.array([np.count_nonzero(leaves & some) for some in (few, many)])
    if counts.min() < LEAST:
        return
    rates = counts / [length_s[few].sum(), length_s[many].sum()]
    factor = float(rates[1] / rates[0])
    if factor > GROWTH and np.log(factor) > SURE * np.sqrt((1.0 / counts).sum()):
        evidence = (
            f"with {CROWD * servers} or more present {factor:.2f} times as many complete per second as with {servers} "
            f"to {int(1.5 * servers)}"
        )
        done = (
            "nothing was changed: machines with a queue each (--hosts COLUMN), more servers than said, requests that "
            "wait for something else, or short ones that are served first"
        )
        yield LogFinding("completions grow beyond the servers", int(counts.sum()), evidence, done)


def _several_queues(departures: DepartureOrder, servers: int) -> Iterator[LogFinding]:
    """Yield that requests leave in the order of several queues: some among the oldest, the others far behind them.

    Machines with k servers in all, each of which serves first come first served, have no chain of more than k requests
    that overtook one another, since all but the oldest of a machine's part of it are in service.
    """
    least = max(LARGE_CROWD * servers, servers**2 // 2)
    crowd = departures.present >= least
    if np.count_nonzero(crowd) < LEAST:
        return
    behind, place = departures.older[crowd] >= servers, departures.place[crowd]
    share, chained = float(behind.mean()), float(np.mean(departures.chain[crowd] > servers))
    if chained > CHAINED or not behind.any():
        return
    if APART[0] <= share <= APART[1] and place.mean() <= BEHIND and place[behind].mean() >= PLACE:
        evidence = (
            f"{share:.0%} of those that leave a crowd of {least} or more leave {servers} or more older "
            "ones behind, the others are the oldest"
        )
        done = (
            "nothing was changed: machines or pools with a queue each (--hosts COLUMN), or classes with priorities "
            "(--priority, --by)"
        )
        yield LogFinding("more than one queue", int(crowd.sum()), evidence, done)


class _Pile(NamedTuple):
    """Responses that are equally long."""

    value_s: float
    """Their median."""
    least_s: float
    size: int
    longer: int
    """Responses that are longer."""


def _pile(took_s: Floats, tick_s: float) -> _Pile | None:
    """Return many responses that are equally long, if hardly any are longer."""
    took = np.sort(took_s[~np.isnan(took_s) & (took_s > TICKS * tick_s)])
    if len(took) < LEAST:
        return None
    far = took[took > TYPICAL * np.nanquantile(took_s, SHORT)]
    if len(far) < PILE:
        return None
    ends = np.searchsorted(far, far * (1.0 + NARROW), side="right")
    sizes = ends - np.arange(len(far))
    first = int(np.argmax(sizes))
    size, value = int(sizes[first]), float(far[first])
    below = first - int(np.searchsorted(far, value * (1.0 - SIDES * NARROW)))
    longer = len(far) - int(ends[first])
    if size < PILE or size < 2 * below or longer > ABOVE * size:
        return None
    return _Pile(float(np.median(far[first : first + size])), value, size, longer)


def _one_value(pile: _Pile) -> LogFinding:
    """Return that many responses take equally long, and hardly any longer."""
    evidence = f"{counted(pile.size, 'request')} took {in_seconds(pile.value_s)}, {pile.longer:,} took longer"
    done = (
        "kept: a time-out, after which servers may work on unseen, so that service is too short; or long polls, which "
        f'hold no server: leave them out by --where "response_s < {pile.least_s * (1.0 - NARROW):.4g}"'
    )
    return LogFinding("responses end at one value", pile.size, evidence, done)


def _without_server(events: Pairs, arrival_s: Floats, departure_s: Floats, servers: int) -> Iterator[LogFinding]:
    """Yield that others complete as if long requests were not there.

    n others and m long ones share k servers: then the others complete at a rate like n min(1, k / (n + m)), or less if
    the long ones hold a server each. If those hold none, it is min(n, k). Both are compared within stretches of time,
    each of which has its own mean demand. Policies that let long requests wait (srpt, fb) look alike, but long ones do
    not leave before the others.
    """
    took = (departure_s - arrival_s)[events.order]
    usual = np.nanmedian(took)
    long = took > LONG * usual
    if not PILE <= np.count_nonzero(long) <= 0.2 * len(took):
        return
    request = np.where(events.job >= 0, events.job, -1 - events.job)
    is_long, leaves = long[request], events.job < 0
    waits = np.cumsum(np.where(leaves, -1, 1) * is_long)
    others = events.present - waits
    n, m, length_s = others[:-1], waits[:-1], np.diff(events.time_s)
    left, long_left = (leaves & ~is_long)[1:], (leaves & is_long)[1:]
    stretch = np.minimum(np.cumsum(events.job[:-1] >= 0) // STRETCH, len(took) // STRETCH)
    likely = [
        _log_likelihood(rate.astype(np.float64), length_s, left, stretch)
        for rate in (np.minimum(n, n * servers / np.maximum(n + m, 1)), np.minimum(n, servers))
    ]
    if likely[1] - likely[0] > LIKELY and not _starved(n, m * length_s, long_left, servers):
        rest = events.order[~long]
        if _prefers_young(departure_order(pairs(arrival_s[rest], departure_s[rest])), servers):
            return
        evidence = (
            f"they stay for more than {in_seconds(LONG * usual)}, and the others complete as if they were not there"
        )
        done = (
            "kept: long polls or streams wait for an event but count as served: leave them out by "
            f'--where "response_s < {LONG * usual:.4g}"; or a policy lets them wait, which the law allows for'
        )
        yield LogFinding("requests that hold no server", int(long.sum()), evidence, done)


def _starved(others: Ints, time_s: Floats, left: Bools, servers: int) -> bool:
    """Return whether long requests leave less often while more others are present: than usual, or than servers."""
    order = np.argsort(others, kind="stable")
    half = np.searchsorted(np.cumsum(time_s[order]), time_s.sum() / 2)
    for crowd in (others > others[order[min(half, len(order) - 1)]], others >= servers):
        expected = float(left.sum() * time_s[crowd].sum() / time_s.sum())
        if expected >= FEW and np.count_nonzero(left & crowd) < UNHURT * expected:
            return True
    return False


def _log_likelihood(rate: Floats, length_s: Floats, left: Bools, stretch: Ints) -> float:
    """Return the Poisson log-likelihood of completions at rates in proportion to these, within stretches."""
    positive = np.maximum(rate, 1e-9)
    work = np.bincount(stretch, rate * length_s)
    completions = np.bincount(stretch, left, minlength=len(work))
    some = completions > 0
    return float(np.log(positive[left]).sum() - (completions[some] * np.log(np.maximum(work[some], 1e-300))).sum())


_CAME_OR_WENT = (
    "nothing was changed: were servers taken away, broken or added, or did they change their speed? Take the parts one "
    "by one (--from, --until), each with its --servers"
)


@njit(cache=True)
def _count_older(job: Ints, requests: int, older: Ints) -> None:
    """Count the requests present that came before each one that leaves (Fenwick 1994)."""
    tree = np.zeros(requests + 1, dtype=np.int64)
    departure = 0
    for event in range(len(job)):
        comes = job[event] >= 0
        at = job[event] if comes else -1 - job[event]
        if not comes:
            node = at
            count = 0
            while node > 0:
                count += tree[node]
                node -= node & -node
            older[departure] = count
            departure += 1
        node = at + 1
        while node <= requests:
            tree[node] += 1 if comes else -1
            node += node & -node


@njit(cache=True)
def _chains(request: Ints, requests: int, chain: Ints) -> None:
    """Find the longest chains that end with each departure: later arrivals that leave earlier (Fredman 1975)."""
    place = np.full(requests, -1, dtype=np.int64)
    for departure in range(len(request)):
        place[request[departure]] = departure
    tree = np.zeros(requests + 1, dtype=np.int64)
    for arrival in range(requests):
        # Requests that have not left at the end leave last.
        later = requests - 1 - place[arrival] if place[arrival] >= 0 else 0
        longest, node = 0, later
        while node > 0:
            longest = max(longest, tree[node])
            node -= node & -node
        if place[arrival] >= 0:
            chain[place[arrival]] = longest + 1
        node = later + 1
        while node <= requests:
            tree[node] = max(tree[node], longest + 1)
            node += node & -node


def _changes(events: Pairs, window: int, servers: int) -> tuple[Floats, Ints]:
    """Return by how much the rate changes at which the same requests complete, at moments of crowds.

    Those present at the start of a window are followed until its end, in which twice as many departures happen. Both
    halves must begin with as many present as leave in it, and servers must be busy throughout.

    Returns
    -------
    (m, 2) array of the change in standard errors and the factor, and the (m,) events at which they are
    """
    leaves = np.flatnonzero(events.job < 0)
    middle = np.arange(window, len(leaves) - window, max(window // 10, 1))
    middle = middle[(events.present[leaves[middle - window]] >= window) & (events.present[leaves[middle]] >= window)]
    spans = np.stack([leaves[middle - window], leaves[middle], leaves[middle + window]], axis=1)
    changes = np.zeros((len(spans), 2))
    _follow(events.time_s, events.job, events.present, spans, changes)
    quiet = np.array([events.present[start : end + 1].min() for start, _, end in spans], dtype=np.int64)
    known = (quiet >= servers) & (changes[:, 1] > 0)
    return changes[known], spans[known, 1]


@njit(cache=True)
def _follow(time_s: Floats, job: Ints, present: Ints, spans: Ints, changes: Floats) -> None:
    """Follow those present at the start of each span of events: their departures, and their share of the servers."""
    for row in range(len(spans)):
        start, turn, end = spans[row]
        first = start
        while first >= 0 and job[first] < 0:
            first -= 1
        last_arrival = job[first] if first >= 0 else -1
        cohort = present[start]
        gone, share_s = np.zeros(2), np.zeros(2)
        for event in range(start + 1, end + 1):
            half = 1 if event > turn else 0
            share_s[half] += cohort / present[event - 1] * (time_s[event] - time_s[event - 1])
            if job[event] < 0 and -1 - job[event] <= last_arrival:
                cohort -= 1
                gone[half] += 1
        if gone.min() >= 10 and share_s.min() > 0:
            changes[row, 1] = gone[1] / share_s[1] / (gone[0] / share_s[0])
            changes[row, 0] = np.log(changes[row, 1]) / np.sqrt(1.0 / gone[0] + 1.0 / gone[1])
