"""Rows of predictions and choices (Stewart et al. 2008, sections 4 and 5): printed numbers, and simulated worlds."""

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.crossplatform.choice import compare, rated_power_w
from analysis.crossplatform.evidence import Evidence, Method, Predictor, ServiceLog
from analysis.crossplatform.learners import network
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.published import published
from analysis.crossplatform.split import halves
from analysis.figures.criteria import from_cells, number, numbers
from analysis.figures.crossplatform import choices, crossplatform_printed, prediction
from models.arrays import Floats
from models.platforms import PLATFORMS
from scenarios.crossplatform.judged_world import actual_throughput
from scenarios.crossplatform.trial import errors, trial
from scenarios.papers.crossplatform_traits import (
    ALL,
    FEW,
    RUBIS,
    SCENARIOS,
    SEEDS,
    XEON,
    Obtained,
    logs,
    runs,
    scenario_of,
    whole_log,
)
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.runs.rundir import Run

ISOLATED_PER_S: Final = 10.0
"""Rate of the one type of requests in Table 8."""
UNTHREADED: Final = tuple(name for name, platform in PLATFORMS.items() if platform.threads_per_core == 1)
"""Platforms whose logical processors are cores: what counting hardware threads as processors does is not in them."""
SHORT_TIERS: Final = {"application.other_tiers_s": 0.005}
"""RUBiS with web server and database that take a tenth of what they take in the shipped worlds."""
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
    printed = from_cells(crossplatform_printed.measure_table4(paper))
    measured = pd.concat([prediction.measure_errors(made), printed], ignore_index=True)
    note = (
        f"measured is what {len(SEEDS)} simulated worlds show, errors of a platform being medians over worlds; their "
        "table is below, with the two methods beyond the paper"
    )
    layout = prediction.layout(made)
    drawn = [name for name in layout.columns if name != "target"]
    draw = partial(_draw_errors, layout, drawn)
    return Outcome(measured, draw=draw, note=note, table=layout)


def _draw_errors(layout: pd.DataFrame, drawn: list[str], _measured: pd.DataFrame, _paper: pd.DataFrame) -> Figure:
    return prediction.draw_errors(layout, drawn)


