"""WSMeter, Tables 2 and 3: a customer's two services, planned, tried and measured on an empty cluster."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.figures.criteria import measures, number, numbers, rows, statistic
from analysis.figures.wsmeter.changes import NORMAL_95, job_changes, mean_interval, share_interval
from analysis.figures.wsmeter.draws import Halves
from analysis.statistics import Statistic
from analysis.wsmeter.clusters import random_instances
from analysis.wsmeter.estimators import WSMeter
from analysis.wsmeter.plan import plan, rounded
from analysis.wsmeter.summaries import CodedMeasurements, Current, job_statistics

SERVICES = ("compute", "network")
"""The two services, compute-intensive and network-intensive, as Table 2 names them."""
FIELDS = ("mean", "std", "mean_new", "weight", "cost", "instances")


def printed_services(published: pd.DataFrame) -> pd.DataFrame:
    """Return Table 2 as a table of services.

    Parameters
    ----------
    published : series (such as mean_compute), x, value

    Returns
    -------
    DataFrame
        job, mean, std, mean_new, weight, cost, instances.
    """
    columns = {name: [number(published, f"{name}_{job}") for job in SERVICES] for name in FIELDS}
    return pd.DataFrame({"job": SERVICES, **columns})


def measure_table2(services: pd.DataFrame, margin: float) -> pd.DataFrame:
    """Return the plan for a customer's services: continuous, rounded up, and the true integer optimum.

    Parameters
    ----------
    services : columns job, mean, std, mean_new, weight, cost, instances
    margin : relative to the current metric
    """
    table = services.astype({"instances": int})
    best, up = plan(table, margin), rounded(table, margin)
    weight = services["weight"] / services["weight"].sum()
    before, after = (float((weight * services[name]).sum()) for name in ("mean", "mean_new"))
    singles = {"cost": best.cost, "change": after / before - 1, "target_margin": margin}
    for name, allocation, column in (
        ("continuous", best, "continuous"),
        ("optimal", best, "instances"),
        ("rounded", up, "instances"),
    ):
        singles |= {f"{name}_{job}": n for job, n in zip(table["job"], allocation.allocation[column], strict=True)}
    share = float(up.allocation["instances"].sum() / services["instances"].sum())
    return numbers(**singles, share_of_instances=share)


def measure_table2_local(fleet: Halves, local: Halves) -> pd.DataFrame:
    """Return the change of one service in the fleet and on machines without co-runners, and how far they differ.

    Changes have 95% intervals; separation is their distance less both half-widths.

    Parameters
    ----------
    fleet, local : the service's halves in the fleet and on empty machines; where both hold the same instances they are
        paired
    """
    change_fleet, change_local = (_change(halves.current, halves.new) for halves in (fleet, local))
    half_widths = change_fleet.half_width + change_local.half_width
    separation = abs(change_local.value - change_fleet.value) - half_widths
    return numbers(change_fleet=change_fleet, change_local=change_local, separation=separation)


def _change(current: pd.DataFrame, new: pd.DataFrame) -> Statistic:
    """Return the relative change of the mean instance with its 95% interval, paired by instance where possible."""
    pairs = _pairs(current, new)
    if len(pairs) < 2:
        both = job_changes(current.assign(job=0), new.assign(job=0))
        return Statistic.around(float(both["change"].iloc[0]), NORMAL_95 * float(both["error"].iloc[0]))
    before, after = pairs["current"], pairs["new"]
    ratio = float(after.mean() / before.mean())
    error = float((after - ratio * before).std(ddof=1) / before.mean() / np.sqrt(len(pairs)))
    return Statistic.around(ratio - 1, NORMAL_95 * error)


def _pairs(current: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    if "instance" not in current.columns or "instance" not in new.columns:
        return pd.DataFrame()
    sides = {"current": current, "new": new}
    return pd.DataFrame({name: table.groupby("instance")["value"].mean() for name, table in sides.items()}).dropna()


def table2_local(measured: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the change in the fleet and on an empty cluster beside the printed changes."""
    figure, (axes,) = style.panels(height_inches=2.1)
    for at, (name, colour) in enumerate({"fleet": style.BLUE, "local": style.ORANGE}.items()):
        value, low, high = statistic(measured, f"change_{name}")
        axes.bar(at - 0.2, value, 0.36, color=colour, label="_measured")
        axes.errorbar(at - 0.2, value, [[value - low], [high - value]], color=style.INK, capsize=3, linewidth=1)
        paper, label = number(published, f"change_{name}"), "" if at else "published"
        style.published_bars(axes, np.array([at + 0.2]), [paper], 0.36, label)
    axes.set_xticks([0, 1], ["live WSC", "empty cluster"])
    style.from_zero(axes)
    style.percent(axes, decimals=0)
    style.label(axes, "compute service, before and after its optimisation", "change of throughput")
    style.legend(axes, above=True)
    return figure


