"""``wsc monitor``: an experiment that may be looked at any time, from its observations so far."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.audit.about import About
from analysis.audit.guards import AT_THE_END, examine
from analysis.effects.method import Effect, Method
from analysis.effects.methods import RECOMMENDED, for_design, method
from analysis.effects.sequential import monitor as intervals
from analysis.effects.sequential import price
from analysis.effects.study import Study, design_of
from analysis.statistics import ROUNDING, NotEnoughDataError
from models.arrays import DAY_S, Floats
from models.errors import InputError
from models.metrics import METRICS, MetricName
from scenarios.effects.audit import with_metric
from scenarios.effects.effect import verdict
from scenarios.effects.observed import estimable, experiment, run_metric, together
from scenarios.files.options import number
from scenarios.wsmeter.own import faults_in, show_notes

_SECONDS = 60.0
"""Periods that lie at least so far apart are seconds, others are numbers of days."""


def monitor(
    sources: Sequence[Path],
    jobs: Path | None = None,
    *,
    every: str = "period",
    planned: int | None = None,
    estimator: str = RECOMMENDED,
    confidence: float = 0.95,
    metric: MetricName | None = None,
) -> dict[str, Any]:
    """Return an experiment's cumulative estimates, look by look, with intervals that hold at all looks together.

    Parameters
    ----------
    sources : files of observations, taken together, or the folder of a run
    jobs : job, quota, instances of the whole fleet; jobs weigh as in the tables without it
    every : a look after each ``period``, each ``day``, or each so many units of the periods
    planned : looks until the planned horizon, for which the intervals are tuned; as many as there are if left out
    estimator : a name in `analysis.effects.methods`; a staged roll-out has its own in place of the recommended one
    confidence : 0..1, of all looks together
    metric : of a run; that of its scenario if not said

    Returns
    -------
    dict
        kind, metric (of a run; None of files), estimator, design, machines, controls, planned, looks (period, change,
        error, freedom, share, low, high, fixed_low, fixed_high, p_value, zero_ruled_out; null where a look says
        nothing), change (gained, lost or open), decided (period of the first look that rules zero out, or null),
        verdict, price, findings and checked (see `analysis.audit`; of the guards that need no end of the experiment),
        notes. A share is that of the looks planned, above 1 past the horizon.

    Raises
    ------
    FaultsError
        If the table, an option or the experiment cannot be used.
    """
    method(estimator)
    step = None if every in {"period", "day"} else number("--every", every)
    given, whole, read = experiment(sources, jobs, metric)
    metric = run_metric(sources, metric)
    table, left_out = estimable(given)
    with faults_in(together(sources)):
        ends = _ends(table, every, step)
        chosen = for_design(estimator, design_of(table))
        effects, notes = _effects(table, ends, lambda rows: _effect(rows, whole, chosen, confidence))
        audited = examine(given, whole, with_metric(About(), metric), without=AT_THE_END)
    total = planned or len(ends)
    looks = pd.DataFrame([{"period": end, "share": place / total} | _numbers(effect) for place, end, effect in effects])
    found = intervals(looks, confidence).rename(columns={"excluded": "zero_ruled_out"})
    if planned is None:
        notes.append(f"the horizon is taken to be the table's {len(ends)} looks; plan it before the first one")
    elif planned < len(ends):
        notes.append(
            f"there are {len(ends)} looks, more than the {planned} planned: intervals hold past the horizon, too, but "
            "are wider than if it had been planned so far"
        )
    last = effects[-1][2]
    decided = found.loc[found["zero_ruled_out"], "period"]
    return {
        "kind": "monitor",
        "metric": metric,
        "estimator": last.estimator,
        "design": last.design,
        "machines": last.machines,
        "controls": last.controls,
        "planned": total,
        "looks": [{name: _plain(value) for name, value in row.items()} for row in found.to_dict("records")],
        "change": _verdict(found),
        "decided": float(decided.iloc[0]) if len(decided) else None,
        "verdict": _in_words(found),
        "price": price(float(found["freedom"].iloc[-1]), confidence),
        **audited.payload(),
        "notes": [*read, *left_out, *notes, *last.notes],
    }


def show(payload: Mapping[str, Any], console: Console) -> None:
    """Print the looks as a table, in words whether there is a change, and what the guards and notes say."""
    from scenarios.views.numbers import plural

    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for heading in ("until", "share", "change", "at any time", "at this look alone", "p at any time"):
        table.add_column(heading, no_wrap=True)
    for row in payload["looks"]:
        table.add_row(
            f"{row['period']:g}",
            f"{row['share']:.0%}" if row["share"] <= 1 else "past",
            f"{row['change']:+.2%}",
            "nothing yet" if row["low"] is None else f"{row['low']:+.2%} to {row['high']:+.2%}",
            f"{row['fixed_low']:+.2%} to {row['fixed_high']:+.2%}",
            f"{row['p_value']:.2g}",
        )
    console.print(table)
    console.print(payload["verdict"], highlight=False, soft_wrap=True)
    if payload["metric"] is not None:
        console.print(f"measured: {METRICS[payload['metric']].words} ({payload['metric']})", highlight=False)
    console.print(f"Looking at any time makes the interval {payload['price']:.2f} times as wide", end=" ")
    console.print(f"at the horizon of {plural(payload['planned'], 'look')}.")
    for one in payload["findings"]:
        said = f"note: {one['code']} ({one['severity']}): {one['what']}; remedy: {one['remedy']}"
        console.print(said, highlight=False, markup=False, soft_wrap=True)
    show_notes(payload, console)


def _ends(table: pd.DataFrame, every: str, step: float | None) -> Floats:
    """Return the last period of each look, from the first with the feature on."""
    periods = np.unique(table["period"].to_numpy(dtype=np.float64))
    study: Floats = periods[periods >= table.loc[table["treated"] > 0, "period"].min()]
    if not len(study):
        raise InputError("nothing has the feature: no row has treated 1, or there is no such column")
    if every == "period":
        return study
    look = np.floor((study - study[0]) / (step or _day(periods)) + 1e-9)
    ends: Floats = study[np.r_[look[1:] != look[:-1], True]]
    return ends


def _day(periods: Floats) -> float:
    return DAY_S if len(periods) > 1 and float(np.diff(periods).min()) >= _SECONDS else 1.0


def _effects(
    table: pd.DataFrame, ends: Floats, estimate: Callable[[pd.DataFrame], Effect]
) -> tuple[list[tuple[int, float, Effect]], list[str]]:
    """Return place, last period and estimate of each look that has one, and which looks have none."""
    made, notes = [], []
    for place, end in enumerate(ends.tolist(), start=1):
        try:
            made.append((place, end, estimate(table[table["period"] <= end])))
        except NotEnoughDataError as error:
            notes.append(f"no estimate until {end:g}: {error}")
            lacking = error
    if not made:
        raise lacking
    design = made[-1][2].design
    early = [f"{end:g}" for _, end, effect in made if effect.design != design]
    if early:
        notes.append(f"looks of another design were left out: {', '.join(early)}")
    return [each for each in made if each[2].design == design], notes


def _effect(rows: pd.DataFrame, jobs: pd.DataFrame | None, chosen: Method, confidence: float) -> Effect:
    study = Study.of(rows, jobs, staged="staged" in chosen.designs)
    estimate = chosen.estimate(study, confidence)
    if not estimate.error > ROUNDING:
        raise NotEnoughDataError(2, 1, "machines with a job in each arm that differ in value")
    return estimate


def _numbers(effect: Effect) -> dict[str, float]:
    return {"change": effect.change, "error": effect.error, "freedom": effect.freedom}


def _verdict(found: pd.DataFrame) -> str:
    """Return which side of zero the always-valid intervals lie on; the first one that rules it out decides."""
    decided = found[found["zero_ruled_out"]]
    if not len(decided):
        return "open"
    return "gained" if decided["change"].iloc[0] > 0 else "lost"


def _in_words(found: pd.DataFrame) -> str:
    """Return the verdict in words, with the always-valid interval of the last look that has one."""
    bounded = found[np.isfinite(found[["low", "high"]]).all(axis=1)]
    if not len(bounded):
        return "zero is not ruled out: no look has an interval yet"
    change, low, high = (float(bounded[name].iloc[-1]) for name in ("change", "low", "high"))
    decided = found[found["zero_ruled_out"]]
    if not len(decided):
        return verdict(change, low, high)
    first = decided.iloc[0]
    if low <= 0.0 <= high:
        side = "faster" if first["change"] > 0 else "slower"
        at_the_end = f"{change:+.2%} ({low:+.2%} to {high:+.2%}) at the last look"
        return f"{side}: zero was ruled out at {first['period']:g}; {at_the_end}"
    return f"{verdict(change, low, high)} since {first['period']:g}"


def _plain(value: float | bool) -> float | bool | None:
    return value if math.isfinite(value) else None
