"""An experiment's observations as codes and flags: what all guards look at."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Ints
from models.errors import WscError

NEEDED = ("period", "job", "machine", "weight", "value", "treated")
"""Columns that every table of observations has."""

_AMOUNTS = ("present_s", "cpu_s", "exposure", "mean_frequency_hz", "clock_hz", "cycles")
"""Columns beside value and weight whose numbers must be above 0; CPU time may be 0."""
_COARSE = 0.05
"""Share of rows whose value another machine has, too, from which equal values say nothing."""


class ObservationsError(WscError):
    """A table of observations cannot be audited."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """N usable observations, of J jobs on M machines in P periods.

    Examples
    --------
    >>> rows = {"period": [0, 1, 1], "job": "a", "machine": [1, 1, 2], "weight": 1.0, "value": [2.0, 3.0, 4.0]}
    >>> made = Table.of(pd.DataFrame(rows | {"treated": [0, 1, 0]}))
    >>> made.study, made.relative, made.ever
    (array([False,  True,  True]), array([0.5 , 0.75, 1.  ]), array([ True, False]))
    """

    rows: pd.DataFrame
    """The observations; index from 0."""
    period: Ints
    """(N,)"""
    job: Ints
    """(N,)"""
    machine: Ints
    """(N,)"""
    treated: Bools
    """(N,)"""
    study: Bools
    """(N,) whether anything had the feature by then; the others are the pre-period."""
    relative: Floats
    """(N,) value divided by its job's mean without the feature."""
    quota: Floats
    """(J,) the jobs' weights: of the whole fleet if there is a table of jobs."""
    scale: Floats
    """(J,) the jobs' means without the feature."""
    unseen: float
    """Share of the fleet's quota held by jobs that have no row at all."""
    ever: Bools
    """(M,) whether the machine had the feature in any period."""
    never: Bools
    """(M,) whether it had no feature in a period of the study."""
    rack: Ints | None
    """(M,) rack of each machine, if known."""
    periods: pd.Index
    jobs: pd.Index
    machines: pd.Index
    by_rack: bool = False
    """Whether errors are to count racks, whatever got the feature together."""

    @classmethod
    def of(cls, observations: pd.DataFrame, jobs: pd.DataFrame | None = None, *, by_rack: bool = False) -> "Table":
        """Leave out rows that cannot be used and identical ones, and columns of unusable amounts; code the others.

        Parameters
        ----------
        observations : period, job, machine, weight, value, treated and perhaps rack
        jobs : job, quota of the whole fleet
        by_rack : as in `Table`

        Raises
        ------
        ObservationsError
            If a column is missing, nothing can be used, or nothing has the feature.
        """
        rows = usable(observations)
        rows = rows.drop(columns=list(unusable_amounts(rows)))
        period, periods = pd.factorize(rows["period"], sort=True)
        job, names = pd.factorize(rows["job"], sort=True)
        machine, machines = pd.factorize(rows["machine"], sort=True)
        treated = rows["treated"].to_numpy() == 1
        if not treated.any() and (observations["treated"] == 1).any():
            raise ObservationsError("no row with the feature has a value and a weight above 0")
        if not treated.any():
            raise ObservationsError("nothing has the feature: no row has treated 1, or there is no such column")
        study = period >= period[treated].min()
        value = rows["value"].to_numpy(dtype=np.float64)
        scale = _scale(job, value, treated, study, len(names))
        quota, unseen = _quota(rows, job, pd.Index(names), jobs)
        return cls(
            rows=rows,
            period=period.astype(np.int64),
            job=job.astype(np.int64),
            machine=machine.astype(np.int64),
            treated=treated,
            study=study,
            relative=value / scale[job],
            quota=quota,
            scale=scale,
            unseen=unseen,
            ever=np.bincount(machine, treated, len(machines)) > 0,
            never=np.bincount(machine, study & ~treated, len(machines)) > 0,
            rack=_first(rows["rack"], machine, len(machines)) if "rack" in rows else None,
            periods=pd.Index(periods),
            jobs=pd.Index(names),
            machines=pd.Index(machines),
            by_rack=by_rack,
        )

    @property
    def crossover(self) -> bool:
        """Whether most machines with the feature were in the study without it, too."""
        return bool((self.ever & self.never).sum() > 0.5 * self.ever.sum())

    @property
    def weight(self) -> Floats:
        """(N,) the rows' own weights."""
        return self.rows["weight"].to_numpy(dtype=np.float64)

    def windows_apart(self) -> float:
        """Return the share of the treated quota of the study that is in other periods than the untreated quota.

        Examples
        --------
        >>> rows = {"period": [1, 1, 2], "job": "a", "machine": [1, 2, 2], "weight": 1.0, "value": [2.0, 3.0, 4.0]}
        >>> Table.of(pd.DataFrame(rows | {"treated": [0, 1, 1]})).windows_apart()
        0.5
        """
        shares = []
        for arm in (self.treated, self.study & ~self.treated):
            quota = np.bincount(self.period, self.weight * arm, len(self.periods))
            shares.append(quota / max(float(quota.sum()), 1e-300))
        return float(np.abs(shares[1] - shares[0]).sum() / 2)

    def platforms(self) -> tuple[Ints, pd.Index]:
        """Return (M,) each machine's platform and the platforms' names; one for all if there is no such column.

        Examples
        --------
        >>> rows = {"period": 1, "job": "a", "machine": [1, 2], "weight": 1.0, "value": 2.0, "treated": [0, 1]}
        >>> Table.of(pd.DataFrame(rows)).platforms()[1].tolist()
        ['']
        """
        if "platform" not in self.rows:
            return np.zeros(len(self.machines), dtype=np.int64), pd.Index([""])
        code, names = pd.factorize(self.rows["platform"], sort=True)
        return _first(pd.Series(code), self.machine, len(self.machines)), pd.Index(names)

    def whole_racks(self) -> bool:
        """Return whether each of several racks has the feature on all of its machines or on none.

        Examples
        --------
        >>> rows = {"period": 1, "job": "a", "machine": range(8), "weight": 1.0, "value": 2.0}
        >>> racks = {"rack": [0, 0, 1, 1, 2, 2, 3, 3], "treated": [1, 1, 0, 0, 1, 1, 0, 0]}
        >>> Table.of(pd.DataFrame(rows | racks)).whole_racks()
        True
        """
        if self.rack is None or self.crossover:
            return False
        size = np.bincount(self.rack)
        having = np.bincount(self.rack, self.ever)
        several = size > 1
        mixed = several & (having > 0) & (having < size)
        return bool((several & (having > 0)).any() and mixed.sum() <= 0.1 * (several & (having > 0)).sum())

    def units(self) -> Ints:
        """Return (M,) what counts as independent: racks if whole racks got the feature or it is asked, else machines.

        Examples
        --------
        >>> rows = {"period": 1, "job": "a", "machine": [7, 9], "weight": 1.0, "value": 2.0, "treated": [0, 1]}
        >>> Table.of(pd.DataFrame(rows)).units()
        array([0, 1])
        """
        if self.rack is not None and (self.by_rack or self.whole_racks()):
            return self.rack
        return np.arange(len(self.machines))


