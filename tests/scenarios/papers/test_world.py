"""The rows about the world: a criterion is false in a world that lacks its finding, and the runs give what it needs."""

import math
from functools import cache
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from analysis.figures.criteria import BOUNDS, Criterion, judge, number, numbers, printed, rows
from analysis.figures.world import calibration, mechanism
from analysis.figures.world import variations as figures
from analysis.figures.world.mechanism import measure_mechanism
from scenarios.files.loader import Override, load
from scenarios.papers import calibration as facts
from scenarios.papers import variations, world
from scenarios.papers.catalogue import ROWS, chosen
from scenarios.papers.judged import JudgedRow
from scenarios.papers.reproduce import Reproduced
from scenarios.papers.rows import published
from scenarios.papers.sources import Sources, no_worlds
from scenarios.papers.variations import Fleets
from scenarios.runs.execution import obtain
from scenarios.views.terminal import dumps, show

printed_of = cache(published)
CALIBRATION = printed_of("world/calibration")
FACTS = printed(CALIBRATION)


def failing(row, measured):
    return {check.name for check in judge(measured, printed_of(row)) if not check.holds}


def test_every_row_about_the_world_is_reproduced_and_has_a_short_name():
    assert {row.id for row in world.ROWS} <= set(ROWS)
    assert chosen("calibration") == ["world/calibration"]
    assert chosen("dvfs-mechanism") == ["world/dvfs-mechanism"]
    assert {row.id for row in world.ROWS} <= set(chosen("world"))


@pytest.mark.parametrize("row", [row.id for row in world.ROWS])
def test_every_criterion_has_a_reason_and_a_bound(row):
    table = published(row)
    bounds = table[table["series"].str.startswith(BOUNDS)]
    assert bounds["read_from"].str.split().str.len().min() >= 3
    assert np.isfinite(bounds["value"]).all()
    assert (table["figure"] == row).all()


def test_the_bounds_of_a_fact_are_its_tolerance_on_either_side():
    bounds = CALIBRATION[CALIBRATION["series"].str.startswith(BOUNDS)]
    for fact in FACTS.to_dict("records"):
        own = bounds[bounds["series"].str.partition(":")[2] == fact["series"]]
        ends = dict(zip(own["x"], own["value"], strict=True))
        if np.isnan(fact["tolerance"]):
            assert ends == {"at most": fact["value"]}
        else:
            low, high = fact["value"] - fact["tolerance"], fact["value"] + fact["tolerance"]
            assert ends == pytest.approx({"at least": low, "at most": high}, rel=1e-4)


def test_every_fact_is_printed_with_its_verdict_and_the_table_below():
    criteria = tuple(
        Criterion(name, "at most", bound, "", (1.0,))
        for name, bound in (("cpi_p50", 2.0), ("mai_p5", 2.0), ("mai_p5", 0.5))
    )
    values = {"cpi_p50": 1.71, "mai_p5": 0.002, "free": 3.0}
    row = JudgedRow(
        id="world/calibration",
        what="a world",
        criteria=criteria,
        worlds=(1,),
        planned=(1,),
        published=values,
        measured=values,
        printed_cells={"median": {"stated": 0.07, "computed": 0.065}},
        note="a note",
        table=({"switch": "smt", "margin": 0.01234567},),
        files=(),
    )
    console = Console(record=True, width=100, quiet=False, file=StringIO())
    show(Reproduced((row,)).section(), console)
    lines = [line.split() for line in console.export_text().splitlines()]
    assert ["cpi_p50", "1.71", "1.71", "holds"] in lines
    assert ["mai_p5", "0.002", "0.002", "does", "not", "hold"] in lines
    assert ["free", "3", "3"] in lines
    assert ["smt", "0.01235"] in lines
    assert ["median", "0.07", "0.065"] in lines


def as_published(**changed):
    return numbers(**(dict(zip(FACTS["series"], FACTS["value"], strict=True)) | changed))


def test_a_world_like_the_published_ones_holds():
    assert failing("world/calibration", as_published()) == set()


