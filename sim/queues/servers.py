"""Servers that break the assumptions of the operational laws, in SimPy: blocking, a lock, limits, parallel requests.

First come first served throughout. A request passes the listener, whose workers take requests one by one; then the
limit on requests admitted at once; then its parts take a server each, and when all parts are done it leaves. A part
works the first half of what it does without the lock, perhaps leaves its server to wait for a disk and queues again,
does its share under the lock, and works the other half. While it waits for the lock it keeps its server, which idles.
"""

from collections.abc import Generator
from dataclasses import dataclass
from sys import maxsize
from typing import Any

import numpy as np
import simpy

from models.arrays import Bools, Floats, Ints
from models.errors import InputError

Events = Generator[simpy.Event, Any, None]


@dataclass(frozen=True, slots=True)
class Contended:
    """When requests came, were accepted, were first served and left, in seconds, and when a server really worked."""

    arrival_s: Floats
    """(n,) when it came."""
    accepted_s: Floats
    """(n,) when a worker took it from the listener's queue."""
    start_s: Floats
    """(n,) when a server first took it."""
    departure_s: Floats
    """(n,) when all its parts were done."""
    work_from_s: Floats
    """(m,) begin of each stretch of work on one server."""
    work_to_s: Floats
    """(m,) its end."""


def contend(
    arrival_s: Floats,
    demand_s: Floats,
    servers: int,
    *,
    after: Ints | None = None,
    think_s: Floats | None = None,
    blocking_s: Floats | None = None,
    lock_share: float = 0.0,
    limit: int = 0,
    workers: int = 0,
    parts: int = 1,
    plain: Bools | None = None,
) -> Contended:
    """Return what becomes of requests on servers that block, lock, limit or split them.

    Parameters
    ----------
    arrival_s : (n,) array, seconds; ignored where a request follows another
    demand_s : (n,) array, seconds of work, all parts together
    servers : k >= 1
    after, think_s : (n,) arrays: the request that each follows (−1: none), and how long after its departure it comes
    blocking_s : (n,) array: how long every part waits off its server when half its work without the lock is done
    lock_share : share of the work that is done under the one lock, 0..1
    limit : requests admitted at once; 0: no limit
    workers : workers that take requests from the listener; 0: as many as come
    parts : equal parts of a request that run at once
    plain : (n,) array: requests that only take a server for their demand, such as work of the system itself
    """
    n = len(arrival_s)
    follows = np.full(n, -1) if after is None else after
    times = {"demand_s": demand_s, "think_s": think_s, "blocking_s": blocking_s}
    seconds = {name: np.zeros(n) if given is None else given for name, given in times.items()}
    simple = np.zeros(n, np.bool_) if plain is None else plain
    for name, values in {**seconds, "after": follows, "plain": simple}.items():
        if len(values) != n:
            raise InputError(f"{name}: {len(values)} values for {n} requests")
    _check_times({"arrival_s": np.where(follows < 0, arrival_s, 0.0), **seconds}, follows)
    _check_numbers(lock_share, {"servers": servers, "parts": parts}, {"limit": limit, "workers": workers})
    site = _Site(simpy.Environment(), servers, workers or maxsize, limit or maxsize)
    lists = {name: values.tolist() for name, values in seconds.items()}
    shop = _Shop(site, lists, simple.tolist(), lock_share=lock_share, parts=parts)
    for i in np.flatnonzero(follows >= 0).tolist():
        shop.followers.setdefault(int(follows[i]), []).append(i)
    first = np.flatnonzero(follows < 0)
    first = first[np.argsort(arrival_s[first], kind="stable")]
    site.environment.process(shop.source(first.tolist(), arrival_s[first].tolist()))
    site.environment.run()
    return shop.result()


def _check_times(times: dict[str, Floats], follows: Ints) -> None:
    for name, values in times.items():
        if (wrong := np.flatnonzero(~(np.isfinite(values) & (values >= 0)))).size:
            raise InputError(f"{name}: value {wrong[0]} is {values[wrong[0]]}; it must be finite and at least 0")
    if (wrong := np.flatnonzero(follows >= np.arange(len(follows)))).size:
        raise InputError(f"after: request {wrong[0]} follows {follows[wrong[0]]}, which does not come before it")