def usable(observations: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that can be counted: finite and above 0, and of identical ones the first.

    Raises
    ------
    ObservationsError
        If a column is missing or no row is left.

    Examples
    --------
    >>> rows = {"period": 1, "job": "a", "machine": 1, "weight": 1.0, "value": [2.0, 2.0, -1.0], "treated": 0}
    >>> len(usable(pd.DataFrame(rows)))
    1
    """
    missing = [name for name in NEEDED if name not in observations]
    if missing:
        raise ObservationsError(f"columns are missing: {', '.join(missing)}")
    rows = observations[~unusable(observations)]
    rows = rows[~repeated(rows)].reset_index(drop=True)
    if not len(rows):
        raise ObservationsError("no row has a value and a weight above 0")
    return rows


def unusable(observations: pd.DataFrame) -> Bools:
    """Return (N,) which rows have a value or weight that is not finite and above 0.

    Examples
    --------
    >>> unusable(pd.DataFrame({"weight": [1.0, 1.0], "value": [1.0, float("nan")]}))
    array([False,  True])
    """
    numbers = observations[["value", "weight"]].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    return np.asarray(~(np.isfinite(numbers) & (numbers > 0)).all(axis=1), dtype=np.bool_)


def unusable_amounts(observations: pd.DataFrame) -> dict[str, Bools]:
    """Return the columns of presence, CPU time, exposure or frequency that have unusable rows; (N,) which those are.

    Examples
    --------
    >>> unusable_amounts(pd.DataFrame({"present_s": [1.0, 2.0], "cpu_s": [0.0, float("nan")]}))
    {'cpu_s': array([False,  True])}
    """
    found = dict[str, Bools]()
    for name in (each for each in _AMOUNTS if each in observations):
        number = pd.to_numeric(observations[name], errors="coerce").to_numpy(dtype=np.float64)
        enough = number >= 0 if name == "cpu_s" else number > 0
        wrong = np.asarray(~(np.isfinite(number) & enough), dtype=np.bool_)
        if wrong.any():
            found[name] = wrong
    return found


def repeated(observations: pd.DataFrame) -> Bools:
    """Return (N,) which rows say what an earlier row said: same period, job, machine, instance and value.

    An instance that comes back to its machine has two rows in one period, with values of their own. Without column
    `instance` equal values may belong to two instances: rows count as repeated only where values are so fine that
    hardly two machines ever agree.

    Examples
    --------
    >>> rows = {"period": 1, "job": "a", "machine": [1, 1, 2], "weight": 1.0, "value": [2.0, 2.0, 3.0], "treated": 0}
    >>> repeated(pd.DataFrame(rows))
    array([False,  True, False])
    """
    names = ["period", "job", "machine", "instance", "residence", "weight", "value"]
    known = [name for name in names if name in observations]
    if "instance" in known and observations["instance"].is_unique:
        return np.zeros(len(observations), dtype=np.bool_)
    again = observations.duplicated(known).to_numpy()
    if again.any() and not {"instance", "residence"} & {*known}:
        single = observations.loc[~again, ["period", "job", "value"]]
        if single.duplicated(keep=False).mean() > _COARSE:
            return np.zeros(len(again), dtype=np.bool_)
    return again


def _scale(job: Ints, value: Floats, treated: Bools, study: Bools, jobs: int) -> Floats:
    """Return (J,) mean values: of the concurrent untreated rows, or else of the untreated, or else of all."""
    scale = np.full(jobs, np.nan)
    for chosen in (study & ~treated, ~treated, np.ones(len(job), dtype=np.bool_)):
        count = np.bincount(job[chosen], minlength=jobs)
        mean = np.bincount(job[chosen], value[chosen], jobs) / np.maximum(count, 1)
        scale = np.where(np.isnan(scale) & (count > 0), mean, scale)
    return scale


def _quota(rows: pd.DataFrame, job: Ints, names: pd.Index, jobs: pd.DataFrame | None) -> tuple[Floats, float]:
    """Return (J,) the weights of the jobs that have rows, and the share of the fleet's quota that others hold."""
    if jobs is None:
        own = np.bincount(job, rows["weight"].to_numpy(dtype=np.float64), len(names))
        return np.asarray(own, dtype=np.float64), 0.0
    missing = [name for name in ("job", "quota") if name not in jobs]
    if missing:
        raise ObservationsError(f"the table of jobs lacks columns: {', '.join(missing)}")
    given = jobs.drop_duplicates("job").set_index("job")["quota"].astype(np.float64)
    quota: Floats = np.asarray(given.reindex(names).fillna(0.0), dtype=np.float64)
    if not quota.sum() > 0:
        raise ObservationsError("no job of the observations has a quota in the table of jobs")
    return quota, float(1 - quota.sum() / given.sum())


def _first(values: "pd.Series", machine: Ints, machines: int) -> Ints:
    """Return (M,) each machine's first value, as a code."""
    code = pd.factorize(values, sort=True)[0]
    made = np.zeros(machines, dtype=np.int64)
    made[machine[::-1]] = code[::-1]
    return made
