"""Fleets whose courses with and without a feature are known, and experiments on them as a team would record them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from analysis.audit.about import About
from analysis.audit.case import Audited, contrast, contrast_before
from analysis.effects.observations import FlaggedRows
from analysis.statistics import student_quantile
from models.arrays import DAY_S, Bools, Floats
from scenarios.effects.scorecard import corners
from scenarios.effects.scorecard.fleets import STUDY
from sim.fleet.arms import everywhere, nowhere
from sim.fleet.day import prepare
from sim.fleet.experiment import measure

MACHINES, MACHINES_PER_RACK = 300, 10
"""Machines of a fleet; small racks, so that there are enough of them."""
RARE = 0.04
"""Share of the machines that make a tail, where one is planted."""
_STAY = ["residence", "window"]


@dataclass(frozen=True, slots=True, eq=False)
class Potential:
    """A fleet's instances by stay and day, without the feature (`off`) and with it everywhere (`on`)."""

    rows: pd.DataFrame
    """period, job, machine, instance, rack, platform, weight, present_s, off, on, clock_off, clock_on (Hz)."""
    jobs: pd.DataFrame
    """job, quota."""
    first: int
    """First period of the study."""

    @classmethod
    def of(cls, off: pd.DataFrame, on: pd.DataFrame, first: int) -> "Potential":
        """Return the fleet of two measurements of it, by day; stays of less than a tenth of a day are left out.

        Parameters
        ----------
        off, on : residence, window (d0, d1, …), instance, job, machine, rack, platform, quota_vcpu, wall_s,
            instructions, cycles, cpu_s
        first : first day of the study
        """
        both = off.merge(on[[*_STAY, "instructions", "cycles", "cpu_s"]], on=_STAY, suffixes=("", "_on"))
        both = both[(both["wall_s"] >= 0.1 * DAY_S) & (both["cpu_s"] > 0) & (both["cpu_s_on"] > 0)]
        rows = pd.DataFrame(
            {
                "period": both["window"].astype(str).str[1:].astype(np.int64),
                "job": both["job"].to_numpy(),
                "machine": both["machine"].to_numpy(),
                "instance": both["residence"].to_numpy(),
                "rack": both["rack"].to_numpy(),
                "platform": both["platform"].astype(str),
                "weight": both["quota_vcpu"].to_numpy(),
                "present_s": both["wall_s"].to_numpy(),
                "off": both["instructions"] / both["cpu_s"],
                "on": both["instructions_on"] / both["cpu_s_on"],
                "clock_off": both["cycles"] / both["cpu_s"],
                "clock_on": both["cycles_on"] / both["cpu_s_on"],
            }
        ).sort_values(["period", "machine", "instance"], ignore_index=True)
        quota = rows[rows["period"] >= first].groupby("job")["weight"].sum()
        return cls(rows, pd.DataFrame({"job": quota.index, "quota": quota.to_numpy()}), first)

    @property
    def machines(self) -> "np.typing.NDArray[np.int64]":
        """(M,) machines that have rows before and during the study."""
        rows = self.rows
        before = rows.loc[rows["period"] < self.first, "machine"]
        return np.intersect1d(before, rows.loc[rows["period"] >= self.first, "machine"]).astype(np.int64)

    @property
    def study(self) -> Bools:
        """(N,) rows of the study."""
        return (self.rows["period"] >= self.first).to_numpy()

    def truth(self) -> float:
        """Return the relative change of the whole fleet: jobs' means with and without, weighted by quota."""
        rows = self.rows[self.study]
        means = rows.groupby("job")[["off", "on"]].mean().reindex(self.jobs["job"])
        quota = self.jobs["quota"].to_numpy(dtype=np.float64)
        return float((quota * means["on"]).sum() / (quota * means["off"]).sum() - 1)

    def scaled(self, factor: Floats) -> "Potential":
        """Return the fleet with each row's performance, with and without the feature, times a factor."""
        return Potential(
            self.rows.assign(off=self.rows["off"] * factor, on=self.rows["on"] * factor), self.jobs, self.first
        )

    def relative(self) -> Floats:
        """Return (N,) performance without the feature relative to the job's mean."""
        return (self.rows["off"] / self.rows.groupby("job")["off"].transform("mean")).to_numpy()


