"""Rows of predictions and choices (Stewart et al. 2008, sections 4 and 5): printed numbers, and simulated worlds."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.crossplatform.choice import compare, rated_power_w
from analysis.crossplatform.evidence import Evidence, Floats, Predictor, ServiceLog
from analysis.crossplatform.learners import network
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.published import published
from analysis.crossplatform.split import halves
from analysis.figures import choices, crossplatform_printed, prediction
from models.platforms import PLATFORMS
from scenarios.evidence import Outcome, Row, Sources
from scenarios.judged_world import actual_throughput
from scenarios.reproduce_traits import ALL, RUBIS, SCENARIOS, SEEDS, XEON, Obtained, logs, runs, scenario_of, whole_log
from scenarios.rundir import Run
from scenarios.trial import errors, trial

TOP_TYPES: Final = 4
"""Types of requests in Table 8: those that contribute most to the response time."""
ISOLATED_PER_S: Final = 10.0
"""Rate of the one type of requests in Table 8."""
SHORT: Final[Mapping[str, str]] = {"piii": "piii", "pres": "pres", "xeon": XEON}
"""How Figure 5 calls platforms."""


def run_tables(run: Run) -> dict[str, pd.DataFrame]:
    """Return the tables of a run that a trial is made of."""
    names = ("service_counts", "service_log", "service_cpu", "benchmarks", "truth_service", "truth_throughput")
    return {name: run.table(name) for name in names}


def _errors_table(application: str, sources: Sources, paper: pd.DataFrame) -> Outcome:
    judged = sources.worlds(SCENARIOS[application], len(SEEDS))
    made = pd.DataFrame([{"seed": world["seed"], **row} for world in judged for row in world["methods"]])
    if application == "tpcw":  # a benchmark cannot be the service that it is to predict
        made = made[made["method"] != "benchmark"]
    measured = pd.concat(
        [crossplatform_printed.measure_table4(paper), prediction.measure_errors(made)], ignore_index=True
    )
    note = (
        f"printed numbers above; below, the same table of {len(SEEDS)} simulated worlds, medians, with the two methods "
        "beyond the paper"
    )
    layout = prediction.layout(made)
    drawn = [name for name in layout.columns if name != "target"]
    draw = partial(_draw_errors, layout, drawn)
    return Outcome(measured, draw=draw, note=note, table=layout)


def _draw_errors(layout: pd.DataFrame, drawn: list[str], _measured: pd.DataFrame, _paper: pd.DataFrame) -> Figure:
    return prediction.draw_errors(layout, drawn)


def _fig5(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    parts, means = [], []
    for application, seed, run in _three(sources):
        parted = {short: halves(whole_log(run, name)) for short, name in SHORT.items()}
        for origin, target in prediction.DIRECTIONS:
            predictor = published(_evidence(run, {SHORT[origin]: parted[origin][0]}))
            off = _response_errors(predictor, SHORT[target], parted[target][1])
            made = {"application": application, "direction": f"{origin}_to_{target}", "seed": seed, "error": off}
            parts.append(pd.DataFrame(made).dropna())
        if application == "rubis":
            truth = run.table("truth_service")
            means += [{"platform": short, "response_time_s": _mean_response(truth, n)} for short, n in SHORT.items()]
    return Outcome(
        prediction.measure_fig5(pd.concat(parts, ignore_index=True), pd.DataFrame(means)), draw=prediction.fig5
    )


def _three(sources: Sources) -> Obtained:
    return logs(sources, tuple(SHORT.values()))


def _evidence(run: Run, logs: Mapping[str, ServiceLog]) -> Evidence:
    return Evidence(next(iter(logs)), logs, PLATFORMS, run.table("benchmarks"))


def _response_errors(predictor: Predictor, platform: str, test: ServiceLog) -> Floats:
    said = predictor(PLATFORMS[platform], test.counts, test.interval_s)
    return errors(said.response_time_s, test.response_time_s)


def _mean_response(truth: pd.DataFrame, platform: str) -> float:
    of = truth[(truth["platform"] == platform) & (truth["requests"] > 0)]
    return float(np.average(of["response_time_s"], weights=of["requests"]))


def _fig6(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    found = []
    for application, seed, run in _three(sources):
        parted = {name: halves(whole_log(run, name)) for name in SHORT.values()}
        learnt = network(_evidence(run, {name: parted[name][0] for name in ("piii", "pres")}))
        for situation, origin, target in (("workload", "pres", "pres"), ("platform", "piii", XEON)):
            ours = published(_evidence(run, {origin: parted[origin][0]}))
            both = [np.nanmedian(_response_errors(one, target, parted[target][1])) for one in (learnt, ours)]
            found.append((application, seed, situation, *both))
    table = pd.DataFrame(found, columns=["application", "seed", "situation", "network", "ours"])
    return Outcome(prediction.measure_fig6(table), draw=prediction.fig6)


def _worth(sources: Sources) -> pd.DataFrame:
    """Return throughput per watt of every target of RUBiS: what it really is, and what methods say."""
    parts = []
    for _, seed, run in runs(sources, {"rubis": SCENARIOS["rubis"]}):
        tables, scenario = run_tables(run), scenario_of(run)
        asked, actual = trial(tables, scenario), actual_throughput(tables, scenario)
        targets = {name: PLATFORMS[name] for name in actual}
        watts = {name: rated_power_w(platform) for name, platform in targets.items()}
        parts.append(_said(seed, choices.ACTUAL, {name: actual[name] / watts[name] for name in targets}))
        for method in METHODS:
            if method.name not in (*choices.PAPERS, *prediction.BEYOND):
                continue
            table = compare(asked.fit(method), targets, asked.mix, scenario.analyses.crossplatform.bound_s).set_index(
                "platform"
            )["throughput_per_watt"]
            parts.append(_said(seed, method.name, table.to_dict()))
    return pd.concat(parts, ignore_index=True)


def _said(seed: int, method: str, worth: Mapping[Any, float]) -> pd.DataFrame:
    names = {"seed": seed, "method": method, "platform": list(worth)}
    return pd.DataFrame({**names, "throughput_per_watt": list(worth.values())})


def _table7(sources: Sources, paper: pd.DataFrame) -> Outcome:
    worth = _worth(sources)
    printed = crossplatform_printed.measure_table7(paper)
    measured = pd.concat([printed, choices.measure_table7(worth)], ignore_index=True)
    note = "printed ranks above; below, the ranks of the shipped simulated world"
    return Outcome(measured, note=note, table=choices.ranking(worth))


def _fig7(sources: Sources, paper: pd.DataFrame) -> Outcome:
    decisions = choices.wrong(_worth(sources))
    printed = crossplatform_printed.measure_fig7(paper)
    measured = pd.concat([printed, choices.measure_fig7(decisions)], ignore_index=True)
    mean = decisions.drop(columns="seed").groupby("method", sort=False).mean().round(4).reset_index()
    note = f"below, shares of wrong decisions and mean loss of throughput per watt in {len(SEEDS)} simulated worlds"
    return Outcome(measured, draw=choices.fig7, note=note, table=mean)


def _table8(sources: Sources, paper: pd.DataFrame) -> Outcome:
    parts = []
    for _, seed, run in runs(sources, {"rubis": SCENARIOS["rubis"]}):
        asked, truth = trial(run_tables(run), scenario_of(run)), run.table("truth_service_types")
        types = asked.evidence.log.types
        predictor = published(asked.evidence.of_one())
        counts = ISOLATED_PER_S * asked.test.interval_s * np.eye(len(types))
        for platform in choices.PAIR:
            said = predictor(PLATFORMS[platform], counts, asked.test.interval_s).response_time_s
            actual = truth[truth["platform"] == platform].set_index("type")["response_time_s"].reindex(list(types))
            table = {"seed": seed, "platform": platform, "type": types, "predicted_s": said, "weight": asked.mix}
            parts.append(pd.DataFrame(table).assign(actual_s=actual.to_numpy()))
    every = pd.concat(parts, ignore_index=True)
    every["part"] = every["weight"] * every["actual_s"]
    top = every.groupby(["seed", "type"])["part"].mean().groupby("seed").nlargest(TOP_TYPES).droplevel(0).index
    chosen = every.set_index(["seed", "type"]).loc[top].reset_index().drop(columns=["weight", "part"])
    printed = crossplatform_printed.measure_table8(paper)
    measured = pd.concat([printed, choices.measure_table8(chosen)], ignore_index=True)
    note = "printed cells above; below, types of the first simulated world"
    return Outcome(measured, note=note, table=chosen[chosen["seed"] == SEEDS[0]].round(4))


PREDICTION: dict[str, Row] = {
    "crossplatform/table4": Row("errors of service time for RUBiS", RUBIS, partial(_errors_table, "rubis")),
    "crossplatform/table5": Row(
        "errors of service time for StockOnline", ALL[1:2], partial(_errors_table, "stockonline")
    ),
    "crossplatform/table6": Row("errors of service time for TPC-W", ALL[2:], partial(_errors_table, "tpcw")),
    "crossplatform/fig5": Row("errors of response time, in four directions between platforms", ALL, _fig5),
    "crossplatform/fig6": Row("a neural network, on new mixes and on a new platform", ALL, _fig6),
    "crossplatform/table7": Row("platforms ranked by response-time-bounded throughput per watt", RUBIS, _table7),
    "crossplatform/fig7": Row("wrong choices among five platforms", RUBIS, _fig7),
    "crossplatform/table8": Row("the better processor for each type of request", RUBIS, _table8),
}
"""Rows of the paper by id."""