@pytest.mark.parametrize("fact", FACTS.to_dict("records"), ids=lambda fact: fact["series"])
def test_a_world_that_differs_in_one_fact_fails_in_this_one(fact):
    off = 1.01 * np.nan_to_num(fact["tolerance"], nan=0.01)
    assert failing("world/calibration", as_published(**{fact["series"]: fact["value"] + off})) == {fact["series"]}
    below = failing("world/calibration", as_published(**{fact["series"]: fact["value"] - off}))
    assert below == (set() if np.isnan(fact["tolerance"]) else {fact["series"]})


def test_a_fact_that_was_not_measured_does_not_hold():
    measured = as_published()
    assert failing("world/calibration", measured[measured["series"] != "machine_cv"]) == {"machine_cv"}


def test_the_drawing_has_a_line_per_fact_and_marks_those_outside():
    figure = calibration.calibration(as_published(machine_cv=0.5, cpi_p50=99.0), FACTS)
    axes = figure.axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert (labels[0], len(set(labels))) == ("quota of top 1pct", len(FACTS))
    assert not any("_" in label for label in labels)
    marked = {line.get_label(): len(line.get_xdata()) for line in axes.lines}
    assert (marked["within"], marked["outside"]) == (len(FACTS) - 2, 2)


EFFECT = {
    "llc": {"slowdown": 0.98},
    "bandwidth": {"slowdown": 0.95},
    "smt": {"slowdown": 0.8},
    "power_cap": {"slowdown": 1.03, "speed": 1.05},
    "input_variance": {"job_cv": 0.5, "margin": 0.6},
    "rack_effects": {},
}


def fleets(effect=EFFECT, rack_ratio=40.0, moved=0.02, seeds=(1, 2)):
    """Fleets in which every switch multiplies what it should."""
    table = []
    for seed in seeds:
        for switch in variations.SWITCHES:
            row = dict.fromkeys(figures.METRICS, 1.0 + 0.1 * seed) | {"moved": moved if switch != "base" else 0.0}
            row |= {name: row[name] * factor for name, factor in effect.get(switch, {}).items()}
            ratio = {"rack_effects": rack_ratio, "base": np.nan}.get(switch, 1.0)
            table.append({"seed": seed, "switch": switch, "rack_variance_ratio": ratio} | row)
    return pd.DataFrame(table)


def test_mechanisms_that_do_what_they_should_hold():
    assert failing("world/ablation", figures.measure_ablation(fleets())) == set()


@pytest.mark.parametrize(
    ("switch", "criteria"),
    [
        ("llc", {"slowdown_fall_without_llc"}),
        ("bandwidth", {"slowdown_fall_without_bandwidth"}),
        ("smt", {"slowdown_fall_without_smt"}),
        ("power_cap", {"speed_rise_without_power_cap"}),
        ("input_variance", {"job_cv_fall_without_input_variance", "margin_fall_without_input_variance"}),
    ],
)
def test_a_mechanism_that_does_nothing_fails_by_its_name(switch, criteria):
    assert failing("world/ablation", figures.measure_ablation(fleets(EFFECT | {switch: {}}))) == criteria


def test_a_faster_clock_that_waits_fewer_cycles_fails():
    wrong = EFFECT | {"power_cap": {"slowdown": 0.97, "speed": 1.05}}
    assert failing("world/ablation", figures.measure_ablation(fleets(wrong))) == {"slowdown_rise_without_power_cap"}


def test_racks_that_share_nothing_and_switches_that_move_nothing_fail():
    lonely, still = figures.measure_ablation(fleets(rack_ratio=1.1)), figures.measure_ablation(fleets(moved=0.0))
    assert failing("world/ablation", lonely) == {"rack_variance_ratio_without_rack_effects"}
    assert failing("world/ablation", still) == {"moved_min"}


def test_one_fleet_in_which_a_mechanism_does_nothing_is_enough_to_fail():
    both = pd.concat([fleets(), fleets(EFFECT | {"smt": {}}, seeds=(3,))])
    assert failing("world/ablation", figures.measure_ablation(both)) == {"slowdown_fall_without_smt"}


