"""The event-driven machine once more, slow and readable: SimPy keeps the time, `ReferenceDay` has the physics.

Everything that has a time is put into SimPy's queue at the start: epochs, steps of load, stays that begin and end, and
every tick of the governors. What happens to a machine at one moment is noted, and done once, in this order: residents
leave, others enter; load steps; the governor looks; the machine is solved.
"""

import math

import simpy

from sim.queues.readable import Moment
from tests.helpers.reference_day import ReferenceDay, clocked, noise, scatter, top_hz, wish

RESIDENTS, CONDITIONS, LOAD, LOOK, CLOCK = 1, 2, 4, 8, 16
CHANGE, TICK, DO = 1, 2, 3
"""Order at one moment: what changes is noted, then governors tick, then it is done."""


class EventDay(ReferenceDay):
    """`log` has (time, machine, what) of every event; the rest is as in `ReferenceDay`, with means over epochs."""

    def __init__(self, day, arm):
        self.log = []
        super().__init__(day, arm)

    def run_domain(self, hosts):
        world, timeline, steps = self.world, self.day.timeline, self.world.steps
        self.clock, self.allowance = simpy.Environment(), 1.0
        for host in hosts:
            host.what, host.since, host.step, host.fresh, host.state = 0, 0.0, 0, True, 0.0
            host.epoch, host.capped, host.rates, host.sheet, host.energy_j = 0, False, (0.0,) * 3, None, 0.0
            host.seen = 0.0
        for epoch in range(world.epochs):
            self.plan(epoch * world.epoch_s, CHANGE, self.begin, hosts, epoch)
        for host in hosts:
            for stay in (timeline.machine == host.number).nonzero()[0]:
                if timeline.end_s[stay] > timeline.start_s[stay]:
                    for time_s in (timeline.start_s[stay], timeline.end_s[stay]):
                        self.plan(float(time_s), CHANGE, self.note, host, RESIDENTS)
            if steps.load_log_sd:
                for step in range(1, math.ceil(world.horizon_s / steps.load_s)):
                    self.plan(step * steps.load_s, CHANGE, self.advance, host)
            for tick in range(math.ceil(world.horizon_s / steps.governor_s)):
                self.plan(tick * steps.governor_s, TICK, self.tick, host)
        self.clock.run(until=world.horizon_s)
        for host in hosts:
            self.integrate(host, world.horizon_s)

    def plan(self, time_s, order, act, *how):
        Moment(self.clock, time_s, order, lambda: act(*how))

    def note(self, host, what):
        """Remember what happens to a machine now; it is done at the end of the moment."""
        if not host.what:
            self.integrate(host, self.clock.now)
            Moment(self.clock, 0.0, DO, lambda: self.happen(host))
        host.what |= what

    def begin(self, hosts, epoch):
        """Begin an epoch of a power domain: its allowance follows what it drew in the one before."""
        for host in hosts:
            self.integrate(host, self.clock.now)
        if epoch:
            peak_w = sum(self.peak_power_w(self.platform(host.number, epoch - 1)) for host in hosts)
            budget_w = self.world.power.domain_budget_share * peak_w
            power_w = sum(host.energy_j for host in hosts) / self.world.epoch_s
            self.allowance = min(1.0, max(0.5, self.allowance + 0.5 * (budget_w - power_w) / budget_w))
        for host in hosts:
            host.epoch, host.energy_j = epoch, 0.0
            self.note(host, CONDITIONS)

    def advance(self, host):
        """Take the next step of load; an empty machine takes it when something else happens."""
        if host.here:
            self.note(host, LOAD)

    def stays_of(self, host):
        return (self.day.timeline.machine == host.number).nonzero()[0]

    def starts_now(self, stay):
        timeline = self.day.timeline
        return timeline.start_s[stay] == self.clock.now < timeline.end_s[stay]

    def tick(self, host):
        """Let the governor look; where nothing has happened since it looked last, it must see what it saw."""
        if host.fresh:
            self.note(host, LOOK)
        if not host.what:
            assert not self.wishes_others(host)

    def wishes_others(self, host):
        """Whether the governor, which looks, wishes other clocks than those that are; they stay."""
        platform, governor = self.platform(host.number, host.epoch), self.governor(host.number, host.epoch)
        self.see(host, host.rates[1])
        clocks, most_hz = [one.frequency for one in host.here], top_hz(platform, *host.crowd, self.world.power.turbo)
        limit_hz = host.state if host.capped else most_hz
        state = wish(host.here, platform, governor, limit_hz=limit_hz, most_hz=most_hz, busy=host.seen)
        wished = [one.frequency for one in host.here]
        for one, frequency in zip(host.here, clocks, strict=True):
            one.frequency = frequency
        return (wished, state) != (clocks, host.state)

    def see(self, host, crowding):
        host.seen = crowding
        for one in host.here:
            one.waited = one.stalled

    def happen(self, host):
        what, host.what, now, timeline = host.what, 0, self.clock.now, self.day.timeline
        platform, before = self.platform(host.number, host.epoch), host.state
        look, host.sheet = bool(what & LOOK) or platform is not host.sheet, platform
        if self.step_now() > host.step:
            host.step, what = self.step_now(), what | LOAD
        if what == LOOK:
            host.fresh = False
            if not self.wishes_others(host):
                self.log.append((now, host.number, LOOK))
                return
            what |= CLOCK
        newcomers = []
        if what & (RESIDENTS | CONDITIONS):
            host.here = [one for one in host.here if timeline.end_s[one.stay] > now]
            newcomers = [self.arrive(stay) for stay in self.stays_of(host) if self.starts_now(stay)]
        clocks = [one.frequency for one in host.here]
        old, host.here = len(host.here), host.here + newcomers
        self.give_code(host, what, newcomers)
        if what & CONDITIONS:
            self.wander(host, host.epoch)
        self.solve(host, platform, newcomers, look)
        changed = clocks != [one.frequency for one in host.here[:old]] or before != host.state
        what |= (LOOK if look else 0) | (CLOCK if changed else 0)
        self.log.append((now, host.number, what))
        host.fresh = True

    def step_now(self):
        steps = self.world.steps
        return math.floor(self.clock.now / steps.load_s) if steps.load_log_sd else 0

    def give_code(self, host, what, newcomers):
        if self.arm.switched is not None:
            host.here = [self.coded(one, self.acts(host.number, host.epoch)) for one in host.here]
            return
        for one in host.here if what & CONDITIONS else newcomers:
            if host.epoch == max(self.arm.stay_from[one.stay], self.day.timeline.start_epoch[one.stay]):
                self.renew(one)

    def load_factor(self, one, step):
        """Lognormal but for its normal draw, which is the sum of four uniforms; its mean is 1."""
        sd = self.world.steps.load_log_sd
        if not sd:
            return 1.0
        half = sd * math.sqrt(3) / 2
        return math.exp(sd * noise(scatter(one.own_key ^ 0xA0761D6478BD642F), step)) / (math.sinh(half) / half) ** 4

    def load_up(self, host, platform, idle_s):
        for one in host.here:
            if one.cpi is None:
                one.frequency = platform.max_frequency_hz
                one.cpi = one.core_now + self.expected(one, platform.llc_bytes / len(host.here), idle_s)
                one.stalled = one.stall
            one.load_factor = self.load_factor(one, host.step)
            self.want(one, host.number, host.epoch)

    def solve(self, host, platform, newcomers, look):
        day, world, number, epoch = self.day, self.world, host.number, host.epoch
        governor = self.governor(number, epoch)
        idle_s, bandwidth, attainable = self.memory(number, platform)
        if world.interference.sockets:
            self.settle(host, platform)
        self.behave(host, platform, epoch)
        self.load_up(host, platform, idle_s)
        crowding, sibling = self.crowd(host.here, platform, [one.stalled for one in host.here])
        if look:
            self.see(host, crowding)
        memory = idle_s, attainable, platform.llc_bytes
        cap_w = world.power.cap_share * self.peak_power_w(platform) * self.allowance
        given = {"silicon": day.machines.power_factor[number], "cap_w": cap_w, "sibling": sibling}
        given |= {"seen": host.seen, "turbo": world.power.turbo}
        solved = clocked(host.here, platform, governor, **given, solved=lambda: self.solved(host, memory))
        power_w, host.state, host.capped, (cpis, misses, shares) = solved
        for one, share, cpi in zip(host.here, shares, cpis, strict=True):
            one.share, one.cpi = share, cpi
            one.stalled = one.stall
        host.crowd = crowding, sibling
        host.rates = power_w, crowding, misses * 64 * 1.3 / bandwidth

    def integrate(self, host, now):
        """Add the time since the machine's last event: rates times seconds."""
        time_s, host.since, epoch = now - host.since, now, host.epoch
        if time_s == 0.0:
            return
        power_w, crowding, traffic = host.rates
        window, part = self.window(epoch), time_s / self.world.epoch_s
        for one in host.here:
            cycles = one.use * one.frequency * time_s
            instructions = cycles / one.cpi
            useful = 1 - self.day.jobs.spin_share[one.job] * crowding
            row = [cycles, instructions, instructions * one.mpi(one.share), one.use * time_s]
            row += [instructions * useful / one.instructions, instructions * one.core_now, one.queued * time_s]
            row.append(one.throttled * time_s)
            self.add(self.stay_epochs.setdefault((one.stay, epoch), [0.0] * 5), [*row[:4], row[5]])
            if window is not None:
                self.add(self.counters[one.stay, window], row)
        means = self.machine_epochs.setdefault((host.number, epoch), [0.0] * 4)
        self.add(means, [part * rate for rate in (host.state, power_w, crowding, traffic)])
        host.energy_j += power_w * time_s
        self.epoch_energy_j[epoch] += power_w * time_s
        if window is not None:
            self.energy_j[host.number, window] += power_w * time_s
            self.capped[host.number, window] += part * host.capped

    @staticmethod
    def add(total, row):
        for k, value in enumerate(row):
            total[k] += value
