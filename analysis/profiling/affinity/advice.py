"""From a table of affinities to an assignment, what it promises, and what it is worth at the true CPI."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from analysis.profiling.affinity.programme import (
    ROUNDING,
    AffinityError,
    JobAssignment,
    anneal,
    any_assignment,
    assign,
    checked,
)
from analysis.profiling.affinity.sampled import aligned, table_of, true_table
from analysis.profiling.affinity.shrinkage import ShrunkCpi, estimate
from analysis.profiling.affinity.table import AffinityTable
from models.arrays import Bools, Floats

if TYPE_CHECKING:
    from analysis.profiling.database import Database

Method = Literal["lp", "anneal"]
HEADROOM = 1.0
"""Standard deviations of what a platform is asked for, beyond what it is asked for now, that it keeps free."""
_ROUNDS = 3
_SEED = 20100


@dataclass(frozen=True, slots=True)
class Settings:
    """What an assignment allows for."""

    headroom: float = HEADROOM
    """Standard deviations of what moves that each platform keeps free."""
    shrink: bool = True
    """Whether sampled CPI is shrunk; without it, it is taken as it is."""
    keep_traffic: bool = False
    """Whether no platform may get more last-level-cache misses than it has now."""


DEFAULTS = Settings()
"""As the paper has it, but for the shrinkage and the headroom."""


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """An assignment and what it promises."""

    table: AffinityTable
    believed: ShrunkCpi
    plan: JobAssignment
    method: Method
    headroom: Floats
    """(I,) share of each capacity that is kept free for what is not known of the CPI."""
    raised: tuple[str, ...]
    """Platforms whose capacity was raised by rounding to what the present assignment takes."""
    keeps_traffic: bool = False
    """Whether no platform gets more last-level-cache misses than it has now."""

    @property
    def before(self) -> float:
        """Cycles, or seconds, of the present assignment."""
        return spent(self.table, self.believed.cpi, self.table.load)

    @property
    def after(self) -> float:
        """Cycles, or seconds, of the advised assignment."""
        return spent(self.table, self.believed.cpi, self.plan.load)

    @property
    def saving(self) -> float:
        """Share of the present cycles, or seconds, that is promised to be saved."""
        return 1.0 - self.after / self.before if self.before > 0 else 0.0

    @property
    def shares(self) -> Floats:
        """(J, I) share of each job's load by platform; the present ones of a job without load."""
        return shares(self.plan.load)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an assignment is worth at the true CPI."""

    saving: float
    """Share of the true cycles, or seconds, that it saves."""
    possible: float
    """Share that the best assignment at the true CPI saves."""
    capacity_excess: float
    """Largest share by which it exceeds a platform's true capacity."""
    unseen: float = 0.0
    """Share of the possible saving that rests on pairs that never ran, whose CPI is predicted."""

    @property
    def sampled_over_possible(self) -> float:
        """Saving over the possible one; NaN where there is nothing to save.

        Examples
        --------
        >>> Judgement(0.03, 0.04, 0.0).sampled_over_possible
        0.75
        """
        return self.saving / self.possible if self.possible > 0 else float("nan")


def spent(table: AffinityTable, cpi: Floats, load: Floats, clocked: bool = True) -> float:
    """Return the cycles, or seconds, that an assignment takes.

    Parameters
    ----------
    table : allowed pairs and clocks
    cpi : (J, I) cycles per instruction
    load : (J, I) instructions
    clocked : whether cycles are divided by the clocks, if these are known

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"job": "a", "platform": "p", "load": 5.0, "cpi": 2.0, "capacity": 10.0}
    >>> table = AffinityTable.of(pd.DataFrame([row]))
    >>> spent(table, table.cpi, table.load)
    10.0
    """
    cost = cpi / table.clock if clocked else cpi
    return float(np.where(load > 0, cost * load, 0.0).sum())


