"""Findings of the rows about the world come out false somewhere, too, by what is said to measure them.

There are four ways, from the strongest: a world on record in which the criterion is false; a small fleet or service
that is simulated otherwise, or another method, put through the row's own code (`SIMULATED`); a table made by hand, put
through that code (`MADE`); and, where neither is to be had in seconds, a number that was altered (`ALTERED`), which
shows only that the criterion has two sides. `ELSEWHERE` are those of the second and third kind that another test has.
"""

import json
import re
from dataclasses import asdict, replace
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtr

from analysis.figures.criteria import judge, numbers
from analysis.figures.world import services, variations
from docs.verdicts import RECORD
from scenarios.crossplatform.worlds import _judged as judged_services
from scenarios.effects.scorecard import card, guard_corpus
from scenarios.effects.scorecard.pieces import SIZES
from scenarios.files.loader import Override, load, settings
from scenarios.papers import calibration, epochs, rates, service_worlds, slots, world
from scenarios.papers import variations as fleets
from scenarios.papers.catalogue import ROWS
from scenarios.papers.rows import published
from scenarios.papers.sources import Sources
from scenarios.profiling import validate, watch_trial
from scenarios.profiling.watch_trial import WatchedIncident
from scenarios.runs.execution import obtain
from scenarios.views.terminal import dumps
from tests.scenarios.papers import test_rollouts as rollouts_by_hand
from tests.scenarios.papers import test_slots as slots_by_hand
from tests.scenarios.papers import test_world as by_hand

TESTS = Path(__file__).parents[2]
RUNS = TemporaryDirectory()
FINDINGS = {
    (row["id"], criterion["name"])
    for row in json.loads(RECORD.read_text("utf-8"))
    for criterion in row["criteria"]
    if criterion["kind"] == "finding" and row["id"].startswith("world/")
}
ON_RECORD = {
    (row["id"], criterion["name"])
    for row in json.loads(RECORD.read_text("utf-8"))
    for criterion in row["criteria"]
    if criterion["kind"] == "finding" and criterion["holds_in"] < len(criterion["values"])
}
SIMULATED, MADE = {}, {}
BEHAVIOUR = "population.behaviour."


def counter_world(table, row, *names):
    """Let a function of monkeypatch measure a row where these of its findings are absent."""

    def register(measure):
        table[row, measure.__name__] = (measure, set(names))
        return measure

    return register


def quiet(_what, _share):
    """Say nothing."""


def simulated(name, values):
    """Return a run of a scenario of the library with these values."""
    return obtain(loaded(name, values), Path(RUNS.name), False, quiet)


def loaded(name, values):
    """Return a scenario of the library with these values."""
    return load(name, [Override(path, dumps(value), "value") for path, value in values.items()])


def small(changed=None, scenarios=None):
    """Return sources of fleets of 80 machines, an hour or up to two days, with changes, or of another scenario."""

    def run(name, values, _tell):
        horizon_s = min(values.get("horizon_s", 86400.0), 2 * 86400.0) if name == "today" else 3600.0
        return simulated(
            (scenarios or {}).get(name, name), {**values, **by_hand.SMALL, "horizon_s": horizon_s, **(changed or {})}
        )

    return Sources(run, quiet)


@counter_world(
    SIMULATED,
    "world/ablation",
    *("slowdown_fall_without_llc", "slowdown_fall_without_bandwidth", "slowdown_fall_without_smt"),
    *("slowdown_rise_without_power_cap", "speed_rise_without_power_cap", "job_cv_fall_without_input_variance"),
    *("margin_fall_without_input_variance", "rack_variance_ratio_without_rack_effects", "moved_min"),
)
def switches_that_do_nothing_and_a_cap_that_is_lowered(monkeypatch):
    switches = {switch: {} for switch in fleets.SWITCHES} | {"power_cap": {"power.cap_share": 0.5}}
    monkeypatch.setattr(fleets, "SWITCHES", switches)
    return variations.measure_ablation(fleets.ablation(small(), fleets.Fleets((1,), 10, draws=5)))


@counter_world(SIMULATED, "world/dvfs-mechanism", "rank_stall_high", "gain_with_stall_high")
def processors_that_are_faster_for_every_job(_monkeypatch):
    return ROWS["world/dvfs-mechanism"].outcome(small(scenarios={"dvfs_policy": "cpu_upgrade"})).measured


