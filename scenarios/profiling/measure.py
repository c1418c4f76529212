"""A profiled fleet's run is measured: what its samples say, beside the truth and the fleet's own monitor."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from analysis.figures.gwp.hot_functions import draw_functions, draw_rollouts
from scenarios.files.schema import ProfileScenario
from scenarios.profiling.profiled import applications, error_of, facts, first_and_last, functions, rollouts
from scenarios.profiling.served import service_table, services
from scenarios.profiling.validate import show as show_validate
from scenarios.profiling.validate import validate
from scenarios.runs.pictures import save
from scenarios.runs.rundir import Draft, Run
from scenarios.views.numbers import large, plural, share, small_share
from scenarios.views.output import Progress

__all__ = ("measure", "numbers", "render", "show_validate", "simulate", "validate")


def simulate(scenario: ProfileScenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    """Write the tables of a profiled fleet into a draft, and return how much there is of what."""
    from scenarios.profiling.symbols import write_symbolised
    from sim.profiling.run import profile

    outcome = profile(scenario.world, draft.path, progress=progress)
    draft.add(*outcome.tables)
    progress("symbolising", 0.0)
    tables = write_symbolised(draft.path)
    draft.add(*tables)
    return {**outcome.counts, "locations": next(table.rows for table in tables if table.table == "locations")}


def measure(scenario: ProfileScenario, found: Run, _out: Path, progress: Progress) -> dict[str, Any]:
    """Return what `wsc run` says of a profiled run that is there; without its ``truth_`` tables the truth is NaN.

    The pictures go into the run's directory.

    Parameters
    ----------
    scenario : whose analyses are made
    found : its run
    progress : told what is being done

    Raises
    ------
    ProfileError
        If another table is not there, or one cannot be read.
    """
    from analysis.profiling.database import Database

    settings = scenario.analyses.profiling
    progress("asking the profile", 0.0)
    with Database([found.path]) as database:
        said = facts(database, found, settings.confidence)
        hot = functions(database, found, settings)
        progress("asking the profile", 0.5)
        jobs, shares = applications(database, found, settings), rollouts(database)
    figures = [
        *save(draw_functions(hot), found.path / "functions"),
        *save(draw_rollouts(shares), found.path / "rollouts"),
    ]
    return {
        "kind": scenario.kind,
        "run": str(found.path),
        "scenario": scenario.name,
        "seed": scenario.seed,
        "counts": found.manifest["counts"],
        "confidence": settings.confidence,
        **said,
        "functions": hot.to_dict("records"),
        "applications": jobs.to_dict("records"),
        "rollouts": first_and_last(shares),
        "services": services(found),
        "figures": [str(file) for file in figures],
    }


def numbers(payload: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    seconds = payload["core_seconds"]
    yield "error of core-seconds", seconds["core_s"] / seconds["monitor_s"] - 1.0
    yield "cycles with stacks", payload["stacks"]["share"]
    for row in payload["functions"][:1]:
        yield "hottest function", row["share"]


def render(payload: Mapping[str, Any], console: Console) -> None:
    """Print what was seen of a fleet, its hottest functions and applications, and how far roll-outs came."""
    counts, stacks, seconds = payload["counts"], payload["stacks"], payload["core_seconds"]
    samples = {row["event"]: row["samples"] for row in payload["events"]}
    visits = ", ".join(f"{count:,} {status}" for status, count in payload["visits"].items())
    console.print(
        f"{payload['scenario']} (seed {payload['seed']}): {counts['machines']:,} machines, {counts['jobs']:,} jobs, "
        f"{plural(counts['days'], 'day')}",
        f"  visits: {visits}",
        f"  samples: {', '.join(f'{count:,} {event}' for event, count in samples.items())}",
        f"  profiles with stacks cover {stacks['share']:.1%} of the cycles; {payload['unsymbolised_share']:.1%} have "
        "no symbol",
        f"  profiling took {small_share(payload['overhead_share'])} of the fleet's cycles",
        f"  core-seconds: {large(seconds['core_s'])} ({large(seconds['low'])} to {large(seconds['high'])})"
        f"{_monitored(seconds)}",
        sep="\n",
        soft_wrap=True,
    )
    console.print(_function_table(payload["functions"], payload["confidence"]))
    console.print(_application_table(payload["applications"], payload["confidence"]))
    console.print(_rollout_table(payload["rollouts"]))
    if payload["services"]:
        console.print(service_table(payload["services"]))
    console.print(f"  tables and figures: {payload['run']}", soft_wrap=True)


def _monitored(seconds: Mapping[str, float]) -> str:
    error = error_of(seconds["core_s"], seconds["monitor_s"])
    return f", by the monitor {large(seconds['monitor_s'])} ({error:+.1%})" if math.isfinite(error) else ""


def _function_table(rows: Sequence[Mapping[str, Any]], confidence: float) -> Table:
    table = Table(title="hottest functions of the jobs", caption=_caption(confidence), box=SIMPLE_HEAD, padding=0)
    table.add_column("function", overflow="ellipsis", no_wrap=True)
    table.add_column("image", overflow="ellipsis", no_wrap=True)
    for heading in ("cycles", "", "true", "deff"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            escape(row["function"]), escape(row["image"]), f"{row['share']:.2%}", _range(row), share(row["true"]),
            f"{row['design_effect']:.1f}",
        )  # fmt: skip
    return table


def _application_table(rows: Sequence[Mapping[str, Any]], confidence: float) -> Table:
    table = Table(title="applications with the most cycles", caption=_caption(confidence), box=SIMPLE_HEAD, padding=0)
    table.add_column("application", overflow="ellipsis", no_wrap=True)
    for heading in ("cycles", "", "true", "CPI", "", "true"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        low, high, true = (_number(row[name]) for name in ("cpi_low", "cpi_high", "cpi_true"))
        shares = f"{row['share']:.2%}", _range(row), share(row["true"])
        table.add_row(escape(row["application"]), *shares, _number(row["cpi"]), f"{low}–{high}" if low else "", true)
    return table


def _rollout_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("", "", title="roll-outs: share of the jobs' cycles", box=SIMPLE_HEAD, padding=0)
    for heading in ("first day", "last day"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row["dimension"], row["name"], f"{row['first']:.1%}", f"{row['last']:.1%}")
    return table


def _caption(confidence: float) -> str:
    return f"with {confidence:.0%} intervals; true: over the whole fleet and horizon"


def _range(row: Mapping[str, Any]) -> str:
    return f"{100 * row['low']:.2f}–{row['high']:.2%}"


def _number(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) and not pd.isna(value) else ""
