"""`wsc predict` and `wsc select`: answers from a log alone, and one clear message for whatever is wrong with it."""

import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.crossplatform.choice import compare
from analysis.crossplatform.evidence import Evidence, Prediction, PredictionMethod
from analysis.crossplatform.logs import read
from analysis.crossplatform.published import published
from analysis.crossplatform.tailored import tailored
from models.platforms import PLATFORMS
from scenarios.commands.app import app
from scenarios.crossplatform import calibration
from scenarios.crossplatform.calibration import ServiceQuestion, calibrate
from scenarios.crossplatform.predict import predict
from scenarios.crossplatform.select import select
from scenarios.files.loader import load, settings
from scenarios.runs.execution import obtain
from scenarios.views.terminal import dumps

TO = ("pres", "pd4", "rome_7742")
ARM = "altra_q80_30"
ARMS = tuple(name for name, sheet in PLATFORMS.items() if sheet.isa == "arm64")
X86 = tuple(name for name in PLATFORMS if name not in ARMS)
TYPES = {"buy": 6e6, "see": 2e6, "bid": 12e6}


def predicted(question):
    return predict(question).payload()


def selected(question, bound_s):
    return select(question, bound_s).payload()


def log_table(intervals=120, utilisation=True, response=True):
    """A log of three types whose mix wanders, on a machine with a service time of half a microsecond a thousand."""
    rng = np.random.default_rng(4)
    wander = np.exp(0.8 * np.sin(np.arange(intervals)[:, None] / np.array([9.0, 17.0, 31.0])))
    requests = rng.poisson(40 * wander)
    work = requests @ np.array(list(TYPES.values()))
    columns = {"start_s": 30.0 * np.arange(intervals)}
    columns |= {f"requests_{name}": requests[:, i] for i, name in enumerate(TYPES)}
    columns |= {"instructions": work, "l1_misses": 0.05 * work, "l2_misses": 0.02 * work}
    busy_s = work * rng.normal(1.0, 0.01, intervals) * 4e-9
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
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_the_payloads_have_every_key_of_the_contract(log):
    made = json.loads(wsc("predict", log, "--from", "piii", "--to", ",".join(TO), "--json").stdout)
    assert (made["kind"], made["from"], made["method"]) == ("predict", "piii", "testbed")
    assert made["intervals"] == 120
    assert [row["platform"] for row in made["targets"]] == list(TO)
    keys = {"service_time_s", "service_low", "service_high", "response_time_s", "low", "high"}
    assert all(keys <= row.keys() for row in made["targets"])
    ranked = json.loads(wsc("select", log, "--from", "piii", "--bound", "150ms", "--json").stdout)
    assert (ranked["kind"], ranked["bound_s"]) == ("select", 0.15)
    assert [row["rank"] for row in ranked["platforms"]] == list(range(1, len(X86) + 1))
    assert {row["platform"] for row in ranked["platforms"]} == set(X86)
    assert ranked["not_ranked"] == list(ARMS)
    keys = {"platform", "throughput_per_s", "low", "high", "watts", "throughput_per_watt", "probability_best"}
    assert all(keys <= row.keys() for row in ranked["platforms"])


def test_a_log_with_columns_of_its_own_and_a_query_are_answered_alike(log, tmp_path):
    names = {"start_s": "ts", "instructions": "instr", "l1_misses": "l1d", "response_time_s": "rt ms"}
    table = log_table().rename(columns=names)
    table.assign(**{"rt ms": 1e3 * table["rt ms"]}, host="a").to_csv(tmp_path / "own.csv", index=False)
    columns = "  start_s: ts\n  instructions: instr\n  l1_misses: l1d\n  response_time_ms: '\"rt ms\"'\n"
    (tmp_path / "own.columns.yaml").write_text("columns:\n" + columns)
    options = ("--from", "piii", "--to", "pres", "--json")
    wanted = json.loads(wsc("predict", log, *options).stdout)["targets"]
    own = json.loads(wsc("predict", tmp_path / "own.csv", *options).stdout)["targets"]
    queried = json.loads(wsc("predict", f"SELECT * FROM '{log}'", *options).stdout)["targets"]
    assert own == [pytest.approx(row) for row in wanted]
    assert queried == [pytest.approx(row) for row in wanted]
    (tmp_path / "own.columns.yaml").write_text("columns:\n  speed: 1\nperiod: 1d\nwhere: [1]\n")
    refused = wsc("predict", tmp_path / "own.csv", *options)
    assert refused.exit_code == 2
    assert "2:3: columns.speed: is no column of a service log" in refused.stderr
    assert "3:1: period: is about tables of observations" in refused.stderr
    assert "4:8: where: should be a text or a number, got [1]" in refused.stderr