def _check_numbers(lock_share: float, counts: dict[str, int], limits: dict[str, int]) -> None:
    if not 0 <= lock_share <= 1:
        raise InputError(f"lock_share: {lock_share} is not a share")
    for least, numbers in ((1, counts), (0, limits)):
        for name, number in numbers.items():
            if number < least:
                raise InputError(f"{name}: {number} is below {least}")


class _Site:
    """What requests compete for, and the clock."""

    def __init__(self, environment: simpy.Environment, servers: int, workers: int, limit: int) -> None:
        self.environment = environment
        self.servers = simpy.Resource(environment, servers)
        self.listener = simpy.Resource(environment, workers)
        self.limit = simpy.Resource(environment, limit)
        self.lock = simpy.Resource(environment, 1)


class _Shop:
    """The course of a request, and the notes taken on the way."""

    def __init__(
        self, site: _Site, seconds: dict[str, list[float]], plain: list[bool], *, lock_share: float, parts: int
    ) -> None:
        self.site, self.plain, self.lock_share, self.parts = site, plain, lock_share, parts
        self.demand_s, self.think_s, self.blocking_s = (seconds[name] for name in ("demand_s", "think_s", "blocking_s"))
        self.followers: dict[int, list[int]] = {}
        self.arrival_s, self.accepted_s, self.start_s, self.departure_s = (np.full(len(plain), np.nan) for _ in "1234")
        self.work_from_s: list[float] = []
        self.work_to_s: list[float] = []

    def result(self) -> Contended:
        stamps = (self.arrival_s, self.accepted_s, self.start_s, self.departure_s)
        return Contended(*stamps, np.array(self.work_from_s), np.array(self.work_to_s))

    def source(self, requests: list[int], arrival_s: list[float]) -> Events:
        """Let the requests come that follow no other, one by one: a million waiting processes would be slow."""
        environment = self.site.environment
        for i, at_s in zip(requests, arrival_s, strict=True):
            if at_s > environment.now:
                yield environment.timeout(at_s - environment.now)
            environment.process(self.request(i, at_s))

    def follower(self, i: int) -> Events:
        """Come when its think time is over."""
        yield self.site.environment.timeout(self.think_s[i])
        yield from self.request(i, self.site.environment.now)

    def request(self, i: int, arrival_s: float) -> Events:
        """Be served, and let the requests that follow come."""
        environment = self.site.environment
        self.arrival_s[i] = self.accepted_s[i] = arrival_s
        yield from self._on_server(i, self.demand_s[i], 0.0, 0.0) if self.plain[i] else self._through_listener(i)
        self.departure_s[i] = environment.now
        for follower in self.followers.pop(i, ()):
            environment.process(self.follower(follower))

    def _through_listener(self, i: int) -> Events:
        with self.site.listener.request() as worker:
            yield worker
            self.accepted_s[i] = self.site.environment.now
            with self.site.limit.request() as admission:
                yield admission
                if self.parts == 1:
                    yield from self._part(i)
                else:
                    process = self.site.environment.process
                    yield self.site.environment.all_of([process(self._part(i)) for _ in range(self.parts)])

    def _part(self, i: int) -> Events:
        demand_s = self.demand_s[i] / self.parts
        locked_s = demand_s * self.lock_share
        half_s = (demand_s - locked_s) / 2
        if self.blocking_s[i]:
            yield from self._on_server(i, half_s, 0.0, 0.0)
            yield self.site.environment.timeout(self.blocking_s[i])
            yield from self._on_server(i, 0.0, locked_s, half_s)
        elif locked_s:
            yield from self._on_server(i, half_s, locked_s, half_s)
        else:
            yield from self._on_server(i, demand_s, 0.0, 0.0)

    def _on_server(self, i: int, before_s: float, locked_s: float, after_s: float) -> Events:
        with self.site.servers.request() as server:
            yield server
            self.start_s[i] = np.fmin(self.start_s[i], self.site.environment.now)
            yield from self._work(before_s)
            if locked_s:
                with self.site.lock.request() as lock:
                    yield lock
                    yield from self._work(locked_s)
            yield from self._work(after_s)

    def _work(self, length_s: float) -> Events:
        if length_s:
            self.work_from_s.append(self.site.environment.now)
            yield self.site.environment.timeout(length_s)
            self.work_to_s.append(self.site.environment.now)
