"""Rows of a service's traits (Stewart et al. 2008, sections 2 and 3): which runs each needs, what comes of them."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from analysis.crossplatform import mix
from analysis.crossplatform.evidence import ServiceLog
from analysis.crossplatform.split import halves
from analysis.figures.criteria import from_cells
from analysis.figures.crossplatform import crossplatform_printed, traits
from scenarios.crossplatform.trial import errors, log_of
from scenarios.files.schema import SERVICE, ServiceScenario
from scenarios.papers.evidence import Outcome, Row, Sources
from scenarios.runs.rundir import Run

SCENARIOS: Final[Mapping[str, str]] = {name: f"cross_{name}" for name in traits.APPLICATIONS}
"""The paper's applications, and the scenarios of the library that are like them."""
SEEDS: Final = tuple(range(1, 11))
"""Worlds that a row looks at; the first is the shipped scenario's own."""
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
FEW: Final = SEEDS[:3]
"""Worlds of the saturated column, whose runs serve millions of requests."""
LEVELS: Final = dict(zip(traits.METRICS, (None, 0, 1), strict=True))
"""What is regressed on the mix in Figure 4: instructions, or the misses of a level."""

Obtained = Iterator[tuple[str, int, Run]]
"""Application, seed and run."""


def scenario_of(run: Run) -> ServiceScenario:
    """Return the scenario that a run was made from."""
    return SERVICE.validate_json(json.dumps(run.manifest["resolved"]))


def runs(sources: Sources, applications: Mapping[str, str] = SCENARIOS, **overrides: object) -> Obtained:
    """Yield the runs of applications in the worlds of `SEEDS`.

    Parameters
    ----------
    sources : of the runs
    applications : name to scenario
    overrides : values of all of them
    """
    for application, name in applications.items():
        for seed in SEEDS:
            yield application, seed, sources.run(name, seed=seed, **overrides)


def logs(
    sources: Sources, platforms: tuple[str, ...], applications: Mapping[str, str] = SCENARIOS, **overrides: object
) -> Obtained:
    """Yield runs in which just these platforms serve, two at least, with a log of each."""
    asked = {"platforms": platforms, "measured": platforms, "analyses.crossplatform.from": None, **overrides}
    return runs(sources, applications, **asked)


def whole_log(run: Run, platform: str) -> ServiceLog:
    """Return the log of a platform that was measured."""
    return log_of({name: run.table(name) for name in ("service_counts", "service_log", "service_cpu")}, platform)


def _table1(sources: Sources, paper: pd.DataFrame) -> Outcome:
    run = sources.run(SCENARIOS["rubis"])
    log = whole_log(run, scenario_of(run).calibration)
    columns = {"start_s": log.start_s, **{name: log.counts[:, i] for i, name in enumerate(log.types[:2])}}
    columns |= {"instructions": log.instructions, "l1_misses": log.misses[:, 0], "l2_misses": log.misses[:, 1]}
    note = "below, three intervals of the simulated log, with the counts of two types of many"
    table = pd.DataFrame(columns).iloc[:3]
    return Outcome(from_cells(crossplatform_printed.measure_table1(paper)), note=note, table=table)


def _fig2(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    parts = []
    for _, _, run in runs(sources, {"rubis": SCENARIOS["rubis"]}):
        log = run.table("service_log")
        piii = log[log["platform"] == scenario_of(run).calibration]
        parts.append(traits.measure_fig2(run.table("service_counts"), piii))
    return Outcome(traits.over_worlds(parts), draw=traits.fig2, note=f"medians over {len(SEEDS)} worlds")


def _curves(sources: Sources) -> pd.DataFrame:
    made = [run.table("truth_miss_curve").assign(application=name, seed=seed) for name, seed, run in runs(sources)]
    return pd.concat(made, ignore_index=True)


def _fig3(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    return Outcome(traits.measure_fig3(_curves(sources)), draw=traits.fig3)


def _table2(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    return Outcome(traits.measure_table2(_curves(sources)))


def _regressed(log: ServiceLog, level: int | None) -> pd.DataFrame:
    """Return what a request-mix model of the first half says of the second, beside what was counted there."""
    train, test = halves(log)
    counted, later = (part.instructions if level is None else part.misses[:, level] for part in (train, test))
    return pd.DataFrame({"actual": later, "predicted": mix.fit(train.counts, counted).predict(test.counts)})


def _fig4(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    parts = []
    for _, seed, run in logs(sources, (SINGLE, XEON), {"rubis": SCENARIOS["rubis"]}):
        log = whole_log(run, SINGLE)
        parts += [_regressed(log, level).assign(metric=metric, seed=seed) for metric, level in LEVELS.items()]
    return Outcome(traits.measure_fig4(pd.concat(parts, ignore_index=True)), draw=traits.fig4)


def _table3(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    platforms = tuple(platform for platform, _ in CONDITIONS.values())
    found = [
        (application, condition, seed, *_off(whole_log(run, platform), level))
        for application, seed, run in logs(sources, platforms)
        for condition, (platform, level) in CONDITIONS.items()
    ]
    for application, name in SCENARIOS.items():
        load = {"load.requests_per_s": REQUESTS_PER_S[application], "load.volume": VOLUME}
        load["application.instructions_per_request"] = HEAVY
        for seed in FEW:
            asked = {"seed": seed, "platforms": (XEON, SINGLE), "measured": (XEON,), **load}
            run = sources.run(name, **asked, **{"analyses.crossplatform.from": None})
            found.append((application, traits.SATURATED, seed, *_off(whole_log(run, XEON), 0)))
    table = pd.DataFrame(found, columns=["application", "condition", "seed", "error", "full"])
    note = (
        f"{len(SEEDS)} worlds of each application, {len(FEW)} in the last column, whose load was set so that half "
        "of the intervals or so saturate"
    )
    return Outcome(traits.measure_table3(table), note=note)


def _off(log: ServiceLog, level: int) -> tuple[float, float]:
    """Return the median error of a request-mix model of misses, and the share of intervals with all processors busy."""
    made = _regressed(log, level)
    off = np.nanmedian(errors(made["predicted"].to_numpy(), made["actual"].to_numpy()))
    return float(off), float((log.utilisation >= traits.FULL).mean())


RUBIS: Final = (SCENARIOS["rubis"],)
ALL: Final = tuple(SCENARIOS.values())

TRAITS: dict[str, Row] = {
    "crossplatform/table1": Row("the form of the 15-cent log", RUBIS, _table1),
    "crossplatform/fig2": Row("a load and a mix that never settle, over ten hours", RUBIS, _fig2),
    "crossplatform/fig3": Row("cache misses over cache size are a power law", ALL, _fig3),
    "crossplatform/table2": Row("four models of misses over cache size", ALL, _table2),
    "crossplatform/fig4": Row("instructions and misses follow from the request mix", RUBIS, _fig4),
    "crossplatform/table3": Row("request mixes on parallel machines, and on saturated ones", ALL, _table3),
}
"""Rows of the paper by id."""
