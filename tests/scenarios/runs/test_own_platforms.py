"""Runs on platforms of your own: a sheet that copies a shipped one under another name gives the same run but for it."""

from dataclasses import replace

import pandas as pd
import pytest

from scenarios.crossplatform.calibration import ServiceQuestion
from scenarios.crossplatform.predict import predict
from scenarios.files.loader import load, settings
from scenarios.runs.execution import obtain, reopen
from sim.services.hardware import draw_machines

SMALL = (
    *("fleet.machines=12", "population.jobs=30", "population.common_jobs=20", "population.heavyweights=4"),
    *("epoch_s=300", "analyses.wsmeter.machines=[4]"),
)
MIX = "fleet.platforms={haswell_2698v3: 0.5, %s: 0.5}"


def quiet(_what, _share):
    pass


def simulated(out, name, *sets):
    return obtain(load(name, settings(sets)), out, False, quiet)


def named(table):
    """Return a table whose categories are texts."""
    return table.astype({name: str for name, kind in table.dtypes.items() if kind == "category"})


def same(run, other, names, *, but=()):
    """Say whether two runs have the same tables but for some, when platforms have other names."""
    assert run.tables == other.tables
    for table in set(run.tables) - {*but}:
        ours, theirs = (named(each.table(table)) for each in (run, other))
        pd.testing.assert_frame_equal(ours, theirs.replace(names), check_exact=True)
    return True


@pytest.fixture
def sheets(tmp_path):
    """Return a file of copies of shipped sheets, whose names stand where theirs would in the alphabet."""
    (tmp_path / "mine.yaml").write_text(
        "skylake_mine: {extends: skylake_6148}\nmychip: {extends: cascadelake_8280, source: lab}\n"
        "pd4_mine: {extends: pd4, variant_of: pd4}\n"
    )
    return f"platforms={tmp_path / 'mine.yaml'}"


def test_a_fleet(sheets, tmp_path):
    short, new = (*SMALL, "horizon_s=1800", "recording.loop=null"), "feature.platforms={haswell_2698v3: %s}"
    run = simulated(tmp_path / "a", "small", *short, MIX % "skylake_6148", new % "cascadelake_8280")
    other = simulated(tmp_path / "b", "small", *short, sheets, MIX % "skylake_mine", new % "mychip")
    assert same(run, other, {"skylake_mine": "skylake_6148", "mychip": "cascadelake_8280"})
    assert "skylake_mine" in set(other.table("instances")["platform"])


def test_a_machine_that_departs_from_its_sheet_is_simulated_as_it_is_and_its_sheet_stays(tmp_path):
    short = (*SMALL, "horizon_s=600", "recording.loop=null", "feature.platforms={haswell_2698v3: mychip}")
    chip = "platforms={mychip: {extends: cascadelake_8280, %s}}"
    real = simulated(tmp_path / "a", "small", *short, chip % "core_cpi_factor: 0.75, memory_latency_s: 1.4e-7")
    departs = "memory_latency_s: 0.7e-7, core_cpi_factor: 0.5, departs: {core_cpi: 1.5, memory_latency: 2}"
    other = simulated(tmp_path / "b", "small", *short, chip % departs)
    assert same(real, other, {})
    assert other.sheets["mychip"].core_cpi_factor == 0.5


def test_of_a_service_what_is_known_of_the_machine_is_not_drawn():
    sets = ("platforms=[piii, {mine: {extends: pd4, departs: {core_cpi: 1.25}}}]", "measured=[piii]")
    world = load("cross_rubis", settings(sets)).world
    drawn = replace(world, own_platforms={"mine": replace(world.own_platforms["mine"], departs=None)})
    ours, theirs = (draw_machines(each)["mine"] for each in (world, drawn))
    assert ours.core_cpi_factor == 1.25 * world.sheets["mine"].core_cpi_factor != theirs.core_cpi_factor
    assert (ours.memory_latency_s, ours.overlap_factor) == (theirs.memory_latency_s, theirs.overlap_factor)


def test_a_profiled_fleet_but_for_the_drawn_periods_of_its_samples(sheets, tmp_path):
    short = (*SMALL[:4], "horizon_s=86400", "feature=null", "profiling.kernel=null", "trial=null")
    sampled = ("rates", "visits", "samples", "stacks", "raw_samples", "raw_stacks", "processes", "mappings")
    run = simulated(tmp_path / "a", "profiled_small", *short, MIX % "skylake_6148")
    other = simulated(tmp_path / "b", "profiled_small", *short, sheets, MIX % "skylake_mine")
    assert same(run, other, {"skylake_mine": "skylake_6148"}, but=sampled)


def test_a_service_and_what_is_predicted_from_its_log(sheets, tmp_path):
    short = ("horizon_s=1800", "application.types=3", "measured=[piii]", "analyses.crossplatform.from=piii")
    run = simulated(tmp_path / "a", "cross_rubis", *short, "platforms=[piii, pd4]")
    other = simulated(tmp_path / "b", "cross_rubis", *short, f"own_{sheets}", "platforms=[piii, pd4_mine]")
    assert same(run, other, {"pd4_mine": "pd4"})
    (tmp_path / "mine.yaml").unlink()
    scenario, again = reopen(other.path)
    assert scenario.sheets == again.sheets
    answers = [predict(ServiceQuestion(each.path, "piii", (to,))) for each, to in ((run, "pd4"), (other, "pd4_mine"))]
    pd.testing.assert_frame_equal(*(answer.frame().drop(columns="platform") for answer in answers))
