"""Random tables of affinities, and what samples from visited machines make of them."""

import numpy as np
import pandas as pd

from analysis.profiling.affinity.table import AffinityTable


def random_table(seed, jobs=100, platforms=4, interaction=0.15, allowed=1.0):
    """Return a table whose present assignment takes exactly the capacities."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(0.5, 0.6, (jobs, 1)) + rng.normal(0.0, 0.2, (1, platforms))
    cpi = np.exp(effects + rng.normal(0.0, interaction, (jobs, platforms)))
    may = rng.random((jobs, platforms)) < allowed
    may[np.arange(jobs), rng.integers(platforms, size=jobs)] = True
    share = np.where(may, rng.gamma(2.0, size=(jobs, platforms)), 0.0)
    load = np.exp(rng.normal(0.0, 1.5, (jobs, 1))) * share / share.sum(axis=1, keepdims=True) * 1e12
    names = tuple(f"job-{j}" for j in range(jobs)), tuple(f"platform-{i}" for i in range(platforms))
    return AffinityTable(*names, load, cpi, np.zeros_like(cpi), may, (cpi * load).sum(axis=0))


def sampled(truth, seed, samples=1_000_000, visits=12_000, noise=0.1):
    """Return the table that samples on random visits give, `samples` of cycles and of instructions, with errors.

    On a visit, each job has a random amount of work (gamma, shape 2), and its CPI differs by `noise`; the samples of
    both events are Poisson.
    """
    rng = np.random.default_rng(seed)
    jobs, platforms = truth.cpi.shape
    each = visits // platforms
    periods = (truth.cpi * truth.load).sum() / samples, truth.load.sum() / samples
    work = truth.load[:, :, None] / each * rng.gamma(2.0, 0.5, (jobs, platforms, each))
    cycles = truth.cpi[:, :, None] * work * np.exp(rng.normal(-(noise**2) / 2, noise, work.shape))
    counted, executed = rng.poisson(cycles / periods[0]), rng.poisson(work / periods[1])
    counted, executed = counted * periods[0], executed * periods[1]
    top, bottom = counted.sum(axis=2), executed.sum(axis=2)
    seen = truth.allowed & (top > 0) & (bottom > 0)
    ratio = np.where(seen, top / np.where(seen, bottom, 1.0), np.nan)
    residual = (counted - np.nan_to_num(ratio)[:, :, None] * executed) / np.where(seen, bottom, 1.0)[:, :, None]
    error = np.sqrt((residual**2).sum(axis=2))
    job, platform = np.nonzero(truth.allowed)
    return pd.DataFrame(
        {
            "job": np.array(truth.jobs)[job],
            "platform": np.array(truth.platforms)[platform],
            "load": bottom[job, platform],
            "cpi": ratio[job, platform],
            "cpi_se": np.where(seen, error, np.nan)[job, platform],
            "load_se": np.sqrt((executed**2).sum(axis=2))[job, platform],
            "capacity": top.sum(axis=0)[platform],
        }
    )


TABLE_1 = """job,platform,load,cpi,capacity
NumCrunch,1,100,1,200
NumCrunch,2,100,1,300
MemBench,1,100,1,200
MemBench,2,100,2,300
"""
"""Ren et al. (2010), table 1."""