@counter_world(
    SIMULATED,
    "world/epochs",
    *("largest_shift_in_tolerances", "median_shift_in_tolerances", "largest_shift_of_a_change"),
)
def events_that_know_neither_interference_nor_inputs(monkeypatch):
    """Both ways are epochs, so that it is what they simulate that differs."""
    whole = {"epoch_s": 1800.0}
    off = {f"interference.{what}": False for what in ("llc", "bandwidth", "smt")} | {BEHAVIOUR + "input_log_sd": 0.0}
    few = {"fleet.machines": 20, "fleet.machines_per_rack": 10, "fleet.racks_per_power_domain": 1}
    few |= {"population.jobs": 40, "population.common_jobs": 20, "population.heavyweights": 4, "horizon_s": 1800.0}
    monkeypatch.setattr(epochs, "SEEDS", (1,))
    monkeypatch.setattr(epochs, "SMALL", {**epochs.SMALL, **few})
    monkeypatch.setattr(epochs, "PATHS", {"300 s": whole, "10 s": whole, epochs.EVENTS: whole | off})
    return ROWS["world/epochs"].outcome(Sources(lambda name, values, _: simulated(name, values), quiet)).measured


WILD = {
    **{"core_cpi": 0.3, "core_cpi_log_sd": 0.05, "core_trait_sd": 5.0, "overlap_log_sd": 2.0, "input_log_sd": 0.8},
    **{"memory_accesses_per_instruction": 0.06, "memory_accesses_log_sd": 0.05, "working_set_log_sd": 2.5},
    **{"diurnal_amplitude": 0.9, "job_log_sd": 0.8, "wander_time_factor": 0.05},
}
"""Jobs that are all heavy on memory, whose inputs and load swing and soon forget."""
NOT_WILD = {
    *("quota_of_top_20pct", "instances_of_job_p50", "cpi_over_mai_slope", "small_cache_slowdown_p50"),
    *("slow_memory_slowdown_max", "job_series_autocorrelation_6h", "job_series_autocorrelation_24h"),
    *("job_cv_compute", "job_cv_network"),
}
"""Facts that are within their bounds there all the same, and those of services, which do not fit on 80 machines."""


@counter_world(SIMULATED, "world/calibration", *(set(by_hand.FACTS["series"]) - NOT_WILD))
def jobs_and_machines_as_none_are(monkeypatch):
    wild = {BEHAVIOUR + name: value for name, value in WILD.items()}
    wild |= {"conditions.slow_memory_share": 0.3, "conditions.machine_latency_log_sd": 0.4, "simulation": "epochs"}
    monkeypatch.setattr(calibration, "SEEDS", (1,))
    monkeypatch.setattr(calibration, "CELL_MACHINES", 80)
    monkeypatch.setattr(calibration, "INSTANCE_VCPU", (1.0, 0.1))
    monkeypatch.setattr(calibration, "_service_facts", lambda *_: numbers(job_cv_compute=0.0, job_cv_network=0.0))
    return ROWS["world/calibration"].outcome(small(wild)).measured


@cache
def profiled(*overrides):
    """Return a profiled fleet of sixteen machines and a day."""
    few = ("fleet.machines=16", "population.jobs=20", "population.common_jobs=12", "horizon_s=86400")
    day = ("feature.rollout.start_s=0", "profiling.compiler.until_s=86400", "profiling.kernel.waves=1")
    scenario = load("profiled_small", settings([*few, *day, *overrides]))
    return scenario, obtain(scenario, Path(RUNS.name), False, quiet)


@counter_world(SIMULATED, "world/profiles", "coverage", "naive_coverage", "cpi_coverage")
def a_collector_of_few_samples_that_are_hardly_alike(_monkeypatch):
    scenario, run = profiled("profiling.collector.samples_per_s=4")
    told = asdict(validate.summary([validate.judged(scenario, run.path, 0)]))
    return ROWS["world/profiles"].outcome(Sources(None, quiet, lambda *_: [told])).measured


@counter_world(SIMULATED, "world/affinity", "realised_over_promised", "realised")
def advice_that_takes_the_best_platform_of_a_job_for_its_worst(monkeypatch):
    _, run = profiled("profiling.collector.samples_per_s=4")
    table = world.table_of
    monkeypatch.setattr(world, "table_of", lambda database: table(database).assign(cpi=lambda rows: 1 / rows["cpi"]))
    return ROWS["world/affinity"].outcome(Sources(lambda *_: run, quiet)).measured


HALF_A_DAY = {"horizon_s": 18000.0}


def logs(monkeypatch, scenarios):
    """Return sources of one world of RUBiS for five hours."""
    monkeypatch.setattr(service_worlds, "SEEDS", (1,))
    monkeypatch.setattr(service_worlds, "SCENARIOS", {"rubis": "cross_rubis"})
    return Sources(lambda name, values, _: simulated(scenarios.get(name, name), values | HALF_A_DAY), quiet)


