"""What a job's CPI would become beside another job, also where the two were never seen together.

A neighbour is felt through what it takes from shared caches and memory: its misses per second. So the prediction is a
product: the sensitivity of one job to its neighbours' misses, times the misses of the other (the split into a curve of
sensitivity and a number for pressure is that of Mars et al. 2011 and Zhang et al. 2014; both take it by benchmarks
beside each program, here visits of production machines take their place).

Neighbours' misses as they were counted on the same visit mislead: slow memory slows neighbours too, so that they miss
less often just when the job suffers. So pressure is made of who was there, and what each of them does in the mean of
all its visits; placement looks at requests alone, and decides nothing by how memory is at that time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtri

from analysis.profiling.fleet_samples import on_visits, visits_of_fleet
from analysis.profiling.query import Profile, QueryError, unknown
from analysis.profiling.questions.prediction import MOST_INSTANCES, PredictedPairs
from analysis.profiling.questions.question import ranked
from analysis.profiling.shelf import give_back_memory
from models.arrays import Bools, Floats, Ints

EVENTS = ("cycles", "instructions", "llc_misses")
"""Events without which nothing can be predicted."""
_KEYS = ["visit", "application"]
_OF_VISITS = ["machine", "platform", "length_s", "weight"]
_PREDICTED = [
    "application", "beside", "advice", "effect", "low", "high", "ratio", "sensitivity", "intensity", "instances",
    "visits_together",
]  # fmt: skip
_ROUNDS = 200
_LEAST_JOBS = 10
_LEAST_SAMPLES, _MOST_WEIGHT = 8.0, 64.0
_LEAST_VARIANCE = 1e-12
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)
_WIDEST = 0.5
"""Standard error of a logarithm up to which a job counts for the spread between jobs."""


@dataclass(frozen=True, slots=True, eq=False)
class JobVisits:
    """What applications did on visited machines: R rows, one of each application on each visit."""

    names: tuple[str, ...]
    platforms: tuple[str, ...]
    application: Ints
    """(R,) index of `names`, as `platform` of `platforms`."""
    visit: Ints
    machine: Ints
    platform: Ints
    instances: Floats
    busy_threads: Floats
    """(R,) CPU time of all instances over the length of the visit."""
    events: Floats
    """(3, R) cycles, instructions and misses of the last-level cache, in events per second of the visit."""
    samples: Floats
    """(3, R) samples that these were counted by."""

    def without(self, visits: Ints) -> "JobVisits":
        """Return the rows of all other visits."""
        keep = ~np.isin(self.visit, visits)
        rows = {name: getattr(self, name)[..., keep] for name in _ROWS}
        return replace(self, **rows)

    def shared(self, a: int, b: int) -> Ints:
        """Return the visits on which both applications were seen."""
        return np.intersect1d(self.visit[self.application == a], self.visit[self.application == b])


_ROWS = ("application", "visit", "machine", "platform", "instances", "busy_threads", "events", "samples")


@dataclass(frozen=True, slots=True, eq=False)
class CoRunners:
    """What J jobs put up with, and what they do to others: all of it from visits."""

    names: tuple[str, ...]
    visits: Ints
    machines: Ints
    busy_threads: Floats
    """(J,) hardware threads that an instance keeps busy."""
    intensity: Floats
    """(J,) misses per CPU second, relative to those of all jobs on the same platforms, drawn towards the median job."""
    intensity_log_sd: Floats
    beside: Floats
    """(J,) intensity of the threads beside it, in the mean of its visits."""
    thread_share: Floats
    """(J,) one thread as a share of the busy threads of its machines."""
    sensitivity: Floats
    """(J,) change of the logarithm of CPI if the misses beside it grow by as much as a mean machine has in all."""
    sensitivity_sd: Floats
    enough: Bools
    """(J,) whether it was seen on enough visits and machines for a sensitivity."""
    known: Bools
    """(J,) whether it was seen on enough visits for an intensity."""

    def predicted(self, threads: float) -> pd.DataFrame:
        """Return what a job's CPI becomes if threads of its mean neighbour make room for as many of another job.

        Parameters
        ----------
        threads : hardware threads that are kept busy, by the other job's instances in place of mean neighbours

        Returns
        -------
        DataFrame
            application, beside, effect (on the logarithm of the application's CPI), low, high (95%), sensitivity (of
            the application), intensity (of the other), instances (of the other, that keep as many threads busy); in
            order of names. Jobs of which it takes more than `MOST_INSTANCES` are left out.
        """
        others = self.known & ~self.too_small(threads)
        rows, columns = np.nonzero(np.outer(self.enough, others) & ~np.eye(len(self.names), dtype=np.bool_))
        share = threads * self.thread_share[rows]
        pressure = share * (self.intensity[columns] - self.beside[rows])
        pressure_sd = share * self.intensity[columns] * self.intensity_log_sd[columns]
        mean, spread = self.sensitivity[rows], self.sensitivity_sd[rows]
        effect = mean * pressure
        half = ndtri(0.975) * np.sqrt((mean**2 + spread**2) * pressure_sd**2 + pressure**2 * spread**2)
        names = np.array(self.names, dtype=object)
        return pd.DataFrame(
            {
                "application": names[rows],
                "beside": names[columns],
                "effect": effect,
                "low": effect - half,
                "high": effect + half,
                "sensitivity": mean,
                "intensity": self.intensity[columns],
                "instances": threads / self.busy_threads[columns],
            }
        )

    def too_small(self, threads: float) -> Bools:
        """Return (J,) whether it takes more than `MOST_INSTANCES` of a job to keep so many threads busy."""
        return np.asarray(self.busy_threads * MOST_INSTANCES < threads)


def job_visits(database: Profile) -> JobVisits:
    """Return what a profile holds of applications on visited machines; the kernel's and daemons' work is left out.

    Raises
    ------
    QueryError
        If the profile lacks the events, or the CPU time of processes.
    """
    visits, processes = visits_of_fleet(database), database.table("processes")
    lacking = [f"visits.{name}" for name in _OF_VISITS if name not in visits]
    lacking += [] if "cpu_s" in processes and processes["cpu_s"].gt(0).any() else ["processes.cpu_s"]
    if lacking:
        raise QueryError(f"the profile lacks {', '.join(lacking)}")
    jobs = processes.loc[~processes["application"].str.startswith("["), [*_KEYS, "cpu_s"]]
    jobs = jobs[jobs["visit"].isin(visits["visit"])]
    del processes
    rows = jobs.groupby(_KEYS, as_index=False).agg(instances=("cpu_s", "size"), cpu_s=("cpu_s", "sum"))
    del jobs
    application, names = pd.factorize(rows["application"].astype(str), sort=True)
    visit = rows["visit"].to_numpy(np.int64)
    counted = [_counted(database, event, (visit, application, names)) for event in EVENTS]
    at = pd.Index(visits["visit"]).get_indexer(pd.Index(visit))
    length, weight = (visits[name].to_numpy(np.float64)[at] for name in ("length_s", "weight"))
    platform, platforms = pd.factorize(visits["platform"].astype(str).iloc[at], sort=True)
    return JobVisits(
        names=tuple(names),
        platforms=tuple(platforms),
        application=application.astype(np.int64),
        visit=visit,
        machine=pd.factorize(visits["machine"].iloc[at], sort=True)[0].astype(np.int64),
        platform=platform.astype(np.int64),
        instances=rows["instances"].to_numpy(np.float64),
        busy_threads=rows["cpu_s"].to_numpy(np.float64) / length,
        events=np.array([value * (1.0 / (weight * length)) for value, _ in counted]),
        samples=np.array([samples for _, samples in counted]),
    )


def _counted(database: Profile, event: str, rows: tuple[Ints, Ints, "pd.Index[str]"]) -> tuple[Floats, Floats]:
    """Return (R,) values and samples of an event, 0 where it has none.

    Parameters
    ----------
    database, event : asked
    rows : (R,) visits and numbers of applications, rising by visit, then by application; the applications
    """
    visit, application, names = rows
    table = on_visits(database, event)
    give_back_memory()
    if not len(table):
        raise QueryError(f"the profile has no samples of {event}")
    code = names.get_indexer(pd.Index(table["application"]))
    key, own = visit * len(names) + application, table["visit"].to_numpy(np.int64) * len(names) + code
    at = np.minimum(np.searchsorted(key, own), max(len(key) - 1, 0))
    some = np.flatnonzero((code >= 0) & (key[at] == own)) if len(key) else at[:0]
    value, samples = np.zeros(len(key)), np.zeros(len(key))
    value[at[some]] = table["value"].to_numpy(np.float64)[some]
    samples[at[some]] = table["samples"].to_numpy(np.float64)[some]
    return value, samples


@dataclass(frozen=True, slots=True)
class CoRunnerSettings:
    """What is asked of a prediction."""

    threads: float = 4.0
    """Hardware threads that newcomers keep busy."""
    min_visits: int = 5
    """Visits of either job, at least."""
    min_machines: int = 5
    """Machines that the job was seen on whose CPI is predicted, at least."""


def co_runners(rows: JobVisits, settings: CoRunnerSettings) -> CoRunners:
    """Return what every job puts up with and does to others.

    CPI of a job's visits on one platform is regressed on the misses and on the busy threads of its neighbours, where
    each neighbour counts by its own means. Both slopes of each job are drawn towards those of jobs with a CPI like its
    own, by as much as their errors make advisable (empirical Bayes, by expectation and maximisation); neighbours'
    misses speed no job up, so the belief about that slope is cut at 0.

    Parameters
    ----------
    rows : what jobs did
    settings : visits and machines that are needed
    """
    count = len(rows.names)
    busy = _over(_sum(rows, rows.busy_threads), _sum(rows, rows.instances))
    intensity, intensity_log_sd = _intensities(rows)
    machine_busy = np.bincount(rows.platform, rows.busy_threads, len(rows.platforms)) / np.maximum(
        np.bincount(_firsts(rows), minlength=len(rows.platforms)), 1
    )
    own = busy[rows.application]
    threads, misses = _beside(rows, own), _beside(rows, own * intensity[rows.application])
    pressure = np.array([misses, threads]) / machine_busy[rows.platform]
    slopes, errors, common, usable = _slopes(rows, pressure)
    log_cpi = _log_cpi(rows)
    visits = np.bincount(rows.application, minlength=count)
    machines = np.bincount(_on_machines(rows)[0], minlength=count)
    enough = (visits >= settings.min_visits) & (machines >= settings.min_machines) & usable
    mean, spread = _shrunk(slopes, errors, np.where(enough, log_cpi, 0.0), enough)
    spread = np.where(enough, np.sqrt(spread**2 + common), 0.0)
    return CoRunners(
        names=rows.names,
        visits=visits,
        machines=machines,
        busy_threads=busy,
        intensity=intensity,
        intensity_log_sd=intensity_log_sd,
        beside=_over(_sum(rows, misses), _sum(rows, threads)),
        thread_share=_over(_sum(rows, 1.0 / machine_busy[rows.platform]), visits.astype(np.float64)),
        sensitivity=mean,
        sensitivity_sd=spread,
        enough=enough,
        known=(visits >= settings.min_visits) & (_sum(rows, rows.samples[2]) > 0),
    )


def _sum(rows: JobVisits, values: Floats) -> Floats:
    return np.asarray(np.bincount(rows.application, values, len(rows.names)), np.float64)


def _per(group: Ints, values: Floats) -> Floats:
    """Return sums of values by group, 0, 1, 2, …"""
    return np.asarray(np.bincount(group, values), np.float64)


def _over(above: Floats, below: Floats) -> Floats:
    return np.asarray(above / np.where(below > 0, below, 1.0), np.float64)


def _firsts(rows: JobVisits) -> Ints:
    """Return the platform of each visit."""
    return rows.platform[np.unique(rows.visit, return_index=True)[1]]


def _on_machines(rows: JobVisits) -> tuple[Ints, Ints, Ints]:
    """Return application and machine of each pair of them that there is, and (R,) the row's pair."""
    most = int(rows.machine.max(initial=0)) + 1
    pairs, of = np.unique(rows.application * most + rows.machine, return_inverse=True)
    return pairs // most, pairs % most, of