def test_the_columns_of_a_run_are_ours(tmp_path):
    refused = wsc("predict", tmp_path, "--from", "piii", "--to", "pres", "--where", "start_s > 0")
    assert (refused.exit_code, "is a run's folder, whose columns are ours" in refused.stderr) == (2, True)


def test_a_prediction_for_the_platform_of_the_log_is_what_was_measured_there(log):
    table = log_table()
    requests = table[[f"requests_{name}" for name in TYPES]].to_numpy().sum()
    measured_s = float(table["utilisation"].sum()) * 30.0 / requests
    (row,) = predicted(ServiceQuestion(log, "piii", ("piii",)))["targets"]
    assert row["service_time_s"] == pytest.approx(measured_s, rel=0.03)
    assert row["service_low"] <= measured_s <= row["service_high"]
    assert row["processor_s"] == 2 * row["service_time_s"]
    assert row["utilisation"] == pytest.approx(float(table["utilisation"].mean()), rel=0.03)


def test_a_prediction_is_that_of_the_method_for_the_mean_mix(log):
    made = predicted(ServiceQuestion(log, "piii", TO, method="published"))
    known = read(log)
    predictor = published(Evidence("piii", {"piii": known}, PLATFORMS))
    for row in made["targets"]:
        said = predictor(PLATFORMS[row["platform"]], known.counts.mean(axis=0)[None], 30.0)
        assert row["service_time_s"] == pytest.approx(float(said.service_time_s[0]), rel=1e-9)
        assert math.isnan(row["service_low"])
    assert made["requests_per_s"] == pytest.approx(known.requests.mean() / 30.0)


def test_a_ranking_is_that_of_throughput_per_watt(log):
    made = selected(ServiceQuestion(log, "piii", TO, method="published"), 0.2)
    known = read(log)
    predictor = published(Evidence("piii", {"piii": known}, PLATFORMS))
    wanted = compare(predictor, {name: PLATFORMS[name] for name in TO}, known.counts.sum(axis=0), 0.2)
    assert [row["platform"] for row in made["platforms"]] == wanted["platform"].tolist()
    worth = [row["throughput_per_s"] / PLATFORMS[row["platform"]].tdp_w for row in made["platforms"]]
    assert worth == sorted(worth, reverse=True)


def test_a_log_without_utilisation_is_predicted_as_published_and_says_so(tmp_path):
    file = without(tmp_path, utilisation=False)
    made = predicted(ServiceQuestion(file, "piii", TO))
    assert made["method"] == "published"
    assert any(note.startswith("no utilisation in the log: method published") for note in made["notes"])
    result = wsc("predict", file, "--from", "piii", "--to", "pres", "--method", "calibrated")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{file}: utilisation is not in the log of piii")


def test_a_log_without_response_times_says_nothing_of_them(tmp_path):
    file = without(tmp_path, response=False)
    assert all(math.isnan(row["response_time_s"]) for row in predicted(ServiceQuestion(file, "piii", TO))["targets"])
    result = wsc("select", file, "--from", "piii", "--bound", "1s", "--to", "pres")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr == f"{file}: response times are not in the log: no throughput within a bound on them is known\n"
    )


def test_a_stationary_mix_is_told(tmp_path):
    table = log_table()
    steady = np.random.default_rng(5).poisson(40, (120, 3))
    work = steady @ np.array(list(TYPES.values()))
    table[[f"requests_{name}" for name in TYPES]] = steady
    table[["instructions", "l1_misses", "l2_misses"]] = work[:, None] * np.array([1.0, 0.05, 0.02])
    table["utilisation"] = work * 4e-9 / 30.0
    table.to_csv(tmp_path / "steady.csv", index=False)
    (note,) = predicted(ServiceQuestion(tmp_path / "steady.csv", "piii", TO, method="published"))["notes"]
    assert note.startswith("the mix does not identify the types: it varies only ")
    assert note.endswith("; the prediction is for this mix, not for others")


def test_exports_that_were_put_together_a_row_off_are_told(tmp_path):
    table = log_table()
    counters = ["instructions", "l1_misses", "l2_misses"]
    table[counters] = table[counters].shift(1)
    table.dropna().to_csv(tmp_path / "late.csv", index=False)
    notes = predicted(ServiceQuestion(tmp_path / "late.csv", "piii", ("pres",)))["notes"]
    assert [note for note in notes if "own row" in note] == [
        "instructions, l1_misses, l2_misses: numbers follow the requests one interval earlier far better than those of "
        "their own row; put together the rows of the same times"
    ]