@counter_world(SIMULATED, "world/mix", "gain_nonstationary", "identified_nonstationary", "identified_stationary")
def loads_of_which_the_stationary_one_changes_and_the_other_does_not(monkeypatch):
    swapped = {"cross_rubis": "cross_stationary", "cross_stationary": "cross_rubis"}
    return ROWS["world/mix"].outcome(logs(monkeypatch, swapped)).measured


@counter_world(
    SIMULATED,
    "world/routing",
    *(f"{time}_over_{rival}" for time in ("mean", "p99") for rival in ("round_robin", "least_loaded")),
)
def requests_that_are_routed_in_turn_whatever_their_type(monkeypatch):
    table = service_worlds.routed(logs(monkeypatch, {}))
    rivals = {"weighted_round_robin": "round_robin", "weighted_least_loaded": "least_loaded"}
    return services.measure_routing(table, "round_robin", rivals)


def judged(scenario, **values):
    """Return how the methods did in one world of services."""
    methods = ("published", "shrunken", "benchmark", "calibrated", "testbed")
    asked = {"seed": 2, "horizon_s": 7200.0, "analyses.crossplatform.methods": methods, **values}
    return [dict(judged_services(loaded(scenario, asked), asked["seed"]))]


def predicted(**values):
    """Return what world/prediction measures if all worlds that it asks for are this one."""
    world_of_all = judged("cross_tpcw", **values)
    return ROWS["world/prediction"].outcome(Sources(None, quiet, lambda *_: world_of_all)).measured


APPLICATIONS = ("rubis", "stockonline", "tpcw")


@counter_world(
    SIMULATED,
    "world/prediction",
    *(f"{what}_{name}" for what in ("calibrated", "best", "best_doubled") for name in APPLICATIONS),
    *("beats_rivals", "coverage_min", "half_width", "wrong_best", "loss"),
)
def services_and_hardware_far_from_what_the_priors_expect(_monkeypatch):
    return predicted(**service_worlds.STRANGE)


@counter_world(SIMULATED, "world/prediction", "coverage_max")
def hardware_that_departs_twice_as_far_and_is_said_to(_monkeypatch):
    return predicted(**service_worlds.DOUBLED)


@counter_world(SIMULATED, "world/prediction-ablation", "nothing_left", "shares_found")
def caches_that_no_power_law_describes_and_nothing_to_switch_off(_monkeypatch):
    off = {f"mechanisms.{name}": False for name in service_worlds.SWITCHES}
    told = judged("cross_rubis", **off, **service_worlds.CLIFFS)
    return ROWS["world/prediction-ablation"].outcome(Sources(None, quiet, lambda *_: told)).measured


@cache
def day_of_two_platforms():
    """Return a day of 300 machines of two platforms, what was observed on it, and the true rates."""
    day = rates._day(replace(load("small"), seed=2), rates.STEEPNESS[""])
    return day, rates.observations(day, rates.nowhere(day)), rates._truth(day)


def estimated(monkeypatch, **ends):
    """Return what world/rates measures with the plain ratio as the fleet's rate, and these ends of jobs' intervals."""
    day, observed, truth = day_of_two_platforms()
    usual = rates.rates

    def plain(*question):
        of = usual(*question).rates
        ratio = of.fleet["naive"] / of.fleet["rate"]
        fleet = of.fleet.assign(rate=of.fleet["naive"], low=ratio * of.fleet["low"], high=ratio * of.fleet["high"])
        return SimpleNamespace(rates=SimpleNamespace(jobs=of.jobs.assign(**ends), fleet=fleet))

    for name, value in {"_day": day, "observations": observed, "_truth": truth}.items():
        monkeypatch.setattr(rates, name, lambda *_, value=value: value)
    monkeypatch.setattr(rates, "rates", plain)
    return ROWS["world/rates"].outcome(Sources(None, quiet)).measured


def of_both_schedulers(*names):
    return [prefix + name for prefix in rates.STEEPNESS for name in names]


@counter_world(
    SIMULATED, "world/rates", *of_both_schedulers("fleet", "fleet_held", "head", "coverage_min", "filled_min")
)
def a_plain_ratio_and_jobs_without_intervals(monkeypatch):
    return estimated(monkeypatch, low=lambda jobs: jobs["rate"], high=lambda jobs: jobs["rate"])


@counter_world(SIMULATED, "world/rates", *of_both_schedulers("coverage_max", "filled_max"))
def intervals_that_hold_whatever_is_true(monkeypatch):
    return estimated(monkeypatch, low=0.0, high=9.0)


