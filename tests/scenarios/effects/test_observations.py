"""Observations from files and runs: one table, faults of all sources together."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.audit.guards import AT_THE_END
from analysis.tables.recipe import Recipe
from models.errors import InputError
from scenarios.commands.app import app
from scenarios.effects.audit import audit as audit_of
from scenarios.effects.effect import effect as effect_of
from scenarios.effects.monitor import monitor as monitor_of
from scenarios.effects.observations import experiment, observed, of_run, recorded
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load, settings
from scenarios.runs.execution import obtain


def monitor(*sources, **options):
    """What the command prints as JSON."""
    return monitor_of(*sources, **options).payload()


def audit(*sources, **options):
    """What the command prints as JSON."""
    return audit_of(*sources, **options).payload()


def effect(*sources, **options):
    """What the command prints as JSON."""
    return effect_of(*sources, **options).payload()


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_a_folder_that_is_no_run_and_a_bad_file_are_told_together(tmp_path):
    (tmp_path / "bad.csv").write_text("period,job\n1,a\n")
    with pytest.raises(FaultsError) as caught:
        observed([tmp_path, tmp_path / "bad.csv"])
    assert "not a finished run" in str(caught.value)
    assert "bad.csv:1:1: machine: column is missing" in str(caught.value)


def test_a_run_is_measured_where_machines_were_rolled_out(tmp_path):
    options = ["fleet.machines=60", "population.jobs=60", "population.common_jobs=40", "horizon_s=259200.0"]
    options += [
        "feature.rollout.start_s=86400.0",
        "analyses.wsmeter.window=day.02",
        "analyses.wsmeter.machines=[10]",
        "recording.truth=false",
    ]
    windows = [{"name": f"day.{k:02}", "start_s": 86400.0 * k, "end_s": 86400.0 * (k + 1)} for k in range(3)]
    options.append(f"recording.windows={json.dumps(windows)}")
    sets = [part for option in options for part in ("--set", option)]
    made = invoke("run", "fortnight", "--out", tmp_path, *sets, "--json")
    assert made.exit_code == 0, made.output
    (folder,) = (each for each in tmp_path.iterdir() if each.is_dir())
    reading, _ = observed([folder])
    table = reading.table
    assert sorted(table["period"].unique().tolist()) == [0.0, 86400.0, 172800.0]
    assert table.loc[table["treated"] == 1, "period"].min() == 86400.0
    assert reading.notes == ()
    payload = effect([folder])
    assert payload["design"] == "concurrent"
    assert payload["machines"] == 30
    assert payload["controls"] == 30
    assert payload["margin"] < 0.1
    audited = audit([folder])
    assert (audited["findings"], audited["checked"]) == (payload["findings"], payload["checked"])
    assert len(audited["checked"]) > 10
    watched = monitor([folder])
    assert set(watched["checked"]) == set(audited["checked"]) - AT_THE_END
    table.drop(columns="file").assign(period=table["period"] + 1e6).to_csv(tmp_path / "later.csv", index=False)
    assert audit([folder, tmp_path / "later.csv"])["checked"]


def test_a_file_that_is_given_twice_is_told_before_it_is_read(tmp_path):
    (tmp_path / "bad.csv").write_text("period,job\n1,a\n")
    with pytest.raises(FaultsError) as caught:
        experiment([tmp_path / "bad.csv", tmp_path / "b.csv", tmp_path / "bad.csv"])
    assert str(caught.value) == f"{tmp_path / 'bad.csv'}: should be given once, got 2 times"


@pytest.mark.parametrize("command", [audit, effect, monitor])
def test_bad_cells_are_told_together_with_missing_rows_of_the_feature(tmp_path, command):
    head, nothing = "period,job,machine,weight,value,treated", "nothing has the feature: no row has treated 1"
    path = tmp_path / "seen.csv"

    def faults(rows, **options):
        path.write_text("\n".join([head, *rows]))
        with pytest.raises(FaultsError) as caught:
            command([path], **options)
        return str(caught.value)

    good = [f"1,a,m{k},1,{1 + k / 10},0" for k in range(4)]
    bad = faults([*good, "x,a,m5,1,1,0", "1,,m6,1,1,false"])
    assert nothing in bad
    assert "seen.csv:6:1: period: should be a number" in bad
    assert "seen.csv:7:2: job: should not be empty" in bad
    assert nothing not in faults([*good, "x,a,m5,1,1,1"])
    assert nothing not in faults([*good, "1,a,m5,1,1e60,2"])
    both = faults([*good, "1,a,m5,1,-1,0", "1,a,m6,1,n/a,0"])
    assert nothing in both
    assert "2 of 6 rows have no value or weight above 0; 1 value is 0 or negative (first: line 6, -1)" in both
    path.write_text("\n".join([head, *good, "1,,m6,1,1,0"]))
    recipe = Recipe(columns={"treated": "machine = 'm9'"})
    with pytest.raises(FaultsError, match=r"true in no row.*\n.*job: should not be empty"):
        command([path], recipe=recipe)


@pytest.mark.parametrize("words", [("effect",), ("monitor",), ("audit",), ("design", "--detect", "2%")])
def test_values_of_a_run_are_no_numerators(tmp_path, words):
    ended = invoke(words[0], tmp_path, *words[1:], "--metric-kind", "ratio")
    assert (ended.exit_code, "--metric-kind: is of tables; values of the run" in ended.output) == (2, True)
    assert "by which wsc effect --target sums weighs" in ended.output


def test_jobs_of_another_fleet_are_refused(tmp_path):
    (tmp_path / "seen.csv").write_text("period,job,machine,weight,value,treated\n1,a,m,1,1,TRUE\n1,a,n,1,1,false\n")
    (tmp_path / "jobs.csv").write_text("job,quota,instances\nb,1,1\n")
    with pytest.raises(FaultsError, match=r"jobs.csv: job: should name the jobs of the observations"):
        experiment([tmp_path / "seen.csv"], tmp_path / "jobs.csv")
    (tmp_path / "jobs.csv").write_text("job,quota,instances\na,1,1\n")
    made = experiment([tmp_path / "seen.csv"], tmp_path / "jobs.csv")
    assert made.observations.table["treated"].tolist() == [1, 0]
    assert (made.jobs["quota"].tolist(), made.notes) == ([1.0], ())


def test_values_of_a_job_that_no_sum_holds_are_a_fault(tmp_path):
    rows = [f"1,{job},m{k},1,{1 + k / 100},{k % 2}" for job in "ab" for k in range(20)]
    rows[7] = "1,a,m7,1,1e40,1"
    (tmp_path / "seen.csv").write_text("\n".join(["period,job,machine,weight,value,treated", *rows]))
    with pytest.raises(FaultsError, match=r'seen.csv: value: should be within 1e\+15 times .* 1 and 1e\+40 in "a"'):
        experiment([tmp_path / "seen.csv"])


def test_a_past_of_other_jobs_is_none(tmp_path):
    """Nothing of what is studied was seen before: the answer is that of the study alone."""
    rows = [f"1,a,m{k},1,{1 + k * 7 % 11 / 100},{k % 2}" for k in range(20)]
    head, past = "period,job,machine,weight,value,treated", [f"0,b,m{k},1,2,0" for k in range(20)]
    answers = []
    for name, kept in (("with.csv", [*past, *rows]), ("without.csv", rows)):
        (tmp_path / name).write_text("\n".join([head, *kept]))
        made = effect([tmp_path / name])
        answers.append((made["change"], made["margin"]))
    assert answers[0] == pytest.approx(answers[1])


def stays():
    """Return two stays in two windows, machine 1 with the feature from second 10 on."""
    instances = pd.DataFrame(
        {"residence": [0, 1], "instance": [5, 6], "job": 3, "shard": [0, 1], "machine": [0, 1], "rack": 0}
    ).assign(platform="x", quota_vcpu=[1.0, 2.0], start_s=0.0, end_s=20.0, feature=[False, True])
    counters = pd.DataFrame({"residence": [0, 1, 0, 1], "window": ["a", "a", "b", "b"]}).assign(
        cycles=[2.0, 4.0, 6.0, 8.0], instructions=[6.0, 6.0, 6.0, 0.0], cpu_s=[1.0, 2.0, 3.0, 4.0], wall_s=10.0
    )
    windows = pd.DataFrame({"window": ["a", "b"], "start_s": [0.0, 10.0], "end_s": [10.0, 20.0]})
    return counters, instances, windows


def test_a_run_becomes_observations_by_hand():
    counters, instances, windows = stays()
    counters.loc[3, "instructions"] = 2.0
    treated = pd.DataFrame({"machine": [1], "start_s": [10.0], "end_s": [np.inf]})
    made = of_run(counters, instances, windows, treated, "ips")
    assert made["period"].tolist() == [0.0, 0.0, 10.0, 10.0]
    assert made["value"].tolist() == [6.0, 3.0, 2.0, 0.5]
    assert made["treated"].tolist() == [0, 0, 0, 1]
    assert made["weight"].tolist() == [1.0, 2.0, 1.0, 2.0]
    assert of_run(counters, instances, windows, treated, "ipc")["value"].tolist() == [3.0, 1.5, 1.0, 0.25]


def test_rows_without_work_and_periods_of_both_states_are_left_out():
    counters, instances, windows = stays()
    assert len(of_run(counters, instances, windows)) == 3
    half = pd.DataFrame({"machine": [1], "start_s": [5.0], "end_s": [np.inf]})
    made = of_run(counters, instances, windows, half)
    assert made[["machine", "period"]].to_numpy().tolist() == [[0.0, 0.0], [0.0, 10.0]]


LATE = [
    *("fleet.machines=20", "population.jobs=60", "population.common_jobs=40", "horizon_s=14400", "recording.loop=null"),
    *("analyses.wsmeter.machines=[5]", "feature.rollout.start_s=3600"),
]


@pytest.mark.parametrize(("end_s", "periods"), [(7200, [7200.0]), (14400, [])])
def test_a_window_within_which_machines_get_the_feature_is_left_out(end_s, periods, tmp_path):
    ends = [end for end in (end_s, 14400) if end <= 14400]
    bounds = list(zip([0, *ends], dict.fromkeys(ends), strict=False))
    windows = [f"{{name: w{start}, start_s: {start}, end_s: {end}}}" for start, end in bounds]
    scenario = load(
        "small", settings([*LATE, f"recording.windows=[{','.join(windows)}]", "analyses.wsmeter.window=w0"])
    )
    run = obtain(scenario, tmp_path, False, lambda *_: None)
    if not periods:
        with pytest.raises(InputError, match="machines get the feature within window w0, and in no counting window"):
            recorded(run)
        return
    table, notes = recorded(run)
    assert sorted(table["period"].unique()) == periods
    assert table.groupby("treated")["machine"].nunique().tolist() == [10, 10]
    assert notes == ["window w0 is left out: machines get the feature within it, and none has it all the time"]


@pytest.mark.parametrize("command", ["effect", "audit", "monitor"])
def test_of_a_run_without_a_feature_its_scenario_is_spoken_of_and_no_column(tmp_path, command):
    options = ["feature=null", "fleet.machines=12", "analyses.wsmeter.machines=[2]", "horizon_s=3600.0"]
    whole = ['recording.windows=[{"name":"all","start_s":0,"end_s":3600}]']
    run = obtain(load("small", settings([*options, *whole])), tmp_path, False, lambda *_: None)
    told = invoke(command, run.path)
    assert (told.exit_code, "--column" in told.output) == (2, False)
    assert "nothing has the feature: no machine got it in a window that is counted" in " ".join(told.output.split())


def test_unknown_metrics_and_windows_are_refused():
    counters, instances, windows = stays()
    with pytest.raises(ValueError, match="metric must be one of ipc, ips"):
        of_run(counters, instances, windows, metric="mips")
    with pytest.raises(ValueError, match="windows must be of a, b"):
        of_run(counters, instances, windows.assign(window=["c", "d"]))