def test_the_ablation_is_drawn_with_a_panel_a_metric():
    figure = figures.ablation(figures.measure_ablation(fleets()), tuple(variations.SWITCHES))
    assert [axes.get_xlabel() for axes in figure.axes] == list(figures.METRICS.values())
    assert figure.axes[0].get_yticklabels()[1].get_text() == "no LLC sharing"


def swept(seeds=5, loss=0.3, widening=0.05, correlation=5.0, without=0.95):
    """Coverage that falls with the effective correlation, which rises with what is shared."""
    table, rng = [], np.random.default_rng(1)
    for seed in range(seeds):
        for axis, (rack, machine) in variations.AXES.items():
            for level in variations.LEVELS:
                shared = correlation * level * (rack + machine)
                covered = without - loss * shared / 2 + 0.002 * rng.standard_normal()
                table.append({"seed": seed, "axis": axis, "level": level, "correlation": shared, "covered": covered})
    fleets = pd.DataFrame(table)
    wide = (fleets["covered"] + widening).clip(upper=1)
    return fleets.assign(draws=300, truth=fleets["covered"], covered_widened=wide, truth_widened=wide)


def test_coverage_that_falls_with_what_is_shared_holds():
    assert failing("world/covariance", figures.measure_covariance(swept())) == set()


@pytest.mark.parametrize(
    ("counter", "criteria"),
    [
        ({"loss": 0.0}, {"coverage_drop_low", "rank_correlation"}),
        ({"loss": -0.04, "without": 0.93}, {"coverage_drop_low", "rank_correlation"}),
        ({"correlation": -5.0, "loss": -0.3}, {"correlation_rise_low"}),
        ({"without": 0.85}, {"coverage_without_high"}),
        ({"widening": -0.01}, {"widened_gain_low"}),
    ],
)
def test_a_sweep_without_the_finding_fails_by_its_name(counter, criteria):
    assert failing("world/covariance", figures.measure_covariance(swept(**counter))) >= criteria


def test_curves_hold_means_intervals_and_the_spread_between_fleets():
    sweep = swept()
    measured = figures.measure_covariance(sweep)
    here = sweep[(sweep["axis"] == "rack") & (sweep["level"] == 0.1)]["covered"]
    assert number(measured, "covered_rack", 0.1) == pytest.approx(here.mean(), abs=0.001)
    assert number(measured, "covered_rack_between", 0.1) == pytest.approx(here.std())
    half = 1.96 * np.sqrt(here.mean() * (1 - here.mean()) / 1500)
    assert number(measured, "covered_rack_high", 0.1) - here.mean() == pytest.approx(half, rel=0.1)
    assert number(measured, "coverage_default") == pytest.approx(0.95 - 0.3 * 0.1, abs=0.005)


def test_a_sweep_without_both_is_refused_and_one_fleet_has_no_interval():
    with pytest.raises(ValueError, match="axis 'both' is missing"):
        figures.measure_covariance(swept().query("axis == 'rack'"))
    assert np.isnan(number(figures.measure_covariance(swept(seeds=1)), "coverage_drop_low"))


def test_coverage_is_drawn_for_both_targets():
    figure = figures.covariance(figures.measure_covariance(swept()), printed(published("world/covariance")))
    assert [axes.get_title() for axes in figure.axes] == ["change of the covered jobs", "change of the whole fleet"]


def jobs(by_stall=-0.1, by_cap=0.05):
    rng = np.random.default_rng(1)
    stall, capped = rng.random(2000), rng.random(2000)
    gain = -0.5 * by_stall + by_stall * stall + by_cap * (capped - 0.5) + 0.005 * rng.standard_normal(2000)
    return pd.DataFrame({"gain": gain, "stall_share": stall, "capped_share": capped})


@pytest.mark.parametrize(
    ("world_of", "criteria"),
    [
        ({}, set()),
        ({"by_stall": 0.0}, {"rank_stall_high", "gain_without_stall_low", "gain_with_stall_high"}),
        ({"by_stall": 0.1}, {"rank_stall_high", "gain_without_stall_low", "gain_with_stall_high"}),
        ({"by_cap": 0.0}, {"rank_capped_given_stall_low"}),
        ({"by_cap": -0.05}, {"rank_capped_given_stall_low"}),
    ],
)
def test_gains_that_do_not_follow_stall_or_power_fail(world_of, criteria):
    assert failing("world/dvfs-mechanism", measure_mechanism(jobs(**world_of), 0.65)) == criteria


