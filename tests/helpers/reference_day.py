"""A fleet's day once more, slow and readable: plain Python from what is documented, sharing no code with the kernel.

Where the kernel iterates, this solves: the interference fixed point by nested root finding.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby

import numpy as np
from scipy.optimize import brentq
from scipy.optimize import root as root_of_all
from scipy.stats import norm

from models.fleet.inventory import REFERENCE_SHARE_BYTES
from models.fleet.processors import processor
from models.platforms import PLATFORMS
from models.randomness import key

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15


def scatter(number):
    """splitmix64's finaliser."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) % WORD
    return number ^ (number >> 31)


def noise(own_key, epoch):
    """Four 16-bit uniforms, standardised: mean 0, variance 1 (up to the grain of 2⁻¹⁶)."""
    word = scatter((own_key + epoch * GOLDEN) % WORD)
    parts = [(word >> shift) % 2**16 for shift in (0, 16, 32, 48)]
    return sum((part + 0.5) / 2**16 - 0.5 for part in parts) * math.sqrt(3.0)


def normal(own_key, counter):
    """Box and Muller's cosine branch from the words 2c + 1 and 2c + 2."""
    first, second = (scatter((own_key + (2 * counter + k) * GOLDEN) % WORD) >> 11 for k in (1, 2))
    return math.sqrt(-2 * math.log((first + 0.5) / 2**53)) * math.cos(2 * math.pi * second / 2**53)


def uniform(own_key, counter):
    """A number from 0 to 1 of 53 bits."""
    return ((scatter(own_key ^ scatter(counter + 1)) >> 11) + 0.5) / 2**53


def latency_factor(use):
    """The measured curve over the attainable bandwidth, and a steep line where nothing more is served."""
    measured = min(use, 0.97)
    return 1 + 0.30 * measured + 0.67 * measured**4.4 + 20 * (use - measured)


def missing(working_set, share):
    """The part of two working sets, one a fifth of the other, that a share of the cache does not hold."""
    if share == math.inf:
        return 0.0
    return (1 / (1 + (share / working_set) ** 2) + 1 / (1 + (share / (0.2 * working_set)) ** 2)) / 2


@cache
def missing_usually(working_set):
    return missing(working_set, REFERENCE_SHARE_BYTES)


@dataclass
class Instance:
    """One resident: what it is, and what it does in the epoch at hand."""

    core_cpi: float
    accesses: float
    working_set: float
    streaming: float
    overlap: float
    prefetched: float = 0.0
    job: int = 0
    stay: int = 0
    own_key: int = 0
    end: int = 0
    wander: float = 0.0
    instructions: float = 1.0
    network_s: float = 0.0
    use: float = 0.0
    share: float = 0.0
    frequency: float = 0.0
    cpi: float | None = None
    core_now: float = 0.0
    access_now: float = 1.0
    overlap_here: float = 1.0
    places: tuple[int, ...] = ()
    remote: float = 0.0
    load_factor: float = 1.0
    waited: float = 0.0
    stalled: float = 0.0
    queued: float = 0.0
    throttled: float = 0.0

    def mpi(self, share):
        """Misses per instruction: they follow the part of two working sets that a share does not hold."""
        here, reference = missing(self.working_set, share), missing_usually(self.working_set)
        cacheable = (1 - self.streaming) * (here - reference) / max(reference, 0.1)
        return self.access_now * self.accesses * (1 + cacheable)

    critical: bool = True

    def cpi_at(self, share, latency_s):
        waits = self.mpi(share) - self.prefetched * self.mpi(math.inf)
        return self.core_now + waits / (self.overlap * self.overlap_here) * latency_s * self.frequency

    def miss_rate(self, share, latency_s):
        return self.use * self.frequency / self.cpi_at(share, latency_s) * self.mpi(share)

    def highest_rate(self, latency_s):
        """With no cache, or where so much is prefetched that fewer misses let more of them come, with all of it."""
        return max(self.miss_rate(share, latency_s) for share in (0.0, math.inf))

    @property
    def stall(self):
        return 1 - self.core_now / self.cpi