def _beside(rows: JobVisits, amount: Floats) -> Floats:
    """Return (R,) sums over all instances of a visit but one of the row's, of what each instance has."""
    visit = np.unique(rows.visit, return_inverse=True)[1]
    return np.asarray(np.bincount(visit, rows.instances * amount)[visit] - amount)


def _log_cpi(rows: JobVisits) -> Floats:
    """Return (J,) logarithms of CPI relative to that of all jobs on the same platforms."""
    cycles, instructions = rows.events[0], rows.events[1]
    common = _over(_per(rows.platform, cycles), _per(rows.platform, instructions))[rows.platform]
    ratio = _over(_sum(rows, cycles), _sum(rows, common * instructions))
    return np.log(np.where(ratio > 0, ratio, 1.0))


def _intensities(rows: JobVisits) -> tuple[Floats, Floats]:
    """Return (J,) misses per CPU second relative to all jobs' on the same platforms, and their errors as logarithms.

    They are drawn towards the median job by as much as samples and differences between machines make advisable.
    """
    misses, samples = rows.events[2], _sum(rows, rows.samples[2])
    common = _over(_per(rows.platform, misses), _per(rows.platform, rows.busy_threads))[rows.platform]
    ratio = _over(_sum(rows, misses), _sum(rows, common * rows.busy_threads))
    known = (ratio > 0) & (samples > 0)
    log = np.log(np.where(known, ratio, 1.0))
    job, _, of = _on_machines(rows)
    here = _over(_per(of, misses), _per(of, common * rows.busy_threads))
    counted = _per(of, rows.samples[2])
    much = (counted >= _LEAST_SAMPLES) & (here > 0)
    apart = np.log(here[much]) - log[job[much]]
    between, chance = _variances(apart**2, 1.0 / counted[much], counted[much])
    machines = np.maximum(np.bincount(job, minlength=len(rows.names)), 1)
    variance = np.where(known, between / machines + chance / np.maximum(samples, 1.0), np.inf)
    sure = variance < _WIDEST**2
    centre = float(np.median(log[sure])) if sure.any() else 0.0
    spread = max(float(np.var(log[sure]) - variance[sure].mean()), 0.0) if sure.sum() > 1 else 0.0
    keep = spread / (spread + variance) if spread > 0 else np.zeros(log.size)
    return np.exp(centre + keep * (log - centre)), np.sqrt(keep * np.where(np.isinf(variance), 0.0, variance))