def test_the_mechanism_is_drawn_with_its_correlations():
    figure = mechanism.mechanism(measure_mechanism(jobs(), 0.65), rows("none", [], []))
    assert "with stall share" in figure.axes[0].get_title(loc="left") + figure.axes[0].get_title()


SMALL = {
    "fleet.machines": 80,
    "fleet.machines_per_rack": 20,
    "fleet.racks_per_power_domain": 1,
    "population.jobs": 100,
    "population.common_jobs": 60,
    "population.heavyweights": 10,
    "analyses.wsmeter.machines": [10],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def sources(folder):
    """Runs of the library's scenarios on 80 machines with 100 jobs, an hour or two long, from epoch to epoch."""

    def small(name, values, tell):
        said = {key: value for key, value in values.items() if key not in SMALL} | SMALL
        if "simulation" in said:
            said["simulation"] = "epochs"
        said["horizon_s"] = 3600.0 if name != "today" else min(said.get("horizon_s", 86400.0), 2 * 86400.0)
        overrides = [Override(path, dumps(value), "value") for path, value in said.items()]
        return obtain(load(name, overrides), folder, False, tell)

    return Sources(small, lambda _what, _share: None)


def test_switching_off_changes_what_is_simulated_and_the_base_is_the_reference(sources):
    table = variations.ablation(sources, Fleets((1,), 10, draws=5))
    assert table["switch"].tolist() == list(variations.SWITCHES)
    assert table.set_index("switch")["moved"]["base"] == 0
    moved = table.set_index("switch")["moved"]
    assert (moved.drop(["base", "power_cap"]) > 0).all()  # the cap of a healthy fleet hardly ever binds
    assert np.isfinite(table.drop(columns=["switch", "rack_variance_ratio"]).to_numpy()).all()
    assert table.set_index("switch")["slowdown"]["smt"] < table.set_index("switch")["slowdown"]["base"]


def test_a_setting_that_two_axes_share_is_measured_once(sources, monkeypatch):
    monkeypatch.setattr(variations, "LEVELS", (0.0, 0.2))
    table = variations.covariance(sources, Fleets((1,), 10, draws=5))
    assert len(table) == 6
    assert len(sources.cache) == 4
    assert np.isfinite(table["correlation"].to_numpy(dtype=float)).all()
    assert table[table["level"] == 0].drop(columns="axis").drop_duplicates().shape[0] == 1


def test_ten_worlds_say_every_fact_that_is_published_and_means_are_judged(sources, monkeypatch):
    spreads = {1: (0.1, 0.2), 2: (0.3, 0.4)}
    monkeypatch.setattr(facts, "SEEDS", (1, 2))
    monkeypatch.setattr(facts, "CELL_MACHINES", 80)
    monkeypatch.setattr(
        facts,
        "_service_facts",
        lambda _, seed: numbers(job_cv_compute=spreads[seed][0], job_cv_network=spreads[seed][1]),
    )
    outcome = facts.measure(sources)
    assert set(outcome.measured["series"]) == set(FACTS["series"])
    assert np.isfinite(outcome.measured["value"]).all()
    table = outcome.table.set_index("fact")
    assert table["mean"].to_dict() == outcome.measured.set_index("series")["value"].to_dict()
    assert table.loc["job_cv_network", ["mean", "sd_between_seeds"]].tolist() == pytest.approx([0.3, 0.02**0.5])
    both = table["other_population"].dropna()
    assert set(both.index) > facts.OF_WSMETER
    assert both["instances_on_machine_mean"] < table["mean"]["instances_on_machine_mean"]


def test_jobs_of_a_run_gain_by_their_stalls(sources):
    outcome = ROWS["world/dvfs-mechanism"].outcome(sources)
    assert number(outcome.measured, "gain_with_stall") < number(outcome.measured, "gain_without_stall") < 0
    assert outcome.table["measured"].notna().any()


def quietly(_what, _share):
    pass


def never(*_asked):
    raise AssertionError("no run is needed")


def needed(corner, design, n95, bound=""):
    return {"corner": corner, "design": design, "estimator": "adjusted", "n95": n95, "bound": bound}


def scorecard(progress, fleets, draws):
    sums = {"estimator": "adjusted", "draws": 3000, "answered": 3000, "machines": 50}
    corners = [
        sums | {"corner": "base", "design": "day", "covered": 2850},
        sums | {"corner": "rough", "design": "week", "covered": 2700},
        sums | {"corner": "rough", "design": "crossover", "covered": 0},
        sums | {"corner": "fine", "design": "day", "covered": 2880},
    ]
    wanted = [needed("base", "day", 90.0), needed("base", "week", 400.0, "more than")]
    wanted += [needed("fine", "day", 99.0), needed("fine", "week", 300.0)]
    gains = [
        {"design": design, "estimator": "adjusted", "against": "cuped", "gain": gain, "worst": worst}
        for design, gain, worst in (("day", 4.0, 1.5), ("paired", 3.0, 0.9))
    ]
    every = [
        {"design": design, "estimator": estimator, "coverage": coverage}
        for design, estimator, coverage in (
            ("day", "published", 0.8),
            ("day", "adjusted", 0.9),
            ("paired", "adjusted", 0.91),
            ("paired", "paired", 0.955),
            ("one_job", "adjusted", 0.945),
            ("one_job", "cuped", 0.5),
        )
    ]
    made = {"corners": corners, "needed": wanted, "gains": gains, "estimators": every}
    return made | {"fleets": fleets, "digest": "ab"}


def guards(progress, fleets):
    numbers = {"faults": 27, "healthy_cases": 29, "missed": 0, "harmless": 1, "false_alarms": 0.0, "weak_alarms": 0.0}
    return numbers | {"planted": [{"fault": "looks"}]}


def planner(progress):
    planned, real = {"power": 0.95, "margin": 0.01}, {"power": 0.94, "margin": 0.0102}
    row = {"corner": "base", "fleet": 1, "design": "day", "machines": 90, "predicted": planned, "real": real}
    return {"fleets": 3, "power": 0.01, "margin": 0.02, "rows": [row]}


SOURCES = Sources(never, quietly, no_worlds, {"scorecard": scorecard, "guards": guards, "planner": planner})


@pytest.mark.parametrize("name", ["world/scorecard", "world/guards", "world/planner"])
def test_every_criterion_is_measured_or_said_to_be_unknown(name):
    paper = published(name)
    outcome = ROWS[name].outcome(SOURCES)
    assert {check.name for check in judge(outcome.measured, paper)} == set(
        paper["series"].str.replace(r"^\w+:", "", regex=True)
    )


def test_the_scorecard_tells_the_worst_corner_and_the_machines_that_were_not_enough():
    paper = published("world/scorecard")
    outcome = ROWS["world/scorecard"].outcome(SOURCES)
    told = {check.name: check for check in judge(outcome.measured, paper)}
    assert told["coverage_min"].measured == pytest.approx(0.9)
    assert told["coverage_max"].measured == pytest.approx(0.96)
    assert told["crossover_coverage_max"].measured == 0.0
    assert told["designs_coverage_min"].measured == pytest.approx(0.945)
    assert (told["against_cuped"].measured, told["against_cuped_worst"].measured) == (3.0, 0.9)
    assert told["fine_coverage"].measured == pytest.approx(0.01)
    assert told["fine_n95"].measured == math.inf
    assert told["week"].measured == math.inf
    assert "rough (week)" in outcome.note
    assert "as published covers 80% (day)" in outcome.note


def test_what_was_planned_stands_beside_what_came_true():
    (row,) = ROWS["world/planner"].outcome(SOURCES).table.to_dict("records")
    told = {"corner": "base", "fleet": 1, "design": "day", "machines": 90}
    assert row == told | {"planned_margin": 0.01, "margin": 0.0102, "planned_power": 0.95, "power": 0.94}


def test_a_study_that_is_not_to_be_had_says_so():
    nothing = Sources(never, quietly)
    with pytest.raises(ValueError, match="guards: it is not to be had here"):
        nothing.trial("guards", fleets=1)
