"""Designs rehearsed on a fleet's own past: its courses without the feature, and with an assumed effect beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.arrangements import LEAST_DOMAINS, Arrange, at_random, balanced, pairing, saturated, stratified
from analysis.effects.cells import JobMachineSums
from analysis.effects.crossovers import Switchable
from analysis.effects.estimators.paired import FEWEST
from analysis.effects.exposure import Exposure
from analysis.effects.methods import method
from analysis.effects.past import Past, drift
from analysis.effects.study import potential
from analysis.effects.switching import coins
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats

COURSES = 6
"""Stretches of the past, at most, that a design is rehearsed on."""
_SCHEDULES = 12
_HEAVYWEIGHTS = 10
_ENOUGH = 6
"""Periods from which autocovariances say enough to extrapolate."""
_WORST = -0.9
"""No effect is below this."""


class Course(NamedTuple):
    """Potential outcomes of all machines over one stretch, how machines are drawn, and the true change."""

    cells: JobMachineSums
    truth: float
    arrange: Arrange


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """A design and an estimator with what they are tried on."""

    design: str
    estimator: str
    courses: tuple[Course, ...]
    hours: float
    """Length of the study."""
    least: int
    """Fewest machines that can be treated."""
    most: int
    scale: float = 1.0
    """Factor on all errors, for studies that are longer than the past reaches."""
    notes: tuple[str, ...] = ()
    switching: int = 0
    """Periods in which machines switch the feature on and off; 0: they keep what they get."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed of the feature, and where random numbers come from."""

    detect: float = 0.01
    """Relative change of the whole fleet."""
    spread: float = 0.02
    """Standard deviation of the jobs' relative effects."""
    apart: float = 0.005
    """Standard deviation of what a machine adds to the effects on all that it holds."""
    seed: int = 1