def _slopes(rows: JobVisits, pressure: Floats) -> tuple[Floats, Floats, float, Bools]:
    """Return (J, 2) slopes of log CPI on both pressures, (J, 2, 2) their covariances, and which jobs have them.

    Third is the variance of the first slope that all jobs have in common: what is slow about a machine itself slows all
    jobs there.
    """
    count = len(rows.names)
    cell = rows.application * len(rows.platforms) + rows.platform
    cycles, instructions = rows.events[0], rows.events[1]
    expected = _over(_per(cell, cycles), _per(cell, instructions))[cell] * instructions
    both = cycles + expected
    samples = rows.samples[0] + rows.samples[1]
    y = 2.0 * (cycles - expected) / np.where(both > 0, both, 1.0)
    within, chance = _variances(y**2, 4.0 / np.maximum(samples, 1.0), samples)
    owner, machine, of = _on_machines(rows)
    alike = min(_alike(y, np.minimum(samples, _MOST_WEIGHT), of), within)
    alone = chance * 4.0 / np.maximum(samples, 1.0) + within - alike
    weight = np.where((both > 0) & (samples > 0), 1.0 / (alone + _LEAST_VARIANCE), 0.0)
    level = 1.0 / np.sqrt(1.0 + alike * np.bincount(of, weight))[of]
    y, *z = (_levelled(values, level, cell, weight, of) for values in (y, *pressure))
    job = rows.application
    information = np.array([[np.bincount(job, weight * a * b, count) for b in z] for a in z]).transpose(2, 0, 1)
    product = np.array([np.bincount(job, weight * a * y, count) for a in z]).T
    scale = np.trace(information, axis1=1, axis2=2)
    usable = np.linalg.det(information) > 1e-9 * scale**2
    usable &= scale > 0
    safe = np.where(usable[:, None, None], information, np.eye(2))
    slopes = np.linalg.solve(safe, product[:, :, None])[:, :, 0]
    residual = y - np.einsum("kr,rk->r", np.array(z), slopes[job])
    scores = [np.bincount(of, weight * part * residual) for part in z]
    meat = np.array([[np.bincount(owner, a * b, count) for b in scores] for a in scores]).transpose(2, 0, 1)
    inverse = np.linalg.inv(safe)
    machines = np.bincount(owner, minlength=count)
    worse = np.trace(inverse @ meat, axis1=1, axis2=2) / 2.0 * machines / np.maximum(machines - 2, 1)
    trusted = np.where(usable, np.maximum(machines - 2.0, 0.0), 0.0)
    factor = float(np.average(worse, weights=trusted)) if trusted.sum() > 0 else 1.0
    whole = np.linalg.pinv(information[usable].sum(axis=0))
    ours = usable[owner]
    by_machine = np.array([np.bincount(machine[ours], part[ours]) for part in scores])
    shared = by_machine @ by_machine.T - meat[usable].sum(axis=0)
    common = max(float((whole @ shared @ whole)[0, 0]), 0.0)
    return slopes, inverse * max(factor, 1e-12), common, usable


