"""The rows about the world itself: does it look like real fleets, does each mechanism do what it should, and are the
estimators, planners, alarms and predictions of every lens right in it?"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Final

import pandas as pd

from analysis.effects.methods import RECOMMENDED
from analysis.effects.methods import names as estimator_names
from analysis.figures import style
from analysis.figures.criteria import numbers, statistic
from analysis.figures.world import calibration, designs, mechanism, variations
from analysis.profiling.affinity.advice import advise
from analysis.profiling.affinity.sampled import table_of
from analysis.profiling.affinity.table import AffinityTable
from analysis.profiling.database import Database
from analysis.statistics import Statistic
from analysis.wsmeter.summaries import job_statistics
from scenarios.crossplatform.worlds import RIVALS
from scenarios.files.schema import SCENARIO, Scenario, WSMeter
from scenarios.papers import calibration as facts
from scenarios.papers import epochs, rates, rollouts, service_worlds, slots
from scenarios.papers.crossplatform import ALL, RUBIS
from scenarios.papers.lone_jobs import SLOW_MEMORY
from scenarios.papers.rows import COSTLY, ONE, WORLDS, ManyWorldsRow, MeasuredRow, Reproduction, Row, RunRow
from scenarios.papers.sources import Kept, Sources
from scenarios.papers.variations import ABLATION, COVARIANCE, MACHINES, SWITCHES, ablation, covariance
from scenarios.profiling.affinity_trial import moved
from scenarios.runs.rundir import Run
from scenarios.wsmeter.measurements import Tables

TODAY, UPGRADE, DVFS, SERVICES, FLEET = "today", "cpu_upgrade", "dvfs_policy", "customer_services", "profiled_fleet"
FLEETS: Final = 200
DRAWS: Final = 500
"""Of each number of machines and design in each fleet of the scorecard."""
GUARDED: Final = 20
"""Fleets that faults are planted in."""
MANY: Final[Mapping[str, object]] = {
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
WATCHED: Final = 20
"""Profiles with a planted incident that are watched over time, and as many without."""
_AGAINST_TIME: Final = ("day", "week")
"""Designs with machines that have the feature beside machines that have not."""
_PLAIN: Final = (*_AGAINST_TIME, "crossover")
"""Designs that draw machines at random from the whole fleet."""


def _scenario(run: Run) -> Scenario:
    """Return the scenario that a run was made from."""
    return run.world(SCENARIO)


def _ablation(sources: Sources) -> Reproduction:
    fleets = ablation(sources)
    means = fleets.drop(columns="seed").groupby("switch", sort=False).mean().reset_index()
    return Reproduction(variations.measure_ablation(fleets), table=means)


def _covariance(sources: Sources) -> Reproduction:
    fleets = covariance(sources)
    by = fleets.drop(columns=["seed", "draws"]).groupby(["axis", "level"], sort=False)
    means, between = by.mean(), by[["covered", "truth"]].std().add_suffix("_between")
    return Reproduction(variations.measure_covariance(fleets), table=means.join(between).reset_index())


def _mechanism(run: Run) -> Reproduction:
    tables = Tables.of(run, WSMeter(metric="ips"))
    capped = run.table("truth_nowhere_machine_windows", ["machine", "capped_share"])
    stall = run.table("truth_jobs", ["job", "stall_share"])
    jobs = mechanism.job_table(_gains(tables), tables.nowhere, stall, capped)
    feature = _scenario(run).feature
    threshold = feature.governor.stall_threshold if feature and feature.governor else 1.0
    measured = mechanism.measure_mechanism(jobs, threshold)
    return Reproduction(measured, table=_correlations(measured))


def _correlations(measured: pd.DataFrame) -> pd.DataFrame:
    """Return each rank correlation and mean gain with its interval, a row each."""
    names = [name for name in measured.loc[measured["x"].isna(), "series"] if not name.endswith(("_low", "_high"))]
    return pd.DataFrame([(name, *statistic(measured, name)) for name in names], columns=["", "measured", "low", "high"])


def _gains(tables: Tables) -> pd.DataFrame:
    """Return every job's relative change of mean performance between the counterfactual fleets."""
    off, on = (job_statistics(table)[["job", "mean"]] for table in tables.arms)
    both = off.merge(on, on="job", suffixes=("_off", "_on"))
    return pd.DataFrame({"job": both["job"], "gain": both["mean_on"] / both["mean_off"] - 1})


