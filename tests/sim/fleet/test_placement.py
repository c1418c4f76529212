"""The compiled scheduler decides as a readable one does, never lends more than there is, and gives all back."""

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sim.fleet import placement
from sim.fleet.placement import PAIR, Rules, capacities, new_jobs, new_machines, new_state, requests, with_room

WORD = (1 << 64) - 1
BLOCK = 64


def scramble(value):
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & WORD
    return value ^ (value >> 31)


class Readable:
    """The scheduler again, in plain Python and without any index: the specification."""

    def __init__(self, machines, domain, jobs, instances, rules):
        self.capacity, self.domain, self.jobs, self.rules = machines, domain, jobs, rules
        self.residents = [[] for _ in machines]
        self.up = [True] * len(machines)
        self.job = [job for job, count in enumerate(instances) for _ in range(count)]
        self.shard = [shard for count in instances for shard in range(count)]
        self.pending, self.running = list(range(len(self.job))), []
        self.tried, self.next_shard, self.lost = defaultdict(int), list(instances), defaultdict(list)
        self.stays = []

    def room(self, machine, evict):
        used = [self.jobs[self.job[i]] for i in self.residents[machine]]
        used = [job for job in used if job["latency_critical"] or not evict]
        cpu, memory = self.capacity[machine]
        return cpu - sum(job["cpu"] for job in used), memory - sum(job["memory"] for job in used)

    def has_room(self, job, machine, evict):
        cpu, memory = self.room(machine, evict)
        return self.up[machine] and self.jobs[job]["cpu"] <= cpu and self.jobs[job]["memory"] <= memory

    def preference(self, job, machine, evict):
        same = 0
        if self.rules.spread:
            hosts = [m for m in range(len(self.capacity)) if self.domain[m] == self.domain[machine]]
            same = sum(self.job[i] == job for m in hosts for i in self.residents[m])
        capacity, room = self.capacity[machine], self.room(machine, evict)
        asked = (self.jobs[job]["cpu"], self.jobs[job]["memory"])
        load = max(Fraction(c - r + a, c) for c, r, a in zip(capacity, room, asked, strict=True))
        return same, {"least_loaded": load, "best_fit": -load, "random": 0}[placement.POLICIES[self.rules.policy]]

    def best(self, job, machines, evict):
        fitting = [m for m in machines if self.has_room(job, m, evict)]
        return min(fitting, key=lambda m: self.preference(job, m, evict), default=None)

    def candidate(self, instance, k):
        start = scramble((int(self.rules.key) + (instance + 1) * 0x9E3779B97F4A7C15) & WORD)
        draw = scramble((start + ((self.tried[instance] << 20) + k + 1) * 0x9E3779B97F4A7C15) & WORD)
        return (draw >> 11) * len(self.capacity) >> 53

    def choose(self, instance, evict):
        job, count = self.job[instance], len(self.capacity)
        found = self.best(job, [self.candidate(instance, k) for k in range(self.rules.candidates)], evict)
        first, blocks = self.candidate(instance, 0), -(-count // BLOCK)
        for step in range(blocks):
            if found is None:
                block = (first // BLOCK + step) % blocks
                members = range(count)[block * BLOCK : (block + 1) * BLOCK]
                turned = [members[(first + k) % len(members)] for k in range(len(members))]
                found = self.best(job, turned, evict)
        return found

    def place(self, instance, now_s):
        job = self.job[instance]
        machine = self.choose(instance, evict=False)
        if machine is None and self.rules.preemption and self.jobs[job]["latency_critical"]:
            machine = self.choose(instance, evict=True)
            for victim in reversed([] if machine is None else list(self.residents[machine])):
                evictable = not self.jobs[self.job[victim]]["latency_critical"]
                if evictable and not self.has_room(job, machine, evict=False):
                    self.leave(victim, now_s, "preemption")
                    self.pending.append(victim)
        self.tried[instance] += 1
        if machine is not None:
            self.residents[machine].append(instance)
            self.running.append(instance)
            self.stays.append([instance, machine, now_s, np.inf, "horizon"])
        return machine is not None

    def place_or_wait(self, instance, now_s):
        if not self.place(instance, now_s):
            self.pending.append(instance)

    def leave(self, instance, now_s, why):
        machine = next(m for m, there in enumerate(self.residents) if instance in there)
        self.residents[machine].remove(instance)
        position, last = self.running.index(instance), self.running.pop()
        if last != instance:
            self.running[position] = last
        stay = next(stay for stay in reversed(self.stays) if stay[0] == instance)
        stay[3:] = now_s, why
        return machine

    def retry(self, who, now_s):
        waiting, failed, kept = self.pending, set(), []
        self.pending = []
        for instance in waiting:
            job = self.job[instance]
            mine = who == placement.EVERYONE or self.jobs[job]["latency_critical"] == (who == 1)
            if not mine or job in failed or not self.place(instance, now_s):
                kept.append(instance)
                failed |= {job} if mine else set()
        self.pending = kept + self.pending

    def arrive(self, job, now_s):
        self.job.append(job)
        if self.lost[job]:
            self.shard.append(self.lost[job].pop())
        else:
            self.shard.append(self.next_shard[job])
            self.next_shard[job] += 1
        self.place_or_wait(len(self.job) - 1, now_s)

    def stop(self, pick, now_s, restart):
        if not self.running:
            return
        instance = self.running[int(pick * len(self.running))]
        self.leave(instance, now_s, "restart" if restart else "exit")
        if restart:
            self.place_or_wait(instance, now_s)
        else:
            self.lost[self.job[instance]].append(self.shard[instance])

    def drain(self, machine, now_s):
        self.up[machine] = False
        moving = self.residents[machine][::-1]
        for instance in moving:
            self.leave(instance, now_s, "drain")
        for instance in sorted(moving, key=lambda i: not self.jobs[self.job[i]]["latency_critical"]):
            self.place_or_wait(instance, now_s)


class Compiled:
    """The scheduler under test, driven by the same calls."""

    def __init__(self, fleet, arriving):
        machines, domain, jobs, instances, rules = fleet
        cpu, memory = np.array(machines, float).T
        column = {name: np.array([job[name] for job in jobs]) for name in jobs[0]}
        self.rules = rules
        self.state = new_state(
            new_machines(cpu / 1e6, memory, np.array(domain)),
            new_jobs(column["cpu"] / 1e6, column["memory"], column["latency_critical"], np.array(instances)),
            np.array(arriving, np.int64),
        )

    def room(self, stays):
        self.state = with_room(self.state, stays)

    def retry(self, who, now_s, rules=None):
        self.room(len(self.state.pending))
        placement.retry(self.state, rules or self.rules, who, now_s)

    def event(self, what, pick, now_s):
        self.room(1)
        time_s, kind = np.array([now_s]), np.array([what], np.int8)
        placement.run_events(self.state, self.rules, time_s, kind, np.array([pick]))

    def drain(self, machine, now_s):
        self.state.machines["up"][machine] = False
        moving = placement.residents(self.state, machine)
        self.room(len(moving))
        placement.move(self.state, self.rules, moving, now_s, placement.DRAIN)

    @property
    def pending(self):
        return self.state.pending[: self.state.total["pending"][0]].tolist()

    @property
    def stays(self):
        known = self.state.stays[: self.state.total["stays"][0]].tolist()
        return [[*stay[:4], placement.ENDINGS[stay[4]]] for stay in known]


def agree(compiled, readable):
    assert compiled.stays == readable.stays
    assert compiled.pending == readable.pending
    known = len(readable.shard)
    assert compiled.state.instances["shard"][:known].tolist() == readable.shard


@st.composite
def fleets(draw):
    count = draw(st.sampled_from([1, 2, 5, 9, 70, 150]))
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    machines = rng.integers(4, 9, (count, 2)).tolist()
    domain = (np.arange(count) // draw(st.sampled_from([1, 3]))).tolist()
    kinds = draw(st.integers(1, 5))
    jobs = [
        {"cpu": int(cpu), "memory": int(memory), "latency_critical": bool(critical)}
        for cpu, memory, critical in zip(*rng.integers([[1], [1], [0]], [[7], [7], [2]], (3, kinds)), strict=True)
    ]
    fill = draw(st.floats(0.3, 2.0))
    instances = rng.poisson(fill * count / kinds, kinds).tolist()
    rules = Rules(
        policy=draw(st.integers(0, 2)),
        candidates=draw(st.integers(1, 4)),
        spread=draw(st.booleans()),
        preemption=draw(st.booleans()),
        key=np.uint64(draw(st.integers(0, WORD))),
    )
    return machines, domain, jobs, instances, rules


steps = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "exit", "restart", "drain", "up", "retry"]),
        st.floats(0, 1, exclude_max=True),
    ),
    max_size=25,
)


