"""Services in worlds of other kinds: what methods of prediction, models of the mix and routers do in each."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Final, NamedTuple, cast

import numpy as np
import pandas as pd

from analysis.crossplatform import mix, routing
from analysis.crossplatform.evidence import ServiceLog
from analysis.crossplatform.split import halves
from analysis.crossplatform.tailored import tailored
from analysis.figures.world import services
from models.arrays import Floats
from models.platforms import PLATFORMS
from models.queues.dispatch import Router
from models.services.world import Mechanisms, ServiceWorld
from scenarios.crossplatform.trial import JudgedWorld, errors, trial
from scenarios.crossplatform.worlds import summary
from scenarios.papers.crossplatform import SCENARIOS, Obtained, run_tables, scenario_of, whole_log
from scenarios.papers.rows import WORLDS as SEEDS
from scenarios.papers.rows import Reproduction
from scenarios.papers.sources import Sources
from scenarios.runs.rundir import Run
from sim.services import capacity
from sim.services.cluster import ServiceCluster, gather, responses, route

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
VARIANTS: Final[Mapping[str, Mapping[str, object]]] = {
    "default": {},
    "doubled": DOUBLED,
    "unlike": UNLIKE,
    "cliffs": CLIFFS,
    "strange": STRANGE,
}
JUDGED: Final = ("default", "doubled")
BESIDE: Final = 10
"""Worlds of each application of the kinds that no criterion is about."""
ABLATED: Final = 5
"""Worlds in which each mechanism is switched off."""
PUBLISHED_ALONE: Final[tuple[str, ...]] = ("published",)
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


def scores(sources: Sources) -> pd.DataFrame:
    """Return how every method did in each kind of world: a row a kind, application and method."""
    rows = []
    for variant, overrides in VARIANTS.items():
        for application, name in SCENARIOS.items():
            count = WORLDS if variant in JUDGED else BESIDE
            worlds = summary(cast(list[JudgedWorld], sources.worlds(name, count, **overrides)))
            best = worlds["best"]
            won = {"beats": best["beats_every_rival"], "beats_se": best["se"], "beats_each": best["beats_each_rival"]}
            rows += [{"worlds": variant, "application": application, **won, **row} for row in worlds["methods"]]
    return pd.DataFrame(rows)


def switched_off(sources: Sources) -> pd.DataFrame:
    """Return the errors of the method as published in worlds of RUBiS, nothing, each mechanism and all switched off."""
    everything: dict[str, object] = {**{f"mechanisms.{name}": False for name in SWITCHES}, **POWER_LAW}
    off: dict[str, Mapping[str, object]] = {"nothing": {}, "everything": everything}
    off |= {name: {f"mechanisms.{name}": False} for name in SWITCHES}
    rows = []
    for name, overrides in off.items():
        values = {"analyses.crossplatform.methods": PUBLISHED_ALONE, **overrides}
        for world in sources.worlds(SCENARIOS["rubis"], ABLATED, **values):
            rows += [{"off": name, "seed": world["seed"], **row} for row in world["methods"]]
    return pd.DataFrame(rows)


def _runs(sources: Sources) -> Obtained:
    """Yield the runs of every application in the worlds of `SEEDS`."""
    for application, name in SCENARIOS.items():
        for seed in SEEDS:
            yield application, seed, sources.run(name, seed=seed)


def mixes(sources: Sources) -> pd.DataFrame:
    """Return how well models of busy time by type do, and whether a log tells the types apart: a row a world."""
    rows: list[dict[str, object]] = []
    for application, seed, run in _runs(sources):
        scenario = scenario_of(run)
        train, test = halves(whole_log(run, scenario.calibration))
        busy_s, later_s = (part.utilisation * part.interval_s for part in (train, test))
        published, one_type = mix.fit(train.counts, busy_s), mix.fit(train.requests[:, None], busy_s)
        predicted_s = {
            "error": mix.fit(train.counts, busy_s, "nnls", noise_exponent=1.0, crowding=True).predict(test.counts),
            "published": published.predict(test.counts),
            "one_type": one_type.predict(test.requests[:, None]),
            "true_costs": _true_busy_s(scenario.world, scenario.calibration, test),
        }
        off = {name: float(np.nanmedian(errors(value, later_s))) for name, value in predicted_s.items()}
        named: dict[str, object] = {"load": "changing", "application": application, "seed": seed}
        rows.append(named | off | _identified(published))
    for seed in SEEDS:
        log = whole_log(sources.run("cross_stationary", seed=seed), "piii")
        model = mix.fit(log.counts, log.utilisation * log.interval_s)
        rows.append({"load": "stationary", "application": "rubis", "seed": seed, **_identified(model)})
    return pd.DataFrame(rows)


def _true_busy_s(world: ServiceWorld, platform: str, log: ServiceLog) -> Floats:
    """Return the seconds in which all processors are busy that a world expects of the requests of each interval."""
    site = capacity.sites(replace(world, platforms=(platform,)))[platform]
    work, _ = capacity.offered(site, log.counts / log.interval_s)
    return work * log.interval_s / site.machine.vcpus


def _identified(model: mix.MixModel) -> dict[str, float]:
    return {"identified": float(model.identified), "condition_number": model.condition_number}


def routed(sources: Sources) -> pd.DataFrame:
    """Return mean and 99th percentile of response times by world and policy, requests routed over two machines."""
    rows = []
    for application, seed, run in _runs(sources):
        cluster = gather(replace(scenario_of(run).world, horizon_s=ROUTED_S), MACHINES, LOAD)
        named = {"application": application, "seed": f"{application} {seed}"}
        rows += [{**named, "policy": policy, **times} for policy, times in _routed(run, cluster).items()]
    return pd.DataFrame(rows)


class _Routing(NamedTuple):
    """A router and the (J, machines) table that it goes by, if any."""

    router: Router
    by: Floats | None = None


def _routed(run: Run, cluster: ServiceCluster) -> dict[str, dict[str, float]]:
    """Return mean and 99th percentile of response times under each policy, predictions from the measured platform."""
    judged = trial(run_tables(run), scenario_of(run))
    # What is routed is the beginning of the trace, so predictions are calibrated on its second half.
    evidence = judged.evidence.of_one()
    predictor = tailored(replace(evidence, logs={evidence.calibration: judged.test}))
    machines = [PLATFORMS[name] for name in MACHINES]
    processor_s, response_s = routing.alone(predictor, machines, len(judged.test.types))
    # Work per second that comes to the cluster if it is as busy as LOAD: its mix is the log's, its volume is not.
    weight = judged.test.counts.sum(axis=0) / judged.test.requests.sum()
    rates = [routing.expected_rates(machine) for machine in machines]
    able_per_s = np.array([row[-1] / float(weight @ processor_s[:, i]) for i, row in enumerate(rates)])
    able = np.tile(able_per_s, (weight.size, 1))
    best = routing.to_the_best(np.where(np.isnan(response_s), processor_s, response_s))
    policies = {
        "round_robin": _Routing("round_robin"),
        "least_loaded": _Routing("least_loaded"),
        "weighted_round_robin": _Routing("round_robin", able),
        "weighted_least_loaded": _Routing("least_loaded", able),
        "best_platform": _Routing("round_robin", best),
        "least_mean": _Routing(
            "round_robin", routing.least_mean(LOAD * able_per_s.sum() * weight, processor_s, rates).share
        ),
        "least_expected": _Routing("least_expected", processor_s),
        TYPED: _Routing("least_added", processor_s),
    }
    times = {name: responses(route(cluster, policy.router, policy.by)).iloc[0] for name, policy in policies.items()}
    return {name: {"mean_s": float(row["mean_s"]), "p99_s": float(row["p99_s"])} for name, row in times.items()}


def prediction(sources: Sources) -> Reproduction:
    """Judge every method in every kind of world."""
    table = scores(sources)
    measured = services.measure_prediction(table)
    return Reproduction(measured, draw=lambda *_: services.prediction(table), table=_by_world(table))


def _by_world(table: pd.DataFrame) -> pd.DataFrame:
    """Return errors of service time by method, and how the best method's intervals and choices did; a row a kind."""
    keys = ["worlds", "application"]
    best = table[table["method"] == services.BEST].set_index(keys)
    names = {"coverage": "held", "half_width": "±", "wrong": "wrong"}
    names |= {"beats": "beats all", "beats_se": "±se", "beats_each": "beats each"}
    wide = table.pivot_table(index=keys, columns="method", values="service_error", sort=False)
    columns = {"published": "publ.", "calibrated": "calib.", "shrunken": "shrunk", services.BEST: services.BEST}
    rows = wide[list(columns)].rename(columns=columns).join(best[list(names)].rename(columns=names)).round(3)
    rows.insert(0, "worlds", [" ".join(map(str, key)) for key in rows.index])
    return rows.reset_index(drop=True)


