"""`wsc run` and `wsc validate` of a profiled fleet: what samples say beside the truth, and how often that is right."""

import json
import math
import re
import shutil
from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

from analysis.profiling.database import Database
from analysis.profiling.query import Query
from analysis.profiling.storage import ProfileError
from analysis.statistics import NotEnoughDataError
from scenarios.commands.app import app
from scenarios.files.loader import load, settings
from scenarios.profiling.collectors import Looks
from scenarios.profiling.profiled import first_and_last, within_jobs
from scenarios.profiling.validate import judged, summary
from scenarios.runs import parts
from scenarios.runs.execution import measure, obtain, reopen, run, validate
from scenarios.runs.parallel import spread
from scenarios.runs.rundir import RunError
from scenarios.views.terminal import dumps, show

SHORT = [
    "fleet.machines=20",
    "fleet.machines_per_rack=2",
    "population.jobs=20",
    "population.common_jobs=12",
    "population.heavyweights=4",
    "profiling.collector.round_s=7200",
    "analyses.profiling.top_functions=40",
    "analyses.profiling.draws=2",
]


def quiet(_what, _share):
    pass


def scenario(*more):
    return load("profiled_small", settings([*SHORT, *more]))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def profiled(out):
    return run(scenario(), out, False, quiet)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("profiling.collector.failure_share=1", "48 failed"),
        ("profiling.collector.one_in=9999", "none was"),
    ],
)
def test_of_a_fleet_in_which_no_visit_is_answered_that_is_said(setting, told, tmp_path):
    with pytest.raises(ProfileError, match=f"no visit was answered, so nothing is known of what ran: {told}"):
        run(scenario(setting), tmp_path, False, quiet)


@pytest.fixture(scope="module")
def payload(profiled):
    return profiled.payload()


def text(conclusion):
    console = Console(width=100, file=StringIO())
    show(conclusion.section(), console)
    return console.file.getvalue()


def test_the_payload_has_every_key_of_the_contract(payload):
    keys = {"kind", "run", "scenario", "seed", "counts", "events", "visits", "stacks", "functions", "applications"}
    assert keys | {"unsymbolised_share", "overhead_share", "core_seconds", "rollouts", "figures"} <= payload.keys()
    assert payload["kind"] == "profile"
    assert {"machines", "jobs", "days", "visits", "processes", "builds", "locations"} <= payload["counts"].keys()
    assert {row["event"] for row in payload["events"]} >= {"cycles", "instructions", "llc_misses", "mispredictions"}
    assert json.loads(dumps(payload))["seed"] == 1


def test_what_the_samples_say_is_near_the_truth(payload):
    functions = pd.DataFrame(payload["functions"])
    assert (functions["share"] - functions["true"]).abs().sum() < 0.1
    assert functions["share"].is_monotonic_decreasing
    assert abs(payload["core_seconds"]["core_s"] / payload["core_seconds"]["monitor_s"] - 1) < 0.1
    cpi = pd.DataFrame(payload["applications"])
    assert (cpi["cpi"] / cpi["cpi_true"] - 1).abs().median() < 0.1
    assert 0 < payload["overhead_share"] < 1e-4
    assert 0.5 < payload["stacks"]["share"] <= 1
    assert 0 <= payload["unsymbolised_share"] < 0.2


def test_rollouts_reach_every_machine_that_they_should(payload):
    shares = {(row["dimension"], row["name"]): (row["first"], row["last"]) for row in payload["rollouts"]}
    assert shares["kernel", "6.6.30"][1] == 1.0
    assert shares["compiler", "clang-17"][0] == 1.0
    assert shares["platform", "haswell_2698v3"][1] < shares["platform", "haswell_2698v3"][0]
    for end in (0, 1):
        assert sum(both[end] for (dimension, _), both in shares.items() if dimension == "platform") == pytest.approx(1)


def test_a_day_without_samples_has_no_share_of_a_rollout():
    sampled = pd.DataFrame({"dimension": "kernel", "day": [1, 1], "name": ["new", "old"], "share": [0.25, 0.75]})
    assert [(row.first, row.last) for row in first_and_last(sampled, 2)] == [
        (pytest.approx(math.nan, nan_ok=True), share) for share in (0.25, 0.75)
    ]


def test_a_day_without_samples_is_told_as_such(profiled):
    sampled = pd.DataFrame({"dimension": "kernel", "day": [1], "name": ["6.6.30"], "share": [1.0]})
    told = text(replace(profiled, rollouts=first_and_last(sampled, 2)))
    assert re.search(r"kernel +6\.6\.30 +no samples +100\.0%", told)


def test_totals_are_the_same_before_and_after_symbolising(payload):
    _, found = reopen(payload["run"])
    raw, named = (found.table(name).groupby("event")["count"].sum() for name in ("raw_samples", "samples"))
    pd.testing.assert_series_equal(raw, named, check_names=False)


def test_the_database_sums_what_the_tables_say(payload):
    _, found = reopen(payload["run"])
    rows = found.table("samples").query("event == 'cycles'").merge(found.table("processes"), on="process")
    rows = rows.merge(found.table("visits"), on="visit").query("collection == 'fleet' and job >= 0")
    rates = found.table("rates").query("event == 'cycles' and collection == 'fleet'").set_index("platform")
    stands_for = (rates["period"] * rates["duty"]).to_dict()
    columns = (rows[name].tolist() for name in ("count", "platform", "weight"))
    value = sum(count * int(stands_for[platform]) * weight for count, platform, weight in zip(*columns, strict=True))
    with Database([found.path]) as database:
        assert database.total(Query(where=within_jobs(database))) == (int(rows["count"].sum()), value)