def doubts_of(tmp_path, **changed):
    log_table().assign(**changed).to_csv(tmp_path / "doubtful.csv", index=False)
    question = ServiceQuestion(tmp_path / "doubtful.csv", "piii", ("piii",), method="calibrated")
    return [note for note in calibrate(question).notes if note.startswith(("the log's mean", "utilisation and"))]


def test_response_times_shorter_than_the_cpu_time_of_a_request_are_told(tmp_path):
    table = log_table()
    assert doubts_of(tmp_path) == []
    (note,) = doubts_of(tmp_path, response_time_s=table["response_time_s"] / 1000)
    assert "is shorter than its CPU time per request on piii" in note
    assert "response_time_s" in note
    sampled = {f"requests_{name}": table[f"requests_{name}"] // 10 + 1 for name in TYPES}
    (note,) = doubts_of(tmp_path, **sampled)
    assert "if requests are a sample, multiply the columns requests_…" in note
    busy = table["utilisation"] > 0
    assert doubts_of(tmp_path, response_time_s=table["response_time_s"].where(~busy)) == []


def test_more_than_ten_cycles_per_instruction_are_doubted(tmp_path):
    counters = ["instructions", "l1_misses", "l2_misses"]
    (note,) = doubts_of(tmp_path, **{name: log_table()[name] / 4 for name in counters})
    assert "cycles per instruction on piii, where services take 0.5 to 4: instructions should be those of all" in note


def test_public_scores_come_from_a_file(log, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("platform,score_per_s,instructions\npiii,10,4e7\npres,40,\n")
    (pres,) = predicted(ServiceQuestion(log, "piii", ("pres",), benchmarks=scores, method="benchmark"))["targets"]
    (here,) = predicted(ServiceQuestion(log, "piii", ("piii",), benchmarks=scores, method="benchmark"))["targets"]
    assert pres["service_time_s"] == pytest.approx(here["service_time_s"] / 4, rel=1e-9)
    scores.write_text("platform,score_per_s\npiii,10\npres,40\nrome_774,9\nvax,1\n")
    made = predicted(ServiceQuestion(log, "piii", ("pres",), benchmarks=scores, method="benchmark"))
    assert made["notes"][0] == (
        f"{scores}: scores that are not used, as no platform of that name is known: "
        "rome_774 (did you mean rome_7742?), vax"
    )
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
            ("--from", "pii", "--to", "vax,press"),
            'there is no platform "pii" (did you mean piii?)\nthere is no platform "vax" (wsc platforms lists them)\n'
            'there is no platform "press" (did you mean pres?)',
        ),
        (
            ("--from", "piii", "--to", "pres", "--method", "publish"),
            '--method: there is no such method (did you mean published?), got "publish"',
        ),
    ],
)
def test_wrong_names_are_a_line_each_and_2(log, arguments, told):
    result = wsc("predict", log, *arguments)
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (2, "", told)


def test_a_bound_needs_a_unit(log):
    result = wsc("select", log, "--from", "piii", "--bound", "150")
    assert (result.exit_code, result.stderr) == (2, '--bound: needs a unit, such as 150ms or 2s, got "150"\n')


