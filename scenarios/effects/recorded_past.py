"""A fleet's past without any feature, from its own tables or runs, as planners take it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.effects.estimand import RATE, Estimand
from analysis.effects.observations import FlaggedRows
from analysis.effects.past import Past, period_length
from analysis.tables.cells import Source, name_of
from analysis.tables.recipe import Recipe
from analysis.wsmeter.measurements import read_jobs
from models.fleet.metrics import METRICS, MetricName
from scenarios.effects.observations import NO_DENOMINATORS, in_one_arm, observed, ratios_of_runs, run_metric
from scenarios.files.faults import Fault, FaultsError, faults_in

_MANY_UNMOVED = 0.5
"""Share of pairs of job and machine without any change from which it is told."""
_PERIODS = {
    1: "one period in which nothing has the feature is",
    2: "two periods in which nothing has the feature are",
}


def recorded_past(
    tables: Sequence[Source],
    jobs: Source | None,
    metric: MetricName | None,
    recipe: Recipe,
    *,
    least: int = 2,
    estimand: Estimand = RATE,
) -> tuple[Past, list[str]]:
    """Return what tables say of the time before anything had the feature, and notes.

    Parameters
    ----------
    tables : of observations, or folders of runs
    jobs : job, quota, instances of the whole fleet; without it jobs weigh as in the tables
    metric : of runs; that of their scenario if not said
    recipe : how columns of the tables become ours
    least : periods that are needed, 1 or 2
    estimand : what values are of; rows whose values cannot be are left out, but faults of a rate

    Raises
    ------
    FaultsError
        With everything that is wrong with the tables, or if there are fewer periods.
    """
    rate, names = estimand.metric_kind == "rate", ", ".join(map(name_of, tables))
    if faults := list(ratios_of_runs(tables, estimand)):
        raise FaultsError(faults)
    reading, dates = observed(tables, metric, recipe=recipe, strict=rate, estimand=estimand)
    in_one_arm(tables, reading.table, recipe, both=False)
    rows, notes = reading.table, [*reading.notes]
    if not rate:
        if estimand.metric_kind == "ratio" and "exposure" not in rows:
            raise FaultsError([Fault(names, 0, 0, "exposure", NO_DENOMINATORS)])
        flagged = replace(FlaggedRows.of(rows, reading.left_out, estimand), lines=reading.lines)
        rows, left_out = flagged.estimable()
        notes += [*left_out, *flagged.outside()]
    if (measured := run_metric(tables, metric)) is not None:
        notes.append(in_words(measured))
    fleet = None
    if jobs is not None:
        with faults_in(Path(name_of(jobs))):
            fleet = read_jobs(jobs).table
    treated = rows.loc[rows["treated"] == 1, "period"]
    if len(treated):
        rows = rows[rows["period"] < treated.min()].reset_index(drop=True)
        first = dates.named(float(treated.min()))
        notes.append(f"only the periods before {first} are used, when the first machine has the feature")
    periods = rows["period"].nunique()
    if periods < least:
        problem = f"at least {_PERIODS[least]} needed"
        raise FaultsError([Fault(names, 0, 0, "period", problem, str(periods))])
    if rate and (share := _unmoved(rows)) > _MANY_UNMOVED:
        notes.append(
            f"value: {share:.0%} of the pairs of job and machine have the same value in every period; these add no "
            "noise, so margins are too small: is it a setting, or a sensor that stands still?"
        )
    return Past(rows.drop(columns="file"), period_length(rows), fleet), notes


def _unmoved(rows: pd.DataFrame) -> float:
    """Return the share of the pairs of job and machine whose values never change, of those seen in several periods."""
    pairs = rows.groupby(["job", "machine"]).agg(periods=("period", "nunique"), values=("value", "nunique"))
    several = pairs[pairs["periods"] > 1]
    return float((several["values"] == 1).mean()) if len(several) else 0.0


def in_words(metric: MetricName) -> str:
    """Return the note that says what is measured."""
    return f"measured: {METRICS[metric].words} ({metric})"
