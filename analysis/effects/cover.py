"""Random machines that are sure to hold enough of each top job."""

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import WscError

ATTEMPTS = 50
"""Times that a fleet is dealt anew where bundles lack a job."""


class ShortageError(WscError):
    """Jobs that are on too few machines for what is asked; one line each."""


def holdings(observations: pd.DataFrame, jobs: int) -> pd.DataFrame:
    """Return how many instances of each of the top jobs by quota a machine holds.

    Parameters
    ----------
    observations : columns job, machine, weight (quota of the instance); one row per instance, of one period before the
        study
    jobs : how many of the jobs with most quota

    Returns
    -------
    DataFrame
        machine, and one column for each job (in the order of falling quota) with its instances on the machine.
    """
    quota = observations.groupby("job")["weight"].sum().sort_values(ascending=False, kind="stable")
    counts = observations.groupby(["machine", "job"]).size().reset_index(name="n")
    counts = counts.pivot_table(index="machine", columns="job", values="n", fill_value=0).astype(np.int64)
    holders = counts[quota.index[:jobs].tolist()]
    holders.columns = pd.Index(holders.columns.to_numpy())
    return holders.reset_index()


def covering(instances: Ints, need: Ints, machines: int, rng: np.random.Generator) -> Bools:
    """Draw machines at random that are sure to hold at least `need` instances of each job.

    The whole fleet is dealt at random into bundles of `machines` that each hold enough, and one bundle is drawn. So
    each machine is drawn with the same probability, 1 / bundles, however the bundles came about, and estimators for
    equal probabilities apply. Which machines are drawn together is constrained to resemble the fleet, as in
    rerandomisation (Morgan and Rubin 2012): an error for machines drawn independently errs on the safe side.

    Parameters
    ----------
    instances : (M, J) array, of each job on each machine before the study
    need : (J,) array, 0 or more
    machines : how many to draw, at least what `fewest_machines` says
    rng : where the draws come from

    Returns
    -------
    (M,) array of bool
        M / (M // machines) of them, rounded either way.
    """
    if not 1 <= machines <= len(instances):
        raise ShortageError(f"between 1 and {len(instances)} machines can be drawn, {machines} are asked for")
    bundles = len(instances) // machines
    bundle = partition(instances, need, bundles, rng)
    return np.asarray(bundle == rng.integers(bundles), dtype=np.bool_)


def fewest_machines(instances: Ints, need: Ints) -> int:
    """Return how many machines must be drawn with equal probabilities for enough of the scarcest job.

    Parameters
    ----------
    instances, need : as for `covering`
    """
    have = instances.sum(axis=0)
    _refuse_shortage(have, need, "instances in the fleet")
    bundles = min(int((have[need > 0] // need[need > 0]).min(initial=len(instances))), len(instances))
    return -(-len(instances) // bundles)


def partition(instances: Ints, need: Ints, bundles: int, rng: np.random.Generator) -> Ints:
    """Deal all machines at random into bundles of equal size that hold at least `need` instances of each job.

    Machines are dealt in the order of the scarcest job on them, at random within it, each to the bundle that lacks most
    of what it holds; scarce jobs count for more.

    Parameters
    ----------
    instances, need, rng : as for `covering`
    bundles : G, 1 or more

    Returns
    -------
    (M,) array
        Bundle of each machine, 0 to G - 1. Sizes differ by 1 at most.
    """
    have = instances.sum(axis=0)
    _refuse_shortage(have, need * bundles, f"instances in {bundles} bundles")
    counts = np.array(instances, dtype=np.int64, order="C")
    scarcity = np.where(need > 0, have / np.maximum(need * bundles, 1), np.inf)
    worth = 1 / np.maximum(scarcity, 1.0) ** 4
    scarcest = np.where(counts > 0, scarcity, np.inf).min(axis=1, initial=np.inf)
    for _ in range(ATTEMPTS):
        order = rng.permutation(len(counts))
        order = order[np.argsort(scarcest[order], kind="stable")]
        dealt, enough = _dealt(counts, need.astype(np.int64), worth, order, rng.permutation(bundles))
        if enough:
            return np.asarray(dealt, dtype=np.int64)
    dealt_out = f"{len(counts)} machines could not be dealt into {bundles} bundles with enough of each job"
    raise ShortageError(f"{dealt_out}: draw more machines")


def _refuse_shortage(have: Ints, need: Ints, what: str) -> None:
    """Refuse all jobs of which there is too little."""
    short = np.flatnonzero(have < need)
    if len(short):
        lines = [f"job of column {job}: {need[job]} {what} are needed, there are {have[job]}" for job in short]
        raise ShortageError("\n".join(lines))


@njit(cache=True)
def _dealt(counts: Ints, need: Ints, worth: Floats, order: Ints, rank: Ints) -> tuple[Ints, bool]:
    """Return the bundle of each machine, and whether all bundles hold enough; `rank` breaks ties between bundles."""
    machines, jobs = counts.shape
    bundles = len(rank)
    lacking = np.empty((bundles, jobs), np.int64)
    for b in range(bundles):
        for j in range(jobs):
            lacking[b, j] = need[j]
    size, dealt = np.zeros(bundles, np.int64), np.zeros(machines, np.int64)
    larger = machines % bundles
    for machine in order:
        best, most = -1, -1.0
        for bundle in rank:
            full = machines // bundles + (1 if larger > 0 else 0)
            if size[bundle] >= full:
                continue
            helped = 0.0
            for job in range(jobs):
                if counts[machine, job] != 0:
                    helped += worth[job] * max(min(lacking[bundle, job], counts[machine, job]), 0)
            if helped > most or (helped == most and size[bundle] < size[best]):
                best, most = bundle, helped
        dealt[machine] = best
        size[best] += 1
        if size[best] > machines // bundles:
            larger -= 1
        for job in range(jobs):
            lacking[best, job] -= counts[machine, job]
    enough = True
    for b in range(bundles):
        for j in range(jobs):
            enough = enough and lacking[b, j] <= 0
    return dealt, enough
