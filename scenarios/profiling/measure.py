"""A profiled fleet's run is measured: what its samples say, beside the truth and the fleet's own monitor."""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from analysis.figures.gwp.hot_functions import draw_functions, draw_rollouts
from models.arrays import DAY_S
from scenarios.files.schema import ProfileScenario
from scenarios.profiling.profiled import (
    ProfileFacts,
    RolloutShares,
    applications,
    error_of,
    facts,
    first_and_last,
    functions,
    rollouts,
)
from scenarios.profiling.served import ServedService, service_table, services
from scenarios.profiling.validate import validate
from scenarios.runs.conclusions import kept_conclusion
from scenarios.runs.disk import save
from scenarios.runs.rundir import Draft, Run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import interval, large, listed, number, plural, share, small_share
from scenarios.views.section import Place, Says, Section, Table, Verdict, table
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ("ProfiledRun", "measure", "numbers", "simulate", "validate")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ProfiledRun(Conclusion):
    """What the samples of a profiled run say, beside the truth and the fleet's own monitor."""

    run: Path
    scenario: str
    seed: int
    counts: Mapping[str, int]
    """Of what there is: machines, jobs, days and others."""
    confidence: float
    """Of all intervals."""
    facts: ProfileFacts
    functions: pd.DataFrame
    """Hottest functions of the jobs: as of `scenarios.profiling.profiled.functions`."""
    applications: pd.DataFrame
    """As of `scenarios.profiling.profiled.applications`."""
    rollouts: list[RolloutShares]
    services: list[ServedService]
    figures: list[Path]

    def brief(self) -> str:
        """Return the hottest functions with their intervals."""
        rows = self.functions.to_dict("records")
        ends = [interval(row["low"], row["high"], ".1%") for row in rows]
        texts = [f"{row['function']} {share(row['share'])} ({end})" for row, end in zip(rows, ends, strict=True)]
        return listed(texts, 1)

    def frame(self) -> pd.DataFrame:
        """Return the hottest functions."""
        return self.functions

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "profile",
            "run": str(self.run),
            "scenario": self.scenario,
            "seed": self.seed,
            "counts": self.counts,
            "confidence": self.confidence,
            **self.facts.payload(),
            "functions": self.functions.to_dict("records"),
            "applications": self.applications.to_dict("records"),
            "rollouts": [asdict(rollout) for rollout in self.rollouts],
            "services": [service.payload() for service in self.services],
            "figures": [str(file) for file in self.figures],
        }

    def figure(self) -> "Figure":
        """Return the shares of the hottest functions with intervals, beside the truth."""
        return draw_functions(self.functions)

    def section(self) -> Section:
        """Return what was seen of a fleet, its hottest functions and applications, and how far roll-outs came."""
        served = (service_table(self.services),) if self.services else ()
        return Section(
            "",
            (
                Says(f"{self.scenario} (seed {self.seed}): {self.size}"),
                *(Says(f"  {line}") for line in self.lines()),
                *self.tables(),
                *served,
                Place(f"  tables and figures: {self.run}"),
            ),
        )

    @property
    def size(self) -> str:
        """How many machines, jobs and days there are, in words."""
        counts = self.counts
        return f"{counts['machines']:,} machines, {counts['jobs']:,} jobs, {plural(counts['days'], 'day')}"

    def lines(self) -> tuple[str, ...]:
        """Return what was visited and sampled, what that covers and what it cost, in sentences."""
        known, seconds = self.facts, self.facts.core_seconds
        error = error_of(seconds.core_s, seconds.monitor_s)
        monitored = f", by the monitor {large(seconds.monitor_s)} ({error:+.1%})" if math.isfinite(error) else ""
        known_well = math.isfinite(seconds.low)
        within = f"{large(seconds.low)} to {large(seconds.high)}" if known_well else "no interval: one day has answers"
        days = plural(seconds.silent_days, "day")
        lacking = (
            f"no visit was answered on {days}: shares and CPI are of the other days" if seconds.silent_days else ""
        )
        return (
            f"visits: {', '.join(f'{count:,} {status}' for status, count in known.visits.items())}",
            f"samples: {', '.join(f'{event.samples:,} {event.event}' for event in known.events)}",
            f"profiles with stacks cover {share(known.stacks.share, 1)} of the cycles; "
            f"{share(known.unsymbolised_share, 1)} have no symbol",
            f"profiling took {small_share(known.overhead_share)} of the fleet's cycles",
            f"core-seconds: {large(seconds.core_s)} ({within}){monitored}",
            *filter(None, [lacking]),
        )

    def tables(self) -> tuple[Table, Table, Table]:
        """Return the hottest functions, the applications with the most cycles, and the roll-outs."""
        caption = f"with {self.confidence:.0%} intervals; true: over the whole fleet and horizon"
        hottest = [
            (row["function"], row["image"], *_share_cells(row), number(row["design_effect"], ".1f"))
            for row in self.functions.to_dict("records")
        ]
        largest = [
            (row["application"], *_share_cells(row), *_cpi_cells(row)) for row in self.applications.to_dict("records")
        ]
        ends = [
            (row.dimension, row.name, *(share(day, 1, "no samples") for day in (row.first, row.last)))
            for row in self.rollouts
        ]
        between = f"{self.confidence:.0%} interval"
        shares = ("cycles", between, "true")
        return (
            table(
                ("function", "image", *shares, "deff"),
                hottest,
                "hottest functions of the jobs",
                2,
                caption=caption,
                keys=2,
            ),
            table(
                ("application", *shares, "CPI", between, "true"),
                largest,
                "applications with the most cycles",
                caption=caption,
            ),
            table(("roll-out", "version", "first day", "last day"), ends, "share of the jobs' cycles", 2, keys=2),
        )

    def verdict(self) -> Verdict:
        """Return in a line what is hottest, and whether the truth and the monitor agree."""
        seconds, known = self.facts.core_seconds, self.functions[self.functions["true"].notna()]
        inside = int(known["true"].between(known["low"], known["high"]).sum())
        hottest = self.functions.head(1)
        lines = [
            f"hottest is {function} with {part:.2%} of the jobs' cycles"
            for function, part in zip(hottest["function"], hottest["share"], strict=True)
        ]
        lines += [f"intervals of {inside} of the {len(known)} hottest hold their true shares"] if len(known) else []
        monitored = math.isfinite(seconds.monitor_s) and math.isfinite(seconds.low)
        if monitored:
            bounds = f"{large(seconds.low)} to {large(seconds.high)}"
            lines.append(f"core-seconds {large(seconds.core_s)} ({bounds}), by the monitor {large(seconds.monitor_s)}")
        holds = bool(seconds.low <= seconds.monitor_s <= seconds.high) if monitored else None
        return Verdict("The profile", "; ".join(lines), holds)


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