@given(fleets(), steps)
@settings(max_examples=150, deadline=None)
def test_compiled_and_readable_scheduler_agree_decision_by_decision(fleet, plan):
    machines, _, jobs, _, rules = fleet
    arriving = [int(pick * len(jobs)) for what, pick in plan if what == "arrive"]
    readable, compiled = Readable(*fleet), Compiled(fleet, arriving)
    readable.rules = rules._replace(preemption=False)
    readable.retry(placement.EVERYONE, 0.0)
    readable.rules = rules
    compiled.retry(placement.EVERYONE, 0.0, rules._replace(preemption=False))
    agree(compiled, readable)
    for number, (what, pick) in enumerate(plan):
        now_s, machine = 1.0 + number, int(pick * len(machines))
        if what == "arrive":
            readable.arrive(int(pick * len(jobs)), now_s)
            compiled.event(placement.ARRIVES, 0.0, now_s)
        elif what in ("exit", "restart"):
            readable.stop(pick, now_s, what == "restart")
            compiled.event(placement.EXITS if what == "exit" else placement.RESTARTS, pick, now_s)
        elif what == "drain" and readable.up[machine]:
            readable.drain(machine, now_s)
            compiled.drain(machine, now_s)
        elif what == "up":
            readable.up[machine] = compiled.state.machines["up"][machine] = True
        elif what == "retry":
            for who in (1, 0):
                readable.retry(who, now_s)
                compiled.retry(who, now_s)
        agree(compiled, readable)


