"""The readable event-driven machine with instances that serve requests one by one: queues of `sim.queues.readable`."""

import math
from functools import partial

import numpy as np

from sim.queues.readable import ARRIVAL, SHARES, Job, ReadableStation
from tests.helpers.event_day import EventDay

REQUESTS = 32


class Station(ReadableStation):
    """Servers whose speed the machine says; it is told whenever another number of them works."""

    def __init__(self, clock, drawn, changed):
        draws = iter([] if drawn.choice is None else drawn.choice.tolist())
        super().__init__(
            clock, SHARES[drawn.policy], [1.0] * drawn.servers, [0.0] * drawn.servers, drawn.quantum_s, draws
        )
        self.changed, self.busy = changed, 0

    def look(self):
        super().look()
        busy, self.busy = self.busy, min(len(self.jobs), len(self.speeds))
        if self.busy != busy:
            self.changed()

    def run_at(self, speed):
        self.factor[:] = [speed] * len(self.factor)
        self.look()


class RequestDay(EventDay):
    """`departure_s` gives when each request of a stay left; NaN: it did not."""

    def __init__(self, day, arm):
        self.stations, self.requests = {}, {}
        super().__init__(day, arm)

    def departure_s(self, stay):
        left = np.array([job.departure_s for job in self.requests[stay]])
        return np.where(left < self.day.timeline.end_s[stay], left, np.nan)

    def begin(self, hosts, epoch):
        super().begin(hosts, epoch)
        if epoch:
            return
        for host in hosts:
            for stay in self.stays_of(host):
                if self.day.followed[self.day.timeline.job[stay]] and stay in self.day.order:
                    drawn = self.day.requests(int(stay))
                    station = self.stations[stay] = Station(self.clock, drawn, partial(self.change, host, stay))
                    priority = np.zeros(drawn.work.size, int) if drawn.priority is None else drawn.priority
                    pairs = zip(drawn.work.tolist(), priority.tolist(), strict=True)
                    self.requests[stay] = [Job(work, rank) for work, rank in pairs]
                    for number, time_s in enumerate(drawn.arrival_s.tolist()):
                        self.plan(time_s, ARRIVAL + number, station.arrive, self.requests[stay][number])

    def change(self, host, stay):
        """Solve the machine again, as another number of servers works."""
        if self.day.timeline.end_s[stay] > self.clock.now:
            self.note(host, REQUESTS)

    def load_up(self, host, platform, idle_s):
        super().load_up(host, platform, idle_s)
        for one in host.here:
            if one.stay in self.stations:
                one.use, one.throttled = float(self.stations[one.stay].busy), 0.0

    def solve(self, host, platform, newcomers, look):
        super().solve(host, platform, newcomers, look)
        for one in host.here:
            if station := self.stations.get(one.stay):
                speed = one.frequency / one.cpi / one.instructions
                assert math.isfinite(speed)
                station.run_at(speed)
