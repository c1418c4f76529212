"""The rows of cross-platform prediction (Stewart et al. 2008): printed numbers, and what simulated worlds show."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from analysis.crossplatform import mix
from analysis.crossplatform.choice import compare, rated_power_w
from analysis.crossplatform.evidence import Evidence, PredictionMethod, Predictor, ServiceLog
from analysis.crossplatform.learners import network
from analysis.crossplatform.methods import METHODS
from analysis.crossplatform.published import published
from analysis.crossplatform.split import halves
from analysis.figures.criteria import from_cells
from analysis.figures.crossplatform import choices, crossplatform_printed, prediction, traits
from models.arrays import Floats
from models.platforms import Platform
from scenarios.crossplatform.trial import actual_throughput, errors, log_of, trial
from scenarios.files.schema import SERVICE, ServiceScenario
from scenarios.papers.rows import COSTLY, ONE, MeasuredRow, Reproduction, Row, RunRow
from scenarios.papers.sources import Sources
from scenarios.runs.rundir import Run

SCENARIOS: Final[Mapping[str, str]] = {name: f"cross_{name}" for name in traits.APPLICATIONS}
"""The paper's applications, and the scenarios of the library that are like them."""
XEON: Final = "xeon_2h_2c_2p"
SINGLE: Final = "xeon_1h_1c_1p"
"""The single-processor Pentium D of Figure 4."""
CONDITIONS: Final[Mapping[str, tuple[str, int]]] = {
    "smp_l1": ("xeon_1h_1c_2p", 0),
    "dual_core_l2": ("xeon_1h_2c_1p", 1),
    "hyperthreading_l1": ("xeon_2h_1c_1p", 0),
}
"""Provisioned columns of Table 3: platform and cache level."""
REQUESTS_PER_S: Final[Mapping[str, float]] = {"rubis": 23.0, "stockonline": 30.0, "tpcw": 26.5}
"""Load of the saturated column at volume 1: at volume 3, as in the paper, about half of the intervals have all
processors of `XEON` busy. Other columns have the scenario's own load."""
VOLUME: Final = 3.0
HEAVY: Final = 2.4e7
"""Instructions of a request there: the same work in a third as many requests, so that runs stay short."""
LEVELS: Final = dict(zip(traits.METRICS, (None, 0, 1), strict=True))
"""What is regressed on the mix in Figure 4: instructions, or the misses of a level."""
ISOLATED_PER_S: Final = 10.0
"""Rate of the one type of requests in Table 8."""
SHORT: Final[Mapping[str, str]] = {"piii": "piii", "pres": "pres", "xeon": XEON}
"""How Figure 5 calls platforms."""
RUBIS: Final = (SCENARIOS["rubis"],)
ALL: Final = tuple(SCENARIOS.values())
_RUBIS: Final[Mapping[str, str]] = {"rubis": SCENARIOS["rubis"]}

Obtained = Iterator[tuple[str, int, Run]]
"""Application, seed and run."""


def scenario_of(run: Run) -> ServiceScenario:
    """Return the scenario that a run was made from."""
    return run.world(SERVICE)


def runs(sources: Sources, applications: Mapping[str, str] = SCENARIOS, **overrides: object) -> Obtained:
    """Yield the runs of applications (name to scenario) in the world of the sources."""
    for application, name in applications.items():
        yield application, sources.world, sources.run(name, **overrides)


def logs(
    sources: Sources, platforms: tuple[str, ...], applications: Mapping[str, str] = SCENARIOS, **overrides: object
) -> Obtained:
    """Yield runs in which just these platforms serve, two at least, with a log of each."""
    values = {"platforms": platforms, "measured": platforms, "analyses.crossplatform.from": None, **overrides}
    return runs(sources, applications, **values)


def whole_log(run: Run, platform: str) -> ServiceLog:
    """Return the log of a platform that was measured."""
    return log_of({name: run.table(name) for name in ("service_counts", "service_log", "service_cpu")}, platform)


def run_tables(run: Run) -> dict[str, pd.DataFrame]:
    """Return the tables of a run that a trial is made of."""
    names = ("service_counts", "service_log", "service_cpu", "benchmarks", "truth_service", "truth_throughput")
    return {name: run.table(name) for name in names}


def _table1(run: Run, paper: pd.DataFrame) -> Reproduction:
    log = whole_log(run, scenario_of(run).calibration)
    columns = {"start_s": log.start_s, **{name: log.counts[:, i] for i, name in enumerate(log.types[:2])}}
    columns |= {"instructions": log.instructions, "l1_misses": log.misses[:, 0], "l2_misses": log.misses[:, 1]}
    table = pd.DataFrame(columns).iloc[:3]
    return Reproduction(from_cells(crossplatform_printed.measure_table1(paper)), table=table)