def root(function, low, high):
    """Where a falling function crosses zero between two points, or the end nearest to that."""
    if function(low) <= 0:
        return low
    if function(high) >= 0:
        return high
    return brentq(function, low, high, xtol=1e-300, rtol=4e-15, maxiter=500)


def share_under(resident, pressure, latency_s):
    """Bytes of cache at which a resident misses `pressure` times per second and byte."""
    most = resident.highest_rate(latency_s) / pressure
    return root(lambda share: resident.miss_rate(share, latency_s) - pressure * share, 0.0, most)


def shares_at(residents, llc_bytes, latency_s):
    """Cache in proportion to miss rate: the pressure at which the shares fill the cache."""
    most = sum(one.highest_rate(latency_s) for one in residents) / llc_bytes
    if most == 0:
        return [0.0 for _ in residents]
    pressure = root(
        lambda pressure: sum(share_under(one, pressure, latency_s) for one in residents) - llc_bytes, most * 1e-6, most
    )
    return [share_under(one, pressure, latency_s) for one in residents]


def fixed_point(residents, idle_s, bandwidth, llc_bytes, *, share_llc=True, share_bandwidth=True):
    """Return latency, misses per second and shares at which caches, latency and CPI agree."""

    def shares(latency_s):
        return shares_at(residents, llc_bytes, latency_s) if share_llc else [one.share for one in residents]

    def misses(latency_s):
        return sum(one.miss_rate(share, latency_s) for one, share in zip(residents, shares(latency_s), strict=True))

    def gap(latency_s):
        return idle_s * latency_factor(misses(latency_s) * 64 * 1.3 / bandwidth) - latency_s

    latency_s = root(gap, idle_s, idle_s * 1e3) if share_bandwidth and residents else idle_s
    return latency_s, misses(latency_s), shares(latency_s)


@dataclass(frozen=True)
class Division:
    """How many last-level caches and memories a machine has, and what another memory costs relative to one's own."""

    slices: int = 1
    nodes: int = 1
    latency_ratio: float = 1.0
    bandwidth_ratio: float = 1.0

    def node(self, place):
        return place * self.nodes // self.slices


def divided_fixed_point(
    residents, idle_s, bandwidth, llc_bytes, division, *, share_llc=True, share_bandwidth=True, ways=1.0
):
    """The same on a machine of several caches and memories: the root of all equations at once (Powell's hybrid)."""
    nodes = range(division.nodes)
    homes = [division.node(one.places[0]) for one in residents]

    def latency_of(one, home, latency_s):
        others = [latency_s[node] * division.latency_ratio for node in nodes if node != home]
        return latency_s[home] + (one.remote * (sum(others) / len(others) - latency_s[home]) if others else 0.0)

    def behaviour(guess):
        latency_s, shares = guess[: division.nodes] * idle_s, guess[division.nodes :] * llc_bytes
        if not share_llc:
            shares = [one.share for one in residents]
        seen = [latency_of(one, home, latency_s) for one, home in zip(residents, homes, strict=True)]
        rates = [one.miss_rate(share, s) for one, share, s in zip(residents, shares, seen, strict=True)]
        return latency_s, shares, seen, rates

    def wanted_latency(node, rates):
        together = list(zip(residents, homes, rates, strict=True))
        own = sum(rate * (1 - one.remote) for one, home, rate in together if home == node)
        reached = sum(rate * one.remote / (division.nodes - 1) for one, home, rate in together if home != node)
        memory = (own + reached) * 64 * 1.3 / (bandwidth / division.nodes)
        links = reached * 64 * 1.3 / (bandwidth / division.nodes * division.bandwidth_ratio)
        return latency_factor(max(memory, links)) if share_bandwidth else 1.0

    def gaps(guess):
        latency_s, shares, _, rates = behaviour(guess)
        on, part = defaultdict(float), {}
        for one, rate in zip(residents, rates, strict=True):
            for place in one.places:
                on[place, one.critical] += rate / len(one.places)
        for place in range(division.slices):
            total = on[place, True] + on[place, False]
            part[place, False] = min(ways, on[place, False] / total) if total else 0.0
            part[place, True] = 1 - part[place, False]
        wanted = [
            sum(
                part[place, one.critical] * rate / len(one.places) / on[place, one.critical]
                for place in one.places
                if on[place, one.critical]
            )
            / division.slices
            for one, rate in zip(residents, rates, strict=True)
        ]
        held = [share / llc_bytes for share in shares]
        misses = [wanted_latency(node, rates) - latency_s[node] / idle_s for node in nodes]
        return np.array(misses + [w - h if share_llc else 0.0 for w, h in zip(wanted, held, strict=True)])

    guess = np.concatenate([np.ones(division.nodes), np.full(len(residents), 1 / max(1, len(residents)))])
    for _ in range(4000):  # so close that the root is the one that is meant
        step = gaps(guess)
        guess = guess + 0.2 * step
        if abs(step).max() < 1e-6:
            break
    solved = root_of_all(gaps, guess, tol=1e-15).x if share_llc or share_bandwidth else guess
    _, shares, seen, rates = behaviour(solved)
    return seen, sum(rates), shares