def test_a_bound_that_is_no_time_is_told(log):
    result = wsc("select", log, "--from", "piii", "--bound", "fast")
    assert (result.exit_code, result.stderr.splitlines()) == (
        2,
        ['--bound: should be a time above 0, such as 1d, 12h, 5min, 60s or 200ms, got "fast"'],
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
    made = predicted(ServiceQuestion(copy, "pres", ("piii",), method="benchmark"))
    assert dumps(made) == dumps(predicted(ServiceQuestion(run, "pres", ("piii",), method="benchmark")))
    assert made["targets"][0]["service_time_s"] > 0
    result = wsc("predict", copy, "--from", "pd4", "--to", "piii")
    assert result.exit_code == 2
    assert "pd4" in result.stderr


def test_a_run_says_at_which_clocks_its_platforms_ran(tmp_path):
    sets = settings(["horizon_s=1800", "application.types=4", "platforms=[piii, pres]", "clocks={pres: 1.1e+9}"])
    slow = obtain(load("cross_rubis", sets), tmp_path, False, lambda _what, _share: None).path
    made = predicted(ServiceQuestion(slow, "piii", ("pres",), method="published"))
    assert "pres runs at 1.1 GHz, not at the base clock of its sheet, 2.2 GHz" in made["notes"]
    again = predicted(ServiceQuestion(slow, "piii", ("pres",), method="published", clock_hz={"pres": 2.2e9}))
    assert not any("GHz" in note for note in again["notes"])
    assert made["targets"][0]["service_time_s"] > 1.2 * again["targets"][0]["service_time_s"]


def test_a_run_of_another_kind_is_told(tmp_path):
    (tmp_path / "manifest.json").write_text('{"kind": "queue", "tables": {}}')
    result = wsc("predict", tmp_path, "--from", "piii", "--to", "pres")
    assert (result.exit_code, result.stderr) == (
        2,
        f"{tmp_path}: is a run of kind queue, which has no table service_counts\n",
    )


def test_learners_learn_from_all_logs_of_a_run_and_say_so(run):
    for method in ("network", "modern"):
        made = predicted(ServiceQuestion(run, "pres", ("pd4",), method=method))
        assert made["targets"][0]["response_time_s"] > 0
        assert "learnt from the logs of pres, piii" in made["notes"]


def test_other_methods_see_one_log_and_say_whose_scores_they_use(run):
    scored = "public scores are those of the run's table benchmarks"
    for method, says in (("testbed", True), ("benchmark", True), ("published", False)):
        made = calibrate(ServiceQuestion(run, "pres", ("piii",), method=method))
        assert list(made.evidence.logs) == ["pres"]
        assert (scored in made.notes) == says


def test_a_table_of_a_run_that_is_cut_off_or_gone_is_one_line_and_2(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    file = copy / "service_log.parquet"
    file.write_bytes(file.read_bytes()[:200])
    told = wsc("predict", copy, "--from", "piii", "--to", "pres")
    assert (told.exit_code, told.stderr) == (
        2,
        f"{copy}: table service_log cannot be read: is service_log.parquet cut off?\n",
    )
    file.unlink()
    told = wsc("predict", copy, "--from", "piii", "--to", "pres")
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)
    assert told.stderr.startswith(f"{copy}: no table service_log; there are ")


def loaded(tmp_path, faster):
    """A log of xeon_2h_2c_2p at 20 times the requests, each at a share of its usual CPU time."""
    table = log_table()
    table[[name for name in table if name.startswith("requests_")]] *= 20
    table[["instructions", "l1_misses", "l2_misses"]] *= 20
    table["utilisation"] *= faster
    table.to_csv(tmp_path / "loaded.csv", index=False)
    return tmp_path / "loaded.csv"


@pytest.mark.parametrize("method", ["testbed", "published", "cycle_mix"])
def test_a_platform_that_cannot_carry_the_volume_is_told_with_its_uncut_cpu_time(tmp_path, method):
    file = loaded(tmp_path, 3.0)
    made = predicted(ServiceQuestion(file, "xeon_2h_2c_2p", ("piii",), method=method))
    (row,) = made["targets"]
    (note,) = [note for note in made["notes"] if "cannot carry" in note]
    assert note.startswith(f"piii cannot carry {made['requests_per_s']:.3g} requests a second")
    assert row["utilisation"] == 1.0
    assert row["service_time_s"] * made["requests_per_s"] > 1.2
    assert all(math.isnan(row[name]) for name in ("response_time_s", "low", "high"))


def half_full(platform, counts, interval_s):
    """What a method says that cuts service times of 0.05 s, 20% either way, off at what there is time for."""
    room = interval_s / counts.sum(axis=1)
    ends = [np.minimum(each, room) for each in (0.05, 0.04, 0.06)]
    return Prediction(*ends, *[np.full(len(counts), np.inf)] * 3)


@pytest.mark.parametrize(("volume", "note"), [(15.0, None), (18.0, "might not"), (22.0, "cannot"), (900.0, "cannot")])
def test_ends_of_cpu_time_are_uncut_at_every_volume(tmp_path, monkeypatch, volume, note):
    monkeypatch.setattr(
        calibration, "METHODS", [PredictionMethod("cut", "a machine that is full", lambda _: half_full)]
    )
    table = log_table()
    table["start_s"] *= table.filter(like="requests_").to_numpy().sum() / (30 * len(table)) / volume
    table.drop(columns="utilisation").to_csv(tmp_path / "some.csv", index=False)
    made = predicted(ServiceQuestion(tmp_path / "some.csv", "piii", ("pres",), method="cut"))
    (row,) = made["targets"]
    assert made["requests_per_s"] == pytest.approx(volume)
    said = [row["service_time_s"], row["service_low"], row["service_high"]]
    np.testing.assert_allclose(said, [0.05, 0.04, 0.06], rtol=1e-9)
    assert row["utilisation"] == pytest.approx(min(0.05 * volume, 1.0))
    load = [each for each in made["notes"] if "requests a second" in each]
    assert [f"pres {note} carry {volume:.3g} requests" in each for each in load] == ([True] if note else [])


def test_a_log_that_cannot_be_of_its_platform_is_told_with_the_cycles_it_implies(log):
    table = log_table()
    busy_s = 30.0 * table["utilisation"].sum()
    rome = PLATFORMS["rome_7742"]
    implied = busy_s * rome.vcpus * rome.base_frequency_hz / table["instructions"].sum()
    result = wsc("predict", log, "--from", "rome_7742", "--to", "pres")
    assert (result.exit_code, result.stdout) == (2, "")
    said = (
        f"{log}: its utilisation and instructions would be {implied:.3g} cycles per instruction on rome_7742, must be"
    )
    assert result.stderr.startswith(said)


def test_names_may_be_apart_from_their_commas(log):
    spaced = predicted(ServiceQuestion(log, " piii", ("pres", " rome_7742 ")))
    assert dumps(spaced) == dumps(predicted(ServiceQuestion(log, "piii", ("pres", "rome_7742"))))


def test_a_method_that_has_no_answer_for_a_platform_names_it(log, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text("platform,score_per_s\npiii,10\npres,40\n")
    options = ("--from", "piii", "--benchmarks", scores, "--method", "benchmark")
    for command, what in (("predict", "the service"), ("select", "response times")):
        bound = () if command == "predict" else ("--bound", "1s")
        result = wsc(command, log, *options, *bound, "--to", "pres,pd4")
        said = f"{log}: method benchmark has no answer (NaN) for {what} on pd4, for want of a public score\n"
        assert (result.exit_code, result.stdout, result.stderr) == (2, "", said)
    made = selected(ServiceQuestion(log, "piii", benchmarks=scores, method="benchmark"), 1.0)
    assert {row["platform"] for row in made["platforms"] if row["throughput_per_s"] > 0} == {"piii", "pres"}
    (note,) = [note for note in made["notes"] if "has no answer" in note]
    assert "pres" not in note.split()
    assert "pd4" in note


def test_mixes_outside_are_counted_among_intervals_with_requests(tmp_path):
    table = log_table().sample(frac=1.0, random_state=1)
    counts = [f"requests_{name}" for name in TYPES]
    idle = table.iloc[:20].assign(**dict.fromkeys([*counts, "utilisation", "response_time_s"], 0))
    shares = []
    for parts in ([table], [idle, table, idle]):
        made = pd.concat(parts)
        made.assign(start_s=30.0 * np.arange(len(made))).to_csv(tmp_path / "some.csv", index=False)
        shares.append(predicted(ServiceQuestion(tmp_path / "some.csv", "piii", ("pres",)))["outside_hull"])
    assert 0 < shares[0] < 1
    assert shares[1] == pytest.approx(shares[0])


def test_throughputs_far_from_the_log_and_of_nothing_are_noted(log):
    three = ServiceQuestion(log, "piii", ("piii", "pres", "rome_7742"), method="published")
    made, rate = selected(three, 0.1), predicted(three)["requests_per_s"]
    far = sum(row["throughput_per_s"] > 10 * rate for row in made["platforms"])
    assert 0 < far < 3
    said = f"{far} of 3 throughputs are more than 10 times the {rate:.3g} requests a second of the log: "
    assert any(note.startswith(said) for note in made["notes"])
    made = selected(three, 0.07)
    assert [row["platform"] for row in made["platforms"] if row["throughput_per_s"] == 0] == ["piii", "pres"]
    assert "70 ms is too short even for an idle machine on piii, pres" in made["notes"]


def test_a_bound_that_no_platform_meets_ends_with_status_1_and_a_line_that_says_so(log):
    done = wsc("select", log, "--from", "piii", "--bound", "1us", "--to", "pres,piii")
    assert done.exit_code == 1
    assert done.stdout.count("no platform answers within 0.001 ms, not even an idle one: give a longer --bound") == 1


def test_watts_are_headed_by_what_they_are(log):
    assert "TDP, W" in wsc("select", log, "--from", "piii", "--bound", "1s", "--to", "pres").stdout


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


@pytest.mark.parametrize("method", [None, "published", "calibrated", "cycle_scalar", "cycle_mix"])
def test_instruction_counts_are_not_carried_to_another_instruction_set(log, method):
    asked = () if method is None else ("--method", method)
    result = wsc("predict", log, "--from", "piii", "--to", f"rome_7742,{ARM}", *asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"{log}: instruction counts of a log on piii (x86) do not carry over to altra_q80_30 (arm64); "
        "--instruction-ratio LOW,HIGH says how many instructions a request takes there over those here (90%)\n"
    )


def test_what_is_not_carried_over_is_not_ranked_and_named(log):
    result = wsc("select", log, "--from", "piii", "--bound", "150ms", "--to", f"pres,{ARM}")
    assert result.exit_code == 0
    assert "   1   pres" in result.stdout
    assert "not ranked: instruction counts of a log on piii (x86) do not carry over to altra_q80_30 (arm64);" in (
        result.stdout
    )
    assert ARM not in result.stdout.partition("note:")[0]
    alone = wsc("select", log, "--from", "piii", "--bound", "150ms", "--to", ARM)
    assert (alone.exit_code, alone.stdout) == (2, "")
    assert "do not carry over to altra_q80_30 (arm64); --instruction-ratio LOW,HIGH" in alone.stderr


def test_a_log_of_arm_says_nothing_of_x86_and_all_of_itself(tmp_path):
    table = log_table().assign(utilisation=0.5)
    table[["instructions", "l1_misses", "l2_misses"]] *= 1e3
    table.to_csv(log := tmp_path / "arm.csv", index=False)
    said = wsc("predict", log, "--from", ARM, "--to", f"{ARM},piii,pres", "--method", "published")
    assert said.exit_code == 2
    assert "altra_q80_30 (arm64) do not carry over to piii (x86), pres (x86);" in said.stderr
    (row,) = predicted(ServiceQuestion(log, ARM, (ARM,), method="published"))["targets"]
    assert (row["platform"], row["isa"]) == (ARM, "arm64")
    ranked = selected(ServiceQuestion(log, ARM, method="published"), 0.15)
    assert {one["platform"] for one in ranked["platforms"]} == set(ARMS)
    assert set(ranked["not_ranked"]) == set(X86)


def test_a_platform_of_ones_own_without_an_instruction_set_is_of_an_unknown_one(log, tmp_path):
    sheet = "{extends: pres, isa: unknown}"
    (tmp_path / "mine.yaml").write_text(f"mine: {sheet}\nlean: {{extends: mine, tdp_w: 60, variant_of: mine}}\n")
    mine = ("--platforms", tmp_path / "mine.yaml", "--method", "cycle_mix")
    result = wsc("predict", log, "--from", "piii", "--to", "mine", *mine)
    assert result.exit_code == 2
    told = (
        "piii (x86) do not carry over to mine (unknown: its sheet has no isa); a line such as `isa: x86` in the sheet "
        "of mine says which instructions it has; where they differ, --instruction-ratio LOW,HIGH"
    )
    assert told in result.stderr
    ranked = wsc("select", log, "--from", "piii", "--to", "pres,mine", "--bound", "150ms", *mine)
    assert f"not ranked: instruction counts of a log on {told}" in ranked.stdout
    assert wsc("predict", log, "--from", "mine", "--to", "lean", *mine).exit_code == 0
    (tmp_path / "mine.yaml").write_text("mine: {extends: pres, isa: amd64}\n")
    wrong = wsc("predict", log, "--from", "piii", "--to", "mine", *mine)
    assert wrong.exit_code == 2
    assert f"{tmp_path}/mine.yaml:1:28: mine.isa: " in wrong.stderr


def told(log, tmp_path, ratio=None):
    """Return what is said of the Altra, with a ratio, or as if it were of the log's instruction set."""
    (tmp_path / "mine.yaml").write_text(f"as_x86: {{extends: {ARM}, isa: x86}}\n")
    to = ("as_x86",) if ratio is None else (ARM,)
    return predicted(ServiceQuestion(log, "piii", to, platforms=tmp_path / "mine.yaml", instruction_ratio=ratio))[
        "targets"
    ][0]


def test_a_ratio_of_instructions_lengthens_requests_and_widens_their_interval(log, tmp_path):
    """The oracle: errors of a log-normal ratio and of a prediction add as squares, in logarithms."""
    plain, same, twice = told(log, tmp_path), told(log, tmp_path, (1.0, 1.0)), told(log, tmp_path, (2.0, 2.0))
    for name in ("service_time_s", "service_low", "service_high", "response_time_s", "low", "high"):
        assert same[name] == pytest.approx(plain[name], rel=1e-9), name
    assert twice["service_time_s"] == pytest.approx(2 * plain["service_time_s"], rel=2e-3)  # buses are busier
    assert twice["response_time_s"] > plain["response_time_s"]
    wide = told(log, tmp_path, (0.8, 1.8))
    median, half = math.sqrt(0.8 * 1.8), math.log(1.8 / 0.8) / 2
    assert wide["service_time_s"] == pytest.approx(median * plain["service_time_s"], rel=2e-3)
    for end in ("service_low", "service_high"):
        own = math.log(plain[end] / plain["service_time_s"])
        assert abs(math.log(wide[end] / wide["service_time_s"])) == pytest.approx(math.hypot(own, half), rel=5e-3)
    centred = told(log, tmp_path, (0.5, 2.0))
    assert centred["response_time_s"] == pytest.approx(plain["response_time_s"], rel=1e-9)
    assert centred["low"] < plain["low"]
    assert centred["high"] > plain["high"]


def test_a_ratio_of_instructions_widens_the_interval_of_throughput(log, tmp_path):
    (tmp_path / "mine.yaml").write_text(f"as_x86: {{extends: {ARM}, isa: x86}}\n")

    def row(to, ratio):
        asked = ServiceQuestion(log, "piii", (to,), platforms=tmp_path / "mine.yaml", instruction_ratio=ratio)
        return selected(asked, 0.15)["platforms"][0]

    plain, wide = row("as_x86", None), row(ARM, (0.8, 1.25))
    middle = plain["throughput_per_s"]
    assert wide["throughput_per_s"] == pytest.approx(middle, rel=1e-3)
    for end in ("low", "high"):
        asked = math.hypot(math.log(plain[end] / middle), math.log(1.25))
        assert abs(math.log(wide[end] / middle)) == pytest.approx(asked, rel=0.1), end


def test_scores_of_another_instruction_set_are_left_out_but_of_the_method_that_goes_by_scores(log, tmp_path):
    scores = tmp_path / "scores.csv"
    scores.write_text(f"platform,score_per_s\npiii,10\npres,40\n{ARM},4000\n")
    made = predicted(ServiceQuestion(log, "piii", ("pres",), benchmarks=scores))
    assert f"scores of {ARM} left out: not known to be of the instruction set of piii (x86)" in made["notes"]
    scores.write_text("platform,score_per_s\npiii,10\npres,40\n")
    without_it = predicted(ServiceQuestion(log, "piii", ("pres",), benchmarks=scores))
    assert made["targets"] == without_it["targets"]
    scores.write_text(f"platform,score_per_s\npiii,10\n{ARM},40\n")
    (there,) = predicted(ServiceQuestion(log, "piii", (ARM,), benchmarks=scores, method="benchmark"))["targets"]
    (here,) = predicted(ServiceQuestion(log, "piii", ("piii",), benchmarks=scores, method="benchmark"))["targets"]
    assert there["service_time_s"] == pytest.approx(here["service_time_s"] / 4, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--to", ARM, "--instruction-ratio", "1.2"),
            "should be LOW,HIGH with 0.1 <= LOW <= HIGH <= 10, such as 0.9,1.2",
        ),
        (("--to", ARM, "--instruction-ratio", "1.2,0.9"), "should be LOW,HIGH with 0.1 <= LOW <= HIGH <= 10"),
        (("--to", ARM, "--instruction-ratio", "0,nan"), "should be LOW,HIGH with 0.1 <= LOW <= HIGH <= 10"),
        (("--to", "pres", "--instruction-ratio", "0.9,1.2"), "all platforms asked for have the instructions of piii"),
        (
            ("--to", ARM, "--method", "published", "--instruction-ratio", "0.9,1.2"),
            "method published states no interval that it could widen, only testbed does",
        ),
    ],
)
def test_a_ratio_that_is_none_or_changes_nothing_is_refused(log, arguments, problem):
    result = wsc("predict", log, "--from", "piii", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"--instruction-ratio: {problem}")


