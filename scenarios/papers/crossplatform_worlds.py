"""Rows about prediction beyond the paper: many worlds, one mechanism at a time, mixes that cannot tell, routing."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.crossplatform import mix, routing
from analysis.crossplatform.evidence import ServiceLog
from analysis.crossplatform.split import halves
from analysis.crossplatform.tailored import tailored
from analysis.figures.crossplatform import choices, scorecards
from models.arrays import Floats
from models.platforms import PLATFORMS
from models.queues.dispatch import Router
from models.services.world import Mechanisms, ServiceWorld
from scenarios.crossplatform.trial import errors, trial
from scenarios.crossplatform.worlds import RIVALS, summary
from scenarios.papers.crossplatform_prediction import run_tables
from scenarios.papers.crossplatform_traits import ALL, RUBIS, SCENARIOS, SEEDS, runs, scenario_of, whole_log
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.runs.rundir import Run
from sim.services import capacity
from sim.services.cluster import Cluster, gather, responses, route

WORLDS: Final = 30
"""Worlds of each application that `world/prediction` judges; `wsc validate` judges a hundred."""
DOUBLED: Final[Mapping[str, float]] = {
    "hardware.cpi_log_sd": 0.20,
    "hardware.latency_log_sd": 0.24,
    "hardware.overlap_log_sd": 0.20,
    "hardware.effective_cache_log_sd": 0.2,
    "hardware.smt_log_sd": 0.4,
}
"""Hardware that departs twice as far from its spec sheets."""
UNLIKE: Final[Mapping[str, float]] = {
    "benchmark.overlap": 2.2,
    "benchmark.branch_misses_per_instruction": 0.010,
    "benchmark.shared_write_share": 0.15,
    "benchmark.core_cpi": 1.2,
    "benchmark.smt_slowdown": 0.9,
    "benchmark.miss_exponent": -0.65,
}
"""A public benchmark that uses machines otherwise than the services do."""
CLIFFS: Final[Mapping[str, str]] = {"application.miss_curve": "cliffs"}
"""Caches in which misses fall off cliffs: no power law."""
STRANGE: Final[Mapping[str, float]] = {
    **DOUBLED,
    "application.overlap": 2.2,
    "application.branch_misses_per_instruction": 0.012,
    "application.shared_write_share": 0.15,
    "application.smt_slowdown": 0.9,
    "application.core_cpi": 1.3,
    "hardware.effective_cache_share": 0.5,
    "runtime.collection_instructions": 2.4e8,
}
"""A world far from what the best method's priors expect: each of these is off by one to two of their deviations."""
JUDGED: Final = ("default", "doubled")
BESIDE: Final = 10
"""Worlds of each application of the kinds that no criterion is about."""
ABLATED: Final = 5
"""Worlds in which each mechanism is switched off."""
ONE: Final[tuple[str, ...]] = ("published",)
POWER_LAW: Final[Mapping[str, float]] = {
    "application.reuse_log_sd": 0.0,
    "application.type_reuse_log_sd": 0.0,
    "application.miss_exponent_sd": 0.0,
}
"""Every type on the power law, as the model takes them to be."""
SWITCHES: Final = tuple(field.name for field in fields(Mechanisms))
"""Mechanisms that a world may do without."""
MACHINES: Final = ("pres", "xeon_1h_2c_1p")
"""The cluster of `world/routing`: the two processors of the paper's Table 8."""
LOAD: Final = 0.5
"""Of that cluster, relative to its capacity."""
ROUTED_S: Final = 1800.0
"""How long it is routed."""
TYPED: Final = "least_added"


