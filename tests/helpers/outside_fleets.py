"""Fleets of another making, to judge estimators on: NumPy alone, nothing of `models` or `sim`, its own mechanisms.

A fleet is jobs with Pareto numbers of instances, placed at random on machines in racks and power domains. An
instance's performance is its job's level times what its shard, its machine (for good, and from day to day), its rack,
its domain, its machine's load, its job's day and chance make of it, all lognormal. The feature multiplies it. Each
draw is a new fleet, of which some machines get the feature; its truth is that of the fleet drawn, all rows of the
study without the feature against all with it.

Three conditions imitate real machines. `generation` is one generation of virtual machines against another: 47
benchmarks on every machine, one run of each, +41% in the mean and very unlike by benchmark, tails on both sides, no
past. `long_lived_day`, `_week` and `_fleet` are machines that were measured for weeks: machines persist, each benchmark
to its own degree, and runs do not.
"""

from dataclasses import dataclass

import numpy as np

TARGETS = ("instances", "quota", "sums")
"""What a truth is of: jobs weighed by quota, and within a job each instance alike, or by its own weight; or all
values weighed by exposure over all exposure."""


@dataclass(frozen=True)
class Condition:
    """One kind of fleet and experiment."""

    machines: int = 100
    jobs: int = 20
    treated: int = 20
    change: float = 0.06
    before: int = 2
    """Days of the past."""
    study: int = 2
    per_machine: float = 5.0
    """Instances."""
    concentration: float = 1.2
    """Pareto exponent of the jobs' numbers of instances."""
    every_job_everywhere: bool = False
    """One instance of each job on every machine; quotas of jobs follow Zipf's law."""
    effect_by_job: float = 0.3
    """Spread of effects between jobs, relative to the change; as a spread of logarithms in `generation`."""
    effect_by_machine: float = 0.15
    lognormal_effects: bool = False
    shard_sd: float = 0.08
    machine_sd: float = 0.05
    daily_sd: float = 0.03
    """Of a machine's own course, first-order autoregressive with coefficient 0.9."""
    rack_sd: float = 0.01
    domain_sd: float = 0.01
    noise_sd: float = 0.05
    season_sd: float = 0.02
    """Of what all instances of a job do in common on a day."""
    load_slope: float = 0.02
    churn: float = 0.05
    """Share of the instances that begin anew on another machine, each day."""
    missing: float = 0.0
    """Share of rows that were never recorded."""
    noise: str = "normal"
    """normal (of logarithms), lognormal (times 6), pareto, or tails: two in a hundred machines are far off, and three
    in a hundred runs four times as far as others."""
    slow_machines: float = 0.0
    """Share of machines that are half as fast."""
    treated_noise: float = 1.0
    """How many times as much variance of noise instances have with the feature."""
    machine_by_job: bool = False
    """Whether each job feels a machine's condition to a degree of its own, from 0.02 to 1."""
    unlike_jobs: bool = False
    """Whether jobs' spreads on a machine differ, from 0.2% to 14%, and how much of them is for good: any share."""
    racks: int = 20
    """Machines of a rack."""
    by_rack: bool = False
    """Whether whole racks were drawn; then `treated` counts racks."""
    platforms: int = 1
    quota_ratio: float = 1.0
    """How many times as much quota an instance of the first job has as one of the last, in even steps of logarithms."""
    weights_vary: bool = False
    """Whether weights differ within a job, and the effect with them."""
    exposures_vary: bool = False
    """Whether exposures differ within a job, and the effect with them."""
    effect_by_size: float = 0.0
    """By how much more the largest job gains than the smallest."""
    small_jobs_slowed: bool = False
    instances_known: bool = True
    shards_known: bool = True
    unlike_units: bool = False
    """Whether one job in five is measured in thousandths of the others' unit; the truth is of the numbers as given."""
    target: str = "instances"
    cluster: str = "machine"
    """What counts as independent."""


