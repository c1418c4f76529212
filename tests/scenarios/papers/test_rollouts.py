"""World rows about test clusters hold for draws with their finding, and fail for draws without it."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from analysis.figures.criteria import number
from analysis.figures.world import designs
from analysis.figures.wsmeter.changes import student_interval
from models.fleet.world import World
from scenarios.files.loader import Override, load
from scenarios.papers import rollouts as rows_of_rollouts
from scenarios.papers.catalogue import ROWS
from scenarios.papers.rollouts import QUARTER_DAY, WORLDS
from scenarios.papers.sources import Sources
from scenarios.runs.execution import obtain
from scenarios.views.terminal import dumps
from tests.helpers.reproduce_worlds import failing

SMALL = {
    "fleet.machines": 300,
    "fleet.machines_per_rack": 10,
    "horizon_s": 1800.0,
    "population.jobs": 60,
    "population.common_jobs": 50,
    "population.heavyweights": 12,
    "recording.loop": None,
    "analyses.wsmeter.machines": [20],
}


def draws(design, *, difference=0.0, sd=0.001, fleets=6, each=4):
    """Draws whose real change is the composed one plus a difference of this mean and spread."""
    rng = np.random.default_rng(1)
    composed = 0.07 + 0.005 * rng.standard_normal(fleets * each)
    table = pd.DataFrame(
        {"design": design, "seed": np.repeat(range(fleets), each), "draw": np.tile(range(each), fleets)}
    )
    noise = rng.standard_normal(fleets * each)
    real = composed + difference + sd * (noise - noise.mean()) / noise.std()
    settled = {"margin": 0.02, "composed_margin": 0.02, "truth": 0.07, "reference": 0.07, "quota_coverage": 0.9}
    return table.assign(composed=composed, real=real, **settled)


def rollouts(**changed):
    each = {name: {"sd": 0.008 if name == "added" else 0.001} | changed.get(name, {}) for name in designs.DESIGNS}
    return designs.measure_rollouts(pd.concat(draws(name, **settings) for name, settings in each.items()))


def packing(**changed):
    each = {"normal": {"difference": -0.018}, "quiet": {"sd": 0.004}, "alike": {"sd": 0.001}}
    made = (draws(name, **{**each[name], **changed.get(name, {})}) for name in designs.WORLDS)
    return designs.measure_packing(pd.concat(made))


def test_rollouts_hold_where_composed_draws_stand_for_real_ones():
    assert failing("world/rollouts", rollouts()) == []


@pytest.mark.parametrize("design", ["machines", "machines_dvfs", "instances"])
@pytest.mark.parametrize("difference", [-0.003, 0.003])
def test_rollouts_fail_where_neighbours_matter(design, difference):
    assert failing("world/rollouts", rollouts(**{design: {"difference": difference}})) == [f"far_end_{design}"]


def test_rollouts_fail_where_new_machines_are_better_than_old_ones():
    assert failing("world/rollouts", rollouts(added={"difference": 0.006})) == ["distance_added"]
    assert failing("world/rollouts", rollouts(added={"difference": 0.01})) == ["far_end_added", "distance_added"]


def test_rollouts_fail_where_there_are_few_draws():
    assert failing("world/rollouts", rollouts(instances={"each": 3})) == ["draws_min"]


def test_packing_holds_where_it_is_interference_that_packing_exacerbates():
    assert failing("world/packing", packing()) == []


def test_packing_fails_where_packed_instances_gain_as_much():
    assert failing("world/packing", packing(normal={"difference": 0.0})) == ["shortfall_low"]
    assert failing("world/packing", packing(normal={"difference": 0.018})) == ["shortfall_low"]


def test_packing_fails_where_the_bias_does_not_come_from_interference():
    names = failing("world/packing", packing(quiet={"difference": -0.018}, alike={"difference": -0.018}))
    assert names == ["quiet_far_end", "quiet_distance", "alike_far_end"]


def test_packing_fails_where_fleets_are_too_few_or_draws():
    assert "fleets" in failing("world/packing", packing(quiet={"fleets": 4, "each": 5}))
    assert "draws" in failing("world/packing", packing(alike={"each": 3}))


def test_a_fleet_counts_once_where_its_draws_are_alike():
    table = draws("added", sd=0.0).assign(real=lambda rows: 0.07 + 0.01 * (rows["seed"] % 2))
    by_draw, by_fleet = (designs.discrepancies(table, each)["added"] for each in (designs.DRAWS, designs.FLEETS))
    assert by_draw.difference.value == pytest.approx(by_fleet.difference.value)
    assert by_fleet.bias.half_width > 2 * by_draw.bias.half_width


def test_intervals_are_those_of_a_t_test():
    values = pd.Series(np.random.default_rng(2).normal(0.01, 0.02, 7))
    oracle = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert student_interval(values) == pytest.approx((values.mean(), oracle.low, oracle.high))


def test_described_draws_say_bias_and_coverage():
    table = draws("added", difference=0.03, sd=0.0).assign(composed=0.07, real=0.1, truth=0.06)
    row = designs.described(table, designs.DRAWS).set_index("")["added"]
    names = ["draws", "difference", "sd", "bias", "bias_covered", "composed_bias", "covers", "composed_covers"]
    assert row[names].tolist() == pytest.approx([24, 0.03, 0.0, 0.04, 0.03, 0.01, 0.0, 1.0])


@pytest.mark.parametrize(("draw", "measured"), [(designs.rollouts, rollouts), (designs.packing, packing)])
def test_figures_show_every_design(draw, measured):
    (axes,) = draw(measured(), pd.DataFrame()).axes
    assert len(axes.get_xticks()) == len(designs.DESIGNS if draw is designs.rollouts else designs.WORLDS)
    axes.figure.savefig("/dev/null", format="png")


SCARCE = {"power.domain_budget_share": 0.5}
"""Racks that share so little power that machines of a test cluster slow others."""


def small_sources(tmp_path, asked, changed):
    def simulated(scenario, values, progress):
        asked.append((scenario, dict(values)))
        return obtain(load(scenario, _overrides({**values, **SMALL, **changed})), tmp_path, False, progress)

    return Sources(simulated, lambda _what, _share: None)


@pytest.mark.parametrize(
    ("row", "world", "fails"),
    [
        ("world/rollouts", SCARCE, {"far_end_machines", "far_end_instances", "far_end_added", "distance_added"}),
        ("world/packing", {}, {"shortfall_low", "quiet_far_end", "quiet_distance", "alike_far_end"}),
    ],
)
def test_rows_are_measured_on_runs_and_fail_without_their_cause(row, world, fails, tmp_path, monkeypatch):
    """Clusters share power with their neighbours; machines are alike in the first world, and share in the others."""
    for name, values in {"normal": WORLDS["alike"], "quiet": {}, "alike": WORLDS["quiet"]}.items():
        monkeypatch.setitem(WORLDS, name, values)
    few = rows_of_rollouts.Effort((1, 2), 2)
    monkeypatch.setattr(rows_of_rollouts, "IN_FLEETS", few)
    monkeypatch.setattr(rows_of_rollouts, "IN_PACKS", few)
    for name, each in rows_of_rollouts.ROLLOUTS.items():
        design = type(each.design)(20) if name != "instances" else each.design
        changed = rows_of_rollouts.JudgedDesign(each.scenario, each.metric, design)
        monkeypatch.setitem(rows_of_rollouts.ROLLOUTS, name, changed)
    asked = []
    outcome = ROWS[row].outcome(small_sources(tmp_path, asked, world))
    assert fails <= set(failing(row, outcome.measured))
    names = list(rows_of_rollouts.ROLLOUTS if row == "world/rollouts" else WORLDS)
    assert list(outcome.table) == ["", *names]
    assert outcome.table.set_index("").loc["draws"].tolist() == [4] * len(names)
    assert outcome.table.notna().all().all()
    assert "draws" in "".join(outcome.measured["series"])
    scenarios = {each.scenario: {} for each in rows_of_rollouts.ROLLOUTS.values()}
    worlds = [*scenarios.items()] if row == "world/rollouts" else [("cpu_upgrade", s) for s in WORLDS.values()]
    wanted = [(name, {**QUARTER_DAY, **switches, "seed": seed}) for name, switches in worlds for seed in (1, 2)]
    assert all(one in asked for one in wanted)
    assert len(asked) == len(wanted)


def test_designs_and_worlds_are_the_same_in_drawings():
    assert list(designs.DESIGNS) == list(rows_of_rollouts.ROLLOUTS)
    assert list(designs.WORLDS) == list(WORLDS)


def test_quiet_worlds_share_nothing_and_alike_ones_do_not_differ():
    quiet, alike = (load("cpu_upgrade", _overrides(WORLDS[name])) for name in ("quiet", "alike"))
    for world in (quiet, alike):
        assert [world.interference.llc, world.interference.bandwidth, world.interference.smt] == [False] * 3
        assert world.power.cap_share == world.power.domain_budget_share == 10
    assert quiet.conditions == World().conditions
    values = asdict(alike.conditions)
    assert values.pop("slow_memory_factor") > 0.0, "it is the factor of no machine"
    assert set(values.values()) == {0.0}


def _overrides(values):
    return [Override(path, dumps(value), "test") for path, value in values.items()]


def test_no_shortfall_at_all_is_at_no_distance():
    measured = packing(quiet={"sd": 0.0})
    assert number(measured, "quiet_far_end") < 1e-15
    same = draws("quiet", sd=0.0).assign(real=lambda rows: rows["composed"])
    table = pd.concat([draws("normal"), same, draws("alike")])
    assert number(designs.measure_packing(table), "quiet_distance") == 0.0
