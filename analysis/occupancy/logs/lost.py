"""Arrivals and departures that a log without pairs has lost: how many, and when they were likeliest."""

from typing import NamedTuple

import numpy as np

from analysis.occupancy.curve import Curve, curve
from models.arrays import Floats, Ints
from models.code.compiled import njit

_ROUNDS = 4
"""Times that the rate of service and the share lost are estimated again; more change nothing."""
_STATES = 24
"""Numbers of lost departures that are thought possible at a time."""
_FIRST_SHARE, _LEAST_SHARE = 0.005, 1e-9
_GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Its multiples, less their whole parts, cover 0 to 1 evenly however many there are."""
_TINY, _IMPOSSIBLE = 1e-300, 1e-40
_MOST_AT_ONCE = 30
"""Departures of one instant beyond these tell nothing more."""


class _Path(NamedTuple):
    """What is seen of the chain, interval by interval, and the parameters of the chain."""

    jobs: Ints
    """Requests there, those that were lost included."""
    gone: Ints
    """Departures seen at the end of the interval."""
    work: Floats
    """Departures expected from one busy server."""
    servers: int
    share: float
    """Share of departures that are lost."""


def lost_departures(arrival_s: Floats, departure_s: Floats, servers: int) -> Floats:
    """Return when departures were lost from a log without pairs.

    A lost departure lifts the occupancy for good. How many were lost is the hidden state of a Markov chain: with j
    lost, N - j requests are there, of which min(N - j, k) are served, each at the same rate, and a departure is seen or
    lost with fixed probabilities. Forward and backward sums over the log give the expected number lost by each moment
    (Baum et al. 1970); rate and probability are estimated again from it. As demands count as exponential, schedulers
    that favour short requests, and few very long requests, mislead it.

    Parameters
    ----------
    arrival_s, departure_s : (n,), (d,) arrays, seconds; never more departures than arrivals
    servers : k >= 1

    Returns
    -------
    (l,) array, seconds
        Times to be added to `departure_s`; then still never more have departed than had arrived. O(n) time.
    """
    return _lost(curve(arrival_s, departure_s), servers)


def lost_arrivals(arrival_s: Floats, departure_s: Floats, servers: int) -> Floats:
    """Return when requests arrived that a log without pairs has only departures of.

    The same as lost departures with time running backwards. Those that are not lost then were there from the start.

    Parameters
    ----------
    arrival_s, departure_s : (n,), (d,) arrays, seconds
    servers : k >= 1

    Returns
    -------
    (l,) array, seconds
        Times to be added to `arrival_s`; then never more have departed than had arrived.
    """
    forward = curve(arrival_s, departure_s, initial=len(departure_s))
    short = len(departure_s) - min(int(forward.jobs.min(initial=forward.final)), forward.final, len(departure_s))
    if not short:
        return np.empty(0)
    back = curve(-departure_s, -arrival_s, initial=short + len(arrival_s) - len(departure_s))
    lost = -_lost(back, servers)[:short]
    return np.concatenate((lost, np.full(short - len(lost), forward.start_s)))


def _lost(curve: Curve, servers: int) -> Floats:
    """Return when departures were lost: moments at which the expected number passes levels between whole numbers."""
    span_s, departed = np.diff(curve.time_s), int(curve.departures.sum())
    gone = np.minimum(curve.departures[1:], _MOST_AT_ONCE)
    share, mean = _FIRST_SHARE, np.zeros(len(curve.jobs))
    for _ in range(_ROUNDS if departed and len(span_s) else 0):
        rate = departed / max(float(np.clip(curve.jobs - np.round(mean), 0, servers) @ span_s), _TINY)
        path = _Path(curve.jobs, gone, rate * span_s, servers, share)
        mean = np.maximum.accumulate(_backward(*_forward(path, _STATES, _IMPOSSIBLE), path))
        share = max(mean[-1] / departed, _LEAST_SHARE)
    most = np.minimum.accumulate(np.append(curve.jobs, curve.final)[::-1])[::-1][:-1]
    mean = np.minimum(mean, most)
    levels = np.arange(1, int(np.max(mean, initial=0.0)) + 2)
    levels = levels - (0.5 + levels * _GOLDEN) % 1.0
    at: Ints = np.searchsorted(mean, levels)
    return curve.time_s[at[at < len(mean)]]


@njit(cache=False, borrows=True)
def _busy(jobs: int, servers: int) -> float:
    return float(min(max(jobs, 0), servers))


@njit(cache=False, borrows=True)
def _step(jobs: int, work: float, servers: int, share: float) -> tuple[float, float]:
    """Return the likelihood that nothing is seen in an interval: without a loss, and with one."""
    here, after = _busy(jobs, servers), _busy(jobs - 1, servers)
    stays = np.exp(-here * work)
    if here == after:
        return stays, share * here * work * stays
    return stays, share * here * (np.exp(-after * work) - stays) / (here - after)


@njit(cache=True)
def _forward(path: _Path, states: int, impossible: float) -> tuple[Floats, Ints]:
    """Return how likely each number is to be lost at the start of each interval given what was seen before it.

    Column j of row i stands for base[i] + j lost; base moves up with the likeliest number.
    """
    jobs, gone, work, servers, share = path
    table, base = np.zeros((len(jobs), states)), np.zeros(len(jobs), dtype=np.int64)
    table[0, 0] = 1.0
    new = np.empty(states + 1)
    for i in range(len(jobs) - 1):
        for j in range(states + 1):
            new[j] = 0.0
        for j in range(states):
            if table[i, j] > impossible:
                place = jobs[i] - base[i] - j
                stays, loses = _step(place, work[i], servers, share)
                new[j] += table[i, j] * stays * _busy(place, servers) ** gone[i]
                new[j + 1] += table[i, j] * loses * _busy(place - 1, servers) ** gone[i]
        for j in range(states + 1):
            if base[i] + j > jobs[i + 1]:
                new[j] = 0.0
        likeliest = 0
        for j in range(states + 1):
            likeliest = j if new[j] > new[likeliest] else likeliest
        shift, total = 1 if likeliest > states // 2 else 0, 0.0
        for j in range(states):
            total += new[shift + j]
        if total > 0.0:
            base[i + 1] = base[i] + shift
            for j in range(states):
                table[i + 1, j] = new[shift + j] / total
        else:
            base[i + 1] = min(base[i], jobs[i + 1])
            table[i + 1, 0] = 1.0
    return table, base


@njit(cache=True)
def _backward(table: Floats, base: Ints, path: _Path) -> Floats:
    """Return how many were lost at the start of each interval on average, given all that was seen."""
    jobs, gone, work, servers, share = path
    m, states = table.shape
    mean, later, before = np.zeros(m), np.ones(states), np.empty(states)
    for i in range(m - 1, -1, -1):
        if i < m - 1:
            top = 0.0
            for j in range(states):
                before[j] = 0.0
                to = base[i] + j - base[i + 1]
                place = jobs[i] - base[i] - j
                if table[i, j] > 0.0 and place >= 0:
                    stays, loses = _step(place, work[i], servers, share)
                    if 0 <= to < states and table[i + 1, to] > 0.0:
                        before[j] += stays * _busy(place, servers) ** gone[i] * later[to]
                    if 0 <= to + 1 < states and table[i + 1, to + 1] > 0.0:
                        before[j] += loses * _busy(place - 1, servers) ** gone[i] * later[to + 1]
                top = max(top, before[j])
            for j in range(states):
                later[j] = before[j] / top if top > 0.0 else 1.0
        total = 0.0
        for j in range(states):
            total += table[i, j] * later[j]
            mean[i] += (base[i] + j) * table[i, j] * later[j]
        mean[i] = mean[i] / total if total > 0.0 else base[i]
    return mean
