"""How near estimators of the total effect come where machines disturb their neighbours, on fleets of another making.

Usage: python -m tests.helpers.outside_spill [--draws 1000] [--conditions power,…] [--seed 1] [--out runs/outside]
       python -m tests.helpers.outside_spill --absolute mean,proportion,rare [--conditions quarters,…] [--draws 1000]

A fleet is jobs whose instances lie at random on machines, machines in domains. What a machine's instances do is a
product of job, shard, machine (for good and from day to day), domain, load and chance. The feature speeds machines up
by a gain, and disturbs others of its domain in one of these ways:

- power: machines of a domain share a cap. Each wants power by its load, and the feature more (or less) of it. Where
  they want more than the cap, all are throttled alike, so power of those with the feature is taken from neighbours.
- work: a scheduler of the domain sends work away from slow machines. What those with the feature gain is in part what
  their neighbours lose; if all have it, nobody gains that part.

Every draw is a new fleet with its own assignment, simulated three times: as assigned, all on and all off. The truth is
that of all on against all off. Fleets are NumPy alone: nothing of `models` or `sim`, and no line of the estimators'.
Parts of fifty draws are kept in the folder.

`whole-domains` and `exposure` are what `wsc effect --domain` answers, `clustered` is `adjusted` of whole domains with
`--cluster`, `alone` is `adjusted` of as many machines drawn one by one, which neighbours disturb. Printed of each: bias
over the mean truth and coverage, with Monte-Carlo errors; the mean half-width, and over that of `alone`; and of the
draws in which the answer of `alone` has the wrong sign, how many have the right one, and how many have an interval
that leaves out the other side of zero.

With `--absolute` the numbers are no levels: `mean`, below, at and above zero; `proportion`, yes and no, a fifth of them
yes; `rare`, 2% yes. Absolute changes are told by `exposure` and, of machines drawn one by one, by `adjusted`.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.effects.estimand import Estimand
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.exposure import Exposure
from analysis.effects.linearisation import Linearised
from analysis.effects.study import Study, half_width

PART = 50


@dataclass(frozen=True)
class Domains:
    """One kind of fleet, and how the feature is handed out."""

    domains: int = 24
    machines: int = 10
    """Of each domain."""
    jobs: int = 15
    per_machine: float = 4.0
    gain: float = 0.06
    gain_by_job: float = 0.3
    """Spread of the gain between jobs, relative."""
    gain_by_size: float = 0.0
    """By how much more the largest job gains than the smallest, relative to the gain."""
    draw: float = 0.0
    """By how much more power a machine wants with the feature."""
    headroom: float = 0.9
    """Cap of a domain over what it wants without the feature, in the mean."""
    headroom_sd: float = 0.02
    bend: float = 0.6
    """Speed goes with so mean a power of power."""
    stolen: float = 0.0
    """How much work goes from machines without the feature to those with it, relative."""
    shard_sd: float = 0.08
    machine_sd: float = 0.03
    daily_sd: float = 0.02
    domain_sd: float = 0.004
    """Of a domain's own course from day to day, beside what is for good."""
    noise_sd: float = 0.05
    season_sd: float = 0.02
    before: int = 2
    study: int = 2
    saturations: tuple[float, ...] = (0.0, 1.0)
    """Shares of a domain's machines that have the feature, handed out evenly over domains."""
    sizes_vary: bool = False


CONDITIONS = {
    "power": Domains(draw=0.012),
    "power_small": Domains(domains=12, draw=0.012),
    "power_far": Domains(draw=0.06),
    "power_reversed": Domains(gain=0.02, draw=0.08),
    "power_saved": Domains(gain=0.03, draw=-0.03),
    "power_kink": Domains(draw=0.06, headroom=1.0, headroom_sd=0.03),
    "work": Domains(stolen=0.02),
    "work_reversed": Domains(gain=-0.02, stolen=0.05),
    "uneven": Domains(domains=30, draw=0.012, sizes_vary=True, gain_by_job=0.6),
    "large_jobs": Domains(draw=0.012, jobs=60, per_machine=3.0, gain_by_size=1.5),
    "related": Domains(draw=0.012, domain_sd=0.012),
    "thirds": Domains(draw=0.03, domains=30, saturations=(0.0, 0.5, 1.0)),
    "quarters": Domains(draw=0.03, domains=30, saturations=(0.2, 0.8)),
    "fifths": Domains(draw=0.03, domains=30, saturations=(0.0, 0.2, 0.4, 0.6, 0.8)),
    "quarters_strong": Domains(gain=0.4, draw=0.1, domains=30, saturations=(0.2, 0.8)),
    "fifths_strong": Domains(gain=0.4, draw=0.1, domains=30, saturations=(0.0, 0.2, 0.4, 0.6, 0.8)),
    "work_thirds": Domains(stolen=0.02, domains=30, saturations=(0.0, 0.5, 1.0)),
}
GRID = {
    f"grid_{domains}_{name}": Domains(domains=domains, draw=0.012, domain_sd=sd, sizes_vary=vary)
    for domains in (8, 12, 20, 40)
    for name, sd, vary in (
        ("apart", 0.0, False),
        ("near", 0.0055, False),
        ("far", 0.0125, False),
        ("uneven", 0.0055, True),
    )
}
"""Corners that no estimator was looked at in while it was written (`--conditions grid`)."""


