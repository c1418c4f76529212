"""Fleets of another making whose platforms differ, to judge rates between them on: NumPy alone, its own mechanisms.

Usage: python -m tests.helpers.outside_rates [--fleets 400] [--conditions base,heavy_new]

An instance's performance is its job's level times what the platform does to the job (an effect of the platform, and one
of both), what its shard, its machine and chance make of it, less what the machine's load and its neighbours' traffic
cost. Which job runs where is the condition: a scheduler puts heavy jobs, or fast ones, on one platform with some
probability, and fills that platform more. The truth of a job is the ratio of its means on two platforms at the same
load and neighbours; that of the fleet is the mean of these by quota.
"""

import argparse
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RateCondition:
    """One kind of fleet and scheduler."""

    machines: tuple[int, ...] = (60, 60)
    """Of each platform; the first is the reference."""
    jobs: int = 40
    per_machine: float = 10.0
    """Instances."""
    concentration: float = 1.1
    """Pareto exponent of the jobs' numbers of instances."""
    rate: float = 0.25
    """Log of what the second platform does, on average over jobs; each further one as much again."""
    rate_sd: float = 0.08
    """Between jobs."""
    by_size: float = 0.0
    """Log by which the heaviest job gains more than the lightest."""
    heavy_on_new: float = 0.0
    """Log odds by which the heaviest job runs rather on the last platform than the lightest does."""
    fast_on_new: float = 0.0
    """The same of a job whose level is a standard deviation above the mean."""
    sticky: float = 0.0
    """Share of jobs that run on one platform alone."""
    shared: int = 0
    """Jobs that run on both platforms, if it is not 0; each of the others on one alone."""
    fuller: float = 0.0
    """By how much more instances the last platform's machines have than the first's, relative."""
    shard_sd: float = 0.12
    machine_sd: float = 0.04
    noise_sd: float = 0.05
    noise_tails: bool = False
    new_noise: float = 1.0
    """Standard deviations of chance and shards on the last platform, in those on the first."""
    load_slope: float = 0.15
    """Log lost from an idle machine to a busy one."""
    traffic_slope: float = 0.0
    """Log lost by a standard deviation of what neighbours are like."""
    rack_sd: float = 0.0
    days: int = 1
    season_sd: float = 0.0
    """Of what a job's instances do in common on a day."""
    churn: float = 0.0
    busy_if_slow: float = 0.0
    """Log of CPU time that an instance needs more where it is slower by a log: 1 if its work is fixed."""
    hidden_on_new: float = 0.0
    """Log odds of `heavy_on_new` for a job whose rate is a standard deviation above the mean, which no table shows."""
    harm_sd: float = 0.0
    """Log lost by what neighbours do beyond load and traffic, between jobs, as `load_slope` is."""


STRICT = {"heavy_on_new": 5.0, "jobs": 100, "machines": (200, 200), "fuller": 0.2, "load_slope": 0.3}
HEAVY = {"heavy_on_new": 3.0, "fast_on_new": 1.0}
CONDITIONS = {
    "base": RateCondition(),
    "heavy_new": RateCondition(**HEAVY),
    "heavy_new_fuller": RateCondition(**HEAVY, fuller=0.4, load_slope=0.3),
    "traffic": RateCondition(**HEAVY, traffic_slope=0.05, machines=(100, 100)),
    "size_matters": RateCondition(**HEAVY, by_size=0.2),
    "never_seen": RateCondition(sticky=0.4),
    "few_machines": RateCondition(machines=(8, 8), jobs=12, per_machine=6.0),
    "one_few": RateCondition(machines=(100, 6), jobs=15, per_machine=6.0),
    "three_platforms": RateCondition(**HEAVY, machines=(50, 40, 30)),
    "tails": RateCondition(**HEAVY, noise_tails=True),
    "unlike_noise": RateCondition(**HEAVY, new_noise=2.0),
    "many_jobs": RateCondition(jobs=300, **HEAVY),
    "no_spread": RateCondition(rate_sd=0.0),
    "wide_spread": RateCondition(rate_sd=0.25, **HEAVY),
    "one_job": RateCondition(jobs=1, machines=(20, 20), per_machine=4.0),
    "week": RateCondition(**HEAVY, days=5, season_sd=0.05, churn=0.2),
    "three_shared": RateCondition(shared=3, jobs=30),
    "five_shared": RateCondition(shared=5, jobs=30),
    "eight_shared": RateCondition(shared=8, jobs=30),
    "five_shared_noisy": RateCondition(shared=5, jobs=30, shard_sd=0.5),
    "five_shared_alike": RateCondition(shared=5, jobs=30, rate_sd=0.0),
    "strict": RateCondition(**STRICT),
    "strict_busy": RateCondition(**STRICT, busy_if_slow=1.0, machine_sd=0.1),
    "strict_harm": RateCondition(**STRICT, harm_sd=0.3),
    "strict_hidden": RateCondition(**STRICT, hidden_on_new=1.0),
}