def _variances(square: Floats, by_chance: Floats, samples: Floats) -> tuple[float, float]:
    """Return the variance that squares have however many samples there are, and the factor on that of independent ones.

    Samples taken at even distances vary less than independent ones. Least squares; neither is below 0.
    """
    weight = np.minimum(samples, _MOST_WEIGHT) ** 2
    total, x, y = (float((weight * part).sum()) for part in (np.ones(weight.size), by_chance, square))
    xx, xy = float((weight * by_chance**2).sum()), float((weight * by_chance * square).sum())
    spread = total * xx - x * x
    factor = (total * xy - x * y) / spread if spread > 0 else 0.0
    factor = min(max(factor, 0.0), xy / xx if xx > 0 else 0.0)
    return (max((y - factor * x) / total, 0.0) if total > 0 else 0.0), factor


def _alike(values: Floats, weight: Floats, of: Ints) -> float:
    """Return the variance that rows of one job on one machine have in common: their mean product, two at a time."""
    own, square = _per(of, weight * values), _per(of, (weight * values) ** 2)
    pairs = np.bincount(of, weight) ** 2 - np.bincount(of, weight**2)
    return max(float((own**2 - square).sum() / max(pairs.sum(), 1e-300)), 0.0)


def _levelled(values: Floats, level: Floats, cell: Ints, weight: Floats, of: Ints) -> Floats:
    """Return values less a part of their job's mean on their machine, and less the cell's constant treated likewise.

    So least squares become those of rows that share a random effect of job and machine: `level` is what is left of a
    constant.
    """
    here = _over(_per(of, weight * values), _per(of, weight))[of]
    left = values - (1.0 - level) * here
    constant = _over(_per(cell, weight * left * level), _per(cell, weight * level**2))
    return np.asarray(left - constant[cell] * level)


