"""A cross-platform run is measured: what methods predicted of platforms that they never saw, beside what happened."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from analysis.figures.crossplatform.prediction import draw_errors
from scenarios.crossplatform.judged_world import judge
from scenarios.crossplatform.trial import Tables
from scenarios.crossplatform.worlds import BEST, place, summary, worlds
from scenarios.files.schema import ServiceScenario
from scenarios.runs.pictures import save
from scenarios.runs.rundir import Draft, Run
from scenarios.views.output import Progress

_NEEDED = ("service_counts", "service_log", "service_cpu")
_TRUTH = ("truth_service", "truth_throughput")
_TABLES = (*_NEEDED, "benchmarks", *_TRUTH)


def simulate(scenario: ServiceScenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    """Write the tables of a service into a draft, and return how much there is of what."""
    from sim.services.run import record

    outcome = record(scenario.world, draft.path, progress)
    draft.add(*outcome.tables)
    return outcome.counts


def measure(scenario: ServiceScenario, found: Run, _out: Path, progress: Progress) -> dict[str, Any]:
    """Return what `wsc run` says of a cross-platform run that is there; without its ``truth_`` tables errors are NaN.

    The picture goes into the run's directory.

    Parameters
    ----------
    scenario : whose analyses are made
    found : its run
    progress : told what is being done

    Raises
    ------
    RunError
        If another table is not there, or one cannot be read.
    """
    progress("predicting", 0.0)
    made = judge(tables_of(found), scenario)
    missing = [name for name in _TRUTH if not found.has(name)]
    if missing:
        made["notes"] = [*made["notes"], f"the truth is not there (no {' and no '.join(missing)}): {_UNKNOWN}"]
    return {
        "kind": scenario.kind,
        "run": str(found.path),
        "scenario": scenario.name,
        "counts": found.manifest["counts"],
        "from": scenario.calibration,
        **made,
        "figures": [str(file) for file in _drawn(made["methods"], found.path)],
    }


def tables_of(found: Run) -> Tables:
    """Return the tables of a run that predictions and their judges need; the truth as far as it is there.

    Raises
    ------
    RunError
        If another table is not there, or one cannot be read.
    """
    return {name: found.table(name) for name in _TABLES if name in _NEEDED or found.has(name)}


def validate(scenario: ServiceScenario, out: Path, force: bool, progress: Progress) -> dict[str, Any]:
    """Return what `wsc validate` says: how every method did over many worlds.

    Raises
    ------
    FolderError
        If the folder of the worlds cannot be made.
    """
    made = summary(worlds(scenario, out, force, progress))
    head = {"kind": scenario.kind, "run": str(place(scenario, out)), "scenario": scenario.name, "seed": scenario.seed}
    return head | {"from": scenario.calibration} | made


def numbers(payload: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    rows = [row for row in payload["methods"] if row["method"] == BEST]
    for name, key in (("error of service time", "service_error"), ("intervals that hold", "coverage")):
        known = sorted(row[key] for row in rows if math.isfinite(row[key]))
        yield name, known[len(known) // 2] if known else math.nan


def render(payload: Mapping[str, Any], console: Console) -> None:
    """Print the error of every method on every target, and what the platforms really did."""
    counts = payload["counts"]
    console.print(
        f"{payload['scenario']} (seed {payload['seed']}): {counts['requests']:,} requests in "
        f"{counts['intervals']:,} intervals on {counts['platforms']} platforms",
        f"  predicted from {payload['from']}; {payload['outside_hull']:.0%} of the mixes, as counts by type, lie "
        "outside those that calibrate",
        sep="\n",
        soft_wrap=True,
    )
    if any(math.isfinite(row["service_error"]) for row in payload["methods"]):
        console.print(_target_table(payload["methods"], {row["platform"]: row for row in payload["platforms"]}))
        console.print(_method_table(payload))
    else:
        _say_widths(payload["methods"], console)
    _say_rest(payload, console)


def _say_widths(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print how wide the intervals of methods are that give any: what is left to say without the truth."""
    known = pd.DataFrame(rows, columns=["method", "half_width"]).dropna()
    widths = known.groupby("method", sort=False)["half_width"].median().items()
    said = ", ".join(f"{name} {_percent(width)}" for name, width in widths)
    if said:
        console.print(f"  half-width of 90% intervals of service time: {said}", soft_wrap=True)


def show_validate(payload: Mapping[str, Any], console: Console) -> None:
    """Print how every method did over many worlds."""
    count = f"{payload['worlds']} world{'s' * (payload['worlds'] > 1)}"
    console.print(
        f"{payload['scenario']} (seeds from {payload['seed']}): {count}, predicted from {payload['from']}; "
        f"{payload['outside_hull']:.0%} of the mixes, as counts by type, lie outside those that calibrate",
        soft_wrap=True,
    )
    console.print(_target_table(payload["targets"], {row["platform"]: row for row in payload["platforms"]}))
    console.print(_world_table(payload["methods"]))
    if payload["best"]["rivals"] and math.isfinite(payload["best"]["beats_every_rival"]):
        console.print(f"  {_wins(payload['best'])}", soft_wrap=True)
    _say_rest(payload, console)


