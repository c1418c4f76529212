"""`wsc run`: found or simulated once, measured without the truth, and what it says."""

import json
import math
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from analysis.figures.wsmeter.fleet import draw_day
from analysis.wsmeter.estimators import WSMeter
from models.fleet.inventory import build_jobs, build_machines
from scenarios.files.loader import load, settings
from scenarios.runs import execution
from scenarios.runs.disk import save
from scenarios.runs.execution import obtain, reopen, validate
from scenarios.runs.rundir import RunError, open_run
from scenarios.views.terminal import dumps, show
from scenarios.wsmeter.measure import beside, estimates
from scenarios.wsmeter.measurements import halves_of, job_quotas, run_measurements
from sim.fleet.control import plan_day

TINY = ["fleet.machines=60", "horizon_s=7200", "population.jobs=60", "population.common_jobs=40"]
SMALL_CLUSTERS = "analyses.wsmeter.machines=[5,10]"


def quiet(_what, _share):
    pass


def run(*asked):
    return execution.run(*asked).payload()


def measure(*asked):
    return execution.measure(*asked).payload()


def scenario(*more):
    return load("small", settings([*TINY, SMALL_CLUSTERS, *more]))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def payload(out):
    return run(scenario(), out, False, quiet)


def test_the_payload_has_every_key_of_the_contract(payload):
    assert {"kind", "run", "scenario", "seed", "counts", "truth", "estimates"} <= payload.keys()
    assert payload["kind"] == "fleet"
    assert {"machines", "jobs", "instances", "epochs"} <= payload["counts"].keys()
    keys = {"estimator", "machines", "change", "low", "high", "margin", "quota_coverage"}
    assert all(keys <= row.keys() for row in payload["estimates"])
    assert [(row["machines"], row["estimator"]) for row in payload["estimates"]] == [
        (size, name) for size in (5, 10) for name in ("baseline", "wsmeter", "wsmeter-widened")
    ]
    assert json.loads(dumps(payload))["counts"]["machines"] == 60


def test_a_copy_without_the_truth_gives_the_same_estimates_byte_for_byte(payload, tmp_path):
    copy = shutil.copytree(payload["run"], tmp_path / "copy", ignore=shutil.ignore_patterns("truth_*"))
    again = measure(*reopen(copy), tmp_path, quiet)
    assert dumps(again["estimates"]) == dumps(payload["estimates"])
    assert dumps(again["rounds"]) == dumps(payload["rounds"])
    assert math.isfinite(payload["truth"]["change"])
    assert math.isnan(again["truth"]["change"])


def test_an_intact_run_is_used_again_and_a_damaged_or_forced_one_is_made_again(payload, out):
    manifest = open_run(payload["run"]).path / "manifest.json"
    first = manifest.stat().st_mtime_ns
    found = obtain(scenario(), out, False, quiet)
    assert manifest.stat().st_mtime_ns == first
    digests = {name: said["digest"] for name, said in found.listed.items()}
    found.file("counters").write_bytes(b"damaged")
    mended = obtain(scenario(), out, False, quiet)
    forced = obtain(scenario(), out, True, quiet)
    for made in (mended, forced):
        assert {name: said["digest"] for name, said in made.listed.items()} == digests
    assert manifest.stat().st_mtime_ns != first


def test_other_analyses_use_the_same_run_and_another_seed_does_not(payload, out):
    assert str(obtain(scenario("analyses.wsmeter.t=1.96"), out, False, quiet).path) == payload["run"]
    assert str(obtain(scenario("seed=9"), out, False, quiet).path) != payload["run"]


def test_the_estimates_are_those_of_the_recorded_halves(payload):
    found = open_run(payload["run"])
    asked = scenario().analyses.wsmeter
    without, having = halves_of(run_measurements(found, asked))
    jobs = job_quotas(found, asked)
    whole = WSMeter().estimate(without, having, jobs).change
    made = estimates(found, asked, "machine")
    wsmeter = made[made["estimator"] == "wsmeter"]
    assert ((wsmeter["change"] - whole).abs() < 2 * wsmeter["margin"]).all()
    assert made["low"].to_list() == pytest.approx((made["change"] - made["margin"]).to_list())


