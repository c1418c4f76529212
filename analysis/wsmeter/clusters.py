"""Test clusters: which rows of a fleet's measurement table a roll-out would have seen, and the jobs that they cover."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from models.arrays import Ints
from models.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class MachineRows:
    """Where every machine's rows stand in a measurement table, sorted once so that a draw is a few slices.

    Machine i (in the order of `machines`) has the rows ``order[starts[i] : starts[i + 1]]``.
    """

    machines: pd.Index
    order: Ints
    starts: Ints

    @classmethod
    def of(cls, measurements: pd.DataFrame) -> "MachineRows":
        """Sort a table's rows by machine.

        Examples
        --------
        >>> rows = MachineRows.of(pd.DataFrame({"machine": [9, 7, 9]}))
        >>> rows.machines.tolist(), rows.select(np.array([1]))
        ([7, 9], array([0, 2]))
        """
        code, machines = pd.factorize(measurements["machine"], sort=True)
        counts = np.bincount(code, minlength=len(machines))
        return cls(pd.Index(machines), np.argsort(code, kind="stable"), np.concatenate([[0], np.cumsum(counts)]))

    def select(self, chosen: Ints) -> Ints:
        """Return the rows of the chosen machines (positions in `machines`), machine by machine."""
        start, count = self.starts[chosen], self.starts[chosen + 1] - self.starts[chosen]
        ends = np.cumsum(count)
        at: Ints = np.repeat(start - ends + count, count) + np.arange(count.sum())
        return self.order[at]


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A test cluster: the rows it holds and how it was found."""

    rows: Ints
    quota_coverage: float
    """Share of the CPU quota that the jobs with enough instances hold."""
    reselections: int
    """Draws thrown away before it because their coverage was too low."""


def random_machines(rng: np.random.Generator, rows: MachineRows, size: int) -> Ints:
    """Return the rows of `size` machines drawn at random without replacement (Lee et al. 2018, section 5.2.2).

    Parameters
    ----------
    rng : the draws' own stream
    rows : where each machine's rows stand
    size : machines in the cluster, at least 1

    Raises
    ------
    NotEnoughDataError
        If there are fewer machines.

    Examples
    --------
    >>> rows = MachineRows.of(pd.DataFrame({"machine": [9, 7, 9]}))
    >>> random_machines(np.random.default_rng(0), rows, 2)
    array([1, 0, 2])
    """
    if size < 1:
        raise InputError(f"size must be at least 1 machine, got {size}")
    if size > len(rows.machines):
        raise NotEnoughDataError(size, len(rows.machines), "machines")
    return rows.select(rng.choice(len(rows.machines), size, replace=False))


def covering_machines(
    rng: np.random.Generator,
    measurements: pd.DataFrame,
    rows: MachineRows,
    size: int,
    *,
    jobs: pd.DataFrame,
    floor: float,
    min_instances: int = 4,
    attempts: int = 1000,
) -> Cluster:
    """Draw machines again until the jobs with enough instances hold `floor` of the quota (section 5.2.2).

    Parameters
    ----------
    rng : the draws' own stream
    measurements : columns job, machine; the table that `rows` was made from
    rows : where each machine's rows stand
    size : machines in the cluster
    jobs : columns job, quota_share (of the whole fleet); the jobs that count
    floor : least quota coverage, 0..1
    min_instances : instances from which a job counts as covered
    attempts : draws after which the search is given up

    Raises
    ------
    NotEnoughDataError
        If there are fewer machines.
    ValueError
        If no draw reaches the floor; the message says the best.

    Examples
    --------
    >>> table = pd.DataFrame({"job": "a", "machine": [1, 2, 3, 4]})
    >>> jobs = pd.DataFrame({"job": ["a", "b"], "quota_share": [0.75, 0.25]})
    >>> rows = MachineRows.of(table)
    >>> covering_machines(np.random.default_rng(0), table, rows, 4, jobs=jobs, floor=0.7).quota_coverage
    0.75
    """
    code = pd.Index(jobs["job"]).get_indexer(pd.Index(measurements["job"]))
    share = jobs["quota_share"].to_numpy(dtype=np.float64)
    best = 0.0
    for reselections in range(attempts):
        chosen = random_machines(rng, rows, size)
        known = code[chosen]
        instances = np.bincount(known[known >= 0], minlength=len(share))
        coverage = float(share[instances >= min_instances].sum())
        if coverage >= floor:
            return Cluster(chosen, coverage, reselections)
        best = max(best, coverage)
    raise InputError(f"quota coverage must reach {floor:.3f}; the best of {attempts} draws of {size} has {best:.3f}")


def random_instances(rng: np.random.Generator, measurements: pd.DataFrame, allocation: pd.DataFrame) -> Ints:
    """Return the rows of as many random instances of each job as a plan allots, for features of single jobs.

    Parameters
    ----------
    rng : the draws' own stream
    measurements : column job; one row per measured instance
    allocation : columns job, instances

    Raises
    ------
    NotEnoughDataError
        If a job has fewer instances than allotted.

    Examples
    --------
    >>> table = pd.DataFrame({"job": ["a", "b", "a"]})
    >>> random_instances(np.random.default_rng(0), table, pd.DataFrame({"job": ["a"], "instances": [2]}))
    array([0, 2])
    """
    code = pd.Index(allocation["job"]).get_indexer(pd.Index(measurements["job"]))
    wanted = allocation["instances"].to_numpy(dtype=np.int64)
    have = np.bincount(code[code >= 0], minlength=len(wanted))
    for job, need, given in zip(allocation["job"], wanted, have, strict=True):
        if given < need:
            raise NotEnoughDataError(int(need), int(given), f"instances of job {job}")
    shuffled = rng.permutation(len(code))
    shuffled = shuffled[code[shuffled] >= 0]
    by_job = shuffled[np.argsort(code[shuffled], kind="stable")]
    rank = np.arange(len(by_job)) - np.repeat(np.cumsum(have) - have, have)
    return np.sort(by_job[rank < wanted[code[by_job]]])