def _prediction(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    variants: dict[str, Mapping[str, Any]] = {
        "default": {}, "doubled": DOUBLED, "unlike": UNLIKE, "cliffs": CLIFFS, "strange": STRANGE,
    }  # fmt: skip
    rows = []
    for variant, overrides in variants.items():
        for application, name in SCENARIOS.items():
            told = summary(sources.worlds(name, WORLDS if variant in JUDGED else BESIDE, **overrides))
            best = told["best"]
            won = {"beats": best["beats_every_rival"], "beats_se": best["se"], "beats_each": best["beats_each_rival"]}
            rows += [{"worlds": variant, "application": application, **won, **row} for row in told["methods"]]
    table = pd.DataFrame(rows)
    note = (
        f"{WORLDS} worlds of each application, all targets; rivals: {', '.join(RIVALS)}. Below also {BESIDE} each with "
        "an unlike benchmark, with cliffs in the caches, and far from the best method's priors: not in the criteria"
    )
    return Outcome(scorecards.measure_prediction(table), draw=partial(_draw, table), note=note, table=_shown(table))


def _draw(table: pd.DataFrame, _measured: pd.DataFrame, _paper: pd.DataFrame) -> Figure:
    return scorecards.prediction(table)


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return errors of service time by method, and how the best method's intervals and choices did; a row a kind."""
    keys = ["worlds", "application"]
    best = table[table["method"] == scorecards.BEST].set_index(keys)
    names = {"coverage": "held", "half_width": "±", "wrong": "wrong"}
    names |= {"beats": "beats all", "beats_se": "±se", "beats_each": "beats each"}
    wide = table.pivot_table(index=keys, columns="method", values="service_error", sort=False)
    columns = {"published": "publ.", "calibrated": "calib.", "shrunken": "shrunk", scorecards.BEST: scorecards.BEST}
    made = wide[list(columns)].rename(columns=columns).join(best[list(names)].rename(columns=names)).round(3)
    made.insert(0, "worlds", [" ".join(map(str, key)) for key in made.index])
    return made.reset_index(drop=True)


def _ablation(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    every: dict[str, float] = {f"mechanisms.{name}": False for name in SWITCHES} | dict(POWER_LAW)
    off: dict[str, Mapping[str, float]] = {"nothing": {}, "everything": every}
    off |= {name: {f"mechanisms.{name}": False} for name in SWITCHES}
    rows = []
    for name, overrides in off.items():
        asked = {"analyses.crossplatform.methods": ONE, **overrides}
        for world in sources.worlds(SCENARIOS["rubis"], ABLATED, **asked):
            rows += [{"off": name, "seed": world["seed"], **row} for row in world["methods"]]
    table = scorecards.ablation(pd.DataFrame(rows))
    note = (
        f"the method as published, {ABLATED} worlds of RUBiS; its error with a mechanism switched off, what that moves"
    )
    return Outcome(scorecards.measure_ablation(table), draw=partial(_draw_ablation, table), note=note, table=table)


def _draw_ablation(table: pd.DataFrame, _measured: pd.DataFrame, _paper: pd.DataFrame) -> Figure:
    return scorecards.draw_ablation(table)


def _mix(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    rows = []
    for application, seed, run in runs(sources):
        scenario = scenario_of(run)
        train, test = halves(whole_log(run, scenario.calibration))
        busy = [part.utilisation * part.interval_s for part in (train, test)]
        published, one = mix.fit(train.counts, busy[0]), mix.fit(train.requests[:, None], busy[0])
        said = {
            "error": mix.fit(train.counts, busy[0], "nnls", noise_exponent=1.0, crowding=True).predict(test.counts),
            "published": published.predict(test.counts),
            "one_type": one.predict(test.requests[:, None]),
            "true_costs": _true_busy_s(scenario.world, scenario.calibration, test),
        }
        off = {name: float(np.nanmedian(errors(value, busy[1]))) for name, value in said.items()}
        rows.append({"load": "changing", "application": application, "seed": seed, **off, **_identified(published)})
    for seed in SEEDS:
        log = whole_log(sources.run("cross_stationary", seed=seed), "piii")
        model = mix.fit(log.counts, log.utilisation * log.interval_s)
        rows.append({"load": "stationary", "application": "rubis", "seed": seed, **_identified(model)})
    table = pd.DataFrame(rows)
    by = table.drop(columns="seed").groupby(["load", "application"], sort=False)
    medians = dict.fromkeys(("error", "published", "one_type", "true_costs", "condition_number"), "median")
    note = (
        "error: no cost below 0, intervals weighed by noise, requests that cost more where more come; published: "
        "least squares, whose types are identified or not; true_costs: those of the world at each interval's load, "
        "which leave only chance among requests"
    )
    shown = by.agg(medians | {"identified": "mean"}).round(4).reset_index()
    return Outcome(scorecards.measure_mix(table), note=note, table=shown)


def _true_busy_s(world: ServiceWorld, platform: str, log: ServiceLog) -> Floats:
    """Return the seconds in which all processors are busy that a world expects of the requests of each interval."""
    site = capacity.sites(replace(world, platforms=(platform,)))[platform]
    work, _ = capacity.offered(site, log.counts / log.interval_s)
    return work * log.interval_s / site.machine.vcpus


def _identified(model: mix.MixModel) -> dict[str, float]:
    return {"identified": float(model.identified), "condition_number": model.condition_number}


def _routing(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    rows = []
    for application, seed, run in runs(sources):
        made = gather(replace(scenario_of(run).world, horizon_s=ROUTED_S), MACHINES, LOAD)
        named = {"application": application, "seed": f"{application} {seed}"}
        rows += [{**named, "policy": policy, **told} for policy, told in _routed(run, made).items()]
    table = pd.DataFrame(rows)
    rivals = {f"weighted_{name}": name for name in ("round_robin", "least_loaded")}
    judged = choices.measure_routing(table, TYPED, rivals)
    shown = table.groupby("policy", sort=False)[["mean_s", "p99_s"]].median().round(4)
    for rival, name in rivals.items():
        shown[f"mean below {name}"] = _below(table, rival, "mean_s")
        shown[f"p99 below {name}"] = _below(table, rival, "p99_s")
    note = (
        f"{', '.join(MACHINES)} at {LOAD:.0%} of what they can do, half an hour; medians and shares over "
        f"{len(SEEDS)} worlds of each application. Judged is least_added: a request goes where it is predicted to add "
        "least to everybody's response; rivals are weighted by predicted capacity. least_expected sends it where it is "
        "done first itself; best_platform is the paper's, every type always where it takes least"
    )
    return Outcome(judged, draw=partial(_draw_routing, table), note=note, table=shown.reset_index())


def _routed(run: Run, made: Cluster) -> dict[str, dict[str, float]]:
    """Return mean and 99th percentile of response times under each policy, predictions from the measured platform."""
    asked = trial(run_tables(run), scenario_of(run))
    # What is routed is the beginning of the trace, so predictions are calibrated on its second half.
    evidence = asked.evidence.of_one()
    predictor = tailored(replace(evidence, logs={evidence.calibration: asked.test}))
    machines = [PLATFORMS[name] for name in MACHINES]
    processor_s, response_s = routing.alone(predictor, machines, len(asked.test.types))
    # Work per second that comes to the cluster if it is as busy as LOAD: its mix is the log's, its volume is not.
    weight = asked.test.counts.sum(axis=0) / asked.test.requests.sum()
    rates = [routing.expected_rates(machine) for machine in machines]
    able_per_s = np.array([row[-1] / float(weight @ processor_s[:, i]) for i, row in enumerate(rates)])
    known = np.tile(able_per_s, (weight.size, 1))
    best = routing.to_the_best(np.where(np.isnan(response_s), processor_s, response_s))
    tables: dict[str, tuple[Router, Any]] = {
        "round_robin": ("round_robin", None),
        "least_loaded": ("least_loaded", None),
        "weighted_round_robin": ("round_robin", known),
        "weighted_least_loaded": ("least_loaded", known),
        "best_platform": ("round_robin", best),
        "least_mean": ("round_robin", routing.least_mean(LOAD * able_per_s.sum() * weight, processor_s, rates).share),
        "least_expected": ("least_expected", processor_s),
        TYPED: ("least_added", processor_s),
    }
    told = {name: responses(route(made, *how)).iloc[0] for name, how in tables.items()}
    return {name: {"mean_s": float(row["mean_s"]), "p99_s": float(row["p99_s"])} for name, row in told.items()}


def _below(table: pd.DataFrame, rival: str, what: str) -> "pd.Series[float]":
    """Return the share of worlds in which each policy has a lower mean, or 99th percentile, than a rival."""
    times = table.pivot_table(index="seed", columns="policy", values=what)
    return times.lt(times[rival], axis=0).mean()


def _draw_routing(table: pd.DataFrame, _measured: pd.DataFrame, _paper: pd.DataFrame) -> Figure:
    return choices.routing(table)


SERVICES: dict[str, Row] = {
    "world/prediction": Row("every method over many worlds, and in strange ones", ALL, _prediction),
    "world/prediction-ablation": Row("each mechanism's share of the published method's error", RUBIS, _ablation),
    "world/mix": Row("request mixes that tell the types, and one that cannot", (*ALL, "cross_stationary"), _mix),
    "world/routing": Row("requests routed by type over two unlike machines", ALL, _routing),
}
"""Rows about services beyond the paper, by id."""