def top_hz(platform, busy, sibling, turbo):
    """The highest clock with so many cores active."""
    if not turbo:
        return platform.max_frequency_hz
    active = min(1.0, platform.threads_per_core * busy * (1 - sibling / 2))
    two = 2 * platform.sockets / platform.cores
    ramp = min(1.0, max(0.0, (0.6 - active) / (0.6 - two)))
    above_hz = max(0.0, processor(platform.name, {}).single_core_hz - platform.max_frequency_hz)
    return platform.max_frequency_hz + math.floor(ramp * above_hz / platform.frequency_step_hz + 1e-9) * (
        platform.frequency_step_hz
    )


def wish(residents, platform, governor, *, limit_hz, most_hz, busy):
    """Set everybody's clock as the governor wishes, which saw so many threads busy, and how much residents waited."""
    state = limit_hz
    if governor.policy == "ondemand":
        served_hz = max(platform.min_frequency_hz, most_hz * busy / governor.ondemand_threshold)
        state = min(limit_hz, most_hz, served_hz)
    slow = max(state - governor.step_down_hz, platform.min_frequency_hz)
    for one in residents:
        stalls = governor.policy == "stall_aware" and one.waited > governor.stall_threshold
        one.frequency = slow if stalls else state
    return state


def fair_level(wanted, free):
    """Threads for each of the quota at which a class fills the free threads; infinite where all get what they want."""
    if sum(want for want, _ in wanted) <= free:
        return math.inf
    return brentq(
        lambda up: sum(min(want, up * quota) for want, quota in wanted) - free, 0.0, 1.0, rtol=4e-15, xtol=1e-300
    )


def surplus_of(mean, quota, threads):
    """Mean number of runnable threads above those of the machine: as many run as a normal variable says."""
    if quota <= threads or not mean:
        return 0.0
    runnable = norm(mean, math.sqrt(mean * (1 - mean / quota)))
    return runnable.expect(lambda number: number - threads, lb=threads, epsabs=1e-13, epsrel=1e-12)