@given(fleets(), steps)
@settings(max_examples=40, deadline=None)
def test_when_all_have_left_every_machine_has_all_it_had(fleet, plan):
    compiled = Compiled(fleet, [])
    compiled.retry(placement.EVERYONE, 0.0, fleet[4]._replace(preemption=False))
    for _, pick in plan:
        compiled.event(placement.RESTARTS, pick, 1.0)
    while compiled.state.total["running"][0]:
        compiled.event(placement.EXITS, 0.5, 2.0)
    machines = compiled.state.machines
    assert (machines["free_cpu"] == machines["cpu"]).all()
    assert (machines["free_memory"] == machines["memory"]).all()
    assert not machines["best_effort_cpu"].any()
    assert not machines["best_effort_memory"].any()
    assert not compiled.state.pairs["key"].any()


def fleet_of(loads, policy="least_loaded", spread=False, preemption=True, candidates=64):
    """Machines of 10 micro-vCPU, machine m with `loads[m]` of them taken by instances of one micro-vCPU.

    Job 0 is best-effort, job 1 latency-critical; loads of job 1 are given as negative numbers. Job 2 is
    latency-critical, asks for 4 micro-vCPU and has no instance yet.
    """
    jobs = [
        {"cpu": cpu, "memory": cpu, "latency_critical": critical}
        for cpu, critical in ((1, False), (1, True), (4, True))
    ]
    count = [sum(load for load in loads if load > 0), -sum(load for load in loads if load < 0), 0]
    rules = Rules(placement.POLICIES.index(policy), candidates, spread, preemption, np.uint64(5))
    compiled = Compiled(([(10, 10)] * len(loads), range(len(loads)), jobs, count, rules), [2, 2])
    homes = [m for sign in (1, -1) for m, load in enumerate(loads) for _ in range(sign * load)]
    compiled.room(sum(count) + 9)
    compiled.state.total["pending"] = 0
    for instance, machine in enumerate(homes):
        placement._enter(compiled.state, rules, instance, machine, 0.0)
    return compiled


def arrival(compiled):
    compiled.event(placement.ARRIVES, 0.0, 7.0)
    return compiled.state.instances["machine"][compiled.state.total["instances"][0] - 1]


@pytest.mark.parametrize(("policy", "expected"), [("least_loaded", 2), ("best_fit", 1)])
def test_the_policy_chooses_the_emptiest_or_the_fullest_with_room(policy, expected):
    assert arrival(fleet_of([5, 6, 2, 8], policy)) == expected


def test_spreading_comes_before_the_policy():
    compiled = fleet_of([0, 6], spread=True)
    assert [arrival(compiled), arrival(compiled)] == [0, 1]


