"""Small random experiments on fleets for the tests of estimators: tables as a real fleet would give them."""

import numpy as np
import pandas as pd

from analysis.effects.past import Past
from analysis.effects.rehearsals import Assumed, spans
from analysis.effects.study import Study


def fleet_rows(rng, machines=14, jobs=4, covariates=2, per_pair=2):
    """One row per instance with both outcomes, presence and covariates: every job is there, not on every machine."""
    count = rng.integers(0, per_pair + 1, (machines, jobs))
    count[:5] = 1
    machine, job = (np.repeat(each, count.ravel()) for each in np.divmod(np.arange(count.size), jobs))
    x = 0.2 * rng.standard_normal((len(job), covariates))
    level = (1.0 + job) * np.exp(0.05 * rng.standard_normal(machines))[machine]
    off = level * (1.0 + x @ np.full(covariates, 0.4) + 0.05 * rng.standard_normal(len(job)))
    on = off * (1.03 + 0.02 * rng.standard_normal(jobs)[job] + 0.01 * rng.standard_normal(len(job)))
    table = pd.DataFrame({"job": job, "machine": machine, "rack": machine // 2, "quota": 1.0 + rng.random(len(job))})
    table = table.assign(presence=rng.uniform(0.3, 1.0, len(job)), off=off, on=on)
    return table.assign(**{f"x{k}": x[:, k] for k in range(covariates)})


def fleet_jobs(rng, jobs=4, unseen=1):
    """Quota of all jobs, some of which run nowhere in sight, and what their values are relative to."""
    total = jobs + unseen
    return pd.DataFrame({"job": range(total), "quota": rng.uniform(1, 5, total), "scale": 1.0 + np.arange(total)})


def observed(rng, *, machines=16, jobs=4, effect=0.05, noise=0.05):
    """Observations of a past and a study, half of the machines with the feature in the latter."""
    machine, job = np.divmod(np.arange(machines * jobs), jobs)
    own = (1.0 + job) * np.exp(noise * rng.standard_normal(machines))[machine]
    own = own * np.exp(2 * noise * rng.standard_normal(len(job)))
    chosen = rng.permutation(machines) < machines // 2
    rows = []
    for day in (0, 1):
        treated = chosen[machine] & (day > 0)
        value = own * np.exp(noise * rng.standard_normal(len(job))) * np.where(treated, 1.0 + effect, 1.0)
        rows.append(pd.DataFrame({"period": day, "job": job, "machine": machine, "value": value, "treated": treated}))
    table = pd.concat(rows, ignore_index=True)
    return table.assign(instance=table["machine"] * jobs + table["job"], weight=1.0 + table["job"])


def past(periods=6, machines=40, sd=0.02, seed=1):
    """A fleet's past in days: 4 jobs, one instance of each on every machine, white noise between days, no course."""
    rng = np.random.default_rng(seed)
    machine, job = np.divmod(np.arange(4 * machines), 4)
    own = 1.0 + 0.05 * rng.standard_normal(4 * machines)
    row = {"job": job, "machine": machine, "weight": 1.0 + job, "treated": 0}
    rows = [
        pd.DataFrame(row | {"period": period, "value": own * (1 + sd * rng.standard_normal(4 * machines))})
        for period in range(periods)
    ]
    return Past(pd.concat(rows, ignore_index=True), 86400.0)


def small_study():
    """Return a small study with an effect of 10%: 12 machines of 4 jobs, half of them with the feature."""
    rng = np.random.default_rng(1)
    machine, job = np.divmod(np.arange(48), 4)
    own = 1.0 + 0.05 * rng.standard_normal(48)
    rows = [
        pd.DataFrame({"period": period, "job": job, "machine": machine, "weight": 1.0 + job, "value": own})
        .assign(treated=(machine % 2 == 0) & (period == 1))
        .assign(value=lambda table: table["value"] * np.where(table["treated"], 1.1, 1.0))
        for period in (0, 1)
    ]
    return Study.of(pd.concat(rows, ignore_index=True))


def small_rehearsal():
    """Return a small rehearsal: 60 machines of 4 jobs, a day after a day, an effect of 5%."""
    rng = np.random.default_rng(1)
    machine, job = np.divmod(np.arange(240), 4)
    own = 1.0 + 0.05 * rng.standard_normal(240)
    row = {"job": job, "machine": machine, "weight": 1.0 + job, "treated": 0}
    days = [
        pd.DataFrame(row | {"period": day, "value": own * (1.0 + 0.05 * rng.standard_normal(240))}) for day in range(3)
    ]
    return next(spans(Past(pd.concat(days, ignore_index=True), 86400.0), 1.0, Assumed(0.05, 0.0, 0.0), ["adjusted"]))