@dataclass(frozen=True)
class Fleet:
    """All rows of a fleet with both outcomes, the fleet's jobs, and the truth by target."""

    condition: Condition
    rows: dict[str, np.ndarray]
    """As a table of observations has them, with `off` and `on` in place of `value` and `treated`."""
    jobs: dict[str, np.ndarray]
    truth: dict[str, float]

    def assigned(self, rng: np.random.Generator) -> np.ndarray:
        """Return which machines get the feature, drawn at random."""
        c = self.condition
        if c.by_rack:
            racks = int(np.ceil(c.machines / c.racks))
            return np.isin(np.arange(c.machines) // c.racks, rng.permutation(racks)[: c.treated])
        return np.isin(np.arange(c.machines), rng.permutation(c.machines)[: c.treated])

    def observed(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of a table of observations if these machines have the feature in the study."""
        rows = {name: values for name, values in self.rows.items() if name not in {"off", "on"}}
        treated = (rows["period"] >= self.condition.before) & chosen[rows["machine"]]
        value = np.where(treated, self.rows["on"], self.rows["off"])
        return rows | {"value": value, "treated": treated.astype(int)}


_SMALL = {"shard_sd": 0.06, "racks": 4, "per_machine": 3.0}
_VMS = {
    "jobs": 47,
    "every_job_everywhere": True,
    "shard_sd": 0.0,
    "machine_sd": 0.04,
    "machine_by_job": True,
    "season_sd": 0.0,
    "load_slope": 0.0,
    "churn": 0.0,
    "shards_known": False,
    "instances_known": False,
}
_GENERATION = {
    **_VMS,
    "change": 0.41,
    "lognormal_effects": True,
    "effect_by_job": 0.35,
    "effect_by_machine": 0.02,
    "before": 0,
    "study": 1,
    "noise_sd": 0.04,
    "noise": "tails",
}
_LONG = {**_VMS, "unlike_jobs": True, "daily_sd": 0.01, "change": 0.0, "effect_by_machine": 0.0}

CONDITIONS: dict[str, Condition] = {
    "base": Condition(),
    "no_change": Condition(change=0.0),
    "four_treated": Condition(treated=4),
    "eight_treated": Condition(treated=8),
    "twelve_treated": Condition(treated=12),
    "one_percent": Condition(machines=800, treated=8, per_machine=2.0),
    "half": Condition(treated=50, change=0.03),
    "plus_10": Condition(treated=50, change=0.10),
    "plus_30": Condition(treated=50, change=0.30),
    "plus_100": Condition(treated=50, change=1.0),
    "plus_100_tenth": Condition(treated=10, change=1.0),
    "plus_100_most": Condition(treated=90, change=1.0),
    "minus_40": Condition(treated=50, change=-0.4),
    "small_12_1": Condition(machines=12, jobs=1, treated=6, **_SMALL),
    "small_12_3": Condition(machines=12, jobs=3, treated=6, **_SMALL),
    "small_16_1": Condition(machines=16, jobs=1, treated=8, **_SMALL),
    "small_16_3": Condition(machines=16, jobs=3, treated=8, **_SMALL),
    "small_24_1": Condition(machines=24, jobs=1, treated=12, **_SMALL),
    "small_24_3": Condition(machines=24, jobs=3, treated=12, **_SMALL),
    "racks": Condition(machines=120, racks=5, by_rack=True, treated=8, rack_sd=0.05, cluster="rack"),
    "effect_by_size": Condition(effect_by_size=0.06),
    "small_jobs_slowed": Condition(small_jobs_slowed=True),
    "quota_skew": Condition(quota_ratio=1e5),
    "weights_within_jobs": Condition(weights_vary=True, target="quota"),
    "ratio_of_sums": Condition(exposures_vary=True, target="sums"),
    "lognormal_noise": Condition(noise="lognormal"),
    "pareto_noise": Condition(noise="pareto"),
    "slow_machines": Condition(slow_machines=0.1, treated=40),
    "variance_x3": Condition(treated_noise=3.0),
    "season_and_churn": Condition(season_sd=0.08, churn=0.3),
    "missing_rows": Condition(missing=0.3),
    "three_platforms": Condition(platforms=3),
    "many_jobs": Condition(jobs=150),
    "other_units": Condition(unlike_units=True),
    "no_past": Condition(before=0),
    "one_day": Condition(before=1, study=1),
    "no_shards": Condition(shards_known=False),
    "generation_100_100": Condition(machines=200, treated=100, **_GENERATION),
    "generation_100_12": Condition(machines=112, treated=100, **_GENERATION),
    "generation_30_30": Condition(machines=60, treated=30, **_GENERATION),
    "generation_12_100": Condition(machines=112, treated=12, **_GENERATION),
    "generation_8_8": Condition(machines=16, treated=8, **_GENERATION),
    "long_lived_day": Condition(machines=12, treated=6, before=1, study=1, **_LONG),
    "long_lived_week": Condition(machines=12, treated=6, before=7, study=7, **_LONG),
    "long_lived_fleet": Condition(machines=100, treated=30, **_LONG),
    "machines_persist": Condition(instances_known=False, shards_known=False, churn=0.5, shard_sd=0.05, treated=30),
}
"""Every condition in which an interval is to hold the truth as often as it says."""


def fleet(condition: Condition, rng: np.random.Generator) -> Fleet:
    """Return one new fleet."""
    c = condition
    job, machine = _placed(c, rng)
    days, instances = c.before + c.study, len(job)
    shard = np.arange(instances)
    size = np.bincount(job, minlength=c.jobs)
    log_level = rng.normal(0.0, 0.4, c.jobs) + (
        np.log(1000.0) * (np.arange(c.jobs) % 5 == 1) if c.unlike_units else 0.0
    )
    weight = (1.0 / (1.0 + rng.permutation(c.jobs)))[job] if c.every_job_everywhere else np.ones(instances)
    weight = weight * np.exp(np.log(c.quota_ratio) * np.linspace(0.5, -0.5, c.jobs))[job]
    own = rng.normal(0.0, 1.0, instances)
    if c.weights_vary:
        weight = weight * np.exp(0.7 * own)
    exposure = np.exp(0.7 * own) if c.exposures_vary else np.ones(instances)
    gain = _gains(c, rng, job, size) + (0.06 * own if c.weights_vary or c.exposures_vary else 0.0)
    by_machine = c.effect_by_machine * c.change * rng.normal(size=c.machines)
    known = rng.normal(0.0, c.shard_sd, instances)
    spread = np.exp(rng.uniform(np.log(0.002), np.log(0.14), c.jobs)) if c.unlike_jobs else np.full(c.jobs, c.noise_sd)
    if c.unlike_jobs:
        lasting = rng.random(c.jobs)
        known = known + (np.sqrt(lasting) * spread)[job] * rng.normal(size=instances)
        spread = np.sqrt(1.0 - lasting) * spread
    feels = np.exp(rng.uniform(np.log(0.02), 0.0, c.jobs)) if c.machine_by_job else np.ones(c.jobs)
    condition_of = _courses(c, rng, days)
    season = rng.normal(0.0, c.season_sd, (days, c.jobs))
    number, residence = instances, np.arange(instances)
    parts = []
    for day in range(days):
        moves = rng.random(instances) < c.churn * (day > 0)
        machine = np.where(moves, rng.integers(0, c.machines, instances), machine)
        residence = np.where(moves, number + np.arange(instances), residence)
        number += instances
        load = np.bincount(machine, minlength=c.machines) / max(instances / c.machines, 1e-9) - 1.0
        log = log_level[job] + known + feels[job] * condition_of[day, machine] + season[day, job]
        log = log - c.load_slope * load[machine]
        off, on = (np.exp(log + _noise(c, rng, scale * spread[job])) for scale in (1.0, c.treated_noise**0.5))
        if c.treated_noise == 1.0:
            on = off
        on = on * (1.0 + gain + by_machine[machine])
        seen = rng.random(instances) >= c.missing
        parts.append(
            {
                "period": np.full(instances, day),
                "job": job,
                "machine": machine,
                "instance": residence,
                "shard": shard,
                "weight": weight,
                "exposure": exposure,
                "off": off,
                "on": on,
                "seen": seen,
            }
        )
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _recorded(c, table)


def _placed(c: Condition, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return job and machine of every instance; each job has two at least, on machines of its own choice."""
    if c.every_job_everywhere:
        machine, job = np.divmod(np.arange(c.machines * c.jobs), c.jobs)
        return job, machine
    size = np.minimum(1.0 + rng.pareto(c.concentration, c.jobs), 200.0)
    count = np.maximum(np.round(size / size.sum() * c.per_machine * c.machines).astype(int), 2)
    job = np.repeat(np.arange(c.jobs), count)
    machine = np.concatenate([np.resize(rng.permutation(c.machines), n) for n in count])
    return job, machine


def _gains(c: Condition, rng: np.random.Generator, job: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return each instance's relative gain, but for what its machine does to it."""
    if c.lognormal_effects:
        factors = np.exp(rng.normal(0.0, c.effect_by_job, c.jobs))
        return ((1.0 + c.change) * factors / factors.mean() - 1.0)[job]
    of_job = c.change * (1.0 + c.effect_by_job * rng.normal(size=c.jobs))
    rank = size.argsort().argsort() / max(c.jobs - 1, 1)
    of_job = of_job + c.effect_by_size * (rank - 0.5)
    if c.small_jobs_slowed:
        of_job = np.where(rank < 0.5, -np.abs(of_job), of_job)
    return of_job[job]


def _courses(c: Condition, rng: np.random.Generator, days: int) -> np.ndarray:
    """Return the logarithm of each machine's condition, (days, machines): its own, its rack's and its domain's."""
    speed = rng.normal(0.0, c.machine_sd, c.machines)
    if c.noise == "tails":
        far = rng.random(c.machines) < 0.02
        speed = speed + np.where(far, rng.normal(0.0, 0.2, c.machines), 0.0)
    speed = speed + np.where(rng.random(c.machines) < c.slow_machines, np.log(0.5), 0.0)
    rack, domain = np.arange(c.machines) // c.racks, np.arange(c.machines) // (2 * c.racks)
    course = np.zeros((days, c.machines))
    for sd, of in ((c.daily_sd, np.arange(c.machines)), (c.rack_sd, rack), (c.domain_sd, domain)):
        state = rng.normal(0.0, sd, of.max() + 1)
        for day in range(days):
            course[day] += state[of]
            state = 0.9 * state + np.sqrt(1.0 - 0.9**2) * rng.normal(0.0, sd, len(state))
    if c.platforms > 1:
        speed = speed + (0.15 * np.arange(c.platforms))[np.arange(c.machines) % c.platforms]
    return course + speed


def _noise(c: Condition, rng: np.random.Generator, sd: np.ndarray) -> np.ndarray:
    """Return the logarithm of what chance makes of instances."""
    count = len(sd)
    if c.noise == "lognormal":
        return rng.normal(0.0, 6.0 * sd, count)
    if c.noise == "pareto":
        return -sd * np.minimum(rng.pareto(2.5, count), 40.0)
    far = np.where(rng.random(count) < 0.03, 4.0, 1.0) if c.noise == "tails" else 1.0
    return far * rng.normal(0.0, sd, count)


def _recorded(c: Condition, table: dict[str, np.ndarray]) -> Fleet:
    """Return what is recorded of a fleet, and its truth, which is of all rows."""
    study = table["period"] >= c.before
    quota = np.bincount(table["job"], table["weight"] * study, c.jobs) / c.study
    truth = {name: _truth(name, {key: values[study] for key, values in table.items()}, quota) for name in TARGETS}
    names = ["period", "job", "machine", "weight", "off", "on"]
    names += ["instance"] if c.instances_known else []
    names += ["shard"] if c.shards_known else []
    names += ["exposure"] if c.exposures_vary else []
    rows = {name: table[name][table["seen"]] for name in names}
    rows |= {"rack": rows["machine"] // c.racks}
    if c.platforms > 1:
        rows["platform"] = rows["machine"] % c.platforms
    return Fleet(c, rows, {"job": np.arange(c.jobs), "quota": quota}, truth)


def _truth(target: str, table: dict[str, np.ndarray], quota: np.ndarray) -> float:
    """Return the relative change of the whole fleet over the rows of the study."""
    if target == "sums":
        return float((table["exposure"] * table["on"]).sum() / (table["exposure"] * table["off"]).sum() - 1.0)
    by = table["weight"] if target == "quota" else np.ones(len(table["job"]))
    of_job = np.bincount(table["job"], by, len(quota))
    with_it, without = (
        float((quota * np.bincount(table["job"], by * table[arm], len(quota)) / of_job).sum()) for arm in ("on", "off")
    )
    return with_it / without - 1.0