def shares(load: Floats) -> Floats:
    """Return (J, I) each job's load by platform, as shares; 0 for jobs without load.

    Examples
    --------
    >>> shares(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    total = load.sum(axis=1, keepdims=True)
    return np.asarray(load / np.where(total > 0, total, 1.0))


def advise(table: AffinityTable, method: Method = "lp", settings: Settings = DEFAULTS) -> Advice:
    """Return the best assignment of a table's load.

    CPI with a standard error is shrunk, CPI that was not observed is predicted, and each platform keeps room for what
    is not known of the CPI of what is moved. Capacities that were measured by what is used now are in the same CPI as
    the plan: what shrinkage takes from the present use, it takes from the capacity.

    Parameters
    ----------
    table : what is known
    method : the exact linear programme, or simulated annealing
    settings : what is allowed for

    Raises
    ------
    AffinityError
        If the capacities are too small, or traffic is to be kept and misses are not known or cycles are annealed.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("NumCrunch", "1", 100, 1, 200), ("NumCrunch", "2", 100, 1, 300), ("MemBench", "1", 100, 1, 200),
    ...         ("MemBench", "2", 100, 2, 300)]
    >>> advice = advise(AffinityTable.of(pd.DataFrame(rows, columns=["job", "platform", "load", "cpi", "capacity"])))
    >>> advice.before, advice.after, advice.plan.optimal
    (500.0, 400.0, True)
    """
    believed = estimate(table)
    if not settings.shrink:
        sampled = np.isfinite(table.cpi)
        believed = replace(believed, cpi=np.where(sampled, table.cpi, believed.cpi), shrunk=0)
    room, raised = _capacity(table, believed)
    uses, capacity = table.cost(believed.cpi)[None], room[None]
    if settings.keep_traffic:
        uses, capacity = _with_traffic(table, method, uses, capacity)
    plan, headroom = assign(uses, table.total, capacity), np.zeros_like(capacity)
    for _ in range(_ROUNDS if settings.headroom > 0 and believed.log_se.any() else 0):
        headroom[0] = np.minimum(settings.headroom * _uncertainty(table, believed, plan.load), room)
        plan, headroom = _with_headroom(uses, table.total, capacity, headroom)
    if method == "anneal":
        plan = _annealed(table, uses, capacity - headroom, plan)
    share = np.divide(headroom[0], room, out=np.zeros_like(room), where=room > 0)
    names = tuple(name for name, more in zip(table.platforms, raised, strict=True) if more)
    return Advice(table, believed, plan, method, share, names, settings.keep_traffic)


def judge(advised: Floats, truth: AffinityTable) -> Judgement:
    """Judge an assignment at the true CPI.

    Pairs of which no true CPI is known because the job never ran there get that of the effects of job and platform;
    what the best assignment without them would save less is told as `unseen`.

    Parameters
    ----------
    advised : (J, I) shares of each job's load by platform, in the order of `truth`; jobs without any stay
    truth : true load and CPI; capacities are what the present assignment takes, or more

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a", "1", 100, 1, 200), ("a", "2", 100, 1, 300), ("b", "1", 100, 1, 200), ("b", "2", 100, 2, 300)]
    >>> table = AffinityTable.of(pd.DataFrame(rows, columns=["job", "platform", "load", "cpi", "capacity"]))
    >>> judgement = judge(np.array([[0.25, 0.75], [0.75, 0.25]]), table)
    >>> round(judgement.saving, 9), round(judgement.possible, 9), judgement.capacity_excess
    (0.1, 0.2, 0.0)
    """
    believed = estimate(truth)
    capacity, _ = _capacity(truth, believed)
    stays = advised.sum(axis=1) <= 0
    load = np.where(stays[:, None], truth.load, advised * truth.total[:, None])
    cost = believed.cpi / truth.clock
    used = np.where(load > 0, cost * load, 0.0).sum(axis=0)
    now = spent(truth, believed.cpi, truth.load)
    best = assign(truth.cost(believed.cpi)[None], truth.total, capacity[None])
    excess = float(np.max(used / np.where(capacity > 0, capacity, np.inf) - 1.0, initial=0.0))
    possible = 1.0 - best.cost / now
    uses = np.where(truth.unobserved & (truth.load <= 0), np.inf, truth.cost(believed.cpi))
    known = 1.0 - assign(uses[None], truth.total, capacity[None]).cost / now
    unseen = 1.0 - known / possible if possible > 1e-12 else 0.0
    excess = excess if excess > 1e-12 else 0.0
    return Judgement(1.0 - float(used.sum()) / now, possible, excess, float(np.clip(unseen, 0.0, 1.0)))


def _capacity(table: AffinityTable, believed: ShrunkCpi) -> tuple[Floats, Bools]:
    """Return capacities in cycles or seconds of what is believed, and which were raised by rounding."""
    running = np.isfinite(table.cpi) & (table.load > 0)
    shift = (np.where(running, believed.cpi - np.nan_to_num(table.cpi), 0.0) * table.load).sum(axis=0)
    shifted = np.maximum(table.capacity + shift, 0.0)
    used = np.where(table.load > 0, believed.cpi * table.load, 0.0).sum(axis=0)
    raised = (used > shifted) & (used <= shifted * (1.0 + ROUNDING))
    return np.where(raised, used, shifted) / table.clock, raised


def _uncertainty(table: AffinityTable, believed: ShrunkCpi, load: Floats) -> Floats:
    """Return (I,) standard deviations of what each platform is asked for beyond what it is asked for now.

    A relative error of a pair's CPI changes it by what of the pair moves. One more instruction of a pair, where loads
    were sampled too, takes the room that it takes now and is then shared out as all of its job.
    """
    cost = np.where(table.allowed, believed.cpi, 0.0) / table.clock
    square = ((cost * (load - table.load) * believed.log_se) ** 2).sum(axis=0)
    if table.load_se is not None:
        split, known = cost * shares(load), table.load_se**2
        elsewhere = known.sum(axis=1, keepdims=True) - known
        square += (split**2 * elsewhere + (split - cost) ** 2 * known).sum(axis=0)
    return np.asarray(np.sqrt(square))


def _with_traffic(table: AffinityTable, method: Method, uses: Floats, capacity: Floats) -> tuple[Floats, Floats]:
    """Return uses and capacities with misses beside cycles: each platform keeps at most those that it has."""
    if table.misses is None or method == "anneal":
        raise AffinityError("keeping memory traffic needs a column misses and the method lp")
    traffic = (table.misses * table.load).sum(axis=0) * (1.0 + ROUNDING)
    return np.concatenate([uses, table.misses[None]]), np.concatenate([capacity, traffic[None]])


def _with_headroom(uses: Floats, total: Floats, capacity: Floats, headroom: Floats) -> tuple[JobAssignment, Floats]:
    """Return the plan that keeps as much of the headroom as there is room for, halving it where there is not."""
    while True:
        try:
            return assign(uses, total, capacity - headroom), headroom
        except AffinityError:
            headroom = headroom / 2 if headroom.sum() > 1e-9 * capacity[0].sum() else np.zeros_like(headroom)


def _annealed(table: AffinityTable, uses: Floats, capacity: Floats, plan: JobAssignment) -> JobAssignment:
    """Return the plan of annealing, from the present assignment if it keeps the capacities, else from any that does."""
    start = table.load
    if ((np.where(start > 0, uses[0], 0.0) * start).sum(axis=0) > capacity[0] * (1.0 + ROUNDING)).any():
        start = any_assignment(uses, table.total, capacity)
    return checked(uses, anneal(uses[0], start, capacity[0], _SEED), capacity, plan.prices)


@dataclass(frozen=True, slots=True)
class AdviceTrial:
    """What there is to gain, how much of it samples gain, and how near annealing comes to the optimum."""

    gain: float
    """Share of the time that the best assignment at the true CPI saves."""
    promised: float
    """Share that the assignment from samples promises."""
    saved: float
    """Share that it saves at the true CPI."""
    sampled_over_possible: float
    """Saved over gain."""
    capacity_excess: float
    """Largest share by which it exceeds a true capacity."""
    jobs: int
    """Jobs that run on several platforms."""
    platforms: int
    anneal_gap: float
    """Relative excess of annealing's cost over the optimum, at the true CPI."""


def trial(database: "Database", truth_cpi: pd.DataFrame) -> AdviceTrial:
    """Return how an assignment from a profile's samples does at the true CPI.

    Parameters
    ----------
    database : a profile with cycles and instructions
    truth_cpi : application, platform, cycles, instructions over the horizon

    Raises
    ------
    QueryError, ProfileError, AffinityError
        As `table_of` and `advise` do.
    """
    frame = table_of(database)
    table, truth = AffinityTable.of(frame), true_table(truth_cpi, frame)
    advised = advise(table)
    judgement = judge(aligned(advised.shares, table, truth), truth)
    return _trial(advised.saving, judgement, truth)


def _trial(promised: float, judgement: Judgement, truth: AffinityTable) -> AdviceTrial:
    best, annealed = advise(truth), advise(truth, "anneal")
    return AdviceTrial(
        gain=judgement.possible,
        promised=promised,
        saved=judgement.saving,
        sampled_over_possible=judgement.sampled_over_possible,
        capacity_excess=judgement.capacity_excess,
        jobs=int(((truth.load > 0).sum(axis=1) > 1).sum()),
        platforms=len(truth.platforms),
        anneal_gap=annealed.after / best.after - 1.0,
    )
