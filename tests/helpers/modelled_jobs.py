"""Jobs whose cycles per instruction have exactly the form of the cross-platform model, written out."""

import numpy as np
import pandas as pd

from models.platforms import PLATFORMS

NAMES = ("haswell_2698v3", "skylake_6148", "rome_7742", "altra_q80_30")
CLOCKS = np.array([2.6e9, 2.9e9, 3.1e9, 3.0e9])
OVERLAP = np.exp(0.30)


def power_law(a, b, name):
    """Return misses per instruction of a job at every cache level of a platform."""
    return [np.exp(a + b * np.log(cache.size_bytes)) for cache in PLATFORMS[name].caches]


def cpi_of(a, b, branches, name, clock_hz):
    """Return the model's CPI of a job on a platform."""
    sheet, missed = PLATFORMS[name], power_law(a, b, name)
    waits = missed[-1] * sheet.memory_latency_s * clock_hz
    for level in range(1, len(missed)):
        waits += (missed[level - 1] - missed[level]) * sheet.caches[level].latency_cycles
    return 0.85 * sheet.core_cpi_factor + branches * sheet.branch_miss_cycles + waits / OVERLAP


def modelled_rows(seed, jobs, names=NAMES, departure=0.0, hidden=0.3):
    """Return rows of a table, with the true CPI under `truth`; a share of the pairs is not sampled.

    CPI is κ of the job times a factor of the platform times the model's; `departure` is the log deviation of CPI and
    counters from that.
    """
    rng = np.random.default_rng(seed)
    b = rng.uniform(-0.6, -0.2, jobs)
    a = np.log(0.04) - b * np.log(2.0**15) + rng.uniform(-0.7, 0.7, jobs)
    kappa, branches = np.exp(rng.normal(0.0, 0.3, jobs)), rng.uniform(0.001, 0.008, jobs)
    factor = np.exp(rng.normal(0.0, 0.1, len(names)))
    rows = []
    for j in range(jobs):
        kept = rng.integers(len(names))
        for i, name in enumerate(names):
            missed = np.array(power_law(a[j], b[j], name)) * np.exp(rng.normal(0.0, departure, 3))
            truth = kappa[j] * factor[i] * cpi_of(a[j], b[j], branches[j], name, CLOCKS[i])
            truth *= np.exp(rng.normal(0.0, departure))
            seen = i == kept or rng.random() >= hidden
            counted = [*missed, branches[j]] if seen else [np.nan] * 4
            load = rng.uniform(1.0, 3.0)
            rows.append((f"job-{j}", name, seen * load, truth if seen else np.nan, truth, CLOCKS[i], *counted))
    columns = ["job", "platform", "load", "cpi", "truth", "clock_hz"]
    counters = ["l1_misses", "l2_misses", "llc_misses", "mispredictions"]
    made = pd.DataFrame(rows, columns=[*columns, *counters])
    return made.assign(capacity=1e3, cpi_se=0.02 * made["cpi"])
