"""The rows of Google-Wide Profiling about decisions: cross-checks, shared code, overhead; and many collectors."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers
from analysis.profiling.affinity.advice import advise, trial
from analysis.profiling.affinity.sampled import table_of
from analysis.profiling.affinity.table import Table, frame_of
from analysis.profiling.database import Database
from analysis.profiling.fleet_samples import of_fleet
from analysis.profiling.questions.catalogue import QUESTIONS
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.papers.gwp import FLEET
from scenarios.profiling.affinity_trial import moved
from scenarios.runs.rundir import Run

LIBRARY: Final = "libz"
"""The world's compression library."""
LEAST_SHARE: Final = 0.001
"""Share of the cycles from which an application counts when asked whether shared code is hot in it."""
TENTH: Final = ("profiling.collector.one_in=10", "profiling.collector.round_s=21600")
"""A collector that visits one machine in ten in each round, four rounds a day."""
TENTH_DRAWS: Final = 400
MANY: Final[Mapping[str, Any]] = {
    "fleet.machines": 160,
    "population.jobs": 100,
    "population.common_jobs": 60,
    "profiling.collector.one_in": 80,
    "profiling.collector.samples_per_s": 50.0,
}
"""A fleet that a hundred collectors look at: few machines, many samples of each, so that samples are much alike."""
MANY_DRAWS: Final = 100
PLAIN_DRAWS: Final = 10
"""Collectors as the fleet's own one is, whose design effect is told beside."""
PLANTED: Final = 100
"""Pairs of profiles with a planted regression, and as many without."""


