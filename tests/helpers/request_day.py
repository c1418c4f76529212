"""The readable event-driven machine with instances that serve requests one by one."""

import math
from dataclasses import dataclass, field

import numpy as np

from tests.helpers.event_day import CHANGE, EventDay

REQUESTS = 32


@dataclass
class Station:
    """Requests present in order of arrival, each with the work that it still needs; the first ones are served."""

    servers: int
    sharing: bool
    speed: float = 0.0
    since: float = 0.0
    plan: int = 0
    left: dict[int, float] = field(default_factory=dict)

    @property
    def busy(self):
        return min(len(self.left), self.servers)

    def rates(self):
        """Work a second of each request present."""
        if self.sharing:
            return {number: self.speed * self.busy / len(self.left) for number in self.left}
        return {number: self.speed * (place < self.servers) for place, number in enumerate(self.left)}

    def pass_time(self, now):
        for number, rate in self.rates().items():
            self.left[number] -= rate * (now - self.since)
        self.since = now


class RequestDay(EventDay):
    """`departure_s` has when each request of a stay left; NaN: it did not."""

    def __init__(self, day, arm):
        self.stations, self.departure_s = {}, {}
        super().__init__(day, arm)

    def begin(self, hosts, epoch):
        super().begin(hosts, epoch)
        if epoch:
            return
        for host in hosts:
            for stay in self.stays_of(host):
                if self.day.followed[self.day.timeline.job[stay]] and stay in self.day.order:
                    drawn = self.day.requests(int(stay))
                    self.stations[stay] = Station(drawn.servers, drawn.sharing)
                    self.departure_s[stay] = np.full(drawn.work.size, np.nan)
                    for number, (time_s, work) in enumerate(zip(drawn.arrival_s, drawn.work, strict=True)):
                        self.plan(float(time_s), CHANGE, self.come, host, stay, number, float(work))

    def come(self, host, stay, number, work):
        station = self.stations[stay]
        station.pass_time(self.clock.now)
        before, station.left[number] = station.busy, work
        self.change(host, stay, before)

    def go(self, host, stay, number, plan):
        station = self.stations[stay]
        if station.plan == plan and self.day.timeline.end_s[stay] > self.clock.now:
            station.pass_time(self.clock.now)
            before = station.busy
            del station.left[number]
            self.departure_s[stay][number] = self.clock.now
            self.change(host, stay, before)

    def change(self, host, stay, before):
        """Solve the machine again if another number of servers works, and plan who leaves next."""
        if self.stations[stay].busy != before:
            self.note(host, REQUESTS)
        self.look_ahead(host, stay)

    def look_ahead(self, host, stay):
        station = self.stations[stay]
        station.plan += 1
        after = {number: station.left[number] / rate for number, rate in station.rates().items() if rate > 0.0}
        if after:
            number = min(after, key=after.get)
            self.plan(max(0.0, after[number]), CHANGE, self.go, host, stay, number, station.plan)

    def load_up(self, host, platform, idle_s):
        super().load_up(host, platform, idle_s)
        for one in host.here:
            if one.stay in self.stations:
                one.use, one.throttled = float(self.stations[one.stay].busy), 0.0

    def solve(self, host, platform, newcomers, look):
        super().solve(host, platform, newcomers, look)
        for one in host.here:
            if station := self.stations.get(one.stay):
                station.pass_time(self.clock.now)
                station.speed = one.frequency / one.cpi / one.instructions
                self.look_ahead(host, one.stay)
                assert math.isfinite(station.speed)
