"""`wsc predict` and `wsc select`: answers from a log alone, and one clear message for whatever is wrong with it."""

import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.crossplatform.choice import compare
from analysis.crossplatform.evidence import Evidence
from analysis.crossplatform.logs import read
from analysis.crossplatform.published import published
from models.platforms import PLATFORMS
from scenarios import cli
from scenarios.execution import obtain
from scenarios.loader import load
from scenarios.output import dumps
from scenarios.predict import Asked, predict
from scenarios.select import select
from scenarios.source import settings

TO = ("pres", "pd4", "rome_7742")
TYPES = {"buy": 6e6, "see": 2e6, "bid": 12e6}


def log_table(intervals=120, utilisation=True, response=True):
    """A log of three types whose mix wanders, on a machine with a service time of half a microsecond a thousand."""
    rng = np.random.default_rng(4)
    wander = np.exp(0.8 * np.sin(np.arange(intervals)[:, None] / np.array([9.0, 17.0, 31.0])))
    requests = rng.poisson(40 * wander)
    work = requests @ np.array(list(TYPES.values()))
    columns = {"start_s": 30.0 * np.arange(intervals)}
    columns |= {f"requests_{name}": requests[:, i] for i, name in enumerate(TYPES)}
    columns |= {"instructions": work, "l1_misses": 0.05 * work, "l2_misses": 0.02 * work}
    busy_s = work * rng.normal(1.0, 0.01, intervals) * 5e-9
    if response:
        columns["response_time_s"] = 0.03 + 2 * busy_s / requests.sum(axis=1)
    if utilisation:
        columns["utilisation"] = busy_s / 30.0
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    file = tmp_path_factory.mktemp("log") / "service.csv"
    log_table().to_csv(file, index=False)
    return file


def without(tmp_path, **left_out):
    log_table(**left_out).to_csv(tmp_path / "some.csv", index=False)
    return tmp_path / "some.csv"


def wsc(*arguments):
    return CliRunner().invoke(cli.app, [*map(str, arguments)])


def test_the_payloads_have_every_key_of_the_contract(log):
    made = json.loads(wsc("predict", log, "--from", "piii", "--to", ",".join(TO), "--json").stdout)
    assert (made["kind"], made["from"], made["method"]) == ("predict", "piii", "testbed")
    assert made["intervals"] == 120
    assert [row["platform"] for row in made["targets"]] == list(TO)
    keys = {"service_time_s", "service_low", "service_high", "response_time_s", "low", "high"}
    assert all(keys <= row.keys() for row in made["targets"])
    ranked = json.loads(wsc("select", log, "--from", "piii", "--bound", "150ms", "--json").stdout)
    assert (ranked["kind"], ranked["bound_s"]) == ("select", 0.15)
    assert [row["rank"] for row in ranked["platforms"]] == list(range(1, len(PLATFORMS) + 1))
    keys = {"platform", "throughput_per_s", "low", "high", "watts", "throughput_per_watt", "probability_best"}
    assert all(keys <= row.keys() for row in ranked["platforms"])


def test_a_prediction_for_the_platform_of_the_log_is_what_was_measured_there(log):
    table = log_table()
    requests = table[[f"requests_{name}" for name in TYPES]].to_numpy().sum()
    measured_s = float(table["utilisation"].sum()) * 30.0 / requests
    (row,) = predict(Asked(log, "piii", ("piii",)))["targets"]
    assert row["service_time_s"] == pytest.approx(measured_s, rel=0.03)
    assert row["service_low"] <= measured_s <= row["service_high"]
    assert row["processor_s"] == 2 * row["service_time_s"]
    assert row["utilisation"] == pytest.approx(float(table["utilisation"].mean()), rel=0.03)


def test_a_prediction_is_that_of_the_method_for_the_mean_mix(log):
    made = predict(Asked(log, "piii", TO, method="published"))
    known = read(log)
    predictor = published(Evidence("piii", {"piii": known}, PLATFORMS))
    for row in made["targets"]:
        said = predictor(PLATFORMS[row["platform"]], known.counts.mean(axis=0)[None], 30.0)
        assert row["service_time_s"] == pytest.approx(float(said.service_time_s[0]), rel=1e-9)
        assert math.isnan(row["service_low"])
    assert made["requests_per_s"] == pytest.approx(known.requests.mean() / 30.0)