def test_the_loop_is_concluded_and_kept_apart_from_what_happened(payload):
    found = open_run(payload["run"])
    measure(scenario(), found, found.path.parent, quiet)
    assert "rounds" not in found.listed
    (kept,) = (found.path / "concluded").glob("rounds-*")
    assert pd.read_parquet(kept)["round"].tolist() == list(range(1, len(payload["rounds"]) + 1))


def test_an_estimator_that_changes_makes_the_loop_anew_and_leaves_the_run(payload, monkeypatch):
    """The loop used to be a table of the run, whose digest knows nothing of estimators: it stayed as it was."""
    path = Path(payload["run"])
    first = (path / "manifest.json").stat().st_mtime_ns
    monkeypatch.setattr("scenarios.runs.conclusions.conclusion_digest", lambda: "of another estimator")
    usual = WSMeter.estimate

    def tenfold(*args):
        made = usual(*args)
        return replace(made, margin=10 * made.margin)

    monkeypatch.setattr(WSMeter, "estimate", tenfold)
    again = measure(scenario(), open_run(path), path.parent, quiet)
    assert again["rounds"][0]["margin"] == pytest.approx(10 * payload["rounds"][0]["margin"])
    assert (path / "manifest.json").stat().st_mtime_ns == first


def test_a_fleet_without_a_feature_has_no_change_to_estimate(out):
    made = run(scenario("feature=null"), out, False, quiet)
    assert made["estimates"] == []
    assert math.isnan(made["truth"]["change"])
    with pytest.raises(RunError, match=r"^small: there is no truth to validate against, it has no feature$"):
        validate(scenario("feature=null"), out, False, quiet)


def test_the_day_is_as_busy_as_the_scenario_says(payload):
    fleet = payload["fleet"]
    assert fleet["allocated_share"] == pytest.approx(0.86, abs=0.02)
    assert 0.2 < fleet["utilisation"] < fleet["allocated_share"]
    assert 90 < fleet["power_w"] < 400


def test_a_crossover_is_told_its_truth_alone(out):
    """Truth over the second halves of all hours, said slowly; WSMeter has no estimator for it."""
    hours = ["horizon_s=14400", "feature.rollout.start_s=7200", *TINY[:1], *TINY[2:]]
    asked = load("dvfs_crossover", settings([*hours, SMALL_CLUSTERS]))
    found = run(asked, out, False, quiet)
    assert found["estimates"] == []
    tables, means = open_run(found["run"]), []
    place = tables.table("instances").set_index("residence")["job"]
    for arm in ("nowhere", "everywhere"):
        counters = tables.table(f"truth_{arm}_counters")
        sums = counters[counters["window"].isin(["rest.000", "rest.001"])].groupby("residence")[
            ["instructions", "cpu_s", "wall_s"]
        ]
        stays = sums.sum()[lambda table: table["wall_s"] >= 0.1 * 3600.0]
        means.append((stays["instructions"] / stays["cpu_s"]).groupby(place).mean())
    quota = tables.table("jobs").set_index("job")["quota_vcpu"].reindex(means[0].index)
    assert found["truth"]["change"] == pytest.approx((quota * means[1]).sum() / (quota * means[0]).sum() - 1)
    assert tables.table("switches")["feature"].mean() == 0.5
    with pytest.raises(RunError, match="no test clusters can be drawn"):
        validate(asked, out, False, quiet)


def test_only_the_jobs_that_matter_are_measured(payload):
    found = open_run(payload["run"])
    asked = load("small", settings(["analyses.wsmeter.jobs=[heavyweight-01, heavyweight-02]"])).analyses.wsmeter
    names = found.table("jobs", ["job", "name"]).set_index("job")["name"]
    assert set(names[run_measurements(found, asked)["job"]]) == {"heavyweight-01", "heavyweight-02"}
    assert len(job_quotas(found, asked)) == 2
    missing = load("small", settings(["analyses.wsmeter.jobs=[nobody]"])).analyses.wsmeter
    with pytest.raises(ValueError, match="no job is named nobody"):
        run_measurements(found, missing)