@dataclass(frozen=True)
class Drawn:
    """A fleet with its courses before chance hands out the feature."""

    condition: Domains
    domain: np.ndarray
    """(M,)"""
    job: np.ndarray
    """(n,) of instances."""
    machine: np.ndarray
    off: np.ndarray
    """(days, n) values if nothing limited power and nothing had the feature."""
    gain: np.ndarray
    """(n,)"""
    load: np.ndarray
    """(M,) power that a machine wants without the feature."""
    cap: np.ndarray
    """(D,)"""

    def values(self, treated):
        """Return (days, n) values of days on which these machines have the feature."""
        c, on = self.condition, treated.astype(float)
        wanted = self.load * (1.0 + c.draw * on)
        throttle = np.minimum(self.cap / np.bincount(self.domain, wanted), 1.0) ** c.bend
        share = np.bincount(self.domain, on) / np.bincount(self.domain)
        work = 1.0 + c.stolen * (on - share[self.domain])
        of_machine = throttle[self.domain] * work
        return self.off * (of_machine[self.machine] * (1.0 + self.gain * on[self.machine]))

    def assigned(self, rng, by_machine=False):
        """Return (M,) who has the feature: domains are drawn to saturations, machines within them."""
        count = len(self.domain)
        if by_machine:
            return rng.permutation(count) < count * np.mean(self.condition.saturations)
        domains = self.domain.max() + 1
        saturation = np.resize(self.condition.saturations, domains)[rng.permutation(domains)]
        order = rng.permutation(count)
        rank = np.empty(count)
        for d in range(domains):
            own = order[self.domain[order] == d]
            rank[own] = (np.arange(len(own)) + 0.5) / len(own)
        return rank < saturation[self.domain]

    def levels(self, recorded=lambda values: values):
        """Return the means of what is recorded of the fleet in the study, all on and all off."""
        study = slice(self.condition.before, None)
        return (recorded(self.values(np.full(len(self.domain), arm)))[study].mean() for arm in (True, False))

    def truth(self):
        """Return the relative change of the fleet, all on against all off; jobs count by their instances."""
        on, off = self.levels()
        return float(on / off - 1.0)

    def table(self, treated, recorded=lambda values: values):
        """Return the rows that are recorded."""
        c, instances = self.condition, len(self.job)
        values, before = (recorded(self.values(having)) for having in (treated, np.zeros(len(treated), dtype=bool)))
        days = c.before + c.study
        study = np.arange(days) >= c.before
        return pd.DataFrame(
            {
                "period": np.repeat(np.arange(days), instances),
                "job": np.tile(self.job, days),
                "machine": np.tile(self.machine, days),
                "instance": np.tile(np.arange(instances), days),
                "weight": 1.0,
                "domain": np.tile(self.domain[self.machine], days),
                "value": np.where(study[:, None], values, before).ravel(),
                "treated": (study[:, None] & treated[self.machine]).astype(int).ravel(),
            }
        )