def test_what_is_printed_fits_a_narrow_terminal(log):
    for command, more in (("predict", ("--to", ",".join(X86))), ("select", ("--bound", "150ms"))):
        result = CliRunner().invoke(app, [command, str(log), "--from", "piii", *more], env={"COLUMNS": "80"})
        assert result.exit_code == 0
        assert "graniterapids_6980p" in result.stdout
        assert "…" not in result.stdout


@pytest.mark.parametrize("column", ["requests_buy", "response_time_s"])
def test_an_absurd_number_makes_a_wide_interval_and_no_warning(tmp_path, column):
    table = log_table().astype({column: float})
    table.loc[5, column] = 9e17
    table.to_csv(tmp_path / "log.csv", index=False)
    (target,) = predicted(ServiceQuestion(tmp_path / "log.csv", "piii", ("pres",)))["targets"]
    assert target["service_low"] <= target["service_time_s"] <= target["service_high"]


def test_what_was_found_is_shown_in_part_if_it_is_very_long(tmp_path):
    (tmp_path / "log.csv").write_text("start_s," + "n" * 5000 + "\n0,1\n")
    ended = wsc("predict", tmp_path / "log.csv", "--from", "piii", "--to", "pres")
    assert ended.exit_code == 2
    assert max(map(len, ended.stderr.replace("n" * 5000, "n").splitlines())) < 700