def test_a_ranking_is_that_of_throughput_per_watt(log):
    made = select(Asked(log, "piii", TO, method="published"), 0.2)
    known = read(log)
    predictor = published(Evidence("piii", {"piii": known}, PLATFORMS))
    wanted = compare(predictor, {name: PLATFORMS[name] for name in TO}, known.counts.sum(axis=0), 0.2)
    assert [row["platform"] for row in made["platforms"]] == wanted["platform"].tolist()
    worth = [row["throughput_per_s"] / PLATFORMS[row["platform"]].tdp_w for row in made["platforms"]]
    assert worth == sorted(worth, reverse=True)


def test_a_log_without_utilisation_is_predicted_as_published_and_says_so(tmp_path):
    file = without(tmp_path, utilisation=False)
    made = predict(Asked(file, "piii", TO))
    assert made["method"] == "published"
    assert any(note.startswith("no utilisation in the log: method published") for note in made["notes"])
    result = wsc("predict", file, "--from", "piii", "--to", "pres", "--method", "calibrated")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{file}: utilisation is not in the log of piii")


def test_a_log_without_response_times_says_nothing_of_them(tmp_path):
    file = without(tmp_path, response=False)
    assert all(math.isnan(row["response_time_s"]) for row in predict(Asked(file, "piii", TO))["targets"])
    made = select(Asked(file, "piii", TO), 0.15)
    assert any("throughputs are unknown" in note for note in made["notes"])
    assert wsc("select", file, "--from", "piii", "--bound", "1s", "--to", "pres").exit_code == 0


def test_a_stationary_mix_is_told(tmp_path):
    table = log_table()
    steady = np.random.default_rng(5).poisson(40, (120, 3))
    work = steady @ np.array(list(TYPES.values()))
    table[[f"requests_{name}" for name in TYPES]] = steady
    table[["instructions", "l1_misses", "l2_misses"]] = work[:, None] * np.array([1.0, 0.05, 0.02])
    table.to_csv(tmp_path / "steady.csv", index=False)
    (note,) = predict(Asked(tmp_path / "steady.csv", "piii", TO, method="published"))["notes"]
    assert note.startswith("the mix does not identify the types: condition number")


def test_public_scores_come_from_a_file(log, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("platform,score_per_s,instructions\npiii,10,4e7\npres,40,\n")
    asked = Asked(log, "piii", ("pres", "pd4"), benchmarks=scores, method="benchmark")
    pres, pd4 = predict(asked)["targets"]
    (here,) = predict(Asked(log, "piii", ("piii",), benchmarks=scores, method="benchmark"))["targets"]
    assert pres["service_time_s"] == pytest.approx(here["service_time_s"] / 4, rel=1e-9)
    assert math.isnan(pd4["service_time_s"])
    scores.write_text("platform,score_per_s\npiii,0\npiii,x\n")
    result = wsc("predict", log, "--from", "piii", "--to", "pres", "--benchmarks", scores)
    assert result.exit_code == 2
    assert f"{scores}:2:2: score_per_s: should be above 0, got" in result.stderr
    assert f"{scores}:3:1: platform: should be there once" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--from", "pii", "--to", "pres"), 'there is no platform "pii" (did you mean piii?)'),
        (("--from", "piii", "--to", "pres,press"), 'there is no platform "press" (did you mean pres?)'),
        (("--from", "piii", "--to", "pres,pres"), 'platform "pres" is named twice'),
        (
            ("--from", "piii", "--to", "pres", "--method", "publish"),
            '--method:1:1: there is no such method (did you mean published?), got "publish"',
        ),
    ],
)
def test_wrong_names_are_one_line_and_2(log, arguments, told):
    result = wsc("predict", log, *arguments)
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (2, "", told)


def test_a_bound_that_is_no_time_is_told(log):
    result = wsc("select", log, "--from", "piii", "--bound", "fast")
    assert (result.exit_code, result.stderr.splitlines()) == (
        2,
        ['--bound:1:1: should be a time above 0, such as 60s, 5min or 200ms, got "fast"'],
    )


