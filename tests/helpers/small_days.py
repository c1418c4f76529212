"""Small worlds, their days and all arrays of a day, for what is asked of the fleet."""

import hashlib
from dataclasses import replace

import numpy as np

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import (
    Behaviour,
    Churn,
    Conditions,
    Feature,
    Fleet,
    Governor,
    Incidents,
    Interference,
    Population,
    Power,
    Recording,
    Service,
    Software,
    Window,
    World,
)
from sim.fleet.arms import NEVER, Arm, recorded, run_arm
from sim.fleet.day import day_of, prepare
from sim.fleet.timeline import from_placement

EPOCH_S, SHARP = 300.0, Interference(tolerance=1e-13, max_iterations=5000)
WORLD = World(
    seed=3,
    horizon_s=12 * EPOCH_S,
    fleet=Fleet(24, machines_per_rack=4, racks_per_power_domain=2),
    population=Population(60, 30, heavyweights=8),
    churn=Churn(exits_per_instance_day=2.0, restarts_per_instance_day=8.0, drains_per_machine_day=3.0),
)
SERVICE = Service("shop", 6, 4.0, 0.9, 0.01, network_s_per_request=2e-4, open_load=True)
UPGRADE = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
DVFS = Feature("dvfs", governor=Governor("stall_aware"))
CORES = Population(
    10,
    5,
    heavyweights=2,
    behaviour=Behaviour(core_trait_sd=1.0, prefetched_share=0.5),
    services=(replace(SERVICE, core_traits=(1.0, -2.0, 0.5), prefetched_share=0.3),),
)
CROWD = Population(10, 5, 2, behaviour=Behaviour(utilisation=0.9), instance_quota_vcpu=14.0, services=(SERVICE,))
"""Wants more threads than there are at times."""
ROME = Feature("rome", {"haswell_2698v3": "rome_7742"})
DIVIDED = Fleet(4, {"haswell_2698v3": 0.5, "naples_7601": 0.25, "rome_7742": 0.25}, 1, 2)
REBUILT = (Software(("heavyweight-01", "shop"), 0.9, 0.8, 1.3, 0.5),)


def arrays(blocks):
    """All of a day's arrays, blocks put together."""
    blocks = list(blocks)
    names = ("rows", "machine_rows", "epoch_sums", "trace", "machine_trace")
    return {name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}


def digest(day, arm, **how):
    found = arrays(run_arm(day, arm, **how))
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in found.items()}


def everything(simulation, **how):
    """The bits of an hour with all mechanisms at once, on machines with one cache and with many."""
    world = replace(
        WORLD,
        simulation=simulation,
        fleet=replace(WORLD.fleet, platforms=DIVIDED.platforms, overcommit=1.3),
        population=Population(60, 30, heavyweights=8, services=(SERVICE,), balancer="speed"),
        interference=Interference(best_effort_ways=0.5, best_effort_delay=1.2),
        power=Power(Governor("ondemand"), cap_share=0.5, domain_budget_share=0.45),
        incidents=Incidents(150.0, 0.7, 150.0, 0.5, 900.0, 30.0, 0.3),
        feature=UPGRADE,
        recording=Recording((), True, 1.0, True),
    )
    day = prepare(world)
    return digest(day, recorded(day), **how)


def scattered(world, stays, seed=1):
    """A day of random stays, some shorter than an epoch, and machines that are empty at times."""
    rng = np.random.default_rng(seed)
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    start = rng.integers(0, world.epochs, stays)
    end = np.minimum(world.epochs, start + rng.integers(0, 8, stays))
    job = rng.integers(0, jobs.count, stays)
    timeline = from_placement(world, machines.count, job, rng.integers(0, machines.count, stays))
    times = {"start_s": start * EPOCH_S, "end_s": end * EPOCH_S}
    return day_of(world, machines, jobs, replace(timeline, start_epoch=start, end_epoch=end, **times))


TWINS = {
    "plain": {},
    "capped": {"power": Power(cap_share=0.36)},
    "budget": {"power": Power(cap_share=0.4, domain_budget_share=0.28)},
    "ondemand": {"power": Power(Governor("ondemand", ondemand_threshold=0.3), turbo=False)},
    "stall_aware": {"power": Power(Governor("stall_aware", stall_threshold=0.3), cap_share=0.35)},
    "partitioned": {"interference": replace(SHARP, llc=False)},
    "idle memory": {"interference": replace(SHARP, bandwidth=False)},
    "no siblings": {"interference": replace(SHARP, smt=False)},
    "gaps": {"recording": Recording((Window("b", 2100.0, 2700.0), Window("a", 300.0, 1500.0)), True, 1.0, True)},
    "feature": {"feature": replace(UPGRADE, governor=Governor("stall_aware"), software=REBUILT)},
    "cores": {"interference": replace(SHARP, windows=True, sibling_relief=0.6), "population": CORES},
    "sockets": {"interference": replace(SHARP, sockets=True), "fleet": DIVIDED},
    "bound": {"interference": replace(SHARP, sockets=True, remote_share=0.0)},
    "moved": {"interference": replace(SHARP, sockets=True), "feature": ROME},
    "tdp": {"power": Power(Governor("stall_aware", stall_threshold=0.3), cap_share=0.37)},
    "all": {
        "interference": replace(SHARP, sockets=True, windows=True, sibling_relief=0.6),
        "power": Power(Governor("ondemand", ondemand_threshold=0.3), cap_share=0.4),
        "population": CORES,
        "fleet": DIVIDED,
    },
    "overcommitted": {"fleet": Fleet(4, {"haswell_2698v3": 1.0}, 1, 2, overcommit=1.5), "population": CROWD},
    "isolated": {
        "interference": replace(SHARP, sockets=True, best_effort_ways=0.2, best_effort_delay=1.5),
        "fleet": DIVIDED,
    },
    "one thread a core": {"fleet": Fleet(4, {"graviton_4": 1.0}, 1, 2)},
    "incidents": {"incidents": Incidents(150.0, 0.7, 150.0, 0.5, 900.0, 30.0, 0.3)},
    "balanced": {"population": replace(CORES, balancer="speed"), "feature": UPGRADE},
    "wild": {"conditions": Conditions(machine_access_log_sd=1.5)},
}


def small_and_busy(how):
    """Four machines with 36 stays, the feature switched on at different times; a day and an arm."""
    world = World(
        seed=7,
        horizon_s=10 * EPOCH_S,
        fleet=Fleet(4, {"haswell_2698v3": 0.75, "skylake_6148": 0.25}, 1, 2),
        population=Population(10, 5, heavyweights=2, services=(SERVICE,)),
        interference=SHARP,
        recording=Recording((), True, 1.0, True),
    )
    stays = np.arange(36)
    arm = Arm(np.array([4, 0, NEVER, 9]), np.where(stays % 3 == 0, NEVER, stays % 7))
    return scattered(replace(world, **TWINS[how]), 36), arm
