"""`wsc run` and `wsc validate` of a cross-platform scenario: predictions beside what the platforms really did."""

import json
import math
import re
import shutil
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from scenarios.commands.app import app
from scenarios.files.loader import load, settings
from scenarios.runs.execution import measure, obtain, reopen, run, validate
from scenarios.views.terminal import dumps, show

SHORT = [
    "horizon_s=7200",
    "application.types=4",
    "platforms=[piii, pres, pd4, xeon_1h_1c_1p]",
    "analyses.crossplatform.methods=[cycle_mix, published, testbed]",
    "analyses.crossplatform.choices=2",
]
NINE = (
    "cycle_scalar", "cycle_mix", "benchmark", "published", "calibrated", "shrunken", "testbed", "network", "modern",
)  # fmt: skip


def quiet(_what, _share):
    pass


def scenario(*more):
    return load("cross_rubis", settings([*SHORT, *more]))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def measured(out):
    return run(scenario(), out, False, quiet)


@pytest.fixture(scope="module")
def payload(measured):
    return measured.payload()


def text(conclusion):
    console = Console(width=80, file=StringIO())
    show(conclusion.section(), console)
    return console.file.getvalue()


def test_the_payload_has_every_key_of_the_contract(payload):
    assert {"kind", "run", "scenario", "seed", "counts", "from", "outside_hull", "methods", "choices"} <= payload.keys()
    assert (payload["kind"], payload["from"]) == ("cross_platform", "piii")
    assert {"requests", "intervals", "platforms"} <= payload["counts"].keys()
    keys = {"method", "target", "service_error", "response_error", "coverage", "half_width"}
    assert all(keys <= row.keys() for row in payload["methods"])
    pairs = [(row["method"], row["target"]) for row in payload["methods"]]
    assert pairs[:3] == [("cycle_mix", "pres"), ("cycle_mix", "pd4"), ("cycle_mix", "xeon_1h_1c_1p")]
    assert {name for name, _ in pairs} == {"cycle_mix", "published", "testbed"}
    assert json.loads(dumps(payload))["seed"] == 1


def test_predictions_are_in_the_right_order_of_magnitude(payload):
    assert all(0 < row["service_error"] < 2 for row in payload["methods"])
    assert {row["platform"] for row in payload["platforms"]} == {"piii", "pres", "pd4", "xeon_1h_1c_1p"}


def test_a_copy_without_the_truth_gives_the_same_intervals_and_no_errors(measured, payload, tmp_path):
    copy = shutil.copytree(payload["run"], tmp_path / "copy", ignore=shutil.ignore_patterns("truth_*", "errors.*"))
    remeasured = measure(*reopen(copy), tmp_path, quiet)
    again = remeasured.payload()
    widths = ([row["half_width"] for row in made["methods"]] for made in (payload, again))
    assert next(widths) == pytest.approx(next(widths), nan_ok=True)
    assert all(math.isnan(row["service_error"]) for row in again["methods"])
    assert (again["platforms"], again["figures"]) == ([], [])
    printed = text(remeasured)
    width = np.median([row["half_width"] for row in payload["methods"] if row["method"] == "testbed"])
    assert f"half-width of 90% intervals of service time: testbed {width:.1%}\n" in printed
    assert "median error of service time" not in printed
    assert "wrong" not in printed
    assert "wrong" in text(measured)
    (note,) = [note for note in again["notes"] if note.startswith("the truth is not there")]
    assert note == (
        "the truth is not there (no truth_service and no truth_throughput): errors of predictions and losses of "
        "choices are unknown"
    )
    assert not [note for note in payload["notes"] if "truth" in note]
    assert "median error of service time" in text(measured)


def test_a_table_that_is_cut_off_or_gone_is_one_line_and_2(payload, tmp_path):
    copy = shutil.copytree(payload["run"], tmp_path / "copy")
    file = copy / "service_log.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    told = CliRunner().invoke(app, ["run", str(copy)])
    said = f"{copy}: table service_log cannot be read: is service_log.parquet cut off?\n"
    assert (told.exit_code, told.stderr) == (2, said)
    file.unlink()
    told = CliRunner().invoke(app, ["run", str(copy)])
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)
    assert told.stderr.startswith(f"{copy}: no table service_log; there are benchmarks, ")


def test_other_analyses_use_the_same_run_and_another_world_does_not(payload, out):
    assert str(obtain(scenario("analyses.crossplatform.from=pres"), out, False, quiet).path) == payload["run"]
    assert str(obtain(scenario("load.volume=2"), out, False, quiet).path) != payload["run"]


def test_predictions_may_start_from_another_platform_that_was_measured(payload, out):
    other = run(scenario("analyses.crossplatform.from=pres"), out, False, quiet)
    assert {row["target"] for row in other.world["methods"]} == {"piii", "pd4", "xeon_1h_1c_1p"}


def test_what_is_printed_fits_a_narrow_terminal(measured):
    nine = [row | {"method": name} for name in NINE for row in measured.world["methods"][:3]]
    choices = [{"method": name, "wrong": 0.123, "loss": 0.045} for name in NINE]
    notes = ["network: one log [of two] is there"]
    wide = replace(measured, world=measured.world | {"methods": nine, "choices": choices, "notes": notes})
    for conclusion in (measured, wide):
        printed = text(conclusion)
        assert "…" not in printed
        assert "xeon_1h_1c_1p" in printed
    assert "note: network: one log [of two] is there" in text(wide)


@pytest.fixture(scope="module")
def validated(out):
    return validate(scenario("analyses.crossplatform.worlds=2"), out, False, quiet)


@pytest.fixture(scope="module")
def judged(validated):
    return validated.payload()


def test_answers_have_the_error_of_every_method_in_a_line(measured, validated):
    assert measured.brief().startswith("error of service time from ")
    assert validated.brief().startswith("error of service time in 2 worlds: cycle_mix ")


def test_validate_says_how_every_method_did_over_worlds(judged):
    assert (judged["kind"], judged["worlds"], judged["seed"]) == ("cross_platform", 2, 1)
    rows = {row["method"]: row for row in judged["methods"]}
    assert list(rows) == ["cycle_mix", "published", "testbed"]
    assert 0 <= rows["testbed"]["coverage"] <= 1
    assert rows["testbed"]["half_width"] > 0
    assert {row["target"] for row in judged["targets"]} == {"pres", "pd4", "xeon_1h_1c_1p"}
    assert json.loads(dumps(judged))["best"]["rivals"] == ["cycle_mix"]


def test_the_first_world_is_that_of_the_run(judged, payload, out):
    (only,) = validate(scenario("analyses.crossplatform.worlds=1"), out, False, quiet).worlds["methods"][2:]
    of_run = [row["service_error"] for row in payload["methods"] if row["method"] == "testbed"]
    assert only["service_error"] == pytest.approx(sorted(of_run)[1], rel=1e-12)


def test_what_validate_prints_fits_a_narrow_terminal(validated):
    rows = [validated.worlds["methods"][2] | {"method": name} for name in NINE]
    targets = [row | {"method": name} for name in NINE for row in validated.worlds["targets"][:3]]
    for conclusion in (validated, replace(validated, worlds=validated.worlds | {"methods": rows, "targets": targets})):
        printed = text(conclusion)
        assert "…" not in printed
        assert "testbed errs less than all of cycle_mix in" in printed
        assert re.search(r"than each in (\d+)% at least: cycle_mix \1% ", " ".join(printed.split()))
