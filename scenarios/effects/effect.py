"""The effect of a feature on a real fleet: tables of observations in, a verdict out: `wsc effect`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from analysis.audit.about import About
from analysis.audit.findings import Audit
from analysis.audit.guards import examine
from analysis.audit.table import ObservationsError
from analysis.effects.estimators.adjusted import Cluster
from analysis.effects.method import Effect
from analysis.effects.methods import RECOMMENDED, by_rack, for_design, method
from analysis.effects.per_job import GAINED, LOST, Criteria, per_job
from analysis.effects.study import Study, design_of
from analysis.statistics import ROUNDING, NotEnoughDataError
from models.metrics import MetricName
from scenarios.effects.audit import racks_wrong, read_about, with_metric
from scenarios.effects.observed import estimable, experiment, run_metric, together
from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.rundir import open_run
from scenarios.wsmeter.own import faults_in, show_findings, show_notes
from scenarios.wsmeter.truth import in_words, recorded_change

if TYPE_CHECKING:
    from rich.console import Console

_NAMED = 10
"""Gainers and losers printed, of each."""


def effect(
    sources: Sequence[Path],
    jobs: Path | None = None,
    *,
    estimator: str = RECOMMENDED,
    confidence: float = 0.95,
    by_job: bool = False,
    metric: MetricName | None = None,
    about: Path | None = None,
) -> dict[str, Any]:
    """Return by how much a feature changed a fleet's performance, after the guards had their say.

    Parameters
    ----------
    sources : files of observations, taken together, or the folder of a run
    jobs : job, quota, instances of the whole fleet; jobs weigh as in the tables without it
    estimator : a name in `analysis.effects.methods`; a staged roll-out has its own in place of the recommended one
    confidence : of the interval, 0..1
    by_job : whether to say who gained and who lost; not of a staged roll-out
    metric : of a run; that of its scenario if not said
    about : what is known of the experiment beside its tables, YAML or JSON, for the guards; where it says `clusters:
        rack` the error is that of racks

    Returns
    -------
    dict
        kind, the fields of `Effect`, trusted (whether no finding is an error), verdict, zero_ruled_out (whether the
        interval leaves zero out), cluster (what the error counts as independent), periods_before, published (the
        fields of `Effect`, or None where it has no answer), metric (of a run; None of files), truth (change, by that
        metric over all jobs of a run; NaN where none is recorded), findings and checked (see `analysis.audit`),
        per_job (where asked for), notes.

    Raises
    ------
    FaultsError
        With everything that is wrong with the files, or that there is too little in them.
    """
    method(estimator)
    table, whole, notes = experiment(sources, jobs, metric)
    metric = run_metric(sources, metric)
    known = with_metric(read_about(about) if about else About(), metric)
    cluster: Cluster = "machine"
    if known.clusters == "rack":
        if by_rack(for_design(estimator, design_of(table))) is None:
            known = replace(known, clusters=None)  # then the guard of whole racks is not to be quiet
            notes.append("clusters: rack is not taken by this estimator: its error is that of machines")
        elif wrong := racks_wrong(known, table, about or Path()):
            raise FaultsError(wrong)
        else:
            cluster = "rack"
    audited = _audited(table, whole, known, sources)
    rows, left_out = estimable(table)
    notes += left_out
    with faults_in(together(sources)):
        study, made = _estimated(rows, whole, estimator, confidence, cluster)
    made = _without_rounding(made)
    if whole is None:
        notes.append("no table of jobs: jobs weigh as in the tables")
    errors = [one.code for one in audited.findings if one.severity == "error"]
    payload = {
        "kind": "effect",
        **asdict(made),
        "confidence": confidence,
        "trusted": not errors,
        "zero_ruled_out": not made.low <= 0.0 <= made.high,
        "verdict": _withheld(made, errors) if errors else verdict(made.change, made.low, made.high),
        "cluster": cluster,
        "periods_before": _periods_before(rows),
        "published": _published(study, confidence),
        "metric": metric,
        "truth": {"change": _true(sources, metric)},
        **audited.payload(),
    }
    if metric is not None and "ipc_across_frequencies" in errors:
        notes.append("--metric ips measures the run in instructions per CPU second")
    if by_job and cluster == "rack":
        notes.append("effects on single jobs are not estimated by rack")
    elif by_job and study.design != "staged":
        with faults_in(together(sources)):
            payload["per_job"] = _by_job(study, confidence)
    elif by_job:
        notes.append("effects on single jobs are not estimated of a staged roll-out")
    return payload | {"notes": [*notes, *made.notes]}


def verdict(change: float, low: float, high: float) -> str:
    """Return in words what an interval says of a relative change.

    Examples
    --------
    >>> verdict(0.008, 0.005, 0.011)
    'faster by 0.80% (0.50% to 1.10%); zero is ruled out'
    >>> verdict(0.002, -0.001, 0.005)
    'zero is not ruled out: +0.20% (-0.10% to +0.50%); a gain above 0.50% and a loss above 0.10% are ruled out'
    """
    if not low <= 0.0 <= high:
        least, most = sorted((abs(low), abs(high)))
        word = "faster" if change > 0 else "slower"
        return f"{word} by {abs(change):.2%} ({least:.2%} to {most:.2%}); zero is ruled out"
    bounds = f"a gain above {high:.2%} and a loss above {abs(low):.2%} are ruled out"
    return f"zero is not ruled out: {change:+.2%} ({low:+.2%} to {high:+.2%}); {bounds}"


def _withheld(made: Effect, errors: Sequence[str]) -> str:
    """Return in words that there is no verdict, and of which number."""
    numbers = f"the tables as they are give {made.change:+.2%} ({made.low:+.2%} to {made.high:+.2%})"
    return f"no verdict: mend {', '.join(errors)} first; {numbers}"


def _audited(table: pd.DataFrame, jobs: pd.DataFrame | None, about: About | None, sources: Sequence[Path]) -> Audit:
    """Return what the guards say of the observations."""
    try:
        return examine(table, jobs, about)
    except ObservationsError as error:
        raise FaultsError([Fault(str(together(sources)), 0, 0, "", str(error))]) from None


def _estimated(
    rows: pd.DataFrame, jobs: pd.DataFrame | None, estimator: str, confidence: float, cluster: Cluster
) -> tuple[Study, Effect]:
    """Return the study, and what the estimator for its design says."""
    chosen = for_design(estimator, design_of(rows))
    study = Study.of(rows, jobs, staged="staged" in chosen.designs)
    clustered = by_rack(chosen) if cluster == "rack" else None
    return study, (clustered or chosen).estimate(study, confidence)


def _without_rounding(made: Effect) -> Effect:
    """Return what an estimator says with errors that are rounding taken for none, and told."""
    if made.error > ROUNDING:
        return made
    change = made.change if abs(made.change) > ROUNDING else 0.0
    note = "machines do not differ at all within jobs, so the interval has no width: were values rounded or copied?"
    return replace(made, change=change, low=change, high=change, margin=0.0, error=0.0, notes=(*made.notes, note))


def _published(study: Study, confidence: float) -> dict[str, Any] | None:
    """Return what WSMeter as printed says, where it can."""
    published = method("published")
    if study.design not in published.designs:
        return None
    try:
        return asdict(_without_rounding(published.estimate(study, confidence)))
    except NotEnoughDataError:
        return None


def _true(sources: Sequence[Path], metric: MetricName | None) -> float:
    """Return the true change of one run; NaN of anything else."""
    if metric is None or len(sources) > 1:
        return math.nan
    return recorded_change(open_run(sources[0]), metric)


def _periods_before(rows: pd.DataFrame) -> int:
    """Return how many periods there are before anything has the feature."""
    first = rows.loc[rows["treated"] == 1, "period"].min()
    return int(rows.loc[rows["period"] < first, "period"].nunique())


def _by_job(study: Study, confidence: float) -> list[dict[str, Any]]:
    rows = per_job(study, Criteria(confidence=confidence)).sort_values("quota_share", ascending=False, kind="stable")
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print findings, the verdict, what the published estimator would have said, and who gained or lost."""
    from rich.markup import escape

    show_findings(payload, console)
    said = escape(payload["verdict"])
    console.print(f"[bold]{said}[/bold]" if payload["trusted"] else said, highlight=False, soft_wrap=True)
    console.print(
        f"{payload['estimator']}, {payload['design']}: {payload['machines']:,} machines with the feature, "
        f"{payload['controls']:,} without; {payload['jobs']:,} jobs that hold {payload['quota_coverage']:.1%} of the "
        f"quota; {payload['confidence']:.0%} from {payload['low']:+.2%} to {payload['high']:+.2%}"
        + ("; racks are the clusters" if payload["cluster"] == "rack" else ""),
        highlight=False,
        soft_wrap=True,
    )
    _show_metric(payload, console)
    _show_published(payload, console)
    if "per_job" in payload and payload["trusted"]:
        _show_jobs(payload["per_job"], console)
    show_notes(payload, console)