@kept_conclusion
def measure(scenario: ProfileScenario, run: Run, _out: Path, progress: Progress) -> ProfiledRun:
    """Return what `wsc run` says of a profiled run that is there; without its ``truth_`` tables the truth is NaN.

    The pictures go into the run's directory.

    Parameters
    ----------
    scenario : whose analyses are made
    run : its run
    progress : told what is being done

    Raises
    ------
    ProfileError
        If another table is not there, or one cannot be read; or if no visit was answered.
    """
    from analysis.profiling.database import Database
    from analysis.profiling.storage import ProfileError

    statuses = run.table("visits", ["status"])["status"].value_counts()
    if "ok" not in statuses:
        planned = listed([f"{count:,} {status}" for status, count in statuses.items()]) or "none was made"
        raise ProfileError(f"{run.path}: no visit was answered, so nothing is known of what ran: {planned}")
    settings = scenario.analyses.profiling
    progress("asking the profile", 0.0)
    with Database([run.path]) as database:
        known = facts(database, run, scenario, settings.confidence)
        hottest = functions(database, run, settings)
        progress("asking the profile", 0.5)
        largest, shares = applications(database, run, settings), rollouts(database)
    figures = [
        *save(draw_functions(hottest), run.path / "functions"),
        *save(draw_rollouts(shares), run.path / "rollouts"),
    ]
    return ProfiledRun(
        run.path,
        scenario.name,
        scenario.seed,
        counts=run.manifest["counts"],
        confidence=settings.confidence,
        facts=known,
        functions=hottest,
        applications=largest,
        rollouts=first_and_last(shares, math.ceil(scenario.horizon_s / DAY_S)),
        services=services(run),
        figures=list(figures),
    )


def numbers(answer: ProfiledRun) -> Iterator[tuple[str, float]]:
    """Yield a run in a line of numbers, each with its name."""
    seconds = answer.facts.core_seconds
    yield "error of core-seconds", seconds.core_s / seconds.monitor_s - 1.0
    yield "cycles with stacks", answer.facts.stacks.share
    for row in answer.functions.head(1).to_dict("records"):
        yield "hottest function", row["share"]


def _share_cells(row: Mapping[Hashable, float]) -> tuple[str, str, str]:
    return share(row["share"]), interval(row["low"], row["high"], ".2%"), share(row["true"])


def _cpi_cells(row: Mapping[Hashable, float]) -> tuple[str, str, str]:
    bounds = interval(row["cpi_low"], row["cpi_high"], ".3f")
    return number(row["cpi"], ".3f"), bounds, number(row["cpi_true"], ".3f")