def _fig2(sources: Sources) -> pd.DataFrame:
    parts = []
    for _, _, run in runs(sources, _RUBIS):
        log = run.table("service_log")
        origin = log[log["platform"] == scenario_of(run).calibration]
        parts.append(traits.measure_fig2(run.table("service_counts"), origin))
    return traits.over_worlds(parts)


def _curves(sources: Sources) -> pd.DataFrame:
    """Return misses over cache size of every world."""
    parts = [run.table("truth_miss_curve").assign(application=name, seed=seed) for name, seed, run in runs(sources)]
    return pd.concat(parts, ignore_index=True)


def _fig3(sources: Sources) -> pd.DataFrame:
    return traits.measure_fig3(_curves(sources))


def _table2(sources: Sources) -> pd.DataFrame:
    return traits.measure_table2(_curves(sources))


def _regressed(log: ServiceLog, level: int | None) -> pd.DataFrame:
    """Return what a request-mix model of the first half says of the second, beside what was counted there."""
    train, test = halves(log)
    counted, later = (part.instructions if level is None else part.misses[:, level] for part in (train, test))
    return pd.DataFrame({"actual": later, "predicted": mix.fit(train.counts, counted).predict(test.counts)})


def _fig4(sources: Sources) -> pd.DataFrame:
    """Measure instructions and misses of RUBiS as the mix says them, and as they were counted."""
    parts = []
    for _, seed, run in logs(sources, (SINGLE, XEON), _RUBIS):
        log = whole_log(run, SINGLE)
        parts += [_regressed(log, level).assign(metric=metric, seed=seed) for metric, level in LEVELS.items()]
    return traits.measure_fig4(pd.concat(parts, ignore_index=True))


def _table3(sources: Sources) -> pd.DataFrame:
    """Measure errors of request-mix models of misses on parallel machines, and on saturated ones."""
    platforms = tuple(platform for platform, _ in CONDITIONS.values())
    rows = [
        (application, condition, seed, *_off(whole_log(run, platform), level))
        for application, seed, run in logs(sources, platforms)
        for condition, (platform, level) in CONDITIONS.items()
    ]
    for application, name in SCENARIOS.items():
        load = {"load.requests_per_s": REQUESTS_PER_S[application], "load.volume": VOLUME}
        load["application.instructions_per_request"] = HEAVY
        values = {"platforms": (XEON, SINGLE), "measured": (XEON,), **load}
        run = sources.run(name, **values, **{"analyses.crossplatform.from": None})
        rows.append((application, traits.SATURATED, sources.world, *_off(whole_log(run, XEON), 0)))
    return traits.measure_table3(pd.DataFrame(rows, columns=["application", "condition", "seed", "error", "full"]))


def _off(log: ServiceLog, level: int) -> tuple[float, float]:
    """Return the median error of a request-mix model of misses, and the share of intervals with all processors busy."""
    both = _regressed(log, level)
    off = np.nanmedian(errors(both["predicted"].to_numpy(), both["actual"].to_numpy()))
    return float(off), float((log.utilisation >= traits.FULL).mean())


def _errors_table(application: str, sources: Sources, paper: pd.DataFrame) -> Reproduction:
    """Return the errors of service time of one application, as in Tables 4 to 6."""
    worlds = sources.worlds(SCENARIOS[application], 1, **{**sources.changed, "seed": sources.world})
    rows = pd.DataFrame([{"seed": world["seed"], **row} for world in worlds for row in world["methods"]])
    if application == "tpcw":  # a benchmark cannot be the service that it is to predict
        rows = rows[rows["method"] != "benchmark"]
    printed = from_cells(crossplatform_printed.measure_table4(paper))
    measured = pd.concat([prediction.measure_errors(rows), printed], ignore_index=True)
    note = "below, the table of one simulated world, with the two methods beyond the paper"
    return Reproduction(measured, note=note, table=prediction.layout(rows))


def _three_platforms(sources: Sources) -> Obtained:
    """Return runs on the paper's three platforms."""
    return logs(sources, tuple(SHORT.values()))


def _fig5(sources: Sources) -> Reproduction:
    errors_of, means = _directions(_three_platforms(sources))
    return Reproduction(prediction.measure_fig5(errors_of, means), table=prediction.by_direction(errors_of).round(4))