def slots_of(monkeypatch, table):
    """Return what world/slots measures on two days that were made by hand."""
    monkeypatch.setattr(slots, "simulated", lambda *_: SimpleNamespace(table=table))
    monkeypatch.setattr(slots, "CUTS", 2)
    return ROWS["world/slots"].outcome(Sources(None, quiet)).measured


@counter_world(MADE, "world/slots", "points", "told_off", "warned")
def machines_whose_platform_does_not_matter(monkeypatch):
    return slots_of(monkeypatch, slots_by_hand.past(faster=0.005))


@counter_world(MADE, "world/slots", "as_cut", "adjusted")
def days_of_which_none_is_like_the_one_before(monkeypatch):
    table = slots_by_hand.past()
    return slots_of(
        monkeypatch, table.assign(value=lambda rows: rows["value"] * np.random.default_rng(3).normal(1, 0.3, len(rows)))
    )


@counter_world(MADE, "world/slots", "false_warnings")
def slots_that_are_drawn_and_not_cut(monkeypatch):
    def drawn(fleet, count, seed):
        return SimpleNamespace(slot=np.random.default_rng(seed).integers(count, size=len(fleet.names)))

    monkeypatch.setattr(slots, "cut", drawn)
    return slots_of(monkeypatch, slots_by_hand.past())


def guarded(monkeypatch, strengths=("weak", "middling", "strong"), **otherwise):
    """Return what world/guards measures on a small fleet with one fault and one healthy case, if something is else."""
    fault = guard_corpus.FAULTS["doubled rows"]
    known = dict(zip(guard_corpus.STRENGTHS, fault.strengths, strict=True))
    planted = replace(fault, strengths=tuple(known[strength] for strength in strengths))
    small = {"FAULTS": {fault.name: planted}, "HEALTHY": {"half": guard_corpus.HEALTHY["half"]}}
    for name, value in {**small, **otherwise}.items():
        monkeypatch.setattr(guard_corpus, name, value)
    study = guard_corpus.summary([guard_corpus.judged(guard_corpus.FRESH, machines=60, answers=4, audits=1)])
    monkeypatch.setattr(Sources, "trial", lambda *_, **__: study)
    return ROWS["world/guards"].outcome(Sources(None, quiet)).measured


@counter_world(SIMULATED, "world/guards", "missed")
def no_guard_at_all(monkeypatch):
    return guarded(monkeypatch, GUARDS={})


@counter_world(SIMULATED, "world/guards", "harmless")
def faults_that_are_called_strong_and_are_weak(monkeypatch):
    return guarded(monkeypatch, ("weak", "weak", "weak"))


@counter_world(SIMULATED, "world/guards", "false_alarms", "weak_alarms")
def a_guard_that_always_warns(monkeypatch):
    warning = SimpleNamespace(findings=[SimpleNamespace(severity="warning", code="churn")])
    return guarded(monkeypatch, examine=lambda *_, **__: warning)


def carded(monkeypatch, told=lambda *_: 1.0, spread=lambda *_: 1.0):
    """Return what world/scorecard measures of estimates that are normal, four corners and four designs.

    Parameters
    ----------
    told : of an estimator and a corner, the standard error over the true one
    spread : of these, how many times as wide estimates scatter as usual
    """
    usual = {"adjusted": 0.02, "cuped": 0.035, "paired": 0.02}

    def scores(corner):
        for design, name, machines in product(("day", "week", "crossover", "paired"), usual, SIZES):
            if name == "paired" and design != "paired":
                continue
            sd = usual[name] * spread(name, corner) / machines**0.5 * (0.7 if design == "crossover" else 1.0)
            error = told(name, corner) * sd
            held, seen = 2 * ndtr(1.96 * error / sd) - 1, ndtr(0.01 / sd - 1.96 * error / sd)
            told_of = {"design": design, "machines": machines, "estimator": name, "draws": 9999, "answered": 9999}
            counts = {"covered": round(9999 * held), "detected": round(9999 * seen)}
            yield told_of | counts | {"bias": 0.0, "sd": sd, "error": error, "margin": 1.96 * error}

    corners = ("base", "fine", "autocorrelation_80", "autocorrelation_50")
    pieces = [
        {"corner": corner, "seed": seed, "machines": 1000, "truths": {}, "rows": list(scores(corner))}
        for corner, seed in product(corners, (1, 2, 3))
    ]
    study = {**card.summary(pieces).records(), "fleets": len(pieces), "digest": "ab"}
    monkeypatch.setattr(Sources, "trial", lambda *_, **__: study)
    return ROWS["world/scorecard"].outcome(Sources(None, quiet)).measured