def test_a_copy_without_the_truth_says_the_same_but_for_the_truth(profiled, payload, tmp_path):
    copy = shutil.copytree(payload["run"], tmp_path / "copy", ignore=shutil.ignore_patterns("truth_*", "*.png"))
    again = measure(*reopen(copy), tmp_path, quiet)
    for blind, sighted in ((again.functions, profiled.functions), (again.applications, profiled.applications)):
        unknown = [column for column in blind if column in {"true", "cpi_true"}]
        assert blind[unknown].isna().all(axis=None)
        pd.testing.assert_frame_equal(blind.drop(columns=unknown), sighted.drop(columns=unknown))
    assert again.facts.core_seconds == profiled.facts.core_seconds
    assert "copy_user" in text(again)


def test_text_shows_functions_in_brackets_as_they_are(profiled):
    row = profiled.functions.head(1).assign(function="[unknown]", image="[generated]", true=math.nan)
    shown = text(replace(profiled, functions=row))
    assert "[unknown]" in shown
    assert "[generated]" in shown


def test_the_command_prints_json_and_takes_the_run_that_is_there(payload, out):
    options = [f"--set={one}" for one in SHORT]
    made = CliRunner().invoke(app, ["run", "profiled_small", *options, "--out", str(out), "--json"])
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout)["run"] == payload["run"]


def test_an_interrupted_run_leaves_nothing(tmp_path):
    def interrupt(what, _share):
        if what == "symbolising":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        obtain(scenario("horizon_s=86400", "feature=null", "profiling.kernel=null"), tmp_path, False, interrupt)
    assert list(tmp_path.iterdir()) == []


def test_collectors_are_judged_once_and_kept(payload, out, monkeypatch):
    seeds = []

    def alone(function, items):
        seeds.extend(items)
        return spread(function, items, workers=1)

    monkeypatch.setattr(parts, "spread", alone)
    concluded = validate(scenario(), out, False, quiet)
    first = concluded.payload()
    assert (first["run"], first["draws"], seeds) == (payload["run"], 2, [0, 1])
    assert concluded.brief().startswith("95% intervals held the truth: functions ")
    assert validate(scenario("analyses.profiling.draws=1"), out, False, quiet).judged.draws == 1
    assert seeds == [0, 1]
    assert first["functions"]["judged"] == 40
    assert first["functions"]["coverage"] > 0.7
    shown = text(concluded)
    assert "top 40 functions" in shown
    assert "core-seconds" in shown


def test_without_truth_there_is_nothing_to_validate_against(tmp_path):
    with pytest.raises(RunError, match=r"recording\.truth is false"):
        validate(scenario("recording.truth=false"), tmp_path, False, quiet)


def test_a_look_counts_what_a_run_of_the_same_collector_would(tmp_path):
    """Draws differ, as the run counts more events; the number of samples by less than six standard deviations."""
    asked = scenario("profiling.releases.unstored_share=0")
    look = Looks.of(asked.world).look(0)
    found = obtain(asked, tmp_path, False, quiet)
    ours, theirs = look.visits.drop(columns="overhead_cycles"), found.table("visits").drop(columns="overhead_cycles")
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)
    with Database([found.path]) as database:
        where = within_jobs(database)
        samples, _ = database.total(Query(where=where))
        assert abs(look.functions["samples"].sum() - samples) < 6 * math.sqrt(samples)
        shares = database.query(Query(by=("image", "function"), where=where)).set_index(["image", "function"])["share"]
    mine = look.functions.groupby(["image", "function"])["value"].sum()
    mine = (mine / mine.sum()).reindex(shares.index, fill_value=0.0)
    assert (mine - shares).abs().sum() < 0.6
    assert np.corrcoef(mine, shares)[0, 1] > 0.98


def test_of_few_draws_no_interval_of_coverage_is_told(payload, out):
    draw = judged(scenario(), out / payload["run"], 3)
    few, many = summary([draw] * 4), summary([draw] * 5)
    assert math.isnan(few.functions.coverage_low)
    assert many.functions.coverage_low == many.functions.coverage_high


def test_a_collector_with_one_visit_that_answered_has_no_core_seconds_and_is_told_apart(payload, out, monkeypatch):
    draw = judged(scenario(), out / payload["run"], 0)
    assert summary([draw]).core_seconds.lacking() == ""

    def too_few(*_arguments, **_settings):
        raise NotEnoughDataError(2, 1, "visits that answered")

    monkeypatch.setattr("scenarios.profiling.validate.core_seconds", too_few)
    seconds = summary([draw, judged(scenario(), out / payload["run"], 0)]).core_seconds
    covered = draw["core_seconds"]["covered"]
    assert (seconds.coverage, seconds.given, seconds.given_coverage) == (covered / 2, 0.5, covered)
    assert seconds.half_width == draw["core_seconds"]["half_width"]
    assert seconds.lacking().startswith("50.0% of the collectors have no core-seconds")


def test_a_collector_of_which_no_visit_answers_is_named(payload, out):
    silent = scenario("profiling.collector.failure_share=1")
    with pytest.raises(RunError, match=r"^profiled_small: no visit of collector 0 answered, .*failure_share"):
        judged(silent, out / payload["run"], 0)


def test_cpi_without_an_interval_is_a_miss_and_told_apart(payload, out):
    draw = judged(scenario(), out / payload["run"], 3)
    assert summary([draw]).cpi.lacking() == ""
    half = {"covered": [1, 0, 0, 0], "given": [1, 1, 0, 0], "error": 0.1}
    ratios = summary([draw | {"cpi": half}]).cpi
    assert (ratios.coverage, ratios.given, ratios.given_coverage) == (0.25, 0.5, 0.5)
    assert ratios.lacking().startswith("50.0% of the CPI have no interval")