def _directions(worlds: Obtained) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the errors of the methods in four directions between platforms, and RUBiS's mean response times."""
    parts, means = [], []
    for application, seed, run in worlds:
        sheets = scenario_of(run).world.sheets
        parted = {short: halves(whole_log(run, name)) for short, name in SHORT.items()}
        for origin, target in prediction.DIRECTIONS:
            evidence = _evidence(run, {SHORT[origin]: parted[origin][0]})
            for method in _of_the_paper(application):
                off = _response_errors(method.fit(evidence), sheets[SHORT[target]], parted[target][1])
                named = {"application": application, "direction": f"{origin}_to_{target}", "method": method.name}
                parts.append(pd.DataFrame({**named, "seed": seed, "error": off}).dropna())
        if application == "rubis":
            truth = run.table("truth_service")
            means += [{"platform": short, "response_time_s": _mean_response(truth, n)} for short, n in SHORT.items()]
    return pd.concat(parts, ignore_index=True), pd.DataFrame(means)


def _of_the_paper(application: str) -> list[PredictionMethod]:
    """Return the methods of Tables 4 to 6; a benchmark cannot be the service that it is to predict."""
    left_out = "benchmark" if application == "tpcw" else ""
    return [method for method in METHODS if method.name in prediction.COLUMNS and method.name != left_out]


def _evidence(run: Run, logs: Mapping[str, ServiceLog]) -> Evidence:
    return Evidence(next(iter(logs)), logs, scenario_of(run).world.sheets, run.table("benchmarks"))


def _response_errors(predictor: Predictor, platform: Platform, test: ServiceLog) -> Floats:
    predicted = predictor(platform, test.counts, test.interval_s)
    return errors(predicted.response_time_s, test.response_time_s)


def _mean_response(truth: pd.DataFrame, platform: str) -> float:
    rows = truth[(truth["platform"] == platform) & (truth["requests"] > 0)]
    return float(np.average(rows["response_time_s"], weights=rows["requests"]))


def _fig6(sources: Sources) -> pd.DataFrame:
    return prediction.measure_fig6(_situations(_three_platforms(sources)))


def _situations(worlds: Obtained) -> pd.DataFrame:
    """Return median errors of the network and of the published method on new mixes and on a new platform."""
    rows = []
    for application, seed, run in worlds:
        sheets = scenario_of(run).world.sheets
        parted = {name: halves(whole_log(run, name)) for name in SHORT.values()}
        learnt = network(_evidence(run, {name: parted[name][0] for name in ("piii", "pres")}))
        for situation, origin, target in (("workload", "pres", "pres"), ("platform", "piii", XEON)):
            ours = published(_evidence(run, {origin: parted[origin][0]}))
            judged = sheets[target], parted[target][1]
            both = [np.nanmedian(_response_errors(method, *judged)) for method in (learnt, ours)]
            rows.append((application, seed, situation, *both))
    return pd.DataFrame(rows, columns=["application", "seed", "situation", "network", "ours"])


def _worth(sources: Sources) -> pd.DataFrame:
    """Return throughput per watt of every target of RUBiS: what it really is, and what methods say."""
    parts = []
    for _, seed, run in runs(sources, _RUBIS):
        tables, scenario = run_tables(run), scenario_of(run)
        judged, actual = trial(tables, scenario), actual_throughput(tables, scenario)
        targets = {name: scenario.world.sheets[name] for name in actual}
        watts = {name: rated_power_w(platform) for name, platform in targets.items()}
        parts.append(
            _by_platform(seed, crossplatform_printed.ACTUAL, {name: actual[name] / watts[name] for name in targets})
        )
        for method in METHODS:
            if method.name not in (*choices.PAPERS, *prediction.BEYOND):
                continue
            table = compare(judged.fit(method), targets, judged.mix, scenario.analyses.crossplatform.bound_s)
            worth = table.set_index("platform")["throughput_per_watt"].to_dict()
            parts.append(_by_platform(seed, method.name, {str(name): value for name, value in worth.items()}))
    return pd.concat(parts, ignore_index=True)


def _by_platform(seed: int, method: str, worth: Mapping[str, float]) -> pd.DataFrame:
    names = {"seed": seed, "method": method, "platform": list(worth)}
    return pd.DataFrame({**names, "throughput_per_watt": list(worth.values())})


def _table7(sources: Sources, paper: pd.DataFrame) -> Reproduction:
    worth = _worth(sources)
    printed = from_cells(crossplatform_printed.measure_table7(paper))
    measured = pd.concat([choices.measure_table7(worth), printed], ignore_index=True)
    return Reproduction(measured, table=choices.ranking(worth))


def _fig7(sources: Sources, paper: pd.DataFrame) -> Reproduction:
    decisions = choices.wrong(_worth(sources))
    printed = from_cells(crossplatform_printed.measure_fig7(paper))
    measured = pd.concat([choices.measure_fig7(decisions), printed], ignore_index=True)
    return Reproduction(measured, table=decisions.drop(columns="seed").round(4))


