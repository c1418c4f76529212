"""Instances whose requests are served one by one on the event-driven machine: their stations, compiled.

A station is an instance with so many servers, each a hardware thread. Work is counted in mean requests; a server does
as much of it a second as the machine lets the instance's thread do. All in service run at one speed, so the work that
each has attained since the station was last empty is one number for all (as in `models.queues.kernels.ps`): a request
leaves when that number has grown by what it needs. First come first served, as many are in service as there are
servers; sharing, everybody is, and all share the servers evenly.

At one moment departures come first, then arrivals, in order of arrival.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.code.compiled import njit
from sim.fleet.layout import REQUEST, STATION, Records


@dataclass(frozen=True, slots=True, eq=False)
class StationLoad:
    """Requests of one stay that are served one by one: (n,) arrays."""

    servers: int
    """Hardware threads."""
    sharing: bool
    """Whether all requests share them evenly; else first come, first served."""
    arrival_s: Floats
    """Increasing, within the stay."""
    work: Floats
    """Instructions relative to the job's mean request."""


def stations_of(stays: Sequence[StationLoad]) -> tuple[Records, Records]:
    """Return the stations of stays, in this order, before they are at work, and their requests.

    Returns
    -------
    (S,) array of `sim.fleet.layout.STATION`, (n,) array of `sim.fleet.layout.REQUEST`
    """
    count = np.array([stay.arrival_s.size for stay in stays], np.int64)
    stations, requests = np.zeros(len(stays), STATION), np.zeros(int(count.sum()), REQUEST)
    stations["last"] = np.cumsum(count)
    stations["first"] = stations["last"] - count
    stations["servers"] = [stay.servers for stay in stays]
    stations["limit"] = [requests.size + 1 if stay.sharing else stay.servers for stay in stays]
    for station, stay in zip(stations, stays, strict=True):
        own = requests[station["first"] : station["last"]]
        own["arrival_s"], own["work"], own["departure_s"] = stay.arrival_s, stay.work, np.nan
    return stations, requests


@njit(cache=False, borrows=True)
def _put(heap: Records, n: int, key: float, member: int) -> None:
    """Add to a heap of n that is ordered by (key, member)."""
    hole = n
    while hole > 0:
        above = (hole - 1) >> 1
        if heap[above].key < key or (heap[above].key == key and heap[above].member < member):
            break
        heap[hole].key, heap[hole].member = heap[above].key, heap[above].member
        hole = above
    heap[hole].key, heap[hole].member = key, member


@njit(cache=False, borrows=True)
def _take(heap: Records, n: int) -> None:
    """Remove the least of a heap of n."""
    key, member, hole, below, end = heap[n - 1].key, heap[n - 1].member, 0, 1, n - 1
    while below < end:
        least, other = heap[below], heap[min(below + 1, end - 1)]
        if other.key < least.key or (other.key == least.key and other.member < least.member):
            below += 1
            least = other
        if key < least.key or (key == least.key and member < least.member):
            break
        heap[hole].key, heap[hole].member = least.key, least.member
        hole, below = below, 2 * below + 1
    heap[hole].key, heap[hole].member = key, member


@njit(cache=False, borrows=True)
def open_station(station: np.record, at_s: float) -> None:
    """Begin a station that is empty."""
    station.arriving, station.waiting, station.serving = station.first, station.first, 0
    station.attained, station.since_s, station.rate = 0.0, at_s, 0.0


@njit(cache=False, borrows=True)
def busy_servers(station: np.record) -> int:
    """Return how many of a station's servers work."""
    return int(min(station.serving, station.servers))


@njit(cache=False, error_model="numpy", borrows=True)
def _leaves_s(station: np.record, requests: Records) -> float:
    """Return when the next request leaves."""
    if station.serving == 0 or station.rate == 0.0:
        return np.inf
    left = requests[station.first].key - station.attained
    return float(station.since_s + max(0.0, left) / station.rate)


@njit(cache=False, borrows=True)
def next_request_s(station: np.record, requests: Records) -> float:
    """Return when a request comes or leaves next."""
    comes_s = requests[station.arriving].arrival_s if station.arriving < station.last else np.inf
    return float(min(comes_s, _leaves_s(station, requests)))


@njit(cache=False, borrows=True)
def _attain(station: np.record, now_s: float) -> None:
    """Let everybody in service attain what they have since the pace changed last."""
    station.attained += station.rate * (now_s - station.since_s)
    station.since_s = now_s


@njit(cache=False, borrows=True)
def _admit(station: np.record, requests: Records) -> None:
    """Let requests that wait into service, as many as there may be."""
    while station.waiting < station.arriving and station.serving < station.limit:
        end = station.attained + requests[station.waiting].work
        _put(requests[station.first : station.last], station.serving, end, station.waiting)
        station.waiting += 1
        station.serving += 1


@njit(cache=False, error_model="numpy", borrows=True)
def _share_out(station: np.record) -> None:
    """Share the servers evenly among all in service."""
    n = station.serving
    station.rate = station.speed * min(1.0, station.servers / n) if n > 0 else 0.0


@njit(cache=False, borrows=True)
def requests_happen(station: np.record, requests: Records, now_s: float) -> bool:
    """Let requests leave and come that are due; return whether another number of servers works than before."""
    busy, in_service = busy_servers(station), station.serving
    while _leaves_s(station, requests) <= now_s:
        station.attained, station.since_s = requests[station.first].key, now_s
        requests[requests[station.first].member].departure_s = now_s
        _take(requests[station.first : station.last], station.serving)
        station.serving -= 1
        if station.serving == 0:
            station.attained = 0.0
    _attain(station, now_s)
    _admit(station, requests)
    while station.arriving < station.last and requests[station.arriving].arrival_s <= now_s:
        station.arriving += 1
        _admit(station, requests)
    if station.serving != in_service:
        _share_out(station)
    return busy_servers(station) != busy


@njit(cache=False, borrows=True)
def run_at(station: np.record, now_s: float, speed: float) -> None:
    """Let every server of a station do so much work a second from now on."""
    _attain(station, now_s)
    station.speed = speed
    _share_out(station)