def _core_seconds(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("core_seconds", scenario=FLEET, draws=TENTH_DRAWS, overrides=TENTH)
    judged = numbers(
        error=told["error"],
        interval_holds=told["coverage"],
        half_width=told["half_width"],
        by_fleet_bias=told["by_fleet_bias"],
    )
    note = (
        f"{told['draws']} collectors, each {told['visits']:,.0f} visits; error is the root mean square; errors spread "
        f"by {told['spread']:.2f} of what is stated, and intervals hold to ±{told['coverage_error']:.1%} (one standard "
        f"error). With one frequency for the whole fleet, as printed, the bias is {told['by_fleet_bias']:+.2%}; with "
        f"each platform's own {told['by_platform_bias']:+.2%}; with each visit's own, as judged, {told['bias']:+.2%}"
    )
    return Outcome(judged, note=note)


def _shared_code(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    with Database([found.path]) as database:
        table = QUESTIONS["shared"].ask(database, by="image", top=40)
    mine = table[table["image"] == LIBRARY].iloc[0]
    libraries = table[table["image"].str.startswith("lib")]["image"].tolist()
    judged = numbers(
        share=float(mine["share"]),
        largest_in_one=_largest_in_one(found.path),
        rank=1 + libraries.index(LIBRARY),
        true_share=_true_share(found),
    )
    return Outcome(judged, table=table.head(8), note=f"{LIBRARY}; wsc profile ask RUN shared --set by=image")


def _largest_in_one(folder: Path) -> float:
    """Return the library's largest share of any application's cycles, of those that are not tiny."""
    with Database([folder]) as database:
        rows = database.query(of_fleet(database, "cycles", ("application", "image")))
    rows = rows.assign(value=rows["value"].astype(np.float64))
    totals = rows.groupby("application")["value"].sum()
    large = totals[(totals >= LEAST_SHARE * totals.sum()) & ~totals.index.str.startswith("[")].index
    own = rows[(rows["image"] == LIBRARY) & rows["application"].isin(large)].set_index("application")["value"]
    return float((own / totals[own.index]).max())


def _true_share(found: Run) -> float:
    rows = found.table("truth_functions", ["image", "cycles"])
    return float(rows.loc[rows["image"] == LIBRARY, "cycles"].sum() / rows["cycles"].sum())


def _overhead(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    visits = found.table("visits", ["visit", "frequency_hz", "overhead_cycles"])
    busy_s = found.table("processes", ["visit", "cpu_s"]).groupby("visit")["cpu_s"].sum()
    seen = visits[visits["visit"].isin(busy_s.index)]
    cycles = busy_s[seen["visit"]].to_numpy() * seen["frequency_hz"].to_numpy()
    on_machine = seen["overhead_cycles"].to_numpy() / cycles
    fleet = float(found.table("epochs", ["cycles"])["cycles"].sum())
    judged = numbers(
        share=float(visits["overhead_cycles"].sum()) / fleet,
        visited_share=float(np.nanmax(on_machine)),
        visited_share_median=float(np.nanmedian(on_machine)),
    )
    return Outcome(judged, note="of the fleet's cycles; and at most of a machine's while it is visited")


def _many(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.collectors(FLEET, MANY_DRAWS, **MANY)
    functions, plain = told["functions"], sources.collectors(FLEET, PLAIN_DRAWS)
    judged = numbers(
        coverage=functions["coverage"],
        coverage_low=functions["coverage_low"],
        coverage_high=functions["coverage_high"],
        naive_coverage=functions["naive_coverage"],
        cpi_coverage=told["cpi"]["coverage"],
        half_width=functions["half_width"],
    )
    note = (
        f"{told['draws']} collectors of one fleet of {MANY['fleet.machines']} machines, each {told['visits']:,.0f} "
        f"visits and {told['samples']:,.0f} samples of cycles; {functions['judged']} functions. The fleet's own "
        f"collector takes few samples of many machines: of {plain['draws']} such, naive intervals hold the truth in "
        f"{plain['functions']['naive_coverage']:.1%}, at a design effect of {plain['functions']['design_effect']:.2f}"
    )
    said = {"many samples of few machines": told, f"as {FLEET} does": plain}
    return Outcome(judged, table=pd.DataFrame([_said(name, one) for name, one in said.items()]), note=note)


def _said(name: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row about collectors: what their intervals hold, and what naive ones do."""
    kept = {one: told["functions"][one] for one in ("coverage", "naive_coverage", "design_effect", "half_width")}
    return {"collectors": name, **{one: told[one] for one in ("draws", "visits", "samples")}, **kept}


def _table1(_sources: Sources, paper: pd.DataFrame) -> Outcome:
    printed = paper.set_index("series")["value"]
    pairs = [(job, platform) for job in ("NumCrunch", "MemBench") for platform in (1, 2)]
    rows = [
        {
            "job": job,
            "platform": f"Platform {platform}",
            "load": printed["load"],
            "cpi": printed[f"cpi_{job.lower()}_platform{platform}"],
            "capacity": printed[f"cycles_platform{platform}"],
        }
        for job, platform in pairs
    ]
    found = advise(Table.of(pd.DataFrame(rows)))
    made = frame_of(found.table, found.plan.load)
    load = made.set_index(["job", "platform"])["load"]
    judged = numbers(
        total_before=found.before,
        total_after=found.after,
        moved_numcrunch_platform2=load.get(("NumCrunch", "Platform 2"), 0.0),
        moved_membench_platform1=load.get(("MemBench", "Platform 1"), 0.0),
    )
    return Outcome(judged, table=made, note=f"a linear programme; optimal: {found.plan.optimal}")


def _affinity(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    with Database([found.path]) as database:
        made = trial(database, found.table("truth_cpi"))
    found_numbers = {name: float(value) for name, value in asdict(made).items()}
    judged = numbers(**found_numbers, gain_low=made.gain, gain_high=made.gain)
    note = (
        f"{made.jobs} jobs on {made.platforms} platforms; cycle time, the capacities being what the platforms do now; "
        f"with sampled CPI {made.promised:.2%} are promised and {made.saved:.2%} saved at the true one"
    )
    return Outcome(judged, note=note)


def _moved(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = sources.run(FLEET)
    with Database([found.path]) as database:
        plain, kept = moved(found.path, advise(Table.of(table_of(database))))
    judged = numbers(
        realised_over_promised=plain["realised_over_promised"],
        realised=plain["realised"],
        kept_realised_over_promised=kept["realised_over_promised"],
        kept_realised=kept["realised"],
    )
    note = (
        f"judged is the paper's programme: {plain['promised']:.2%} promised, {plain['realised']:.2%} realised; "
        "with no platform given more last-level-cache misses than it has now (added after this was seen), it is "
        f"{kept['promised']:.2%} and {kept['realised']:.2%}"
    )
    return Outcome(judged, table=pd.DataFrame([plain, kept]), note=note)


def _regressions(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("regressions", planted=PLANTED, healthy=PLANTED)
    judged = numbers(named=told["named"], quiet=told["quiet"])
    return Outcome(judged, table=pd.DataFrame(told["causes"]), note=f"{PLANTED} planted, {PLANTED} healthy pairs")


GWP: dict[str, Row] = {
    "gwp/table1": Row("platform affinity: the paper's example", (), _table1),
    "gwp/affinity": Row("what the best assignment of jobs to platforms saves", (FLEET,), _affinity),
    "world/affinity": Row("the same with jobs really moved", (FLEET,), _moved),
    "gwp/core-seconds": Row("core-seconds from samples against the fleet's monitor", (FLEET,), _core_seconds),
    "gwp/shared-code": Row("the hottest shared library, hot in no one job", (FLEET,), _shared_code),
    "gwp/overhead": Row("what profiling costs the fleet", (FLEET,), _overhead),
    "world/regressions": Row(
        "whether an alarm finds planted regressions and names what is at fault", (FLEET,), _regressions
    ),
    "world/profiles": Row("how often many collectors' intervals are right", (FLEET,), _many),
}
"""The rows about what profiles are good for."""