def test_a_run_beside_another_compares_the_jobs_that_both_measure(out):
    small = [*TINY, SMALL_CLUSTERS, "population.heavyweights=3", "seed=4"]
    here = load("small", settings(small))
    made = run(here, out, False, quiet)
    found = open_run(made["run"])
    other = obtain(scenario(), out, False, quiet)
    compared = beside(found, other, here.analyses.wsmeter).payload()
    named = {row["name"]: row for row in compared["jobs"]}
    assert {"heavyweight-01", "heavyweight-02"} <= named.keys()
    for row in named.values():
        apart = abs(row["change"] - row["change_there"]) > row["margin"] + row["margin_there"]
        assert row["differs"] == apart
    same = beside(found, found, here.analyses.wsmeter).payload()
    assert not any(row["differs"] for row in same["jobs"])


def test_what_is_printed_fits_a_narrow_terminal(payload):
    console = Console(width=80, file=StringIO())
    measured = execution.measure(*reopen(Path(payload["run"])), Path(payload["run"]).parent, quiet)
    show(measured.section(), console)
    assert measured.brief().startswith("true change ")
    text = console.file.getvalue()
    assert "true change of the whole fleet" in text
    assert "wsmeter-widened" in text
    assert "…" not in text


def test_a_manifest_without_a_scenario_is_told(payload, tmp_path):
    copy = shutil.copytree(payload["run"], tmp_path / "copy")
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"resolved": {"seed": -1}}))
    with pytest.raises(RunError, match="the manifest holds no scenario"):
        reopen(copy)


SHORT = [*TINY, SMALL_CLUSTERS, "recording.loop=null", "analyses.wsmeter.draws=5"]


@pytest.mark.parametrize(
    ("setting", "note"),
    [
        (
            "feature.rollout.start_s=3600",
            r"the feature is on where it goes from 60 min on, in 50.0% of what is measured",
        ),
        ("feature.rollout.waves=2", r"the feature is on where it goes from 60 min on, in 50.0% of what is measured"),
        ("feature.rollout.share=1", "no estimates: every machine has the feature"),
    ],
)
def test_what_estimates_lack_is_told(setting, note, tmp_path):
    scenario = load("small", settings([*SHORT, setting]))
    told = execution.run(scenario, tmp_path, False, lambda *_: None)
    assert [text.startswith(note) for text in told.notes] == [True]
    if "share" not in setting:
        judged = validate(scenario, tmp_path, False, lambda *_: None)
        assert judged.notes == told.notes == tuple(judged.payload()["notes"])


def test_nothing_is_lacking_where_the_feature_is_on_in_the_window_that_is_measured(tmp_path):
    half = "recording.windows=[{name: late, start_s: 3600, end_s: 7200}]"
    late = ["feature.rollout.start_s=3600", half, "analyses.wsmeter.window=late"]
    assert execution.run(load("small", settings([*SHORT, *late])), tmp_path, False, lambda *_: None).notes == ()


def test_a_fleet_of_one_epoch_has_no_picture_of_its_day(tmp_path):
    told = execution.run(load("small", settings([*SHORT, "epoch_s=7200"])), tmp_path, False, lambda *_: None)
    assert {file.stem for file in told.figures} == {"estimates"}


def test_pictures_are_the_same_bytes_for_the_same_figure(payload, tmp_path):
    epochs = open_run(payload["run"]).table("epochs")
    first = [file.read_bytes() for file in save(draw_day(epochs, 3840.0), tmp_path / "one")]
    assert first == [file.read_bytes() for file in save(draw_day(epochs, 3840.0), tmp_path / "two")]
    assert all(first)


def test_the_timeline_of_a_run_is_that_of_its_world(payload):
    found = open_run(payload["run"])
    stays = found.table("instances")
    world = scenario()
    machines = build_machines(world)
    timeline = plan_day(world, machines, build_jobs(world, machines))
    assert stays["machine"].tolist() == timeline.machine.tolist()