def _wins(best: Mapping[str, Any]) -> str:
    """Return how often the best method errs less than the least of its rivals, and than each of them."""
    between = f" ({best['low']:.0%} to {best['high']:.0%})" if math.isfinite(best["low"]) else ""
    each = ", ".join(
        f"{won['rival']} {won['share']:.0%}" + (f" ±{100 * won['se']:.1f}" if math.isfinite(won["se"]) else "")
        for won in best["beats"]
    )
    return (
        f"{best['method']} errs less than all of {', '.join(best['rivals'])} in {best['beats_every_rival']:.0%}"
        f"{between} of the pairs of world and platform without a log, than each in {best['beats_each_rival']:.0%} at "
        f"least: {each} (± standard error over worlds)"
    )


def _say_rest(payload: Mapping[str, Any], console: Console) -> None:
    for note in payload["notes"]:
        console.print(f"  note: {note}", markup=False, soft_wrap=True)
    console.print(f"  {'tables and figures' if 'counts' in payload else 'worlds'}: {payload['run']}", soft_wrap=True)


def _target_table(rows: Sequence[Mapping[str, Any]], platforms: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the error of service time by target and method, beside how busy the target was."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    cells = {(row["target"], row["method"]): row["service_error"] for row in rows}
    table = Table(title="median error of service time", box=SIMPLE_HEAD, padding=0, show_edge=False)
    table.add_column("target", no_wrap=True)
    for heading in ("busy", *(_HEADINGS.get(name, name) for name in methods)):
        table.add_column(heading, justify="right", no_wrap=True)
    for target in dict.fromkeys(row["target"] for row in rows):
        busy = _percent(platforms[target]["utilisation"]) if target in platforms else ""
        table.add_row(target, busy, *(_percent(cells.get((target, name), math.nan)) for name in methods))
    return table


_HEADINGS = {
    "cycle_scalar": "cycle\nscalar",
    "cycle_mix": "cycle\nmix",
    "benchmark": "bench-\nmark",
    "published": "pub-\nlished",
    "calibrated": "cali-\nbrated",
    "shrunken": "shrun-\nken",
    "network": "net-\nwork",
    "modern": "mod-\nern",
}
"""Names of methods that leave room for all of them on a narrow terminal."""


def _method_table(payload: Mapping[str, Any]) -> Table:
    rows, choices = pd.DataFrame(payload["methods"]), {row["method"]: row for row in payload["choices"]}
    head = ("method", "service", "response", "coverage", "±", "wrong", "loss")
    table = Table(*head, title="medians over targets", caption=_CAPTION, box=SIMPLE_HEAD, padding=0, show_edge=False)
    for name, of in rows.groupby("method", sort=False):
        errors = (of[each].median() for each in ("service_error", "response_error"))
        interval = of["coverage"].mean(), of["half_width"].median()
        chose = choices[str(name)]
        table.add_row(str(name), *map(_percent, (*errors, *interval, chose["wrong"], chose["loss"])))
    return table


def _world_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    head = ("method", "service", "90%", "response", "coverage", "±", "wrong", "loss", "beaten")
    caption = f"{_CAPTION}; {_OF_WORLDS}"
    table = Table(
        *head, title="over all worlds and targets", caption=caption, box=SIMPLE_HEAD, padding=0, show_edge=False
    )
    for row in rows:
        errors = map(_percent, (row["service_error"], row["service_error_p90"], row["response_error"]))
        rest = map(_percent, (row["half_width"], row["wrong"], row["loss"], row["beaten"]))
        table.add_row(row["method"], *errors, _between(row), *rest)
    return table


_UNKNOWN = "errors of predictions and losses of choices are unknown"
_CAPTION = (
    "median errors of service and response time; coverage and half-width (±) of 90% intervals of service time; wrong: "
    "how often the best platform for throughput per watt is not the one chosen, and what that loses"
)
_OF_WORLDS = (
    "90%: so many targets err less; coverage with its own 95% interval over worlds; beaten: how often by testbed"
)


def _between(row: Mapping[str, Any]) -> str:
    if not math.isfinite(row["coverage"]):
        return ""
    half = (row["coverage_high"] - row["coverage_low"]) / 2
    return f"{row['coverage']:.1%}" + (f" ±{100 * half:.1f}" if math.isfinite(half) else "")


def _percent(value: float) -> str:
    return f"{value:.1%}" if math.isfinite(value) else ""


def _drawn(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw the error of every method on every target; nothing without the truth."""
    errors = pd.DataFrame(rows, columns=["method", "target", "service_error"])
    if not errors["service_error"].notna().any():
        return []
    wide = errors.pivot_table(index="target", columns="method", values="service_error", sort=False).reset_index()
    methods = [name for name in errors["method"].drop_duplicates() if name in wide]
    return save(draw_errors(wide, methods), folder / "errors")