def test_faults_of_the_log_come_all_at_once_with_their_places(tmp_path):
    table = log_table(20).astype(object)
    table.loc[2, "instructions"] = -5
    table.loc[4, "requests_buy"] = "x"
    table.loc[6, "utilisation"] = 1.5
    table.to_csv(tmp_path / "bad.csv", index=False)
    result = wsc("predict", tmp_path / "bad.csv", "--from", "piii", "--to", "pres")
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    for line, column in ((4, "instructions"), (6, "requests_buy"), (8, "utilisation")):
        assert any(
            text.startswith(f"{tmp_path}/bad.csv:{line}:") and column in text for text in result.stderr.splitlines()
        )


@pytest.mark.parametrize(
    "damage",
    [
        lambda table: table.drop(columns=[name for name in table if name.startswith("requests_")]),
        lambda table: table.assign(**{name: 0 for name in table if name.startswith("requests_")}),
        lambda table: table.head(3),
        lambda table: table.head(0),
    ],
    ids=["no types", "no requests", "too few intervals", "empty"],
)
def test_a_log_that_says_too_little_is_refused_without_a_traceback(tmp_path, damage):
    file = tmp_path / "poor.csv"
    damage(log_table()).to_csv(file, index=False)
    for command, bound in (("predict", ()), ("select", ("--bound", "1s"))):
        result = wsc(command, file, "--from", "piii", "--to", "pres", *bound)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"{file}:")


def test_a_missing_file_is_told(tmp_path):
    result = wsc("predict", tmp_path / "no.csv", "--from", "piii", "--to", "pres")
    assert (result.exit_code, result.stderr) == (
        2,
        f"{tmp_path}/no.csv: cannot be read, got No such file or directory\n",
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    sets = settings(["horizon_s=3600", "application.types=4", "platforms=[piii, pres]"])
    return obtain(load("cross_rubis", sets), tmp_path_factory.mktemp("runs"), False, lambda _what, _share: None).path


def test_the_log_of_a_run_is_read_from_its_folder_without_its_truth(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy", ignore=shutil.ignore_patterns("truth_*"))
    made = predict(Asked(copy, "pres", ("piii",), method="benchmark"))
    assert dumps(made) == dumps(predict(Asked(run, "pres", ("piii",), method="benchmark")))
    assert made["targets"][0]["service_time_s"] > 0
    result = wsc("predict", copy, "--from", "pd4", "--to", "piii")
    assert result.exit_code == 2
    assert "pd4" in result.stderr


def test_a_run_of_another_kind_is_told(tmp_path):
    (tmp_path / "manifest.json").write_text('{"kind": "queue", "tables": {}}')
    result = wsc("predict", tmp_path, "--from", "piii", "--to", "pres")
    assert (result.exit_code, result.stderr) == (
        2,
        f"{tmp_path}: is a run of kind queue, which has no table service_counts\n",
    )


def test_ones_own_platform_is_predicted_for(log, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "faster: {extends: pres, base_frequency_hz: 3.0e+9, max_frequency_hz: 3.0e+9}\n"
    )
    mine = ("--platforms", tmp_path / "mine.yaml")
    result = wsc("predict", log, "--from", "piii", "--to", "pres,faster", *mine, "--method", "cycle_mix", "--json")
    assert result.exit_code == 0, result.stderr
    slow, fast = json.loads(result.stdout)["targets"]
    assert slow["service_time_s"] / fast["service_time_s"] == pytest.approx(3.0 / 2.2)
    listed = json.loads(wsc("platforms", "faster", *mine, "--json").stdout)
    assert [one["name"] for one in listed] == ["faster"]


def test_what_is_printed_fits_a_narrow_terminal(log):
    for command, more in (("predict", ("--to", ",".join(PLATFORMS))), ("select", ("--bound", "150ms"))):
        result = CliRunner().invoke(cli.app, [command, str(log), "--from", "piii", *more], env={"COLUMNS": "80"})
        assert result.exit_code == 0
        assert "graniterapids_6980p" in result.stdout
        assert "…" not in result.stdout