def _table8(sources: Sources, paper: pd.DataFrame) -> Reproduction:
    parts = []
    for _, seed, run in runs(sources, _RUBIS):
        scenario, truth = scenario_of(run), run.table("truth_service_types")
        judged, sheets = trial(run_tables(run), scenario), scenario.world.sheets
        types = judged.evidence.log.types
        predictor = published(judged.evidence.of_one())
        counts = ISOLATED_PER_S * judged.test.interval_s * np.eye(len(types))
        for platform in choices.PAIR:
            predicted_s = predictor(sheets[platform], counts, judged.test.interval_s).response_time_s
            actual = truth[truth["platform"] == platform].set_index("type")["response_time_s"].reindex(list(types))
            table = {"seed": seed, "platform": platform, "type": types, "predicted_s": predicted_s}
            parts.append(pd.DataFrame(table | {"weight": judged.mix}).assign(actual_s=actual.to_numpy()))
    responses = pd.concat(parts, ignore_index=True)
    responses["part"] = responses["weight"] * responses["actual_s"]
    by_type = responses.groupby(["seed", "type"])["part"].mean()
    top = by_type.groupby("seed").nlargest(choices.TYPES).droplevel(0).index
    chosen = responses.set_index(["seed", "type"]).loc[top].reset_index().drop(columns=["weight", "part"])
    printed = from_cells(crossplatform_printed.measure_table8(paper))
    measured = pd.concat([choices.measure_table8(chosen), printed], ignore_index=True)
    return Reproduction(measured, table=chosen.round(4))


ROWS: tuple[Row, ...] = (
    RunRow(
        "crossplatform/table1",
        "the form of the log: counts of requests by type, and counters",
        RUBIS,
        _table1,
        note="below, three intervals of the simulated log, with the counts of two types of many",
        printed=True,
        on=ONE,
    ),
    MeasuredRow(
        "crossplatform/fig2",
        "a load and a mix that never settle, over ten hours",
        RUBIS,
        _fig2,
        traits.fig2,
    ),
    MeasuredRow(
        "crossplatform/fig3",
        "cache misses over cache size are a power law",
        ALL,
        _fig3,
        traits.fig3,
    ),
    MeasuredRow("crossplatform/table2", "four models of misses over cache size", ALL, _table2),
    MeasuredRow(
        "crossplatform/fig4",
        "instructions and misses follow from the request mix",
        RUBIS,
        _fig4,
        traits.fig4,
    ),
    MeasuredRow(
        "crossplatform/table3",
        "request mixes on parallel machines, and on saturated ones",
        ALL,
        _table3,
        note="the load of the last column was set so that half of the intervals or so saturate",
        on=COSTLY,
    ),
    MeasuredRow(
        "crossplatform/table4",
        "errors of service time for RUBiS",
        RUBIS,
        partial(_errors_table, "rubis"),
        prediction.draw_table,
        printed=True,
    ),
    MeasuredRow(
        "crossplatform/table5",
        "errors of service time for StockOnline",
        ALL[1:2],
        partial(_errors_table, "stockonline"),
        prediction.draw_table,
        printed=True,
    ),
    MeasuredRow(
        "crossplatform/table6",
        "errors of service time for TPC-W",
        ALL[2:],
        partial(_errors_table, "tpcw"),
        prediction.draw_table,
        printed=True,
    ),
    MeasuredRow(
        "crossplatform/fig5",
        "errors of response time, in four directions between platforms",
        ALL,
        _fig5,
        prediction.fig5,
        "below, median errors over the later half's mixes of the published method and of its rivals of Tables 4 to 6, "
        "by the same protocol",
    ),
    MeasuredRow(
        "crossplatform/fig6",
        "a neural network, on new mixes and on a new platform",
        ALL,
        _fig6,
        prediction.fig6,
    ),
    MeasuredRow(
        "crossplatform/table7",
        "platforms ranked by response-time-bounded throughput per watt",
        RUBIS,
        _table7,
        note="below, the ranks of one simulated world, of `testbed` too",
        printed=True,
    ),
    MeasuredRow(
        "crossplatform/fig7",
        "wrong choices among five platforms",
        RUBIS,
        _fig7,
        choices.fig7,
        "below, shares of wrong decisions and mean loss of throughput per watt in one simulated world",
        printed=True,
        pools=choices.pool_fig7,
    ),
    MeasuredRow(
        "crossplatform/table8",
        "the better processor for each type of request",
        RUBIS,
        _table8,
        note="below, types of one simulated world",
        printed=True,
        pools=choices.pool_table8,
    ),
)
"""Every figure and table of the paper that shows numbers."""