def fleet(condition, rng):
    """Return the rows of a fleet, its jobs, and (J, P) true rates against the first platform."""
    c = condition
    platforms = len(c.machines)
    platform_of = np.repeat(np.arange(platforms), c.machines)
    machines = len(platform_of)
    size = np.minimum(1.0 + rng.pareto(c.concentration, c.jobs), 100.0)
    count = np.maximum(np.round(size / size.sum() * c.per_machine * machines).astype(int), 2)
    rank = count.argsort().argsort() / max(c.jobs - 1, 1) - 0.5
    standing = rng.normal(size=c.jobs)
    level = 0.5 * standing
    effect = np.zeros((c.jobs, platforms))
    for p in range(1, platforms):
        own = rng.normal(0.0, c.rate_sd, c.jobs)
        effect[:, p] = c.rate * p + own + c.by_size * rank
    odds = _odds(c, rank, standing, effect)
    chance = np.exp(odds) * np.array(c.machines) * (1.0 + c.fuller * (np.arange(platforms) == platforms - 1))
    lot = rng.random(c.jobs)
    alone = lot.argsort().argsort() >= c.shared if c.shared else lot < c.sticky
    if alone.all():
        alone[0] = False
    chosen = rng.integers(platforms, size=c.jobs)
    chance = np.where(alone[:, None], np.arange(platforms) == chosen[:, None], chance)
    chance = chance / chance.sum(axis=1, keepdims=True)
    job = np.repeat(np.arange(c.jobs), count)
    shard = np.arange(len(job))
    speed = rng.normal(0.0, c.machine_sd, machines) + rng.normal(0.0, c.rack_sd, machines)[np.arange(machines) // 10]
    spread = np.where(np.arange(platforms) == platforms - 1, c.new_noise, 1.0)
    traffic_of = rng.normal(size=c.jobs)
    harm = rng.normal(0.0, c.harm_sd, c.jobs) if c.harm_sd else np.zeros(c.jobs)
    known = rng.normal(size=len(job))
    machine = _placed(rng, chance, job, platform_of, platforms)
    parts = []
    for day in range(c.days):
        again = rng.random(len(job)) < c.churn * (day > 0)
        machine = np.where(again, _placed(rng, chance, job, platform_of, platforms), machine)
        on = platform_of[machine]
        use = rng.uniform(0.3, 0.9, len(job))
        busy = np.bincount(machine, use, machines)[machine] - use
        traffic = np.bincount(machine, use * traffic_of[job], machines)[machine] - use * traffic_of[job]
        log = level[job] + effect[job, on] + speed[machine] + rng.normal(0.0, c.season_sd, c.jobs)[job]
        log = log - c.load_slope * busy / c.per_machine - c.traffic_slope * traffic / c.per_machine**0.5
        if c.harm_sd:
            harmed = np.bincount(machine, use * harm[job], machines)[machine] - use * harm[job]
            log = log - harmed / c.per_machine
        noise = rng.standard_t(3, len(job)) if c.noise_tails else rng.normal(size=len(job))
        log = log + spread[on] * (c.shard_sd * known + c.noise_sd * noise)
        log = log - 0.5 * (spread[on] * c.shard_sd) ** 2 - 0.5 * (spread[on] * c.noise_sd) ** 2 * (not c.noise_tails)
        slower = level[job] + c.rate / 2 - log
        cpu_s = use * 86400.0 * np.exp(c.busy_if_slow * slower)
        parts.append(
            {
                "period": np.full(len(job), day),
                "job": job,
                "machine": machine,
                "instance": shard,
                "platform": np.array([f"p{number}" for number in range(platforms)])[on],
                "weight": np.ones(len(job)),
                "value": np.exp(log),
                "cpu_s": cpu_s,
                "present_s": np.full(len(job), 86400.0),
                "vcpus": np.full(len(job), int(2 * c.per_machine)),
                "llc_misses": cpu_s * np.exp(0.5 * traffic_of[job]) * 1e6,
            }
        )
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    jobs = {"job": np.arange(c.jobs), "quota": count.astype(float)}
    return rows, jobs, np.exp(effect)


def _odds(c, rank, standing, effect):
    """Return (J, P) log odds by which jobs run on platforms."""
    hidden = (effect[:, -1] - effect[:, -1].mean()) / (c.rate_sd if c.rate_sd > 0 else 1.0)
    wanted = c.heavy_on_new * rank + c.fast_on_new * standing + c.hidden_on_new * hidden
    return np.outer(wanted, np.arange(effect.shape[1]) / max(effect.shape[1] - 1, 1))


def _placed(rng, chance, job, platform_of, platforms):
    """Return a machine for every instance, on a platform drawn by the chances of its job."""
    on = (rng.random(len(job))[:, None] > chance.cumsum(axis=1)[job]).sum(axis=1)
    on = np.minimum(on, platforms - 1)
    first = np.searchsorted(platform_of, np.arange(platforms))
    size = np.bincount(platform_of, minlength=platforms)
    return first[on] + (rng.random(len(job)) * size[on]).astype(int)


def judged(condition, rng):
    """Return what is said of one fleet beside the truth: a row a platform, and one for each job and platform."""
    import pandas as pd

    from analysis.effects.conditions import conditions_of
    from analysis.effects.rates import PlatformRates, PlatformRows

    rows, jobs, truth = fleet(condition, rng)
    table = pd.DataFrame(rows)
    quota = pd.DataFrame(jobs)
    coded = PlatformRows.of(table, quota, conditions_of(table).table)
    answer = PlatformRates.of(coded, "p0")
    share = jobs["quota"] / jobs["quota"].sum()
    of_fleet = answer.fleet.assign(true=[float(share @ truth[:, int(name[1:])]) for name in answer.fleet["platform"]])
    true = [truth[job, int(name[1:])] for job, name in answer.jobs[["job", "platform"]].itertuples(index=False)]
    return of_fleet, answer.jobs.assign(true=true, alike=answer.fleet["spread"].max() == 0)


def summary(name, fleets, seed=1):
    """Return coverage of the fleet's rate, of heavy, seen and unseen jobs, and how far the naive ratio is off.

    `alike` is the share of fleets in which no spread between jobs is found; coverage in these stands beside.
    """
    import pandas as pd

    answers = [judged(CONDITIONS[name], np.random.default_rng([seed, number])) for number in range(fleets)]
    whole, jobs = (pd.concat([answer[k] for answer in answers]) for k in (0, 1))
    held = (whole["low"] <= whole["true"]) & (whole["true"] <= whole["high"])
    of_jobs = (jobs["low"] <= jobs["true"]) & (jobs["true"] <= jobs["high"])
    heavy, unseen = jobs["quota_share"] >= 0.05, jobs["source"] == "not seen"
    alike = whole["spread"] == 0
    return {
        "condition": name,
        "coverage": held.mean(),
        "error": np.sqrt(held.mean() * (1 - held.mean()) / len(held)),
        "bias": (whole["rate"] / whole["true"] - 1).mean(),
        "rmse": np.sqrt(((whole["rate"] / whole["true"] - 1) ** 2).mean()),
        "margin": (whole["high"] / whole["low"] - 1).median() / 2,
        "naive": np.sqrt(((whole["naive"] / whole["true"] - 1) ** 2).mean()),
        "jobs": of_jobs[~unseen].mean(),
        "heavy": of_jobs[heavy & ~unseen].mean(),
        "unseen": of_jobs[unseen].mean(),
        "alike": alike.mean(),
        "coverage_alike": held[alike].mean(),
        "unseen_alike": of_jobs[unseen & jobs["alike"]].mean(),
        "share_unseen": (unseen * jobs["quota_share"]).sum() / jobs["quota_share"].sum(),
    }


def main():
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    asked = parser.parse_args()
    rows = []
    for name in asked.conditions.split(","):
        rows.append(summary(name, asked.fleets, asked.seed))
        print(pd.DataFrame(rows[-1:]).round(4).to_string(index=False, header=len(rows) == 1), flush=True)


if __name__ == "__main__":
    main()