def prediction_ablation(sources: Sources) -> Reproduction:
    """Judge the published method with each mechanism switched off."""
    table = services.ablation(switched_off(sources))
    return Reproduction(services.measure_ablation(table), draw=lambda *_: services.draw_ablation(table), table=table)


def request_mix(sources: Sources) -> Reproduction:
    """Judge models of busy time by type."""
    table = mixes(sources)
    by = table.drop(columns="seed").groupby(["load", "application"], sort=False)
    medians = dict.fromkeys(("error", "published", "one_type", "true_costs", "condition_number"), "median")
    shown = by.agg(medians | {"identified": "mean"}).round(4).reset_index()
    return Reproduction(services.measure_mix(table), table=shown)


def routing_by_type(sources: Sources) -> Reproduction:
    """Judge routers by the response times of requests."""
    table = routed(sources)
    rivals = {f"weighted_{name}": name for name in ("round_robin", "least_loaded")}
    judged = services.measure_routing(table, TYPED, rivals)
    shown = table.groupby("policy", sort=False)[["mean_s", "p99_s"]].median().round(4)
    for rival, name in rivals.items():
        shown[f"mean below {name}"] = _below(table, rival, "mean_s")
        shown[f"p99 below {name}"] = _below(table, rival, "p99_s")
    return Reproduction(judged, draw=lambda *_: services.routing(table), table=shown.reset_index())


def _below(table: pd.DataFrame, rival: str, what: str) -> "pd.Series[float]":
    """Return the share of worlds in which each policy has a lower mean, or 99th percentile, than a rival."""
    times = table.pivot_table(index="seed", columns="policy", values=what)
    return times.lt(times[rival], axis=0).mean()
