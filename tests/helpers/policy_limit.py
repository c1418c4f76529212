"""How much rounded logs of many servers say of their policy to a judge who knows more than `--policy auto` may.

``python -m tests.helpers.policy_limit 64 0.9 0.2`` simulates 36 logs of 12,000 requests under each policy on 64
servers at 90% load, rounded to 20% of the mean demand, and tells those of the last 12 apart by what the first 24 look
like. The judge knows the law of the demands (exponential), the rate of arrivals and that these are Poisson. A log is
looked at for how long requests stay that meet a free server, few or many others, how old those are that leave a
crowd, whether requests that come one after the other stay alike, and for all that the trial of `--policy auto` looks
at; policies are told apart by linear discriminants with a common covariance (Fisher 1936), a tenth of whose
correlations is taken away. No judge is asked to say "cannot tell", so a share is how often the best guess is right.
Another judge may do better: the share is a lower bound of what the log says.
"""

import sys

import numpy as np

from analysis.occupancy.curve import met_on_arrival, pairs
from analysis.occupancy.trial import RequestPairs, summary
from models.queues.policies import POLICIES
from models.queues.serve import serve
from tests.helpers.policy_logs import REQUESTS, TICK_S

LOGS, LEARNT = 36, 24
LEVELS, AGES = (0.05, 0.25, 0.5, 0.75, 0.95), (0.1, 0.5, 0.9)
SHRUNK = 0.1
TOLD = tuple(name for name in POLICIES if name != "priority")
"""Without classes priority is first come, first served."""


def stays(log, servers):
    """Return how long requests stay in a log, by whom they meet, and how old those are who leave a crowd."""
    events = pairs(log.arrival_s, log.departure_s)
    met, stay_s = met_on_arrival(events), (log.departure_s - log.arrival_s)[events.order]
    left = np.isfinite(stay_s)
    depth = np.log(np.maximum(stay_s / stay_s[left].mean(), 1e-2))
    busy = met >= servers
    usual = np.median(met[busy]) if busy.any() else servers
    values = []
    for group in (~busy, busy & (met <= usual), busy & (met > usual)):
        of_group = depth[group & left]
        enough = len(of_group) >= 10
        values += [of_group.mean(), of_group.std(), *np.quantile(of_group, LEVELS)] if enough else [0.0] * 7
    age = ages(events, servers)
    values += [age.mean(), age.std(), *np.quantile(age, AGES)] if len(age) > 10 else [0.0] * 5
    both = left[:-1] & left[1:]
    return np.array([*values, np.corrcoef(depth[:-1][both], depth[1:][both])[0, 1]])


def ages(events, servers):
    """Return of each that leaves a crowd which part of those present came before it."""
    n, result = len(events.order), []
    tree = [0] * (n + 1)
    for job, after in zip(events.job.tolist(), events.present.tolist(), strict=True):
        at, change = (job, 1) if job >= 0 else (-1 - job, -1)
        if job < 0 and after + 1 > servers:
            present, place = 0, at
            while place > 0:
                present, place = present + tree[place], place & (place - 1)
            result.append((present + 0.5) / (after + 1))
        place = at + 1
        while place <= n:
            tree[place] += change
            place += place & -place
    return np.array(result)


def looked_at(servers, load, resolution):
    """Return what logs of each policy look like, (logs, statistics)."""
    rng, mean_s = np.random.default_rng(7), TICK_S / resolution
    explaining = tuple(name for name in TOLD if not POLICIES[name].hidden)
    logs = {}
    for policy in POLICIES:
        rows = []
        for _ in range(LOGS):
            arrival_s = np.cumsum(rng.exponential(mean_s / (load * servers), REQUESTS))
            demand_s, classes = rng.exponential(1.0, REQUESTS) * mean_s, rng.integers(0, 3, REQUESTS)
            served = serve(
                policy,
                arrival_s,
                demand_s,
                servers,
                priority=classes if policy == "priority" else None,
                quantum_s=0.5 * mean_s,
                choice=rng.random(REQUESTS),
            )
            arrival_s, departure_s = (np.floor(t / TICK_S) * TICK_S for t in (arrival_s, served.departure_s))
            departure_s = np.where(departure_s <= arrival_s.max(), departure_s, np.nan)
            if policy in TOLD:
                log = RequestPairs(arrival_s, departure_s, None, 0.5 * mean_s, TICK_S)
                rows.append(np.concatenate([stays(log, servers), summary(log, servers, explaining)]))
        if rows:
            logs[policy] = np.array(rows)
    return logs


def judged(logs):
    """Return how many of the last logs of each policy are told right."""
    means = {name: rows[:LEARNT].mean(axis=0) for name, rows in logs.items()}
    residuals = np.concatenate([rows[:LEARNT] - means[name] for name, rows in logs.items()])
    covariance = residuals.T @ residuals / (len(residuals) - len(logs))
    scale = np.sqrt(np.diag(covariance)) + 1e-9
    correlations = (1 - SHRUNK) * covariance / np.outer(scale, scale) + SHRUNK * np.eye(len(scale))
    inverse = np.linalg.inv(correlations)

    def distance(row, name):
        off = (row - means[name]) / scale
        return off @ inverse @ off

    return {
        name: sum(min(means, key=lambda other: distance(row, other)) == name for row in rows[LEARNT:])
        for name, rows in logs.items()
    }


if __name__ == "__main__":
    right = judged(looked_at(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))
    whole, each_policy = len(right) * (LOGS - LEARNT), ", ".join(f"{name} {count}" for name, count in right.items())
    total = sum(right.values())
    error = 100 * np.sqrt((total + 1) * (whole - total + 1) / (whole + 2) ** 3)
    print(f"{total} of {whole} right ({total / whole:.1%} ± {error:.1f}): {each_policy}")