@dataclass(frozen=True, slots=True)
class Careless:
    """How a team in a hurry estimates: the plain difference, with what it takes for granted."""

    baseline: str = "concurrent"
    """concurrent: machines without the feature. before: the fleet before. own past: each arm against itself before."""
    clusters: str = "machine"
    corrected: bool = False
    """Whether by a finite-population correction."""
    normal: bool = False
    """Whether with 1.96 in place of Student's t."""
    looks: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class PlantedExperiment:
    """What a team has: its table, the fleet's jobs, what it says of the experiment, how it would estimate."""

    observations: pd.DataFrame
    jobs: pd.DataFrame | None = None
    about: About = field(default_factory=About)
    careless: Careless = Careless()

    def answer(self) -> tuple[float, float] | None:
        """Return the plain estimate's change and half-width; None if there is none."""
        return plain(self.observations, self.jobs, self.careless)

    def answers(self) -> Iterator[tuple[float, float] | None]:
        """Yield what is answered at each look, as the roll-out grows in equal steps; the last look is at everything."""
        looks = self.careless.looks
        treated = np.unique(self.observations.loc[self.observations["treated"] == 1, "machine"])
        order = np.argsort(treated * 2654435761 % 2**32, kind="stable")
        for look in range(1, looks):
            out = treated[order[max(3, len(treated) * look // looks) :]]
            yield plain(self.observations[~self.observations["machine"].isin(out)], self.jobs, self.careless)
        yield self.answer()


def holds(answers: Iterable[tuple[float, float] | None], truth: float) -> bool:
    """Return whether every one of the intervals that were looked at holds the truth.

    Where a result is looked at again and again, one interval that excludes the truth is what the team acts on: of an
    experiment without an effect it is a false positive.
    """
    return all(answer is not None and abs(answer[0] - truth) <= answer[1] for answer in answers)


def plain(rows: pd.DataFrame, jobs: pd.DataFrame | None, careless: Careless) -> tuple[float, float] | None:
    """Return the change and half-width that a careless team computes of the rows that have numbers above 0."""
    good = rows[np.isfinite(rows["value"]) & (rows["value"] > 0)].reset_index(drop=True)
    table = Audited.under(FlaggedRows.of(good.assign(instance=np.arange(len(good)))), jobs)
    among = table.treated | ~table.study if careless.baseline == "before" else table.study
    racks = careless.clusters == "rack" and table.rack is not None
    cluster = table.rack if racks and table.rack is not None else np.arange(len(table.machines))
    estimate = contrast(table, among, table.treated, cluster)
    if estimate is None:
        return None
    error = estimate.alone_error if careless.clusters == "instance" else estimate.error
    if careless.corrected:
        share = table.ever.mean()
        variance = (estimate.influence**2).sum(axis=0)
        error = float(np.sqrt(variance[1] * (1 - share) + variance[0] * share))
    quantile = (
        1.96 if careless.normal or careless.clusters == "instance" else float(student_quantile(0.975, estimate.freedom))
    )
    prior = contrast_before(table) if careless.baseline == "own past" else None
    if prior is not None:
        return estimate.change - prior.change, quantile * float(np.hypot(error, prior.error))
    return estimate.change, quantile * error


def record(fleet: Potential, treated: "np.typing.NDArray[np.int64]", on: Bools | None = None) -> pd.DataFrame:
    """Return the observations of an experiment: the treated machines have the feature during the study.

    Parameters
    ----------
    fleet : both courses
    treated : machines
    on : (N,) rows with the feature, in place of those of the treated machines during the study
    """
    rows = fleet.rows
    if on is None:
        on = fleet.study & rows["machine"].isin(treated).to_numpy()
    observed = rows.drop(columns=["off", "on", "clock_off", "clock_on"])
    observed["value"] = np.where(on, rows["on"], rows["off"])
    observed["mean_frequency_hz"] = np.where(on, rows["clock_on"], rows["clock_off"])
    observed["treated"] = on.astype(np.int64)
    return observed


def with_rare(fleet: Potential, slower: float, rng: np.random.Generator) -> Potential:
    """Return the fleet with one machine in 25, drawn at random, slower by a share for good: a tail of machines.

    Examples
    --------
    >>> rows = {"machine": range(50), "off": 1.0, "on": 1.0, "period": 0}
    >>> fleet = Potential(pd.DataFrame(rows), pd.DataFrame(), 1)
    >>> sorted(set(with_rare(fleet, 0.75, np.random.default_rng(1)).rows["off"])), RARE
    ([0.25, 1.0], 0.04)
    """
    machines = np.unique(fleet.rows["machine"])
    rare = rng.choice(machines, max(round(RARE * len(machines)), 1), replace=False)
    return fleet.scaled(np.where(fleet.rows["machine"].isin(rare), 1 - slower, 1.0))


def simulated(seed: int, machines: int = MACHINES, corner: str = "upgrade") -> Potential:
    """Return a fleet of a corner of the sweep with its feature nowhere and everywhere: a week before, and a week.

    Parameters
    ----------
    seed : of the fleet
    machines : about that many
    corner : a name in `scenarios.effects.scorecard.corners.CORNERS`
    """
    world = corners.world(corners.corner(corner), seed, machines)
    day = prepare(replace(world, fleet=replace(world.fleet, machines_per_rack=MACHINES_PER_RACK)))
    names = {window.name: number for number, window in enumerate(day.world.windows)}
    courses = [measure(day, arm, threads=1) for arm in (nowhere(day), everywhere(day))]
    off, on = (course.assign(window="d" + course["window"].map(names).astype(str)) for course in courses)
    return Potential.of(off, on, STUDY)