def _rollouts(sources: Sources) -> Reproduction:
    draws = rollouts.rolled_out(sources)
    return Reproduction(designs.measure_rollouts(draws), table=designs.described(draws, designs.DRAWS))


def _packing(sources: Sources) -> Reproduction:
    draws = rollouts.packed(sources)
    return Reproduction(designs.measure_packing(draws), table=designs.described(draws, designs.FLEETS))


def _scorecard(sources: Sources) -> Reproduction:
    card = sources.trial("scorecard", fleets=FLEETS, draws=DRAWS)
    recommended = _of(card["corners"], RECOMMENDED)
    sums = recommended.groupby(["corner", "design"])[["covered", "draws"]].sum().reset_index()
    sums["coverage"] = sums["covered"] / sums["draws"]
    beside, switched = (sums[sums["design"].isin(which)] for which in (_AGAINST_TIME, ("crossover",)))
    gains = _of(card["gains"], RECOMMENDED)
    fine = [(_needed(card, "fine", design), _needed(card, "base", design)) for design in _AGAINST_TIME]
    judged = numbers(
        corners=float(recommended["corner"].nunique()),
        draws=float(sums.loc[sums["design"].isin(_PLAIN), "draws"].min()),
        coverage_min=float(beside["coverage"].min()),
        coverage_max=float(beside["coverage"].max()),
        crossover_coverage_min=float(switched["coverage"].min()),
        crossover_coverage_max=float(switched["coverage"].max()),
        designs_coverage_min=_least_of_others(card["estimators"]),
        day=_needed(card, "base", "day"),
        week=_needed(card, "base", "week"),
        crossover_80=_needed(card, "autocorrelation_80", "crossover"),
        crossover_50=_needed(card, "autocorrelation_50", "crossover"),
        against_cuped=float(gains["gain"].min()),
        against_cuped_worst=float(gains["worst"].min()),
        fine_coverage=_apart(beside, "fine", "base"),
        fine_n95=float(pd.Series([abs(math.log(left) - math.log(right)) for left, right in fine]).max(skipna=False)),
    )
    least = beside.sort_values("coverage", kind="stable").iloc[0]
    note = (
        f"{card['fleets']} fleets; {RECOMMENDED}; its least coverage of a corner is in {least['corner']} "
        f"({least['design']}); machines for +1% in 95% of draws; {_as_published(card)}; digest {card['digest'][:12]}"
    )
    return Reproduction(judged, table=pd.DataFrame(card["estimators"]), note=note)


def _of(rows: list[Kept], estimator: str) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    return table[table["estimator"] == estimator]


def _needed(card: Kept, corner: str, design: str) -> float:
    """Return the machines that the recommended estimator needs; infinite if more than were tried, NaN if not tried."""
    for row in card["needed"]:
        if (row["corner"], row["design"], row["estimator"]) == (corner, design, RECOMMENDED):
            return math.inf if row["bound"] == "more than" else float(row["n95"])
    return math.nan


def _apart(sums: pd.DataFrame, corner: str, other: str) -> float:
    """Return how far apart coverage is in two corners, the most of all designs; NaN where one was not tried."""
    left, right = (sums[sums["corner"] == name].set_index("design")["coverage"] for name in (corner, other))
    return float((left - right).abs().max(skipna=False)) if len(left) and len(right) else math.nan


def _least_of_others(rows: list[Kept]) -> float:
    """Return the least coverage of the designs that choose their machines, each by the estimator that is its own."""
    plain = set(estimator_names())
    least = math.inf
    for design in {row["design"] for row in rows} - set(_PLAIN):
        coverage = {row["estimator"]: row["coverage"] for row in rows if row["design"] == design}
        own = [coverage[name] for name in coverage if name not in plain]
        least = min([least, *(own or [coverage[name] for name in coverage if name == RECOMMENDED])])
    return least if math.isfinite(least) else math.nan