def _show_metric(payload: Mapping[str, Any], console: "Console") -> None:
    """Print what was measured of a run, and its true change."""
    if payload["metric"] is not None:
        console.print(in_words(payload["metric"], payload["truth"]["change"]), highlight=False)


def _show_published(payload: Mapping[str, Any], console: "Console") -> None:
    said = payload["published"]
    if said is None:
        console.print(f"WSMeter as published has no answer to a {payload['design']} study", highlight=False)
        return
    baseline = "the periods before" if payload["periods_before"] else "the machines without it"
    agrees = said["low"] - ROUNDING <= payload["change"] <= said["high"] + ROUNDING
    console.print(
        f"WSMeter as published, against {baseline}, gives {said['change']:+.2%} ({said['low']:+.2%} to "
        f"{said['high']:+.2%})" + ("" if agrees else ", which disagrees with the estimate above"),
        highlight=False,
        soft_wrap=True,
    )


def _show_jobs(rows: Sequence[Mapping[str, Any]], console: "Console") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
    for heading in ("job", "verdict", "quota", "machines", "change", "interval", "adjusted p"):
        table.add_column(heading, no_wrap=True)
    for word in (GAINED, LOST):
        named = sorted((row for row in rows if row["verdict"] == word), key=lambda row: -abs(row["change"]))
        for row in named[:_NAMED]:
            table.add_row(
                escape(str(row["job"])),
                word,
                f"{row['quota_share']:.1%}",
                f"{row['machines']:,.0f}",
                f"{row['change']:+.2%}",
                f"{row['low']:+.2%} to {row['high']:+.2%}",
                f"{row['adjusted']:.2g}",
            )
    console.print(table)
    counts = pd.Series([row["verdict"] for row in rows]).value_counts()
    console.print(", ".join(f"{count:,} {word}" for word, count in counts.items()), highlight=False)