def test_a_clock_is_a_spec_sheet_with_that_clock(log):
    """The published formula: s = I (CPI + H2 C2 + M Cmem) / f, memory's cycles in proportion to f."""
    slow = replace(PLATFORMS["pres"], base_frequency_hz=1.6e9)
    evidence = Evidence("piii", {"piii": read(log)}, PLATFORMS)
    counts = evidence.log.counts.sum(axis=0, keepdims=True)
    expected = published(evidence)(slow, counts, 3600.0).service_time_s[0]
    made = predicted(ServiceQuestion(log, "piii", ("pres",), method="published", clock_hz={"pres": 1.6e9}))
    assert made["targets"][0]["service_time_s"] == pytest.approx(expected, rel=1e-12)
    assert made["notes"][0] == "pres runs at 1.6 GHz, not at the base clock of its sheet, 2.2 GHz"
    plain = predicted(ServiceQuestion(log, "piii", ("pres",), method="published"))
    assert 1.0 < expected / plain["targets"][0]["service_time_s"] < 2.2 / 1.6


def test_a_platform_is_chosen_at_its_clock_and_the_watts_are_said_to_be_of_the_sheet(log):
    words = ("select", log, "--from", "piii", "--bound", "2s", "--to", "pres", "--json")
    usual = json.loads(wsc(*words).stdout)
    slow, same = (json.loads(wsc(*words, "--clock", f"pres={hz}GHz").stdout) for hz in (1.1, 2.2))
    assert same["platforms"] == usual["platforms"]
    assert slow["platforms"][0]["throughput_per_s"] < 0.9 * usual["platforms"][0]["throughput_per_s"]
    told = "watts of pres are the TDP, which is not reached at that clock: more per watt than is said"
    assert [told in made["notes"] for made in (usual, same, slow)] == [False, False, True]