def _as_published(card: Kept) -> str:
    """Return what the published estimator covers on the same draws, in words."""
    rows = [row for row in card["estimators"] if row["estimator"] == "published"]
    covers = [f"{100 * row['coverage']:.0f}% ({row['design']})" for row in rows]
    return f"as published covers {', '.join(covers)}" if covers else "not judged as published"


def _guards(sources: Sources) -> Reproduction:
    study = sources.trial("guards", fleets=GUARDED)
    names = ("faults", "healthy_cases", "missed", "harmless", "false_alarms", "weak_alarms")
    return Reproduction(numbers(**{name: float(study[name]) for name in names}), table=pd.DataFrame(study["planted"]))


def _planner(sources: Sources) -> Reproduction:
    study = sources.trial("planner")
    judged = numbers(fleets=float(study["fleets"]), power=study["power"], margin=study["margin"])
    return Reproduction(judged, table=pd.DataFrame([_planned(row) for row in study["rows"]]))


def _planned(row: Kept) -> Kept:
    """Return what was planned of one design on one fleet beside what came true."""
    planned, real = row["predicted"], row["real"]
    named = {name: row[name] for name in ("corner", "fleet", "design", "machines")}
    margins = {"planned_margin": planned["margin"], "margin": real["margin"]}
    return named | margins | {"planned_power": planned["power"], "power": real["power"]}


def _affinity(run: Run) -> Reproduction:
    with Database([run.path]) as database:
        plain, keeping = moved(run.path, advise(AffinityTable.of(table_of(database), run.sheets)))
    judged = numbers(
        realised_over_promised=plain.realised_over_promised,
        realised=plain.realised,
        kept_realised_over_promised=keeping.realised_over_promised,
        kept_realised=keeping.realised,
    )
    note = (
        f"judged is the paper's programme: {plain.promised:.2%} predicted, {plain.realised:.2%} realised; "
        "with no platform given more last-level-cache misses than it has now (added after this was seen), it is "
        f"{keeping.promised:.2%} and {keeping.realised:.2%}"
    )
    return Reproduction(judged, table=pd.DataFrame([asdict(plain), asdict(keeping)]), note=note)


def _regressions(sources: Sources) -> Reproduction:
    study = sources.trial("regressions", planted=PLANTED, healthy=PLANTED)
    return Reproduction(numbers(named=study["named"], quiet=study["quiet"]), table=pd.DataFrame(study["causes"]))


def _watch(sources: Sources) -> Reproduction:
    study = sources.trial("watch", planted=WATCHED, healthy=WATCHED)
    judged = numbers(power=study["power"], right=study["right"], quiet=study["quiet"])
    return Reproduction(judged, table=pd.DataFrame(study["causes"]))


def _profiles(sources: Sources) -> Reproduction:
    many, plain = sources.collectors(FLEET, MANY_DRAWS, **MANY), sources.collectors(FLEET, PLAIN_DRAWS)
    functions = many["functions"]
    judged = numbers(
        coverage=Statistic(*(functions[name] for name in ("coverage", "coverage_low", "coverage_high"))),
        naive_coverage=functions["naive_coverage"],
        cpi_coverage=many["cpi"]["coverage"],
        half_width=functions["half_width"],
    )
    note = (
        f"{many['draws']} collectors of one fleet of {MANY['fleet.machines']} machines, each {many['visits']:,.0f} "
        f"visits and {many['samples']:,.0f} samples of cycles; {functions['judged']} functions. The fleet's own "
        f"collector takes few samples of many machines: of {plain['draws']} such, naive intervals hold the truth in "
        f"{plain['functions']['naive_coverage']:.1%}, at a design effect of {plain['functions']['design_effect']:.2f}"
    )
    studies = {"many samples of few machines": many, f"as {FLEET} does": plain}
    return Reproduction(judged, table=pd.DataFrame([_held(name, study) for name, study in studies.items()]), note=note)


