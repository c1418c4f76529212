"""Every row of Google-Wide Profiling measures what its criteria name, on a small fleet; verdicts are not asked here."""

import pytest

from analysis.figures.criteria import judge
from analysis.profiling.database import Database
from analysis.profiling.metrics import core_seconds
from analysis.profiling.query import Query
from scenarios.files.loader import load, settings
from scenarios.papers import gwp, world
from scenarios.papers.catalogue import ROWS
from scenarios.papers.rows import published
from scenarios.papers.sources import Sources
from scenarios.profiling.profiled import facts
from scenarios.runs.execution import obtain, reopen

SMALL = "profiled_small"
RUNS = ("fig3", "fig4", "fig5", "fig6a", "fig6b", "fig7", "sqrt-law")
WATCHED = ['profiling.collector.watches=[{"name": "dense", "one_in": 20}]', "profiling.collector.round_s=7200"]
"""A second collection, which no row may count."""
TOLD = {
    "draws": 20,
    "visits": 200.0,
    "samples": 4000.0,
    "functions": {"judged": 100, "coverage": 0.95, "coverage_low": 0.94, "coverage_high": 0.96, "half_width": 0.2}
    | {"naive_coverage": 0.6, "design_effect": 4.0},
    "cpi": {"coverage": 0.94},
}
SECONDS = {"draws": 400, "visits": 200.0, "error": 0.01, "coverage": 0.95, "coverage_error": 0.011, "half_width": 0.03}
SECONDS |= {"spread": 0.98, "bias": 0.001, "by_platform_bias": 0.01, "by_fleet_bias": 0.02}
PLAIN = TOLD | {"draws": 10, "functions": TOLD["functions"] | {"naive_coverage": 0.91, "design_effect": 1.25}}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return obtain(load(SMALL, settings(WATCHED)), tmp_path_factory.mktemp("runs"), False, lambda _what, _share: None)


@pytest.fixture
def sources(run):
    """The run in place of the fleet's, whatever is asked of it; collectors and regressions as if judged before."""

    def obtained(scenario, _overrides, _progress):
        assert scenario in {gwp.FLEET, world.FLEET}
        return run

    def judged(scenario, overrides, _progress):
        assert scenario == world.FLEET
        return [TOLD if "profiling.collector.one_in" in overrides else PLAIN]

    def regressions(progress, planted, healthy):
        causes = [{"cause": "revision", "pairs": planted, "right": planted - 4}]
        return {"named": 1 - 4 / planted, "quiet": 1 - 1 / healthy, "causes": causes}

    def core_seconds(progress, scenario, draws, overrides):
        assert (scenario, draws) == (gwp.FLEET, 400)
        return SECONDS

    def watch(progress, planted, healthy):
        causes = [{"cause": "platform", "incidents": planted, "detected": planted - 2}]
        return {"power": 1 - 2 / planted, "right": 1.0, "quiet": 1 - 1 / healthy, "causes": causes}

    told = {"regressions": regressions, "watch": watch, "core_seconds": core_seconds}
    return Sources(obtained, lambda _what, _share: None, judged, told)


def measured(name, sources):
    """A row's outcome, and what it measured of each criterion."""
    paper = published(name)
    outcome = ROWS[name].outcome(sources)
    checks = judge(outcome.measured, paper)
    assert checks
    assert all(check.measured == check.measured for check in checks), [str(check) for check in checks]
    if outcome.draw is not None:
        assert outcome.draw(outcome.measured, paper).axes
    return outcome, {check.name: check.measured for check in checks}


@pytest.mark.parametrize("name", [f"gwp/{row}" for row in RUNS])
def test_a_row_has_every_number_that_it_is_judged_by(name, sources):
    measured(name, sources)


@pytest.mark.parametrize("name", ["gwp/affinity", "world/affinity"])
def test_the_affinity_rows_are_of_the_runs_own_table(name, sources):
    _, found = measured(name, sources)
    assert found.get("sampled_over_possible", 1.0) <= 1.0 + 1e-9


def test_the_pipeline_loses_nothing_and_the_page_says_what_the_tables_say(sources):
    assert measured("gwp/fig1", sources)[1]["lost_samples"] == 0
    assert measured("gwp/fig2", sources)[1]["page_error"] == 0


def test_shared_code_and_overhead_are_those_of_the_tables(sources, run):
    _, shared = measured("gwp/shared-code", sources)
    truth = run.table("truth_functions").groupby("image")["cycles"].sum()
    assert shared["share"] == pytest.approx(truth["libz"] / truth.sum(), rel=0.2)
    _, spent = measured("gwp/overhead", sources)
    assert spent["share"] == run.table("visits")["overhead_cycles"].sum() / run.table("epochs")["cycles"].sum()


def test_instances_are_profiled_by_stay_and_the_state_only_judges(sources, run):
    setting = gwp._setting(run)
    programs = setting.software.programs
    name = next(str(one) for one, count in zip(programs.names, programs.states, strict=True) if count > 1)
    made = gwp._by_instance(run, name, setting)
    stays = run.table("processes").query("application == @name")["residence"]
    assert set(made["machine"]) <= set(stays)
    assert made.groupby("machine")["state"].nunique().max() == 1
    assert set(made["state"]) <= {0, 1}


def test_rows_of_the_paper_are_of_a_google_cell():
    assert load(gwp.FLEET).population.preset == "google2011"


def test_many_collectors_are_told_beside_the_fleets_own(sources):
    outcome, found = measured("world/profiles", sources)
    assert found == {"coverage": 0.95, "naive_coverage": 0.6, "cpi_coverage": 0.94}
    assert outcome.table["naive_coverage"].tolist() == [0.6, 0.91]
    assert outcome.table["design_effect"].tolist() == [4.0, 1.25]
    assert "of 10 such, naive intervals hold the truth in 91.0%, at a design effect of 1.25" in outcome.note


def test_core_seconds_and_regressions_pass_on_what_they_are_told(sources):
    assert measured("gwp/core-seconds", sources)[1] == {"error": 0.01, "interval_holds": 0.95, "half_width": 0.03}
    assert measured("world/regressions", sources)[1] == {"named": 0.96, "quiet": 0.99}
    assert measured("world/watch", sources)[1] == {"power": 0.9, "right": 1.0, "quiet": 0.95}


def test_other_collections_count_neither_as_samples_nor_in_core_seconds(run):
    visits = run.table("visits")
    rows = run.table("samples", ["process", "event", "count"]).merge(run.table("processes", ["process", "visit"]))
    counts = rows.merge(visits).groupby(["event", "collection"])["count"].sum()
    assert {collection for _, collection in counts.index} == {"fleet", "dense"}
    with Database([run.path]) as database:
        scenario = reopen(run.path)[0]
        answer = facts(database, run, scenario, 0.95)
        assert {row.event: row.samples for row in answer.events} == counts.xs("fleet", level=1).to_dict()
        cycles = database.query(Query(by=("visit",), where=(("collection", ("fleet",)),)))
    alone = visits[visits["collection"] == "fleet"]
    cycles = cycles.assign(visit=cycles["visit"].astype(int))
    machine_epochs = scenario.fleet.machines * scenario.epochs
    assert answer.core_seconds == core_seconds(alone, cycles, run.table("monitor"), machine_epochs=machine_epochs)