def _shrunk(slopes: Floats, errors: Floats, log_cpi: Floats, enough: Bools) -> tuple[Floats, Floats]:
    """Return (J,) first slopes drawn towards those of jobs with a CPI alike and cut at 0, and their deviations."""
    chosen = np.flatnonzero(enough)
    mean, spread = np.zeros(enough.size), np.zeros(enough.size)
    if not chosen.size:
        return mean, spread
    design = np.ones((chosen.size, 1))
    if chosen.size >= _LEAST_JOBS:
        design = np.column_stack([design, log_cpi[chosen] - log_cpi[chosen].mean()])
    precision = np.linalg.inv(errors[chosen])
    own = np.einsum("jab,jb->ja", precision, slopes[chosen])
    centre = np.linalg.solve(precision.sum(axis=0), own.sum(axis=0))
    between = np.diag(np.maximum(np.var(slopes[chosen], axis=0), 1e-12))
    goal = np.tile(centre, (chosen.size, 1))
    for _ in range(_ROUNDS):
        inverse = np.linalg.inv(between)
        variance = np.linalg.inv(precision + inverse)
        belief = np.einsum("jab,jb->ja", variance, own + goal @ inverse)
        goal = design @ np.linalg.lstsq(design, belief, rcond=None)[0]
        apart = belief - goal
        between = (variance.sum(axis=0) + apart.T @ apart) / chosen.size + 1e-15 * np.eye(2)
    mean[chosen], own_sd = _cut(belief[:, 0], np.sqrt(variance[:, 0, 0]))
    spread[chosen] = np.sqrt(own_sd**2 + _of_goals(design, errors[chosen] + between, variance @ np.linalg.inv(between)))
    return mean, spread


def _of_goals(design: Floats, total: Floats, pull: Floats) -> Floats:
    """Return (n,) variances of the first slopes that come from not knowing what they are drawn towards.

    Parameters
    ----------
    design : (n, k) what goals are made of
    total : (n, 2, 2) variances of measured slopes about their goals
    pull : (n, 2, 2) by how much a goal moves the belief
    """
    parts = [np.kron(row[None, :], np.eye(2)) for row in design]
    information = sum(part.T @ np.linalg.inv(of) @ part for part, of in zip(parts, total, strict=True))
    covariance = np.linalg.pinv(information)
    moves = [by @ part for by, part in zip(pull, parts, strict=True)]
    return np.array([float((move @ covariance @ move.T)[0, 0]) for move in moves])


