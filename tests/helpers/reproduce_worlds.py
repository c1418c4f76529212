"""Small fleets for the tests of reproduced figures: values drawn from plain laws, with no simulator behind them."""

import numpy as np
import pandas as pd

from analysis.figures.criteria import judge
from analysis.figures.wsmeter.draws import Halves
from scenarios.papers.rows import published


def fleet(
    *,
    machines=600,
    jobs=60,
    slots=20,
    popularity=1.0,
    job_sd=0.4,
    instance_sd=0.1,
    machine_sd=0.0,
    rack_sd=0.0,
    effect=0.0,
    instance_quota=1.0,
    seed=1,
):
    """Return the halves of a fleet whose instances perform as job mean × (1 + effect) × machine × rack × own noise.

    Half of the machines have the feature; every machine hosts `slots` instances. A job's share of the instances falls
    as its rank to the `popularity`.
    """
    rng = np.random.default_rng(seed)
    share = np.arange(1, jobs + 1) ** -float(popularity)
    job = rng.choice(jobs, machines * slots, p=share / share.sum())
    machine = np.repeat(np.arange(machines), slots)
    feature = (machine % 2).astype(bool)
    mean = np.exp(rng.normal(0, job_sd, jobs))
    of_machine = 1 + machine_sd * rng.standard_normal(machines)
    of_rack = 1 + rack_sd * rng.standard_normal(machines // 20 + 1)
    own = np.maximum(1 + np.broadcast_to(instance_sd, jobs)[job] * rng.standard_normal(len(job)), 0.01)
    quota = np.broadcast_to(instance_quota, jobs)
    change = 1 + np.broadcast_to(effect, jobs)[job] * feature
    table = pd.DataFrame(
        {
            "job": job,
            "machine": machine,
            "rack": machine // 20,
            "weight": quota[job],
            "value": mean[job] * change * own * of_machine[machine] * of_rack[machine // 20],
        }
    )
    counts = np.bincount(job, minlength=jobs)
    asked = pd.DataFrame({"job": np.arange(jobs), "name": [f"job-{i}" for i in range(jobs)], "quota": quota * counts})
    halves = [table[feature == has].reset_index(drop=True) for has in (False, True)]
    return Halves(halves[0], halves[1], asked.assign(instances=counts))


def failing(row, measured):
    """Return the names of the row's criteria that fail; of checks of printed cells those that were computed."""
    criteria = (c for c in judge(measured, published(row)) if c.kind == "finding" or np.isfinite(c.measured))
    return [criterion.name for criterion in criteria if not criterion.holds]