def test_a_log_made_at_another_clock_is_calibrated_at_that(log):
    made = json.loads(wsc("predict", log, "--from", "piii", "--to", "pres", "--clock", "piii=800MHz", "--json").stdout)
    mine = replace(PLATFORMS["piii"], base_frequency_hz=8e8)
    evidence = Evidence("piii", {"piii": read(log)}, PLATFORMS | {"piii": mine})
    expected = tailored(evidence)(PLATFORMS["pres"], evidence.log.counts.sum(axis=0, keepdims=True), 3600.0)
    assert made["targets"][0]["service_time_s"] == pytest.approx(expected.service_time_s[0], rel=1e-9)


@pytest.mark.parametrize(
    ("clock", "problem"),
    [
        ("pres", "--clock: should be PLATFORM=CLOCK,… with a clock of"),
        ("pres=fast", "--clock: should be PLATFORM=CLOCK,… with a clock of"),
        ("pres=1GHz,pres=2GHz", "--clock: should be PLATFORM=CLOCK,… with a clock of"),
        ("pres=2", "1MHz to 100GHz for each platform once"),
        ("pros=1GHz", "--clock: there is no such platform (did you mean pres?)"),
        ("pd4=1GHz", '--clock: should be of the log\'s platform or of one that is predicted for, got "pd4"'),
        ("pres=3GHz", '--clock: should be at most 2.2 GHz, its highest clock with all cores busy, got "pres=3GHz"'),
    ],
)
def test_a_clock_that_cannot_be_or_changes_nothing_is_refused(log, clock, problem):
    made = wsc("predict", log, "--from", "piii", "--to", "pres", "--clock", clock)
    assert made.exit_code == 2
    assert problem in made.stderr.replace("\n", " ")