def _cut(mean: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of a normal law of which only what is above 0 is left."""
    safe = np.maximum(spread, 1e-300)
    ratio = mean / safe
    hazard = np.exp(-(ratio**2) / 2.0 - _LOG_ROOT - log_ndtr(ratio))
    left = np.maximum(1.0 - hazard * (hazard + ratio), 0.0)
    return np.maximum(mean + safe * hazard, 0.0), safe * np.sqrt(left)


def predicted_pairs(
    database: Profile,
    *,
    min_visits: int = 5,
    min_machines: int = 5,
    top: int = 20,
    threads: float = 4.0,
    application: str = "",
    beside: str = "",
) -> PredictedPairs:
    """Return what happens to an application's CPI if instances of another take the place of its mean neighbours.

    The comparison: on the application's machines, neighbours that were drawn with equal chance leave, and instances of
    the other that keep as many threads busy come; changes are scaled to `threads` of them.

    Parameters
    ----------
    database : asked
    min_visits : visits of either application, at least
    min_machines : machines that the application was seen on, at least
    top : rows
    threads : hardware threads kept busy by the newcomers
    application, beside : only these; empty: all

    Raises
    ------
    QueryError
        If a parameter is wrong, or no visit saw an application of that name.
    """
    check_threads(threads)
    try:
        rows = job_visits(database)
    except QueryError as lacking:
        return _nothing(threads, str(lacking))
    wrong = [name for name in (application, beside) if name and name not in rows.names]
    if wrong:
        raise QueryError("\n".join(unknown("application", name, rows.names) for name in wrong))
    settings = CoRunnerSettings(threads, min_visits, min_machines)
    return _ranked_pairs(rows, settings, {"application": application, "beside": beside}, top)


def check_threads(threads: float) -> None:
    """Raise QueryError if that many threads cannot be kept busy.

    Examples
    --------
    >>> check_threads(0.0)
    Traceback (most recent call last):
    analysis.profiling.query.QueryError: threads: should be above 0, got 0.0
    """
    if not threads > 0.0:
        raise QueryError(f"threads: should be above 0, got {threads}")


def _ranked_pairs(rows: JobVisits, settings: CoRunnerSettings, only: Mapping[str, str], top: int) -> PredictedPairs:
    model = co_runners(rows, settings)
    table = model.predicted(settings.threads)
    for column, name in only.items():
        table = table[table[column] == name] if name else table
    slower, faster = table["low"] > 0, table["high"] < 0
    advice = np.select([slower, faster], ["apart", "together"], "none")
    table = table.assign(advice=advice, size=table["effect"].abs())
    best = ranked(table, "size", ["application", "beside"], top)
    index = {name: i for i, name in enumerate(rows.names)}
    together = [rows.shared(index[a], index[b]).size for a, b in zip(best["application"], best["beside"], strict=True)]
    best = best.assign(ratio=np.exp(best["effect"]), visits_together=np.array(together, np.int64))
    return PredictedPairs(
        threads=settings.threads,
        rows=best[_PREDICTED],
        pairs=len(table),
        slower=int(slower.sum()),
        faster=int(faster.sum()),
        half_width=float(((table["high"] - table["low"]) / 2).median()) if len(table) else float("nan"),
        applications=len(rows.names),
        left_out=_left_out(model, settings),
        too_small=int((model.known & model.too_small(settings.threads)).sum()),
        reason="" if len(table) else "no pair of applications was visited often enough",
    )


def _left_out(model: CoRunners, settings: CoRunnerSettings) -> pd.DataFrame:
    """Return the applications whose CPI is not predicted, and why."""
    lacking = np.flatnonzero(~model.enough)
    needed = f"{settings.min_visits} visits of {settings.min_machines} machines are needed"
    reasons = [
        f"{visits} visit{'s' * (visits != 1)} of {machines} machine{'s' * (machines != 1)}, {needed}"
        if visits < settings.min_visits or machines < settings.min_machines
        else "its neighbours never changed"
        for visits, machines in zip(model.visits[lacking].tolist(), model.machines[lacking].tolist(), strict=True)
    ]
    names = np.array(model.names, dtype=object)[lacking]
    counts = {"visits": model.visits[lacking], "machines": model.machines[lacking]}
    return pd.DataFrame({"application": names, **counts, "reason": reasons})


def _nothing(threads: float, reason: str) -> PredictedPairs:
    none = pd.DataFrame(columns=["application", "visits", "machines", "reason"])
    return PredictedPairs(threads, pd.DataFrame(columns=_PREDICTED), 0, 0, 0, float("nan"), 0, none, 0, reason)
