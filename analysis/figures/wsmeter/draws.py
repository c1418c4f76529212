"""Repeated test clusters from the half with the feature, each estimate beside its reference (WSMeter, section 6.1)."""

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects.cells import of_machines
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.study import Study, half_width
from analysis.figures.wsmeter.changes import mean_interval, share_interval
from analysis.statistics import UNKNOWN, NotEnoughDataError, Statistic
from analysis.wsmeter.clusters import MachineRows, random_machines
from analysis.wsmeter.estimators import WIDENING, Baseline, Estimate, WSMeter
from analysis.wsmeter.selection import top_jobs
from analysis.wsmeter.summaries import CodedMeasurements, Covered, Current
from models.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """A recorded fleet cut in two (WSMeter, section 6.1): measurement tables without and with the feature."""

    current: pd.DataFrame
    """job, machine, rack, weight, value, exposure; a row an instance."""
    new: pd.DataFrame
    jobs: pd.DataFrame
    """job, name, quota, instances of the whole fleet."""

    def only(self, names: tuple[str, ...]) -> "Halves":
        """Return the same of some jobs, by name."""
        jobs = self.jobs[self.jobs["name"].isin(names)]
        missing = sorted(set(names) - set(jobs["name"]))
        if missing:
            raise InputError(f"the run has no job named {', '.join(missing)}")
        current, new = (
            table[table["job"].isin(jobs["job"])].reset_index(drop=True) for table in (self.current, self.new)
        )
        return Halves(current, new, jobs.reset_index(drop=True))


def heaviest_jobs(halves: Halves, top: int) -> pd.DataFrame:
    """Return the jobs with the most quota of those that run in the current half."""
    return top_jobs(halves.jobs[halves.jobs["job"].isin(halves.current["job"])], top)


def cluster_draws(halves: Halves, sizes: tuple[int, ...], *, draws: int, seed: int = 1) -> pd.DataFrame:
    """Draw test clusters and estimate the change from each, by machines and by jobs.

    Parameters
    ----------
    halves : measurement tables of the halves, and every job of the fleet
    sizes : machines per cluster; sizes that exceed the machines of `new` are left out
    draws : clusters per size
    seed : of the draws

    Returns
    -------
    DataFrame
        estimator (baseline, wsmeter, wsmeter-widened), machines, draw, change, margin, quota_coverage, reference (the
        change over the whole of both halves: of the mean machine, or of the covered jobs), includes (the reference
        lies in the interval), excludes (no change does not). A cluster that covers no job has no wsmeter row.
    """
    index = MachineRows.of(halves.new)
    fitting = [size for size in sizes if size <= len(index.machines)]
    if not fitting:
        raise NotEnoughDataError(min(sizes), len(index.machines), "machines with the feature")
    before, measured = Current.of(halves.current), CodedMeasurements.of(halves.new)
    after = measured.summary()
    rng = np.random.default_rng(seed)
    table_rows = []
    for size in fitting:
        for draw in range(draws):
            sample = measured.summary(random_machines(rng, index, size))
            table_rows += [{"draw": draw, **row} for row in _estimates(before, after, sample, halves.jobs)]
    return _judged(pd.DataFrame(table_rows))


def _estimates(before: Current, after: Current, sample: Current, jobs: pd.DataFrame) -> list[dict[str, object]]:
    by_machine = Baseline().estimate(before, sample, jobs)
    reference = float(after.machine_value.mean() / before.machine_value.mean() - 1)
    results = [_row(by_machine, reference)]
    try:
        over = Covered.of(before, sample, WSMeter().min_instances, 1, jobs)
    except NotEnoughDataError:
        return results
    truth = after.mean[after.job.get_indexer(over.job)]
    reference = float(over.weight @ truth / (over.weight @ over.current.mean) - 1)
    return [*results, *(_row(estimator.over(over), reference) for estimator in (WSMeter(), WSMeter(widening=WIDENING)))]


def _row(estimate: Estimate, reference: float) -> dict[str, object]:
    fields = ("estimator", "machines", "change", "margin", "quota_coverage")
    return {name: getattr(estimate, name) for name in fields} | {"reference": reference}


def adjusted_draws(
    halves: Halves, sizes: tuple[int, ...], reference: float, *, draws: int, seed: int = 1
) -> pd.DataFrame:
    """Return what `adjusted` says of the clusters of `cluster_draws`, its 95% intervals with the margin of Student's t.

    The half without the feature is what it is beside: machines that could have been others, where WSMeter takes it for
    the whole truth. There is no past, so there are no covariates.

    Parameters
    ----------
    halves, sizes, draws, seed : as for `cluster_draws`
    reference : the change over all jobs of both halves

    Returns
    -------
    DataFrame
        As of `cluster_draws`, of the estimator adjusted; without quota_coverage.
    """
    arms = [halves.current.assign(treated=0), halves.new.assign(treated=1)]
    study = Study.of(pd.concat(arms).assign(period=0), halves.jobs[["job", "quota"]])
    index, host = MachineRows.of(halves.new), halves.new["machine"].to_numpy()
    rng, estimator, table_rows = np.random.default_rng(seed), Adjusted(), []
    for size in sizes:
        for draw in range(draws):
            drawn = study.cells.machines.isin(host[random_machines(rng, index, size)])
            chosen = drawn | ~study.treated
            answers = estimator.many(of_machines(study.cells, chosen), drawn[chosen][None, :])
            margin = half_width(answers.error, answers.freedom)
            table_rows.append((estimator.name, size, draw, answers.change.item(), margin.item(), reference))
    names = ["estimator", "machines", "draw", "change", "margin", "reference"]
    return _judged(pd.DataFrame(table_rows, columns=names))


def _judged(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(
        includes=(table["change"] - table["reference"]).abs() <= table["margin"],
        excludes=table["change"].abs() > table["margin"],
    )


def of(draws: pd.DataFrame, estimator: str, machines: int | None = None) -> pd.DataFrame:
    """Return the draws of one estimator, at one size or at all."""
    chosen = draws[draws["estimator"] == estimator]
    return chosen if machines is None else chosen[chosen["machines"] == machines]


def mean_of(draws: pd.DataFrame, estimator: str, machines: int, column: str) -> Statistic:
    """Return the mean of a column over the draws of one size, with its 95% interval; NaN without such draws."""
    values = of(draws, estimator, machines)[column].to_numpy(dtype=np.float64)
    return mean_interval(values) if len(values) else UNKNOWN


def share_of(draws: pd.DataFrame, estimator: str, column: str, machines: int | None = None) -> Statistic:
    """Return the share of draws in which something holds, with its 95% interval."""
    chosen = of(draws, estimator, machines)[column]
    return share_interval(int(chosen.sum()), len(chosen))


def worst_step(draws: pd.DataFrame, estimator: str, column: str, sign: float) -> float:
    """Return the lower 95% end of the rise (sign 1) or fall (sign −1) of a mean to the next size, the smallest.

    It is NaN if there is only one size.
    """
    sizes = sorted(of(draws, estimator)["machines"].unique())
    at = [mean_of(draws, estimator, size, column) for size in sizes]
    steps = [
        sign * (b.value - a.value) - float(np.hypot(a.value - a.low, b.value - b.low))
        for a, b in itertools.pairwise(at)
    ]
    return min(steps, default=float("nan"))