def test_errors_that_are_right_fail_no_finding_of_the_scorecard_but_the_number_of_corners(monkeypatch):
    checks = judge(carded(monkeypatch), published("world/scorecard"))
    assert [check.name for check in checks if not check.holds] == ["corners"]


@counter_world(MADE, "world/scorecard", "coverage_min", "crossover_coverage_min", "designs_coverage_min")
def errors_half_as_large_as_they_are(monkeypatch):
    return carded(monkeypatch, told=lambda *_: 0.5)


@counter_world(MADE, "world/scorecard", "coverage_max", "crossover_coverage_max")
def errors_twice_as_large_as_they_are(monkeypatch):
    return carded(monkeypatch, told=lambda *_: 2.0)


@counter_world(
    MADE, "world/scorecard", "day", "week", "crossover_80", "crossover_50", "against_cuped", "against_cuped_worst"
)
def an_estimator_that_scatters_twice_as_much(monkeypatch):
    return carded(monkeypatch, spread=lambda name, _: 2.0 if name == "adjusted" else 1.0)


@counter_world(MADE, "world/scorecard", "fine_coverage", "fine_n95")
def epochs_of_five_minutes_in_which_estimates_scatter_more_than_they_say(monkeypatch):
    told, spread = {"fine": 0.8}, {"fine": 2.0}
    return carded(monkeypatch, lambda _, corner: told.get(corner, 1.0), lambda _, corner: spread.get(corner, 1.0))


@counter_world(MADE, "world/watch", "power", "right", "quiet")
def a_watch_that_names_half_of_the_functions_another_cause_and_healthy_ones_too(monkeypatch):
    found = WatchedIncident(0, 0, "revision", "r1", "web", "f", 1.5, 0.01, 1.5, 1.2, True, "platform=a", False, 0)
    study = asdict(watch_trial.summary([found, replace(found, detected=False, blamed="")], [1, 0]))
    monkeypatch.setattr(Sources, "trial", lambda *_, **__: study)
    return ROWS["world/watch"].outcome(Sources(None, quiet)).measured


for name, sweep in {
    "correlation_rise_low": {"correlation": -5.0, "loss": -0.3},
    "coverage_drop_low": {"loss": 0.0},
    "rank_correlation": {"loss": 0.0},
    "coverage_without_high": {"without": 0.85},
    "widened_gain_low": {"widening": -0.01},
}.items():
    MADE["world/covariance", name] = (
        lambda _monkeypatch, sweep=sweep: variations.measure_covariance(by_hand.swept(**sweep)),
        {name},
    )


@counter_world(MADE, "world/rollouts", "far_end_machines_dvfs")
def clusters_whose_neighbours_matter(_monkeypatch):
    return rollouts_by_hand.rollouts(machines_dvfs={"difference": 0.003})


ELSEWHERE = {
    "world/packing": TESTS / "scenarios/papers/test_rollouts.py",
    "world/planner": TESTS / "scenarios/effects/test_design_trial.py",
    "world/regressions": TESTS / "scenarios/profiling/test_regressions.py",
    "world/rollouts": TESTS / "scenarios/papers/test_rollouts.py",
}
"""Rows whose code another test puts to a world of its own, or to a table; it says there which findings fail."""
ALTERED = {("world/calibration", fact) for fact in NOT_WILD}
"""Findings with no such world. `test_a_world_that_differs_in_one_fact_fails_in_this_one` alters each fact by itself."""


@pytest.mark.parametrize("of", SIMULATED | MADE, ids=" ".join)
def test_a_finding_about_the_world_comes_out_false_where_it_is_absent(of, monkeypatch):
    measure, names = (SIMULATED | MADE)[of]
    failing = {check.name for check in judge(measure(monkeypatch), published(of[0])) if not check.holds}
    assert names <= failing, sorted(names - failing)


def test_every_finding_about_the_world_has_a_world_without_it():
    here = {(row, name) for (row, _), (_, names) in (SIMULATED | MADE).items() for name in names}
    words = {row: set(re.findall(r"[\w/-]+", file.read_text("utf-8"))) for row, file in ELSEWHERE.items()}
    assert all(row in words[row] for row in ELSEWHERE)
    there = {(row, name) for row, name in FINDINGS if name in words.get(row, ())}
    assert FINDINGS - here - there - ON_RECORD - ALTERED == set()
    assert here <= FINDINGS
    assert FINDINGS - here - there >= ALTERED