def spans(past: Past, days: float, assumed: Assumed, estimators: Sequence[str]) -> Iterator[Rehearsal]:
    """Yield the designs of so many days after as many, with concurrent controls: random, balanced, paired, stratified.

    Every stretch of the past that is long enough is one course, six of them at most. Where none is, the longest that
    there are take its place, and errors are scaled by `drift`.

    Parameters
    ----------
    past : at least two periods
    days : of the study, and of the time before it
    assumed : of the feature
    estimators : names; the balanced, the paired and the stratified design have one of their own

    Raises
    ------
    NotEnoughDataError
        If there are fewer than two periods.
    """
    wanted, periods = past.of_days(days), len(past.periods)
    if periods < 2:
        raise NotEnoughDataError(2, periods, "periods without the feature")
    length = min(wanted, periods // 2)
    name = _name(wanted * past.period_s)
    scale, notes = _extrapolated(past, wanted, length) if length < wanted else (1.0, ())
    hours = wanted * past.period_s / 3600.0
    stretches = list(_stretches(past, length, assumed))
    machines = min(len(cells.machines) for cells, _, _ in stretches)
    for estimator in estimators:
        courses = tuple(
            Course(cells, change, at_random(method(estimator), len(cells.machines)).arrange)
            for cells, change, _ in stretches
        )
        yield Rehearsal(name, estimator, courses, hours, 2, machines // 2, scale, notes)
    courses = tuple(
        Course(cells, change, balanced(cells, before, _HEAVYWEIGHTS).arrange) for cells, change, before in stretches
    )
    yield Rehearsal(f"{name}, balanced", "balanced", courses, hours, 8, machines // 2, scale, notes)
    yield from _paired(name, stretches, hours, scale, notes)
    if "platform" in past.table and len(past.table["platform"].unique()) > 1:
        yield from _stratified(name, stretches, hours, scale, notes)


@dataclass(frozen=True, slots=True, eq=False)
class DomainRehearsal:
    """A design in which domains are drawn to saturations, and what machines of a domain have in common."""

    saturated: Rehearsal
    alone: Rehearsal
    """The same with as many machines drawn one by one, were there no spill-over."""
    correlation: float
    """Of machines within domains, in what jobs and the past leave; the mean over stretches."""
    machines: float
    """Of a domain."""


def by_domain(past: Past, days: float, assumed: Assumed, saturations: Sequence[float]) -> DomainRehearsal:
    """Return the design of so many days after as many in which domains are drawn, with the column rack for domains.

    Parameters
    ----------
    past, days, assumed : as of `spans`
    saturations : shares of a domain's machines that have the feature

    Raises
    ------
    NotEnoughDataError
        If there are fewer than two periods, or fewer domains than two of each saturation.
    """
    periods = len(past.periods)
    if periods < 2:
        raise NotEnoughDataError(2, periods, "periods without the feature")
    wanted = past.of_days(days)
    length = min(wanted, periods // 2)
    scale, notes = _extrapolated(past, wanted, length) if length < wanted else (1.0, ())
    stretches = list(_stretches(past, length, assumed))
    ways = [saturated(cells, saturations) for cells, _, _ in stretches]
    machines = min(len(cells.machines) for cells, _, _ in stretches)
    sizes = [size for size in range(1, machines) if all(way.fits(size) for way in ways)]
    if not sizes:
        domains = min(len(np.unique(cells.rack)) for cells, _, _ in stretches)
        raise NotEnoughDataError(LEAST_DOMAINS * len(set(saturations)), domains, "domains")
    common = [
        alike(cells, np.random.default_rng((assumed.seed, place))) for place, (cells, _, _) in enumerate(stretches)
    ]
    shares = ", ".join(f"{share:.0%}" for share in sorted(set(saturations)))
    name, hours = _name(wanted * past.period_s), wanted * past.period_s / 3600.0
    method_of = "whole-domains" if {0.0, 1.0} <= set(saturations) else "exposure"
    drawn_alone = tuple(
        Course(cells, change, at_random(method("adjusted"), len(cells.machines)).arrange)
        for cells, change, _ in stretches
    )
    drawn = tuple(Course(cells, change, way.arrange) for (cells, change, _), way in zip(stretches, ways, strict=True))
    title = f"{name}, domains at {shares}"
    even = int(np.mean(sorted(set(saturations))) * machines)  # as many domains at each saturation: more tell no more
    most = min(sizes[-1], max(even, sizes[0]))
    return DomainRehearsal(
        Rehearsal(title, method_of, drawn, hours, sizes[0], most, scale, notes),
        Rehearsal(name, "adjusted", drawn_alone, hours, 2, machines // 2, scale, notes),
        float(np.nanmean([correlation for correlation, _ in common])),
        float(np.nanmean([size for _, size in common])),
    )


def alike(cells: JobMachineSums, rng: np.random.Generator) -> tuple[float, float]:
    """Return by how much machines of a domain correlate, and how many there are, with half of the domains treated."""
    domains = int(cells.rack.max()) + 1
    chosen = np.isin(cells.rack, rng.permutation(domains)[: domains // 2])
    parts = Exposure().parts(replace(cells, y=cells.y[:, [0, 0]]), chosen)
    return parts.correlation, parts.machines


def crossover(past: Past, assumed: Assumed, periods: int | None = None) -> Rehearsal:
    """Return the design in which machines switch the feature on and off, pair of periods by pair, by own coins.

    All others never have the feature; what the jobs do in common is learnt from them.

    Parameters
    ----------
    past : in periods of the switching, such as hours
    assumed : of the feature
    periods : of the study; those of a day, or as many as there are

    Raises
    ------
    NotEnoughDataError
        If there are fewer than two periods.
    """
    available = len(past.periods)
    length = (min(periods or past.of_days(1.0), available) // 2) * 2
    if length < 2:
        raise NotEnoughDataError(2, available, "periods without the feature")
    table = past.between(available - length, available)
    adjusted = method("adjusted")
    able = Switchable.of(table, (table, table), past.jobs)
    courses = []
    for number in range(_SCHEDULES):
        cells, change = _switched(able, assumed, np.random.default_rng((assumed.seed, 1000 + number)))
        courses.append(Course(cells, change, at_random(adjusted, len(cells.machines)).arrange))
    machines = min(len(course.cells.machines) for course in courses) // 2
    hours = length * past.period_s / 3600.0
    note = "time to settle after a switch is not counted as lost: measure as long as here besides"
    name = f"crossover of {length} periods"
    return Rehearsal(name, "adjusted", tuple(courses), hours, 2, machines, notes=(note,), switching=length)


def _extrapolated(past: Past, wanted: int, length: int) -> tuple[float, tuple[str, ...]]:
    """Return by what errors of the longest study that can be rehearsed are scaled for one that is longer, and why."""
    reached, periods_ = _name(length * past.period_s), len(past.periods)
    if periods_ < _ENOUGH:
        return 1.0, (
            f"the past reaches for {reached}, too short to show what a longer one brings: errors are taken from it",
        )
    scale = drift(past, wanted, length)
    what = "machines and shards" if "shard" in past.table else "machines"
    how = f"how performance of {what} correlates over {periods_ - 1} periods, which is a guess of later ones"
    return scale, (f"the past reaches for {reached}; errors are scaled by {scale:.2f}, from {how}",)


def with_effect(cells: JobMachineSums, assumed: Assumed, rng: np.random.Generator) -> tuple[JobMachineSums, float]:
    """Return cells whose column with the feature is the other one, times effects of job and machine; and the truth.

    Effects are normal. Those of the jobs make the change of the fleet exactly.

    Parameters
    ----------
    cells : without the feature
    assumed : of the feature
    rng : where effects come from
    """
    jobs = len(cells.jobs)
    count, value = np.bincount(cells.job, cells.count, jobs), np.bincount(cells.job, cells.y[:, 0], jobs)
    level = cells.weight * np.divide(value, count, out=np.zeros(jobs), where=count > 0)
    machine = np.repeat(rng.standard_normal(len(cells.machines)), np.diff(cells.start))
    by = 1.0 + np.maximum(_effects(level, assumed, rng)[cells.job] + assumed.apart * machine, _WORST)
    whole = replace(
        cells,
        y=np.stack([cells.y[:, 0], by * cells.y[:, 0]], axis=1),
        yy=np.stack([cells.yy[:, 0], by**2 * cells.yy[:, 0]], axis=1),
        xy=np.stack([cells.xy[:, 0], by[:, None] * cells.xy[:, 0]], axis=1),
        measured=np.stack([cells.measured[:, 0], by * cells.measured[:, 0]], axis=1),
        measured_squares=np.stack([cells.measured_squares[:, 0], by**2 * cells.measured_squares[:, 0]], axis=1),
    )
    return whole, truth(whole)


def truth(cells: JobMachineSums) -> float:
    """Return the change of the whole fleet, over all jobs that have an instance, both columns being known."""
    jobs = len(cells.jobs)
    count = np.bincount(cells.job, cells.count, jobs)
    off, on = (
        np.divide(np.bincount(cells.job, cells.y[:, arm], jobs), count, out=np.zeros(jobs), where=count > 0)
        for arm in (0, 1)
    )
    return float((cells.weight * on).sum() / (cells.weight * off).sum() - 1.0)


def _stretches(past: Past, length: int, assumed: Assumed) -> Iterator[tuple[JobMachineSums, float, pd.DataFrame]]:
    """Yield cells, true change and observations before of the stretches of the past, spread evenly."""
    last = len(past.periods) - 2 * length
    for place in np.unique(np.linspace(0, last, min(last + 1, COURSES)).round().astype(int)).tolist():
        before, now = past.between(place, place + length), past.between(place + length, place + 2 * length)
        cells = potential(before, now, now, past.jobs, target=past.target)
        yield *with_effect(cells, assumed, np.random.default_rng((assumed.seed, place))), before


def _paired(
    name: str,
    stretches: Sequence[tuple[JobMachineSums, float, pd.DataFrame]],
    hours: float,
    scale: float,
    notes: tuple[str, ...],
) -> Iterator[Rehearsal]:
    """Yield the design of machines in pairs that were alike; nothing if there are too few of them."""
    pairings = [pairing(cells, before) for cells, _, before in stretches]
    machines = min(len(cells.machines) for cells, _, _ in stretches)
    fit = [number for number in range(FEWEST, machines // 2 + 1) if all(way.fits(number) for way in pairings)]
    if not fit:
        return
    courses = tuple(
        Course(cells, change, way.arrange) for (cells, change, _), way in zip(stretches, pairings, strict=True)
    )
    yield Rehearsal(f"{name}, paired", "paired", courses, hours, fit[0], fit[-1], scale, notes)


def _stratified(
    name: str,
    stretches: Sequence[tuple[JobMachineSums, float, pd.DataFrame]],
    hours: float,
    scale: float,
    notes: tuple[str, ...],
) -> Iterator[Rehearsal]:
    """Yield the design stratified by platform; nothing if a platform has too few machines."""
    drawn = [stratified(cells, before) for cells, _, before in stretches]
    machines = min(len(cells.machines) for cells, _, _ in stretches)
    sizes = [size for size in range(1, machines // 2 + 1) if all(way.fits(size) for way in drawn)]
    if not sizes:
        return
    courses = tuple(
        Course(cells, change, way.arrange) for (cells, change, _), way in zip(stretches, drawn, strict=True)
    )
    yield Rehearsal(f"{name}, by platform", "stratified", courses, hours, sizes[0], machines // 2, scale, notes)


def _switched(able: Switchable, assumed: Assumed, rng: np.random.Generator) -> tuple[JobMachineSums, float]:
    """Return the cells of a crossover of a fleet with random effects and coins, and the true change."""
    rows, machines = able.switched.rows, len(able.switched.plan)
    machine = np.repeat(np.arange(machines), rows.end - rows.start)
    jobs = len(able.fleet)
    counts, level = np.bincount(rows.job, minlength=jobs), np.bincount(rows.job, rows.value[:, 0], jobs)
    weight = able.fleet["quota"].to_numpy() * able.fleet["scale"].to_numpy() / np.maximum(counts, 1)
    effect = _effects(weight * level, assumed, rng)[rows.job] + assumed.apart * rng.standard_normal(machines)[machine]
    effect = np.maximum(effect, _WORST)
    share = weight[rows.job] * rows.value[:, 0]
    value = np.stack([rows.value[:, 0], rows.value[:, 0] * (1.0 + effect)], axis=1)
    with_it = replace(able, switched=replace(able.switched, rows=rows._replace(value=value)))
    return with_it.cells(coins(able.switched.plan.shape, rng)), float((share * effect).sum() / share.sum())


def _effects(level: Floats, assumed: Assumed, rng: np.random.Generator) -> Floats:
    """Return each job's effect: normal, such that the whole fleet's is what is assumed."""
    effect = assumed.spread * rng.standard_normal(len(level))
    return np.asarray(effect + assumed.detect - float((level * effect).sum() / level.sum()))


def _name(length_s: float) -> str:
    days = length_s / 86400.0
    length = f"{days:g} {'day' if days == 1 else 'days'}" if days >= 1 else f"{length_s / 3600.0:g} h"
    return f"{length} after {length}"