def clocked(residents, platform, governor, *, silicon, cap_w, sibling, solved, turbo, seen=None, throttle=1.0):
    """Clocks at which processors keep their TDP and the machine its cap: wished ones, or those of the root of power."""
    its, tdp_w = processor(platform.name, {}), platform.tdp_w
    shares = its.shares
    busy = sum(one.use for one in residents) / platform.vcpus
    pairs = platform.threads_per_core > 1
    most_hz = top_hz(platform, busy, sibling, turbo)

    def run(limit_hz):
        state = wish(
            residents, platform, governor, limit_hz=limit_hz, most_hz=most_hz, busy=busy if seen is None else seen
        )
        solution = solved()
        cores = 0.0
        for one, cpi in zip(residents, solution[0], strict=True):
            clock = one.frequency / platform.max_frequency_hz
            work = 1 - 0.55 * (1 - one.core_now / cpi)
            of_core = (0.77 * (1 - sibling) + 0.5 * sibling) if pairs else 1.0
            cores += one.use * of_core / platform.cores * (0.6 + 0.4 * clock) ** 2 * (0.2 + 0.8 * clock * work)
        bytes_per_s = solution[1] * 64 * 1.3
        all_asleep = (1 - busy) ** (platform.vcpus / platform.sockets)
        above = silicon * (tdp_w * (shares.awake * (1 - all_asleep) + shares.cores * cores) + 1e-10 * bytes_per_s)
        fans = 0.2 * tdp_w * (above / tdp_w) ** 3
        power_w = platform.idle_power_w + 1.1 * (above + its.memory_j_per_byte * bytes_per_s) + fans
        return power_w, state, max(shares.asleep + above / tdp_w, power_w / cap_w) - 1, solution

    power_w, state, over, solution = run(max(platform.min_frequency_hz, most_hz / throttle))
    if over <= 0:
        return power_w, state, False, solution
    low_hz = platform.min_frequency_hz
    if run(low_hz)[2] < 0:
        low_hz = brentq(lambda limit_hz: run(limit_hz)[2], low_hz, state, rtol=4e-15, xtol=1e-300)
    power_w, state, _, solution = run(low_hz)
    return power_w, state, True, solution


@dataclass
class Host:
    """A machine from epoch to epoch."""

    number: int
    here: list = field(default_factory=list)
    division: Division | None = None
    wander: float = 0.0