def test_eviction_takes_the_newest_best_effort_instances_and_no_more_than_needed():
    compiled = fleet_of([8, -8, -8])
    assert arrival(compiled) == 0
    assert [stay[0] for stay in compiled.stays if stay[4] == "preemption"] == [6, 7]
    assert sorted(compiled.pending) == [6, 7]


def test_nobody_is_evicted_where_there_is_room_or_preemption_is_off():
    assert arrival(fleet_of([8, 6])) == 1
    compiled = fleet_of([8, -8], preemption=False)
    assert arrival(compiled) == placement.NOWHERE
    assert len(compiled.pending) == 1


def test_latency_critical_instances_are_never_evicted():
    compiled = fleet_of([-8, -8])
    assert arrival(compiled) == placement.NOWHERE
    assert all(stay[4] == "horizon" for stay in compiled.stays)


def test_arrivals_serve_the_shards_lost_last_then_new_ones():
    job = [{"cpu": 1, "memory": 1, "latency_critical": True}]
    rules = Rules(placement.LEAST_LOADED, 1, True, False, np.uint64(5))
    compiled = Compiled(([(9, 9)], [0], job, [4], rules), [0] * 4)
    compiled.retry(placement.EVERYONE, 0.0)
    for pick in (0.99, 0.0, 0.3):
        compiled.event(placement.EXITS, pick, 1.0)
    assert {stay[0] for stay in compiled.stays if stay[4] == "exit"} == {0, 2, 3}
    for _ in range(4):
        arrival(compiled)
    assert compiled.state.instances["shard"][4:].tolist() == [2, 0, 3, 4]


def test_scrambling_is_splitmix64():
    """First outputs for seed 0, as printed with the author's reference program."""
    golden = 0x9E3779B97F4A7C15
    outputs = [int(placement._mix(np.uint64(k * golden & WORD))) for k in (1, 2, 3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.statistical
@pytest.mark.parametrize("vary", ["instance", "attempt", "k"])
def test_candidates_are_uniform(vary):
    """Chi-square over 50 machines and 50,000 candidates; false alarm 1e-6 each."""
    fixed = {"instance": 11, "attempt": 2, "k": 3}
    drawn = [
        placement.candidate(np.uint64(3), *(value if name == vary else fixed[name] for name in fixed), 50)
        for value in range(50_000)
    ]
    assert stats.chisquare(np.bincount(drawn, minlength=50)).pvalue > 1e-6


@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=60))
@settings(deadline=None)
def test_the_table_of_pairs_counts_like_a_counter(changes):
    """Sixteen slots and twelve keys: searches run into each other and round the end."""
    pairs, counted = np.zeros(16, PAIR), Counter()
    for key, more in changes:
        slot = placement._slot_of(pairs, key)
        if more:
            pairs[slot] = (key, pairs[slot]["count"] + 1)
            counted[key] += 1
        elif counted[key]:
            pairs[slot]["count"] -= 1
            counted[key] -= 1
            if not counted[key]:
                placement._forget(pairs, slot)
        found = {k: int(pairs[placement._slot_of(pairs, k)]["count"]) for k in range(1, 13)}
        assert found == {k: counted[k] for k in range(1, 13)}
    assert (pairs["key"] > 0).sum() == sum(count > 0 for count in counted.values())


def test_amounts_in_whole_micro_units_are_kept_exactly():
    """Many a quotient of a decimal and a millionth is a little less or more than whole."""
    micro = np.arange(200_000)
    assert (np.floor(micro / 1e6 / 1e-6) < micro).any()
    assert requests(micro / 1e6, 1e-6).tolist() == capacities(micro / 1e6, 1e-6).tolist() == micro.tolist()


@given(st.floats(0, 1e4))
def test_requests_are_rounded_up_and_capacities_down(amount):
    needed, there = requests(np.array([amount]), 1e-6)[0], capacities(np.array([amount]), 1e-6)[0]
    assert needed >= amount * 1e6 - 1.1e-3
    assert there <= amount * 1e6 + 1.1e-3
    assert 0 <= needed - there <= 1


def test_more_room_keeps_what_is_logged_and_shares_the_rest():
    compiled = fleet_of([3, 2])
    before, stays = compiled.state, compiled.stays
    compiled.room(10_000)
    assert compiled.stays == stays
    assert len(compiled.state.stays) >= 10_000 + len(stays)
    assert compiled.state.machines is before.machines
