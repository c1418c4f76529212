"""Small worlds for the tests of roll-outs: a feature of machines and one of code, with and without shared power."""

from dataclasses import fields, replace

import pandas as pd

from models.fleet.world import (
    Conditions,
    Feature,
    Fleet,
    Governor,
    Interference,
    Population,
    Power,
    Rollout,
    Service,
    Software,
    World,
)
from scenarios.wsmeter.loop import observe, touched
from scenarios.wsmeter.rollouts import Twins
from sim.fleet.arms import everywhere, nowhere
from sim.fleet.day import prepare

NO_CONDITIONS = Conditions(**{field.name: 0.0 for field in fields(Conditions)})
NO_INTERFERENCE = Interference(llc=False, bandwidth=False, smt=False, sockets=False)
NO_CAPS = Power(cap_share=10.0, domain_budget_share=10.0, turbo=False)
MACHINES = World(
    seed=3,
    horizon_s=1800.0,
    epoch_s=300.0,
    fleet=Fleet(machines=80, machines_per_rack=10, racks_per_power_domain=2),
    population=Population(jobs=60, common_jobs=50, heavyweights=12),
    power=Power(domain_budget_share=10.0),
    feature=Feature("upgrade", platforms={"haswell_2698v3": "broadwell_2698v4"}),
)
TIGHT = replace(
    MACHINES,
    power=Power(cap_share=0.75, domain_budget_share=0.6),
    feature=Feature("governor", governor=Governor("stall_aware", step_down_hz=4.0e8)),
)
CODE = replace(
    MACHINES,
    population=replace(MACHINES.population, services=(Service("shop", 160, 4.0, 0.8, 0.01),)),
    feature=Feature("build", software=(Software(("shop",), 0.9, 0.9, 0.5),), rollout=Rollout(unit="instance")),
)


def twins(world, metric="ipc"):
    """Return a world's fleet without the feature and with it everywhere."""
    day = prepare(world)
    jobs = pd.DataFrame({"job": range(day.jobs.count), "quota": day.jobs.quota_vcpu, "instances": day.jobs.instances})
    arms = (observe(day, arm(day), metric) for arm in (nowhere, everywhere))
    return Twins(day, metric, touched(day, jobs), *arms)


def same(real, composed):
    """Whether two tables say the same of the same stays, to the last bit."""
    one, two = (table.sort_values("residence", ignore_index=True) for table in (real, composed))
    return len(one) == len(two) and all((one[name] == two[name]).all() for name in one)