def _fig5(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    errors_of, means = _directions(_three(sources))
    beside = prediction.measure_fig5(*_directions(_short_tiers(sources)))
    names = ("piii_over_pres", "below_cycles")
    changed = numbers(**{f"{name}_short_tiers": number(beside, name) for name in names})
    measured = pd.concat([prediction.measure_fig5(errors_of, means), changed], ignore_index=True)
    note = (
        f"below, median errors over the later half's mixes, medians over {len(SEEDS)} worlds, of the published method "
        "and of its rivals of Tables 4 to 6 by the same protocol"
    )
    return Outcome(measured, draw=prediction.fig5, note=note, table=prediction.by_direction(errors_of).round(4))


def _directions(worlds: Obtained) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the errors of the methods in four directions between platforms, and RUBiS's mean response times."""
    parts, means = [], []
    for application, seed, run in worlds:
        parted = {short: halves(whole_log(run, name)) for short, name in SHORT.items()}
        for origin, target in prediction.DIRECTIONS:
            evidence = _evidence(run, {SHORT[origin]: parted[origin][0]})
            for method in _of_the_paper(application):
                off = _response_errors(method.fit(evidence), SHORT[target], parted[target][1])
                named = {"application": application, "direction": f"{origin}_to_{target}", "method": method.name}
                parts.append(pd.DataFrame({**named, "seed": seed, "error": off}).dropna())
        if application == "rubis":
            truth = run.table("truth_service")
            means += [{"platform": short, "response_time_s": _mean_response(truth, n)} for short, n in SHORT.items()]
    return pd.concat(parts, ignore_index=True), pd.DataFrame(means)


def _of_the_paper(application: str) -> list[Method]:
    """Return the methods of Tables 4 to 6; a benchmark cannot be the service that it is to predict."""
    left_out = "benchmark" if application == "tpcw" else ""
    return [method for method in METHODS if method.name in prediction.COLUMNS and method.name != left_out]


def _three(sources: Sources) -> Obtained:
    return logs(sources, tuple(SHORT.values()))


def _short_tiers(sources: Sources) -> Obtained:
    """Return the same of RUBiS in a few worlds, with other tiers that take a tenth."""
    worlds = logs(sources, tuple(SHORT.values()), {"rubis": SCENARIOS["rubis"]}, **SHORT_TIERS)
    return islice(worlds, len(FEW))


def _evidence(run: Run, logs: Mapping[str, ServiceLog]) -> Evidence:
    return Evidence(next(iter(logs)), logs, PLATFORMS, run.table("benchmarks"))


def _response_errors(predictor: Predictor, platform: str, test: ServiceLog) -> Floats:
    said = predictor(PLATFORMS[platform], test.counts, test.interval_s)
    return errors(said.response_time_s, test.response_time_s)


def _mean_response(truth: pd.DataFrame, platform: str) -> float:
    of = truth[(truth["platform"] == platform) & (truth["requests"] > 0)]
    return float(np.average(of["response_time_s"], weights=of["requests"]))


def _fig6(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    measured = prediction.measure_fig6(_situations(_three(sources)))
    beside = prediction.measure_fig6(_situations(_short_tiers(sources)))
    changed = numbers(platform_ratio_short_tiers=number(beside, "platform_ratio"))
    return Outcome(pd.concat([measured, changed], ignore_index=True), draw=prediction.fig6)


def _situations(worlds: Obtained) -> pd.DataFrame:
    """Return median errors of the network and of the published method on new mixes and on a new platform."""
    found = []
    for application, seed, run in worlds:
        parted = {name: halves(whole_log(run, name)) for name in SHORT.values()}
        learnt = network(_evidence(run, {name: parted[name][0] for name in ("piii", "pres")}))
        for situation, origin, target in (("workload", "pres", "pres"), ("platform", "piii", XEON)):
            ours = published(_evidence(run, {origin: parted[origin][0]}))
            both = [np.nanmedian(_response_errors(one, target, parted[target][1])) for one in (learnt, ours)]
            found.append((application, seed, situation, *both))
    return pd.DataFrame(found, columns=["application", "seed", "situation", "network", "ours"])


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
    printed = from_cells(crossplatform_printed.measure_table7(paper))
    alone = choices.measure_table7(worth[worth["platform"].isin(UNTHREADED)])
    measured = pd.concat([choices.measure_table7(worth), _without_threads(alone), printed], ignore_index=True)
    note = f"measured are medians over {len(SEEDS)} simulated worlds; below, the ranks of the shipped simulated world"
    return Outcome(measured, note=note, table=choices.ranking(worth))


def _without_threads(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the judged numbers under names that say that they are of the platforms without hardware threads."""
    judged = measured[measured["series"].str.startswith("simulated_")]
    return judged.assign(series=judged["series"] + "_unthreaded")


def _fig7(sources: Sources, paper: pd.DataFrame) -> Outcome:
    worth = _worth(sources)
    decisions = choices.wrong(worth)
    alone = choices.measure_fig7(choices.wrong(worth[worth["platform"].isin(UNTHREADED)]))
    printed = from_cells(crossplatform_printed.measure_fig7(paper))
    measured = pd.concat([choices.measure_fig7(decisions), _without_threads(alone), printed], ignore_index=True)
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
    top = every.groupby(["seed", "type"])["part"].mean().groupby("seed").nlargest(choices.TYPES).droplevel(0).index
    chosen = every.set_index(["seed", "type"]).loc[top].reset_index().drop(columns=["weight", "part"])
    printed = from_cells(crossplatform_printed.measure_table8(paper))
    measured = pd.concat([choices.measure_table8(chosen), printed], ignore_index=True)
    note = f"measured in {len(SEEDS)} simulated worlds; below, types of the first"
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
