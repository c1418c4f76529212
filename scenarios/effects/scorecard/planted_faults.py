"""Faults planted in experiments on simulated fleets, each at three strengths: too weak to do harm, middling, strong.

A strong fault by itself makes the plain estimate wrong: it covers the truth in less than 90% of experiments, or is off
by more than its half-width. A weak one does not, and should not alarm.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.audit.about import About
from models.arrays import Bools, Floats, Ints
from scenarios.effects.scorecard.planted_fleets import Careless, PlantedExperiment, Potential, record, with_rare

STRENGTHS = ("weak", "middling", "strong")
TREATED = 1 / 3
"""Share of the machines that get the feature if nothing else is said."""


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A fault that can be planted: the codes that name it, what its strength means, and how it is planted."""

    name: str
    codes: tuple[str, ...]
    unit: str
    strengths: tuple[float, float, float]
    """Weak, middling, strong."""
    plant: Callable[[Potential, float, np.random.Generator], PlantedExperiment]


def drawn(fleet: Potential, rng: np.random.Generator, share: float = TREATED) -> Ints:
    """Return machines drawn at random."""
    machines = fleet.machines
    return np.sort(rng.choice(machines, max(round(share * len(machines)), 2), replace=False))


def _drifting(fleet: Potential, drift: float) -> Potential:
    """Return the fleet with a drift, the same for all, from the first day to the last, in place of its jobs' course."""
    rows = fleet.rows
    by_job = rows.groupby("job")["off"].transform("mean")
    course = (rows.groupby(["job", "period"])["off"].transform("mean") / by_job).to_numpy()
    period = rows["period"].to_numpy()
    return fleet.scaled((1 + drift * period / period.max()) / course)