def printed_trials(published: pd.DataFrame) -> pd.DataFrame:
    """Return Table 3's trials: trial, job, mean, margin."""
    trials = sorted(published.loc[published["series"] == "mean_compute", "x"].dropna())
    return pd.DataFrame(
        [
            {"trial": trial, "job": job}
            | {name: number(published, f"{name}_{job}", trial) for name in ("mean", "margin")}
            for trial in trials
            for job in SERVICES
        ]
    )


def measure_table3_margins(trials: pd.DataFrame, services: pd.DataFrame, instances: dict[str, int]) -> pd.DataFrame:
    """Return the overall estimate of every trial from the services' means and margins.

    mean_overall and margin_overall over the trial, in units of the mean.

    Parameters
    ----------
    trials : columns trial, job, mean, margin (t standard errors, in units of the mean)
    services : columns job, mean, std, weight; the current WSC
    instances : job to instances observed
    """
    wsmeter = WSMeter()
    quotas = services[["job", "weight"]].rename(columns={"weight": "quota"})
    current = _summary(services["job"], services["mean"], services["std"], instances)
    mean, margin = {}, {}
    for trial in sorted(set(trials["trial"])):
        table = trials[trials["trial"] == trial]
        observed = np.sqrt(table["job"].map(instances).to_numpy(dtype=np.float64))
        new = _summary(table["job"], table["mean"], table["margin"] * observed / wsmeter.t, instances)
        estimate = wsmeter.estimate(current, new, quotas)
        mean[trial], margin[trial] = estimate.new, estimate.margin * estimate.current
    curves = {"mean_overall": mean, "margin_overall": margin}
    return pd.concat([rows(name, by, by.values()) for name, by in curves.items()], ignore_index=True)


def _summary(job: pd.Series, mean: pd.Series, std: pd.Series, instances: dict[str, int]) -> Current:
    """Return what an estimator needs to know of services of which only mean and spread are printed."""
    observed = np.array([instances[name] for name in job], dtype=np.int64)
    weight, nothing = np.ones(len(job)), np.empty(0)
    return Current(pd.Index(job), weight, mean.to_numpy(), np.asarray(std, dtype=np.float64), observed, nothing)


def pool_table3(worlds: Sequence[pd.DataFrame]) -> dict[str, float]:
    """Return how often the trials of all worlds together include the reference; worlds have equal trials."""
    trials = round(sum(number(world, "trials") for world in worlds))
    share = float(np.mean([number(world, "includes_reference") for world in worlds]))
    together = share_interval(round(share * trials), trials)
    return {"includes_reference_low": together.low, "includes_reference_high": together.high}


def measure_table3_trials(halves: Halves, margin: float = 0.03, trials: int = 500, seed: int = 1) -> pd.DataFrame:
    """Return how the planned roll-out does over many trials; services weigh equally, each relative to its current mean.

    The planned instances, the reference change, the share of trials whose interval includes it and the mean margin,
    both with 95% intervals; how many trials, and the first three.

    Parameters
    ----------
    halves : of the services' instances
    margin : asked for, relative to the current metric
    trials : independent choices of instances from `new`
    seed : of the choices
    """
    means = halves.current.groupby("job")["value"].mean()
    before, after = (
        table.assign(value=100 * table["value"] / table["job"].map(means)) for table in (halves.current, halves.new)
    )
    equal = pd.DataFrame({"job": means.index, "quota": 1.0, "instances": before.groupby("job").size().to_numpy()})
    allocation = WSMeter().plan(before, equal, margin)
    rng, summary = np.random.default_rng(seed), Current.of(before)
    measured = CodedMeasurements.of(after)
    chosen = (measured.summary(random_instances(rng, after, allocation)) for _ in range(trials))
    estimates = [WSMeter().estimate(summary, sample, equal) for sample in chosen]
    reference = float(job_statistics(after)["mean"].mean() / 100 - 1)
    change, half = (np.array([getattr(estimate, name) for estimate in estimates]) for name in ("change", "margin"))
    includes = share_interval(int((abs(change - reference) <= half).sum()), trials)
    planned = rows("planned_instances", range(len(allocation)), allocation["instances"])
    shown = [rows(f"trial_{name}", range(1, 4), values[:3]) for name, values in (("change", change), ("margin", half))]
    return measures(
        planned,
        *shown,
        trials_including_reference=includes.value,
        includes_reference=includes,
        change_reference=reference,
        margin_mean=mean_interval(half),
        trials=len(estimates),
    )