def _held(name: str, study: Kept) -> Kept:
    """Return a row about collectors: what their intervals hold, and what naive ones do."""
    shares = {key: study["functions"][key] for key in ("coverage", "naive_coverage", "design_effect", "half_width")}
    return {"collectors": name, **{key: study[key] for key in ("draws", "visits", "samples")}, **shares}


ROWS: tuple[Row, ...] = (
    ManyWorldsRow(
        "world/calibration",
        "the world's statistics beside those of real fleets",
        (TODAY, SERVICES),
        facts.measure,
        calibration.calibration,
        f"means of {len(facts.SEEDS)} worlds; quota, instances of jobs and their spread over machines are judged in "
        "the population google2011, the top 200 jobs and the mean on a machine in wsmeter, and the table has the other "
        "one's; spreads within and between jobs are of one random epoch of each stay in a fleet of four platforms, as "
        f"records of a cell mix times and platforms; slow memory is assumed to take {SLOW_MEMORY:g} times as long; "
        "slowdowns are of jobs alone on the reference machine, the maximum is that of 22 random jobs",
    ),
    ManyWorldsRow(
        "world/epochs",
        "what moves when time is cut into epochs, or a machine is solved at every event",
        (TODAY, UPGRADE, DVFS),
        epochs.measure,
        note=f"means of {len(epochs.SEEDS)} fleets of {epochs.MACHINES} machines, four hours; event by event "
        "load also steps every minute; judged is how far epochs of 300 s (and of 10 s) are from events: facts in "
        "tolerances of world/calibration, true changes as shares",
    ),
    ManyWorldsRow(
        "world/ablation",
        "what each mechanism moves, switched off one by one",
        (UPGRADE,),
        _ablation,
        style.of_measured(partial(variations.ablation, switches=tuple(SWITCHES))),
        f"means of {len(ABLATION.seeds)} fleets of {MACHINES:,} machines; margin and coverage of WSMeter over "
        f"the covered jobs at {ABLATION.cluster} machines, {ABLATION.draws} test clusters a fleet; where cache is not "
        "shared, each instance has the part that its quota buys, and what no quota buys stays empty",
    ),
    ManyWorldsRow(
        "world/covariance",
        "coverage of WSMeter's interval over shared conditions",
        (UPGRADE,),
        _covariance,
        variations.covariance,
        f"means of {len(COVARIANCE.seeds)} fleets of {MACHINES:,} machines, {COVARIANCE.draws} test clusters of "
        f"{COVARIANCE.cluster} machines a fleet, half of whose machines have the feature; _between: standard deviation "
        "between fleets",
    ),
    RunRow(
        "world/dvfs-mechanism",
        "why jobs gain or lose under the DVFS policy",
        (DVFS,),
        _mechanism,
        mechanism.mechanism,
        "gain: instructions per CPU second with the policy everywhere over nowhere; power limit: share of epochs in "
        "which a job's machines lowered the clock for their cap before the policy",
        on=ONE,
    ),
    ManyWorldsRow(
        "world/rollouts",
        "test clusters really rolled out, against draws composed of counterfactual fleets",
        (UPGRADE, DVFS, SERVICES),
        _rollouts,
        designs.rollouts,
        f"{len(rollouts.IN_FLEETS.seeds)} fleets of {rollouts.QUARTER_DAY['fleet.machines']:,} machines, six hours; "
        "difference: real less composed; bias: real less the change of the whole fleet, for instances of the rebuilt "
        "services; packed instances are in world/packing; machines added share a rack's conditions, which WSMeter's "
        "margin leaves out",
    ),
    ManyWorldsRow(
        "world/packing",
        "what packing a test cluster does to its estimate, and why",
        (UPGRADE,),
        _packing,
        designs.packing,
        f"{len(rollouts.IN_PACKS.seeds)} fleets of {rollouts.QUARTER_DAY['fleet.machines']:,} machines, six hours; "
        "intervals are over fleets; quiet: no interference, caps or turbo; alike: also no differences between machines "
        "or racks",
    ),
    ManyWorldsRow("world/scorecard", "estimators of a change of the fleet, over a sweep of fleets", (), _scorecard),
    ManyWorldsRow(
        "world/guards",
        "whether guards find planted faults and leave healthy experiments alone",
        (),
        _guards,
    ),
    MeasuredRow(
        "world/slots",
        "two clusters of another generation mix skew a comparison of slots, and the warning that tells it",
        (slots.SCENARIO,),
        slots.measure,
        note=f"{slots.SLOTS} slots of a fleet of three platforms, {slots.CUTS * slots.SLOTS // 2} pairs; a day after a "
        f"day, nothing has a feature; up to {slots.MOST} machines are exchanged in each of two clusters of "
        f"{slots.CLUSTERS}; points: difference of the newest platform's share there; told: the skew that the warning "
        "tells from the day before",
        on=COSTLY,
    ),
    MeasuredRow(
        "world/rates",
        "what a new machine is worth, where the scheduler puts heavy jobs on new machines",
        (rates.SCENARIO,),
        rates.measure,
        note=f"a day of 6,000 machines, half {rates.OLD} and half {rates.NEW}; truth: all machines of one, and of the "
        "other, with the same instances; head: jobs with at least 1% of the quota; strict: log odds of 1.5 for each "
        "factor e of quota, else 0.5",
    ),
    ManyWorldsRow("world/planner", "whether what a plan predicts is what happens on later days", (), _planner),
    ManyWorldsRow(
        "world/prediction",
        "every method over many worlds, and in strange ones",
        ALL,
        service_worlds.prediction,
        note=f"{service_worlds.WORLDS} worlds of each application, all targets; rivals: {', '.join(RIVALS)}. Below "
        f"also {service_worlds.BESIDE} each with an unlike benchmark, with cliffs in the caches, and far from the best "
        "method's priors: not in the criteria",
    ),
    ManyWorldsRow(
        "world/prediction-ablation",
        "each mechanism's share of the published method's error",
        RUBIS,
        service_worlds.prediction_ablation,
        note=f"the method as published, {service_worlds.ABLATED} worlds of RUBiS; its error with a mechanism switched "
        "off, what that moves",
    ),
    ManyWorldsRow(
        "world/mix",
        "request mixes that separate the types, and one that cannot",
        (*ALL, "cross_stationary"),
        service_worlds.request_mix,
        note="error: no cost below 0, intervals weighed by noise, requests that cost more where more come; published: "
        "least squares, whose types are identified or not; true_costs: those of the world at each interval's load, "
        "which leave only chance among requests",
    ),
    ManyWorldsRow(
        "world/routing",
        "requests routed by type over two machines that differ",
        ALL,
        service_worlds.routing_by_type,
        note=f"{', '.join(service_worlds.MACHINES)} at {service_worlds.LOAD:.0%} of what they can do, half an hour; "
        f"medians and shares over {len(WORLDS)} worlds of each. Judged is least_added: a request goes where "
        "it is predicted to add least to everybody's response; rivals are weighted by predicted capacity. "
        "least_expected sends it where it is done first itself; best_platform is the paper's, every type always where "
        "it takes least",
    ),
    RunRow(
        "world/affinity",
        "what the best assignment of jobs to platforms saves, with jobs really moved",
        (FLEET,),
        _affinity,
        on=ONE,
    ),
    ManyWorldsRow(
        "world/regressions",
        "whether an alarm finds planted regressions and names what is at fault",
        (FLEET,),
        _regressions,
        note=f"{PLANTED} planted, {PLANTED} healthy pairs",
    ),
    ManyWorldsRow(
        "world/watch",
        "whether changes at unknown times are found as stated, with their cause, and healthy profiles left alone",
        (FLEET,),
        _watch,
        note=f"{WATCHED} planted, {WATCHED} healthy profiles of ten days, without a new compiler or kernel; power: of "
        "the incidents whose growth is at least what is stated for functions of their size",
    ),
    ManyWorldsRow("world/profiles", "how often many collectors' intervals are right", (FLEET,), _profiles),
)
"""Every row about the world itself."""