def controls_stopped(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """In the second half of the study only a share of the treated machines, and no others, is observed; all drift."""
    fleet = _drifting(fleet, 0.08)
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    middle = (fleet.first + int(rows["period"].max()) + 1) // 2
    some = rng.choice(treated, round(share * len(treated)), replace=False)
    return PlantedExperiment(rows[(rows["period"] < middle) | rows["machine"].isin(some)], fleet.jobs)


def yesterday(fleet: Potential, drift: float, rng: np.random.Generator) -> PlantedExperiment:
    """The treated are compared with the whole fleet as it was before, though others were observed beside them."""
    fleet = _drifting(fleet, drift)
    about = About(baseline="before")
    return PlantedExperiment(record(fleet, drawn(fleet, rng)), fleet.jobs, about, Careless(baseline="before"))


def everything_treated(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """All machines get the feature on the last days, a share of the study; all drift."""
    fleet = _drifting(fleet, 0.08)
    treated = drawn(fleet, rng)
    days = np.arange(fleet.first, int(fleet.rows["period"].max()) + 1)
    late = days[len(days) - round(share * len(days)) :]
    period = fleet.rows["period"]
    on = fleet.study & (fleet.rows["machine"].isin(treated) | period.isin(late)).to_numpy()
    return PlantedExperiment(record(fleet, treated, on), fleet.jobs)


def different_days(fleet: Potential, drift: float, rng: np.random.Generator) -> PlantedExperiment:
    """The treated machines report more and more of their rows, the others fewer and fewer."""
    fleet = _drifting(fleet, drift)
    rows = record(fleet, drawn(fleet, rng))
    day = rows["period"].to_numpy() - fleet.first
    late = (day + 1) / (day.max() + 2)
    measured = (day < 0) | (rng.random(len(rows)) < np.where(rows["treated"] == 1, late, 1 - late))
    return PlantedExperiment(rows[measured], fleet.jobs)


def carried_over(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Machines switch on and off in random pairs of days; a share of the state before still acts on the day after."""
    rows, machines = fleet.rows, fleet.machines
    days = int(rows["period"].max()) + 1
    state = np.zeros((int(rows["machine"].max()) + 1, days), dtype=np.bool_)
    for day in range(fleet.first, days - 1, 2):
        state[machines, day] = rng.random(len(machines)) < 0.5
        state[machines, day + 1] = ~state[machines, day]
    before = np.zeros_like(state)
    before[:, 1:] = state[:, :-1]
    at = rows["machine"].to_numpy(), rows["period"].to_numpy()
    acts = (1 - share) * state[at] + share * before[at]
    recorded = record(fleet, machines, state[at])
    recorded["value"] = rows["off"] * (rows["on"] / rows["off"]) ** acts
    return PlantedExperiment(recorded[recorded["period"] < fleet.first + (days - fleet.first) // 2 * 2], fleet.jobs)


def _uneven(fleet: Potential) -> Potential:
    """Return the fleet with machines slowed by how many jobs they hold, as where neighbours contend hard."""
    loads = _held(fleet)
    rank = loads.rank(pct=True).reindex(fleet.rows["machine"]).fillna(0.5).to_numpy()
    return fleet.scaled(np.asarray(1.1 - 0.2 * rank, dtype=np.float64))


def _partly(fleet: Potential, order: Ints, share: float, rng: np.random.Generator) -> Ints:
    """Return treated machines: a share of them the first of an order, the others drawn at random."""
    n = round(TREATED * len(fleet.machines) / 2)
    first = order[: round(share * n)]
    rest = rng.choice(np.setdiff1d(fleet.machines, first), n - len(first), replace=False)
    return np.sort(np.concatenate([first, rest]))


def covering(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of the treated machines was chosen one by one so that they cover most instances not yet covered."""
    fleet = _uneven(fleet)
    rows = fleet.rows[fleet.rows["period"] < fleet.first]
    machine, machines = pd.factorize(rows["machine"], sort=True)
    job, jobs = pd.factorize(rows["job"], sort=True)
    holds = np.zeros((len(machines), len(jobs)))
    holds[machine, job] = 1
    wanted, left, order = np.full(len(jobs), 8.0), np.ones(len(machines), dtype=np.bool_), list[int]()
    for _ in range(len(machines)):
        gain = np.where(left, holds @ (wanted > 0), -1.0) + 1e-6 * holds.sum(axis=1)
        best = int(np.argmax(gain))
        order.append(int(machines[best]))
        left[best] = False
        wanted -= holds[best]
    chosen = np.array(order)
    chosen = chosen[np.isin(chosen, fleet.machines)]
    return PlantedExperiment(record(fleet, _partly(fleet, chosen, share, rng)), fleet.jobs)


def _held(fleet: Potential) -> "pd.Series[float]":
    """Return how many jobs each machine holds before the study, the fewest first."""
    rows = fleet.rows[fleet.rows["period"] < fleet.first]
    jobs = rows.groupby("machine")["job"].nunique()
    return jobs.reindex(fleet.machines).sort_values(kind="stable").astype(np.float64)


def densest(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of the treated machines are those that hold the most jobs."""
    fleet = _uneven(fleet)
    return PlantedExperiment(record(fleet, _partly(fleet, _held(fleet).index.to_numpy()[::-1], share, rng)), fleet.jobs)


def emptiest(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of the treated machines are those that hold the fewest jobs."""
    fleet = _uneven(fleet)
    return PlantedExperiment(record(fleet, _partly(fleet, _held(fleet).index.to_numpy(), share, rng)), fleet.jobs)


def fastest(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of the treated machines are those that were the fastest before."""
    fleet = _unlike_machines(fleet, 0.05, rng)
    relative = pd.Series(fleet.relative())[~fleet.study]
    mean = relative.groupby(fleet.rows.loc[~fleet.study, "machine"].to_numpy()).mean().reindex(fleet.machines)
    order = mean.sort_values(ascending=False, kind="stable").index.to_numpy()
    return PlantedExperiment(record(fleet, _partly(fleet, order, share, rng)), fleet.jobs)


def _unlike_machines(fleet: Potential, log_sd: float, rng: np.random.Generator) -> Potential:
    factor = np.exp(rng.normal(0, log_sd, int(fleet.rows["machine"].max()) + 1))
    return fleet.scaled(factor[fleet.rows["machine"].to_numpy()])


def lost_machines(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Of the machines drawn to be treated, the slowest share is not reported."""
    fleet = _unlike_machines(fleet, 0.05, rng)
    treated = drawn(fleet, rng, 0.5)
    relative = pd.Series(fleet.relative())[fleet.study]
    mean = relative.groupby(fleet.rows.loc[fleet.study, "machine"].to_numpy()).mean().reindex(treated)
    lost = mean.sort_values(kind="stable").index[: round(share * len(treated))]
    rows = record(fleet, treated)
    about = About(selection="random", planned_share=0.5)
    return PlantedExperiment(rows[~rows["machine"].isin(lost)], fleet.jobs, about)


def uneven_platforms(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Every other rack is of a faster platform, whose machines are more often treated than was planned."""
    new = (fleet.rows["rack"] % 2 == 1).to_numpy()
    fleet = fleet.scaled(np.where(new, 1.2, 1.0))
    fleet.rows["platform"] = np.where(new, "new", "old")
    of = fleet.rows.drop_duplicates("machine").set_index("machine")["platform"].reindex(fleet.machines)
    n = round(TREATED * len(of))
    extra = round(share * n / 2)
    parts = [
        rng.choice(of.index[of == name].to_numpy(), n // 2 + sign * extra, replace=False)
        for name, sign in (("new", 1), ("old", -1))
    ]
    about = About(selection="random", planned_share={"new": TREATED, "old": TREATED})
    return PlantedExperiment(record(fleet, np.sort(np.concatenate(parts))), fleet.jobs, about)


def racks(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Of the treated machines a share stands in a third of the racks, chosen first; racks are unlike each other."""
    rack = fleet.rows.drop_duplicates("machine").set_index("machine")["rack"].reindex(fleet.machines)
    names = np.unique(rack)
    factor = np.exp(rng.normal(0, 0.06, int(names.max()) + 1))
    fleet = fleet.scaled(factor[fleet.rows["rack"].to_numpy()])
    chosen = rack.index[rack.isin(rng.permutation(names)[: round(TREATED * len(names))])].to_numpy()
    inside = rng.choice(chosen, round(share * len(chosen)), replace=False)
    rest = rng.choice(np.setdiff1d(fleet.machines, inside), len(chosen) - len(inside), replace=False)
    return PlantedExperiment(record(fleet, np.sort(np.concatenate([inside, rest]))), fleet.jobs)


def corrected(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A finite-population correction is made, with a share of the machines treated."""
    about = About(finite_population_correction=True, clusters="machine")
    return PlantedExperiment(record(fleet, drawn(fleet, rng, share)), fleet.jobs, about, Careless(corrected=True))


def few_machines(fleet: Potential, missing: float, rng: np.random.Generator) -> PlantedExperiment:
    """So few machines are treated: 20 less a number; the normal distribution is taken for the error's."""
    treated = rng.choice(fleet.machines, round(20 - missing), replace=False)
    return PlantedExperiment(
        record(fleet, np.sort(treated)), fleet.jobs, About(clusters="machine"), Careless(normal=True)
    )


def rare_slow_machines(fleet: Potential, slower: float, rng: np.random.Generator) -> PlantedExperiment:
    """Twenty machines are treated in a fleet of which one in 25, whichever they are, is so much slower."""
    fleet = with_rare(fleet, slower, rng)
    treated = np.sort(rng.choice(fleet.machines, 20, replace=False))
    return PlantedExperiment(record(fleet, treated), fleet.jobs, About(clusters="machine", weights="full"))


def independent_rows(fleet: Potential, days: float, rng: np.random.Generator) -> PlantedExperiment:
    """Rows of so many days are taken for independent; of one day only one stay in eight is recorded."""
    rows = record(fleet, drawn(fleet, rng))
    day = rows["period"].to_numpy() - fleet.first
    thin = _noise(rows["instance"].to_numpy()) < (0.12 if days == 1 else 1.0)
    about = About(clusters="instance", weights="full")
    return PlantedExperiment(rows[(day < 0) | ((day < days) & thin)], None, about, Careless(clusters="instance"))


def _noise(number: Ints) -> Floats:
    """Return numbers in 0..1 that belong to whole numbers."""
    return np.asarray((number.astype(np.uint64) * np.uint64(2654435761) % np.uint64(2**32)) / 2**32, dtype=np.float64)


def _gain(fleet: Potential) -> "pd.Series[float]":
    """Return the jobs' own changes, the largest first."""
    means = fleet.rows[fleet.study].groupby("job")[["off", "on"]].mean()
    return (means["on"] / means["off"] - 1).sort_values(ascending=False, kind="stable")


def _first_jobs(fleet: Potential, order: pd.Index, share: float) -> Bools:
    """Return (N,) rows of the first jobs of an order that together hold about a share of the quota."""
    quota = fleet.jobs.set_index("job")["quota"].reindex(order)
    cumulated = (quota.cumsum() - quota / 2) / quota.sum()
    return fleet.rows["job"].isin(cumulated.index[cumulated < share]).to_numpy()


def jobs_not_covered(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """The jobs that gain most, with a share of the quota, are not recorded; the others' weights are made whole."""
    rows = record(fleet, drawn(fleet, rng))
    return PlantedExperiment(rows[~_first_jobs(fleet, _gain(fleet).index, share)], fleet.jobs, About(weights="covered"))


def jobs_opted_out(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """The jobs that gain least, with a share of the quota, keep off the treated machines."""
    rows = record(fleet, drawn(fleet, rng))
    out = _first_jobs(fleet, _gain(fleet).index[::-1], share) & (rows["treated"] == 1).to_numpy()
    return PlantedExperiment(rows[~out])


def survivors(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """On treated machines a share of the slow instances is evicted and not counted."""
    rows = record(fleet, drawn(fleet, rng))
    slow = (fleet.relative() < 1) & (rows["treated"] == 1).to_numpy()
    instance = rows["instance"].to_numpy()
    return PlantedExperiment(rows[~(slow & (_noise(instance + int(rng.integers(10**6))) < share))], fleet.jobs)


def restarts(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """The feature's roll-out restarts a share of the instances, which are slower until they are warm."""
    rows = record(fleet, drawn(fleet, rng))
    instance = rows["instance"].to_numpy()
    anew = (rows["treated"] == 1).to_numpy() & (_noise(instance + int(rng.integers(10**6))) < share)
    rows["value"] = rows["value"] * np.where(anew, 0.88, 1.0)
    rows["instance"] = np.where(anew, instance + 10**9, instance)
    return PlantedExperiment(rows, fleet.jobs)


def per_cycle(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Instructions per cycle are compared while the clock changes, by a share of what the feature makes of it."""
    rows = record(fleet, drawn(fleet, rng))
    on = (rows["treated"] == 1).to_numpy()
    base = fleet.rows["clock_off"].to_numpy()
    clock = base * np.where(on, (fleet.rows["clock_on"].to_numpy() / base) ** share, 1.0)
    rows["value"] = rows["value"] / clock
    rows["mean_frequency_hz"] = clock
    return PlantedExperiment(rows, fleet.jobs, About(metric="ipc"))


def looked_at(fleet: Potential, looks: float, rng: np.random.Generator) -> PlantedExperiment:
    """The result is looked at as the roll-out grows, with an interval for one look."""
    about = About(looks=round(looks), interval="fixed")
    return PlantedExperiment(record(fleet, drawn(fleet, rng, 0.5)), fleet.jobs, about, Careless(looks=round(looks)))


def doubled_rows(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A join writes a share of the fast rows of treated machines four times."""
    rows = record(fleet, drawn(fleet, rng))
    fast = (fleet.relative() > 1) & (rows["treated"] == 1).to_numpy() & (rng.random(len(rows)) < share)
    return PlantedExperiment(pd.concat([rows, rows[fast], rows[fast], rows[fast]], ignore_index=True), fleet.jobs)


def copied_rows(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of all rows is there five times and counts as five independent ones."""
    rows = independent_rows(fleet, 1.0, rng).observations
    again = rows[rng.random(len(rows)) < share]
    copies = pd.concat([rows, again, again, again, again], ignore_index=True)
    return PlantedExperiment(copies, None, About(weights="full"), Careless(clusters="instance"))


def slow_without_values(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Of the treated rows a share, the slowest, has no value: they timed out."""
    rows = record(fleet, drawn(fleet, rng))
    return PlantedExperiment(rows.assign(value=rows["value"].mask(_extreme(fleet, rows, share), np.nan)), fleet.jobs)


def overflown_counters(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Of the treated rows a share, the fastest, has a negative value: its counter overflowed."""
    rows = record(fleet, drawn(fleet, rng))
    return PlantedExperiment(rows.assign(value=rows["value"].mask(_extreme(fleet, rows, -share), -1.0)), fleet.jobs)


def _extreme(fleet: Potential, rows: pd.DataFrame, share: float) -> Bools:
    """Return (N,) the slowest share of the treated rows, or the fastest if it is negative."""
    relative, on = fleet.relative(), (rows["treated"] == 1).to_numpy()
    edge = np.quantile(relative[on], share if share > 0 else 1 + share)
    return np.asarray(on & (relative <= edge if share > 0 else relative >= edge))


def other_unit(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of the untreated machines reports in thousandths; if none, everybody does, which does no harm."""
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    if share > 0:
        others = np.setdiff1d(fleet.machines, treated)
        told = rows["machine"].isin(rng.choice(others, max(round(share * len(others)), 1), replace=False))
    else:
        told = rows["job"] >= 0
    return PlantedExperiment(rows.assign(value=rows["value"] * np.where(told, 1000.0, 1.0)), fleet.jobs)


def frozen_sensors(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of the treated machines reports the values of the last day before the feature throughout the study."""
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    frozen = rng.choice(treated, round(share * len(treated)), replace=False)
    before = rows[rows["period"] == fleet.first - 1].drop_duplicates("instance").set_index("instance")["value"]
    last = rows["instance"].map(before)
    hangs = (rows["treated"] == 1) & rows["machine"].isin(frozen) & last.notna()
    return PlantedExperiment(rows.assign(value=rows["value"].mask(hangs, last)), fleet.jobs)


def unit_from_mid_study(fleet: Potential, factor: float, rng: np.random.Generator) -> PlantedExperiment:
    """From the middle of the study on the treated machines' values are that many times as large."""
    rows = record(fleet, drawn(fleet, rng))
    middle = (fleet.first + int(rows["period"].max()) + 1) // 2
    late = (rows["treated"] == 1) & (rows["period"] >= middle)
    return PlantedExperiment(rows.assign(value=rows["value"] * np.where(late, factor, 1.0)), fleet.jobs)


def jobs_in_another_unit(fleet: Potential, factor: float, rng: np.random.Generator) -> PlantedExperiment:
    """A third of the jobs report values that are that many times as large, in both arms and at all times."""
    rows = record(fleet, drawn(fleet, rng))
    jobs = fleet.jobs["job"].to_numpy()
    other = rows["job"].isin(rng.choice(jobs, round(len(jobs) / 3), replace=False))
    return PlantedExperiment(rows.assign(value=rows["value"] * np.where(other, factor, 1.0)), fleet.jobs)


def spilling(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """On a share of the machines half of the instances get the feature, and half of what it does spills over."""
    rows, machines = fleet.rows, fleet.machines
    mixed = rng.choice(machines, round(share * len(machines)), replace=False)
    treated = rng.choice(np.setdiff1d(machines, mixed), round(0.5 * (len(machines) - len(mixed))), replace=False)
    half = _noise(rows["instance"].to_numpy() + int(rng.integers(10**6))) < 0.5
    is_mixed = rows["machine"].isin(mixed).to_numpy()
    on = fleet.study & (rows["machine"].isin(treated).to_numpy() | (is_mixed & half))
    recorded = record(fleet, treated, on)
    acts = np.where(is_mixed & fleet.study, np.where(on, 0.75, 0.25), on.astype(np.float64))
    recorded["value"] = rows["off"] * (rows["on"] / rows["off"]) ** acts
    return PlantedExperiment(recorded, fleet.jobs)


def active_early(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """For a share of the days before the study, the last ones, treated machines had the feature, and no row says so."""
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    since = fleet.first - round(share * (fleet.first - int(rows["period"].min())))
    early = rows["machine"].isin(treated) & rows["period"].between(since, fleet.first - 1)
    rows = rows.assign(value=rows["value"].where(~early, fleet.rows["on"]))
    return PlantedExperiment(rows, fleet.jobs, careless=Careless(baseline="own past"))


def controls_with_it(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """A share of the controls has the feature in the study; what rows do otherwise is a third of what it was."""
    series = fleet.rows.groupby(["machine", "job", "instance"])["off"].transform("mean")
    fleet = fleet.scaled(((series / fleet.rows["off"]) ** (2 / 3)).to_numpy())
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    controls = np.setdiff1d(fleet.machines, treated)
    having = rng.choice(controls, round(share * len(controls)), replace=False)
    on = fleet.study & rows["machine"].isin(having).to_numpy()
    return PlantedExperiment(rows.assign(value=np.where(on, fleet.rows["on"], rows["value"])), fleet.jobs)


def late_clocks(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """The clocks of a share of the treated machines are a day late; what then is after the last day is lost."""
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    late = rows["machine"].isin(rng.choice(treated, round(share * len(treated)), replace=False))
    period = rows["period"] + late
    flag = rows["machine"].isin(treated) & (period >= fleet.first)
    shifted = rows.assign(period=period, treated=flag.astype(rows["treated"].dtype))
    return PlantedExperiment(shifted[period <= rows["period"].max()], fleet.jobs)


def felt_by_neighbours(fleet: Potential, slope: float, rng: np.random.Generator) -> PlantedExperiment:
    """Machines without the feature gain by so much times the share of their rack's machines that have it."""
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    machines = rows.drop_duplicates("machine")
    share = machines["machine"].isin(treated).groupby(machines["rack"]).mean()
    felt = fleet.study & (rows["treated"] == 0).to_numpy()
    factor = 1.0 + slope * np.where(felt, rows["rack"].map(share), 0.0)
    return PlantedExperiment(rows.assign(value=rows["value"] * factor), fleet.jobs)


def slow_machines_vanish(fleet: Potential, share: float, rng: np.random.Generator) -> PlantedExperiment:
    """Machines differ by 8% for good; the slowest share of the treated reports on the first day of the study only."""
    factor = np.exp(rng.normal(0, 0.08, int(fleet.rows["machine"].max()) + 1))
    fleet = fleet.scaled(factor[fleet.rows["machine"].to_numpy()])
    treated = drawn(fleet, rng)
    rows = record(fleet, treated)
    speed = pd.Series(fleet.relative()).groupby(rows["machine"].to_numpy()).mean().reindex(treated)
    slowest = speed.nsmallest(round(share * len(treated))).index
    return PlantedExperiment(rows[~(rows["machine"].isin(slowest) & (rows["period"] > fleet.first))], fleet.jobs)


FAULTS: Mapping[str, PlantedFault] = {
    fault.name: fault
    for fault in (
        PlantedFault(
            "controls stopped",
            ("baseline_not_concurrent",),
            "treated machines seen without controls",
            (0.02, 0.5, 1.0),
            controls_stopped,
        ),
        PlantedFault("yesterday's baseline", ("baseline_not_concurrent",), "drift", (0.0, 0.02, 0.08), yesterday),
        PlantedFault(
            "everything treated",
            ("baseline_not_concurrent",),
            "share of the days",
            (0.0, 0.25, 0.625),
            everything_treated,
        ),
        PlantedFault("different days", ("different_windows",), "drift", (0.002, 0.05, 0.3), different_days),
        PlantedFault("carry-over", ("carry_over",), "share carried", (0.003, 0.3, 0.8), carried_over),
        PlantedFault("covering machines", ("selection_optimised",), "share chosen", (0.04, 0.4, 1.0), covering),
        PlantedFault("densest machines", ("selection_optimised",), "share chosen", (0.04, 0.4, 1.0), densest),
        PlantedFault("emptiest machines", ("selection_optimised",), "share chosen", (0.04, 0.4, 1.0), emptiest),
        PlantedFault("fastest machines", ("imbalance_before",), "share chosen", (0.02, 0.3, 1.0), fastest),
        PlantedFault("lost machines", ("sample_ratio",), "share lost", (0.02, 0.2, 0.6), lost_machines),
        PlantedFault("uneven platforms", ("sample_ratio",), "share moved", (0.03, 0.3, 0.8), uneven_platforms),
        PlantedFault("whole racks", ("whole_racks",), "share in chosen racks", (0.05, 0.5, 1.0), racks),
        PlantedFault("finite population", ("finite_population",), "share treated", (0.05, 0.25, 0.5), corrected),
        PlantedFault("few machines", ("few_clusters",), "machines short of 20", (0.0, 13.0, 17.0), few_machines),
        PlantedFault("rare slow machines", ("heavy_tails",), "how much slower", (0.01, 0.3, 0.85), rare_slow_machines),
        PlantedFault("independent rows", ("instances_independent",), "days", (1.0, 3.0, 7.0), independent_rows),
        PlantedFault(
            "jobs not covered", ("weights_renormalised",), "share of quota", (0.02, 0.2, 0.5), jobs_not_covered
        ),
        PlantedFault("jobs opted out", ("missing_jobs",), "share of quota", (0.005, 0.1, 0.4), jobs_opted_out),
        PlantedFault("survivors", ("churn",), "share evicted", (0.003, 0.1, 0.6), survivors),
        PlantedFault("restarts", ("churn",), "share restarted", (0.005, 0.1, 0.5), restarts),
        PlantedFault(
            "instructions per cycle", ("ipc_across_frequencies",), "share of the clock", (0.01, 0.2, 1.0), per_cycle
        ),
        PlantedFault("looks", ("peeking",), "looks", (1.0, 3.0, 14.0), looked_at),
        PlantedFault("doubled rows", ("duplicated_rows",), "share of the fast", (0.001, 0.05, 0.5), doubled_rows),
        PlantedFault("copied rows", ("duplicated_rows",), "share copied", (0.0005, 0.1, 1.0), copied_rows),
        PlantedFault("slow without values", ("unusable_values",), "share", (0.001, 0.03, 0.2), slow_without_values),
        PlantedFault("overflown counters", ("unusable_values",), "share", (0.001, 0.03, 0.2), overflown_counters),
        PlantedFault("frozen sensors", ("frozen_values",), "share of the treated", (0.0, 0.1, 1.0), frozen_sensors),
        PlantedFault("active early", ("early_feature",), "share of the past", (0.0, 0.3, 0.85), active_early),
        PlantedFault("controls with it", ("contaminated_controls",), "share", (0.01, 0.25, 0.5), controls_with_it),
        PlantedFault("late clocks", ("shifted_clocks",), "share of the treated", (0.0, 0.6, 1.0), late_clocks),
        PlantedFault("felt by neighbours", ("spill_over",), "slope", (0.01, 0.15, 0.3), felt_by_neighbours),
        PlantedFault("slow machines vanish", ("vanished_machines",), "share", (0.0, 0.2, 0.6), slow_machines_vanish),
        PlantedFault("another unit", ("unit_change",), "share of the controls", (0.0, 0.05, 0.4), other_unit),
        PlantedFault("unit from mid-study", ("unit_change",), "factor", (1.002, 1.5, 2.0), unit_from_mid_study),
        PlantedFault(
            "jobs in another unit", ("units_between_jobs",), "factor", (1.002, 20.0, 1000.0), jobs_in_another_unit
        ),
        PlantedFault("spill-over", ("mixed_machines",), "share of the machines", (0.01, 0.2, 1.0), spilling),
    )
}
"""The faults by name."""
