"""How far removing a cause moves what is simulated, and how far its sham does, in one small world of the same seed.

    python -m tests.helpers.change_sizes

Size is the root mean square, over what the pair's measure lists, of the natural logarithm of with over without. A sham
is of like size if it moves the world at least half as far as removing the cause does: a smaller one could leave the
criterion alone because it does little. Of fleets it is the instructions per cycle of stays, or the jobs' shares of the
quota where these change; of services the service times, or the response times where only these change; of servers the
requests of each minute; of profiles (not made here) cycles of each epoch, CPI by platform, shares of functions.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from scenarios.papers.catalogue import ROWS, library
from scenarios.papers.causes import CAUSES, SuspectedCause
from scenarios.papers.sources import OBSERVED

FLEET = {"fleet.machines": 300, "population.jobs": 300, "population.common_jobs": 290, **OBSERVED}
FLEET |= {"analyses.wsmeter.machines": (10,)}
SERVICES = {"fleet.machines": 300, **OBSERVED}
HOUR = {"horizon_s": 3600.0}
POPULATIONS = {"population.heavyweights", "population.light_log_sd"}


def quotas(run):
    """Return the shares of the jobs in the CPU quota, the largest first."""
    quota = run.table("jobs", ["quota_vcpu"])["quota_vcpu"].sort_values(ascending=False).to_numpy()
    return pd.Series(quota / quota.sum())


def ipc(run):
    """Return instructions per cycle of every stay of an instance."""
    sums = run.table("counters", ["residence", "cycles", "instructions"]).groupby("residence").sum()
    return sums["instructions"] / sums["cycles"]


def service_times(run, column="service_time_s"):
    """Return the mean service time of requests by platform and interval."""
    return run.table("truth_service").set_index(["platform", "start_s"])[column]


def responses(run):
    """Return the mean response time by platform and interval."""
    return service_times(run, "response_time_s")


def arrivals(run):
    """Return how many requests arrive in each minute."""
    return (run.table("requests", ["arrival_s"])["arrival_s"] // 60.0).value_counts().astype(float)


def measured_by(cause):
    """Return scenario, what it is made smaller by, and the measure, of a cause's pair."""
    paper, (scenario, *_) = cause.row.partition("/")[0], ROWS[cause.row].scenarios
    paths = {path for path, _ in (*cause.removed, *cause.instead)}
    if paper == "crossplatform":
        only_other_tiers = all(path.startswith("application.other_tiers") for path in paths)
        return scenario, HOUR, responses if only_other_tiers else service_times
    if paper == "occupancy":
        return scenario, {}, arrivals
    if scenario in {"customer_services", "empty_cluster"}:
        return scenario, SERVICES, ipc
    return scenario, FLEET, quotas if paths <= POPULATIONS else ipc


def sizes(cause: SuspectedCause, seed: int = 1) -> tuple[float, float]:
    """Return how far removing the cause moves a world, and how far the sham does."""
    scenario, small, measure = measured_by(cause)
    seen = []
    for changed in ((), cause.removed, cause.instead):
        with tempfile.TemporaryDirectory() as folder:
            run = library(Path(folder), lambda _what, _share: None, seed, dict(changed)).run(scenario, **small)
            seen.append(measure(run))
    return _distance(seen[0], seen[1]), _distance(seen[0], seen[2])


def _distance(one: pd.Series, other: pd.Series) -> float:
    one, other = one.align(other, join="inner")
    there = (one > 0) & (other > 0) & np.isfinite(one) & np.isfinite(other)
    return float(np.sqrt(np.mean(np.log(other[there] / one[there]) ** 2)))


def main():
    """Print both sizes of every pair but those of whole profiles, and the sham's share."""
    for cause in CAUSES:
        if cause.row.partition("/")[0] != "gwp" and cause.removed:
            one, sham = sizes(cause)
            print(f"{cause.row:28} {cause.criteria[0]:32} {one:.4f} {sham:.4f} {sham / one:.2f}", flush=True)


if __name__ == "__main__":
    main()