class ReferenceDay:
    """Counters by (stay, window) and (stay, epoch), machines by (machine, window) and (machine, epoch), epoch sums."""

    def __init__(self, day, arm):
        self.day, self.arm, self.world = day, arm, day.world
        self.counters = defaultdict(lambda: [0.0] * 8)
        self.stay_epochs, self.machine_epochs = {}, {}
        self.energy_j, self.capped = defaultdict(float), defaultdict(float)
        self.epoch_energy_j = [0.0] * self.world.epochs
        self.key = key(f"behaviour {self.world.seed}")
        self.rho = math.exp(-self.world.epoch_s / 1800.0)
        domain_of = day.machines.power_domain.tolist()
        for _, machines in groupby(range(day.machines.count), key=domain_of.__getitem__):
            self.run_domain([Host(number) for number in machines])

    def run_domain(self, hosts):
        allowance = 1.0
        for epoch in range(self.world.epochs):
            power_w = [self.run_machine(host, epoch, allowance) for host in hosts]
            budget_w = self.world.power.domain_budget_share * sum(
                self.peak_power_w(self.platform(host.number, epoch)) for host in hosts
            )
            allowance += 0.5 * (budget_w - sum(power_w)) / budget_w
            allowance = min(1.0, max(0.5, allowance))

    def peak_power_w(self, platform):
        shares = processor(platform.name, {}).shares
        more = shares.awake + shares.cores
        return platform.idle_power_w + platform.tdp_w * (1.1 * more + 0.2 * more**3)

    def acts(self, machine, epoch):
        if self.arm.switched is not None:
            return bool(self.arm.switched[machine, epoch])
        return epoch >= self.arm.machine_from[machine]

    def switches(self, machine, epoch):
        if self.arm.switched is None or epoch == 0:
            return False
        return self.acts(machine, epoch) != self.acts(machine, epoch - 1)

    def platform(self, machine, epoch):
        name = self.day.machines.platform_names[self.day.machines.platform[machine]]
        feature = self.world.feature
        if feature and self.acts(machine, epoch):
            name = feature.platforms.get(name, name)
        return PLATFORMS[name]

    def governor(self, machine, epoch):
        feature = self.world.feature
        if feature and feature.governor and self.acts(machine, epoch):
            return feature.governor
        return self.world.power.governor

    def window(self, epoch):
        now_s = (epoch + 0.5) * self.world.epoch_s
        return next((k for k, w in enumerate(self.world.windows) if w.start_s < now_s < w.end_s), None)

    def run_machine(self, host, epoch, allowance):
        day, world, number = self.day, self.world, host.number
        platform, governor = self.platform(number, epoch), self.governor(number, epoch)
        self.turn_over(host, epoch)
        if world.interference.sockets:
            self.settle(host, platform)
        slower, throttle = self.incidents(number, epoch)
        idle_s, bandwidth, attainable = self.memory(number, platform, slower)
        self.wander(host, epoch)
        self.behave(host, platform, epoch)
        for one in host.here:
            if one.cpi is None:
                one.frequency = platform.max_frequency_hz
                one.cpi = one.core_now + self.expected(one, platform.llc_bytes / len(host.here), idle_s)
                one.waited = one.stall
            self.want(one, number, epoch)
        crowding, sibling = self.crowd(host.here, platform, [one.waited for one in host.here])

        def solved():
            return self.solved(host, (idle_s, attainable, platform.llc_bytes))

        cap_w = world.power.cap_share * self.peak_power_w(platform) * allowance
        silicon = day.machines.power_factor[number]
        given = {"silicon": silicon, "cap_w": cap_w, "sibling": sibling, "solved": solved, "turbo": world.power.turbo}
        given["throttle"] = throttle
        states, did = self.looked_at(host, governor, lambda: clocked(host.here, platform, governor, **given))
        for one, parts in zip(host.here, zip(*did, strict=True), strict=True):
            self.count(one, parts, epoch, crowding)
        power_w, state, capped, misses = (sum(values) / len(states) for values in zip(*states, strict=True))
        self.machine_epochs[number, epoch] = state, power_w, crowding, misses * 64 * 1.3 / bandwidth
        self.epoch_energy_j[epoch] += power_w * world.epoch_s
        if self.window(epoch) is not None:
            self.energy_j[number, self.window(epoch)] += power_w * world.epoch_s
            self.capped[number, self.window(epoch)] += capped
        return power_w

    def looked_at(self, host, governor, run):
        """States between which a governor's looks alternate, or that in which they end, and what residents do there."""
        often = governor.policy == "stall_aware" and self.world.steps.governor_s < self.world.epoch_s
        seen, states, did = [], [], []
        for _ in range(9 if often else 1):
            seen.append([one.waited > governor.stall_threshold for one in host.here])
            if seen[-1:] == seen[-2:-1]:
                return states[-1:], did[-1:]
            if seen[-1:] == seen[-3:-2]:
                break
            power_w, state, capped, (cpis, misses, shares) = run()
            states.append((power_w, state, capped, misses))
            for one, one.cpi in zip(host.here, cpis, strict=True):
                one.waited = one.stall
            did.append([(one.frequency, one.cpi, share) for one, share in zip(host.here, shares, strict=True)])
        return states[-2:], did[-2:]

    def incidents(self, machine, epoch):
        """By how much memory is slower and the highest clock lower: the product over those under way."""
        here = [spell for spell in self.day.spells if spell["machine"] == machine]
        going = [spell for spell in here if spell["start"] <= epoch < spell["end"]]
        return [math.prod(spell["factor"] for spell in going if spell["resource"] == what) for what in (0, 1)]

    def memory(self, number, platform, slower=1.0):
        """Idle latency of a machine's memory, its bandwidth, and what of it can be attained."""
        idle_s = platform.memory_latency_s * self.day.machines.latency_factor[number] * slower
        bandwidth = platform.memory_bandwidth_bytes_per_s * self.day.machines.bandwidth_factor[number]
        least = {"naples_7601", "rome_7742", "milan_7763"}
        return idle_s, bandwidth, bandwidth * (0.67 if platform.name in least else 0.75)

    def crowd(self, here, platform, stalls):
        """Give residents threads, a part of the cache if it is divided, and siblings; return busy shares of both.

        `stalls` has the share of cycles in which each of them waited for memory.
        """
        self.ration(here, platform.vcpus)
        busy, jobs = sum(one.use for one in here), self.day.jobs
        crowding = busy / platform.vcpus
        sibling = self.sibling(platform, crowding)
        waited = sum(one.use * stall for one, stall in zip(here, stalls, strict=True)) / busy if busy else 0.5
        beside = sibling * (1 + self.world.interference.sibling_relief * (0.5 - waited))
        for one in here:
            one.core_now *= 1 + jobs.smt_slowdown[one.job] * beside
            one.share = platform.llc_bytes * jobs.instance_quota_vcpu[one.job] / platform.vcpus
        return crowding, sibling

    def sibling(self, platform, crowding):
        """The chance that the other thread of a core is busy; with more busy threads than cores some must be."""
        if not self.world.interference.smt or platform.threads_per_core == 1:
            return 0.0
        least = 2 - 1 / crowding if crowding > 0.5 else 0.0
        return max(crowding**2, least)

    def solved(self, host, memory):
        """CPI of the residents at their clocks, misses per second, and cache shares."""
        physics = self.world.interference
        switches = {"share_llc": physics.llc, "share_bandwidth": physics.bandwidth}
        if physics.sockets and host.here:
            ways = physics.best_effort_ways
            seen_s, misses, shares = divided_fixed_point(host.here, *memory, host.division, **switches, ways=ways)
        else:
            latency_s, misses, shares = fixed_point(host.here, *memory, **switches)
            seen_s = [latency_s for _ in host.here]
        return [one.cpi_at(share, s) for one, share, s in zip(host.here, shares, seen_s, strict=True)], misses, shares

    def turn_over(self, host, epoch):
        timeline = self.day.timeline
        host.here = [one for one in host.here if one.end > epoch]
        for stay in range(timeline.job.size):
            starts = timeline.start_epoch[stay] == epoch < timeline.end_epoch[stay]
            if timeline.machine[stay] == host.number and starts:
                host.here.append(self.arrive(stay))
        if self.arm.switched is not None:
            host.here = [self.coded(one, self.acts(host.number, epoch)) for one in host.here]
            return
        for one in host.here:
            if epoch == max(self.arm.stay_from[one.stay], timeline.start_epoch[one.stay]):
                self.renew(one)

    def settle(self, host, platform):
        """Newcomers live on the slices with least quota, as few as they need, within one node where that can be."""
        nodes = processor(platform.name, {}).memory_nodes(platform.sockets)
        slices = platform.sockets * -(-(platform.cores // platform.sockets) // platform.caches[-1].cores)
        division = Division(slices, nodes.count, nodes.latency_ratio, nodes.bandwidth_ratio)
        if host.division is None or (host.division.slices, host.division.nodes) != (slices, nodes.count):
            for one in host.here:
                one.places = ()
        host.division = division
        quota = self.day.jobs.instance_quota_vcpu
        load = [sum(quota[one.job] / len(one.places) for one in host.here if k in one.places) for k in range(slices)]
        for one in sorted(host.here, key=lambda one: (one.own_key + WORD // 2) % WORD):
            if one.places:
                continue
            needed = min(slices, max(1, math.ceil(quota[one.job] * slices / platform.vcpus - 1e-9)))
            runs = [range(first, first + needed) for first in range(slices - needed + 1)]
            within = [run for run in runs if division.node(run[0]) == division.node(run[-1])]
            runs = within or runs
            least = min(sum(load[k] for k in run) for run in runs)
            one.places = tuple(next(run for run in runs if sum(load[k] for k in run) <= least + 1e-9))
            for k in one.places:
                load[k] += quota[one.job] / needed
            drawn = 2 * self.world.interference.remote_share * uniform(one.own_key, one.job)
            one.remote = min(1.0, max(drawn, 1 - slices / nodes.count / needed)) if nodes.count > 1 else 0.0

    def arrive(self, stay):
        timeline, jobs = self.day.timeline, self.day.jobs
        job = int(timeline.job[stay])
        shard_key = scatter((scatter((self.key + job) % WORD) + int(timeline.shard[stay])) % WORD)
        own_key = scatter((scatter(self.key ^ 0x5851F42D4C957F2D) + int(timeline.instance[stay])) % WORD)
        spread = jobs.input_log_sd[job]
        core, access = (math.exp(spread * normal(shard_key, k) - spread**2 / 2) for k in (0, 1))
        return Instance(
            core_cpi=jobs.core_cpi[job] * core,
            accesses=jobs.memory_accesses_per_instruction[job] * access,
            working_set=jobs.working_set_bytes[job],
            streaming=jobs.streaming_share[job],
            overlap=jobs.overlap[job],
            prefetched=jobs.prefetched_share[job],
            job=job,
            stay=stay,
            own_key=own_key,
            end=int(timeline.end_epoch[stay]),
            wander=normal(scatter(own_key), int(timeline.start_epoch[stay])),
            instructions=jobs.instructions_per_request[job],
            network_s=jobs.network_s_per_request[job],
            critical=bool(jobs.latency_critical[job]),
        )

    def coded(self, one, new):
        """The same resident with the traits of old or new code."""
        fresh = self.arrive(one.stay)
        if new:
            self.renew(fresh)
        traits = ("core_cpi", "accesses", "instructions", "network_s")
        return replace(one, **{name: getattr(fresh, name) for name in traits})

    def renew(self, one):
        for software in self.world.feature.software if self.world.feature else ():
            if self.day.jobs.names[one.job] in software.jobs:
                one.core_cpi *= software.core_cpi_factor
                one.accesses *= software.memory_accesses_factor
                one.instructions *= software.instructions_factor
                one.network_s *= software.network_factor

    def wander(self, host, epoch):
        own_key = self.key ^ scatter(host.number + 1)
        before = host.wander if epoch else noise(own_key, -1)
        host.wander = self.rho * before + math.sqrt(1 - self.rho**2) * noise(own_key, epoch)
        for one in host.here:
            one.wander = self.rho * one.wander + math.sqrt(1 - self.rho**2) * noise(one.own_key, epoch)

    def behave(self, host, platform, epoch):
        day, given = self.day, self.world.conditions
        shared = day.rack_access[epoch, day.machines.rack[host.number]]
        shared *= max(0.2, 1 + given.machine_access_log_sd * host.wander)
        for one in host.here:
            mood = day.phase[epoch, one.job] * max(0.2, 1 + day.jobs.instance_log_sd[one.job] * one.wander)
            wanted = one.core_cpi * self.core_factor(platform, one.job) * mood
            one.core_now = max(wanted, 1 / processor(platform.name, {}).width)
            one.overlap_here = processor(platform.name, {}).overlap_factor if self.world.interference.windows else 1.0
            one.access_now = shared * mood
            if not one.critical:
                one.overlap_here /= self.world.interference.best_effort_delay

    def core_factor(self, platform, job):
        """Core CPI relative to the reference core, of mean `core_cpi_factor` over programs."""
        sd, loadings = self.world.population.behaviour.core_trait_sd, processor(platform.name, {}).loadings
        mean = sum((sd * loading) ** 2 for loading in loadings) / 2
        gain = sum(trait * loading for trait, loading in zip(self.day.jobs.core_traits[job], loadings, strict=True))
        return platform.core_cpi_factor * math.exp(gain - mean)

    def expected(self, one, share, idle_s):
        """Memory CPI of a newcomer with an equal share of the cache, before its surroundings are known."""
        access, one.access_now = one.access_now, 1.0
        memory_cpi = one.cpi_at(share, idle_s) - one.core_now
        one.access_now = access
        return memory_cpi

    def want(self, one, machine, epoch):
        day, jobs = self.day, self.day.jobs
        pace_s = one.cpi / one.frequency
        load = jobs.utilisation[one.job] * jobs.instance_quota_vcpu[one.job] * day.load[epoch, one.job]
        load *= one.load_factor * self.balanced(one.job, machine, epoch)
        if jobs.open_load[one.job]:
            load *= pace_s / (1.15 * jobs.reference_cpi[one.job] / 2.8e9)
        waiting_s = one.network_s * day.rack_network[epoch, day.machines.rack[machine]]
        computing_s = one.instructions * pace_s
        quota, computing = jobs.instance_quota_vcpu[one.job], computing_s / (computing_s + waiting_s)
        one.use, one.queued, one.throttled = min(load, quota) * computing, 0.0, max(0.0, load - quota) * computing

    def balanced(self, job, machine, epoch):
        """An instance's part of its job's load over an even part: in proportion to the job's speed on a platform."""
        if self.world.population.balancer == "even" or not self.day.jobs.open_load[job]:
            return 1.0
        timeline = self.day.timeline
        here = (timeline.job == job) & (timeline.start_epoch <= epoch) & (epoch < timeline.end_epoch)
        speeds = [self.speed_alone(job, self.platform(each, epoch)) for each in timeline.machine[here]]
        return self.speed_alone(job, self.platform(machine, epoch)) * len(speeds) / sum(speeds)

    def speed_alone(self, job, platform):
        """Instructions a second at the all-core turbo beside nobody, with the reference share of cache."""
        jobs, windows = self.day.jobs, self.world.interference.windows
        overlap = processor(platform.name, {}).overlap_factor if windows else 1.0
        memory_s = (jobs.reference_cpi[job] - jobs.core_cpi[job]) / 2.8e9 * platform.memory_latency_s / 90e-9 / overlap
        core_cpi = max(jobs.core_cpi[job] * self.core_factor(platform, job), 1 / processor(platform.name, {}).width)
        core_s = core_cpi / platform.max_frequency_hz
        return 1 / (core_s + memory_s)

    def ration(self, residents, threads):
        """Latency-critical residents first, in a class by quota; those who wait are the mean surplus of runnables."""
        if self.world.fleet.overcommit == 1:
            return
        jobs, free, asked, together, before = self.day.jobs, threads, 0.0, 0.0, 0.0
        for critical in (True, False):
            members = [one for one in residents if jobs.latency_critical[one.job] == critical]
            wanted = [(one.use, jobs.instance_quota_vcpu[one.job]) for one in members]
            level = fair_level(wanted, free)
            for one, (want, quota) in zip(members, wanted, strict=True):
                one.use = min(want, level * quota)
                one.queued += want - one.use
            asked, together = asked + sum(want for want, _ in wanted), together + sum(quota for _, quota in wanted)
            got, surplus = sum(one.use for one in members), surplus_of(asked, together, threads)
            for one in members:
                cut = sum(want for want, _ in wanted) - got
                one.queued += max(0.0, surplus - before - cut) * one.use / got if got else 0.0
            free, before = free - got, surplus

    def count(self, one, parts, epoch, crowding):
        """Count what a resident did in equal parts of the epoch: clock, CPI and share of the cache in each."""
        part_s = self.world.epoch_s / len(parts)
        cycles = sum(one.use * clock_hz * part_s for clock_hz, _, _ in parts)
        instructions = sum(one.use * clock_hz / cpi * part_s for clock_hz, cpi, _ in parts)
        misses = sum(one.use * clock_hz / cpi * part_s * one.mpi(share) for clock_hz, cpi, share in parts)
        one.frequency = sum(clock_hz for clock_hz, _, _ in parts) / len(parts)
        one.cpi = one.frequency * len(parts) / sum(clock_hz / cpi for clock_hz, cpi, _ in parts)
        useful = 1 - self.day.jobs.spin_share[one.job] * crowding
        cpu_s = one.use * self.world.epoch_s
        requests, core_cycles = instructions * useful / one.instructions, instructions * one.core_now
        row = [cycles, instructions, misses, cpu_s, requests, core_cycles]
        row += [one.queued * self.world.epoch_s, one.throttled * self.world.epoch_s]
        self.stay_epochs[one.stay, epoch] = [*row[:4], core_cycles]
        if self.window(epoch) is not None:
            total = self.counters[one.stay, self.window(epoch)]
            for k, value in enumerate(row):
                total[k] += value