def fleet(c, rng):
    """Return one new fleet."""
    size = rng.integers(c.machines // 2, 2 * c.machines, c.domains) if c.sizes_vary else np.full(c.domains, c.machines)
    domain = np.repeat(np.arange(c.domains), size)
    count = len(domain)
    weights = 1.0 + rng.pareto(1.5, c.jobs)
    instances = np.maximum(np.round(np.minimum(weights, 12) / np.minimum(weights, 12).sum() * c.per_machine * count), 2)
    job = np.repeat(np.arange(c.jobs), instances.astype(int))
    machine = np.concatenate([np.resize(rng.permutation(count), int(n)) for n in instances])
    days = c.before + c.study
    log = rng.normal(0.0, 0.4, c.jobs)[job] + rng.normal(0.0, c.shard_sd, len(job))
    log = log + rng.normal(0.0, c.season_sd, (days, c.jobs))[:, job]
    of_machine = rng.normal(0.0, c.machine_sd, count) + rng.normal(0.0, c.daily_sd, (days, count))
    of_machine = of_machine + rng.normal(0.0, c.domain_sd, (days, c.domains))[:, domain]
    off = np.exp(log + of_machine[:, machine] + rng.normal(0.0, c.noise_sd, (days, len(job))))
    rank = instances.argsort().argsort() / max(c.jobs - 1, 1) - 0.5
    gain = c.gain + abs(c.gain) * (c.gain_by_job * rng.normal(size=c.jobs) + c.gain_by_size * rank)
    load = 0.4 + 0.6 * np.bincount(machine, minlength=count) / c.per_machine
    wanted = np.bincount(domain, load)
    cap = wanted * (c.headroom + c.headroom_sd * rng.normal(size=c.domains))
    return Drawn(c, domain, job, machine, off, gain[job], load, cap)


def example():
    """Return the rows of `docs/examples/power_domains.csv.gz`, and the truth."""
    rng = np.random.default_rng([3, 5])
    drawn = fleet(Domains(24, 5, 6, 3.0, gain=0.05, draw=0.06, saturations=(0.0, 0.5, 1.0), noise_sd=0.02), rng)
    table = drawn.table(drawn.assigned(rng)).assign(
        job=lambda rows: "j" + rows["job"].astype(str), machine=lambda rows: "m" + rows["machine"].astype(str)
    )
    return table.assign(value=table["value"].round(4), domain="p" + table["domain"].astype(str)), drawn.truth()


ESTIMATORS = ("whole-domains", "exposure", "clustered", "alone")


def answers(c, seed, number):
    """Return truth and correlation, and change and half-width of each estimator, in one draw; (2 + 2 E,)."""
    rng = np.random.default_rng([seed, number])
    drawn = fleet(c, rng)
    treated, alone = drawn.assigned(rng), drawn.assigned(rng, by_machine=True)
    jobs = pd.DataFrame({"job": np.arange(c.jobs), "quota": np.bincount(drawn.job, minlength=c.jobs)})
    table = drawn.table(treated).assign(rack=lambda rows: rows["domain"])
    study, side_by_side = Study.of(table, jobs), Study.of(drawn.table(alone), jobs)
    parts = Exposure().parts(study.cells, study.treated)
    line, first, clustered = _answer(parts.total), (np.nan, np.nan), (np.nan, np.nan)
    share = np.bincount(drawn.domain, treated) / np.bincount(drawn.domain)
    pure = (share == 0.0) | (share == 1.0)
    if min((share == 0.0).sum(), (share == 1.0).sum()) >= 2:
        whole = study if pure.all() else Study.of(table[pure[table["domain"]]].reset_index(drop=True), jobs)
        first = line if pure.all() else _answer(Exposure().parts(whole.cells, whole.treated).total)
        clustered = _margins(Adjusted(cluster="rack").estimate(whole))
    alone_says = _margins(Adjusted().estimate(side_by_side))
    return [drawn.truth(), parts.correlation, *first, *line, *clustered, *alone_says]


ABSOLUTE = {"mean": 0.1, "proportion": 0.2, "rare": 0.02}
"""Kinds of numbers: how many are zero, or yes."""


def absolute(c, kind, seed, number):
    """Return the truth, and change and half-width of `exposure` and of machines drawn one by one, in one draw; (5,)."""
    rng = np.random.default_rng([seed, number])
    drawn = fleet(c, rng)
    treated, alone, lot = drawn.assigned(rng), drawn.assigned(rng, by_machine=True), rng.random(drawn.off.shape)
    usual, chance = drawn.values(np.zeros(len(treated), dtype=bool)).mean(), ABSOLUTE[kind]

    def recorded(values):
        if kind == "mean":
            return np.where(lot < chance, 0.0, 20.0 * np.log(values) + 3.0)
        return (lot < chance * values / usual).astype(float)

    jobs = pd.DataFrame({"job": np.arange(c.jobs), "quota": np.bincount(drawn.job, minlength=c.jobs)})
    estimand, (on, off) = Estimand.of("mean" if kind == "mean" else "proportion", "absolute"), drawn.levels(recorded)
    numbers = [float(on - off)]
    for having, method in ((treated, Exposure()), (alone, Adjusted())):
        table = drawn.table(having, recorded).assign(rack=lambda rows: rows["domain"])
        numbers += _margins(Linearised.of(table, jobs, estimand).estimate(method))
    return numbers


def of_absolute(name, kind, draws, seed=1):
    """Return bias over the mean truth, coverage with its error, and half-widths, of absolute changes."""
    found = np.array([absolute(CONDITIONS[name], kind, seed, number) for number in range(draws)])
    truth, rows = found[:, 0], []
    for estimator, (change, margin) in (("exposure", found[:, 1:3].T), ("alone", found[:, 3:5].T)):
        known = np.isfinite(change)
        off, inside = (change - truth)[known], (np.abs(change - truth) <= margin)[known].mean()
        rows.append(
            {
                "condition": name,
                "kind": kind,
                "estimator": estimator,
                "answered": known.mean(),
                "truth": truth.mean(),
                "bias": off.mean() / abs(truth.mean()),
                "bias_error": off.std(ddof=1) / np.sqrt(len(off)) / abs(truth.mean()),
                "coverage": inside,
                "coverage_error": np.sqrt(inside * (1 - inside) / len(off)),
                "half_width": margin[known].mean(),
            }
        )
    return rows


def _answer(part):
    """Return change and half-width of what `whole-domains` and `exposure` say."""
    return part.change, float(half_width(np.array(part.error), np.array(part.freedom)))


def _margins(effect):
    return effect.change, effect.margin


def counted(name, draws, out, seed=1):
    """Return the answers of all draws of a condition, (draws, 2 + 2 E); parts may be in the folder."""
    parts = []
    for first in range(0, draws, PART):
        file = out / f"spill-{name}-{seed}-{first:05d}.json"
        if not file.is_file():
            block = [answers((CONDITIONS | GRID)[name], seed, number) for number in range(first, first + PART)]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_suffix(".new").write_text(json.dumps(block), encoding="utf-8")
            file.with_suffix(".new").rename(file)
        parts.append(np.array(json.loads(file.read_text(encoding="utf-8")), dtype=np.float64))
    return np.concatenate(parts)


def summary(name, numbers):
    """Return a row for each estimator that has answers."""
    truth, correlation = numbers[:, 0], numbers[:, 1]
    alone, alone_margin = numbers[:, -2], numbers[:, -1]
    reversed_sign = np.sign(alone) != np.sign(truth)
    rows = []
    for place, estimator in enumerate(ESTIMATORS):
        change, margin = numbers[:, 2 + 2 * place], numbers[:, 3 + 2 * place]
        if not np.isfinite(change).any():
            continue
        off, inside = change - truth, np.abs(change - truth) <= margin
        right = (np.sign(change) == np.sign(truth))[reversed_sign]
        sure = right & (np.abs(change) > margin)[reversed_sign]
        rows.append(
            {
                "condition": name,
                "estimator": estimator,
                "draws": len(truth),
                "truth": truth.mean(),
                "correlation": np.nanmean(correlation),
                "bias": off.mean() / abs(truth.mean()),
                "bias_error": off.std(ddof=1) / np.sqrt(len(off)) / abs(truth.mean()),
                "coverage": inside.mean(),
                "coverage_error": np.sqrt(inside.mean() * (1 - inside.mean()) / len(inside)),
                "half_width": margin.mean(),
                "price": margin.mean() / alone_margin.mean(),
                "reversed": int(reversed_sign.sum()),
                "right_sign": right.mean() if reversed_sign.any() else np.nan,
                "ruled_out": sure.mean() if reversed_sign.any() else np.nan,
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--out", type=Path, default=Path("runs/outside"))
    parser.add_argument("--absolute", default="")
    asked = parser.parse_args()
    for kind in filter(None, asked.absolute.split(",")):
        for name in asked.conditions.split(","):
            rows = of_absolute(name, kind, asked.draws, asked.seed)
            print(pd.DataFrame(rows).round(4).to_string(index=False), flush=True)
    if asked.absolute:
        return
    names = [*GRID] if asked.conditions == "grid" else asked.conditions.split(",")
    for number, name in enumerate(names):
        rows = summary(name, counted(name, asked.draws, asked.out, asked.seed))
        print(pd.DataFrame(rows).round(4).to_string(index=False, header=number == 0), flush=True)


if __name__ == "__main__":
    main()
